//! The report of one ntuple or tree.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tupelo_format::compression::Compression;
use tupelo_pages::source::{Blob, Reservation, Session};
use tupelo_storage::Hints;
use tupelo_storage::local::LOCAL_HINTS;

use super::map::{Found, MAX_RUNS, Map, Part, Run};
use crate::Result;

/// Most clusters that are listed; beyond this, neighbours are combined.
pub const MAX_CLUSTERS: usize = 2000;
/// Memory of a page while the report is made, in bytes.
const PAGE_MEMORY: u64 = (size_of::<u64>() + size_of::<super::map::Piece>()) as u64;
/// Pages whose memory is reserved together.
const PAGES_AT_ONCE: u64 = 4096;

/// Where the bytes of an ntuple or tree are.
///
/// Of a tree, columns are branches, pages are baskets, and elements are entries.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Path or URL of the file.
    pub file: String,
    /// Path of the object in its file.
    pub name: String,
    /// C++ class.
    pub class: String,
    /// Title or description.
    pub description: String,
    /// The program that wrote it; empty for a tree.
    pub writer: String,
    /// Version of the format; empty for a tree.
    pub format_version: String,
    /// Number of entries.
    pub entries: u64,
    /// The kind of store that has it.
    pub store: Store,
    /// The sums.
    pub bytes: Bytes,
    /// Number of pages, each counted once.
    pub pages: u64,
    /// Unpacked over stored bytes.
    pub ratio: f64,
    /// Stored bytes of the pages of one entry.
    pub entry_bytes: f64,
    /// The same with the metadata.
    pub entry_bytes_with_metadata: f64,
    /// Pages without a checksum; none for a tree, whose format has no checksums.
    pub pages_without_checksum: Option<u64>,
    /// The top-level fields.
    pub fields: Vec<FieldReport>,
    /// The columns, by number.
    pub columns: Vec<ColumnReport>,
    /// The columns by their type.
    pub column_types: Vec<Group>,
    /// The pages by their codec.
    pub codecs: Vec<Group>,
    /// The pages by their stored bytes.
    pub page_sizes: Vec<Bin>,
    /// The clusters.
    pub clusters: ClusterSizes,
    /// The attribute sets: ntuples of their own, whose bytes are in none of the other numbers.
    pub attribute_sets: Vec<AttributeSetReport>,
    /// Where the metadata are.
    pub parts: Vec<Part>,
    /// Names of the objects or files that `map` and `parts` number; empty where all pages are in the file itself.
    pub objects: Vec<String>,
    /// Where the pages are, in order.
    pub map: Vec<Run>,
    /// What could be better, most important first.
    pub advice: Vec<Advice>,
}

/// The kinds of stores, for advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Store {
    /// A disk of this machine, or memory.
    Local,
    /// A server: each request has a latency.
    Remote,
}

impl Store {
    pub(super) fn of(hints: Hints) -> Self {
        if hints.gap_bytes > LOCAL_HINTS.gap_bytes { Self::Remote } else { Self::Local }
    }
}

/// Sums of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bytes {
    /// The whole file, with all other objects in it; unknown for some stores.
    pub file_bytes: Option<u64>,
    /// Unused bytes in the file that its free list names; unknown for other stores.
    pub free_bytes: Option<u64>,
    /// Pages, with their checksums.
    pub stored_bytes: u64,
    /// The same before compression.
    pub unpacked_bytes: u64,
    /// All metadata.
    pub metadata_bytes: u64,
    /// The header among the metadata.
    pub header_bytes: u64,
    /// The footer.
    pub footer_bytes: u64,
    /// The page lists.
    pub page_list_bytes: u64,
    /// The record of a tree, without the baskets in it.
    pub record_bytes: u64,
    /// What is left of the metadata: the anchor.
    pub other_metadata_bytes: u64,
}

/// A top-level field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FieldReport {
    /// Name.
    pub name: String,
    /// C++ type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Number of columns.
    pub columns: u64,
    /// Number of pages.
    pub pages: u64,
    /// Stored bytes of its pages.
    pub stored_bytes: u64,
    /// The same before compression.
    pub unpacked_bytes: u64,
    /// The field from which it is projected, which has its pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projected_from: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// An attribute set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AttributeSetReport {
    /// Name.
    pub name: String,
    /// Number of entries; 0 if it cannot be read.
    pub entries: u64,
    /// Stored bytes of its pages.
    pub stored_bytes: u64,
    /// Stored bytes of its metadata.
    pub metadata_bytes: u64,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Smallest, median and largest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "complete")]
pub struct Spread {
    /// Smallest.
    pub smallest: u64,
    /// Median; of an even number, the larger one of the two in the middle.
    pub median: u64,
    /// Largest.
    pub largest: u64,
}

impl Spread {
    /// `None` without numbers. Changes their order.
    pub(super) fn of(numbers: &mut [u64]) -> Option<Self> {
        numbers.sort_unstable();
        let median = *numbers.get(numbers.len() / 2)?;
        Some(Self { smallest: *numbers.first()?, median, largest: *numbers.last()? })
    }
}

/// A column, or a branch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnReport {
    /// Dotted path of its field.
    pub path: String,
    /// C++ type of that field.
    pub field_type: String,
    /// Column type, or class of the leaf.
    pub column_type: String,
    /// Bits of one stored element; 0 if they vary or are unknown.
    pub bits: u16,
    /// Which of the columns of the field.
    pub index: u32,
    /// Which of the alternative representations of the field.
    pub representation: u16,
    /// Codecs of its pages.
    pub codec: String,
    /// Number of pages.
    pub pages: u64,
    /// Pages among them that a column before this one has too; their bytes count there only.
    pub shared_pages: u64,
    /// Number of elements.
    pub elements: u64,
    /// Stored bytes of the pages.
    pub stored_bytes: u64,
    /// The same before compression.
    pub unpacked_bytes: u64,
    /// Stored bytes of one page, without shared ones; none without such pages.
    pub page_bytes: Option<Spread>,
}

impl ColumnReport {
    /// Unpacked over stored bytes; 1 where nothing is stored.
    pub fn ratio(&self) -> f64 {
        ratio(self.unpacked_bytes, self.stored_bytes)
    }
}

/// Unpacked over stored bytes; 1 where nothing is stored.
pub(super) fn ratio(unpacked: u64, stored: u64) -> f64 {
    if stored == 0 { 1.0 } else { unpacked as f64 / stored as f64 }
}

/// Columns or pages that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// Number of columns with it.
    pub columns: u64,
    /// Number of pages.
    pub pages: u64,
    /// Stored bytes of the pages.
    pub stored_bytes: u64,
    /// The same before compression.
    pub unpacked_bytes: u64,
}

/// Pages of at least `from_bytes` and fewer than twice as many stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "complete")]
pub struct Bin {
    /// A power of two.
    pub from_bytes: u64,
    /// Number of pages.
    pub pages: u64,
    /// Their stored bytes.
    pub stored_bytes: u64,
}

/// The clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterSizes {
    /// Number of clusters.
    pub count: u64,
    /// Entries of a cluster; none without clusters.
    pub entries: Option<Spread>,
    /// Stored bytes of a cluster.
    pub stored_bytes: Option<Spread>,
    /// Bytes of a cluster before compression.
    pub unpacked_bytes: Option<Spread>,
    /// The clusters; of more than [`MAX_CLUSTERS`], neighbours together.
    pub list: Vec<ClusterReport>,
}

/// A cluster, or several that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterReport {
    /// First entry.
    pub first_entry: u64,
    /// Number of entries.
    pub entries: u64,
    /// Stored bytes.
    pub stored_bytes: u64,
    /// The same before compression; of trees an estimate, since only branches have their sums.
    pub unpacked_bytes: u64,
    /// How many clusters this line is.
    pub clusters: u64,
}

impl ClusterReport {
    pub(super) fn new(first_entry: u64, entries: u64) -> Self {
        Self { first_entry, entries, stored_bytes: 0, unpacked_bytes: 0, clusters: 1 }
    }
}

/// How much an advice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// Most reads are slower, or much space is lost.
    High,
    /// Some reads are slower, or some space is lost.
    Medium,
    /// Worth to know.
    Low,
}

/// Something that could be better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// Name of the rule, for programs.
    pub rule: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// Why it costs something.
    pub why: String,
    /// What to do.
    pub how: String,
    /// Where the fact is from.
    pub source: &'static str,
}

/// What a sample of values showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Sampled {
    /// Number of entries that were read.
    pub entries: u64,
    /// Number of all entries.
    pub of: u64,
    /// Fields whose values are all the same, by dotted path as of the columns.
    pub constant: Vec<String>,
    /// Fields of doubles that are all exact as float.
    pub fits_float: Vec<String>,
}

/// Adds up pages.
pub(super) struct Pages<'a> {
    session: &'a Session,
    reserved: Vec<Reservation>,
    count: u64,
    /// Stored bytes of the pages of each column.
    sizes: Vec<Vec<u64>>,
    /// By the exponent of the power of two.
    bins: BTreeMap<u32, Bin>,
    /// By the number of the codec; with the columns that have it.
    codecs: BTreeMap<u32, (Group, BTreeSet<usize>)>,
    pub(super) clusters: Vec<ClusterReport>,
    pub(super) map: Map,
}

impl<'a> Pages<'a> {
    pub(super) fn new(session: &'a Session, columns: usize) -> Self {
        Self {
            session,
            reserved: Vec::new(),
            count: 0,
            sizes: vec![Vec::new(); columns],
            bins: BTreeMap::new(),
            codecs: BTreeMap::new(),
            clusters: Vec::new(),
            map: Map::default(),
        }
    }

    /// Adds a page of a column to the last cluster, and to the map if its place is given.
    pub(super) fn add(&mut self, column: usize, stored: u64, place: Option<(Blob, u64, u64, u64)>) -> Result<()> {
        if self.count.is_multiple_of(PAGES_AT_ONCE) {
            let bytes = PAGES_AT_ONCE * PAGE_MEMORY;
            self.reserved.push(self.session.budget().reserve(bytes, "the report of all pages")?);
        }
        self.count += 1;
        if let Some(sizes) = self.sizes.get_mut(column) {
            sizes.push(stored);
        }
        let exponent = stored.max(1).ilog2();
        let bin = self.bins.entry(exponent).or_insert(Bin { from_bytes: 1 << exponent, pages: 0, stored_bytes: 0 });
        bin.pages += 1;
        bin.stored_bytes = bin.stored_bytes.saturating_add(stored);
        if let Some((blob, offset, cluster, page)) = place {
            self.map.add(blob, offset, stored, column as u32, cluster, page);
        }
        Ok(())
    }

    /// Adds pages with the same codec.
    pub(super) fn add_codec(&mut self, setting: u32, column: usize, pages: u64, [stored, unpacked]: [u64; 2]) {
        let (group, columns) = self.codecs.entry(setting).or_default();
        group.pages += pages;
        group.stored_bytes = group.stored_bytes.saturating_add(stored);
        group.unpacked_bytes = group.unpacked_bytes.saturating_add(unpacked);
        columns.insert(column);
    }

    /// What the pages add up to. `name` names the objects of the map; `None` is the file itself.
    pub(super) fn finish(mut self, name: impl Fn(Blob) -> Option<String>) -> Counted {
        let (codecs, page_sizes, clusters) = (self.codecs(), self.bins(), self.cluster_sizes());
        let spreads = self.sizes.iter_mut().map(|sizes| Spread::of(sizes)).collect();
        Counted { count: self.count, spreads, codecs, page_sizes, clusters, found: self.map.finish(MAX_RUNS, name) }
    }

    /// The bins from the smallest page to the largest one, empty ones too.
    fn bins(&self) -> Vec<Bin> {
        let (Some((&first, _)), Some((&last, _))) = (self.bins.first_key_value(), self.bins.last_key_value()) else {
            return Vec::new();
        };
        let empty = |exponent: u32| Bin { from_bytes: 1 << exponent, pages: 0, stored_bytes: 0 };
        (first..=last).map(|exponent| self.bins.get(&exponent).copied().unwrap_or_else(|| empty(exponent))).collect()
    }

    fn codecs(&self) -> Vec<Group> {
        let name =
            |setting: u32| Compression::from_setting(setting).map_or_else(|_| setting.to_string(), |it| it.to_string());
        let named = |(&setting, (group, columns)): (&u32, &(Group, BTreeSet<usize>))| Group {
            name: name(setting),
            columns: columns.len() as u64,
            ..group.clone()
        };
        by_size(self.codecs.iter().filter(|(_, (group, _))| group.pages > 0).map(named).collect())
    }

    fn cluster_sizes(&self) -> ClusterSizes {
        let spread = |of: fn(&ClusterReport) -> u64| Spread::of(&mut self.clusters.iter().map(of).collect::<Vec<_>>());
        let together = self.clusters.len().div_ceil(MAX_CLUSTERS).max(1);
        let combined = |clusters: &[ClusterReport]| {
            let (first, rest) = clusters.split_first()?;
            Some(rest.iter().fold(*first, |mut sum, cluster| {
                sum.entries = sum.entries.saturating_add(cluster.entries);
                sum.stored_bytes = sum.stored_bytes.saturating_add(cluster.stored_bytes);
                sum.unpacked_bytes = sum.unpacked_bytes.saturating_add(cluster.unpacked_bytes);
                sum.clusters += cluster.clusters;
                sum
            }))
        };
        ClusterSizes {
            count: self.clusters.len() as u64,
            entries: spread(|cluster| cluster.entries),
            stored_bytes: spread(|cluster| cluster.stored_bytes),
            unpacked_bytes: spread(|cluster| cluster.unpacked_bytes),
            list: self.clusters.chunks(together).filter_map(combined).collect(),
        }
    }
}

/// What pages add up to.
pub(super) struct Counted {
    pub(super) count: u64,
    /// The page sizes of each column.
    pub(super) spreads: Vec<Option<Spread>>,
    pub(super) codecs: Vec<Group>,
    pub(super) page_sizes: Vec<Bin>,
    pub(super) clusters: ClusterSizes,
    pub(super) found: Found,
}

/// Columns by their type.
pub(super) fn column_types(columns: &[ColumnReport]) -> Vec<Group> {
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for column in columns {
        let group = groups.entry(&column.column_type).or_default();
        group.columns += 1;
        group.pages += column.pages - column.shared_pages;
        group.stored_bytes = group.stored_bytes.saturating_add(column.stored_bytes);
        group.unpacked_bytes = group.unpacked_bytes.saturating_add(column.unpacked_bytes);
    }
    by_size(groups.into_iter().map(|(name, group)| Group { name: name.to_owned(), ..group }).collect())
}

/// The largest group first.
fn by_size(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by(|a, b| b.stored_bytes.cmp(&a.stored_bytes).then_with(|| a.name.cmp(&b.name)));
    groups
}
