//! Opening files and reading entries.

mod attributes;
mod batches;
mod file;
mod location;
mod ntuple;

pub use attributes::{Attributes, METADATA_SET};
pub(crate) use attributes::{RANGE_LENGTH, RANGE_START, USER_DATA};
pub use batches::{ArrowBatches, Batches, DEFAULT_BATCH_ENTRIES, Read};
pub use file::{DEFAULT_PAGE_CHECKSUMS, File, Object, OpenOptions};
pub use location::Location;
pub use ntuple::{FormatVersion, Ntuple};
