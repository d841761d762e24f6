//! Objects that no ntuple uses: of writers that were killed, and of ntuples that were replaced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tupelo_format::store::{JsonAnchor, MAX_ANCHOR_BYTES, Place};
use tupelo_storage::{ObjectSink, Storage, display_name};

use crate::source::CLONES;
use crate::{Error, Result};

/// Objects that were written at most so long ago may be those of a running writer: one day.
pub const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The objects of one attempt to write an ntuple, which is not visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Name of the attempt; it begins with the time in UTC when it began.
    pub attempt: String,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// When the newest object was written, if the store knows.
    pub newest: Option<SystemTime>,
    keys: Vec<String>,
}

/// Finds orphans beside an ntuple, and removes them.
#[derive(Debug)]
pub struct Collector {
    namespace: Arc<dyn ObjectSink>,
    base: String,
    name: String,
}

impl Collector {
    /// For the ntuple with this URI, which need not exist.
    ///
    /// # Errors
    /// Storage errors; unsupported for what is not an object store that can be written.
    pub fn new(uri: &str, storage: &Storage) -> Result<Self> {
        let (namespace, base) = storage.object_sink(uri)?;
        Ok(Self { namespace, base, name: display_name(uri) })
    }

    /// The orphans whose newest object is older than `age`, or has an unknown age, by name.
    ///
    /// # Errors
    /// Corrupt or unsupported if there is an anchor that cannot be read: it is not known then which objects are in use.
    /// Storage errors.
    pub fn orphans(&self, age: Duration) -> Result<Vec<Orphan>> {
        let prefix = Place::attempts(&self.base);
        let mut attempts: BTreeMap<String, Orphan> = BTreeMap::new();
        for entry in self.namespace.list(&prefix)? {
            let parts = entry.key.strip_prefix(&prefix).and_then(|key| key.split_once('/'));
            // What writers do not make is not removed.
            let Some((attempt, _)) = parts.filter(|(attempt, name)| is_attempt(attempt) && is_object(name)) else {
                continue;
            };
            let orphan = attempts.entry(attempt.to_owned()).or_insert_with(|| Orphan {
                attempt: attempt.to_owned(),
                objects: 0,
                bytes: 0,
                newest: None,
                keys: Vec::new(),
            });
            orphan.objects += 1;
            orphan.bytes += entry.bytes;
            orphan.newest = orphan.newest.max(entry.modified);
            orphan.keys.push(entry.key);
        }
        // After the listing: an attempt that became visible since is not an orphan.
        let visible = self.visible_attempt()?;
        let now = SystemTime::now();
        let is_old = |orphan: &Orphan| {
            // A clock that is ahead makes an object new.
            orphan.newest.is_none_or(|newest| now.duration_since(newest).is_ok_and(|since| since >= age))
        };
        Ok(attempts.into_values().filter(|it| Some(&it.attempt) != visible.as_ref() && is_old(it)).collect())
    }

    /// Removes the objects of an orphan.
    ///
    /// # Errors
    /// Invalid argument if the attempt is visible now; storage errors.
    pub fn remove(&self, orphan: &Orphan) -> Result<()> {
        if self.visible_attempt()?.as_ref() == Some(&orphan.attempt) {
            let what = format!("the objects of {} became visible, and are not removed", orphan.attempt);
            return Err(Error::invalid_argument(what).within(&self.name));
        }
        Ok(self.namespace.delete(&orphan.keys)?)
    }

    fn visible_attempt(&self) -> Result<Option<String>> {
        let json = match self.namespace.get(&self.base, MAX_ANCHOR_BYTES) {
            Ok((json, _)) => json,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let anchor = JsonAnchor::read(&json).map_err(|e| Error::from(e).within(&self.name))?;
        Ok(match anchor.place {
            Place::Attempt(attempt) => Some(attempt),
            Place::Below => None,
        })
    }
}

/// Whether a folder has the name of an attempt: `YYYYMMDDTHHMMSS-` and twelve hexadecimal digits.
fn is_attempt(name: &str) -> bool {
    let is_time = |time: &str| {
        time.len() == 15 && time.chars().enumerate().all(|(at, c)| if at == 8 { c == 'T' } else { c.is_ascii_digit() })
    };
    let is_random = |random: &str| random.len() == 12 && random.chars().all(|c| c.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(time, random)| is_time(time) && is_random(random))
}

/// Whether an object of an attempt has a name that writers give.
fn is_object(name: &str) -> bool {
    let is_number = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    is_number || name == "probe" || name.strip_prefix(CLONES).is_some_and(|set| !set.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_writers_make_is_removed() {
        assert!(is_attempt("20260131T235959-0123456789ab"));
        for name in
            ["mine", "b.objects", "20260131T235959", "20260131T235959-0123456789a", "2026013xT235959-0123456789ab"]
        {
            assert!(!is_attempt(name), "{name}");
        }
        assert!(["0", "123", "_clone/set", "probe"].into_iter().all(is_object));
        assert!(!["", "x", "1.root", "_clone/a/b", "notes/1"].into_iter().any(is_object));
    }
}
