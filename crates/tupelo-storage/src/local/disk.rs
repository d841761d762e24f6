//! The few calls by which a sink changes a file, so that tests can record them or let them fail.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, IoSlice, Write};

use super::positioned::Positioned;

/// An open file as [`FileSink`](super::FileSink) writes it. Every method is one call of the system: it may be
/// interrupted and may take less than it is given. The sink repeats.
pub trait Disk: Debug + Send {
    /// Writes behind what was written by the call before; gives the number of bytes taken.
    ///
    /// # Errors
    /// What the system says.
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Overwrites what is there, from `offset` bytes on; gives the number of bytes taken.
    ///
    /// # Errors
    /// What the system says.
    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Reads exactly `len` bytes.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::UnexpectedEof`] at the end of the file.
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// What the system says; what was written since the last success may be lost then, whatever later calls say.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file off behind its first `len` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// Ends the lock of a file. Closing the file would not be enough: a child process that was forked meanwhile has it open
/// too, and with it the lock. In such a child nothing is done: the lock is that of `process`, which opened the file.
fn unlock(file: &File, process: u32) {
    if process == std::process::id() {
        // File systems without locks have nothing to unlock.
        let _ = file.unlock();
    }
}

/// A file that is open for its lock, which ends with this value.
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

/// A file of this machine, locked; appends go where its cursor stands.
#[derive(Debug)]
pub(super) struct LocalDisk {
    file: Positioned,
    process: u32,
}

impl LocalDisk {
    pub(super) fn new(file: File) -> Self {
        Self { file: Positioned::new(file), process: std::process::id() }
    }
}

impl Drop for LocalDisk {
    fn drop(&mut self) {
        unlock(self.file.file(), self.process);
    }
}

impl Disk for LocalDisk {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.file().write_vectored(pieces)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(offset, bytes)
    }

    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.file.read(offset, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.file().sync_all()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.file().set_len(len)
    }
}
