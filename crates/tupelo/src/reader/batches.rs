//! From a choice of fields and entries to record batches.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, Field as ArrowField, Schema as ArrowSchema, SchemaRef};

use super::Ntuple;
use super::cut::Cut;
use super::sources::Sources;
use crate::decode::{self, How};
use crate::expression::Expression;
use crate::pool::{self, Ahead};
use crate::schema::{Field, Schema};
use crate::source::{Pages, Segment};
use crate::{Error, ErrorKind, Result, plan};

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
    /// Which of the entries to keep.
    cut: Option<Arc<Cut>>,
}

impl Read {
    /// Reads a schema; where that is not a part of what is on disk, from those sources.
    pub(super) fn new(ntuple: Ntuple, schema: Schema, sources: Option<Arc<Sources>>) -> Self {
        let entries = 0..ntuple.entries();
        let (batch_entries, binary_strings) = (DEFAULT_BATCH_ENTRIES, false);
        Self { ntuple, schema, sources, entries, batch_entries, binary_strings, cut: None }
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

    /// Only the entries for which `cut` is true, of those chosen otherwise; null counts as false. It is shown the fields
    /// that the patterns choose, which need not be among those that are read, in batches of any size. Those fields are
    /// read first; of the others, pages that hold no entry to keep are neither read nor decoded, unless two such entries
    /// are within 1024 of each other.
    /// ```no_run
    /// use arrow_array::{BooleanArray, cast::AsArray, types::Float32Type};
    ///
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let hard = ntuple.read(["Muon_*"])?.with_cut(["MET_pt"], |batch| {
    ///     let met = batch.column(0).as_primitive::<Float32Type>();
    ///     Ok(BooleanArray::from_unary(met, |met| met > 200.0))
    /// })?;
    /// let batch = hard.to_batch()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that fits no field. Reading then gives the errors of `cut`, and invalid
    /// argument where its answer is not as long as the batch.
    pub fn with_cut<S: AsRef<str>>(
        mut self,
        patterns: impl AsRef<[S]>,
        cut: impl Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'static,
    ) -> Result<Self> {
        let fields = self.ntuple.read(patterns)?.with_binary_strings(self.binary_strings);
        self.cut = Some(Arc::new(Cut::new(fields, cut)));
        Ok(self)
    }

    /// Only the entries for which an expression is true: as [`Read::with_cut`], with the fields that it names.
    /// ```no_run
    /// let ntuple = tupelo::open("events.root:Events").open()?;
    /// let dimuons = ntuple.read(["Muon_*"])?.with_where(&"nMuon == 2 and sum(Muon_charge) == 0".parse()?)?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not found, with near names, for a field that is not there. Reading then gives the errors of
    /// [`Expression::mask`].
    pub fn with_where(self, expression: &Expression) -> Result<Self> {
        let fields: Vec<String> = expression.fields().map(globset::escape).collect();
        let expression = expression.clone();
        self.with_cut(fields, move |batch| expression.mask(batch))
    }

    /// Single entries, in the order given, which may repeat them; the range of [`Read::entries`] and a cut do not count.
    /// Only the pages that hold them are read, in one request of many ranges where the source is far.
    ///
    /// # Errors
    /// Invalid argument for an entry behind the last one, and those of [`Read::to_batch`].
    pub fn take(&self, entries: &[u64]) -> Result<RecordBatch> {
        let take = || {
            let count = self.ntuple.entries();
            if let Some(beyond) = entries.iter().find(|&&entry| entry >= count) {
                return Err(Error::invalid_argument(format!("entry {beyond} of an ntuple with {count} entries")));
            }
            let mut sorted = entries.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let source = self.ntuple.source();
            let range = sorted.first().copied().unwrap_or(0)..sorted.last().map_or(0, |last| last + 1);
            let segments = plan::single_entries(&source.clusters(range)?, &sorted);
            let batch = self.decode_segments(&segments, false)?;
            if sorted == entries {
                return Ok(batch);
            }
            let place = |entry: &u64| sorted.partition_point(|other| other < entry) as u64;
            let places: UInt64Array = entries.iter().map(place).collect::<Vec<_>>().into();
            Ok(arrow_select::take::take_record_batch(&batch, &places)?)
        };
        take().map_err(|e| self.ntuple.context(e))
    }

    /// Number of chosen entries, before a cut.
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
        let first = self.entries.start;
        let read = Arc::new(self);
        Ok(Batches { position: first, decoded: first, read, schema, chunk: None, ahead: None, chunk_entries })
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
        let segments = plan::segments(&self.ntuple.source().clusters(entries.clone())?, entries);
        match &self.cut {
            None => self.decode_segments(&segments, strict),
            Some(cut) => cut.decode(self, &segments, strict),
        }
    }

    /// Entries from `start` on: several batches at once where they are small, and no more than the memory budget allows
    /// unless one batch alone is more.
    fn chunk(&self, start: u64, entries: u64) -> Result<Chunk> {
        let end = |entries: u64| start.saturating_add(entries).min(self.entries.end);
        match self.decode_columns(&(start..end(entries)), true) {
            // A cluster may be much larger than those by which the number of entries was chosen.
            Err(error) if error.kind() == ErrorKind::Limit => {
                let end = end(self.batch_entries);
                Ok(Chunk { batch: self.decode(start..end)?, end })
            }
            batch => Ok(Chunk { batch: batch.map_err(|e| self.ntuple.context(e))?, end: end(entries) }),
        }
    }

    /// Whether reading calls no function of the user's, who may not expect to be called by another thread.
    fn calls_nobody(&self) -> bool {
        self.cut.is_none() && self.sources.is_none()
    }

    /// All entries of the segments, which the cut does not concern.
    pub(super) fn decode_segments(&self, segments: &[Segment], strict: bool) -> Result<RecordBatch> {
        let mut arrays = self.decode_fields(self.disk_fields(), segments, strict)?;
        if let Some(sources) = &self.sources {
            for (index, array) in arrays.iter_mut().enumerate() {
                let stored = Arc::clone(array);
                *array = sources.evolve(&self.ntuple, index, stored, self.binary_strings, segments)?;
            }
        }
        self.batch(arrays, segments.iter().map(|segment| segment.count as usize).sum())
    }

    /// Fields as they are on disk.
    pub(super) fn decode_fields(&self, fields: &[Field], segments: &[Segment], strict: bool) -> Result<Vec<ArrayRef>> {
        let source = self.ntuple.source();
        let request = || if strict { source.request().strict() } else { source.request() };
        let how = How { compressed: self.ntuple.is_compressed(), binary_strings: self.binary_strings };
        source.counters().elapsed(|| decode::fields(source, request, fields, segments, how))
    }

    /// A batch of arrays of all fields that were chosen.
    pub(super) fn batch(&self, arrays: Vec<ArrayRef>, entries: usize) -> Result<RecordBatch> {
        let promised = self.ntuple.to_arrow(&self.schema);
        let of_array = |(field, array): (&std::sync::Arc<ArrowField>, &ArrayRef)| {
            field.as_ref().clone().with_data_type(array.data_type().clone())
        };
        let fields: Vec<_> = promised.fields().iter().zip(&arrays).map(of_array).collect();
        let schema = ArrowSchema::new(fields).with_metadata(promised.metadata().clone());
        let options = RecordBatchOptions::new().with_row_count(Some(entries));
        Ok(RecordBatch::try_new_with_options(schema.into(), arrays, &options)?)
    }

    /// Whether fields of both come as they are on disk, in the same form.
    pub(super) fn reads_as(&self, other: &Self) -> bool {
        self.sources.is_none() && other.sources.is_none() && self.binary_strings == other.binary_strings
    }
}

/// Batches of one reading request, in entry order.
#[derive(Debug)]
pub struct Batches {
    read: Arc<Read>,
    schema: SchemaRef,
    position: u64,
    /// Entries before this one are decoded.
    decoded: u64,
    chunk_entries: u64,
    /// What is decoded but not handed out yet.
    chunk: Option<RecordBatch>,
    /// What another thread decodes meanwhile: what comes next.
    ahead: Option<Ahead<Result<Chunk>>>,
}

/// Entries that were decoded at once.
#[derive(Debug)]
struct Chunk {
    batch: RecordBatch,
    /// The entry behind them, which a cut may have left out like others of them.
    end: u64,
}

impl Batches {
    /// First entry of the next batch, or one before it where a cut leaves out entries.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next entries; another thread then begins with those behind them.
    fn next_chunk(&mut self) -> Result<Chunk> {
        let (start, one) = (self.decoded, self.read.batch_entries);
        let ahead = self.ahead.take().and_then(Ahead::wait);
        let chunk = ahead.unwrap_or_else(|| self.read.chunk(start, self.chunk_entries))?;
        // The next entries will be as large as these.
        let bytes = chunk.batch.get_array_memory_size().max(1) as u64;
        let entries = (u128::from(CHUNK_BYTES) * u128::from(chunk.end - start) / u128::from(bytes)) as u64;
        match &self.read.cut {
            None => self.chunk_entries = one.saturating_mul((entries / one).max(1)),
            Some(_) => self.chunk_entries = self.chunk_entries.min((chunk.end - start).max(one)),
        }
        if bytes <= 2 * CHUNK_BYTES && chunk.end < self.read.entries.end && self.read.calls_nobody() {
            let (read, start, entries) = (Arc::clone(&self.read), chunk.end, self.chunk_entries);
            self.ahead = pool::ahead(move || read.chunk(start, entries));
        }
        Ok(chunk)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let rest = loop {
            if let Some(chunk) = self.chunk.take() {
                break chunk;
            }
            self.position = self.decoded;
            if self.decoded >= self.read.entries.end {
                return Ok(None);
            }
            let Chunk { batch, end } = self.next_chunk()?;
            if batch.schema() != self.schema {
                return Err(self.read.ntuple.context(Error::unsupported(format!(
                    "strings of the entries {}..{end} are not UTF-8; read them with binary strings",
                    self.decoded
                ))));
            }
            self.decoded = end;
            // A cut may leave nothing.
            self.chunk = Some(batch).filter(|batch| batch.num_rows() > 0);
        };
        let count = (self.read.batch_entries as usize).min(rest.num_rows());
        let batch = rest.slice(0, count);
        if count < rest.num_rows() {
            self.chunk = Some(rest.slice(count, rest.num_rows() - count));
        }
        match (&self.chunk, &self.read.cut) {
            (None, _) => self.position = self.decoded,
            (Some(_), None) => self.position += count as u64,
            (Some(_), Some(_)) => {}
        }
        Ok(Some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            // An error ends the stream: what follows it has no known place.
            (self.position, self.decoded) = (self.read.entries.end, self.read.entries.end);
            (self.chunk, self.ahead) = (None, None);
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
