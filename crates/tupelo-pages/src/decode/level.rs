//! The columns of one nesting level of all fields: fetched together and decoded as tasks, a run of pages each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use tupelo_core::pool;
use tupelo_format::encoding;
use tupelo_schema::schema::Field;

use super::Decoder;
use super::fetch::{Fetcher, PageBatch};
use super::node::{Node, Offsets};
use super::pages::{Decode, PageReader};
use super::values::ValueBuffer;
use super::variant::Switch;
use crate::plan::{PageId, PageSlice};
use crate::{Error, Result};

/// A column to decode for a node.
pub(super) struct Job<'t, 'f> {
    pub(super) node: &'t mut Node<'f>,
    pub(super) slices: Vec<PageSlice>,
    pub(super) target: Target,
}

/// Where the values of a column go.
pub(super) enum Target {
    /// Values of the same width. An index column leaves room for one more value at the front.
    Fixed { values: ValueBuffer, front: usize, width: usize, decode: Decode },
    /// The offsets of an index column with `stored` stored elements, before memory is allocated for them.
    Index { stored: usize },
    /// Bits, eight to a byte.
    Bits(ValueBuffer),
    /// Tags and indexes of variants.
    Switch(Switch),
    /// Offsets that are known already.
    Known(Offsets),
    /// The offsets that another job of the level decodes.
    SameAs(usize),
    /// Moved to the node.
    Nothing,
}

/// The slices of some jobs whose pages are fetched together.
#[derive(Default)]
struct Batch {
    /// The slices, by the number of their job.
    parts: BTreeMap<usize, Range<usize>>,
    /// Pages to release after it.
    last_used: Vec<PageId>,
}

/// The batches of a level under construction.
struct Batches<'f, 'm> {
    fetcher: &'f Fetcher<'m>,
    max_bytes: u64,
    /// At least one.
    all: Vec<(PageBatch, Batch)>,
    /// The pages to fetch for the last batch.
    fetched: HashSet<PageId>,
}

impl Batches<'_, '_> {
    /// The bytes of a page, if the last batch has to fetch it.
    fn new_bytes(&self, slice: &PageSlice) -> Option<u64> {
        let is_new = !self.fetched.contains(&slice.id) && self.fetcher.lacks(slice.id, &slice.range);
        is_new.then(|| slice.range.bytes())
    }

    /// Begins another batch if so many bytes do not fit into the last one.
    fn make_room(&mut self, bytes: u64) {
        let known = self.all.last().map_or(0, |(pages, _)| pages.bytes());
        if known > 0 && known + bytes > self.max_bytes {
            self.all.push(Default::default());
            self.fetched.clear();
        }
    }
}

/// A job while its slices are decoded in order.
struct Cursor<'j> {
    field: &'j Field,
    slices: &'j [PageSlice],
    output: Output<'j>,
}

enum Output<'j> {
    Fixed { slots: Slots<'j>, decode: Decode },
    Bits(&'j mut [u8]),
    Switch(&'j mut Switch),
    Nothing,
}

/// The work of one thread at a time.
enum Task<'j> {
    Run { field: &'j Field, run: &'j [PageSlice], width: usize, out: &'j mut [u8], decode: Decode },
    Bits { field: &'j Field, runs: Vec<&'j [PageSlice]>, bits: &'j mut [u8] },
    Switch { field: &'j Field, runs: Vec<&'j [PageSlice]>, switch: &'j mut Switch },
}

impl<'m> Decoder<'m> {
    /// Decodes the columns of all jobs.
    pub(super) fn decode_level(&self, fetcher: &mut Fetcher<'m>, jobs: &mut [Job<'_, '_>]) -> Result<()> {
        let (batches, mut cursors) = (self.batches(fetcher, jobs), jobs.iter_mut().map(Cursor::of).collect::<Vec<_>>());
        let Self { metadata, memory, table, .. } = self;
        fetcher.each(batches, |fetcher, batch| {
            let reader = PageReader { metadata, memory, table, fetcher };
            let (mut tasks, mut bytes) = (Vec::new(), 0);
            for (index, cursor) in cursors.iter_mut().enumerate() {
                if let Some(part) = batch.parts.get(&index) {
                    bytes += cursor.tasks(&reader, part.clone(), &mut tasks)?;
                }
            }
            pool::map(tasks, bytes, |task| task.run(&reader))?;
            batch.last_used.into_iter().for_each(|page| fetcher.release(page));
            Ok(())
        })?;
        cursors.into_iter().for_each(Cursor::end);
        Ok(())
    }

    /// The jobs in batches, each with the pages to fetch for it: with a store that is read in place all are one batch. A page
    /// that two batches need is fetched for each of them, so that none is kept for long.
    fn batches(&self, fetcher: &Fetcher<'m>, jobs: &[Job<'_, '_>]) -> Vec<(PageBatch, Batch)> {
        let max_bytes = self.memory.fetch_bytes();
        let mut batches = Batches { fetcher, max_bytes, all: vec![Default::default()], fetched: HashSet::new() };
        // For each page that was fetched already, the last batch that needs it.
        let mut last_used: HashMap<PageId, usize> = HashMap::new();
        for (job, run) in self.runs(jobs) {
            let pages = || jobs[job].slices[run.clone()].chunk_by(|a, b| a.id == b.id);
            // Pages that fit into one batch are not fetched in two requests.
            let all_new: u64 = pages().filter_map(|slices| batches.new_bytes(&slices[0])).sum();
            if all_new <= max_bytes {
                batches.make_room(all_new);
            }
            let mut start = run.start;
            for slices in pages() {
                let (slice, end) = (&slices[0], start + slices.len());
                batches.make_room(batches.new_bytes(slice).unwrap_or(0));
                let is_new = batches.new_bytes(slice).is_some();
                let last = batches.all.len() - 1;
                let (pages, batch) = &mut batches.all[last];
                if is_new {
                    pages.push(slice.id, slice.range);
                    batch.last_used.push(slice.id);
                    batches.fetched.insert(slice.id);
                } else if fetcher.get(slice.id).is_some() {
                    last_used.insert(slice.id, last);
                }
                batch.parts.entry(job).or_insert(start..start).end = end;
                start = end;
            }
        }
        for (page, batch) in last_used {
            batches.all[batch].1.last_used.push(page);
        }
        batches.all
    }

    /// The slices of all jobs, cluster by cluster and in the order in which they are stored: of each job those together that
    /// are in the same blob.
    fn runs(&self, jobs: &[Job<'_, '_>]) -> Vec<(usize, Range<usize>)> {
        let mut runs = Vec::new();
        for (job, slices) in jobs.iter().map(|job| &job.slices).enumerate() {
            // Cluster and place by which a run is sorted: slices of a job stay in order, whatever that of both is.
            let (mut start, mut key) = (0, None);
            for run in slices.chunk_by(|a, b| (a.id.column, a.range.blob) == (b.id.column, b.range.blob)) {
                let cluster = self.table.column(run[0].id).cluster;
                if key.is_none_or(|(before, _)| cluster > before) {
                    key = Some((cluster, run[0].range));
                }
                runs.push((key, job, start..start + run.len()));
                start += run.len();
            }
        }
        runs.sort_by_key(|&(key, job, _)| (key, job));
        runs.into_iter().map(|(_, job, run)| (job, run)).collect()
    }
}

impl<'j> Cursor<'j> {
    fn of(job: &'j mut Job<'_, '_>) -> Self {
        let output = match &mut job.target {
            Target::Fixed { values, front, width, decode } => {
                let slots = Slots { rest: &mut values.bytes_mut()[*front..], at: 0, width: *width };
                Output::Fixed { slots, decode: *decode }
            }
            Target::Bits(values) => Output::Bits(values.bytes_mut()),
            Target::Switch(switch) => Output::Switch(switch),
            Target::Index { .. } | Target::Known(_) | Target::SameAs(_) | Target::Nothing => Output::Nothing,
        };
        Self { field: job.node.field, slices: &job.slices, output }
    }

    /// Adds the tasks that decode some slices; returns how many bytes they take or give, whichever is more: a few values may
    /// need whole pages.
    fn tasks<'c>(&'c mut self, reader: &PageReader<'_>, part: Range<usize>, tasks: &mut Vec<Task<'c>>) -> Result<u64>
    where
        'j: 'c,
    {
        let field = self.field;
        let runs = reader.runs(&self.slices[part]);
        let taken: usize = runs.iter().copied().flatten().map(|slice| slice.take).sum();
        let pages = runs.iter().flat_map(|run| run.chunk_by(|a, b| a.id == b.id));
        let stored: u64 = pages.map(|slices| slices[0].range.bytes()).sum();
        let bytes = |width: usize| stored.max((taken * width) as u64);
        match &mut self.output {
            Output::Fixed { slots, decode } => {
                let (width, decode) = (slots.width, *decode);
                for run in runs {
                    tasks.push(Task::Run { field, run, width, out: slots.of(run)?, decode });
                }
                Ok(bytes(width))
            }
            Output::Bits(bits) => {
                tasks.push(Task::Bits { field, runs, bits });
                Ok(bytes(1))
            }
            Output::Switch(switch) => {
                tasks.push(Task::Switch { field, runs, switch });
                Ok(bytes(12))
            }
            Output::Nothing => Ok(0),
        }
    }

    fn end(self) {
        if let Output::Fixed { slots, .. } = self.output {
            slots.rest.fill(0);
        }
    }
}

impl Task<'_> {
    fn run(self, reader: &PageReader<'_>) -> Result<()> {
        match self {
            Self::Run { field, run, width, out, decode } => reader.fill(field, run, width, out, decode),
            Self::Bits { field, runs, bits } => runs.into_iter().try_for_each(|run| {
                reader.unseal(field, run, |slices, _, _, packed| {
                    slices.iter().try_for_each(|slice| {
                        Ok(encoding::decode_bits(packed, slice.skip, slice.take, bits, slice.to)?)
                    })
                })
            }),
            Self::Switch { field, runs, switch } => runs.into_iter().try_for_each(|run| {
                reader.unseal(field, run, |slices, encoding, elements, packed| {
                    slices.iter().try_for_each(|slice| switch.decode(slice, encoding, elements, packed))
                })
            }),
        }
    }
}

/// The output of a column, cut into the places of runs.
struct Slots<'o> {
    rest: &'o mut [u8],
    /// Elements that were cut off.
    at: usize,
    width: usize,
}

impl<'o> Slots<'o> {
    /// The place of a run, whose elements are consecutive: only the first ones of a cluster may not be stored, and
    /// those are zero.
    fn of(&mut self, run: &[PageSlice]) -> Result<&'o mut [u8]> {
        let (Some(first), taken) = (run.first(), run.iter().map(|slice| slice.take).sum::<usize>()) else {
            return Ok(&mut []);
        };
        let overlap = || Error::corrupt("elements overlap");
        let gap = first.to.checked_sub(self.at).ok_or_else(overlap)?;
        self.rest.split_off_mut(..gap * self.width).ok_or_else(overlap)?.fill(0);
        self.at = first.to + taken;
        self.rest.split_off_mut(..taken * self.width).ok_or_else(overlap)
    }
}
