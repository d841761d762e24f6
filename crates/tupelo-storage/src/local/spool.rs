//! A temporary file without a name, for an object that is sent as a whole.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::positioned::Positioned;

/// A temporary file; it is gone when its last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    file: Arc<Positioned>,
    len: u64,
}

impl Spool {
    /// An empty file in the directory for temporary files.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: Arc::new(Positioned::new(tempfile::tempfile()?)), len: 0 })
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.overwrite(self.len, bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn overwrite(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(offset, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    bytes = bytes.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// At most `len` bytes from `offset`; fewer at the end.
    pub(crate) fn read(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let len = len.min(usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX));
        self.file.read(offset, len).map(Bytes::from)
    }
}
