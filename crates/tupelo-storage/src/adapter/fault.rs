//! Fault injection: the n-th call fails, so that tests can try every n.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::sink::{ByteSink, poisoned};
use crate::source::{ByteSource, Hints};

/// Which call fails, and with which kind of error. Clones share one counter, across several sources and sinks.
///
/// The counter includes the requests of a source (after merging, and `size`) and the appends, patches, checkpoints and
/// commits of a sink. Requests are not retried: each fault occurs once.
#[derive(Debug, Clone)]
pub struct Faults {
    calls: Arc<AtomicU64>,
    at: Option<u64>,
    kind: ErrorKind,
}

impl Faults {
    /// Counts calls without faults.
    pub fn none() -> Self {
        Self { calls: Arc::default(), at: None, kind: ErrorKind::Other }
    }

    /// The call after the first `n` fails with an error of this kind.
    pub fn at(n: u64, kind: ErrorKind) -> Self {
        Self { at: Some(n), kind, ..Self::none() }
    }

    /// Number of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a call; returns the injected error for the selected one.
    fn call(&self, action: &str, uri: impl fmt::Display) -> Result<()> {
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.at != Some(n) {
            return Ok(());
        }
        Err(Error::new(self.kind, action.to_owned(), uri, format!("injected fault at call {n}")))
    }
}

/// A source with an injected fault.
#[derive(Debug)]
pub struct FaultySource<S> {
    inner: S,
    faults: Faults,
}

impl<S: ByteSource> FaultySource<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, faults: &Faults) -> Self {
        Self { inner, faults: faults.clone() }
    }
}

impl<S: ByteSource> fmt::Display for FaultySource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSource> ByteSource for FaultySource<S> {
    fn size(&self) -> Result<u64> {
        self.faults.call("get the size of", self)?;
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
        if !range.is_empty() {
            self.faults.call("read", self)?;
        }
        self.inner.read_range(range)
    }

    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        if pieces.iter().any(|piece| !piece.is_empty()) {
            self.faults.call("read", self)?;
        }
        self.inner.read_into(start, pieces)
    }
}

/// A sink with an injected fault; like every sink, it is poisoned after it.
///
/// A failing commit aborts the inner sink.
#[derive(Debug)]
pub struct FaultySink<S> {
    inner: Box<S>,
    faults: Faults,
    poisoned: bool,
}

impl<S: ByteSink> FaultySink<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, faults: &Faults) -> Self {
        Self { inner: Box::new(inner), faults: faults.clone(), poisoned: false }
    }

    fn call(&mut self, action: &str) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(&self.inner));
        }
        self.faults.call(action, &self.inner).inspect_err(|_| self.poisoned = true)
    }
}

impl<S: ByteSink> fmt::Display for FaultySink<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSink> ByteSink for FaultySink<S> {
    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.call("append to")?;
        self.inner.append(bytes)
    }

    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        self.call("append to")?;
        self.inner.append_vectored(pieces)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.call("patch")?;
        self.inner.patch(offset, bytes)
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.call("checkpoint")?;
        self.inner.checkpoint()
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        match self.call("commit") {
            Ok(()) => self.inner.commit(),
            // The first error is reported.
            Err(error) => self.inner.abort().and(Err(error)),
        }
    }

    fn abort(self: Box<Self>) -> Result<Option<String>> {
        self.inner.abort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{SinkCase, sink_laws, source_laws, update_laws};
    use crate::local::memory::{MemoryFile, MemorySink, MemorySource};

    #[test]
    fn without_faults_the_laws_are_kept() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        source_laws(&FaultySource::new(MemorySource::new(bytes.clone()), &Faults::none()), &bytes);
        let case = |target: MemoryFile, sink: MemorySink| {
            SinkCase::new(FaultySink::new(sink, &Faults::none()), move || target.bytes().map(|bytes| bytes.to_vec()))
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
    fn exactly_the_chosen_request_fails() {
        let faults = Faults::at(2, ErrorKind::Timeout);
        let source = FaultySource::new(MemorySource::new(vec![1; 100]), &faults);
        source.size().unwrap();
        let error = source.read_ranges(&[0..1, 50..60, 70..80]).unwrap_err();
        assert_eq!(error.to_string(), "cannot read memory:: injected fault at call 2");
        assert!(error.is_retryable());
        assert_eq!(source.read_ranges(&[0..1, 50..60, 70..80]).unwrap().len(), 3);
        assert_eq!(faults.calls(), 6);
    }
}
