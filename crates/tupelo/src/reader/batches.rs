//! Entries as a stream of batches, decoded ahead.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Read;
use crate::pool::{self, Ahead};
use crate::{Error, ErrorKind, Result};

/// Batches are cut from larger pieces that are decoded at once, of about this many bytes in memory.
const CHUNK_BYTES: u64 = 32 << 20;

/// Batches of one reading request, in entry order.
#[derive(Debug)]
pub struct Batches {
    read: Arc<Read>,
    schema: SchemaRef,
    batch_entries: u64,
    chunk_entries: u64,
    position: u64,
    /// What was decoded last.
    chunk: Option<Chunk>,
    /// What another thread decodes meanwhile: what comes next.
    ahead: Option<Ahead<Result<Chunk>>>,
}

/// Entries that were decoded at once.
#[derive(Debug)]
struct Chunk {
    /// Those that the cut keeps.
    batch: RecordBatch,
    kept: Option<BooleanArray>,
    /// All of them.
    start: u64,
    end: u64,
    /// How many of the batch are handed out.
    given: usize,
}

impl Chunk {
    /// Entries from `start` on: several batches at once where they are small, and no more than the memory budget allows
    /// unless one batch alone is more.
    fn decode(read: &Read, start: u64, entries: u64, batch_entries: u64) -> Result<Self> {
        let end = |entries: u64| start.saturating_add(entries).min(read.range().end);
        let at_once = end(entries);
        let (end, decoded) = match read.decode_columns(&(start..at_once), true) {
            // A cluster may be much larger than those by which the number of entries was chosen.
            Err(error) if error.kind() == ErrorKind::Limit => {
                let end = end(batch_entries);
                (end, read.decode_columns(&(start..end), false))
            }
            decoded => (at_once, decoded),
        };
        let (batch, kept) = decoded.map_err(|e| read.ntuple().context(e))?;
        Ok(Self { batch, kept, start, end, given: 0 })
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

impl Batches {
    pub(super) fn new(read: Read, batch_entries: u64) -> Result<Self> {
        let at_once = (CHUNK_BYTES as f64 / read.decoded_bytes_per_entry()?.max(1.0)) as u64;
        let chunk_entries = batch_entries.saturating_mul((at_once / batch_entries).max(1));
        let (schema, position) = (read.arrow_schema(), read.range().start);
        let read = Arc::new(read);
        Ok(Self { read, schema, batch_entries, chunk_entries, position, chunk: None, ahead: None })
    }

    /// First entry of the next batch.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next entries; another thread then begins with those behind them.
    fn next_chunk(&mut self) -> Result<Chunk> {
        let (start, one) = (self.position, self.batch_entries);
        let ahead = self.ahead.take().and_then(Ahead::wait);
        let chunk = ahead.unwrap_or_else(|| Chunk::decode(&self.read, start, self.chunk_entries, one))?;
        // The next entries will be as large as these.
        let bytes = chunk.batch.get_array_memory_size().max(1) as u64;
        let entries = (u128::from(CHUNK_BYTES) * u128::from(chunk.end - start) / u128::from(bytes)) as u64;
        match &chunk.kept {
            None => self.chunk_entries = one.saturating_mul((entries / one).max(1)),
            // What is kept says nothing of the fields by which that was decided.
            Some(_) => self.chunk_entries = self.chunk_entries.min((chunk.end - start).max(one)),
        }
        if bytes <= 2 * CHUNK_BYTES && chunk.end < self.read.range().end && !self.read.calls_back() {
            let (read, start, entries) = (Arc::clone(&self.read), chunk.end, self.chunk_entries);
            self.ahead = pool::ahead(move || Chunk::decode(&read, start, entries, one));
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
            return Err(self.read.ntuple().context(Error::unsupported(format!(
                "strings of the entries {}..{} are not UTF-8; read them with binary strings",
                chunk.start, chunk.end
            ))));
        }
        // Chunks are of whole batches.
        let end = self.position.saturating_add(self.batch_entries).min(chunk.end);
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
        // Batches of which a cut leaves nothing are nothing to others.
        let next = self.0.find(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        next.map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ArrowBatches {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }
}
