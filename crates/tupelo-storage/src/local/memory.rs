//! Objects in memory.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::sink::{ByteSink, check_patch, poisoned};
use crate::source::{ByteSource, Hints, checked_len};

/// Hints for memory: neither merging nor concurrency is useful, and reads copy nothing.
pub const MEMORY_HINTS: Hints = Hints { gap_bytes: 0, max_request_bytes: u64::MAX, concurrency: 1 };

/// Bytes in memory as a source. Reads copy nothing.
#[derive(Clone)]
pub struct MemorySource {
    bytes: Bytes,
    name: String,
}

impl MemorySource {
    /// A source over `bytes`, named `memory:`.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), name: String::new() }
    }

    /// The same source named `memory:NAME` in messages.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl fmt::Display for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.name)
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySource({self}, {} bytes)", self.bytes.len())
    }
}

impl ByteSource for MemorySource {
    fn size(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn hints(&self) -> Hints {
        MEMORY_HINTS
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        match checked_len(&range, self, self.bytes.len() as u64)? {
            0 => Ok(Bytes::new()),
            len => Ok(self.bytes.slice(range.start as usize..range.start as usize + len)),
        }
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.read_range(range.clone())).collect()
    }
}

/// An object in memory that sinks commit to; clones share it.
#[derive(Clone, Default)]
pub struct MemoryFile {
    content: Arc<Mutex<Option<Bytes>>>,
}

impl MemoryFile {
    /// An object without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// The content of the last commit.
    pub fn bytes(&self) -> Option<Bytes> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A source over the content of the last commit.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] before the first commit.
    pub fn source(&self) -> Result<MemorySource> {
        let missing = || Error::new(ErrorKind::NotFound, "open", self, "nothing was committed");
        self.bytes().map(MemorySource::new).ok_or_else(missing)
    }

    fn set(&self, bytes: Bytes) {
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }
}

impl From<Bytes> for MemoryFile {
    fn from(bytes: Bytes) -> Self {
        Self { content: Arc::new(Mutex::new(Some(bytes))) }
    }
}

impl fmt::Display for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory:")
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({:?} bytes)", self.bytes().map(|bytes| bytes.len()))
    }
}

/// A sink into memory, committed under a [`MemoryFile`].
pub struct MemorySink {
    target: MemoryFile,
    bytes: Vec<u8>,
    /// Whether checkpoints are visible, which they are not in a new object.
    is_update: bool,
    poisoned: bool,
}

impl MemorySink {
    /// A sink that starts empty and replaces the content of `target`.
    pub fn create(target: &MemoryFile) -> Self {
        Self { target: target.clone(), bytes: Vec::new(), is_update: false, poisoned: false }
    }

    /// A sink that continues the content of `target`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without content.
    pub fn update(target: &MemoryFile) -> Result<Self> {
        let bytes = target.source()?.bytes.to_vec();
        Ok(Self { target: target.clone(), bytes, is_update: true, poisoned: false })
    }
}

impl fmt::Display for MemorySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

impl fmt::Debug for MemorySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySink({} bytes)", self.bytes.len())
    }
}

impl ByteSink for MemorySink {
    fn position(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(&self.target));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        check_patch(offset, bytes.len(), self.position(), &self.target).inspect_err(|_| self.poisoned = true)?;
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(&self.target));
        }
        if self.is_update {
            self.target.set(Bytes::copy_from_slice(&self.bytes));
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(&self.target));
        }
        self.target.set(Bytes::from(self.bytes));
        Ok(())
    }

    fn abort(self: Box<Self>) -> Result<Option<String>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{SinkCase, sink_laws, source_laws, update_laws};

    #[test]
    fn memory_keeps_the_laws_of_a_source() {
        for size in [0, 1, 1000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            source_laws(&MemorySource::new(bytes.clone()), &bytes);
        }
    }

    fn case(target: MemoryFile, sink: MemorySink) -> SinkCase {
        SinkCase::new(sink, move || target.bytes().map(|bytes| bytes.to_vec()))
    }

    #[test]
    fn memory_keeps_the_laws_of_a_sink() {
        sink_laws(|old| {
            let target = old.map_or_else(MemoryFile::new, |old| Bytes::copy_from_slice(old).into());
            case(target.clone(), MemorySink::create(&target))
        });
        update_laws(|old| {
            let target = MemoryFile::from(Bytes::copy_from_slice(old));
            case(target.clone(), MemorySink::update(&target).unwrap())
        });
    }

    #[test]
    fn reads_copy_nothing() {
        let bytes = Bytes::from(vec![7; 100]);
        let source = MemorySource::new(bytes.clone()).with_name("x");
        assert_eq!(source.read_range(10..20).unwrap().as_ptr(), bytes[10..].as_ptr());
        assert_eq!(source.to_string(), "memory:x");
    }

    #[test]
    fn reading_before_a_commit_is_an_error() {
        let target = MemoryFile::new();
        assert!(target.source().unwrap_err().is_not_found());
        assert!(MemorySink::update(&target).unwrap_err().is_not_found());
    }
}
