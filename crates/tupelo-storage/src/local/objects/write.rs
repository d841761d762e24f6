//! Writing files that are objects.

use std::fs::{self, File};
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tempfile::TempPath;

use super::{ObjectFiles, no_links};
use crate::cancel::is_cancelled;
use crate::error::{Error, ErrorKind, Result};
use crate::local::disk::Locked;
use crate::local::sink::{repeat, some};
use crate::local::source::check_regular;
use crate::local::target::{directory_of, has_no_locks, open_locked, sync_directory};
use crate::local::temporary::{Temporary, failed_to_write, new_temporary, publish};

/// How long to wait for another writer that replaces the same object: 10 seconds. It compares, writes and syncs a small
/// file.
const LOCK_TIME: Duration = Duration::from_secs(10);
/// Time between two attempts to get the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Number of attempts to create a folder that others remove.
const FOLDER_ATTEMPTS: usize = 10;

/// Changes that may be lost in a power failure.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// The directory, opened before the first write: the system reports to it all failures since then.
    directory: Option<Arc<File>>,
    /// The files, with their folders in the directory.
    keys: Vec<String>,
    /// Whether a sync failed. The system may have dropped the data, and a second sync could wrongly succeed.
    is_lost: bool,
}

impl ObjectFiles {
    /// Writes a new file from pieces. It is durable after [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if it exists; errors of the system.
    pub(crate) fn create(&self, key: &str, pieces: &[Bytes]) -> Result<()> {
        let failed = |error: io::Error| failed_to_write("write", self.uri(key), error);
        self.begin_writing().map_err(failed)?;
        let path = self.path(key);
        // A link at the end of the path is not followed, because it exists.
        self.check_links(key, "write")?;
        let create = || File::options().write(true).create_new(true).open(&path);
        let mut file = in_folder(directory_of(&path), create).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(ErrorKind::Changed, "write", self.uri(key), "it already exists"),
            _ => failed(error),
        })?;
        if let Err(error) = write_all(&mut file, pieces) {
            // The first error is reported.
            let _ = fs::remove_file(&path);
            return Err(failed(error));
        }
        self.unsynced().keys.push(key.to_owned());
        Ok(())
    }

    /// Makes all new files durable.
    ///
    /// # Errors
    /// Errors of the system, after which every other call fails too.
    pub(crate) fn flush(&self) -> Result<()> {
        let (directory, keys) = {
            let mut unsynced = self.unsynced();
            if unsynced.is_lost {
                let reason = "an earlier attempt failed, and data may be lost";
                return Err(Error::new(ErrorKind::Other, "make durable", self.base(), reason));
            }
            (unsynced.directory.clone(), std::mem::take(&mut unsynced.keys))
        };
        if keys.is_empty() {
            return Ok(());
        }
        let synced = match directory.map_or(Ok(false), |directory| sync_file_system(&directory)) {
            Ok(true) => Ok(()),
            Ok(false) => self.sync_each(&keys),
            Err(error) => Err(error),
        };
        synced.map_err(|error| {
            self.unsynced().is_lost = true;
            failed_to_write("make durable", self.base(), error)
        })
    }

    /// Makes files durable one by one, then their names and those of their folders.
    pub(super) fn sync_each(&self, keys: &[String]) -> io::Result<()> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for key in keys {
            let path = self.path(key);
            // Some systems sync only what may be written.
            match File::options().write(true).open(&path) {
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?.sync_all()?,
            }
            let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
            folders.extend(above.map(Path::to_owned));
            // Keys of one folder follow each other.
            folders.dedup();
        }
        folders.sort();
        folders.dedup();
        folders.iter().try_for_each(|folder| match sync_directory(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synced => synced,
        })
    }

    /// Writes a file that does not exist, durably and as a whole.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if it exists; errors of the system.
    pub(crate) fn publish_new(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.check_links(key, "write")?;
        let (path, uri) = (self.path(key), self.uri(key));
        if fs::symlink_metadata(&path).is_ok() {
            return Err(Error::new(ErrorKind::Changed, "write", uri, "it already exists"));
        }
        let (_, temporary) = self.temporary(key, bytes)?;
        // Another writer may have created it since.
        publish_object(temporary, &path, None, &uri)
    }

    /// Replaces a file whose content is the expected one, durably and as a whole.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if it does not exist or has another content; [`ErrorKind::Busy`] if another writer keeps its
    /// lock; errors of the system.
    pub(crate) fn replace(&self, key: &str, bytes: &[u8], is_expected: impl FnOnce(&[u8]) -> bool) -> Result<()> {
        self.check_links(key, "replace")?;
        let (path, uri) = (self.path(key), self.uri(key));
        let failed = |error: io::Error| failed_to_write("replace", &uri, error);
        let changed = |reason| Error::new(ErrorKind::Changed, "replace", &uri, reason);
        let old = match self.lock(key) {
            Err(error) if error.is_not_found() => return Err(changed("it no longer exists")),
            locked => locked?,
        };
        let metadata = old.file.metadata().map_err(failed)?;
        check_regular(&metadata, "replace", Path::new(&uri))?;
        let mut content = Vec::new();
        (&old.file).read_to_end(&mut content).map_err(failed)?;
        if !is_expected(&content) {
            return Err(changed("another writer has changed it"));
        }
        let (file, temporary) = self.temporary(key, bytes)?;
        file.set_permissions(metadata.permissions()).map_err(failed)?;
        // On some systems an open file cannot be renamed.
        drop(file);
        // The lock is released after the rename.
        publish_object(temporary, &path, Some(old), &uri)?;
        self.take_open(key);
        Ok(())
    }

    /// Whether writers can lock the file of an object.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn has_locks(&self, key: &str) -> Result<bool> {
        let failed = |error: io::Error| Error::from_io("lock", self.uri(key), error);
        let file = no_links(File::options().read(true).write(true)).open(self.path(key)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) if has_no_locks(&error) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Locks a file, after waiting for other writers.
    fn lock(&self, key: &str) -> Result<Locked> {
        let (path, uri) = (self.path(key), self.uri(key));
        let until = Instant::now() + LOCK_TIME;
        loop {
            let mut options = File::options();
            let options = no_links(options.read(true).write(true));
            match open_locked(options, &path, "replace", Path::new(&uri)) {
                Err(error) if error.kind() == ErrorKind::Busy && Instant::now() < until && !is_cancelled() => {
                    thread::sleep(LOCK_INTERVAL);
                }
                locked => return locked.map(Locked::new),
            }
        }
    }

    /// A temporary file beside an object, with a durable content.
    fn temporary(&self, key: &str, bytes: &[u8]) -> Result<(File, TempPath)> {
        let failed = |error: io::Error| failed_to_write("write", self.uri(key), error);
        let path = self.path(key);
        let directory = directory_of(&path);
        let name = key.rsplit('/').next().unwrap_or(key);
        let (mut file, temporary) = in_folder(directory, || new_temporary(name, directory)).map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok((file, temporary))
    }

    fn begin_writing(&self) -> io::Result<()> {
        let mut unsynced = self.unsynced();
        if unsynced.directory.is_none() && cfg!(unix) {
            unsynced.directory = Some(Arc::new(File::open(&self.root)?));
        }
        Ok(())
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As [`publish`]. Others may remove the object at once, with its folder: then nothing is left to be made durable.
fn publish_object(temporary: TempPath, path: &Path, old: Option<Locked>, uri: &str) -> Result<()> {
    match publish(Temporary::Named(temporary), path, old, Path::new(uri)) {
        Err(error) if error.is_not_found() && !directory_of(path).exists() => Ok(()),
        published => published,
    }
}

/// Makes a file in a folder, which is made if it does not exist. Those who remove files at the same time remove folders that
/// are empty.
fn in_folder<T>(folder: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut made = make();
    for _ in 0..FOLDER_ATTEMPTS {
        match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match fs::create_dir_all(folder) {
                    // A folder above it was removed after it was made.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    created => created?,
                }
                made = make();
            }
            done => return done,
        }
    }
    made
}

/// Writes pieces that follow each other, by as few calls as possible.
fn write_all(file: &mut File, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut slices = &mut slices[..];
    // Skips empty slices, because a write of no bytes would look like a full disk.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let written = repeat(|| some(file.write_vectored(slices)))?;
        IoSlice::advance_slices(&mut slices, written);
    }
    Ok(())
}

/// Makes all of a file system durable by one call, which is faster than one for each file. False where the system has no
/// such call.
#[cfg(target_os = "linux")]
fn sync_file_system(directory: &File) -> io::Result<bool> {
    use rustix::io::Errno;
    match rustix::fs::syncfs(directory) {
        Ok(()) => Ok(true),
        // In some containers.
        Err(Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &File) -> io::Result<bool> {
    Ok(false)
}
