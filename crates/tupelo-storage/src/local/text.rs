//! Small text files with settings, which may not exist.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a settings file.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a regular file, if there is one that can be read.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    // Opening a pipe would wait for its other end.
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
