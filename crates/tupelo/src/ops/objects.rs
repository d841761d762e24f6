//! Changes of the objects of a ROOT file: removing them, giving them other paths, copying them to those of other files,
//! and writing the file again without the space that nothing uses.

mod copy;
pub(super) mod extents;
mod remove;
mod rename;
mod repack;
#[cfg(test)]
mod tests;

pub use copy::copy_as;
pub use remove::{Removed, find, remove};
pub use rename::{Renamed, rename};
pub use repack::{Repacked, repack};
