//! One open ntuple.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use tupelo_core::pool;
use tupelo_format::compression::Compression;
use tupelo_format::container::Deviation;
use tupelo_format::descriptor::{AttributeSet, ClusterGroup, Descriptor};
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::plan;
use tupelo_pages::plan::ColumnTable;
use tupelo_pages::source::{Cluster, Metadata, Metrics, and_next, may_be_elsewhere};
use tupelo_schema::evolution::{ReadRule, SourceSchema};
use tupelo_schema::schema::{Schema, metadata};

use super::super::skipped::Skipped;
use super::zones::{ZONE_MAPS_SET, Zones};
use super::{Attached, METADATA_SET, Sidecar};
use crate::{Error, Result};

/// Version of the binary format that a writer claims. It is for information: only feature flags decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the specification's words")]
pub struct FormatVersion {
    pub epoch: u16,
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.epoch, self.major, self.minor, self.patch)
    }
}

/// An open ntuple: cheap to clone, usable from many threads.
#[derive(Debug, Clone)]
pub struct Ntuple {
    inner: Arc<Inner>,
    schema: SourceSchema,
}

#[derive(Debug)]
struct Inner {
    source: Metadata,
    path: String,
    warnings: Vec<String>,
    /// The stores of a mirror before this one that could not be read, and why.
    skipped: Vec<String>,
    next: Option<Next>,
    /// Its zone maps, read when a cut needs them.
    zones: OnceLock<Zones>,
    /// Their attribute set.
    zones_set: OnceLock<Ntuple>,
}

/// The same ntuple in the next store of a mirror.
struct Next {
    open: Box<dyn Fn() -> Result<Ntuple> + Send + Sync>,
    /// Set once an earlier store has failed, with the reason.
    ntuple: OnceLock<(Ntuple, String)>,
}

impl Next {
    /// The ntuple that is read instead of `first`, whose store has failed in this way.
    fn get(&self, first: &Ntuple, failure: &dyn fmt::Display) -> Result<&Ntuple> {
        if let Some((ntuple, _)) = self.ntuple.get() {
            return Ok(ntuple);
        }
        let opened = (self.open)()?;
        match opened.has_layout_of(first) {
            true => Ok(&self.ntuple.get_or_init(|| (opened, failure.to_string())).0),
            false => Err(Error::corrupt("its fields, columns or clusters differ")),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("ntuple", &self.ntuple).finish_non_exhaustive()
    }
}

impl Ntuple {
    pub(crate) fn new(source: Metadata, path: &str) -> Result<Self> {
        let schema = Schema::from_descriptor(source.descriptor())?;
        let dropped = |dropped: &tupelo_format::descriptor::Dropped| {
            format!("field '{}' is left out: {}", dropped.field.escape_debug(), dropped.reason)
        };
        let warnings = source.descriptor().dropped().iter().map(dropped).collect();
        // A damaged page list is reported when its entries are read; the ntuple can still be opened.
        let compressed = compression(&source, &schema).ok().flatten().is_none_or(|setting| setting != 0);
        let (name, description) = (source.descriptor().name(), source.descriptor().description());
        let texts = [(metadata::NAME, name), (metadata::DESCRIPTION, description)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = texts.map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
        let schema = SourceSchema::new(schema, compressed, texts);
        Ok(Self {
            inner: Arc::new(Inner {
                source,
                path: path.to_owned(),
                warnings,
                skipped: Vec::new(),
                next: None,
                zones: OnceLock::new(),
                zones_set: OnceLock::new(),
            }),
            schema,
        })
    }

    /// The attribute set with its zone maps, which stays open; `open` opens it.
    pub(in crate::reader) fn zone_maps_set(&self, open: impl FnOnce() -> Result<Self>) -> Result<Self> {
        if let Some(set) = self.inner.zones_set.get() {
            return Ok(set.clone());
        }
        let set = open()?;
        // An ntuple of a mirror belongs to its attribute sets, and would not be dropped.
        if self.inner.next.is_none() {
            let _ = self.inner.zones_set.set(set.clone());
        }
        Ok(set)
    }

    /// Its zone maps.
    pub(crate) fn zone_maps(&self) -> &Zones {
        // Without them, all entries are read.
        self.inner.zones.get_or_init(|| self.read_zones().unwrap_or_default())
    }

    /// The same ntuple, just opened, which is read from the result of `open` once its store does not answer.
    pub(crate) fn with_next(mut self, open: impl Fn() -> Result<Self> + Send + Sync + 'static) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.next = Some(Next { open: Box::new(open), ntuple: OnceLock::new() });
        }
        self
    }

    /// The same ntuple, just opened, after these stores of a mirror could not be read, before any others.
    pub(crate) fn with_skipped(mut self, skipped: &[String]) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.skipped.splice(0..0, skipped.iter().cloned());
        }
        self
    }

    /// The stores of a mirror that could not be read so far, and why: one sentence each.
    pub fn skipped_stores(&self) -> Vec<String> {
        let mut skipped = self.inner.skipped.clone();
        if let Some((ntuple, failure)) = self.inner.next.as_ref().and_then(|next| next.ntuple.get()) {
            skipped.push(format!("using the next store of the mirror: {failure}"));
            skipped.extend(ntuple.skipped_stores());
        }
        skipped
    }

    /// The result of `read` for this ntuple or, if its store does not answer, for the one in the next store of the
    /// mirror.
    pub(crate) fn in_any_store<T>(&self, read: &dyn Fn(&Self) -> Result<T>) -> Result<T> {
        let Some(next) = &self.inner.next else { return read(self) };
        if let Some((ntuple, _)) = next.ntuple.get() {
            return ntuple.in_any_store(read);
        }
        match read(self) {
            Err(error) if may_be_elsewhere(&error) => match next.get(self, &error) {
                Ok(ntuple) => ntuple.in_any_store(read),
                Err(other) => Err(and_next(error, &other)),
            },
            done => done,
        }
    }

    /// Whether another ntuple has the same fields, columns and clusters.
    fn has_layout_of(&self, other: &Self) -> bool {
        let (own, other) = (self.descriptor(), other.descriptor());
        let fields = |it: &Descriptor| Schema::from_descriptor(it).ok();
        let groups = |it: &Descriptor| -> Vec<_> {
            let group = |it: &ClusterGroup| (it.first_entry, it.entries, it.first_cluster, it.clusters);
            it.cluster_groups().iter().map(group).collect()
        };
        own.columns() == other.columns() && groups(own) == groups(other) && fields(own) == fields(other)
    }

    /// Name of the ntuple, without directories.
    pub fn name(&self) -> &str {
        self.descriptor().name()
    }

    /// Path of the ntuple in its file.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// Name of the file.
    pub fn file_name(&self) -> String {
        self.source().store().name()
    }

    /// Free text.
    pub fn description(&self) -> &str {
        self.descriptor().description()
    }

    /// Program that wrote it.
    pub fn writer(&self) -> &str {
        self.descriptor().writer()
    }

    /// Format version that the writer claims.
    pub fn format_version(&self) -> FormatVersion {
        let [epoch, major, minor, patch] = self.source().store().anchor().version;
        FormatVersion { epoch, major, minor, patch }
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.descriptor().entries()
    }

    /// Number of clusters.
    pub fn clusters(&self) -> u64 {
        self.descriptor().clusters()
    }

    /// The entries of each cluster.
    pub(crate) fn cluster_ranges(&self) -> Result<Vec<Range<u64>>> {
        let clusters = self.in_any_store(&|ntuple| ntuple.source().clusters(0..ntuple.entries()));
        Ok(clusters?.iter().map(Cluster::entry_range).collect())
    }

    /// The entries of each cluster group with those of its clusters, unless its page list cannot be read.
    pub(crate) fn listed_clusters(&self) -> impl Iterator<Item = (Range<u64>, Result<Vec<Range<u64>>>)> {
        let groups = self.descriptor().cluster_groups().iter();
        groups.map(|group| {
            let entries = group.first_entry..group.first_entry.saturating_add(group.entries);
            let clusters = self.in_any_store(&|ntuple| ntuple.source().clusters(entries.clone()));
            let clusters = clusters.map(|clusters| clusters.iter().map(Cluster::entry_range).collect());
            (entries, clusters)
        })
    }

    /// An identifier of this state of the file: 16 hexadecimal digits that change when the file is rewritten or
    /// appended to, and are the same for a copy. It is computed from the file header and size and the anchor and footer
    /// of the ntuple; no page is read.
    ///
    /// # Errors
    /// Storage errors.
    pub fn identity(&self) -> Result<String> {
        let identity = self.in_any_store(&|ntuple| ntuple.source().store().identity());
        identity.map(|identity| format!("{identity:016x}")).map_err(|e| self.context(e))
    }

    /// The fields, including those computed by read rules.
    pub fn schema(&self) -> &Schema {
        self.schema.schema()
    }

    pub(in crate::reader) fn source_schema(&self) -> &SourceSchema {
        &self.schema
    }

    /// The same ntuple, whose schema shows the members that rules compute wherever a record of their class occurs. They
    /// are chosen and read like all others; reading one reads only the sources of its rule. Existing rules of the
    /// ntuple are kept. A rule for another version or checksum of a class than those on disk does nothing.
    ///
    /// # Errors
    /// Not found, with near names, for a class that is nowhere on disk, and for a source that a record of the class does
    /// not have; invalid argument for rules that are not complete, and for two that compute the same member of a record.
    pub fn with_rules(&self, rules: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
        let schema = self.schema.with_rules(rules).map_err(|e| self.context(e))?;
        Ok(Self { schema, ..self.clone() })
    }

    /// What this version cannot read: one sentence for each field that is left out.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// The Arrow schema that [`Ntuple::read`] returns for all fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(self.schema.to_arrow(&self.schema().listed()))
    }

    /// The schema with only those encodings that the writer chose, not those that follow from compression.
    pub(crate) fn explicit_encodings(&self, schema: &Schema) -> Schema {
        self.schema.explicit_encodings(schema)
    }

    /// Names of the linked attribute sets.
    pub fn attribute_sets(&self) -> impl Iterator<Item = &str> {
        self.descriptor().attribute_sets().iter().map(|set| set.name.as_str())
    }

    /// Opens an attribute set: a separate ntuple whose fields `_rangeStart` and `_rangeLen` give the entries of this
    /// ntuple that each of its entries refers to, and `_userData` their attributes.
    ///
    /// # Errors
    /// Not found, with near names; corrupt if it cannot be read, or has attribute sets itself, which the format
    /// forbids.
    pub fn attribute_set(&self, name: &str) -> Result<Self> {
        match self.descriptor().attribute_sets().iter().find(|set| set.name == name) {
            Some(set) => self.open_attribute_set(set),
            None => Err(self.context(Error::no_such("attribute set", name, self.attribute_sets()))),
        }
    }

    /// Opens one of the linked attribute sets of the descriptor. Attribute sets have no attribute sets (format
    /// specification, "Linked Attribute Sets"), so a file cannot chain them.
    pub(crate) fn open_attribute_set(&self, set: &AttributeSet) -> Result<Self> {
        let open = |ntuple: &Self| {
            // Its copy in another store has another anchor.
            let copy = ntuple.descriptor().attribute_sets().iter().find(|copy| copy.name == set.name);
            let is_copy = !Arc::ptr_eq(&ntuple.inner, &self.inner);
            let source = ntuple.source().attribute_set(copy.filter(|_| is_copy).unwrap_or(set))?;
            if let Some(nested) = source.descriptor().attribute_sets().first() {
                let nested = nested.name.escape_debug();
                return Err(Error::corrupt(format!("it must not have attribute sets, found '{nested}'")));
            }
            let opened = Self::new(source, &format!("{}@{}", ntuple.path(), set.name))?;
            if ntuple.inner.next.is_none() {
                return Ok(opened);
            }
            let (ntuple, name) = (ntuple.clone(), set.name.clone());
            let no_other = || Error::invalid_argument("no other store contains the ntuple");
            Ok(opened.with_next(move || {
                let next = ntuple.inner.next.as_ref().ok_or_else(no_other)?;
                next.get(&ntuple, &"an attribute set could not be read")?.attribute_set(&name)
            }))
        };
        let opened = self.in_any_store(&open);
        opened.map_err(|e| self.context(e.within(format!("attribute set '{}'", set.name))))
    }

    /// The layouts of classes with which streamer fields are decoded: those of the ntuple itself, and those of the
    /// file around it.
    ///
    /// # Errors
    /// Corrupt if either is damaged, unsupported if it is older than ROOT 3.
    pub fn streamer_infos(&self) -> Result<StreamerInfos> {
        let read = || {
            let mut infos = StreamerInfos::default();
            let own = self.descriptor().extra_type_info().iter();
            for info in own.filter(|info| info.content_id == ExtraTypeInfo::STREAMER_INFO) {
                infos.merge(&StreamerInfos::read(&info.content, 0)?);
            }
            infos.merge(&self.source().store().streamer_infos()?);
            Ok(infos)
        };
        read().map_err(|e: Error| self.context(e.within("streamer info")))
    }

    /// The codec and level of the first column of the first cluster; the default without clusters, and for a setting of
    /// another program that means nothing.
    ///
    /// # Errors
    /// Corrupt where the page lists are damaged; storage errors.
    pub fn compression(&self) -> Result<Compression> {
        let setting = compression(self.source(), self.schema()).map_err(|e| self.context(e))?;
        Ok(setting.and_then(|setting| Compression::from_setting(setting).ok()).unwrap_or(Compression::DEFAULT))
    }

    /// The read statistics of the file so far, including its other ntuples and attribute sets, or `None` if they are
    /// not enabled with [`with_metrics`](crate::OpenOptions::with_metrics).
    pub fn metrics(&self) -> Option<Metrics> {
        self.source().session().counters().read(pool::threads())
    }

    pub(crate) fn source(&self) -> &Metadata {
        &self.inner.source
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.inner.source.descriptor()
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.schema.is_compressed()
    }

    /// Prefixes an error with file and ntuple.
    pub(crate) fn context(&self, error: Error) -> Error {
        let error = self.source().store().unless_changed(error);
        error.in_object("ntuple", self.path()).in_file(self.file_name())
    }
}

impl Sidecar for Ntuple {
    fn description(&self) -> &str {
        self.description()
    }

    fn left_out(&self) -> Vec<Skipped> {
        let dropped = self.descriptor().dropped().iter();
        dropped.map(|dropped| Skipped::new(&dropped.field, dropped.reason.clone())).collect()
    }

    fn deviations(&self) -> Vec<Deviation> {
        self.source().session().deviations().list()
    }

    fn warnings(&self) -> Vec<String> {
        [self.warnings(), &self.skipped_stores()].concat()
    }

    fn compression(&self) -> Result<Option<Compression>> {
        self.compression().map(Some)
    }

    fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        self.descriptor().extra_type_info()
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        self.source().store().streamer_infos().map_err(|e| self.context(e))
    }

    fn attached(&self, _: usize) -> Result<Attached> {
        let metadata = self.own_metadata()?;
        let names = self.attribute_sets().filter(|&name| metadata.is_none() || name != METADATA_SET);
        let mut sets =
            names.map(|name| Ok((name.to_owned(), self.attribute_set(name)?))).collect::<Result<Vec<_>>>()?;
        // Zone maps are of these pages.
        sets.retain(|(name, set)| name != ZONE_MAPS_SET || !set.has_zones());
        let (streamer_infos, metadata) = (Sidecar::streamer_infos(self)?, metadata.unwrap_or_default());
        Ok(Attached { ntuple: Some(self.clone()), streamer_infos, metadata, sets, ..Attached::default() })
    }
}

/// Compression setting of the first column of the first cluster: ROOT has one setting for a whole ntuple.
fn compression(source: &Metadata, schema: &Schema) -> Result<Option<u32>> {
    let first_entries = 0..source.descriptor().entries().min(1);
    let clusters = source.clusters(first_entries)?;
    let columns = schema.fields.iter().flat_map(plan::columns);
    match (clusters.first(), columns.into_iter().next()) {
        (Some(cluster), Some(column)) => {
            let memory = source.request_memory();
            ColumnTable::new(source, &memory).compression(column.field, column.k, cluster).map(Some)
        }
        _ => Ok(None),
    }
}
