//! One ntuple being written: batches become pages, pages clusters, clusters groups.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use super::attributes::{AttributeSetWriter, Set};
use super::dataset::Dataset;
use super::fill::Fill;
use crate::reader::{METADATA_SET, Ntuple};
use crate::schema::Schema;
use crate::{Error, Result};

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

/// What the contexts of one ntuple share.
type Shared = Arc<Mutex<Dataset>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Dataset> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one ntuple. It must be finished, or the file is not written.
#[derive(Debug)]
pub struct NtupleWriter {
    shared: Shared,
    fill: Fill,
    /// The ntuple as it was, where it is continued.
    existing: Option<Ntuple>,
}

impl NtupleWriter {
    pub(super) fn new(dataset: Dataset, mut fill: Fill, existing: Option<Ntuple>) -> Self {
        fill.written = dataset.written();
        Self { shared: Arc::new(Mutex::new(dataset)), fill, existing }
    }

    /// Entries written so far, those of fill contexts as soon as their clusters are complete.
    pub fn entries(&self) -> u64 {
        lock(&self.shared).written().entries + self.fill.entries()
    }

    /// The fields, those that were added included: what a batch must have.
    pub fn schema(&self) -> Schema {
        lock(&self.shared).model.schema.clone()
    }

    /// Appends all entries of a batch, whose columns must be the schema's fields, in order.
    ///
    /// # Errors
    /// Invalid argument where columns do not fit the schema, contain nulls that it does not declare or values that an
    /// encoding cannot hold; storage errors. After an error the ntuple cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        write(&self.shared, &mut self.fill, batch).map_err(|e| lock(&self.shared).spoil(e))
    }

    /// Ends the open cluster before it is full. Does nothing where it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        flush(&self.shared, &mut self.fill).map_err(|e| lock(&self.shared).spoil(e))
    }

    /// Adds top-level fields. Entries before read as zero, empty, no value or null there; batches must have the new
    /// fields from now on, behind those before.
    ///
    /// # Errors
    /// Invalid argument for names that exist, fields that cannot be written, and while fill contexts are open. The
    /// ntuple goes on as it was then.
    pub fn add_fields(&mut self, fields: &Schema) -> Result<()> {
        self.extend(fields, None)
    }

    /// Adds members to an untyped record, given by its dotted path, as [`NtupleWriter::add_fields`] does at the top.
    ///
    /// # Errors
    /// As there, and for what is no untyped record or lies below a collection.
    pub fn add_members(&mut self, path: &str, members: &Schema) -> Result<()> {
        self.extend(members, Some(path))
    }

    fn extend(&mut self, fields: &Schema, path: Option<&str>) -> Result<()> {
        let mut dataset = lock(&self.shared);
        let entries = dataset.written().entries + self.fill.entries();
        let mut added = dataset.extend(fields, path, entries).map_err(|e| dataset.context(e))?;
        self.fill.extend(&mut added, path);
        Ok(())
    }

    /// A context that fills clusters of its own, for another thread. Its entries stay in order; those of several
    /// contexts follow each other cluster by cluster, in the order in which clusters become complete.
    ///
    /// # Errors
    /// Invalid argument where something was written with this writer itself that is not flushed yet.
    pub fn fill_context(&mut self) -> Result<FillContext> {
        self.flush_cluster()?;
        let fill = self.fill.another();
        lock(&self.shared).contexts += 1;
        Ok(FillContext { shared: self.shared.clone(), fill, is_finished: false })
    }

    /// A set of attributes: what is to be said of ranges of entries. One that the ntuple had before it was continued
    /// goes on; its schema must be the same.
    ///
    /// # Errors
    /// Invalid argument for names and schemas that the format forbids, and for a set that is being written already.
    pub fn attribute_set(&mut self, name: &str, schema: &Schema) -> Result<AttributeSetWriter> {
        let mut dataset = lock(&self.shared);
        let mut make = || {
            let is_metadata = name == METADATA_SET && !dataset.metadata.values().is_empty();
            if is_metadata || dataset.sets.iter().any(|(set, _)| set == name) {
                return Err(Error::invalid_argument(format!("attribute set '{name}' is being written already")));
            }
            let before = self.existing.as_ref().filter(|ntuple| ntuple.attribute_sets().any(|set| set == name));
            let before = before.map(|ntuple| ntuple.attribute_set(name)).transpose()?;
            if let Some(before) = &before
                && !before.has_user_data(schema)
            {
                return Err(Error::invalid_argument(format!("attribute set '{name}' exists with another schema")));
            }
            let set = Set::new(dataset.sink().clone(), name, schema, before.as_ref(), &dataset.options)?;
            let set = Arc::new(Mutex::new(set));
            dataset.sets.push((name.to_owned(), set.clone()));
            Ok(AttributeSetWriter::new(set))
        };
        let made = make();
        made.map_err(|e| dataset.context(e))
    }

    /// The ntuple's metadata, pairs of text that speak of the whole of it: those it had before it was continued, and
    /// those set since.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        lock(&self.shared).metadata.values().clone()
    }

    /// Sets a value in the metadata. They are kept as the attribute set
    /// [`METADATA_SET`](crate::reader::METADATA_SET), with a row of `key` and `value` for each.
    ///
    /// # Errors
    /// Invalid argument where another program has a set of that name that is no such list.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        self.change_metadata(key, Some(value))
    }

    /// Takes a value out of the metadata; does nothing where there is none.
    ///
    /// # Errors
    /// As [`NtupleWriter::set_metadata`].
    pub fn remove_metadata(&mut self, key: &str) -> Result<()> {
        self.change_metadata(key, None)
    }

    fn change_metadata(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        let mut dataset = lock(&self.shared);
        if dataset.sets.iter().any(|(set, _)| set == METADATA_SET) {
            let what = format!("attribute set '{METADATA_SET}' is being written as such");
            return Err(dataset.context(Error::invalid_argument(what)));
        }
        let changed = dataset.metadata.set(key, value);
        changed.map_err(|e| dataset.context(e))
    }

    /// Ends the open cluster and makes all that is written readable and durable: in place where the file is updated,
    /// in the temporary file beside the target where it is new. A crash or an error later goes back to here.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished; what was there at the last checkpoint stays.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.flush_cluster()?;
        let mut dataset = lock(&self.shared);
        dataset.make_checkpoint().map_err(|e| dataset.spoil(e))
    }

    /// Writes what is pending, page list, footer and anchor. The ntuple is visible once its file is finished too.
    ///
    /// # Errors
    /// Invalid argument where a fill context is not finished; storage errors, or that of an earlier call that failed.
    pub fn finish(mut self) -> Result<Written> {
        self.flush_cluster()?;
        let mut dataset = lock(&self.shared);
        dataset.finish().map_err(|e| dataset.spoil(e))
    }
}

/// Fills clusters of an ntuple that is filled by several threads, one context each.
///
/// Dropping a context that has entries of an open cluster makes the ntuple unfit to be finished: they would be missing.
#[derive(Debug)]
pub struct FillContext {
    shared: Shared,
    fill: Fill,
    is_finished: bool,
}

impl FillContext {
    /// Appends all entries of a batch, as [`NtupleWriter::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        write(&self.shared, &mut self.fill, batch).map_err(|e| lock(&self.shared).spoil(e))
    }

    /// Ends the open cluster before it is full. Does nothing where it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        flush(&self.shared, &mut self.fill).map_err(|e| lock(&self.shared).spoil(e))
    }

    /// Ends the open cluster and the context.
    ///
    /// # Errors
    /// As [`FillContext::flush_cluster`].
    pub fn finish(mut self) -> Result<()> {
        self.flush_cluster()?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for FillContext {
    fn drop(&mut self) {
        let mut dataset = lock(&self.shared);
        dataset.contexts -= 1;
        let entries = self.fill.entries();
        if !self.is_finished && entries > 0 {
            dataset
                .spoilt
                .get_or_insert_with(|| format!("a fill context was dropped with {entries} entries unwritten"));
        }
    }
}

fn write(shared: &Shared, fill: &mut Fill, batch: &RecordBatch) -> Result<()> {
    let is_due = {
        let dataset = lock(shared);
        dataset.check_spoilt()?;
        dataset.is_checkpoint_due()
    };
    fill.append(batch, |cluster| lock(shared).commit(cluster))?;
    // Clusters may take long to become full; what is due by the clock does not wait for that.
    if is_due { fill.flush(|cluster| lock(shared).commit(cluster)) } else { Ok(()) }
}

fn flush(shared: &Shared, fill: &mut Fill) -> Result<()> {
    lock(shared).check_spoilt()?;
    fill.flush(|cluster| lock(shared).commit(cluster))
}
