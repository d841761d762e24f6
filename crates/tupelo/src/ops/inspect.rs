//! The parts of an ntuple and their sizes, from metadata alone: no page is read. [`inspect`] makes a report of them.

mod advice;
mod map;
mod report;
mod sample;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;

use tupelo_format::compression::Compression;
use tupelo_format::container::ANCHOR_BYTES;
use tupelo_format::descriptor::{Column, ColumnId, Descriptor, FieldId};
use tupelo_pages::source::{BlobRange, Cluster, Metadata};
use tupelo_schema::schema::Field;

use crate::Result;
use crate::reader::Ntuple;

pub use self::advice::quoted_word;
pub use self::map::{MAX_RUNS, Part, Run};
pub use self::report::{
    Advice, AttributeSetReport, Bin, Bytes, ClusterReport, ClusterSizes, ColumnReport, FieldReport, Group, Level,
    MAX_CLUSTERS, Report, Sampled, Spread, Store,
};
pub use self::sample::sample;
pub use self::sources::inspect;

/// Total sizes of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Number of elements.
    pub elements: u64,
    /// Number of pages.
    pub pages: u64,
    /// Pages among them that a column before this one has too; their bytes count there only.
    pub shared_pages: u64,
    /// Bytes in the file, checksums of the pages included.
    pub stored_bytes: u64,
    /// Bytes of the same pages before compression, without checksums.
    pub unpacked_bytes: u64,
    /// ROOT's numbers of the compression settings in use.
    pub compression: BTreeSet<u32>,
}

impl Sizes {
    /// Uncompressed over stored bytes; 1 where nothing is stored.
    pub fn ratio(&self) -> f64 {
        report::ratio(self.unpacked_bytes, self.stored_bytes)
    }

    /// The codecs in use: `zstd:5`, `none`, `zlib:1, lzma:7`; nothing where nothing is stored.
    pub fn codec(&self) -> String {
        let name = |&setting: &u32| {
            Compression::from_setting(setting).map_or_else(|_| setting.to_string(), |known| known.to_string())
        };
        self.compression.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

impl AddAssign<&Sizes> for Sizes {
    fn add_assign(&mut self, other: &Sizes) {
        self.elements += other.elements;
        self.pages += other.pages;
        self.shared_pages += other.shared_pages;
        self.stored_bytes += other.stored_bytes;
        self.unpacked_bytes += other.unpacked_bytes;
        self.compression.extend(&other.compression);
    }
}

/// One physical column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnInfo {
    /// Number in the file.
    pub id: u32,
    /// Dotted path of the field, items of collections being called `_0`.
    pub field: String,
    /// Which of the field's columns: a string has index and characters.
    pub index: u32,
    /// Which of the field's alternative representations.
    pub representation: u16,
    /// Name of the column type; none if this version does not know it.
    pub column_type: Option<&'static str>,
    /// Bits of one stored element; 0 if the type is unknown.
    pub bits: u16,
    /// Minimum and maximum of the values of a Real32Quant column.
    pub range: Option<(f64, f64)>,
    /// First stored element where the column was added late; the ones before read as zero.
    pub first_element: u64,
    /// Whether the column was added to the schema after writing began.
    pub in_extension: bool,
    /// The sizes of its pages.
    pub sizes: Sizes,
}

/// One top-level field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldInfo {
    /// Name.
    pub name: String,
    /// C++ type as its author spelt it.
    pub type_name: String,
    /// Physical columns of the field and of all below it.
    pub columns: u64,
    /// Dotted path of the field from which this one is projected; its columns count there.
    pub projected_from: Option<String>,
    /// The reason why this version cannot read the field.
    pub dropped: Option<String>,
    /// The total sizes of all its columns.
    pub sizes: Sizes,
}

/// An ntuple as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of entries.
    pub entries: u64,
    /// Number of clusters.
    pub clusters: u64,
    /// Number of cluster groups.
    pub cluster_groups: u64,
    /// Number of top-level fields that are listed, those included that cannot be read.
    pub fields: u64,
    /// Number of physical columns.
    pub columns: u64,
    /// Stored bytes of anchor, header, footer and page lists.
    pub metadata_bytes: u64,
    /// The total sizes of all pages.
    pub sizes: Sizes,
}

/// The ntuple as a whole.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn summary(ntuple: &Ntuple) -> Result<Summary> {
    let descriptor = ntuple.descriptor();
    let [header, footer, page_lists] = envelope_bytes(ntuple);
    let mut sizes = Sizes::default();
    for column in column_sizes(ntuple)? {
        sizes += &column;
    }
    let top_level = descriptor.fields().iter().filter(|field| field.parent.is_none()).count();
    let top_level = top_level - hidden_fields(ntuple).len();
    Ok(Summary {
        entries: descriptor.entries(),
        clusters: descriptor.clusters(),
        cluster_groups: descriptor.cluster_groups().len() as u64,
        fields: top_level as u64,
        columns: descriptor.columns().len() as u64,
        metadata_bytes: ANCHOR_BYTES as u64 + header + footer + page_lists,
        sizes,
    })
}

/// Stored bytes of header, footer and all page lists.
fn envelope_bytes(ntuple: &Ntuple) -> [u64; 3] {
    let anchor = ntuple.source().store().anchor();
    let page_lists = ntuple.descriptor().cluster_groups().iter().map(|group| group.page_list.locator.stored_bytes());
    let envelopes = [&anchor.header, &anchor.footer].map(|link| link.locator.stored_bytes());
    [envelopes[0], envelopes[1], page_lists.fold(0, u64::saturating_add)]
}

/// The top-level fields that are listed, those included that cannot be read. What hidden fields store counts for those
/// that show it.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn fields(ntuple: &Ntuple) -> Result<Vec<FieldInfo>> {
    fields_of(ntuple, &column_sizes(ntuple)?)
}

/// The same from the sizes of all columns.
fn fields_of(ntuple: &Ntuple, sizes: &[Sizes]) -> Result<Vec<FieldInfo>> {
    let descriptor = ntuple.descriptor();
    let mut fields = Vec::new();
    let mut places = vec![0; descriptor.fields().len()];
    let (shown, hidden) = (shown_fields(ntuple)?, hidden_fields(ntuple));
    let dropped = descriptor.dropped().iter().map(|dropped| (dropped.field.as_str(), dropped.reason.as_str()));
    let dropped: HashMap<&str, &str> = dropped.collect();
    for (index, field) in descriptor.fields().iter().enumerate() {
        // Parents may follow their children in the file.
        if field.parent.is_some() || hidden.contains(&index) {
            continue;
        }
        places[index] = fields.len();
        let record = &field.record;
        let name = record.name.clone();
        fields.push(FieldInfo {
            type_name: if record.type_alias.is_empty() { &record.type_name } else { &record.type_alias }.clone(),
            columns: 0,
            projected_from: match record.source.map(FieldId::from) {
                Some(source) if hidden.contains(&top_level(descriptor, source)?.index()) => None,
                source => source.map(|source| descriptor.path(source)),
            },
            dropped: dropped.get(name.as_str()).map(|&reason| reason.to_owned()),
            sizes: Sizes::default(),
            name,
        });
    }
    for (column, sizes) in descriptor.columns().iter().zip(sizes) {
        let field: &mut FieldInfo =
            &mut fields[places[top_level(descriptor, shown_field(&shown, column.field))?.index()]];
        field.columns += 1;
        field.sizes += sizes;
    }
    Ok(fields)
}

/// What each field of [`Schema::paths`](crate::schema::Schema::paths) of [`Ntuple::schema`] takes with all below it, in
/// that order: nothing for fields that are projected or computed.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn paths(ntuple: &Ntuple) -> Result<Vec<Sizes>> {
    let (descriptor, shown) = (ntuple.descriptor(), shown_fields(ntuple)?);
    let mut sizes = vec![Sizes::default(); descriptor.fields().len()];
    for (column, own) in descriptor.columns().iter().zip(&column_sizes(ntuple)?) {
        let mut next = Some(shown_field(&shown, column.field));
        while let Some(id) = next {
            sizes[id.index()] += own;
            next = descriptor.field(id)?.parent;
        }
    }
    let of = |field: &Field| field.id.map_or_else(Sizes::default, |id| sizes[id.index()].clone());
    Ok(ntuple.schema().paths().into_iter().map(|(_, field)| of(field)).collect())
}

/// The physical columns, by id.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn columns(ntuple: &Ntuple) -> Result<Vec<ColumnInfo>> {
    columns_of(ntuple, column_sizes(ntuple)?)
}

/// The same from the sizes of all columns.
fn columns_of(ntuple: &Ntuple, sizes: Vec<Sizes>) -> Result<Vec<ColumnInfo>> {
    let (descriptor, shown) = (ntuple.descriptor(), shown_fields(ntuple)?);
    let describe = |(id, (column, sizes)): (u32, (&Column, Sizes))| {
        let own = &descriptor.field(column.field)?.representations;
        let own = own.get(usize::from(column.representation));
        let index = own.and_then(|columns| columns.iter().position(|&c| c == ColumnId::from(id))).unwrap_or(0);
        Ok(ColumnInfo {
            id,
            field: descriptor.path(shown_field(&shown, column.field)),
            index: index as u32,
            representation: column.representation,
            column_type: column.encoding.map(|encoding| encoding.column_type().name()),
            bits: column.encoding.map_or(0, |encoding| encoding.bits()),
            range: column.encoding.and_then(|encoding| encoding.range()),
            first_element: column.first_element,
            in_extension: column.in_extension,
            sizes,
        })
    };
    (0..).zip(descriptor.columns().iter().zip(sizes)).map(describe).collect()
}

/// The top-level field that a field is, or is below of.
pub(super) fn top_level(descriptor: &Descriptor, mut id: FieldId) -> Result<FieldId> {
    while let Some(parent) = descriptor.field(id)?.parent {
        id = parent;
    }
    Ok(id)
}

/// The places of hidden fields among all.
fn hidden_fields(ntuple: &Ntuple) -> HashSet<usize> {
    let hidden = ntuple.schema().fields.iter().filter(|field| field.hidden);
    hidden.filter_map(|field| field.id.map(FieldId::index)).collect()
}

/// For fields in hidden ones, the projected field that shows them; the first of several.
pub(super) fn shown_fields(ntuple: &Ntuple) -> Result<HashMap<FieldId, FieldId>> {
    let (descriptor, hidden) = (ntuple.descriptor(), hidden_fields(ntuple));
    let mut shown = HashMap::new();
    if hidden.is_empty() {
        return Ok(shown);
    }
    for (id, field) in (0u32..).map(FieldId::from).zip(descriptor.fields()) {
        if let Some(source) = field.record.source.map(FieldId::from)
            && hidden.contains(&top_level(descriptor, source)?.index())
        {
            shown.entry(source).or_insert(id);
        }
    }
    Ok(shown)
}

/// The field by whose name a field is shown.
pub(super) fn shown_field(shown: &HashMap<FieldId, FieldId>, field: FieldId) -> FieldId {
    shown.get(&field).copied().unwrap_or(field)
}

fn column_sizes(ntuple: &Ntuple) -> Result<Vec<Sizes>> {
    ntuple.in_any_store(&|it| add_up(it.source())).map_err(|e| ntuple.context(e))
}

/// By column id.
fn add_up(source: &Metadata) -> Result<Vec<Sizes>> {
    let mut sizes = vec![Sizes::default(); source.descriptor().columns().len()];
    each_column(source, |_, column, own| sizes[column.index()] += &own)?;
    Ok(sizes)
}

/// One page of a column in a cluster.
pub(super) struct PagePlace {
    /// Its bytes, checksum included.
    pub(super) range: BlobRange,
    /// Whether a column before this one has it too.
    pub(super) is_shared: bool,
    /// Whether a checksum follows it.
    pub(super) has_checksum: bool,
}

/// Visits the size of each column in each cluster that stores it, clusters in order.
pub(super) fn each_column(source: &Metadata, mut tell: impl FnMut(&Cluster, ColumnId, Sizes)) -> Result<()> {
    each_page_group(source, |cluster, column, sizes, _| {
        tell(cluster, column, sizes);
        Ok(())
    })
}

/// Visits the size and the pages of each column in each cluster that stores it, clusters in order.
pub(super) fn each_page_group(
    source: &Metadata,
    mut tell: impl FnMut(&Cluster, ColumnId, Sizes, &[PagePlace]) -> Result<()>,
) -> Result<()> {
    let descriptor = source.descriptor();
    let (mut seen, mut places) = (HashSet::new(), Vec::new());
    for group in 0..descriptor.cluster_groups().len() {
        for cluster in source.group_clusters(group)? {
            // Pages are shared within a cluster only.
            seen.clear();
            // Columns that were added later are not listed.
            let listed = source.listed_columns(&cluster)?;
            for (id, column) in (0u32..).map(ColumnId::from).zip(descriptor.columns()).take(listed) {
                let Some(pages) = source.column_pages(&cluster, id)? else { continue };
                if pages.first_element.is_none() {
                    continue;
                }
                places.clear();
                let mut sizes = Sizes { compression: BTreeSet::from([pages.compression]), ..Sizes::default() };
                for page in &pages.pages {
                    let range = source.store().page_range(cluster.number, id.index() as u32, page)?;
                    let is_shared = !seen.insert(page.locator);
                    places.push(PagePlace { range, is_shared, has_checksum: page.has_checksum });
                    sizes.pages += 1;
                    sizes.elements += u64::from(page.elements);
                    if is_shared {
                        sizes.shared_pages += 1;
                    } else {
                        sizes.stored_bytes += range.bytes();
                        let unpacked = column.encoding.and_then(|encoding| encoding.packed_bytes(page.elements.into()));
                        sizes.unpacked_bytes += unpacked.unwrap_or(0);
                    }
                }
                tell(&cluster, id, sizes, &places)?;
            }
        }
    }
    Ok(())
}
