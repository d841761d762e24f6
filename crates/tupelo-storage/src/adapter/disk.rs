//! Disks that record calls, and disks with injected faults, for tests of [`FileSink`](crate::FileSink).

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::local::Disk;

/// A call that changed a file, with the bytes that were actually written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskCall {
    /// Bytes were written at the end.
    Append(Bytes),
    /// Bytes were overwritten.
    Overwrite {
        /// Offset in bytes.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// Everything before was made durable.
    Sync,
    /// The file was truncated to this length.
    Truncate(u64),
}

impl DiskCall {
    /// Applies the call to a file in memory.
    pub fn replay(&self, file: &mut Vec<u8>) {
        match self {
            Self::Append(bytes) => file.extend_from_slice(bytes),
            Self::Overwrite { offset, bytes } => {
                let start = *offset as usize;
                let end = start + bytes.len();
                file.resize(file.len().max(end), 0);
                file[start..end].copy_from_slice(bytes);
            }
            Self::Sync => {}
            Self::Truncate(len) => file.resize(*len as usize, 0),
        }
    }
}

/// The calls to a [`RecordingDisk`]; clones share one list.
#[derive(Debug, Clone, Default)]
pub struct DiskLog {
    calls: Arc<Mutex<Vec<DiskCall>>>,
}

impl DiskLog {
    fn lock(&self) -> MutexGuard<'_, Vec<DiskCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All calls so far that changed the file.
    pub fn calls(&self) -> Vec<DiskCall> {
        self.lock().clone()
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no calls were made.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// A disk that records calls. Syncs are recorded but not performed, because they are slow.
#[derive(Debug)]
pub struct RecordingDisk {
    inner: Box<dyn Disk>,
    log: DiskLog,
    append_bytes: usize,
}

impl RecordingDisk {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn Disk>, log: &DiskLog) -> Self {
        Self { inner, log: log.clone(), append_bytes: usize::MAX }
    }

    /// Limits the bytes of one append, so that a short recording has many calls. At least one.
    #[must_use]
    pub fn with_append_bytes(mut self, bytes: usize) -> Self {
        self.append_bytes = bytes.max(1);
        self
    }
}

impl Disk for RecordingDisk {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes: Vec<u8> = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(&piece[..piece.len().min(self.append_bytes - bytes.len())]);
        }
        let taken = self.inner.append(&[IoSlice::new(&bytes)])?;
        bytes.truncate(taken);
        self.log.lock().push(DiskCall::Append(bytes.into()));
        Ok(taken)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.inner.overwrite(offset, bytes)?;
        let bytes = Bytes::copy_from_slice(&bytes[..taken]);
        self.log.lock().push(DiskCall::Overwrite { offset, bytes });
        Ok(taken)
    }

    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.inner.read(offset, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.log.lock().push(DiskCall::Sync);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)?;
        self.log.lock().push(DiskCall::Truncate(len));
        Ok(())
    }
}

/// The fault of a [`FaultyDisk`].
#[derive(Debug, Clone)]
pub enum DiskFault {
    /// The calls with these numbers, counted from 0 over all kinds, fail with an error of the system.
    Calls {
        /// Numbers of the calls.
        calls: Range<u64>,
        /// The error's number, as `EIO`.
        errno: i32,
    },
    /// The calls with these numbers write only one byte.
    Short {
        /// Numbers of the calls.
        calls: Range<u64>,
    },
    /// The size of the file is limited. A call writes what fits, and the next one fails with `errno`.
    Room {
        /// Initial length of the file, in bytes.
        used_bytes: u64,
        /// Maximum length, in bytes.
        bytes: u64,
        /// The error's number, as `ENOSPC`.
        errno: i32,
    },
}

/// A disk with an injected fault.
#[derive(Debug)]
pub struct FaultyDisk {
    inner: Box<dyn Disk>,
    fault: DiskFault,
    calls: Arc<AtomicU64>,
}

impl FaultyDisk {
    /// Wraps `inner`. `calls` counts the calls, so that the caller can see whether a fault was injected.
    pub fn new(inner: Box<dyn Disk>, fault: DiskFault, calls: &Arc<AtomicU64>) -> Self {
        Self { inner, fault, calls: calls.clone() }
    }

    /// Counts a call of `len` bytes; returns the number of bytes that it may write.
    fn call(&mut self, len: usize) -> io::Result<usize> {
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        match &self.fault {
            DiskFault::Calls { calls, errno } if calls.contains(&n) => Err(io::Error::from_raw_os_error(*errno)),
            DiskFault::Short { calls } if calls.contains(&n) => Ok(len.min(1)),
            _ => Ok(len),
        }
    }
}

impl Disk for FaultyDisk {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes = Vec::new();
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        let mut len = self.call(bytes.len())?;
        if let DiskFault::Room { used_bytes, bytes, errno } = &mut self.fault {
            let room = bytes.saturating_sub(*used_bytes);
            if room == 0 {
                return Err(io::Error::from_raw_os_error(*errno));
            }
            len = len.min(room as usize);
            *used_bytes += len as u64;
        }
        bytes.truncate(len);
        self.inner.append(&[IoSlice::new(&bytes)])
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let len = self.call(bytes.len())?;
        self.inner.overwrite(offset, &bytes[..len])
    }

    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.call(len)?;
        self.inner.read(offset, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.call(0)?;
        self.inner.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.call(0)?;
        if let DiskFault::Room { used_bytes, .. } = &mut self.fault {
            *used_bytes = len;
        }
        self.inner.truncate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{SinkCase, update_laws};
    use crate::local::FileSink;

    #[test]
    fn replaying_the_recording_gives_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let log = DiskLog::default();
        let wrap = |log: &DiskLog| {
            let log = log.clone();
            move |disk| -> Box<dyn Disk> { Box::new(RecordingDisk::new(disk, &log).with_append_bytes(3)) }
        };
        let mut sink: Box<dyn crate::ByteSink> = Box::new(FileSink::create_through(&path, wrap(&log)).unwrap());
        sink.append(b"0123456789").unwrap();
        sink.patch(2, b"XY").unwrap();
        sink.commit().unwrap();
        let mut file = Vec::new();
        log.calls().iter().for_each(|call| call.replay(&mut file));
        assert_eq!((file.as_slice(), std::fs::read(&path).unwrap()), (&b"01XY456789"[..], file.clone()));
        assert_eq!(log.calls()[0], DiskCall::Append(Bytes::from_static(b"012")));
        assert_eq!(log.len(), 7, "four appends, a sync, a patch and a sync: {:?}", log.calls());

        let log = DiskLog::default();
        assert!(log.is_empty());
        let mut sink = Box::new(FileSink::update_through(&path, wrap(&log)).unwrap());
        crate::ByteSink::append(&mut *sink, &vec![7; crate::local::LOCAL_WRITE_BUFFER_BYTES + 1]).unwrap();
        crate::ByteSink::abort(sink).unwrap();
        log.calls().iter().for_each(|call| call.replay(&mut file));
        assert_eq!(file, b"01XY456789");
    }

    #[test]
    fn short_and_interrupted_calls_keep_the_laws() {
        // `EINTR` is 4 on all Unix systems.
        for fault in [DiskFault::Short { calls: 0..3 }, DiskFault::Calls { calls: 0..3, errno: 4 }] {
            update_laws(|old| {
                let directory = tempfile::tempdir().unwrap();
                let path = directory.path().join("x");
                std::fs::write(&path, old).unwrap();
                let wrap = |disk| -> Box<dyn Disk> { Box::new(FaultyDisk::new(disk, fault.clone(), &Arc::default())) };
                let sink = FileSink::update_through(&path, wrap).unwrap();
                SinkCase::new(sink, move || directory.path().exists().then(|| std::fs::read(&path).ok()).flatten())
            });
        }
    }
}
