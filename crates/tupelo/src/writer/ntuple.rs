//! One ntuple being written: batches become pages, pages clusters, clusters groups.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use tupelo_pages::encode::{ListedCluster, ReadPages};
use tupelo_pages::sink::NullSink;
use tupelo_schema::schema::Schema;
use tupelo_schema::schema::arrow::data_type;

use super::WriteOptions;
use super::attributes::{AttributeSetWriter, Metadata, Set};
use super::cluster_builder::{ClusterBuilder, WriteProgress};
use super::committer::{AnchorPlace, Committer, SharedSet};
use super::sealed::CheckedCluster;
use crate::reader::{METADATA_SET, Ntuple};
use crate::{Error, Result};

/// State that the contexts of one ntuple share.
type Shared = Arc<Mutex<Committer>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one ntuple. It must be finished before its file can be.
#[derive(Debug)]
pub struct NtupleWriter {
    shared: Shared,
    builder: ClusterBuilder,
    metadata: Arc<Mutex<Metadata>>,
    /// The existing ntuple that is continued.
    existing: Option<Ntuple>,
}

impl NtupleWriter {
    pub(super) fn new(mut committer: Committer, mut builder: ClusterBuilder, existing: Option<Ntuple>) -> Result<Self> {
        builder.progress = committer.progress();
        let metadata = existing.as_ref().map(Metadata::existing).transpose()?.unwrap_or_default();
        let metadata = Arc::new(Mutex::new(metadata));
        committer.metadata = Some(metadata.clone());
        Ok(Self { shared: Arc::new(Mutex::new(committer)), builder, metadata, existing })
    }

    /// Entries written so far; those of fill contexts are included once their clusters are complete.
    pub fn entries(&self) -> u64 {
        lock(&self.shared).progress().entries + self.builder.entries()
    }

    /// Bytes of pages as stored so far; of the open cluster, an estimate.
    pub(crate) fn stored_bytes(&self) -> u64 {
        lock(&self.shared).progress().stored_bytes.saturating_add(self.builder.stored_bytes())
    }

    /// The fields that a batch must have, including those that were added.
    pub fn schema(&self) -> Schema {
        lock(&self.shared).model.schema.clone()
    }

    /// Appends all entries of a batch. Its columns must be the fields of the schema, in order.
    ///
    /// # Errors
    /// Invalid argument if columns do not match the schema, contain undeclared nulls or values that the encoding cannot
    /// hold, or if the file was aborted or closed: then nothing of the batch is written, and the ntuple can be continued.
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_all(std::slice::from_ref(batch))
    }

    /// Appends all entries of several batches, or none if one of the batches is refused.
    ///
    /// # Errors
    /// As [`NtupleWriter::write`].
    pub fn write_all(&mut self, batches: &[RecordBatch]) -> Result<()> {
        write(&self.shared, &mut self.builder, batches)
    }

    /// Checks a whole cluster whose pages are sealed already, for [`NtupleWriter::append_sealed`]. Its columns must have the
    /// encodings of a representation of the ntuple's. The fields at the places in `missing` have default values in so many
    /// entries at the beginning, and no columns if these are all.
    ///
    /// # Errors
    /// Invalid argument for a cluster that does not match the ntuple.
    pub(crate) fn check_sealed(&self, cluster: ListedCluster, missing: Vec<(usize, u64)>) -> Result<CheckedCluster> {
        let committer = lock(&self.shared);
        let checked = committer.check_usable().and_then(|()| self.builder.check_sealed(cluster, missing));
        checked.map_err(|e| committer.context(e))
    }

    /// Appends a whole cluster with its pages as they are, after flushing the open one.
    ///
    /// # Errors
    /// Those of `pages`: then nothing of the cluster is in the ntuple. Storage errors, after which the ntuple cannot be
    /// finished.
    pub(crate) fn append_sealed(
        &mut self,
        mut cluster: CheckedCluster,
        pages: impl Iterator<Item = Result<ReadPages>>,
    ) -> Result<()> {
        self.flush_cluster()?;
        let poisoned = |error| lock(&self.shared).poison(error);
        let mut defaults = Vec::new();
        for missing in cluster.missing().to_vec() {
            let committer = lock(&self.shared);
            let Some(field) = committer.model.schema.fields.get(missing.0) else { continue };
            let (data_type, is_nullable) = (data_type(field, true), field.is_nullable());
            drop(committer);
            let added = self.builder.add_defaults(&mut cluster, missing, (&data_type, is_nullable));
            defaults.extend(added.map_err(poisoned)?);
        }
        let mut filler = self.builder.fill_sealed(cluster);
        if !defaults.is_empty() {
            filler.put_defaults(defaults).map_err(poisoned)?;
        }
        for read in pages {
            filler.put(read?).map_err(poisoned)?;
        }
        let commit = |cluster| lock(&self.shared).commit(cluster);
        self.builder.progress = filler.finish().and_then(commit).map_err(poisoned)?;
        Ok(())
    }

    /// Writes an ntuple that is encoded and compressed but stored nowhere: [`NtupleWriter::finish`] returns its size.
    /// For estimates and benchmarks.
    ///
    /// # Errors
    /// As [`FileWriter::ntuple`](super::FileWriter::ntuple).
    pub fn dry_run(name: &str, schema: &Schema, options: WriteOptions) -> Result<Self> {
        let place = AnchorPlace::Listed(name.to_owned());
        let (committer, builder) = Committer::create(Arc::new(NullSink::default()), place, schema, options)?;
        Self::new(committer, builder, None)
    }

    /// Ends the open cluster before it is full. Does nothing if it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        flush(&self.shared, &mut self.builder)
    }

    /// Adds top-level fields. In earlier entries they read as zero, empty or null; batches must have the new fields from now
    /// on, after the existing ones.
    ///
    /// # Errors
    /// Invalid argument for names that exist, fields that cannot be written, and while fill contexts are open: then the
    /// ntuple is unchanged.
    pub fn add_fields(&mut self, fields: &Schema) -> Result<()> {
        self.extend(fields, None)
    }

    /// Adds members to an untyped record, given by its dotted path; see [`NtupleWriter::add_fields`].
    ///
    /// # Errors
    /// As there, and for fields that are not untyped records or are inside a collection.
    pub fn add_members(&mut self, path: &str, members: &Schema) -> Result<()> {
        self.extend(members, Some(path))
    }

    fn extend(&mut self, fields: &Schema, path: Option<&str>) -> Result<()> {
        let mut committer = lock(&self.shared);
        let entries = committer.progress().entries + self.builder.entries();
        let usable = committer.check_usable();
        let added = usable.and_then(|()| committer.extend(fields, path, entries));
        let mut added = added.map_err(|e| committer.context(e))?;
        self.builder.extend(&mut added, path);
        Ok(())
    }

    /// Creates a context that fills separate clusters, for another thread. Its entries stay in order; clusters of several
    /// contexts follow each other in the order in which they become complete. The open cluster of this writer is flushed
    /// first.
    ///
    /// A context ends with [`FillContext::finish`]. Dropping one with entries in its open cluster poisons the ntuple: part of
    /// a batch may be in that cluster and part in one that is already committed, and no part of a batch may be lost
    /// silently. Dropping a context right after its cluster was flushed loses nothing. While contexts are open, no fields
    /// can be added, the ntuple cannot be finished, and a [checkpoint](NtupleWriter::checkpoint) contains only their
    /// complete clusters.
    ///
    /// # Errors
    /// Those of [`NtupleWriter::flush_cluster`].
    pub fn fill_context(&mut self) -> Result<FillContext> {
        self.flush_cluster()?;
        let builder = self.builder.another();
        lock(&self.shared).contexts += 1;
        Ok(FillContext { shared: self.shared.clone(), builder, is_finished: false })
    }

    /// Writes an attribute set: values for ranges of entries. An existing set of a continued ntuple is continued; its schema
    /// must be the same.
    ///
    /// # Errors
    /// Invalid argument for names and schemas that the format forbids, for a set that is already being written, and for
    /// the set that holds the ntuple's metadata.
    pub fn attribute_set(&mut self, name: &str, schema: &Schema) -> Result<AttributeSetWriter> {
        self.attribute_set_from(name, schema, |ntuple| {
            let before = ntuple.attribute_set(name)?;
            match before.has_user_data(schema) {
                true => Ok(Some(before)),
                false => {
                    let what = format!("attribute set '{name}' already exists with another schema");
                    Err(Error::invalid_argument(what))
                }
            }
        })
    }

    /// As [`attribute_set`](Self::attribute_set), but the new set replaces an existing one, which is not read.
    pub(crate) fn replace_attribute_set(&mut self, name: &str, schema: &Schema) -> Result<AttributeSetWriter> {
        self.attribute_set_from(name, schema, |_| Ok(None))
    }

    /// Writes an attribute set which continues that of `existing`, a function of an ntuple that has a set of the name.
    fn attribute_set_from(
        &mut self,
        name: &str,
        schema: &Schema,
        existing: impl FnOnce(&Ntuple) -> Result<Option<Ntuple>>,
    ) -> Result<AttributeSetWriter> {
        let mut committer = lock(&self.shared);
        let make = || {
            committer.check_usable()?;
            if name == METADATA_SET && lock(&self.metadata).has_set() {
                let what = format!("attribute set '{name}' contains the metadata of the ntuple; use set_metadata");
                return Err(Error::invalid_argument(what));
            }
            if committer.sets.iter().any(|(set, _)| set == name) {
                return Err(Error::invalid_argument(format!("attribute set '{name}' is already being written")));
            }
            let before = self.existing.as_ref().filter(|ntuple| ntuple.attribute_sets().any(|set| set == name));
            let before = before.map_or(Ok(None), existing)?;
            let set = Set::new(Arc::clone(committer.sink()), name, schema, before.as_ref(), &committer.options)?;
            let set = Arc::new(Mutex::new(set));
            committer.sets.push((name.to_owned(), set.clone() as SharedSet));
            Ok(AttributeSetWriter::new(set))
        };
        let made = make();
        made.map_err(|e| committer.context(e))
    }

    /// The ntuple's metadata, pairs of key and value: existing ones of a continued ntuple, and those set since.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        lock(&self.metadata).values().clone()
    }

    /// Sets a value in the metadata. They are stored as the attribute set
    /// [`METADATA_SET`](crate::reader::METADATA_SET), with an entry of `key` and `value` for each.
    ///
    /// # Errors
    /// Invalid argument if the ntuple has a set of that name with other fields, or with ranges that do not cover all
    /// entries: it belongs to another program and is kept unchanged.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        self.change_metadata(key, Some(value))
    }

    /// Removes a value from the metadata, if there is one.
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
            let what = format!("attribute set '{METADATA_SET}' is already being written by attribute_set");
            return Err(committer.context(Error::invalid_argument(what)));
        }
        let changed = lock(&self.metadata).set(key, value);
        changed.map_err(|e| committer.context(e))
    }

    /// Ends the open cluster and makes everything written so far readable and durable: in place if the file is updated, in
    /// the temporary file beside the target if it is new. After a later crash or error, the file is as at this point.
    ///
    /// Open clusters of fill contexts are not included; [`FillContext::flush_cluster`] ends them. An explicit checkpoint is
    /// always made; those of the [options](super::WriteOptions) are delayed until there is enough data.
    ///
    /// # Errors
    /// Unsupported for a remote file, which changes nothing. Storage errors, after which the ntuple cannot be finished; the
    /// state of the last checkpoint is kept.
    pub fn checkpoint(&mut self) -> Result<()> {
        if !lock(&self.shared).has_checkpoints {
            return Err(Error::unsupported(
                "checkpoints are supported only in local files; remote files appear when they are complete",
            ));
        }
        self.flush_cluster()?;
        let mut committer = lock(&self.shared);
        committer.make_checkpoint().map_err(|e| committer.poison(e))
    }

    /// Writes pending data, page list, footer and anchor. The ntuple becomes visible when its file is finished, and accepts
    /// no more data.
    ///
    /// # Errors
    /// Invalid argument if a fill context is not finished: then nothing is changed, and the call can be repeated. Storage
    /// errors, or an error if an earlier call failed.
    pub fn finish(&mut self) -> Result<WriteProgress> {
        let contexts = lock(&self.shared).check_contexts();
        contexts.map_err(|e| lock(&self.shared).context(e))?;
        self.flush_cluster()?;
        let mut committer = lock(&self.shared);
        committer.finish().map_err(|e| committer.poison(e))
    }

    /// Abandons the ntuple and its attribute sets. A new one is removed, including its checkpoints, and its name is free
    /// again. A continued one is as at the last checkpoint. Other ntuples of the file are not affected.
    ///
    /// # Errors
    /// Invalid argument in a process other than the one that began the ntuple.
    pub fn abandon(self) -> Result<()> {
        let mut committer = lock(&self.shared);
        committer.abandon().map_err(|e| committer.context(e))
    }
}

/// Fills clusters of an ntuple from one of several threads.
///
/// Dropping a context with entries in its open cluster poisons the ntuple, see [`NtupleWriter::fill_context`].
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

    /// Appends all entries of several batches, or none, as [`NtupleWriter::write_all`].
    ///
    /// # Errors
    /// As there.
    pub fn write_all(&mut self, batches: &[RecordBatch]) -> Result<()> {
        write(&self.shared, &mut self.builder, batches)
    }

    /// Ends the open cluster before it is full. Does nothing if it has no entries.
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
                .get_or_insert_with(|| format!("a fill context was dropped with {entries} unwritten entries"));
        }
    }
}

fn write(shared: &Shared, builder: &mut ClusterBuilder, batches: &[RecordBatch]) -> Result<()> {
    let usable = lock(shared).check_usable();
    let valid = usable.and_then(|()| builder.validate(batches));
    valid.map_err(|e| lock(shared).context(e))?;
    let is_due = lock(shared).is_time_due(builder.stored_bytes());
    let mut append = || {
        builder.append(batches, |cluster| lock(shared).commit(cluster))?;
        // A checkpoint that is due does not wait for the cluster to become full.
        if is_due { builder.flush(|cluster| lock(shared).commit(cluster)) } else { Ok(()) }
    };
    append().map_err(|e| lock(shared).poison(e))
}

fn flush(shared: &Shared, builder: &mut ClusterBuilder) -> Result<()> {
    let usable = lock(shared).check_usable();
    usable.map_err(|e| lock(shared).context(e))?;
    builder.flush(|cluster| lock(shared).commit(cluster)).map_err(|e| lock(shared).poison(e))
}
