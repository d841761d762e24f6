//! From a choice of fields and entries to record batches.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Field as ArrowField, Schema as ArrowSchema, SchemaRef};

use super::Ntuple;
use super::sources::Sources;
use crate::decode::{self, How};
use crate::plan;
use crate::schema::{Field, Schema};
use crate::source::Pages;
use crate::{Error, ErrorKind, Result};

/// Entries in a batch unless told otherwise.
pub const DEFAULT_BATCH_ENTRIES: u64 = 65_536;
/// Batches are cut from larger pieces that are decoded at once, of about this many bytes in memory.
const CHUNK_BYTES: u64 = 32 << 20;
/// Clusters that are looked at to guess how many bytes an entry has.
const SAMPLED_CLUSTERS: usize = 16;

/// Which fields and entries to read, and how.
#[derive(Debug, Clone)]
pub struct Read {
    ntuple: Ntuple,
    schema: Schema,
    /// What is read instead of the schema's fields, and what is made of it.
    sources: Option<Arc<Sources>>,
    entries: Range<u64>,
    batch_entries: u64,
    binary_strings: bool,
}

impl Read {
    /// Reads a schema; where that is not a part of what is on disk, from those sources.
    pub(super) fn new(ntuple: Ntuple, schema: Schema, sources: Option<Arc<Sources>>) -> Self {
        let entries = 0..ntuple.entries();
        Self { ntuple, schema, sources, entries, batch_entries: DEFAULT_BATCH_ENTRIES, binary_strings: false }
    }

    /// Reads the data as another schema than the one on disk: ROOT's schema evolution, whose rules stand
    /// [here](crate::schema#reading-as-another-schema). It takes the place of what was chosen. Its top-level fields are found
    /// by name, and so are the members of records; what it leaves out is not read, and members that are not on disk
    /// are zero, empty or null. Names, order, types, nullability and metadata of what is read are those of the schema.
    ///
    /// Values that do not fit their new type are errors when they are read, of the kind
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument), with field and entry.
    /// ```no_run
    /// use arrow_schema::{DataType, Field, Schema};
    ///
    /// let wanted = Schema::new(vec![Field::new("pt", DataType::Float64, false)]);
    /// let wanted = tupelo::schema::Schema::from_arrow(&wanted)?;
    /// let batch = tupelo::open("events.root:Events").open()?.read_all().with_schema(&wanted)?.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a top-level field that is not there; invalid argument, with field, types and
    /// rule, for one that cannot be read as what is wanted.
    pub fn with_schema(mut self, wanted: &Schema) -> Result<Self> {
        let sources = Sources::of(self.ntuple.disk_schema(), &self.ntuple.evolution(), wanted);
        self.sources = Some(Arc::new(sources.map_err(|e| self.ntuple.context(e))?));
        self.schema = wanted.clone();
        Ok(self)
    }

    /// What is read from disk.
    fn disk_fields(&self) -> &[Field] {
        self.sources.as_ref().map_or(&self.schema.fields, |sources| &sources.fields)
    }

    /// The chosen fields.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The Arrow schema of the chosen fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        let schema = self.ntuple.to_arrow(&self.schema);
        if !self.binary_strings {
            return schema.into();
        }
        // The types then come from the decoder: nested strings change all types above them.
        match self.decode(0..0) {
            Ok(batch) => batch.schema(),
            Err(_) => schema.into(),
        }
    }

    /// Only these entries; a range that reaches behind the last entry ends there.
    #[must_use]
    pub fn entries(mut self, range: impl RangeBounds<u64>) -> Self {
        let last = self.ntuple.entries();
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => last,
        };
        let end = end.min(last);
        self.entries = start.min(end)..end;
        self
    }

    /// Strings as `LargeBinary` instead of `LargeUtf8`, for data that are not UTF-8. Without this a column whose
    /// strings are not UTF-8 comes as `LargeBinary` from [`Read::to_batch`] and is an error in a stream of batches,
    /// whose schema is promised beforehand.
    #[must_use]
    pub fn with_binary_strings(mut self, binary: bool) -> Self {
        self.binary_strings = binary;
        self
    }

    /// Number of chosen entries.
    pub fn count(&self) -> u64 {
        self.entries.end - self.entries.start
    }

    /// Everything chosen, in one batch.
    ///
    /// # Errors
    /// Corrupt, with field, column, cluster, page and offset, where data are damaged; storage errors.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        self.decode(self.entries.clone())
    }

    /// Batches of `count` entries, the last one perhaps smaller.
    ///
    /// # Errors
    /// Invalid argument for 0.
    pub fn batches(mut self, count: u64) -> Result<Batches> {
        if count == 0 {
            return Err(Error::invalid_argument("a batch must have at least one entry"));
        }
        self.batch_entries = count;
        let bytes = self.bytes_per_entry()?;
        let at_once = (CHUNK_BYTES as f64 / bytes.max(1.0)) as u64;
        let chunk_entries = count.saturating_mul((at_once / count).max(1));
        let schema = self.arrow_schema();
        Ok(Batches { position: self.entries.start, read: self, schema, chunk: None, chunk_entries })
    }

    /// Batches of about `bytes` bytes in memory.
    ///
    /// # Errors
    /// Corrupt where the page lists are damaged.
    pub fn batches_of_bytes(self, bytes: u64) -> Result<Batches> {
        let entries = (bytes as f64 / self.bytes_per_entry()?.max(1e-9)) as u64;
        self.batches(entries.max(1))
    }

    /// What an entry takes in memory on average, in bytes, judged by the first clusters.
    ///
    /// # Errors
    /// Corrupt where the page lists are damaged.
    pub fn bytes_per_entry(&self) -> Result<f64> {
        let source = self.ntuple.source();
        let estimate = || {
            let clusters = source.clusters(self.entries.clone())?;
            let request = source.request();
            let mut pages = Pages::new(source, &request);
            let (mut bytes, mut entries) = (0.0, 0u64);
            for cluster in clusters.iter().take(SAMPLED_CLUSTERS) {
                entries += cluster.entries;
                for (field, k) in self.disk_fields().iter().flat_map(plan::columns) {
                    bytes += pages.unpacked_bytes(field, k, cluster)?;
                }
            }
            Ok(bytes / entries.max(1) as f64)
        };
        estimate().map_err(|e| self.ntuple.context(e))
    }

    fn decode(&self, entries: Range<u64>) -> Result<RecordBatch> {
        self.decode_columns(&entries, false).map_err(|e| self.ntuple.context(e))
    }

    /// `strict` keeps the values within the memory budget too.
    fn decode_columns(&self, entries: &Range<u64>, strict: bool) -> Result<RecordBatch> {
        let source = self.ntuple.source();
        let segments = plan::segments(&source.clusters(entries.clone())?, entries);
        let request = || if strict { source.request().strict() } else { source.request() };
        let how = How { compressed: self.ntuple.is_compressed(), binary_strings: self.binary_strings };
        let mut arrays = decode::fields(source, request, self.disk_fields(), &segments, how)?;
        if let Some(sources) = &self.sources {
            for (index, array) in arrays.iter_mut().enumerate() {
                let stored = Arc::clone(array);
                *array = sources.evolve(&self.ntuple, index, stored, self.binary_strings, entries.start)?;
            }
        }
        let promised = self.ntuple.to_arrow(&self.schema);
        let of_array = |(field, array): (&std::sync::Arc<ArrowField>, &ArrayRef)| {
            field.as_ref().clone().with_data_type(array.data_type().clone())
        };
        let fields: Vec<_> = promised.fields().iter().zip(&arrays).map(of_array).collect();
        let schema = ArrowSchema::new(fields).with_metadata(promised.metadata().clone());
        let options = RecordBatchOptions::new().with_row_count(Some((entries.end - entries.start) as usize));
        Ok(RecordBatch::try_new_with_options(schema.into(), arrays, &options)?)
    }
}

/// Batches of one reading request, in entry order.
#[derive(Debug)]
pub struct Batches {
    read: Read,
    schema: SchemaRef,
    position: u64,
    chunk_entries: u64,
    /// What is decoded but not handed out yet.
    chunk: Option<RecordBatch>,
}

impl Batches {
    /// First entry of the next batch.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Decodes the next entries: several batches at once where they are small, and no more than the memory budget allows
    /// unless one batch alone is more.
    fn next_chunk(&mut self) -> Result<(RecordBatch, u64)> {
        let end = |entries: u64| self.position.saturating_add(entries).min(self.read.entries.end);
        let one = self.read.batch_entries;
        let several = end(self.chunk_entries);
        let chunk = match self.read.decode_columns(&(self.position..several), true) {
            // A cluster may be much larger than those by which the number of entries was chosen.
            Err(error) if error.kind() == ErrorKind::Limit => {
                self.chunk_entries = one;
                (self.read.decode(self.position..end(one))?, end(one))
            }
            chunk => (chunk.map_err(|e| self.read.ntuple.context(e))?, several),
        };
        // The next entries will be as large as these.
        let bytes = chunk.0.get_array_memory_size().max(1) as u64;
        let entries = (u128::from(CHUNK_BYTES) * u128::from(chunk.1 - self.position) / u128::from(bytes)) as u64;
        self.chunk_entries = one.saturating_mul((entries / one).max(1));
        Ok(chunk)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let rest = match self.chunk.take() {
            Some(chunk) => chunk,
            None if self.position >= self.read.entries.end => return Ok(None),
            None => {
                let (chunk, end) = self.next_chunk()?;
                if chunk.schema() != self.schema {
                    return Err(self.read.ntuple.context(Error::unsupported(format!(
                        "strings of the entries {}..{end} are not UTF-8; read them with binary strings",
                        self.position
                    ))));
                }
                chunk
            }
        };
        let count = (self.read.batch_entries as usize).min(rest.num_rows());
        let batch = rest.slice(0, count);
        if count < rest.num_rows() {
            self.chunk = Some(rest.slice(count, rest.num_rows() - count));
        }
        self.position += count as u64;
        Ok(Some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            // An error ends the stream: what follows it has no known place.
            self.position = self.read.entries.end;
        }
        next.transpose()
    }
}

/// The same batches for readers that speak Arrow's error type.
#[derive(Debug)]
pub struct ArrowBatches(Batches);

impl Batches {
    /// An Arrow `RecordBatchReader` over the same batches.
    pub fn into_arrow(self) -> ArrowBatches {
        ArrowBatches(self)
    }
}

impl Iterator for ArrowBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ArrowBatches {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}
