//! Files that are objects of a namespace: a directory, and keys that are paths in it.
//!
//! Keys come from files that may be hostile. The caller has checked that they do not leave the directory by their text;
//! this module does not follow symbolic links in it.

mod list;
#[cfg(test)]
mod tests;
mod write;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{self, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

pub(crate) use self::list::ListedFile;
use self::write::Unsynced;
use super::positioned::Positioned;
use super::source::check_regular;
use crate::error::{Error, ErrorKind, Result};
use crate::source::checked_len;

/// Number of files that are kept open for reading.
const OPEN_FILES: usize = 32;

/// The files of a namespace.
#[derive(Debug)]
pub(crate) struct ObjectFiles {
    /// The directory, absolute.
    root: PathBuf,
    /// The URI of the directory; with a key at its end it is that of the object.
    base: String,
    /// The files that were read last, the latest one at the end.
    open: Mutex<VecDeque<(String, Arc<ObjectFile>)>>,
    unsynced: Mutex<Unsynced>,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    file: Positioned,
    uri: String,
    size_bytes: u64,
}

impl ObjectFiles {
    /// The files in a directory, which need not exist; an empty path is the current directory.
    ///
    /// # Errors
    /// Errors of the system if the current directory does not exist.
    pub(crate) fn new(root: &Path, base: String) -> Result<Self> {
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let root = path::absolute(root).map_err(|error| Error::from_io("use", &base, error))?;
        // Without a slash at its end.
        let root = root.components().collect();
        Ok(Self { root, base, open: Mutex::default(), unsynced: Mutex::default() })
    }

    /// The URI of the directory.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The URI of an object.
    pub(crate) fn uri(&self, key: &str) -> String {
        format!("{}{key}", self.base)
    }

    /// Checks that the directory exists.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], which names the directory; errors of the system.
    pub(crate) fn check_root(&self, action: &'static str, key: &str) -> Result<()> {
        let refused = |kind, reason| Err(Error::new(kind, action, self.uri(key), reason));
        match fs::metadata(&self.root) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => refused(ErrorKind::NotSupported, format!("{} is not a directory", self.root.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                refused(ErrorKind::NotFound, format!("the directory {} does not exist", self.root.display()))
            }
            Err(error) => Err(Error::from_io(action, self.uri(key), error)),
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::NotSupported`] for links, folders and devices; errors of the system.
    pub(crate) fn open(&self, key: &str) -> Result<ObjectFile> {
        let uri = self.uri(key);
        let failed = |error: io::Error| Error::from_io("open", &uri, error);
        self.check_links(key, "open")?;
        let file = no_links(File::options().read(true)).open(self.path(key)).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        check_regular(&metadata, "open", Path::new(&uri))?;
        Ok(ObjectFile { file: Positioned::new(file), uri, size_bytes: metadata.len() })
    }

    /// Opens a file, unless it was opened before and is among those that were used last.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_again(&self, key: &str) -> Result<Arc<ObjectFile>> {
        if let Some(found) = self.take_open(key) {
            self.keep_open(key, Arc::clone(&found));
            return Ok(found);
        }
        let opened = Arc::new(self.open(key)?);
        self.keep_open(key, Arc::clone(&opened));
        Ok(opened)
    }

    /// Removes a file from those that are kept open.
    fn take_open(&self, key: &str) -> Option<Arc<ObjectFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().rposition(|(other, _)| other == key)?;
        open.remove(at).map(|(_, file)| file)
    }

    fn keep_open(&self, key: &str, file: Arc<ObjectFile>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back((key.to_owned(), file));
        if open.len() > OPEN_FILES {
            open.pop_front();
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Refuses a key that leads through a symbolic link, or to one.
    fn check_links(&self, key: &str, action: &'static str) -> Result<()> {
        let mut path = self.root.clone();
        for part in key.split('/') {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    let reason = format!("{} is a symbolic link; links are not followed", path.display());
                    return Err(Error::new(ErrorKind::NotSupported, action, self.uri(key), reason));
                }
                Ok(_) => {}
                // What uses the path says what is wrong with it.
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// Options to open a file that is not a link. Opening a pipe does not wait for its other end.
#[cfg(unix)]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

/// Elsewhere, links were refused before.
#[cfg(not(unix))]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

impl ObjectFile {
    /// Its size when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size_bytes
    }

    /// Reads a range.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] beyond the end; errors of the system.
    pub(crate) fn read(&self, range: &Range<u64>) -> Result<Bytes> {
        match checked_len(range, &self.uri, self.size_bytes)? {
            0 => Ok(Bytes::new()),
            len => self.file.read(range.start, len).map(Bytes::from).map_err(|error| self.failed(range, error)),
        }
    }

    /// Reads consecutive bytes from `start` into buffers.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let range = start..start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
        match checked_len(&range, &self.uri, self.size_bytes)? {
            0 => Ok(()),
            _ => self.file.read_into(start, pieces).map_err(|error| self.failed(&range, error)),
        }
    }

    #[cold]
    fn failed(&self, range: &Range<u64>, error: io::Error) -> Error {
        Error::from_io(format!("read bytes {}..{} of", range.start, range.end), &self.uri, error)
    }
}
