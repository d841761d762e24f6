//! Measurements: a part of the ntuple or tree is encoded as an ntuple, and decoded, in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use tupelo_format::compression::Compression;
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_schema::schema::{Field, Schema, escaped};
use tupelo_storage::adapter::process_cpu;
use tupelo_storage::{ByteSource, MemoryFile, MemorySink};

use super::trial::{ColumnBytes, Form, Trial};
use crate::ops::copy::schema;
use crate::ops::cost::{each_page, metadata_bytes, selected};
use crate::ops::import::{Import, ImportOptions};
use crate::reader::{File, Ntuple, Read, Tree};
use crate::writer::{EntrySink, FileWriter, NtupleWriter, WriteOptions, check_name};
use crate::{Error, Result};

/// The sample comes from this many clusters, spread over all.
const PIECES: usize = 4;
/// A measurement is repeated up to this number of times, and its median counts.
const REPETITIONS: usize = 3;
/// A measurement is not repeated after this time.
const LONG: Duration = Duration::from_millis(250);
/// The clusters of a trial end with the sample.
const WHOLE: u64 = 1 << 40;
/// Name of the ntuples in memory.
const NAME: &str = "sample";

/// The entries of the sample, as ranges.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) ranges: Vec<Range<u64>>,
    pub(super) entries: u64,
    /// CPU time of decoding the fields of the request where they are now, in seconds.
    pub(super) read_seconds: f64,
}

impl Pieces {
    /// About `bytes` bytes in memory of what `all` reads, and how long those of the request take to read.
    pub(super) fn new(read: &Read, all: &Read, clusters: &[Range<u64>], bytes: u64) -> Result<Self> {
        let wanted = (bytes as f64 / all.bytes_per_entry()?.max(1.0)) as u64;
        let ranges = pieces(clusters, all.count(), wanted.max(1));
        let entries = ranges.iter().map(|range| range.end - range.start).sum();
        let read_seconds = median(|| {
            // A cut keeps less.
            ranges.iter().try_for_each(|range| decode(read.clone().entries(range.clone())).map(drop))
        })?;
        Ok(Self { ranges, entries, read_seconds })
    }

    /// The entries of a read.
    pub(super) fn batches(&self, read: &Read, bytes: u64) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for range in &self.ranges {
            for batch in read.clone().entries(range.clone()).with_binary_strings(true).batches_of_bytes(bytes)? {
                batches.push(batch?);
            }
        }
        Ok(batches)
    }
}

/// Entries of an ntuple, or those that a tree has as an ntuple, with all fields, in memory.
#[derive(Debug)]
pub(super) struct Sample {
    batches: Vec<RecordBatch>,
    schema: Schema,
    infos: StreamerInfos,
    extra: Vec<ExtraTypeInfo>,
    /// The fields that the request reads, by dotted path.
    paths: Vec<String>,
    entries: u64,
    /// What an ntuple of a tree does not have.
    pub(super) left_out: Vec<String>,
}

impl Sample {
    /// The entries of all fields of an ntuple.
    pub(super) fn of_ntuple(read: &Read, ntuple: &Ntuple, pieces: &Pieces) -> Result<Self> {
        let all = ntuple.read_all().with_projected_sources();
        let batches = pieces.batches(&all, NtupleWriter::BATCH_BYTES)?;
        let schema = schema(&all.with_binary_strings(true))?;
        // Other writers do not check names.
        let check = |(_, field): &(_, &Field)| check_name(&field.name);
        let refused = |e| Error::unsupported(format!("a sample cannot be written: {e}"));
        schema.paths().iter().try_for_each(check).map_err(refused)?;
        Ok(Self {
            batches,
            schema,
            infos: ntuple.streamer_infos()?,
            extra: ntuple.descriptor().extra_type_info().to_vec(),
            paths: paths(read),
            entries: pieces.entries,
            left_out: Vec::new(),
        })
    }

    /// The same of a tree, as its import would write it.
    pub(super) fn of_tree(read: &Read, tree: &Tree, pieces: &Pieces) -> Result<Self> {
        let plan = Import::new(tree.read_all(), &ImportOptions::default())?;
        plan.check()?;
        let chosen: HashSet<String> = read.schema().fields.iter().map(|field| field.name.clone()).collect();
        let chosen = plan.names().filter(|(branch, _)| chosen.contains(*branch)).map(|(_, field)| escaped(field));
        let (stored, batches) = (plan.stored(), pieces.batches(plan.read(), NtupleWriter::BATCH_BYTES)?);
        let refused = tree.refused().map(|(branch, reason)| format!("branch '{branch}': {reason}"));
        let skipped = plan.skipped().iter().map(|it| format!("branch '{}': {}", it.name, it.reason));
        Ok(Self {
            batches: batches.iter().map(|batch| plan.convert(batch, &stored)).collect::<Result<_>>()?,
            schema: plan.schema().clone(),
            infos: StreamerInfos::default(),
            extra: Vec::new(),
            paths: chosen.collect(),
            entries: pieces.entries,
            left_out: refused.chain(skipped).chain(plan.not_kept().iter().cloned()).collect(),
        })
    }

    /// Measures one codec and page size.
    pub(super) fn trial(&self, compression: Compression, page_bytes: u64) -> Result<Trial> {
        let options = WriteOptions::default()
            .with_compression(compression)
            .with_page_bytes(page_bytes)
            .with_cluster_bytes(WHOLE)
            .with_checkpoint_bytes(0)
            .with_checkpoint_time(Duration::ZERO)
            .with_extra_type_info(self.extra.clone());
        let file = MemoryFile::new();
        let write_seconds = median(|| self.encode(&file, options.clone()))?;
        let ntuple = File::new(Arc::new(file.source()?), true)?.ntuple(Some(NAME))?;
        let read = match self.paths.is_empty() {
            true => ntuple.read_all().without_fields(),
            false => ntuple.read(&self.paths)?,
        };
        let read = read.with_binary_strings(true);
        let read_seconds = reading(&read, self.entries)?;
        let source = ntuple.source();
        let mut columns: BTreeMap<u32, ColumnBytes> = BTreeMap::new();
        for cluster in source.clusters(0..self.entries)? {
            each_page(source, &cluster, |column, page, stored| {
                let encoding = source.descriptor().column(ColumnId::from(column)).ok().and_then(|it| it.encoding);
                let unpacked = encoding.and_then(|encoding| encoding.packed_bytes(page.elements.into()));
                let new = || ColumnBytes { column, ..ColumnBytes::default() };
                columns.entry(column).or_insert_with(new).add(unpacked.unwrap_or(stored), stored);
            })?;
        }
        let (envelope_bytes, list_bytes) = metadata_bytes(source);
        let [pages, stored] =
            columns.values().fold([0, 0], |[pages, stored], it| [pages + it.pages, stored + it.stored]);
        Ok(Trial {
            form: Form::Ntuple,
            compression,
            page_bytes,
            entries: self.entries,
            columns: columns.into_values().collect(),
            selected: selected(&read, source)?,
            envelope_bytes,
            list_bytes_per_page: list_bytes as f64 / pages.max(1) as f64,
            file_bytes: file.source()?.size()?.saturating_sub(stored + envelope_bytes + list_bytes),
            write_seconds,
            read_seconds,
        })
    }

    fn encode(&self, file: &MemoryFile, options: WriteOptions) -> Result<()> {
        let writer = FileWriter::create_in(Box::new(MemorySink::create(file)), NAME)?;
        writer.add_streamer_info(&self.infos)?;
        let mut ntuple = writer.ntuple(NAME, &self.schema, options)?;
        let order = ntuple.schema().order_of(&self.schema)?;
        for batch in &self.batches {
            // What is imported has no columns for projected fields, and the order of the ntuple.
            match batch.num_columns() == order.len() {
                true => ntuple.write(&batch.project(&order)?)?,
                false => ntuple.write(batch)?,
            }
        }
        ntuple.finish()?;
        writer.finish()
    }
}

/// The entries of the sample: at the beginning of clusters that are spread over all.
pub(in crate::ops) fn pieces(clusters: &[Range<u64>], entries: u64, wanted: u64) -> Vec<Range<u64>> {
    if wanted >= entries {
        return std::iter::once(0..entries).collect();
    }
    let count = PIECES.min(clusters.len()).max(1);
    let starts = (0..count).filter_map(|piece| clusters.get(piece * clusters.len() / count));
    let starts: Vec<u64> = starts.map(|cluster| cluster.start).collect();
    let ends = starts.iter().skip(1).copied().chain([entries]);
    let each = wanted.div_ceil(count as u64);
    starts.iter().zip(ends).map(|(&start, end)| start..end.min(start + each)).collect()
}

/// The fields of a request as dotted paths: each is a field that is read as a whole.
pub(super) fn paths(read: &Read) -> Vec<String> {
    let (cut, others) = read.fields_in_order();
    let chosen = Schema { fields: cut.into_iter().chain(others).collect() };
    let all: HashMap<String, &Field> = read.source().schema().schema().paths().into_iter().collect();
    let mut paths: Vec<String> = Vec::new();
    for (path, field) in chosen.paths() {
        let above = |known: &String| path.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let is_whole = all.get(&path).is_some_and(|whole| *whole == field);
        if is_whole && !paths.last().is_some_and(above) {
            paths.push(path);
        }
    }
    paths
}

/// How long reading a sample takes, in seconds.
pub(super) fn reading(read: &Read, expected: u64) -> Result<f64> {
    median(|| match decode(read.clone())? {
        entries if entries == expected => Ok(()),
        entries => {
            let what = format!("expected a sample of {expected} entries, read {entries}");
            Err(Error::invalid_argument(what))
        }
    })
}

/// Decodes all entries of a request and returns their number.
fn decode(read: Read) -> Result<u64> {
    let mut entries = 0;
    for batch in read.batches_of_bytes(NtupleWriter::BATCH_BYTES)? {
        entries += batch?.num_rows() as u64;
    }
    Ok(entries)
}

/// The median CPU time of some work, in seconds: the time of all threads of the process, which does not depend on their
/// number, and little on other programs.
pub(super) fn median(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(REPETITIONS);
    while times.len() < REPETITIONS && (times.is_empty() || began.elapsed() < LONG) {
        let (wall, cpu) = (Instant::now(), process_cpu());
        work()?;
        let wall = wall.elapsed();
        let time = process_cpu().zip(cpu).map_or(wall, |(now, before)| now.saturating_sub(before));
        times.push(time.as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
