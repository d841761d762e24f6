//! One ntuple being written: batches become pages, pages clusters, clusters groups.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use super::attributes::{AttributeSetWriter, Metadata, Set};
use super::cluster_builder::{ClusterBuilder, Written};
use super::committer::{Committer, SharedSet};
use crate::reader::{METADATA_SET, Ntuple};
use crate::schema::Schema;
use crate::{Error, Result};

/// What the contexts of one ntuple share.
type Shared = Arc<Mutex<Committer>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one ntuple. It must be finished, or the file is not written.
#[derive(Debug)]
pub struct NtupleWriter {
    shared: Shared,
    builder: ClusterBuilder,
    metadata: Arc<Mutex<Metadata>>,
    /// The ntuple as it was, where it is continued.
    existing: Option<Ntuple>,
}

impl NtupleWriter {
    pub(super) fn new(mut committer: Committer, mut builder: ClusterBuilder, existing: Option<Ntuple>) -> Result<Self> {
        builder.written = committer.written();
        let metadata = existing.as_ref().map(Metadata::existing).transpose()?.unwrap_or_default();
        let metadata = Arc::new(Mutex::new(metadata));
        committer.metadata = Some(metadata.clone());
        Ok(Self { shared: Arc::new(Mutex::new(committer)), builder, metadata, existing })
    }

    /// Entries written so far, those of fill contexts as soon as their clusters are complete.
    pub fn entries(&self) -> u64 {
        lock(&self.shared).written().entries + self.builder.entries()
    }

    /// The fields, those that were added included: what a batch must have.
    pub fn schema(&self) -> Schema {
        lock(&self.shared).model.schema.clone()
    }

    /// Appends all entries of a batch, whose columns must be the schema's fields, in order.
    ///
    /// # Errors
    /// Invalid argument where columns do not fit the schema, contain nulls that it does not declare or values that an
    /// encoding cannot hold, and where the file was given up or closed: nothing of the batch is written then, and the
    /// ntuple goes on as it was. Storage errors, after which the ntuple cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_all(std::slice::from_ref(batch))
    }

    /// Appends all entries of several batches, or of none where one of them does not fit.
    ///
    /// # Errors
    /// As [`NtupleWriter::write`].
    pub fn write_all(&mut self, batches: &[RecordBatch]) -> Result<()> {
        write(&self.shared, &mut self.builder, batches)
    }

    /// Ends the open cluster before it is full. Does nothing where it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        flush(&self.shared, &mut self.builder)
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
        let mut committer = lock(&self.shared);
        let entries = committer.written().entries + self.builder.entries();
        let usable = committer.check_usable();
        let added = usable.and_then(|()| committer.extend(fields, path, entries));
        let mut added = added.map_err(|e| committer.context(e))?;
        self.builder.extend(&mut added, path);
        Ok(())
    }

    /// A context that fills clusters of its own, for another thread. Its entries stay in order; those of several
    /// contexts follow each other cluster by cluster, in the order in which clusters become complete. What this writer
    /// has in its own open cluster is flushed first.
    ///
    /// A context ends by [`FillContext::finish`]. One that is dropped with entries in its open cluster makes the ntuple
    /// unfit to be finished: a batch may lie half in that cluster and half in one that is written already, and no part
    /// of a batch may be missing in silence. One that is dropped right after its cluster was flushed loses nothing, and
    /// the clusters that it wrote stay. While contexts are open, no fields can be added, the ntuple cannot be finished,
    /// and a [checkpoint](NtupleWriter::checkpoint) has their complete clusters only.
    ///
    /// # Errors
    /// Those of [`NtupleWriter::flush_cluster`].
    pub fn fill_context(&mut self) -> Result<FillContext> {
        self.flush_cluster()?;
        let builder = self.builder.another();
        lock(&self.shared).contexts += 1;
        Ok(FillContext { shared: self.shared.clone(), builder, is_finished: false })
    }

    /// A set of attributes: what is to be said of ranges of entries. One that the ntuple had before it was continued
    /// goes on; its schema must be the same.
    ///
    /// # Errors
    /// Invalid argument for names and schemas that the format forbids, for a set that is being written already, and for
    /// the one that holds the ntuple's metadata.
    pub fn attribute_set(&mut self, name: &str, schema: &Schema) -> Result<AttributeSetWriter> {
        let mut committer = lock(&self.shared);
        let mut make = || {
            committer.check_usable()?;
            if name == METADATA_SET && lock(&self.metadata).has_set() {
                let what = format!("attribute set '{name}' is the ntuple's metadata; set these");
                return Err(Error::invalid_argument(what));
            }
            if committer.sets.iter().any(|(set, _)| set == name) {
                return Err(Error::invalid_argument(format!("attribute set '{name}' is being written already")));
            }
            let before = self.existing.as_ref().filter(|ntuple| ntuple.attribute_sets().any(|set| set == name));
            let before = before.map(|ntuple| ntuple.attribute_set(name)).transpose()?;
            if let Some(before) = &before
                && !before.has_user_data(schema)
            {
                return Err(Error::invalid_argument(format!("attribute set '{name}' exists with another schema")));
            }
            let set = Set::new(Arc::clone(committer.sink()), name, schema, before.as_ref(), &committer.options)?;
            let set = Arc::new(Mutex::new(set));
            committer.sets.push((name.to_owned(), set.clone() as SharedSet));
            Ok(AttributeSetWriter::new(set))
        };
        let made = make();
        made.map_err(|e| committer.context(e))
    }

    /// The ntuple's metadata, pairs of text that speak of the whole of it: those it had before it was continued, and
    /// those set since.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        lock(&self.metadata).values().clone()
    }

    /// Sets a value in the metadata. They are kept as the attribute set
    /// [`METADATA_SET`](crate::reader::METADATA_SET), with a row of `key` and `value` for each.
    ///
    /// # Errors
    /// Invalid argument where the ntuple has a set of that name with other fields, or one whose rows do not speak of all
    /// entries: it is another program's and stays as it is.
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
        let committer = lock(&self.shared);
        committer.check_usable().map_err(|e| committer.context(e))?;
        if committer.sets.iter().any(|(set, _)| set == METADATA_SET) {
            let what = format!("attribute set '{METADATA_SET}' is being written as such");
            return Err(committer.context(Error::invalid_argument(what)));
        }
        let changed = lock(&self.metadata).set(key, value);
        changed.map_err(|e| committer.context(e))
    }

    /// Ends the open cluster and makes all that is written readable and durable: in place where the file is updated,
    /// in the temporary file beside the target where it is new. A crash or an error later goes back to here.
    ///
    /// Open clusters of fill contexts are left out: theirs to end is [`FillContext::flush_cluster`]. A checkpoint is
    /// made whenever it is asked for, however little is new; those that the [options](super::WriteOptions) ask for wait
    /// until they are worth their size.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished; what was there at the last checkpoint stays.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.flush_cluster()?;
        let mut committer = lock(&self.shared);
        committer.make_checkpoint().map_err(|e| committer.poison(e))
    }

    /// Writes what is pending, page list, footer and anchor. The ntuple is visible once its file is finished too, and
    /// takes nothing more.
    ///
    /// # Errors
    /// Invalid argument where a fill context is not finished: then nothing has happened, and it can be asked for again.
    /// Storage errors, or that of an earlier call that failed.
    pub fn finish(&mut self) -> Result<Written> {
        let contexts = lock(&self.shared).check_contexts();
        contexts.map_err(|e| lock(&self.shared).context(e))?;
        self.flush_cluster()?;
        let mut committer = lock(&self.shared);
        committer.finish().map_err(|e| committer.poison(e))
    }

    /// Gives the ntuple up, and with it its attribute sets. A new one is gone as if it had never been begun, what a
    /// checkpoint had of it included; its name is free again. One that was continued stays as it was at the last
    /// checkpoint. Other ntuples of the file go on.
    ///
    /// # Errors
    /// Invalid argument in another process than the one that began it.
    pub fn abandon(self) -> Result<()> {
        let mut committer = lock(&self.shared);
        committer.abandon().map_err(|e| committer.context(e))
    }
}

/// Fills clusters of an ntuple that is filled by several threads, one context each.
///
/// Dropping a context that has entries in its open cluster makes the ntuple unfit to be finished, see
/// [`NtupleWriter::fill_context`].
#[derive(Debug)]
pub struct FillContext {
    shared: Shared,
    builder: ClusterBuilder,
    is_finished: bool,
}

impl FillContext {
    /// Appends all entries of a batch, as [`NtupleWriter::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_all(std::slice::from_ref(batch))
    }

    /// Appends all entries of several batches, or of none, as [`NtupleWriter::write_all`].
    ///
    /// # Errors
    /// As there.
    pub fn write_all(&mut self, batches: &[RecordBatch]) -> Result<()> {
        write(&self.shared, &mut self.builder, batches)
    }

    /// Ends the open cluster before it is full. Does nothing where it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        flush(&self.shared, &mut self.builder)
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
        let mut committer = lock(&self.shared);
        committer.contexts -= 1;
        let entries = self.builder.entries();
        if !self.is_finished && entries > 0 {
            committer
                .poisoned
                .get_or_insert_with(|| format!("a fill context was dropped with {entries} entries unwritten"));
        }
    }
}

fn write(shared: &Shared, builder: &mut ClusterBuilder, batches: &[RecordBatch]) -> Result<()> {
    let usable = lock(shared).check_usable();
    let fitting = usable.and_then(|()| batches.iter().try_for_each(|batch| builder.check(batch)));
    fitting.map_err(|e| lock(shared).context(e))?;
    let is_due = lock(shared).is_time_due(builder.stored_bytes());
    let mut append = || {
        for batch in batches {
            builder.append(batch, |cluster| lock(shared).commit(cluster))?;
        }
        // Clusters may take long to become full; what is due by the clock does not wait for that.
        if is_due { builder.flush(|cluster| lock(shared).commit(cluster)) } else { Ok(()) }
    };
    append().map_err(|e| lock(shared).poison(e))
}

fn flush(shared: &Shared, builder: &mut ClusterBuilder) -> Result<()> {
    let usable = lock(shared).check_usable();
    usable.map_err(|e| lock(shared).context(e))?;
    builder.flush(|cluster| lock(shared).commit(cluster)).map_err(|e| lock(shared).poison(e))
}
