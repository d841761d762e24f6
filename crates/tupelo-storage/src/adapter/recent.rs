//! A cache of recent reads, in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::Result;
use crate::objects::{Keys, ObjectEntry, ObjectRange, ObjectSource, ObjectVersion};
use crate::source::{ByteSource, Hints, Traffic, read_missing};

/// A source that keeps requests that it has read, for a task that reads the same bytes several times within a short
/// while.
#[derive(Debug)]
pub struct RecentSource<S> {
    inner: S,
    max_bytes: u64,
    recent: Mutex<Recent<()>>,
}

/// Ranges that were read of some things, with their bytes.
///
/// Batches read parts of pages, and thus some pages of the previous batch again. The first range that is read again starts
/// a new pass. If room is needed, ranges that were read neither in this pass nor in the previous one are dropped. If that
/// is not enough, new ranges are not kept: those that are kept will be needed first.
#[derive(Debug)]
struct Recent<K> {
    bytes: u64,
    /// By where they begin.
    kept: HashMap<K, BTreeMap<u64, Kept>>,
    pass: u64,
    /// What was read in this pass: where each range begins.
    seen: HashSet<(K, u64)>,
}

#[derive(Debug)]
struct Kept {
    end: u64,
    bytes: Bytes,
    /// The last pass that has read it.
    pass: u64,
}

/// Ranges that begin before the wanted one, and are looked at. Small files can have a million.
const NEAR: usize = 64;
/// Ranges that are known of a pass, at most.
const MAX_SEEN: usize = 1 << 18;

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self { bytes: 0, kept: HashMap::new(), pass: 0, seen: HashSet::new() }
    }
}

impl<K: Clone + Eq + Hash> Recent<K> {
    fn find(&mut self, key: &K, wanted: &Range<u64>) -> Option<Bytes> {
        let place = (key.clone(), wanted.start);
        if self.seen.len() >= MAX_SEEN || self.seen.contains(&place) {
            self.pass += 1;
            self.seen.clear();
        }
        self.seen.insert(place);
        let mut before = self.kept.get_mut(key)?.range_mut(..=wanted.start).rev().take(NEAR);
        let (start, kept) = before.find(|(_, kept)| wanted.end <= kept.end)?;
        kept.pass = self.pass;
        // The bytes are in memory, so that these casts are lossless.
        Some(kept.bytes.slice((wanted.start - start) as usize..(wanted.end - start) as usize))
    }

    fn keep(&mut self, key: K, range: Range<u64>, bytes: Bytes, max_bytes: u64) {
        let fits = |kept: u64| kept.saturating_add(bytes.len() as u64) <= max_bytes;
        if !fits(self.bytes) {
            let (pass, mut dropped) = (self.pass, 0);
            self.kept.retain(|_, ranges| {
                ranges.retain(|_, kept| {
                    let is_recent = kept.pass + 1 >= pass;
                    dropped += if is_recent { 0 } else { kept.bytes.len() as u64 };
                    is_recent
                });
                !ranges.is_empty()
            });
            self.bytes -= dropped;
        }
        if fits(self.bytes) {
            self.bytes += bytes.len() as u64;
            let kept = Kept { end: range.end, bytes, pass: self.pass };
            let shorter = self.kept.entry(key).or_default().insert(range.start, kept);
            self.bytes -= shorter.map_or(0, |kept| kept.bytes.len() as u64);
        }
    }
}

impl<S: ByteSource> RecentSource<S> {
    /// Wraps `inner`, and keeps at most `max_bytes`.
    pub fn new(inner: S, max_bytes: u64) -> Self {
        Self { inner, max_bytes, recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent<()>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
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
            let mut recent = self.recent();
            ranges.iter().map(|range| recent.find(&(), range)).collect()
        };
        read_missing(self, ranges, found, |requests| {
            let answers = self.inner.read_ranges(requests)?;
            for (request, answer) in requests.iter().zip(&answers) {
                self.recent().keep((), request.clone(), answer.clone(), self.max_bytes);
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
    recent: Mutex<Recent<Arc<str>>>,
}

impl RecentObjects {
    /// Wraps `inner`, and keeps at most `max_bytes`.
    pub fn new(inner: Arc<dyn ObjectSource>, max_bytes: u64) -> Self {
        Self { inner, max_bytes, recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent<Arc<str>>> {
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
            let mut recent = self.recent();
            ranges.iter().map(|wanted| recent.find(&wanted.key, &wanted.range)).collect()
        };
        let missing = ranges.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing: Vec<ObjectRange> = missing.map(|(range, _)| range.clone()).collect();
        let fetched = self.inner.get_ranges(&missing)?;
        let mut recent = self.recent();
        for (range, bytes) in missing.into_iter().zip(&fetched) {
            recent.keep(range.key, range.range, bytes.clone(), self.max_bytes);
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

    /// Defect: each of many small reads looked at all before it.
    #[test]
    fn a_range_is_found_among_many_and_a_longer_one_takes_its_place() {
        let mut recent: Recent<()> = Recent::default();
        let bytes = |range: &Range<u64>| Bytes::from(vec![7; (range.end - range.start) as usize]);
        let mut keep = |range: Range<u64>| recent.keep((), range.clone(), bytes(&range), 1 << 20);
        keep(0..500);
        (0..100).for_each(|place| keep(1000 + place * 10..1005 + place * 10));
        keep(1500..1600);
        assert_eq!(recent.bytes, 500 + 99 * 5 + 100);
        let found = [0..500, 400..500, 1990..1995, 1550..1600, 1985..1991].map(|range| recent.find(&(), &range));
        assert_eq!(found.map(|found| found.map(|bytes| bytes.len())), [Some(500), Some(100), Some(5), Some(50), None]);
    }

    #[test]
    fn ranges_not_read_for_two_passes_are_dropped_first() {
        let log = IoLog::new();
        let source = RecentSource::new(RecordingSource::new(MemorySource::new(vec![1; 1000]), &log), 100);
        let mut requests_of = |range: Range<u64>| {
            let before = log.read_requests();
            source.read_range(range).unwrap();
            log.read_requests() - before
        };
        assert_eq!([0..60, 20..30, 60..100, 0..60].map(&mut requests_of), [1, 0, 1, 0]);
        assert_eq!([0..60, 0..60, 200..240, 200..240, 0..60].map(&mut requests_of), [0, 0, 1, 0, 0]);
        assert_eq!([60..100, 500..700, 500..700].map(&mut requests_of), [1, 1, 1], "more than all that is kept");
    }

    /// Defect: copying a cluster that did not fit into the kept memory fetched the whole cluster for each batch.
    #[test]
    fn ranges_read_in_turn_are_kept_until_they_are_read_again() {
        let log = IoLog::new();
        let source = RecentSource::new(RecordingSource::new(MemorySource::new(vec![1; 1000]), &log), 800);
        for _ in 0..5 {
            (0..10).for_each(|page| drop(source.read_range(page * 100..page * 100 + 100).unwrap()));
        }
        // A fifth of it does not fit.
        assert_eq!(log.read_requests(), 10 + 4 * 2);
    }

    /// Batches that end within pages: each page is fetched once.
    #[test]
    fn pages_that_two_batches_share_are_fetched_once() {
        let log = IoLog::new();
        let source = RecentSource::new(RecordingSource::new(MemorySource::new(vec![1; 100_000]), &log), 1600);
        for batch in 0..100u64 {
            for column in 0..4 {
                for page in batch..batch + 2 {
                    let start = column * 20_000 + page * 100;
                    source.read_range(start..start + 100).unwrap();
                }
            }
        }
        assert_eq!(log.read_requests(), 4 * 101);
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
        // Ten bytes too many: what is new is not kept.
        assert_eq!([read("b", 60..80), read("b", 5..60), read("a", 0..80)], [1, 0, 0]);
        assert!(recent.get_ranges(&[ObjectRange { key: "c".into(), range: 0..1 }]).unwrap_err().is_not_found());
    }
}
