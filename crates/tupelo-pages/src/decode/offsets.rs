//! Index columns to Arrow offsets.

use std::collections::HashMap;

use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use tupelo_core::pool;
use tupelo_format::encoding::{self, Encoding};
use tupelo_schema::schema::Field;

use super::fetch::Fetcher;
use super::level::{Job, Target};
use super::node::{Node, Offsets};
use super::pages::PageReader;
use super::values::ValueBuffer;
use super::{Decoder, total};
use crate::plan::{ColumnTable, Segment};
use crate::{Error, Result};

/// Memory of a list of segments for each of them and each field, in bytes: as they are, and with the offset before.
const SEGMENT_MEMORY: u64 = 2 * size_of::<Segment>() as u64;
/// Reading the checksum of a page takes about as long as decoding this many bytes.
const CHECKSUM_COST_BYTES: u64 = 4 << 10;
/// Arrow's offsets are signed, and two of them must be addable.
const MAX_ITEMS: u64 = 1 << 62;

/// Offsets that are decoded, for fields that turn out to have the same. Members that are written as collections of their
/// own, as `Muon_pt` and `Muon_eta`, store the same offsets again and again: pages of the same checksum and size are
/// neither read nor decoded twice, and arrays that have the same offsets share them.
#[derive(Default)]
pub(super) struct OffsetCache {
    offsets: HashMap<Vec<u64>, Offsets>,
    /// Fingerprints of what the level decodes, with the number of the job.
    pending: HashMap<Vec<u64>, usize>,
}

/// Offsets that are needed before a segment's first one.
fn before(segment: &Segment) -> u64 {
    u64::from(segment.start > 0)
}

impl<'m> Decoder<'m> {
    /// Prepares the index columns among the jobs of a level: of those that have the same offsets one is decoded. What is
    /// stored comes after the first place, and moves to the front where offsets before are dropped.
    pub(super) fn begin_offsets(&mut self, fetcher: &Fetcher<'m>, jobs: &mut [Job<'_, '_>]) -> Result<()> {
        let is_index = |job: &Job<'_, '_>| matches!(job.target, Target::Index { .. });
        let tasks: Vec<_> = jobs.iter().enumerate().filter(|(_, job)| is_index(job)).collect();
        let pages: usize = tasks.iter().map(|(_, job)| job.slices.len()).sum();
        let decoder = &*self;
        let fingerprints = pool::map(tasks, CHECKSUM_COST_BYTES * pages as u64, |(index, job)| {
            let fingerprint = decoder.fingerprint(fetcher, job);
            Ok((index, fingerprint.map_err(|e| decoder.table.named(job.node.field, e))?))
        })?;
        for (index, fingerprint) in fingerprints {
            let job = &mut jobs[index];
            let Target::Index { stored } = job.target else { continue };
            self.memory.reserve(SEGMENT_MEMORY * job.node.segments.len() as u64, "parts of clusters")?;
            let known = fingerprint.as_ref().and_then(|fingerprint| {
                let same_as = || self.offsets.pending.get(fingerprint).map(|&job| Target::SameAs(job));
                self.offsets.offsets.get(fingerprint).cloned().map(Target::Known).or_else(same_as)
            });
            if let Some(target) = known {
                (job.target, job.slices) = (target, Vec::new());
                continue;
            }
            if let Some(fingerprint) = fingerprint {
                self.memory.reserve(size_of_val(&fingerprint[..]) as u64, "fingerprints of offsets")?;
                self.offsets.pending.insert(fingerprint, index);
            }
            let width = size_of::<u64>();
            let values = self.values(job.node.field, stored + 1, width)?;
            job.target = Target::Fixed { values, front: width, width, decode: index_values };
        }
        Ok(())
    }

    /// A job for an index column. The offset before a segment's first one is where its first item begins.
    pub(super) fn index<'t, 'f>(&mut self, node: &'t mut Node<'f>) -> Result<Job<'t, 'f>> {
        let widen = |segment: &Segment| Segment {
            start: segment.start - before(segment),
            count: segment.count + before(segment),
            ..*segment
        };
        let widened: Vec<Segment> = node.segments.iter().map(widen).collect();
        let slices = self.slices(node.field, 0, &widened)?;
        let target = Target::Index { stored: total(node.field, &widened)? };
        Ok(Job { node, slices, target })
    }

    /// The fingerprint of the offsets of an index column.
    fn fingerprint(&self, fetcher: &Fetcher<'m>, job: &Job<'_, '_>) -> Result<Option<Vec<u64>>> {
        // Where columns below may be deferred, more of the column is read than the segments.
        if self.nested_deferred {
            return Ok(None);
        }
        let Self { metadata, memory, table, .. } = self;
        let fingerprint = PageReader { metadata, memory, table, fetcher }.fingerprint(&job.slices)?;
        Ok(fingerprint.map(|mut numbers| {
            for segment in &*job.node.segments {
                let total = segment.total.unwrap_or(u64::MAX);
                numbers.extend([segment.cluster.number, segment.start, segment.count, total]);
            }
            numbers
        }))
    }

    /// Converts the decoded index columns to offsets; returns each job with its offsets, if any.
    pub(super) fn end_offsets<'t, 'f>(
        &mut self,
        fetcher: &mut Fetcher<'m>,
        jobs: Vec<Job<'t, 'f>>,
    ) -> Result<Vec<(Job<'t, 'f>, Option<Offsets>)>> {
        let mut items = Vec::with_capacity(jobs.len());
        for job in &jobs {
            // Where columns below may be deferred, the number of all items of a cluster must be known.
            let is_index = matches!(job.target, Target::Fixed { front: 1.., .. });
            items.push(match self.nested_deferred && is_index {
                true => self.items_in_clusters(fetcher, job.node.field, &job.node.segments)?,
                false => Vec::new(),
            });
        }
        let bytes = jobs.iter().map(|job| (job.node.count * size_of::<u64>()) as u64).sum();
        let table = &self.table;
        let tasks: Vec<_> = jobs.into_iter().zip(items).collect();
        let mut done = pool::map(tasks, bytes, |(job, items)| {
            let Job { node, slices, target } = job;
            let (target, offsets) = match target {
                Target::Fixed { values, front: 1.., .. } => {
                    (Target::Nothing, Some(offsets(table, node.field, &node.segments, values, &items)?))
                }
                Target::Known(offsets) => (Target::Nothing, Some(offsets)),
                target => (target, None),
            };
            Ok((Job { node, slices, target }, offsets))
        })?;
        for index in 0..done.len() {
            if let Target::SameAs(other) = done[index].0.target {
                done[index].1 = done[other].1.clone();
            }
        }
        for (fingerprint, job) in self.offsets.pending.drain() {
            if let Some(offsets) = &done[job].1 {
                self.offsets.offsets.insert(fingerprint, offsets.clone());
            }
        }
        Ok(done)
    }

    /// For each segment that ends before its cluster the number of items in the cluster.
    fn items_in_clusters(
        &mut self,
        fetcher: &mut Fetcher<'m>,
        field: &Field,
        segments: &[Segment],
    ) -> Result<Vec<Option<u64>>> {
        let last = |segment: &Segment| {
            let total = segment.total.filter(|&total| segment.start + segment.count < total)?;
            Some(Segment { start: total - 1, count: 1, ..*segment })
        };
        let ends: Vec<Segment> = segments.iter().filter_map(last).collect();
        let node = &mut Node::new(field, [].into());
        let mut jobs = [self.fixed(node, 0, &ends, size_of::<u64>(), index_values)?];
        self.decode_level(fetcher, &mut jobs)?;
        let [Job { target: Target::Fixed { mut values, .. }, .. }] = jobs else { return Ok(Vec::new()) };
        let mut items = values.numbers_mut::<u64>().iter().copied();
        Ok(segments.iter().map(|segment| last(segment).and_then(|_| items.next())).collect())
    }
}

/// Offsets of stored ends. Those count from the start of the cluster, Arrow's from that of the output. `items` has the
/// items in the clusters of segments that end before these, where that is known.
fn offsets(
    table: &ColumnTable<'_>,
    field: &Field,
    segments: &[Segment],
    mut ends: ValueBuffer,
    items_in_clusters: &[Option<u64>],
) -> Result<Offsets> {
    let corrupt = |what: &str| table.named(field, Error::corrupt(what));
    let numbers = ends.numbers_mut::<u64>();
    numbers[0] = 0;
    let mut items: Vec<Segment> = Vec::with_capacity(segments.len());
    let (mut base, mut from, mut to) = (0u64, 1, 1);
    for (index, segment) in segments.iter().enumerate() {
        let first = if segment.start > 0 { numbers[from] } else { 0 };
        from += before(segment) as usize;
        let count = segment.count as usize;
        let own = &numbers[from..from + count];
        let last = own.last().copied().unwrap_or(first);
        let end = last.checked_sub(first).and_then(|items| items.checked_add(base)).filter(|end| *end < MAX_ITEMS);
        let Some(end) = end else {
            return Err(match fall(own, first) {
                Some(fall) => goes_back(table, field, segment, fall),
                None => corrupt("index column counts more than 2^62 items"),
            });
        };
        // Usually the numbers are in place, and those of the first cluster are correct.
        if from != to {
            numbers.copy_within(from..from + count, to);
        }
        if first != base {
            numbers[to..to + count].iter_mut().for_each(|end| *end = end.wrapping_sub(first).wrapping_add(base));
        }
        let is_to_the_end = segment.total == Some(segment.start + segment.count);
        let total = if is_to_the_end { Some(last) } else { items_in_clusters.get(index).copied().flatten() };
        items.push(Segment { start: first, count: last - first, total, per_entry: None, ..*segment });
        (base, from, to) = (end, from + count, to + count);
    }
    ends.truncate(to * size_of::<u64>());
    match rising(ScalarBuffer::from(Buffer::from(ends))) {
        Ok(buffer) => Ok(Offsets { buffer, items }),
        Err(numbers) => Err(where_it_falls(table, field, segments, &items, &numbers[1..])),
    }
}

#[cold]
fn where_it_falls(
    table: &ColumnTable<'_>,
    field: &Field,
    segments: &[Segment],
    items: &[Segment],
    mut ends: &[i64],
) -> Error {
    let mut base = 0;
    for (segment, items) in segments.iter().zip(items) {
        let (own, others) = ends.split_at(segment.count as usize);
        let as_stored = |end: &i64| end.cast_unsigned().wrapping_sub(base).wrapping_add(items.start);
        let stored: Vec<u64> = own.iter().map(as_stored).collect();
        if let Some(fall) = fall(&stored, items.start) {
            return goes_back(table, field, segment, fall);
        }
        (base, ends) = (base + items.count, others);
    }
    table.named(field, Error::corrupt("index column decreases"))
}

#[cold]
fn goes_back(table: &ColumnTable<'_>, field: &Field, segment: &Segment, (before, end): (u64, u64)) -> Error {
    let cluster = segment.cluster.number;
    let what = format!("index column decreases from {before} to {end} in cluster {cluster}");
    table.named(field, Error::corrupt(what))
}

/// The offsets, if none is smaller than the one before it; they begin with zero.
#[expect(unsafe_code, reason = "Arrow would look at all of them once more: a tenth of reading jagged columns")]
fn rising(offsets: ScalarBuffer<i64>) -> Result<OffsetBuffer<i64>, ScalarBuffer<i64>> {
    // Without a branch the compiler compares several at a time.
    let is_rising = offsets.windows(2).fold(true, |is_rising, pair| is_rising & (pair[0] <= pair[1]));
    if !is_rising || offsets.first() != Some(&0) {
        return Err(offsets);
    }
    // SAFETY: there is at least one offset, none is negative, and they do not decrease, as the function requires.
    Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
}

/// The first of the numbers that is smaller than the one before it, and that one; `first` comes before them all.
fn fall(numbers: &[u64], mut first: u64) -> Option<(u64, u64)> {
    let mut steps = numbers.iter().map(|&end| (std::mem::replace(&mut first, end), end));
    steps.find(|(before, end)| end < before)
}

fn index_values(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> tupelo_format::Result<()> {
    encoding::decode_index(encoding, packed, bytemuck::cast_slice_mut(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_offsets_that_rise_from_zero_pass() {
        for good in [vec![0], vec![0, 0], vec![0, 3, 3, i64::MAX]] {
            assert_eq!(rising(good.clone().into()).unwrap().to_vec(), good);
        }
        for bad in [vec![], vec![1], vec![-1, 2], vec![0, 2, 1], vec![0, i64::MIN], vec![0, 1, 2, 3, 4, 5, 6, 7, 3]] {
            assert!(rising(bad.clone().into()).is_err(), "{bad:?}");
        }
        assert_eq!((fall(&[1, 1, 2], 1), fall(&[1, 0], 0), fall(&[1], 2)), (None, Some((1, 0)), Some((2, 1))));
    }
}
