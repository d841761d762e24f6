//! The system calls by which a sink changes a file, as a trait, so that tests can record them and inject faults.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::time::SystemTime;

use super::positioned::Positioned;
use super::writeback::Writeback;

/// An open file of a [`FileSink`](super::FileSink). Every method is one system call, which may be interrupted and may
/// write fewer bytes than given; the sink repeats it.
pub trait Disk: Debug + Send {
    /// Appends after the bytes of the previous call; returns the number of bytes written.
    ///
    /// # Errors
    /// Errors of the system.
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Overwrites bytes from `offset`; returns the number of bytes written.
    ///
    /// # Errors
    /// Errors of the system.
    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Reads exactly `len` bytes.
    ///
    /// # Errors
    /// Errors of the system; [`io::ErrorKind::UnexpectedEof`] at the end of the file.
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// Errors of the system. Bytes written since the last success may then be lost, even if a later call succeeds.
    fn sync(&mut self) -> io::Result<()>;

    /// Truncates the file to `len` bytes. The next append begins there.
    ///
    /// # Errors
    /// Errors of the system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// Releases the lock of a file. Closing the file is not enough, because a forked child process may have it open too,
/// and share the lock. In such a child this does nothing: the lock belongs to `process`, which opened the file.
fn unlock(file: &File, process: u32) {
    if process == std::process::id() {
        // Fails on file systems without locks, where there is nothing to release.
        let _ = file.unlock();
    }
}

/// A file that is kept open for its lock, released on drop.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    process: u32,
}

impl Locked {
    pub(super) fn new(file: File) -> Self {
        Self { file, process: std::process::id() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        unlock(&self.file, self.process);
    }
}

/// A locked local file; appends are written at its cursor.
#[derive(Debug)]
pub(super) struct LocalDisk {
    file: Positioned,
    process: u32,
    writeback: Writeback,
    /// Length and time of the last change when the file was opened or last synced.
    settled: Option<(u64, SystemTime)>,
}

impl LocalDisk {
    pub(super) fn new(file: File) -> Self {
        let settled = state(&file);
        Self { file: Positioned::new(file), process: std::process::id(), writeback: Writeback::default(), settled }
    }
}

/// Length of a file and the time of its last change.
fn state(file: &File) -> Option<(u64, SystemTime)> {
    let metadata = file.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

impl Drop for LocalDisk {
    fn drop(&mut self) {
        unlock(self.file.file(), self.process);
    }
}

impl Disk for LocalDisk {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = self.file.file().write_vectored(pieces)?;
        self.writeback.appended(count, self.file.file());
        Ok(count)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(offset, bytes)
    }

    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.file.read(offset, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.file().sync_all()?;
        self.settled = state(self.file.file());
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.file().set_len(len)?;
        self.file.file().seek(SeekFrom::Start(len))?;
        // What is left is what it was: readers see by the time that what they read has not changed.
        if let Some((_, modified)) = self.settled.filter(|(settled, _)| len <= *settled) {
            let _ = self.file.file().set_modified(modified);
            self.settled = Some((len, modified));
        }
        Ok(())
    }
}
