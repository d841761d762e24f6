//! Entries as a stream of batches, decoded ahead.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use tupelo_core::error::Remedy;
use tupelo_core::pool::{self, Spawned};

use super::read::Read;
use super::sources::Cost;
use crate::{Error, ErrorKind, Result};

/// Batches are cut from larger pieces that are decoded at once, of about this many bytes in memory.
const CHUNK_BYTES: u64 = 32 << 20;
/// Pieces are as large as this where pages are so large that smaller ones would decode them again and again.
const MAX_CHUNK_BYTES: u64 = 8 * CHUNK_BYTES;

/// The first piece has one batch, or more if it takes no more than this many bytes, and not more clusters than costs
/// are judged by: a caller that reads only the first batches does not wait for a whole piece.
const FIRST_CHUNK_BYTES: u64 = 1 << 20;
/// Each later piece has at most this many times the entries of the one before.
const CHUNK_GROWTH: u64 = 8;

/// Batches of one reading request, in entry order.
#[derive(Debug)]
pub struct Batches {
    read: Arc<Read>,
    schema: SchemaRef,
    size: Size,
    position: u64,
    /// The chunk decoded last.
    chunk: Option<Chunk>,
    /// The next chunk, which another thread decodes meanwhile.
    ahead: Option<Spawned<Result<Chunk>>>,
}

/// Entries that were decoded at once.
#[derive(Debug)]
struct Chunk {
    /// The entries that the cut keeps.
    batch: RecordBatch,
    kept: Option<BooleanArray>,
    /// All of them.
    start: u64,
    end: u64,
    /// Whether the memory limited their number.
    is_too_much: bool,
    /// Number of entries of the batch already returned.
    given: usize,
}

impl Read {
    /// Batches of `count` entries, the last one perhaps of fewer. With a cut they hold what it keeps of so many, which
    /// may be nothing.
    ///
    /// # Errors
    /// Invalid argument for 0; limit for very many entries without values to read.
    pub fn batches(self, count: u64) -> Result<Batches> {
        if count == 0 {
            return Err(Error::invalid_argument("a batch must have at least one entry"));
        }
        self.check_stored()?;
        let cost = self.cost()?;
        Ok(Batches::new(self, count, true, cost))
    }

    /// Batches of about `bytes` bytes in memory, with what a cut looks at before it keeps some. They end where pages
    /// end as far as that can be, so that no page is decoded twice.
    ///
    /// # Errors
    /// Corrupt where the page lists are damaged; limit for very many entries without values to read.
    pub fn batches_of_bytes(self, bytes: u64) -> Result<Batches> {
        self.check_stored()?;
        let cost = self.cost()?;
        let entries = (bytes as f64 / cost.bytes_per_entry.max(1.0)) as u64;
        Ok(Batches::new(self, entries.max(1), false, cost))
    }
}

impl Chunk {
    /// Some entries from `start` on, and no more than the memory budget allows unless one batch alone is more.
    fn decode(read: &Read, start: u64, size: Size) -> Result<Self> {
        let end = size.end(read, start);
        read.begin_request();
        let (mut is_too_much, at_once) = (false, read.decode_columns(&(start..end), Some(1)));
        let (end, decoded) = match at_once {
            // A cluster may be much larger than those by which the number of entries was chosen.
            Err(error) if error.kind() == ErrorKind::Limit => {
                is_too_much = true;
                let end = start.saturating_add(size.batch_entries).min(read.range().end);
                (end, read.decode_columns(&(start..end), None))
            }
            decoded => (end, decoded),
        };
        let (batch, kept) = decoded.map_err(|e| read.context(e))?;
        Ok(Self { batch, kept, start, end, is_too_much, given: 0 })
    }

    /// Where the batch ends that begins with an entry: all of a chunk are about equally large.
    fn batch_end(&self, start: u64, size: Size) -> u64 {
        let entries = self.end - self.start;
        let batch = match size.is_exact {
            true => size.batch_entries,
            false => entries.div_ceil((entries.saturating_add(size.batch_entries / 2) / size.batch_entries).max(1)),
        };
        start.saturating_add(batch).min(self.end)
    }

    /// What is kept of the entries from `start` to `end`, which come after those that are handed out.
    fn take(&mut self, start: u64, end: u64) -> RecordBatch {
        let count = (end - start) as usize;
        let count = match &self.kept {
            None => count,
            Some(kept) => kept.values().slice((start - self.start) as usize, count).count_set_bits(),
        };
        let batch = self.batch.slice(self.given, count);
        self.given += count;
        batch
    }
}

/// Sizes of batches and of the chunks from which they are cut.
#[derive(Debug, Clone, Copy)]
struct Size {
    batch_entries: u64,
    /// Whether all batches but the last one have exactly `batch_entries` entries.
    is_exact: bool,
    /// Approximate number of entries of the next chunk.
    chunk_entries: u64,
    /// Maximum of `chunk_entries`, which grows with each chunk.
    most_entries: u64,
    /// Approximate bytes of a chunk, unless one batch is larger.
    chunk_bytes: u64,
}

impl Size {
    /// The end of the chunk that begins at `start`.
    fn end(self, read: &Read, start: u64) -> u64 {
        let (last, half) = (read.range().end, self.chunk_entries / 2);
        let behind = |entries: u64| start.saturating_add(entries);
        let window = behind(half.saturating_add(1))..behind(self.chunk_entries.saturating_add(half).saturating_add(1));
        if last < window.end {
            // The last batch must not be much larger than requested.
            let rest = last.saturating_sub(start);
            let is_too_much = !self.is_exact && self.most_entries == self.batch_entries && rest > self.batch_entries;
            return if is_too_much { start + rest / 2 } else { last };
        }
        let limit = behind(self.chunk_entries.saturating_mul(MAX_CHUNK_BYTES / CHUNK_BYTES)).clamp(window.end, last);
        let place = |end: u64| match self.is_exact {
            true => start + end.saturating_sub(start) / self.batch_entries * self.batch_entries,
            false => end,
        };
        // A damaged page list is reported when its entries are read.
        let end = read.batch_end(&window, limit, &place).ok().flatten();
        end.unwrap_or(behind(self.chunk_entries)).min(last)
    }

    /// Sets the maximum number of entries of a chunk from the size of an entry.
    fn fit(&mut self, bytes_per_entry: f64) {
        let at_once = (self.chunk_bytes as f64 / bytes_per_entry.max(1.0)) as u64;
        let batches = (at_once / self.batch_entries).max(1);
        self.most_entries = self.batch_entries.saturating_mul(batches);
    }

    /// Entries of the first chunk.
    fn first_chunk(&self, cost: Cost) -> u64 {
        let in_bytes = (FIRST_CHUNK_BYTES as f64 / cost.bytes_per_entry.max(1.0)) as u64;
        let entries = cost.entries.min(in_bytes).min(self.most_entries).max(self.batch_entries);
        // Whole batches.
        entries / self.batch_entries * self.batch_entries
    }

    /// Makes the next chunk larger, up to what fits.
    fn grow(&mut self) {
        self.chunk_entries = self.chunk_entries.saturating_mul(CHUNK_GROWTH).min(self.most_entries);
    }
}

impl Batches {
    /// `cost` is that of the read.
    fn new(read: Read, batch_entries: u64, is_exact: bool, cost: Cost) -> Self {
        let mut size = Size {
            batch_entries,
            is_exact,
            chunk_entries: batch_entries,
            most_entries: batch_entries,
            chunk_bytes: CHUNK_BYTES,
        };
        size.fit(cost.bytes_per_entry);
        size.chunk_entries = size.first_chunk(cost);
        let (schema, position) = (read.arrow_schema(), read.range().start);
        Self { read: Arc::new(read.keeping_stream_pages()), schema, size, position, chunk: None, ahead: None }
    }

    /// Decodes one batch at a time instead of several together. The next batch is available sooner, but small batches take
    /// longer in total.
    #[must_use]
    pub fn decoded_one_by_one(mut self) -> Self {
        let entries = self.size.batch_entries;
        (self.size.chunk_bytes, self.size.most_entries, self.size.chunk_entries) = (0, entries, entries);
        self
    }

    /// First entry of the next batch.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next entries; another thread then begins with those behind them.
    fn next_chunk(&mut self) -> Result<Chunk> {
        let ahead = self.ahead.take().and_then(Spawned::wait);
        let chunk = ahead.unwrap_or_else(|| Chunk::decode(&self.read, self.position, self.size))?;
        let (bytes, entries) = (chunk.batch.get_array_memory_size(), chunk.end - chunk.start);
        match (chunk.is_too_much, self.read.computes()) {
            (true, _) => self.size.most_entries = self.size.batch_entries,
            // The next entries will be as large as these.
            (false, false) => self.size.fit(bytes as f64 / entries as f64),
            // The size of returned entries does not tell the size of the read ones.
            (false, true) => {}
        }
        self.size.grow();
        if bytes as u64 <= 2 * CHUNK_BYTES && chunk.end < self.read.range().end && !self.read.calls_back() {
            let (read, start, size) = (Arc::clone(&self.read), chunk.end, self.size);
            self.ahead = pool::spawn(move || Chunk::decode(&read, start, size));
        }
        Ok(chunk)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let last = self.read.range().end;
        if self.position >= last {
            return Ok(None);
        }
        let mut chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => self.next_chunk()?,
        };
        if chunk.batch.schema() != self.schema {
            let what = format!("strings of the entries {}..{} are not UTF-8", chunk.start, chunk.end);
            return Err(self.read.context(Error::unsupported(what).with_remedy(Remedy::BinaryStrings)));
        }
        let end = chunk.batch_end(self.position, self.size);
        let batch = chunk.take(self.position, end);
        (self.position, self.chunk) = (end, Some(chunk).filter(|chunk| end < chunk.end));
        Ok(Some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            // An error ends the stream: what follows it has no known place.
            self.position = self.read.range().end;
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
        // Batches that a cut leaves empty are skipped.
        let next = self.0.find(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        next.map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ArrowBatches {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}
