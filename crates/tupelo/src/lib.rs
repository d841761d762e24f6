//! (being written)
mod decode;
mod encode;
mod error;
pub mod ops;
mod plan;
pub mod reader;
pub mod schema;
mod sink;
mod source;
pub mod writer;

use std::path::Path;

pub use error::{Error, ErrorKind, Result};
pub use reader::{File, Ntuple, OpenOptions};
pub use tupelo_format::compression::{Algorithm, Compression};
pub use writer::{FileWriter, NtupleWriter, WriteOptions};

/// Opens `FILE` or `FILE:NAME`.
pub fn open(location: &str) -> OpenOptions {
    OpenOptions::new(location)
}

/// Begins a new ROOT file; see [`FileWriter::create`].
///
/// # Errors
/// Those of the file system.
pub fn create(path: impl AsRef<Path>) -> Result<FileWriter> {
    FileWriter::create(path)
}

/// Opens a ROOT file to add ntuples; see [`FileWriter::update`].
///
/// # Errors
/// Those of the file system; corrupt if it is no whole ROOT file.
pub fn update(path: impl AsRef<Path>) -> Result<FileWriter> {
    FileWriter::update(path)
}
