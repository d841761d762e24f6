//! Opening files and reading entries.

mod attributes;
mod batches;
mod computed;
mod decoded;
mod explain;
mod file;
mod location;
mod objects;
mod open;
mod read;
mod skipped;
mod sources;
mod table;
mod take;
#[cfg(test)]
mod tests;

pub use attributes::Attributes;
pub(crate) use attributes::{RANGE_LENGTH, RANGE_START, USER_DATA, metadata_schema};
pub use batches::{ArrowBatches, Batches};
pub use explain::{ExplainedColumn, Explanation};
pub(crate) use file::Listed;
pub use file::{
    DEFAULT_MEMORY_BUDGET_BYTES, DEFAULT_PAGE_CHECKSUMS, File, MAX_BUDGET_EXPANSION, MAX_PAGE_BYTES, Object,
};
pub use location::Location;
pub use objects::Objects;
pub use open::OpenOptions;
pub(crate) use open::may_be_repaired;
pub use tupelo_pages::source::{Metrics, TreeCache};
pub use tupelo_schema::evolution::ReadRule;
pub use tupelo_schema::expression::Bounds;

pub use read::{DEFAULT_BATCH_BYTES, Entries, Read};
pub use skipped::Skipped;
pub(crate) use sources::zones;
pub use sources::zones::ZoneBounds;
pub(crate) use sources::{Attached, Sealed, StoredPage, TreeExtras, default_values, fetch};
pub use sources::{Chain, ChainPart, FormatVersion, Join, METADATA_SET, Ntuple, Tree, TreeSizes};
pub use table::{Paired, Table, Unmatched};
pub use tupelo_format::container::{Deviation, Rule};
pub use tupelo_storage::adapter::Time;
pub use tupelo_ttree::tree::{Stored, TREE_CLASSES};
