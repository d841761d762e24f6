//! One open tree.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Range, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};
use tupelo_format::container::Deviation;
use tupelo_format::descriptor::FieldId;
use tupelo_format::object::Value;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::decode::{basket_objects, branches_of, decode_baskets, estimated_bytes, unreadable};
use tupelo_pages::plan::{EntrySet, truncated};
use tupelo_pages::source::{Metrics, TreeCache, TreeSource};
use tupelo_schema::evolution::{ReadRule, SourceSchema, binary_type};
use tupelo_schema::schema::arrow::data_type;
use tupelo_schema::schema::{Field, Schema, metadata};
use tupelo_ttree::ValueLayout;
use tupelo_ttree::fields::{Field as TreeField, FieldKind};
use tupelo_ttree::tree::Stored;

use super::super::explain::{ExplainedColumn, Explanation};
use super::super::location::Location;
use super::super::skipped::Skipped;
use super::{Attached, Cost, DecodeOptions, EntrySource, SAMPLED_CLUSTERS, Sidecar, TreeExtras, each_once};
use crate::{Error, Result};

/// An open `TTree`: cheap to clone, usable from many threads.
///
/// Its top-level branches are fields. An object or a collection that is split over branches is one field again, so that
/// `hits.pos.x` is the name of a branch and of a member at the same time.
///
/// # How branches become Arrow
/// By C++ type, like the fields of an ntuple. Arrays with a counter (`x[n]/F`) and `std::vector` are
/// `LargeList`, fixed arrays `FixedSizeList`, several leaves `Struct`, `char*`, `TString` and `std::string`
/// `LargeUtf8`. Branches of whole objects of classes that only the objects themselves name (pointers) are left as
/// bytes; branches that cannot be read at all are in [`Tree::refused`].
#[derive(Debug, Clone)]
pub struct Tree {
    source: Arc<TreeSource>,
    path: Arc<str>,
    schema: SourceSchema,
    cache: TreeCache,
}

impl Tree {
    pub(crate) fn new(source: TreeSource, path: &str) -> Self {
        let texts = [(metadata::NAME, &source.tree().name), (metadata::DESCRIPTION, &source.tree().title)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts: HashMap<String, String> = texts.map(|(key, text)| (key.to_owned(), text.clone())).collect();
        let schema = SourceSchema::new(Schema::from_tree(source.fields()), true, texts);
        let source = Arc::new(source);
        let (named, counted) = (Arc::clone(&source), Arc::clone(&source));
        let schema = schema.of_branches(move || own_names(&named), move || counters(&counted));
        Self { source, path: path.into(), schema, cache: TreeCache::default() }
    }

    /// Name of the tree, without directories.
    pub fn name(&self) -> &str {
        &self.source.tree().name
    }

    /// Path of the tree in the file, with the directories.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Path or URL of the file.
    pub fn file_name(&self) -> String {
        self.source.file().source().to_string()
    }

    /// Free text.
    pub fn description(&self) -> &str {
        &self.source.tree().title
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.source.tree().entries
    }

    /// Number of clusters: ranges of entries that were flushed together.
    pub fn clusters(&self) -> u64 {
        self.source.cluster_count() as u64
    }

    /// The fields.
    pub fn schema(&self) -> &Schema {
        self.schema.schema()
    }

    /// The Arrow schema of all listed fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        self.schema.to_arrow(&self.schema().listed()).into()
    }

    /// The size of each top-level field in the file, in the order of the schema.
    pub fn sizes(&self) -> Vec<TreeSizes> {
        self.source.fields().iter().map(|field| self.sizes_of(field)).collect()
    }

    /// The size of each field with separate branches in the file, with the fields below it, by dotted path.
    pub fn paths_with_sizes(&self) -> Vec<(String, TreeSizes)> {
        let mut found = Vec::new();
        let mut fields: Vec<(String, &TreeField)> =
            self.source.fields().iter().rev().map(|field| (field.name.clone(), field)).collect();
        while let Some((path, field)) = fields.pop() {
            if let FieldKind::Record(members) | FieldKind::Collection { items: members, .. } = &field.kind {
                fields.extend(members.iter().rev().map(|member| (format!("{path}.{}", member.name), member)));
            }
            found.push((path, self.sizes_of(field)));
        }
        found
    }

    fn sizes_of(&self, field: &TreeField) -> TreeSizes {
        let mut branches = Vec::new();
        branches_of(field, &field.name, &mut branches);
        let mut sizes = TreeSizes::default();
        let known = branches.iter().filter_map(|(_, branch, _)| self.metadata().branches.get(*branch));
        known.for_each(|branch| sizes.add(branch, |stored| self.stored_bytes(stored)));
        sizes
    }

    /// Bytes of a basket in the file. Baskets in the record of the tree are compressed with it: their share counts.
    pub(crate) fn stored_bytes(&self, basket: &Stored) -> u64 {
        let (stored, record) = (self.source.stored_record_bytes(), self.source.record_bytes().max(1));
        match basket {
            Stored::InFile { bytes, .. } => u64::from(*bytes),
            Stored::Embedded(bytes) => {
                (bytes.len() as u128 * u128::from(stored.min(record)) / u128::from(record)) as u64
            }
        }
    }

    /// Bytes of the record with the metadata of the tree, before compression.
    pub fn record_bytes(&self) -> u64 {
        self.source.record_bytes()
    }

    /// The entries of each cluster.
    pub fn cluster_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.source.clusters(0..self.entries()).cloned()
    }

    /// The branches, leaves and baskets.
    pub fn metadata(&self) -> &tupelo_ttree::Tree {
        self.source.tree()
    }

    /// The entries of a field as objects, decoded by the streamer info: of branches that have no columns, and of any
    /// other whole object or member. Objects that cannot be decoded are a
    /// [`Value::Opaque`](tupelo_format::object::Value::Opaque) with the reason.
    ///
    /// # Errors
    /// Not found, with near names, for a path without a branch with values; corrupt if baskets are damaged.
    pub fn objects(&self, path: &str, entries: impl RangeBounds<u64>) -> Result<Vec<Value>> {
        let read = || {
            let mut branches = Vec::new();
            self.source.fields().iter().for_each(|field| branches_of(field, &field.name, &mut branches));
            let own = self.schema.path_of(path).unwrap_or(path);
            let found = branches.iter().find(|(known, ..)| known == path || known == own);
            let Some((_, branch, _)) = found else {
                return Err(Error::no_such("branch", path, branches.iter().map(|(known, ..)| known.as_str())));
            };
            let entries = truncated(entries, self.entries());
            basket_objects(&self.source, &self.source.request_memory(), *branch, entries)
        };
        read().map_err(|e| EntrySource::context(self, e))
    }

    /// The names of branches that are not those of their fields, such as `hits.` and `x[3]`, with the dotted paths of the
    /// fields: where a field is selected, these names are taken too.
    pub fn own_names(&self) -> HashMap<String, String> {
        own_names(&self.source)
    }

    /// The branches with values: their numbers in the metadata, and the dotted paths of their fields.
    pub fn branches(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for field in self.source.fields() {
            branches_of(field, &field.name, &mut found);
        }
        found.into_iter().map(|(path, branch, _)| (branch, path)).collect()
    }

    /// The friends of the tree, each with its alias. A friend without a file is in the same one; a relative path is one in the
    /// folder of the file, if there is such a file, and otherwise one from here, as in ROOT.
    pub fn friends(&self) -> Vec<(String, Location)> {
        let own = self.file_name();
        let place = |[alias, file, tree]: &[String; 3]| {
            let beside = Path::new(&own).parent().map(|folder| folder.join(file)).filter(|path| path.is_file());
            let file = match (file.is_empty(), beside) {
                (true, _) => own.clone(),
                (false, Some(path)) => path.to_string_lossy().into_owned(),
                (false, None) => file.clone(),
            };
            let tree = if tree.is_empty() { alias } else { tree };
            (alias.clone(), Location { file, object: Some(tree.clone()) })
        };
        self.metadata().friends.iter().map(place).collect()
    }

    /// Branches that are not fields: their path, names joined by slashes, and why they cannot be read.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        self.source.refused().iter().map(|refused| (refused.path.as_str(), refused.reason.as_str()))
    }

    /// The layouts of classes that the file describes.
    pub fn streamer_infos(&self) -> &StreamerInfos {
        self.source.infos()
    }

    /// The same tree with read rules; see [`Ntuple::with_rules`](crate::Ntuple::with_rules).
    ///
    /// # Errors
    /// As [`Ntuple::with_rules`](crate::Ntuple::with_rules).
    pub fn with_rules(&self, rules: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
        let schema = self.schema.with_rules(rules).map_err(|e| EntrySource::context(self, e))?;
        Ok(Self { schema, ..self.clone() })
    }

    /// The same tree, whose baskets are fetched in another way.
    #[must_use]
    pub fn with_cache(&self, cache: TreeCache) -> Self {
        Self { cache, ..self.clone() }
    }

    /// Read statistics of everything that is opened through the same file, if they are collected.
    pub fn metrics(&self) -> Option<Metrics> {
        self.source.session().counters().read(tupelo_core::pool::threads())
    }

    /// An identifier of this state of the file: 16 hexadecimal digits that change when the tree is written again. It is
    /// computed from the size of the file and the record of the tree.
    ///
    /// # Errors
    /// None; see [`Ntuple::identity`](crate::Ntuple::identity).
    pub fn identity(&self) -> Result<String> {
        Ok(format!("{:016x}", self.source.identity()))
    }

    /// Prefixes an error with file and tree.
    pub(crate) fn context(&self, error: Error) -> Error {
        let error = self.source.unless_changed(error);
        error.in_object("tree", &self.path).in_file(self.file_name())
    }

    pub(crate) fn source(&self) -> &TreeSource {
        &self.source
    }

    /// The field of the tree that a field of the schema stands for.
    pub(crate) fn tree_field(&self, field: &Field) -> Result<&TreeField> {
        let index = field.id.map(FieldId::index);
        let found = index.and_then(|index| self.source.fields().get(index));
        found.ok_or_else(|| Error::not_found(format!("field '{}' is not stored", field.name)))
    }
}

/// The names of branches that are not the paths of their fields.
fn own_names(source: &TreeSource) -> HashMap<String, String> {
    let branches = &source.tree().branches;
    let (mut names, mut seen) = (HashMap::new(), vec![false; branches.len()]);
    for field in source.fields() {
        let mut leaves = Vec::new();
        branches_of(field, &field.name, &mut leaves);
        for (path, branch, _) in &leaves {
            let (mut branch, mut path) = (Some(*branch), Some(path.as_str()));
            while let Some((index, at)) = branch.and_then(|index| Some((index, branches.get(index)?))) {
                if std::mem::replace(&mut seen[index], true) {
                    break;
                }
                // A record may have no branch of its own.
                let own = path.filter(|_| at.parent.is_some()).unwrap_or(&field.name);
                // Of two branches with one name, the second has another path.
                if own != at.name {
                    names.insert(at.name.clone(), own.to_owned());
                }
                branch = at.parent;
                path = path.and_then(|path| path.rsplit_once('.')).map(|(parent, _)| parent);
            }
        }
    }
    names
}

/// The total size of branches in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeSizes {
    /// Number of branches with values.
    pub branches: u64,
    /// Number of baskets.
    pub baskets: u64,
    /// Bytes of the baskets in the file; of those in the record of the tree, which is compressed as a whole, their share.
    pub stored_bytes: u64,
    /// Bytes of the baskets before compression.
    pub unpacked_bytes: u64,
    /// ROOT's numbers of the compression settings.
    pub compression: BTreeSet<u32>,
}

impl TreeSizes {
    /// Adds a branch. `stored_bytes` gives the bytes of a basket in the file.
    fn add(&mut self, branch: &tupelo_ttree::Branch, stored_bytes: impl Fn(&Stored) -> u64) {
        self.branches += 1;
        self.baskets += branch.baskets.len() as u64;
        let stored = branch.baskets.iter().map(|basket| stored_bytes(&basket.stored)).fold(0, u64::saturating_add);
        self.unpacked_bytes = self.unpacked_bytes.saturating_add(branch.bytes[0]);
        self.stored_bytes = self.stored_bytes.saturating_add(stored);
        self.compression.extend(u32::try_from(branch.compression));
    }
}

impl EntrySource for Tree {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn clusters(&self) -> u64 {
        self.clusters()
    }

    fn file_name(&self) -> String {
        self.file_name()
    }

    fn path(&self) -> &str {
        self.path()
    }

    fn context(&self, error: Error) -> Error {
        self.context(error)
    }

    fn identity(&self) -> Result<String> {
        self.identity()
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        let mut branches = Vec::new();
        for field in fields {
            branches_of(self.tree_field(field)?, &field.name, &mut branches);
        }
        self.source.open_others(branches.into_iter().map(|(_, branch, _)| branch))?;
        let memory = self.source.request_memory().shared(options.shares).keeping(options.keep);
        let typed = |field: &Field| {
            let stored = data_type(field, self.schema.is_compressed());
            let data_type: DataType = if options.binary_strings { binary_type(&stored) } else { stored };
            Ok((self.tree_field(field)?, data_type))
        };
        let typed: Vec<_> = fields.iter().map(typed).collect::<Result<_>>()?;
        let counters = self.source.session().counters();
        counters.elapsed(|| decode_baskets(&self.source, &memory, self.cache, &typed, entries.ranges()))
    }

    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        let clusters: Vec<_> = self.source.clusters(entries.clone()).take(SAMPLED_CLUSTERS).cloned().collect();
        let count: u64 = clusters.iter().map(|cluster| cluster.end - cluster.start).sum();
        let mut bytes = 0.0;
        for field in each_once(fields) {
            bytes += estimated_bytes(&self.source, self.tree_field(field)?, count);
        }
        Ok(Cost::of(bytes, clusters.into_iter(), entries))
    }

    /// The end of a cluster: all branches have a basket that ends there.
    fn batch_end(
        &self,
        _: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let ends = self.source.clusters(window.start..limit).map(|cluster| place(cluster.end));
        let ends: Vec<u64> = ends.filter(|end| *end < limit).collect();
        let middle = window.start.midpoint(window.end);
        let near = ends.iter().filter(|end| window.contains(end)).min_by_key(|end| end.abs_diff(middle));
        Ok(near.or_else(|| ends.iter().find(|&&end| end >= window.end)).copied())
    }

    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
        let mut columns = Vec::new();
        let mut requests = 0;
        for (fields, is_cut) in [(cut, true), (others, false)] {
            for field in fields {
                let mut branches = Vec::new();
                branches_of(self.tree_field(field)?, &field.name, &mut branches);
                self.source.open_others(branches.iter().map(|(_, branch, _)| *branch))?;
                for (path, index, _) in branches {
                    let Some(branch) = self.source.tree().branches.get(index) else { continue };
                    let wanted = |basket: &usize| {
                        let place = branch.baskets.get(*basket).map(|place| &place.entries);
                        place.is_some_and(|held| entries.meets(held))
                    };
                    let baskets: Vec<usize> = (0..branch.baskets.len()).filter(wanted).collect();
                    let mut stored = 0;
                    for &basket in &baskets {
                        stored += self.source.range(branch, basket)?.map_or(0, |range| range.bytes());
                    }
                    let unpacked =
                        (branch.bytes[0] as f64 * baskets.len() as f64 / branch.baskets.len().max(1) as f64) as u64;
                    requests += baskets.len() as u64;
                    columns.push(ExplainedColumn {
                        field: path,
                        column_type: "baskets",
                        is_cut,
                        is_upper_bound: !cut.is_empty() && !is_cut,
                        pages: baskets.len() as u64,
                        stored_bytes: stored,
                        unpacked_bytes: unpacked,
                        requests: baskets.len() as u64,
                    });
                }
            }
        }
        let clusters = self.source.clusters(entries.span()).filter(|cluster| entries.meets(cluster)).count() as u64;
        Ok(Explanation { entries: entries.len(), clusters, columns, requests, ..Explanation::default() })
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }

    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let typed = |field: &Field| Ok((self.tree_field(field)?, data_type(field, self.schema.is_compressed())));
        let typed: Vec<_> = fields.iter().map(typed).collect::<Result<_>>()?;
        unreadable(&self.source, &self.source.request_memory(), self.cache, &typed, entries)
    }
}

/// The layouts of classes stay behind, since an ntuple has records without classes instead.
impl Sidecar for Tree {
    fn description(&self) -> &str {
        self.description()
    }

    fn left_out(&self) -> Vec<Skipped> {
        self.refused().map(|(path, reason)| Skipped::new(path, reason)).collect()
    }

    fn deviations(&self) -> Vec<Deviation> {
        self.source.session().deviations().list()
    }

    fn classes(&self) -> Result<StreamerInfos> {
        Ok(self.streamer_infos().clone())
    }

    fn warnings(&self) -> Vec<String> {
        let warning = |(path, reason): (&str, &str)| format!("branch '{}' is left out: {reason}", path.escape_debug());
        self.refused().map(warning).collect()
    }

    fn attached(&self, _: usize) -> Result<Attached> {
        Ok(Attached { tree: TreeExtras::of(self.metadata()), ..Attached::default() })
    }
}

/// Lists, each with the field that has the numbers of their items: names of both.
fn counters(source: &TreeSource) -> Vec<(String, String)> {
    let branches = &source.tree().branches;
    let number_of = |kind: &FieldKind| match kind {
        FieldKind::Value { branch, layout: ValueLayout::Number(..) } => Some(*branch),
        _ => None,
    };
    let value_of = |wanted| source.fields().iter().find(|field| number_of(&field.kind) == Some(wanted));
    let mut counters = Vec::new();
    for field in source.fields() {
        let FieldKind::Value { branch, layout: ValueLayout::Rest(_) } = field.kind else { continue };
        let Some([leaf]) = branches.get(branch).map(|branch| branch.leaves.as_slice()) else { continue };
        if let Some(counting) = leaf.counter.and_then(|(counting, _)| value_of(counting)) {
            counters.push((field.name.clone(), counting.name.clone()));
        }
    }
    counters
}
