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

/// A file of this machine; appends go where its cursor stands.
#[derive(Debug)]
pub(super) struct LocalDisk(Positioned);

impl LocalDisk {
    pub(super) fn new(file: File) -> Self {
        Self(Positioned::new(file))
    }
}

impl Disk for LocalDisk {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.file().write_vectored(pieces)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(offset, bytes)
    }

    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.file().sync_all()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.file().set_len(len)
    }
}
