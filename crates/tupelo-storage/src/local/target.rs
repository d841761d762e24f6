//! The file that a writer creates or replaces: links, checks, lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{self, Path, PathBuf};

use super::disk::Locked;
use super::source::check_regular;
use crate::error::{Error, ErrorKind, Result};

/// Maximum number of symbolic links in a chain, as in Linux.
const MAX_LINKS: usize = 40;
/// Maximum attempts to open a file that other processes replace at the same time.
const OPEN_ATTEMPTS: usize = 10;

/// The file that a new file will replace.
#[derive(Debug)]
pub(super) struct Target {
    /// The path without links, absolute.
    pub(super) path: PathBuf,
    /// The name of the file.
    pub(super) name: String,
    /// The old file, open for its lock.
    pub(super) replaced: Option<Locked>,
}

impl Target {
    /// Checks that a file can be created or replaced.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::from_io("create", path.display(), error);
        let ends_as_directory = path.as_os_str().to_string_lossy().ends_with(path::is_separator);
        if path.as_os_str().is_empty() || ends_as_directory && !path.is_dir() {
            return Err(no_file(path));
        }
        let target = follow_links(path::absolute(path).map_err(failed)?);
        let replaced = match fs::metadata(&target) {
            Ok(metadata) => {
                check_regular(&metadata, "create", path)?;
                // A rename needs permission only for the directory, but a read-only file must not be replaced.
                Some(Locked::new(open_locked(File::options().write(true), &target, "replace", path)?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let Some(name) = target.file_name() else { return Err(no_file(path)) };
        let name = name.to_string_lossy().into_owned();
        // The error of a missing directory must not name the temporary file.
        let directory = directory_of(&target);
        fs::metadata(directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let what = format!("the directory {} does not exist", directory.display());
                Error::new(ErrorKind::NotFound, "create", path.display(), what)
            }
            _ => failed(error),
        })?;
        Ok(Self { path: target, name, replaced })
    }
}

/// The error for a path without a file name.
#[cold]
fn no_file(path: &Path) -> Error {
    Error::new(ErrorKind::NotSupported, "create", path.display(), "the path lacks a file name")
}

/// Opens a file for writing and locks it. Errors name the path of the caller.
pub(super) fn open_locked(options: &OpenOptions, target: &Path, action: &'static str, path: &Path) -> Result<File> {
    let failed = |error: io::Error| Error::from_io(action, path.display(), error);
    for _ in 0..OPEN_ATTEMPTS {
        let file = options.open(target).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = "another writer is writing it";
                return Err(Error::new(ErrorKind::Busy, action, path.display(), reason));
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The previous owner of the lock may have replaced or removed the file.
        if is_at(&file, target).map_err(failed)? {
            return Ok(file);
        }
    }
    Err(Error::new(ErrorKind::Busy, action, path.display(), "other writers keep replacing it"))
}

/// Whether a lock failed because the file system has no locks.
pub(super) fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Whether an open file is the one that has this name now.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// On other systems an open file cannot be replaced.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Resolves a chain of symbolic links; the target need not exist.
pub(super) fn follow_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = directory_of(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

/// The directory of a file, `.` without one.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a new name in a directory durable, if the system supports it.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) => match error.kind() {
            // Some network file systems do not support it, and a directory may be writable but not readable.
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(error),
        },
        ok => ok,
    }
}
