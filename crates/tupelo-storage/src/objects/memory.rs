//! Memory as a namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};

use super::directory::too_large;
use super::{
    Condition, Keys, NewObject, ObjectEntry, ObjectRange, ObjectSink, ObjectSource, ObjectVersion, key, probe,
};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::MEMORY_HINTS;
use crate::source::{Hints, checked_len};

/// The URI of all namespaces in memory.
const BASE: &str = "memory:";

/// A namespace in memory, which ends with its last clone; clones share it.
/// ```
/// use tupelo_storage::{NewObject, ObjectMemory, ObjectSink, ObjectSource};
///
/// let objects = ObjectMemory::new();
/// objects.put(&[NewObject { key: "a/1".into(), pieces: vec!["some ".into(), "bytes".into()] }])?;
/// assert_eq!(objects.get("a/1", 100)?.0, "some bytes");
/// # Ok::<(), tupelo_storage::Error>(())
/// ```
/// For tests, it counts what is read and written, and fails on request.
#[derive(Clone, Default)]
pub struct ObjectMemory {
    keys: Keys,
    state: Arc<Mutex<State>>,
}

/// Counts of operations on an [`ObjectMemory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectCounts {
    /// Objects that were written, or that were to be written when a fault came. Published ones count.
    pub puts: u64,
    /// Bytes of these.
    pub put_bytes: u64,
    /// Objects and ranges that were read, or that were to be read. Empty ranges do not count.
    pub gets: u64,
    /// Bytes of these.
    pub get_bytes: u64,
    /// Calls of [`ObjectSink::flush`].
    pub flushes: u64,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Stored>,
    /// Number of versions so far.
    versions: u64,
    counts: ObjectCounts,
    failing_put: Option<u64>,
    failing_get: Option<u64>,
    ambiguous: Option<String>,
    ignores_conditions: bool,
}

struct Stored {
    bytes: Bytes,
    version: u64,
    modified: SystemTime,
}

impl ObjectMemory {
    /// A namespace without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same objects in a namespace that says that its keys have this form, which is not checked.
    #[must_use]
    pub fn with_keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// Counts since it was created, or since [`reset_counts`](Self::reset_counts).
    pub fn counts(&self) -> ObjectCounts {
        self.state().counts
    }

    /// Starts to count again.
    pub fn reset_counts(&self) {
        self.state().counts = ObjectCounts::default();
    }

    /// Makes the writing of an object fail once, with [`ErrorKind::Unavailable`]: the next one for 0. Nothing is
    /// written then.
    pub fn fail_put(&self, after: u64) {
        self.state().failing_put = Some(after);
    }

    /// Makes the reading of an object or range fail once, with [`ErrorKind::Unavailable`]: the next one for 0.
    pub fn fail_get(&self, after: u64) {
        self.state().failing_get = Some(after);
    }

    /// Makes [`ObjectSink::publish`] of an object fail once with [`ErrorKind::Unavailable`] although the object is written.
    pub fn make_publish_ambiguous(&self, key: &str) {
        self.state().ambiguous = Some(key.to_owned());
    }

    /// Whether [`ObjectSink::publish`] writes also where the condition is not met, as stores do that ignore conditions.
    pub fn ignore_conditions(&self, ignore: bool) {
        self.state().ignores_conditions = ignore;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an object that is written, or fails.
    fn count_put(&mut self, key: &str, bytes: u64) -> Result<()> {
        self.counts.puts += 1;
        self.counts.put_bytes += bytes;
        match is_next(&mut self.failing_put) {
            true => Err(fault("write", key)),
            false => Ok(()),
        }
    }

    /// Counts a read, or fails.
    fn count_get(&mut self, key: &str, bytes: u64) -> Result<()> {
        self.counts.gets += 1;
        self.counts.get_bytes += bytes;
        match is_next(&mut self.failing_get) {
            true => Err(fault("read", key)),
            false => Ok(()),
        }
    }

    fn find(&self, key: &str) -> Result<&Stored> {
        let missing =
            || Error::new(ErrorKind::NotFound, "read", format_args!("{BASE}{key}"), "the object does not exist");
        self.objects.get(key).ok_or_else(missing)
    }

    fn write(&mut self, key: &str, bytes: Bytes) {
        self.versions += 1;
        let stored = Stored { bytes, version: self.versions, modified: SystemTime::now() };
        self.objects.insert(key.to_owned(), stored);
    }
}

impl Stored {
    fn version(&self) -> ObjectVersion {
        ObjectVersion { etag: None, generation: Some(self.version.to_string()) }
    }
}

/// Counts down to a fault.
fn is_next(failing: &mut Option<u64>) -> bool {
    *failing = match *failing {
        Some(0) => {
            *failing = None;
            return true;
        }
        left => left.map(|left| left - 1),
    };
    false
}

#[cold]
fn fault(action: &'static str, key: &str) -> Error {
    Error::new(ErrorKind::Unavailable, action, format_args!("{BASE}{key}"), "it fails on request of a test")
}

impl fmt::Display for ObjectMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BASE)
    }
}

impl fmt::Debug for ObjectMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectMemory({} objects)", self.state().objects.len())
    }
}

impl ObjectSource for ObjectMemory {
    fn keys(&self) -> Keys {
        self.keys.clone()
    }

    fn hints(&self) -> Hints {
        MEMORY_HINTS
    }

    fn reads_in_place(&self) -> bool {
        true
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        key::check(key, self, "read")?;
        let mut state = self.state();
        let len = state.objects.get(key).map_or(0, |stored| stored.bytes.len()) as u64;
        state.count_get(key, len)?;
        let stored = state.find(key)?;
        match len > max_bytes {
            true => Err(too_large(format!("{BASE}{key}"), len, max_bytes)),
            false => Ok((stored.bytes.clone(), stored.version())),
        }
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let mut state = self.state();
        let one = |ObjectRange { key, range }: &ObjectRange| {
            key::check(key, BASE, "read")?;
            if range.is_empty() && range.start == range.end {
                return Ok(Bytes::new());
            }
            state.count_get(key, range.end.saturating_sub(range.start))?;
            let bytes = &state.find(key)?.bytes;
            let len = checked_len(range, format_args!("{BASE}{key}"), bytes.len() as u64)?;
            // The cast is lossless: the range is in memory.
            Ok(bytes.slice(range.start as usize..range.start as usize + len))
        };
        ranges.iter().map(one).collect()
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        key::check_prefix(prefix, self)?;
        let state = self.state();
        let found = state.objects.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let entry = |(key, stored): (&String, &Stored)| ObjectEntry {
            key: key.clone(),
            bytes: stored.bytes.len() as u64,
            modified: Some(stored.modified),
        };
        Ok(found.map(entry).collect())
    }
}

impl ObjectSink for ObjectMemory {
    /// Never overwrites an object. Pieces are copied to one.
    fn put(&self, objects: &[NewObject]) -> Result<()> {
        objects.iter().try_for_each(|NewObject { key, pieces }| {
            key::check(key, self, "write")?;
            let len = pieces.iter().map(Bytes::len).sum();
            let bytes = match pieces.as_slice() {
                [one] => one.clone(),
                several => several
                    .iter()
                    .fold(BytesMut::with_capacity(len), |mut all, piece| {
                        all.extend_from_slice(piece);
                        all
                    })
                    .freeze(),
            };
            let mut state = self.state();
            state.count_put(key, len as u64)?;
            if state.objects.contains_key(key) {
                let uri = format!("{BASE}{key}");
                return Err(Error::new(ErrorKind::Changed, "write", uri, "it already exists"));
            }
            state.write(key, bytes);
            Ok(())
        })
    }

    fn flush(&self) -> Result<()> {
        self.state().counts.flushes += 1;
        Ok(())
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        self.publish_with(&[], key, bytes, condition)
    }

    fn publish_with(&self, others: &[NewObject], key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        key::check(key, self, "write")?;
        others.iter().try_for_each(|other| key::check(&other.key, self, "write"))?;
        let mut state = self.state();
        state.count_put(key, bytes.len() as u64)?;
        let found = state.objects.get(key).map(Stored::version);
        let reason = match (condition, found) {
            _ if state.ignores_conditions => None,
            (Condition::Absent, None) => None,
            (Condition::Version(version), Some(found)) if *version == found => None,
            (Condition::Absent, Some(_)) => Some("it already exists"),
            (Condition::Version(_), None) => Some("it no longer exists"),
            (Condition::Version(_), Some(_)) => Some("another writer has changed it"),
        };
        if let Some(reason) = reason {
            return Err(Error::new(ErrorKind::Changed, "write", format_args!("{BASE}{key}"), reason));
        }
        for other in others {
            state.write(&other.key, other.pieces.concat().into());
        }
        state.write(key, bytes);
        match state.ambiguous.take_if(|ambiguous| ambiguous == key).is_some() {
            true => Err(fault("write", key)),
            false => Ok(()),
        }
    }

    fn honours_conditions(&self, probe: &str) -> Result<bool> {
        probe::honours_conditions(self, probe)
    }

    fn delete(&self, keys: &[String]) -> Result<()> {
        let mut state = self.state();
        keys.iter().try_for_each(|key| {
            key::check(key, BASE, "remove")?;
            state.objects.remove(key);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str) -> NewObject {
        NewObject { key: key.to_owned(), pieces: vec![Bytes::from_static(b"ab"), Bytes::from_static(b"c")] }
    }

    #[test]
    fn faults_come_once() {
        let memory = ObjectMemory::new();
        memory.fail_put(1);
        let failed = memory.put(&[object("1"), object("2"), object("3")]).unwrap_err();
        assert_eq!((failed.kind(), failed.uri()), (ErrorKind::Unavailable, "memory:2"));
        memory.put(&[object("2"), object("3")]).unwrap();
        memory.fail_get(0);
        assert!(memory.get("1", 10).unwrap_err().is_retryable());
        assert_eq!(memory.get("1", 10).unwrap().0, "abc");
        let expected = ObjectCounts { puts: 4, put_bytes: 12, gets: 2, get_bytes: 6, flushes: 0 };
        assert_eq!(memory.counts(), expected);
        memory.reset_counts();
        assert_eq!(memory.clone().counts(), ObjectCounts::default());
    }

    #[test]
    fn an_ambiguous_publish_writes_and_fails() {
        let memory = ObjectMemory::new();
        memory.make_publish_ambiguous("a");
        let bytes = || Bytes::from_static(b"anchor");
        assert!(memory.publish("a", bytes(), &Condition::Absent).unwrap_err().is_retryable());
        assert_eq!(memory.get("a", 10).unwrap().0, "anchor");
        assert_eq!(memory.publish("a", bytes(), &Condition::Absent).unwrap_err().kind(), ErrorKind::Changed);
    }

    #[test]
    fn ignored_conditions_are_noticed() {
        let memory = ObjectMemory::new();
        assert!(memory.honours_conditions("probe").unwrap());
        memory.ignore_conditions(true);
        assert!(!memory.honours_conditions("probe").unwrap());
        assert!(memory.list("").unwrap().is_empty(), "the probe is removed");
    }
}
