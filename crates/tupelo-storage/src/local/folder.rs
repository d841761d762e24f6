//! Listing folders.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// The names of the files and folders in a folder, in no particular order; an empty path is the current folder. `None`
/// if it does not exist or is not a folder.
///
/// # Errors
/// Errors of the system.
pub fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |error: io::Error| Error::from_io("list", folder.display(), error);
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry.map_err(failed)?.file_name())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}
