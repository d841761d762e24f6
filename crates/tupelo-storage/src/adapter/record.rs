//! An I/O log: requested ranges and the resulting requests. Tests compare it with expected logs.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::Result;
use crate::sink::ByteSink;
use crate::source::{ByteSource, Hints, plan_requests};

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoEvent {
    /// The size was queried.
    Size,
    /// Ranges were read in one call.
    Read {
        /// Number of requested ranges.
        ranges: usize,
        /// The merged requests.
        requests: Vec<Range<u64>>,
    },
    /// Bytes were appended in one call.
    Append {
        /// Offset in bytes.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Bytes were overwritten.
    Patch {
        /// Offset in bytes.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A checkpoint was made.
    Checkpoint,
    /// The sink was committed.
    Commit,
    /// The sink was aborted.
    Abort,
}

impl fmt::Display for IoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size => f.write_str("size"),
            Self::Read { ranges, requests } => {
                let bytes: u64 = requests.iter().map(|request| request.end - request.start).sum();
                write!(f, "read {ranges} ranges, {} requests, {bytes} bytes:", requests.len())?;
                requests.iter().try_for_each(|request| write!(f, " {}..{}", request.start, request.end))
            }
            Self::Append { offset, len } => write!(f, "append {len} bytes at {offset}"),
            Self::Patch { offset, len } => write!(f, "patch {len} bytes at {offset}"),
            Self::Checkpoint => f.write_str("checkpoint"),
            Self::Commit => f.write_str("commit"),
            Self::Abort => f.write_str("abort"),
        }
    }
}

/// The log of recording sources and sinks; clones share one log. `Display` gives one line for each event.
#[derive(Debug, Clone, Default)]
pub struct IoLog {
    events: Arc<Mutex<Vec<IoEvent>>>,
}

impl IoLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// The events so far, in order.
    pub fn events(&self) -> Vec<IoEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the events so far, which empties the log.
    pub fn take(&self) -> Vec<IoEvent> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of read requests so far.
    pub fn read_requests(&self) -> usize {
        self.requests().len()
    }

    /// Number of bytes of those requests.
    pub fn read_bytes(&self) -> u64 {
        self.requests().iter().map(|request| request.end - request.start).sum()
    }

    fn requests(&self) -> Vec<Range<u64>> {
        let events = self.events();
        let requests = events.into_iter().map(|event| match event {
            IoEvent::Read { requests, .. } => requests,
            _ => Vec::new(),
        });
        requests.flatten().collect()
    }

    fn push(&self, event: IoEvent) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl fmt::Display for IoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events().iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// A source whose calls are logged.
#[derive(Debug)]
pub struct RecordingSource<S> {
    inner: S,
    log: IoLog,
}

impl<S: ByteSource> RecordingSource<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, log: &IoLog) -> Self {
        Self { inner, log: log.clone() }
    }
}

impl<S: ByteSource> fmt::Display for RecordingSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSource> ByteSource for RecordingSource<S> {
    fn size(&self) -> Result<u64> {
        self.log.push(IoEvent::Size);
        self.inner.size()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self, range: &Range<u64>) -> bool {
        self.inner.reads_in_place(range)
    }

    fn version(&self) -> Option<String> {
        self.inner.version()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let requests = Vec::from_iter((!range.is_empty()).then(|| range.clone()));
        self.log.push(IoEvent::Read { ranges: 1, requests });
        self.inner.read_range(range)
    }

    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let end = start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
        let requests = Vec::from_iter((end > start).then_some(start..end));
        self.log.push(IoEvent::Read { ranges: 1, requests });
        self.inner.read_into(start, pieces)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Merged here to be recorded. The inner source merges no further, and may run the requests concurrently.
        let plan = plan_requests(self, ranges)?;
        self.log.push(IoEvent::Read { ranges: ranges.len(), requests: plan.requests().to_vec() });
        Ok(plan.cut(&self.inner.read_ranges(plan.requests())?))
    }
}

/// A sink whose calls are logged.
#[derive(Debug)]
pub struct RecordingSink<S> {
    inner: Box<S>,
    log: IoLog,
}

impl<S: ByteSink> RecordingSink<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, log: &IoLog) -> Self {
        Self { inner: Box::new(inner), log: log.clone() }
    }
}

impl<S: ByteSink> fmt::Display for RecordingSink<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSink> ByteSink for RecordingSink<S> {
    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.log.push(IoEvent::Append { offset: self.position(), len: bytes.len() as u64 });
        self.inner.append(bytes)
    }

    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.log.push(IoEvent::Append { offset: self.position(), len });
        self.inner.append_vectored(pieces)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.log.push(IoEvent::Patch { offset, len: bytes.len() as u64 });
        self.inner.patch(offset, bytes)
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.log.push(IoEvent::Checkpoint);
        self.inner.checkpoint()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.log.push(IoEvent::Commit);
        self.inner.commit()
    }

    fn abort(self: Box<Self>) -> Result<Option<String>> {
        self.log.push(IoEvent::Abort);
        self.inner.abort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{SinkCase, sink_laws, source_laws, update_laws};
    use crate::local::FileSource;
    use crate::local::memory::{MemoryFile, MemorySink, MemorySource};

    #[test]
    fn recording_keeps_the_laws() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        source_laws(&RecordingSource::new(MemorySource::new(bytes.clone()), &IoLog::new()), &bytes);
        let case = |target: MemoryFile, sink: MemorySink| {
            SinkCase::new(RecordingSink::new(sink, &IoLog::new()), move || target.bytes().map(|bytes| bytes.to_vec()))
        };
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
    fn merged_requests_are_logged() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let log = IoLog::new();
        let source = RecordingSource::new(FileSource::open(file.path()).unwrap(), &log);
        source.size().unwrap();
        source.read_ranges(&[500_000..500_100, 0..10, 1000..1010]).unwrap();
        source.read_range(5..6).unwrap();
        let expected = "size\n\
            read 3 ranges, 2 requests, 1110 bytes: 0..1010 500000..500100\n\
            read 1 ranges, 1 requests, 1 bytes: 5..6\n";
        assert_eq!(log.to_string(), expected);
        assert_eq!((log.read_requests(), log.read_bytes()), (3, 1111));
        assert_eq!(log.take().len(), 3);
        assert!(log.events().is_empty());
    }

    #[test]
    fn writes_are_logged() {
        let log = IoLog::new();
        let target = MemoryFile::new();
        let mut sink = Box::new(RecordingSink::new(MemorySink::create(&target), &log));
        sink.append(b"abc").unwrap();
        sink.append_vectored(&[b"de", b"f"]).unwrap();
        sink.patch(1, b"X").unwrap();
        sink.checkpoint().unwrap();
        sink.commit().unwrap();
        let expected = "append 3 bytes at 0\nappend 3 bytes at 3\npatch 1 bytes at 1\ncheckpoint\ncommit\n";
        assert_eq!(log.to_string(), expected);
        assert_eq!(target.bytes().unwrap(), "aXcdef");
    }
}
