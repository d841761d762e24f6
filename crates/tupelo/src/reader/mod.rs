//! Opening files and reading entries.

mod batches;
mod file;
mod location;
mod ntuple;
mod objects;

pub use batches::{ArrowBatches, Batches, DEFAULT_BATCH_ENTRIES, Read};
pub use file::{DEFAULT_PAGE_CHECKSUMS, File, Object, OpenOptions};
pub use location::Location;
pub use ntuple::{FormatVersion, Ntuple};
pub use objects::Objects;
