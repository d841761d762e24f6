//! From batches to stored clusters: what one context of an ntuple collects, by itself.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};

use super::WriteOptions;
use super::options::{PENDING_BYTES, WRITE_BYTES};
use super::records::Added;
use crate::encode::{Check, ColumnWriter, FieldWriter, StoredColumn};
use crate::sink::PageSink;
use crate::{Error, Result, pool};

/// Entries are appended in pieces of about this many bytes, between which a cluster may end.
const PIECE_BYTES: u64 = 4 << 20;
/// Entries of the largest piece that is looked at at once before anything is appended.
const MAX_CHECKED_ENTRIES: u64 = 64 << 10;
/// Entries of the first piece, before anything is known of their size.
const FIRST_PIECE_ENTRIES: u64 = 256;
/// Values that are sealed at once when too many wait, in bytes: as packed pages they take memory once more.
const RELIEF_BYTES: u64 = PIECE_BYTES;
/// What compression is expected to leave before the first page is there; ROOT's guess.
const FIRST_RATIO: f64 = 0.5;

/// What was written, counted from when the writer was made; entries and clusters count those before as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Entries.
    pub entries: u64,
    /// Clusters.
    pub clusters: u64,
    /// Bytes of pages as stored, checksums included.
    pub stored_bytes: u64,
    /// Bytes of pages before compression.
    pub unpacked_bytes: u64,
}

/// The open cluster of one context.
#[derive(Debug)]
pub(super) struct ClusterBuilder {
    sink: Arc<dyn PageSink>,
    fields: Vec<Option<FieldWriter>>,
    columns: Vec<ColumnWriter>,
    is_compressed: bool,
    cluster_bytes: u64,
    max_unpacked_cluster_bytes: u64,
    /// Entries of the open cluster.
    entries: u64,
    /// What all contexts together have committed, as far as this one knows.
    pub(super) written: Written,
}

/// A complete cluster, whose pages are in the file.
#[derive(Debug)]
pub(super) struct StoredCluster {
    pub(super) entries: u64,
    /// The pages of every column that is written.
    pub(super) columns: Vec<StoredColumn>,
    pub(super) unpacked_bytes: u64,
    /// Checksums included.
    pub(super) stored_bytes: u64,
}

impl ClusterBuilder {
    pub(super) fn new(
        sink: Arc<dyn PageSink>,
        fields: Vec<Option<FieldWriter>>,
        columns: Vec<ColumnWriter>,
        options: &WriteOptions,
    ) -> Self {
        Self {
            sink,
            fields,
            columns,
            is_compressed: !options.compression.is_none(),
            cluster_bytes: options.cluster_bytes,
            max_unpacked_cluster_bytes: options.max_unpacked_cluster_bytes(),
            entries: 0,
            written: Written::default(),
        }
    }

    /// Another one of the same fields, for another context; empty.
    pub(super) fn another(&self) -> Self {
        Self {
            sink: Arc::clone(&self.sink),
            fields: self.fields.clone(),
            columns: self.columns.iter().map(ColumnWriter::another).collect(),
            entries: 0,
            ..*self
        }
    }

    /// Entries of the open cluster.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Goes on with more top-level fields, or with more members of the record of a path.
    pub(super) fn extend(&mut self, added: &mut Added, path: Option<&str>) {
        self.columns.append(&mut added.columns);
        let Some(path) = path else { return self.fields.append(&mut added.fields) };
        let mut names = path.split('.');
        let top = names.next().unwrap_or_default();
        let mut record = self.fields.iter_mut().flatten().find(|field| field.path == top);
        let mut path = top.to_owned();
        for name in names {
            path = format!("{path}.{name}");
            record = record.and_then(|record| record.children.iter_mut().find(|child| child.path == path));
        }
        if let Some(record) = record {
            record.children.extend(added.fields.drain(..).flatten());
        }
    }

    /// Whether all entries of a batch can be appended: nothing of one that is refused may stay.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        let is_whole = self.is_whole(batch)?;
        let bytes_per_entry = batch.get_array_memory_size() as u64 / (batch.num_rows() as u64).max(1);
        let piece = (PIECE_BYTES / bytes_per_entry.max(1)).clamp(FIRST_PIECE_ENTRIES, MAX_CHECKED_ENTRIES) as usize;
        let mut check = Check(&self.columns);
        for start in (0..batch.num_rows()).step_by(piece) {
            pool::check()?;
            let piece = batch.slice(start, piece.min(batch.num_rows() - start));
            fields_of(&self.fields, &piece, is_whole).try_for_each(|(field, array)| field.append(array, &mut check))?;
        }
        Ok(())
    }

    /// Appends all entries of a batch that was [checked](ClusterBuilder::check); every cluster that becomes full is given to
    /// `commit`, which answers what is written then.
    pub(super) fn append(
        &mut self,
        batch: &RecordBatch,
        mut commit: impl FnMut(StoredCluster) -> Result<Written>,
    ) -> Result<()> {
        let is_whole = self.is_whole(batch)?;
        let (mut start, entries) = (0, batch.num_rows());
        while start < entries {
            let count = self.piece_entries().min((entries - start) as u64) as usize;
            let piece = batch.slice(start, count);
            let Self { fields, columns, .. } = self;
            fields_of(fields, &piece, is_whole).try_for_each(|(field, array)| field.append(array, &mut **columns))?;
            start += count;
            self.entries += count as u64;
            self.relieve()?;
            self.seal()?;
            match self.is_full() {
                true => self.flush(&mut commit)?,
                false => self.store_if_many()?,
            }
        }
        Ok(())
    }

    /// Whether a batch has columns for projected fields too. They have nothing to be written; a batch that was read may
    /// have them all the same.
    fn is_whole(&self, batch: &RecordBatch) -> Result<bool> {
        let stored = self.fields.iter().flatten().count();
        let is_whole = batch.num_columns() == self.fields.len();
        if !is_whole && batch.num_columns() != stored {
            let what = match self.fields.len() - stored {
                0 => format!("{stored} fields"),
                projected => format!("{stored} fields, besides {projected} projected ones"),
            };
            let columns = batch.num_columns();
            return Err(Error::invalid_argument(format!("a batch of {columns} columns for an ntuple of {what}")));
        }
        Ok(is_whole)
    }

    /// Ends the open cluster, if it has entries.
    pub(super) fn flush(&mut self, mut commit: impl FnMut(StoredCluster) -> Result<Written>) -> Result<()> {
        if self.entries == 0 {
            return Ok(());
        }
        let unpacked_bytes = self.unpacked_bytes();
        let mut packed = 0;
        for k in 0..self.columns.len() {
            packed += self.columns[k].pending_packed_bytes();
            self.columns[k].seal_pending().map_err(|e| of_field(e, &self.fields, k))?;
            if packed >= PIECE_BYTES {
                self.seal()?;
                self.store_if_many()?;
                packed = 0;
            }
        }
        self.seal()?;
        self.store()?;
        let stored_bytes = self.columns.iter().map(|column| column.sealed_bytes).sum();
        let columns = self.columns.iter_mut().map(ColumnWriter::take_cluster).collect();
        let entries = std::mem::take(&mut self.entries);
        self.written = commit(StoredCluster { entries, columns, unpacked_bytes, stored_bytes })?;
        Ok(())
    }

    /// Keeps the memory of sealed pages within [`WRITE_BYTES`] and a piece.
    fn store_if_many(&mut self) -> Result<()> {
        let waiting: u64 = self.columns.iter().map(|column| column.waiting_bytes).sum();
        if waiting >= WRITE_BYTES { self.store() } else { Ok(()) }
    }

    /// Writes all sealed pages, ordered by column.
    fn store(&mut self) -> Result<()> {
        let pages: Vec<_> = self.columns.iter().flat_map(ColumnWriter::waiting).collect();
        let mut locators = self.sink.put_pages(&pages)?.into_iter();
        self.columns.iter_mut().for_each(|column| column.place(&mut locators));
        Ok(())
    }

    /// As many entries as fit into a piece, judged by those of the open cluster, or else by those before it.
    fn piece_entries(&self) -> u64 {
        let (entries, bytes) = match self.entries {
            0 => (self.written.entries, self.written.unpacked_bytes),
            entries => (entries, self.unpacked_bytes()),
        };
        if entries == 0 {
            return FIRST_PIECE_ENTRIES;
        }
        let piece = PIECE_BYTES.min(self.cluster_bytes / 8).max(1);
        (piece as f64 / (bytes as f64 / entries as f64).max(1e-3)).clamp(1.0, f64::from(1 << 24)) as u64
    }

    fn unpacked_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.packed_bytes + column.pending_packed_bytes()).sum()
    }

    /// Keeps the memory of values that wait for their pages within [`PENDING_BYTES`], however many columns there are.
    fn relieve(&mut self) -> Result<()> {
        let mut pending: u64 = self.columns.iter().map(ColumnWriter::pending_bytes).sum();
        if pending <= PENDING_BYTES {
            return Ok(());
        }
        let mut largest: Vec<(usize, &mut ColumnWriter)> = self.columns.iter_mut().enumerate().collect();
        largest.sort_by_key(|(_, column)| std::cmp::Reverse(column.pending_bytes()));
        for (k, column) in largest {
            if pending <= PENDING_BYTES - RELIEF_BYTES {
                break;
            }
            pending -= column.pending_bytes();
            column.seal_pending().map_err(|e| of_field(e, &self.fields, k))?;
        }
        Ok(())
    }

    /// Compresses all pages that wait for it, each as a task.
    fn seal(&mut self) -> Result<()> {
        let mut tasks = Vec::new();
        for (k, column) in self.columns.iter_mut().enumerate() {
            let sealing = column.sealing();
            tasks.extend(column.take_packed().into_iter().map(|page| (k, sealing, page)));
        }
        let bytes = tasks.iter().map(|(_, _, page)| page.bytes()).sum();
        // A page may take its codec a second: who wants no more does not wait for those under way.
        let seal = move || pool::map(tasks, bytes, |(k, sealing, page)| Ok((k, page.seal(&sealing))));
        for (k, page) in pool::apart(bytes, seal)? {
            self.columns[k].put(page.map_err(|e| of_field(e, &self.fields, k))?);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.unpacked_bytes() >= self.max_unpacked_cluster_bytes || self.stored_bytes() >= self.cluster_bytes
    }

    /// Bytes that the open cluster has when it is stored, as far as they can be known before all is compressed.
    pub(super) fn stored_bytes(&self) -> u64 {
        let sum = |of: fn(&ColumnWriter) -> u64| self.columns.iter().map(of).sum::<u64>();
        let (sealed, packed) = (sum(|c| c.sealed_bytes), sum(|c| c.packed_bytes));
        let pending = sum(ColumnWriter::pending_packed_bytes);
        let (known_stored, known_packed) = (sealed + self.written.stored_bytes, packed + self.written.unpacked_bytes);
        let ratio = match known_packed {
            _ if !self.is_compressed => 1.0,
            0 => FIRST_RATIO,
            packed => known_stored as f64 / packed as f64,
        };
        (sealed as f64 + pending as f64 * ratio).ceil() as u64
    }
}

/// The fields that are written, each with its column of a batch.
fn fields_of<'a>(
    fields: &'a [Option<FieldWriter>],
    batch: &'a RecordBatch,
    is_whole: bool,
) -> impl Iterator<Item = (&'a FieldWriter, &'a ArrayRef)> {
    let fields = fields.iter().filter(move |field| is_whole || field.is_some());
    fields.zip(batch.columns()).filter_map(|(field, array)| Some((field.as_ref()?, array)))
}

/// Puts the field in front of an error that a column made when its values became a page.
#[cold]
fn of_field(error: Error, fields: &[Option<FieldWriter>], column: usize) -> Error {
    fn find(field: &FieldWriter, column: usize) -> Option<&FieldWriter> {
        let below = field.children.iter().find_map(|child| find(child, column));
        below.or_else(|| (field.column..field.column + field.columns()).contains(&column).then_some(field))
    }
    match fields.iter().flatten().find_map(|field| find(field, column)) {
        Some(field) => error.within(format!("field '{}'", field.path)),
        None => error,
    }
}
