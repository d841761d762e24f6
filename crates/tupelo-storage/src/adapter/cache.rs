//! A cache of remote objects on a local disk.
//!
//! The ranges that were fetched are kept as they are, one file for each request. Blocks of fixed size would make many
//! more bytes pass through the network: a page has some KiB, and the pages of one column are far apart. The same read
//! finds the same ranges again; other reads find those that lie within one of them.
//!
//! Objects are distinguished by their URL without credentials, and by size and ETag, or time of change: a new version
//! never sees the bytes of an old one. XRootD has times in seconds. Objects whose version the server does not report
//! are not cached.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::local::{RangeDirectory, RangeFolder};
use crate::net::Options;
use crate::remote::open_source;
use crate::source::{ByteSource, Hints, Traffic, read_missing, read_range_into};
use crate::xrootd::{self, is_xrootd};

/// A directory with ranges of remote objects, which several processes may use at once. Clones share it.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: Arc<RangeDirectory>,
}

impl Cache {
    /// Default size of a cache: 10 GiB.
    pub const DEFAULT_BYTES: u64 = 10 << 30;

    /// A cache in a directory, which is created if it does not exist. The least recently used files are deleted if
    /// there are more than `max_bytes`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn open(directory: impl AsRef<Path>, max_bytes: u64) -> Result<Self> {
        let path = directory.as_ref();
        let opened = RangeDirectory::open(path, max_bytes);
        let directory = opened.map_err(|error| Error::from_io("use the cache", path.display(), error))?;
        Ok(Self { directory: Arc::new(directory) })
    }

    /// Opens a remote object, as [`remote::open`](crate::remote::open), or a file on an XRootD server, as
    /// [`xrootd::open`]. One request finds out which version it has; its ranges come from the cache if they are there.
    ///
    /// # Errors
    /// As these two.
    pub fn open_object(&self, url: &str, options: &Options) -> Result<Arc<dyn ByteSource>> {
        if is_xrootd(url) {
            return Ok(self.keep(xrootd::open(url, options)?));
        }
        Ok(self.keep(open_source(url, options, false)?))
    }

    /// Keeps the ranges of a source whose version is known.
    fn keep(&self, source: impl ByteSource + 'static) -> Arc<dyn ByteSource> {
        match source.version() {
            Some(version) => {
                let key = format!("{source} {version}");
                Arc::new(CachedSource::new(source, self, &key))
            }
            None => Arc::new(source),
        }
    }
}

/// A source whose ranges are kept in a [`Cache`].
#[derive(Debug)]
pub struct CachedSource<S> {
    inner: S,
    cache: Cache,
    /// `None` if the folder cannot be used: a cache is never the reason for an error.
    folder: Option<RangeFolder>,
}

impl<S: ByteSource> CachedSource<S> {
    /// Wraps `inner`; `key` is its name and version.
    pub fn new(inner: S, cache: &Cache, key: &str) -> Self {
        Self { inner, cache: cache.clone(), folder: cache.directory.object(key).ok() }
    }
}

impl<S: ByteSource> fmt::Display for CachedSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSource> ByteSource for CachedSource<S> {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self, range: &Range<u64>) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.covers(range))
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn version(&self) -> Option<String> {
        self.inner.version()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.read_ranges(&[range])?.pop().unwrap_or_default())
    }

    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let cached = self.folder.as_ref().and_then(|folder| folder.read_into(start, pieces));
        cached.map_or_else(|| read_range_into(self, start, pieces), Ok)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(folder) = &self.folder else { return self.inner.read_ranges(ranges) };
        read_missing(
            self,
            ranges,
            || ranges.iter().map(|range| folder.read(range)).collect(),
            |requests| {
                let answers = self.inner.read_ranges(requests)?;
                for (request, answer) in requests.iter().zip(&answers) {
                    // A full disk only means that the next read fetches it again.
                    let _ = folder.keep(request.start, answer);
                }
                if !answers.is_empty() {
                    let _ = self.cache.directory.wrote(answers.iter().map(|answer| answer.len() as u64).sum());
                }
                Ok(answers)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::{IoLog, RecordingSource};
    use crate::laws::source_laws;
    use crate::local::memory::MemorySource;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn caching_keeps_the_laws() {
        let directory = tempfile::tempdir().unwrap();
        for max_bytes in [0, 10_000, u64::MAX] {
            let cache = Cache::open(directory.path().join(max_bytes.to_string()), max_bytes).unwrap();
            for size in [0, 1, 1000, 300_000] {
                for _ in 0..2 {
                    let inner = MemorySource::new(bytes(size));
                    source_laws(&CachedSource::new(inner, &cache, &format!("key {size}")), &bytes(size));
                }
            }
        }
    }

    #[test]
    fn the_second_reader_finds_what_the_first_one_fetched() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), Cache::DEFAULT_BYTES).unwrap();
        for requests in [2, 0] {
            let log = IoLog::default();
            let inner = RecordingSource::new(MemorySource::new(bytes(1000)), &log);
            let source = CachedSource::new(inner, &cache, "key");
            assert_eq!(source.read_ranges(&[10..20, 500..600, 5..5]).unwrap()[1], bytes(1000)[500..600]);
            assert_eq!(source.read_range(510..520).unwrap(), bytes(1000)[510..520]);
            assert_eq!(log.read_requests(), requests);
        }
    }

    #[test]
    fn several_processes_may_share_it() {
        let directory = tempfile::tempdir().unwrap();
        let content = bytes(500_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // Each thread has what a process would have. The cache is so small that files are deleted all the time.
                scope.spawn(|| {
                    let cache = Cache::open(directory.path(), 50_000).unwrap();
                    for _ in 0..5 {
                        source_laws(&CachedSource::new(MemorySource::new(content.clone()), &cache, "key"), &content);
                    }
                });
            }
        });
    }
}
