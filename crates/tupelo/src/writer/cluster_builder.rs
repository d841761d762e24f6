//! From batches to stored clusters: the open cluster of one context.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;
use tupelo_core::pool::{self, Background};
use tupelo_pages::encode::{
    ColumnWriter, FieldWriter, ListedCluster, ListedColumn, PackedPage, PageOptions, ReadPages, SealedColumn,
    SealedPage, StoredColumn,
};
use tupelo_pages::sink::PageSink;

use super::WriteOptions;
use super::options::{PENDING_BYTES, WRITE_BYTES};
use super::records::AddedFields;
use super::sealed::{self, CheckedCluster, ClusterFiller, ClusterPages, FullCluster};
use crate::reader::default_values;
use crate::{Error, Result};

/// Entries are appended in pieces of about this many bytes, between which a cluster may end.
const PIECE_BYTES: u64 = 4 << 20;
/// Entries of the largest piece of a batch that is only validated.
const MAX_VALIDATED_ENTRIES: u64 = 64 << 10;
/// Entries of the first piece, before the size of an entry is known.
const FIRST_PIECE_ENTRIES: u64 = 256;
/// Values that are packed together when too many are pending, in bytes: the packed pages take the same memory again.
const RELIEF_BYTES: u64 = PIECE_BYTES;
/// Pages that may be in compression while the next piece is encoded, in bytes before compression.
const SEALING_BYTES: u64 = 2 * PIECE_BYTES;
/// The compression ratio that is assumed before the first page is compressed, as by ROOT.
const FIRST_RATIO: f64 = 0.5;

/// The progress since the writer was created; entries and clusters include those that existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteProgress {
    /// Entries.
    pub entries: u64,
    /// Those of them that existed before.
    pub entries_before: u64,
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
    /// Entries that are staged and are appended next.
    staged_entries: usize,
    sealing: Background<Result<Vec<NumberedPage>>>,
    /// The most bytes that the pages in compression can have when they are sealed; 0 without any.
    sealing_bytes: u64,
    /// What all contexts together have committed, as far as this one knows.
    pub(super) progress: WriteProgress,
}

/// Stores all pages of a cluster with this number; `physical` has the numbers of the columns.
pub(super) fn store(
    sink: &dyn PageSink,
    cluster: u64,
    physical: &[usize],
    columns: &[SealedColumn],
) -> Result<Vec<StoredColumn>> {
    let numbered = physical.iter().zip(columns);
    let pages = numbered.flat_map(|(&column, own)| own.pages.iter().map(move |page| page.as_stored(column as u32)));
    let mut locators = sink.put_pages(cluster, &pages.collect::<Vec<_>>())?.into_iter();
    let stored = |column: &SealedColumn| {
        let pages = column.pages.iter().zip(&mut locators).map(|(page, locator)| page.stored_at(locator));
        let (compression, representation) = (column.compression, column.representation);
        StoredColumn { pages: pages.collect(), compression, representation }
    };
    Ok(columns.iter().map(stored).collect())
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
            staged_entries: 0,
            sealing: Background::default(),
            sealing_bytes: 0,
            progress: WriteProgress::default(),
        }
    }

    /// The same, whose cluster is never full.
    pub(super) fn without_end(self) -> Self {
        Self { cluster_bytes: u64::MAX, max_unpacked_cluster_bytes: u64::MAX, ..self }
    }

    /// An empty builder of the same fields, for another context.
    pub(super) fn another(&self) -> Self {
        Self {
            sink: Arc::clone(&self.sink),
            fields: self.fields.clone(),
            columns: self.columns.iter().map(ColumnWriter::another).collect(),
            entries: 0,
            staged_entries: 0,
            sealing: Background::default(),
            sealing_bytes: 0,
            ..*self
        }
    }

    /// Entries of the open cluster.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Appends top-level fields, or members to the record of a path.
    pub(super) fn extend(&mut self, added: &mut AddedFields, path: Option<&str>) {
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

    /// Checks that all entries of the batches can be appended. After an error the cluster is as it was before.
    ///
    /// A batch of one piece stays staged for [`ClusterBuilder::append`]. The values of more than that would take too much
    /// memory as columns, so they are staged piece by piece and discarded: nothing is encoded before all of them fit.
    pub(super) fn validate(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let entries = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        if let [batch] = batches
            && (1..=self.piece_entries()).contains(&(entries as u64))
        {
            let is_whole = self.is_whole(batch)?;
            return self.stage(batch, is_whole);
        }
        for batch in batches {
            let is_whole = self.is_whole(batch)?;
            let bytes_per_entry = batch.get_array_memory_size() as u64 / (batch.num_rows() as u64).max(1);
            let piece = (PIECE_BYTES / bytes_per_entry.max(1)).clamp(FIRST_PIECE_ENTRIES, MAX_VALIDATED_ENTRIES);
            for piece in pieces(batch, piece as usize) {
                pool::check()?;
                self.stage(&piece, is_whole)?;
                self.discard();
            }
        }
        Ok(())
    }

    /// Appends all entries of batches that were [validated](ClusterBuilder::validate). Full clusters are passed to
    /// `commit`, which returns the progress of the ntuple.
    pub(super) fn append(
        &mut self,
        batches: &[RecordBatch],
        mut commit: impl FnMut(FullCluster) -> Result<WriteProgress>,
    ) -> Result<()> {
        for batch in batches {
            let is_whole = self.is_whole(batch)?;
            let (mut start, entries) = (0, batch.num_rows());
            while start < entries {
                if self.staged_entries == 0 {
                    let count = self.piece_entries().min((entries - start) as u64) as usize;
                    self.stage(&batch.slice(start, count), is_whole)?;
                }
                start += self.staged_entries;
                self.append_staged()?;
                self.relieve()?;
                self.seal()?;
                match self.is_full()? {
                    true => self.flush(&mut commit)?,
                    false => self.store_if_many()?,
                }
            }
        }
        Ok(())
    }

    /// Stages a piece of a batch, or nothing after an error.
    fn stage(&mut self, piece: &RecordBatch, is_whole: bool) -> Result<()> {
        let Self { fields, columns, .. } = self;
        let staged = fields_of(fields, piece, is_whole).try_for_each(|(field, array)| field.stage(array, columns));
        self.staged_entries = piece.num_rows();
        staged.inspect_err(|_| self.discard())
    }

    fn discard(&mut self) {
        self.staged_entries = 0;
        self.columns.iter_mut().for_each(ColumnWriter::discard_staged);
    }

    fn append_staged(&mut self) -> Result<()> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.append_staged().map_err(|e| of_field(e, &self.fields, index))?;
        }
        self.entries += std::mem::take(&mut self.staged_entries) as u64;
        Ok(())
    }

    /// Whether a batch has columns for projected fields too. These are ignored: projected fields have no data of their
    /// own, but batches that were read contain them.
    fn is_whole(&self, batch: &RecordBatch) -> Result<bool> {
        let stored = self.fields.iter().flatten().count();
        let is_whole = batch.num_columns() == self.fields.len();
        if !is_whole && batch.num_columns() != stored {
            let what = match self.fields.len() - stored {
                0 => format!("{stored} fields"),
                projected => format!("{stored} fields and {projected} projected fields"),
            };
            let columns = batch.num_columns();
            return Err(Error::invalid_argument(format!("batch has {columns} columns, but the ntuple has {what}")));
        }
        Ok(is_whole)
    }

    /// Ends the open cluster, if it has entries.
    pub(super) fn flush(&mut self, commit: impl FnOnce(FullCluster) -> Result<WriteProgress>) -> Result<()> {
        if self.entries > 0 {
            self.progress = commit(self.take_cluster()?)?;
        }
        Ok(())
    }

    fn take_cluster(&mut self) -> Result<FullCluster> {
        let unpacked_bytes = self.unpacked_bytes();
        let mut packed = 0;
        for index in 0..self.columns.len() {
            packed += self.columns[index].pending_packed_bytes();
            self.columns[index].pack_pending().map_err(|e| of_field(e, &self.fields, index))?;
            if packed >= PIECE_BYTES {
                self.seal()?;
                self.store_if_many()?;
                packed = 0;
            }
        }
        self.seal()?;
        let is_whole = self.sink.stores_whole_clusters();
        if is_whole {
            self.await_all_sealed()?
        } else {
            self.store()?
        }
        let stored_bytes = self.columns.iter().map(|column| column.sealed_bytes).sum();
        let columns = self.columns.iter_mut();
        let pages = match is_whole {
            true => ClusterPages::Sealed(columns.map(ColumnWriter::take_sealed).collect()),
            false => ClusterPages::Stored(columns.map(ColumnWriter::take_stored).collect()),
        };
        Ok(FullCluster { entries: std::mem::take(&mut self.entries), pages, unpacked_bytes, stored_bytes })
    }

    /// Checks a cluster whose pages are sealed.
    pub(super) fn check_sealed(&self, cluster: ListedCluster, missing: Vec<(usize, u64)>) -> Result<CheckedCluster> {
        sealed::check(cluster, missing, &self.fields, &self.columns)
    }

    /// Adds default values for the first entries of a checked cluster to the columns of a field of this type, after the open
    /// cluster was flushed. Returns their pages.
    pub(super) fn add_defaults(
        &mut self,
        cluster: &mut CheckedCluster,
        (field, entries): (usize, u64),
        (data_type, is_nullable): (&DataType, bool),
    ) -> Result<ReadPages> {
        let Some(writer) = self.fields.get(field).and_then(Option::as_ref) else { return Ok(Vec::new()) };
        let range = writer.all_columns();
        let mut left = entries;
        while left > 0 {
            let piece = left.min(MAX_VALIDATED_ENTRIES);
            writer.stage(&default_values(data_type, is_nullable, piece as usize), &mut self.columns)?;
            left -= piece;
            for column in self.columns.get_mut(range.clone()).into_iter().flatten() {
                column.append_staged()?;
                if left == 0 {
                    column.pack_pending()?;
                }
                let options = column.options();
                for (number, page) in column.take_packed() {
                    column.put_sealed(number, page.seal(&options)?);
                }
            }
        }
        let mut pages = Vec::new();
        for place in range {
            let Some(column) = self.columns.get_mut(place) else { continue };
            let (encoding, SealedColumn { compression, pages: sealed, .. }) =
                (column.options().encoding, column.take_sealed());
            let listed = ListedColumn { encoding, compression, pages: sealed.iter().map(SealedPage::listed).collect() };
            let own = cluster.add_defaults(place, listed);
            pages.extend(sealed.into_iter().enumerate().map(|(number, page)| ((own, number), page)));
        }
        Ok(pages)
    }

    /// Takes the pages of a checked cluster, after the open one was flushed.
    pub(super) fn fill_sealed(&self, cluster: CheckedCluster) -> ClusterFiller {
        debug_assert_eq!(self.entries, 0, "the open cluster is flushed first");
        ClusterFiller::new(Arc::clone(&self.sink), cluster)
    }

    /// Keeps the memory of sealed pages within [`WRITE_BYTES`] and a piece, unless the sink needs whole clusters.
    fn store_if_many(&mut self) -> Result<()> {
        if self.sink.stores_whole_clusters() {
            return Ok(());
        }
        let waiting = |builder: &Self| -> u64 { builder.columns.iter().map(|column| column.waiting_bytes).sum() };
        // As in `is_full`: which pages are stored together must not depend on threads.
        while self.sealing_bytes > 0 && waiting(self) + self.sealing_bytes >= WRITE_BYTES {
            self.await_sealed()?;
        }
        if waiting(self) >= WRITE_BYTES { self.store() } else { Ok(()) }
    }

    /// Stores all pages of the open cluster that are not stored yet, ordered by column.
    fn store(&mut self) -> Result<()> {
        self.await_all_sealed()?;
        let pages: Vec<_> = (0..).zip(&self.columns).flat_map(|(number, column)| column.waiting(number)).collect();
        let mut locators = self.sink.put_pages(0, &pages)?.into_iter();
        self.columns.iter_mut().for_each(|column| column.set_stored(&mut locators));
        Ok(())
    }

    /// The number of entries of a piece, from the mean size of entries in the open cluster or else in those before it.
    fn piece_entries(&self) -> u64 {
        let (entries, bytes) = match self.entries {
            0 => (self.progress.entries, self.progress.unpacked_bytes),
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

    /// Keeps the memory of pending values within [`PENDING_BYTES`], however many columns there are.
    fn relieve(&mut self) -> Result<()> {
        let mut pending: u64 = self.columns.iter().map(ColumnWriter::pending_bytes).sum();
        if pending <= PENDING_BYTES {
            return Ok(());
        }
        let mut largest: Vec<(usize, &mut ColumnWriter)> = self.columns.iter_mut().enumerate().collect();
        largest.sort_by_key(|(_, column)| std::cmp::Reverse(column.pending_bytes()));
        for (index, column) in largest {
            if pending <= PENDING_BYTES - RELIEF_BYTES {
                break;
            }
            pending -= column.pending_bytes();
            column.pack_pending().map_err(|e| of_field(e, &self.fields, index))?;
        }
        Ok(())
    }

    /// Starts the compression of all packed pages. With several threads it goes on while the next piece is encoded.
    fn seal(&mut self) -> Result<()> {
        pool::check()?;
        let mut pages = Vec::new();
        for (index, column) in self.columns.iter_mut().enumerate() {
            let options = column.options();
            let packed = column.take_packed();
            pages.extend(packed.map(|(number, page)| UnsealedPage { column: index, number, options, page }));
        }
        let bytes = pages.iter().map(|page: &UnsealedPage| page.page.bytes()).sum();
        // Pages that are not compressed would only move to the cache of another core.
        if !self.is_compressed || bytes < pool::SMALL_BYTES || !pool::is_concurrent() {
            // A page may take its codec a second: a caller who is cancelled does not wait for it.
            let sealed = pool::run_detached(bytes, move || pool::map(pages, bytes, |page| Ok(page.seal())))?;
            return sealed.into_iter().try_for_each(|page| self.put_sealed(page));
        }
        self.sealing_bytes += pages.iter().map(|page| page.page.max_sealed_bytes()).sum::<u64>();
        // Tasks of single small pages would cost more than their compression.
        let (mut task, mut task_bytes) = (Vec::new(), 0);
        for page in pages {
            task_bytes += page.page.bytes();
            task.push(page);
            if task_bytes >= pool::SMALL_BYTES {
                self.start(std::mem::take(&mut task));
                task_bytes = 0;
            }
        }
        if !task.is_empty() {
            self.start(task);
        }
        while self.sealing_bytes > SEALING_BYTES {
            self.await_sealed()?;
        }
        Ok(())
    }

    fn start(&self, task: Vec<UnsealedPage>) {
        self.sealing.start(move || Ok(task.into_iter().map(UnsealedPage::seal).collect()));
    }

    fn await_all_sealed(&mut self) -> Result<()> {
        while self.sealing_bytes > 0 {
            self.await_sealed()?;
        }
        Ok(())
    }

    /// Waits for pages in compression.
    fn await_sealed(&mut self) -> Result<()> {
        for page in self.sealing.next_result()? {
            self.sealing_bytes -= page.max_bytes;
            self.put_sealed(page)?;
        }
        Ok(())
    }

    fn put_sealed(&mut self, page: NumberedPage) -> Result<()> {
        let sealed = page.sealed.map_err(|e| of_field(e, &self.fields, page.column))?;
        self.columns[page.column].put_sealed(page.number, sealed);
        Ok(())
    }

    fn is_full(&mut self) -> Result<bool> {
        let is_too_large = self.unpacked_bytes() >= self.max_unpacked_cluster_bytes;
        if is_too_large || self.columns.iter().any(ColumnWriter::is_index_full) {
            return Ok(true);
        }
        // With any number of threads a cluster ends after the same entry: if it cannot be full, whatever the pages in
        // compression become, their sizes are not needed.
        while self.sealing_bytes > 0 && self.stored_bytes() >= self.cluster_bytes {
            self.await_sealed()?;
        }
        Ok(self.stored_bytes() >= self.cluster_bytes)
    }

    /// Estimate of the stored size of the open cluster in bytes. Pages in compression count with the most that they can
    /// become, pending values with the ratio so far.
    pub(super) fn stored_bytes(&self) -> u64 {
        let sum = |of: fn(&ColumnWriter) -> u64| self.columns.iter().map(of).sum::<u64>();
        let sealed = sum(|column| column.sealed_bytes) + self.sealing_bytes;
        let packed = sum(|column| column.packed_bytes);
        let pending = sum(ColumnWriter::pending_packed_bytes);
        let (all_stored, all_packed) = (sealed + self.progress.stored_bytes, packed + self.progress.unpacked_bytes);
        let ratio = match all_packed {
            _ if !self.is_compressed => 1.0,
            0 => FIRST_RATIO,
            packed => all_stored as f64 / packed as f64,
        };
        (sealed as f64 + pending as f64 * ratio).ceil() as u64
    }
}

/// A page before compression, with its number in its column.
struct UnsealedPage {
    column: usize,
    number: usize,
    options: PageOptions,
    page: PackedPage,
}

/// A page after compression.
#[derive(Debug)]
struct NumberedPage {
    column: usize,
    number: usize,
    /// The most that it could have become.
    max_bytes: u64,
    sealed: Result<SealedPage>,
}

impl UnsealedPage {
    fn seal(self) -> NumberedPage {
        let Self { column, number, options, page } = self;
        NumberedPage { column, number, max_bytes: page.max_sealed_bytes(), sealed: page.seal(&options) }
    }
}

/// The pieces of a batch, of this many entries each.
fn pieces(batch: &RecordBatch, entries: usize) -> impl Iterator<Item = RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(entries);
    starts.map(move |start| batch.slice(start, entries.min(batch.num_rows() - start)))
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

/// Adds the path of the field to an error of one of its columns.
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
