//! Opening files and reading entries.

mod attributes;
mod batches;
mod computed;
mod decoded;
mod entries;
mod explain;
mod file;
mod location;
mod ntuple;
mod objects;
mod parts;
mod read;
mod take;
#[cfg(test)]
mod tests;

pub use crate::evolution::ReadRule;
pub use crate::source::Metrics;
pub use attributes::{Attributes, METADATA_SET};
pub(crate) use attributes::{RANGE_LENGTH, RANGE_START, USER_DATA, metadata_schema};
pub use batches::{ArrowBatches, Batches};
pub use explain::{ExplainedColumn, Explanation};
pub use file::{
    DEFAULT_MEMORY_BUDGET_BYTES, DEFAULT_PAGE_CHECKSUMS, File, MAX_BUDGET_EXPANSION, MAX_PAGE_BYTES, Object,
    OpenOptions,
};
pub(crate) use file::{Listed, may_be_repaired};
pub use location::Location;
pub use ntuple::{FormatVersion, Ntuple};
pub use objects::Objects;
pub(crate) use read::truncated;
pub use read::{DEFAULT_BATCH_BYTES, Read};
pub use tupelo_storage::adapter::Time;
