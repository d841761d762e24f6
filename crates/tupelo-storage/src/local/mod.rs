//! Memory and local files. The only room that uses `std::fs`.

mod disk;
mod folder;
pub mod memory;
mod objects;
mod partial;
mod positioned;
mod ranges;
mod sink;
mod source;
mod spool;
mod target;
mod temporary;
mod text;
mod writeback;

pub use disk::Disk;
pub use folder::names_in;
pub(crate) use objects::{ListedFile, ObjectFile, ObjectFiles};
pub use partial::PartialFile;
pub(crate) use ranges::{RangeDirectory, RangeFolder};
pub use sink::{FileSink, LOCAL_WRITE_BUFFER_BYTES};
pub use source::{FileSource, LOCAL_CONCURRENCY, LOCAL_GAP_BYTES, LOCAL_HINTS, LOCAL_MAX_REQUEST_BYTES};
pub(crate) use spool::Spool;
pub use temporary::{
    DeadFile, Replacement, dead_temporaries, is_temporary, publish_temporary, remove_dead, temporaries_of,
};
pub(crate) use text::read_text;
