//! State that all contexts of an ntuple share: its metadata and the committed clusters.

mod late;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tupelo_core::pool;
use tupelo_format::compression::{self, Compression};
use tupelo_format::container::AnchorLinks;
use tupelo_format::descriptor::Descriptor;
use tupelo_format::envelope::{
    AttributeSetRecord, ClusterGroupRecord, ClusterSummary, ColumnPages, EnvelopeType, FeatureFlags, Footer, Header,
    SchemaRecords,
};
use tupelo_format::locator::EnvelopeLink;
use tupelo_pages::encode::StoredColumn;
use tupelo_pages::sink::{PageSink, Stored, name_of};
use tupelo_schema::schema::Schema;

use super::cluster_builder::{self, ClusterBuilder, WriteProgress};
use super::groups::{self, Groups, Listed};
use super::records::{AddedFields, Mark, Model, check_name};
use super::sealed::{ClusterPages, FullCluster};
use super::{WriteOptions, reopen};
use crate::reader::{METADATA_SET, Ntuple};
use crate::{Error, Result};

/// Pages after which a cluster group is closed, which limits the size of page lists.
const GROUP_PAGES: usize = 1 << 20;
/// Automatic checkpoints are made whenever they are due until their own records take this many bytes: 64 KiB. After that,
/// the records of all checkpoints together never take more bytes than the data.
const FREE_CHECKPOINT_BYTES: u64 = 64 << 10;
/// The format version that is written, as by ROOT 6.40.
pub(super) const FORMAT_VERSION: [u16; 4] = [1, 0, 2, 0];
/// Version of the attribute schema (format specification, "Linked Attribute Sets").
const ATTRIBUTE_SCHEMA: (u16, u16) = (1, 0);

/// Where the anchor of an ntuple is stored.
#[derive(Debug, Clone)]
pub(super) enum AnchorPlace {
    /// In the file's directories, under this path.
    Listed(String),
    /// Only in the footer of the ntuple to which the attribute set of this name belongs.
    AttributeSet(String),
}

/// An attribute set to which the footer links.
pub(super) trait LinkedSet: fmt::Debug + Send {
    /// Writes pending data for an ntuple of this many entries. If the set has changed, returns its links and the
    /// records that only this state uses; records that no state uses any more are added to `old`.
    fn write(
        &mut self,
        sink: &Arc<dyn PageSink>,
        entries: u64,
        old: &mut Vec<Stored>,
    ) -> Result<Option<(AnchorLinks, Vec<Stored>)>>;

    /// Ends the set together with its ntuple.
    fn end(&mut self);
}

/// A set shared by its own writer and that of its ntuple.
pub(super) type SharedSet = Arc<Mutex<dyn LinkedSet>>;

/// One ntuple being written.
#[derive(Debug)]
pub(super) struct Committer {
    sink: Arc<dyn PageSink>,
    place: AnchorPlace,
    pub(super) options: WriteOptions,
    pub(super) model: Model,
    header: Header,
    header_link: EnvelopeLink,
    header_checksum: u64,
    /// The content of the last footer, from which the next one is made.
    footer: Footer,
    format_version: [u16; 4],
    /// The index of the next element of each physical column.
    next_elements: Vec<u64>,
    /// Clusters of the open group.
    clusters: Vec<Listed>,
    /// The groups that the footer lists.
    groups: Groups,
    group_pages: usize,
    /// Records that the next state does not use, such as the last footer.
    superseded: Vec<Stored>,
    /// For each attribute set, the records that its next state supersedes.
    set_records: HashMap<String, Vec<Stored>>,
    pub(super) sets: Vec<(String, SharedSet)>,
    /// The set of the ntuple's metadata.
    pub(super) metadata: Option<SharedSet>,
    progress: WriteProgress,
    checkpoint: LastCheckpoint,
    pub(super) has_checkpoints: bool,
    /// Contexts of parallel filling that are not finished.
    pub(super) contexts: usize,
    /// Why the ntuple is poisoned: nothing more may be published.
    pub(super) poisoned: Option<String>,
    /// Whether there are changes since the last published state.
    is_changed: bool,
    is_finished: bool,
}

/// The progress at the last checkpoint.
#[derive(Debug)]
struct LastCheckpoint {
    clusters: u64,
    stored_bytes: u64,
    at: Instant,
    /// Bytes of its records: page list, footer, directories.
    own_bytes: u64,
    /// The same for all checkpoints of this writer.
    all_bytes: u64,
}

impl Committer {
    /// Begins a new ntuple and writes its header.
    pub(super) fn create(
        sink: Arc<dyn PageSink>,
        place: AnchorPlace,
        schema: &Schema,
        options: WriteOptions,
    ) -> Result<(Self, ClusterBuilder)> {
        options.check()?;
        let name = match &place {
            AnchorPlace::Listed(path) => name_of(path),
            AnchorPlace::AttributeSet(name) => name,
        };
        check_name(name)?;
        if name.contains(';') {
            return Err(Error::invalid_argument(format!(
                "the name '{name}' contains ';', which ROOT reserves for cycles"
            )));
        }
        let mut model = Model::default();
        let mut added = model.add(schema, &options, 0)?;
        let builder =
            ClusterBuilder::new(Arc::clone(&sink), added.fields, std::mem::take(&mut added.columns), &options);
        added.records.extra_type_info.clone_from(&options.extra_type_info);
        let header = Header {
            feature_flags: FeatureFlags::default(),
            name: name.to_owned(),
            description: options.description().to_owned(),
            writer: concat!("Tupelo ", env!("CARGO_PKG_VERSION")).to_owned(),
            schema: added.records,
        };
        let (envelope, header_checksum) = header.write();
        let footer = Footer { header_checksum, ..Footer::default() };
        check_readable(&header, header_checksum, &footer)?;
        if let AnchorPlace::Listed(path) = &place {
            sink.begin(path, options.description(), None)?;
        }
        let header_link = put_envelope(&*sink, EnvelopeType::Header, options.compression, envelope)?;
        let next_elements = added.first_elements;
        let model = (model, next_elements);
        let mut committer = Self::new(sink, place, options, model, (header, header_link), footer);
        committer.is_changed = true;
        Ok((committer, builder))
    }

    /// Continues an ntuple that was finished; `cycle` is that of its anchor.
    pub(super) fn reopen(
        sink: Arc<dyn PageSink>,
        place: AnchorPlace,
        ntuple: &Ntuple,
        cycle: u16,
        mut options: WriteOptions,
    ) -> Result<(Self, ClusterBuilder)> {
        options.check()?;
        let old = reopen::reopen(ntuple, &options)?;
        ntuple.description().clone_into(&mut options.description);
        if let AnchorPlace::Listed(path) = &place {
            sink.begin(path, &options.description, Some(cycle))?;
        }
        let builder = ClusterBuilder::new(Arc::clone(&sink), old.fields, old.columns, &options);
        let mut committer = Self::new(sink, place, options, (old.model, old.next_elements), old.header, old.footer);
        let version = ntuple.format_version();
        let version = [version.epoch, version.major, version.minor, version.patch];
        committer.format_version = committer.format_version.max(version);
        committer.progress.entries = ntuple.entries();
        committer.progress.entries_before = ntuple.entries();
        committer.progress.clusters = ntuple.clusters();
        committer.checkpoint.clusters = committer.progress.clusters;
        committer.superseded.push(Stored::Envelope(old.footer_blob));
        committer.groups = Groups::existing(ntuple, committer.footer.cluster_groups.len());
        Ok((committer, builder))
    }

    fn new(
        sink: Arc<dyn PageSink>,
        place: AnchorPlace,
        options: WriteOptions,
        (model, next_elements): (Model, Vec<u64>),
        (header, header_link): (Header, EnvelopeLink),
        footer: Footer,
    ) -> Self {
        Self {
            has_checkpoints: sink.has_checkpoints(),
            sink,
            place,
            options,
            model,
            header,
            header_link,
            header_checksum: footer.header_checksum,
            footer,
            format_version: FORMAT_VERSION,
            next_elements,
            clusters: Vec::new(),
            groups: Groups::default(),
            group_pages: 0,
            superseded: Vec::new(),
            set_records: HashMap::new(),
            sets: Vec::new(),
            metadata: None,
            progress: WriteProgress::default(),
            checkpoint: LastCheckpoint { clusters: 0, stored_bytes: 0, at: Instant::now(), own_bytes: 0, all_bytes: 0 },
            contexts: 0,
            poisoned: None,
            is_changed: false,
            is_finished: false,
        }
    }

    pub(super) fn sink(&self) -> &Arc<dyn PageSink> {
        &self.sink
    }

    pub(super) fn progress(&self) -> WriteProgress {
        self.progress
    }

    /// Adds fields after `entries` entries: top-level ones, or members of the untyped record of a path.
    pub(super) fn extend(&mut self, schema: &Schema, path: Option<&str>, entries: u64) -> Result<AddedFields> {
        if self.contexts > 0 {
            return Err(Error::invalid_argument(format!(
                "cannot add fields while {} fill contexts write their own clusters; finish them first",
                self.contexts
            )));
        }
        // Encodings and compression of single fields refer to the fields of the beginning.
        let options = self.options.clone().without_fields();
        let Some(path) = path else { return self.extend_top(schema, &options, entries) };
        let mut model = self.model.clone();
        let mut added = model.add_members(path, schema, &options, entries)?;
        let mut footer = self.footer.clone();
        append(&mut footer.extension, std::mem::take(&mut added.records));
        check_readable(&self.header, self.header_checksum, &footer)?;
        (self.model, self.footer, self.is_changed) = (model, footer, true);
        self.next_elements.extend_from_slice(&added.first_elements);
        Ok(added)
    }

    /// Adds top-level fields at a cost that does not depend on the number of existing fields: an ntuple may get thousands,
    /// one call at a time.
    fn extend_top(&mut self, schema: &Schema, options: &WriteOptions, entries: u64) -> Result<AddedFields> {
        let mark = self.model.mark();
        let mut added = self.model.add(schema, options, entries)?;
        if let Err(error) = self.check_added(&added.records, &mark) {
            self.model.roll_back(&mark, &added.paths);
            return Err(error);
        }
        append(&mut self.footer.extension, std::mem::take(&mut added.records));
        self.is_changed = true;
        self.next_elements.extend_from_slice(&added.first_elements);
        Ok(added)
    }

    /// Checks that new top-level fields can be read. Projected fields are checked together with all others, stored ones
    /// alone: the only rule about two stored fields is that of unique names, which was checked before.
    fn check_added(&self, records: &SchemaRecords, mark: &Mark) -> Result<()> {
        if records.fields.iter().all(|field| field.source.is_none()) {
            let header = Header { name: self.header.name.clone(), ..Header::default() };
            let footer = Footer {
                header_checksum: self.header_checksum,
                extension: mark.renumber(records),
                ..Footer::default()
            };
            return check_readable(&header, self.header_checksum, &footer);
        }
        let mut footer = self.footer.clone();
        append(&mut footer.extension, records.clone());
        check_readable(&self.header, self.header_checksum, &footer)
    }

    /// Commits a cluster, and makes a checkpoint if one is due.
    pub(super) fn commit(&mut self, cluster: FullCluster) -> Result<WriteProgress> {
        self.check_usable()?;
        let physical = self.model.physical(&cluster.pages.representations())?;
        let stored = match cluster.pages {
            ClusterPages::Stored(columns) => columns,
            ClusterPages::Sealed(columns) => {
                cluster_builder::store(&*self.sink, self.progress.clusters, &physical, &columns)?
            }
        };
        self.is_changed = true;
        let elements: Vec<u64> = stored.iter().map(StoredColumn::elements).collect();
        let mut columns = vec![ColumnPages::suppressed(); self.model.columns.len()];
        for (StoredColumn { pages, compression, .. }, place) in stored.into_iter().zip(physical) {
            self.group_pages += pages.len();
            let first_element = self.next_elements.get(place).copied();
            if let Some(column) = columns.get_mut(place) {
                *column = ColumnPages { pages, first_element, compression };
            }
        }
        // All representations count the elements, in whichever they are stored.
        for (column, next_element) in self.model.columns.iter().zip(&mut self.next_elements) {
            *next_element += column.and_then(|column| elements.get(column.writer)).copied().unwrap_or(0);
        }
        let summary = ClusterSummary { first_entry: self.progress.entries, entries: cluster.entries, flags: 0 };
        self.clusters.push((summary, columns));
        self.progress.entries += cluster.entries;
        self.progress.clusters += 1;
        self.progress.unpacked_bytes += cluster.unpacked_bytes;
        self.progress.stored_bytes += cluster.stored_bytes;
        if self.group_pages >= GROUP_PAGES {
            self.commit_group()?;
        }
        if self.is_checkpoint_due() {
            self.make_checkpoint()?;
        }
        Ok(self.progress)
    }

    /// Writes the page list of the open group, merged with earlier groups if there are many.
    fn commit_group(&mut self) -> Result<()> {
        if self.clusters.is_empty() {
            return Ok(());
        }
        let new = std::mem::take(&mut self.clusters);
        self.group_pages = 0;
        let mut envelope = groups::write(self.header_checksum, &new);
        let groups = &mut self.footer.cluster_groups;
        let (kept, clusters) = self.groups.merge(groups, new, envelope.len() as u64)?;
        if kept < groups.len() {
            envelope = groups::write(self.header_checksum, &clusters);
        }
        for merged in groups.drain(kept..) {
            self.superseded.push(Stored::Envelope(merged.page_list.locator));
        }
        let list_bytes = envelope.len() as u64;
        groups.push(ClusterGroupRecord {
            min_entry: clusters.first().map_or(0, |(summary, _)| summary.first_entry),
            entry_span: clusters.iter().map(|(summary, _)| summary.entries).sum(),
            clusters: u32::try_from(clusters.len()).map_err(|_| Error::limit("more than 2^32 clusters"))?,
            page_list: put_envelope(&*self.sink, EnvelopeType::PageList, self.options.compression, envelope)?,
        });
        self.groups.push(clusters, list_bytes);
        Ok(())
    }

    /// Whether the options ask for a checkpoint now.
    fn is_checkpoint_due(&self) -> bool {
        let every = &self.options.checkpoint;
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let is_due = every.clusters.is_some_and(|n| since(self.progress.clusters, self.checkpoint.clusters) >= n)
            || every.bytes.is_some_and(|n| since(self.progress.stored_bytes, self.checkpoint.stored_bytes) >= n);
        is_due && self.is_checkpoint_worth(0) || self.is_time_due(0)
    }

    /// Whether a checkpoint is due by time; `open_bytes` is the size of the open cluster.
    pub(super) fn is_time_due(&self, open_bytes: u64) -> bool {
        let is_due = self.options.checkpoint.time.is_some_and(|time| self.checkpoint.at.elapsed() >= time);
        is_due && self.is_checkpoint_worth(open_bytes)
    }

    /// Whether enough was written for another checkpoint. Its records are about as large as those of the last one and are
    /// never overwritten: checkpoints after each small cluster would take more space than the data.
    fn is_checkpoint_worth(&self, open_bytes: u64) -> bool {
        let LastCheckpoint { own_bytes, all_bytes, .. } = self.checkpoint;
        let data_bytes = self.progress.stored_bytes.saturating_add(open_bytes).max(FREE_CHECKPOINT_BYTES);
        self.has_checkpoints
            && matches!(self.place, AnchorPlace::Listed(_))
            && all_bytes.saturating_add(own_bytes) <= data_bytes
    }

    /// Makes all committed clusters readable and durable.
    pub(super) fn make_checkpoint(&mut self) -> Result<()> {
        let before = self.sink.position()?;
        self.publish()?;
        self.sink.checkpoint()?;
        let own_bytes = self.sink.position()?.saturating_sub(before);
        self.checkpoint = LastCheckpoint {
            clusters: self.progress.clusters,
            stored_bytes: self.progress.stored_bytes,
            at: Instant::now(),
            own_bytes,
            all_bytes: self.checkpoint.all_bytes.saturating_add(own_bytes),
        };
        Ok(())
    }

    /// Writes page list, footer and anchor, so that the file's directories refer to all committed clusters. Does nothing
    /// if they already do.
    pub(super) fn publish(&mut self) -> Result<()> {
        self.check_usable()?;
        let mut old = Vec::new();
        self.put_sets(&mut old)?;
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        old.append(&mut self.superseded);
        let links = self.put_footer()?;
        if let AnchorPlace::Listed(path) = &self.place {
            self.sink.publish(path, self.options.description(), &links)?;
        }
        // Only now: a checkpoint of another ntuple must not free records that this one still refers to.
        old.into_iter().for_each(|stored| self.sink.release(stored));
        Ok(())
    }

    /// Publishes everything and ends the ntuple.
    pub(super) fn finish(&mut self) -> Result<WriteProgress> {
        self.publish()?;
        if let AnchorPlace::Listed(path) = &self.place {
            self.sink.end(path);
        }
        self.end();
        for (_, set) in &self.sets {
            set.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
        Ok(self.progress)
    }

    /// Abandons the ntuple and its attribute sets.
    pub(super) fn abandon(&mut self) -> Result<()> {
        self.poisoned.get_or_insert_with(|| "it was abandoned".to_owned());
        for (_, set) in &self.sets {
            set.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
        match &self.place {
            AnchorPlace::Listed(path) => self.sink.abandon(path),
            AnchorPlace::AttributeSet(_) => Ok(()),
        }
    }

    /// Refuses further data.
    pub(super) fn end(&mut self) {
        self.is_finished = true;
    }

    /// Returns an error while fill contexts may still write clusters.
    pub(super) fn check_contexts(&self) -> Result<()> {
        match self.contexts {
            0 => Ok(()),
            contexts => Err(Error::invalid_argument(format!("{contexts} fill contexts are not finished"))),
        }
    }

    fn put_sets(&mut self, old: &mut Vec<Stored>) -> Result<()> {
        let metadata = self.metadata.iter().map(|set| (METADATA_SET.to_owned(), Arc::clone(set)));
        let sets: Vec<(String, SharedSet)> = self.sets.iter().cloned().chain(metadata).collect();
        for (name, set) in sets {
            let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((links, stored)) = set.write(&self.sink, self.progress.entries, old)? {
                self.put_set(&name, &links, stored, old)?;
            }
        }
        Ok(())
    }

    /// The pages of the open group: those of each cluster are stored together.
    pub(super) fn stored_pages(&self) -> Vec<Stored> {
        let pages_of = |columns: &[ColumnPages]| {
            let mut pages = columns.iter().flat_map(|column| &column.pages);
            let first = *pages.next()?;
            Some(Stored::Pages(first, pages.last().copied().unwrap_or(first)))
        };
        self.clusters.iter().filter_map(|(_, columns)| pages_of(columns)).collect()
    }

    /// Header, page lists, and superseded records including the last footer.
    pub(super) fn stored_envelopes(&mut self) -> Vec<Stored> {
        let lists = self.footer.cluster_groups.iter().map(|group| group.page_list.locator);
        let mut stored: Vec<_> = lists.chain([self.header_link.locator]).map(Stored::Envelope).collect();
        stored.append(&mut self.superseded);
        stored
    }

    /// Writes the anchor of an attribute set and replaces the link to it. `stored` are the records that only this state of
    /// the set uses.
    fn put_set(
        &mut self,
        name: &str,
        links: &AnchorLinks,
        mut stored: Vec<Stored>,
        old: &mut Vec<Stored>,
    ) -> Result<()> {
        let (anchor, anchor_length) = self.sink.put_anchor(name, links)?;
        stored.push(Stored::Anchor(anchor));
        old.extend(self.set_records.insert(name.to_owned(), stored).unwrap_or_default());
        let record = AttributeSetRecord {
            schema_major: ATTRIBUTE_SCHEMA.0,
            schema_minor: ATTRIBUTE_SCHEMA.1,
            anchor_length,
            anchor,
            name: name.to_owned(),
        };
        match self.footer.attribute_sets.iter_mut().find(|set| set.name == name) {
            Some(set) => *set = record,
            None => self.footer.attribute_sets.push(record),
        }
        self.is_changed = true;
        Ok(())
    }

    /// Takes the records that only the last state uses; the caller releases them.
    pub(super) fn take_superseded(&mut self) -> Vec<Stored> {
        std::mem::take(&mut self.superseded)
    }

    /// Writes page list and footer, and returns the links to them.
    pub(super) fn put_footer(&mut self) -> Result<AnchorLinks> {
        self.commit_group()?;
        let footer = put_envelope(&*self.sink, EnvelopeType::Footer, self.options.compression, self.footer.write())?;
        self.superseded.push(Stored::Envelope(footer.locator));
        Ok(AnchorLinks { version: self.format_version, header: self.header_link, footer })
    }

    /// Returns an error if data could never become visible.
    pub(super) fn check_usable(&self) -> Result<()> {
        match &self.poisoned {
            None if self.is_finished => Err(Error::invalid_argument("it is finished; nothing more can be written")),
            None => self.sink.check_open(),
            Some(why) => {
                self.sink.reported();
                Err(Error::invalid_argument(format!("{why}; nothing more can be written")))
            }
        }
    }

    /// Marks the ntuple as poisoned by an error, and adds its path to the error.
    #[cold]
    pub(super) fn poison(&mut self, error: Error) -> Error {
        self.poisoned.get_or_insert_with(|| "an earlier write failed".to_owned());
        self.sink.reported();
        self.context(error)
    }

    /// Adds the path of the ntuple to an error that changed nothing.
    pub(super) fn context(&self, error: Error) -> Error {
        let error = match &self.place {
            AnchorPlace::Listed(path) => error.in_object("ntuple", path),
            AnchorPlace::AttributeSet(name) => error.in_object("attribute set", name),
        };
        error.in_file(self.sink.name())
    }
}

fn append(records: &mut SchemaRecords, added: SchemaRecords) {
    records.fields.extend(added.fields);
    records.columns.extend(added.columns);
    records.alias_columns.extend(added.alias_columns);
}

/// Refuses what the reader would refuse, so that reader and writer share one set of rules.
fn check_readable(header: &Header, checksum: u64, footer: &Footer) -> Result<()> {
    let descriptor = Descriptor::new(header.clone(), checksum, footer.clone());
    let schema = descriptor.map_err(Error::from).and_then(|descriptor| Schema::from_descriptor(&descriptor));
    schema.map(|_| ()).map_err(|error| Error::invalid_argument(error.to_string()))
}

/// Compresses and stores an envelope.
pub(super) fn put_envelope(
    sink: &dyn PageSink,
    kind: EnvelopeType,
    compression: Compression,
    envelope: Vec<u8>,
) -> Result<EnvelopeLink> {
    let length = envelope.len() as u64;
    let stored = pool::run_detached(length, move || {
        let mut stored = Vec::new();
        compression::compress(compression, &envelope, &mut stored)?;
        Ok(stored)
    })?;
    Ok(EnvelopeLink { length, locator: sink.put_envelope(kind, &stored)? })
}
