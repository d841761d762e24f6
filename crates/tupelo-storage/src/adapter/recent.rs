//! What was read last, in memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::Result;
use crate::objects::{Keys, ObjectEntry, ObjectRange, ObjectSource, ObjectVersion};
use crate::source::{ByteSource, Hints, Traffic, read_missing};

/// A source that keeps the requests that it read last, for a task that reads the same bytes several times within a short
/// while.
#[derive(Debug)]
pub struct RecentSource<S> {
    inner: S,
    max_bytes: u64,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    bytes: u64,
    /// Requests with their bytes, oldest first.
    requests: VecDeque<(Range<u64>, Bytes)>,
}

impl<S: ByteSource> RecentSource<S> {
    /// Wraps `inner`, and keeps at most `max_bytes`.
    pub fn new(inner: S, max_bytes: u64) -> Self {
        Self { inner, max_bytes, recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn find(&self, wanted: &Range<u64>) -> Option<Bytes> {
        let holds = |request: &Range<u64>| request.start <= wanted.start && wanted.end <= request.end;
        let (request, bytes) = self.requests.iter().rev().find(|(request, _)| holds(request))?;
        // The bytes are in memory, so that these casts are lossless.
        Some(bytes.slice((wanted.start - request.start) as usize..(wanted.end - request.start) as usize))
    }

    fn keep(&mut self, request: Range<u64>, bytes: Bytes, max_bytes: u64) {
        self.bytes += bytes.len() as u64;
        self.requests.push_back((request, bytes));
        while self.bytes > max_bytes
            && let Some((_, oldest)) = self.requests.pop_front()
        {
            self.bytes -= oldest.len() as u64;
        }
    }
}

impl<S: ByteSource> fmt::Display for RecentSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSource> ByteSource for RecentSource<S> {
    fn size(&self) -> Result<u64> {
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

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.read_ranges(&[range])?.pop().unwrap_or_default())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let found = || {
            let recent = self.recent();
            ranges.iter().map(|range| recent.find(range)).collect()
        };
        read_missing(self, ranges, found, |requests| {
            let answers = self.inner.read_ranges(requests)?;
            for (request, answer) in requests.iter().zip(&answers) {
                self.recent().keep(request.clone(), answer.clone(), self.max_bytes);
            }
            Ok(answers)
        })
    }
}

/// A namespace that keeps the ranges that it read last, as [`RecentSource`].
#[derive(Debug)]
pub struct RecentObjects {
    inner: Arc<dyn ObjectSource>,
    max_bytes: u64,
    recent: Mutex<RecentRanges>,
}

#[derive(Debug, Default)]
struct RecentRanges {
    bytes: u64,
    /// The ranges of each object.
    objects: HashMap<Arc<str>, Vec<(Range<u64>, Bytes)>>,
    /// The objects of the ranges, oldest first.
    order: VecDeque<Arc<str>>,
}

impl RecentRanges {
    fn find(&self, ObjectRange { key, range }: &ObjectRange) -> Option<Bytes> {
        let holds = |(kept, _): &&(Range<u64>, Bytes)| kept.start <= range.start && range.end <= kept.end;
        let (kept, bytes) = self.objects.get(key)?.iter().rev().find(holds)?;
        // The bytes are in memory, so that these casts are lossless.
        Some(bytes.slice((range.start - kept.start) as usize..(range.end - kept.start) as usize))
    }

    fn keep(&mut self, ObjectRange { key, range }: ObjectRange, bytes: Bytes, max_bytes: u64) {
        self.bytes += bytes.len() as u64;
        self.order.push_back(Arc::clone(&key));
        self.objects.entry(key).or_default().push((range, bytes));
        while self.bytes > max_bytes
            && let Some(oldest) = self.order.pop_front()
        {
            let Some(ranges) = self.objects.get_mut(&oldest) else { continue };
            self.bytes -= ranges.remove(0).1.len() as u64;
            if ranges.is_empty() {
                self.objects.remove(&oldest);
            }
        }
    }
}

impl RecentObjects {
    /// Wraps `inner`, and keeps at most `max_bytes`.
    pub fn new(inner: Arc<dyn ObjectSource>, max_bytes: u64) -> Self {
        Self { inner, max_bytes, recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, RecentRanges> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for RecentObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl ObjectSource for RecentObjects {
    fn keys(&self) -> Keys {
        self.inner.keys()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self) -> bool {
        self.inner.reads_in_place()
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        self.inner.get(key, max_bytes)
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let found: Vec<Option<Bytes>> = {
            let recent = self.recent();
            ranges.iter().map(|range| recent.find(range)).collect()
        };
        let missing = ranges.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing: Vec<ObjectRange> = missing.map(|(range, _)| range.clone()).collect();
        let fetched = self.inner.get_ranges(&missing)?;
        let mut recent = self.recent();
        for (range, bytes) in missing.into_iter().zip(&fetched) {
            recent.keep(range, bytes.clone(), self.max_bytes);
        }
        let mut fetched = fetched.into_iter();
        Ok(found.into_iter().map(|found| found.or_else(|| fetched.next()).unwrap_or_default()).collect())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        self.inner.list(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::{IoLog, RecordingSource};
    use crate::laws::source_laws;
    use crate::local::memory::MemorySource;
    use crate::objects::{NewObject, ObjectMemory, ObjectSink};

    #[test]
    fn keeping_recent_requests_keeps_the_laws() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        for max_bytes in [0, 10, 1 << 20] {
            source_laws(&RecentSource::new(MemorySource::new(bytes.clone()), max_bytes), &bytes);
        }
    }

    #[test]
    fn the_oldest_request_is_dropped_first() {
        let log = IoLog::new();
        let source = RecentSource::new(RecordingSource::new(MemorySource::new(vec![1; 1000]), &log), 100);
        let mut requests_of = |range: Range<u64>| {
            let before = log.read_requests();
            source.read_range(range).unwrap();
            log.read_requests() - before
        };
        assert_eq!([0..60, 20..30, 60..100, 0..60].map(&mut requests_of), [1, 0, 1, 0]);
        assert_eq!([200..210, 60..100, 0..60].map(&mut requests_of), [1, 0, 1]);
        assert_eq!([500..700, 500..700].map(&mut requests_of), [1, 1], "larger than all that is kept");
    }

    #[test]
    fn ranges_of_objects_are_kept_up_to_a_limit() {
        let store = ObjectMemory::new();
        let object = |key: &str| NewObject { key: key.to_owned(), pieces: vec![Bytes::from(vec![7; 100])] };
        store.put(&[object("a"), object("b")]).unwrap();
        let recent = RecentObjects::new(Arc::new(store.clone()), 150);
        let read = |key: &str, range: Range<u64>| {
            let before = store.counts().gets;
            let bytes = recent.get_ranges(&[ObjectRange { key: key.into(), range: range.clone() }]).unwrap();
            assert_eq!(bytes[0].len() as u64, range.end - range.start);
            store.counts().gets - before
        };
        assert_eq!([read("a", 0..80), read("a", 10..70), read("b", 0..60), read("a", 0..80)], [1, 0, 1, 0]);
        // Ten bytes too many: the oldest range is dropped.
        assert_eq!([read("b", 60..80), read("b", 5..60), read("a", 0..80)], [1, 0, 1]);
        assert!(recent.get_ranges(&[ObjectRange { key: "c".into(), range: 0..1 }]).unwrap_err().is_not_found());
    }
}
