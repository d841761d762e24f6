//! The validated, immutable view of one ntuple: what header and footer together say, with every reference checked.
//!
//! Ids that this module hands out are valid for the [`Descriptor`] they come from; everything a hostile file could
//! point wrongly is refused in [`Descriptor::new`]. Only data are still unverified then: page lists
//! ([`Descriptor::check_page_list`]) and pages.

#[cfg(test)]
mod tests;
mod validate;

pub use validate::MAX_FIELD_DEPTH;

use crate::encoding::Encoding;
use crate::envelope::{ExtraTypeInfo, FeatureFlags, FieldRecord, Footer, Header, PageList};
use crate::locator::{EnvelopeLink, Locator};
use crate::{Error, Result};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The id as the format counts it, from 0.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            fn from(index: u32) -> Self {
                Self(index)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A field, counted through header and footer.
    FieldId;
    /// A physical column, counted through header and footer.
    ColumnId;
}

/// One field.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its record in the file.
    pub record: FieldRecord,
    /// Field that contains it; `None` at the top level.
    pub parent: Option<FieldId>,
    /// Subfields in order.
    pub children: Vec<FieldId>,
    /// Columns by representation; for a projected field those of its source.
    pub representations: Vec<Vec<ColumnId>>,
}

/// One physical column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Field to which it belongs.
    pub field: FieldId,
    /// How elements are stored; `None` for a type that this version does not know.
    pub encoding: Option<Encoding>,
    /// Which alternative representation of the field.
    pub representation: u16,
    /// First stored element if the column was added late; 0 otherwise.
    pub first_element: u64,
    /// Whether the column is suppressed, and not zero, before its first element: another representation holds the values.
    pub starts_suppressed: bool,
    /// Whether the column was added to the schema after writing began (its first page lists may not know it).
    pub in_extension: bool,
}

impl Column {
    /// Whether leading elements may be missing.
    pub fn is_deferred(&self) -> bool {
        self.first_element > 0
    }

    /// Whether missing leading elements read as zero (format specification, "Column Description").
    pub fn has_synthetic_zeros(&self) -> bool {
        self.is_deferred() && !self.starts_suppressed
    }
}

/// One cluster group.
#[derive(Debug, Clone, Copy)]
pub struct ClusterGroup {
    /// First entry.
    pub first_entry: u64,
    /// Number of entries.
    pub entries: u64,
    /// Number of its first cluster, counted through all groups.
    pub first_cluster: u64,
    /// Number of clusters.
    pub clusters: u32,
    /// Its page list.
    pub page_list: EnvelopeLink,
}

/// One linked attribute set.
#[derive(Debug, Clone)]
pub struct AttributeSet {
    /// Name.
    pub name: String,
    /// The position of its anchor.
    pub anchor: Locator,
    /// Bytes of its anchor.
    pub anchor_length: u32,
}

/// A top-level field that cannot be read by this version, while the others can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The top-level field.
    pub field: String,
    /// Which part of it is unknown.
    pub reason: String,
}

/// The validated view of one ntuple.
#[derive(Debug, Clone)]
pub struct Descriptor {
    name: String,
    description: String,
    writer: String,
    feature_flags: FeatureFlags,
    header_checksum: u64,
    header_fields: usize,
    fields: Vec<Field>,
    columns: Vec<Column>,
    top_level: Vec<FieldId>,
    dropped: Vec<Dropped>,
    extra_type_info: Vec<ExtraTypeInfo>,
    cluster_groups: Vec<ClusterGroup>,
    attribute_sets: Vec<AttributeSet>,
    entries: u64,
}

impl Descriptor {
    /// Joins and checks header and footer.
    pub fn new(header: Header, header_checksum: u64, footer: Footer) -> Result<Self> {
        validate::descriptor(header, header_checksum, footer, None)
    }

    /// As [`Descriptor::new`], of a footer that lies at `footer_at` in the file: its errors name that offset.
    ///
    /// # Errors
    /// As [`Descriptor::new`].
    pub fn with_footer_at(header: Header, header_checksum: u64, footer: Footer, footer_at: u64) -> Result<Self> {
        validate::descriptor(header, header_checksum, footer, Some(footer_at))
    }

    /// Name of the ntuple.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Free text.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Program that wrote it.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Feature flags of header and footer together.
    pub fn feature_flags(&self) -> &FeatureFlags {
        &self.feature_flags
    }

    /// The header's checksum, which page lists repeat.
    pub fn header_checksum(&self) -> u64 {
        self.header_checksum
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// All fields by id, also those that are dropped.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Ids of the top-level fields that can be read, in order.
    pub fn top_level(&self) -> &[FieldId] {
        &self.top_level
    }

    /// Top-level fields that this version cannot read.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// All physical columns by id.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The field with an id of this descriptor.
    pub fn field(&self, id: FieldId) -> Result<&Field> {
        self.fields.get(id.index()).ok_or_else(|| Error::corrupt(format!("field {id} does not exist")))
    }

    /// The column with an id of this descriptor.
    pub fn column(&self, id: ColumnId) -> Result<&Column> {
        self.columns.get(id.index()).ok_or_else(|| Error::corrupt(format!("column {id} does not exist")))
    }

    /// Whether the field was added to the schema after writing began.
    pub fn is_extension(&self, id: FieldId) -> bool {
        id.index() >= self.header_fields
    }

    /// Dotted path of a field, for messages and lookups.
    pub fn path(&self, id: FieldId) -> String {
        let mut names = Vec::new();
        let mut next = Some(id);
        while let Some(field) = next.and_then(|id| self.fields.get(id.index())) {
            names.push(field.record.name.as_str());
            next = field.parent;
        }
        names.reverse();
        names.join(".")
    }

    /// Streamer infos and other extra type information.
    pub fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        &self.extra_type_info
    }

    /// Cluster groups in entry order.
    pub fn cluster_groups(&self) -> &[ClusterGroup] {
        &self.cluster_groups
    }

    /// Number of clusters of all groups.
    pub fn clusters(&self) -> u64 {
        self.cluster_groups.last().map_or(0, |group| group.first_cluster + u64::from(group.clusters))
    }

    /// Linked attribute sets.
    pub fn attribute_sets(&self) -> &[AttributeSet] {
        &self.attribute_sets
    }

    /// Checks that a page list says what its group says: clusters, their entries, and a column list for each.
    pub fn check_page_list(&self, group: &ClusterGroup, list: &PageList) -> Result<()> {
        validate::page_list(self, group, list)
    }
}
