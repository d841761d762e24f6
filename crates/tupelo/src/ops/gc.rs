//! Objects that no ntuple uses: of writers that were killed, and of ntuples that were replaced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tupelo_format::store::{MAX_ANCHOR_BYTES, Place};
use tupelo_storage::{ObjectEntry, ObjectSink, Storage, display_name};

use crate::sink::attempt_of_record;
use crate::source::{
    AttemptNumbers, CLONES, DaosKeys, MAX_RECORD_BYTES, StoreAnchor, anchor_key, began, daos_keys, is_attempt,
};
use crate::{Error, Result};

/// Objects that were written at most so long ago may be those of a running writer: one day.
pub const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Clusters, or pages in separate objects, that are missing one after the other, after which a DAOS container has no others
/// of the attempt: a writer has fewer at a time.
const MAX_EMPTY_OBJECTS: u32 = 1000;

/// The objects of one attempt to write an ntuple, which is not visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// What the anchor says of the attempt.
    id: String,
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

impl Orphan {
    fn new(id: &str, attempt: &str) -> Self {
        let (id, attempt) = (id.to_owned(), attempt.to_owned());
        Self { id, attempt, objects: 0, bytes: 0, newest: None, keys: Vec::new() }
    }

    fn add(&mut self, entry: ObjectEntry) {
        self.objects += 1;
        self.bytes += entry.bytes;
        self.keys.push(entry.key);
    }

    /// Adds a value of a DAOS container, if the attempt wrote it.
    fn add_if_of(&mut self, entry: ObjectEntry, attempt: u64) {
        let number = entry.key.rsplit('/').next().and_then(|akey| u64::from_str_radix(akey, 16).ok());
        if number.map(AttemptNumbers::attempt_of) == Some(attempt) {
            self.add(entry);
        }
    }
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
        Ok(Self::over(namespace, &base, &display_name(uri)))
    }

    /// For the ntuple `base` in any namespace; `name` is its URI, for messages.
    pub fn over(namespace: Arc<dyn ObjectSink>, base: &str, name: &str) -> Self {
        Self { namespace, base: base.to_owned(), name: name.to_owned() }
    }

    /// The orphans whose newest object is older than `age`, or has an unknown age, by name.
    ///
    /// # Errors
    /// Corrupt or unsupported if there is an anchor that cannot be read: it is not known then which objects are in use.
    /// Storage errors.
    pub fn orphans(&self, age: Duration) -> Result<Vec<Orphan>> {
        let keys = self.namespace.keys();
        let attempts = match daos_keys(&keys, &self.base) {
            Some(keys) => self.in_container(&keys)?,
            None => self.in_folder()?,
        };
        // After the listing: an attempt that became visible since is not an orphan.
        let visible = self.visible_attempt()?;
        let now = SystemTime::now();
        let is_old = |orphan: &Orphan| {
            // A clock that is ahead makes an object new.
            orphan.newest.is_none_or(|newest| now.duration_since(newest).is_ok_and(|since| since >= age))
        };
        Ok(attempts.into_iter().filter(|it| Some(&it.id) != visible.as_ref() && is_old(it)).collect())
    }

    /// All attempts that have objects beside an anchor.
    fn in_folder(&self) -> Result<Vec<Orphan>> {
        let prefix = Place::attempts(&self.base);
        let mut attempts: BTreeMap<String, Orphan> = BTreeMap::new();
        for entry in self.namespace.list(&prefix)? {
            let parts = entry.key.strip_prefix(&prefix).and_then(|key| key.split_once('/'));
            // What writers do not make is not removed.
            let Some((attempt, _)) = parts.filter(|(attempt, name)| is_attempt(attempt) && is_object(name)) else {
                continue;
            };
            let orphan = attempts.entry(attempt.to_owned()).or_insert_with(|| Orphan::new(attempt, attempt));
            orphan.newest = orphan.newest.max(entry.modified);
            orphan.add(entry);
        }
        Ok(attempts.into_values().collect())
    }

    /// All attempts that have a record in a DAOS container. When they began is known, but not the age of their objects.
    fn in_container(&self, keys: &DaosKeys) -> Result<Vec<Orphan>> {
        let folder = keys.attempts();
        let mut attempts = Vec::new();
        for entry in self.namespace.list(&folder)? {
            let Some(number) = attempt_of_record(&entry.key, &folder).filter(|number| *number > 0) else { continue };
            let (record, _) = self.namespace.get(&entry.key, MAX_RECORD_BYTES)?;
            let record = String::from_utf8_lossy(&record).into_owned();
            let Some((name, keys)) = keys.of_record(&record).filter(|(name, _)| is_attempt(name)) else { continue };
            let mut orphan = Orphan::new(&number.to_string(), name);
            orphan.newest = began(name);
            self.add_pages(&mut orphan, &keys, number)?;
            for entry in self.namespace.list(&keys.page_lists())? {
                orphan.add_if_of(entry, number.into());
            }
            // Last, since it tells others that these objects exist.
            orphan.keys.push(entry.key);
            attempts.push(orphan);
        }
        Ok(attempts)
    }

    /// Adds the pages of an attempt, also those of its attribute sets. Its writer may have stopped before it wrote objects in
    /// between.
    fn add_pages(&self, orphan: &mut Orphan, keys: &DaosKeys, attempt: u32) -> Result<()> {
        // Clusters count from zero in every attempt; separate objects have the numbers of their pages.
        let own = AttemptNumbers::new(attempt, false).filter(|_| keys.separate_pages);
        let mut empty = 0;
        for object in own.map_or(0, |own| own.first).. {
            let mut listed = self.namespace.list(&keys.pages(object))?;
            listed.extend(self.namespace.list(&keys.of_set().pages(object))?);
            empty = if listed.is_empty() { empty + 1 } else { 0 };
            if empty == MAX_EMPTY_OBJECTS {
                break;
            }
            for entry in listed {
                match own {
                    Some(_) => orphan.add(entry),
                    None => orphan.add_if_of(entry, attempt.into()),
                }
            }
        }
        Ok(())
    }

    /// Removes the objects of an orphan.
    ///
    /// # Errors
    /// Invalid argument if the attempt is visible now; storage errors.
    pub fn remove(&self, orphan: &Orphan) -> Result<()> {
        if self.visible_attempt()?.as_ref() == Some(&orphan.id) {
            let what = format!("the objects of {} became visible, and are not removed", orphan.attempt);
            return Err(Error::invalid_argument(what).within(&self.name));
        }
        self.namespace.delete(&orphan.keys)?;
        self.remove_name()
    }

    /// Removes the name of the ntuple from a DAOS container, if nothing else is left of it.
    fn remove_name(&self) -> Result<()> {
        let Some(own) = daos_keys(&self.namespace.keys(), &self.base) else { return Ok(()) };
        let (name, folder) = (own.name_record(), own.attempts());
        let is_last = self.namespace.list(&folder)?.iter().all(|entry| entry.key == name);
        if is_last && self.stored_anchor()?.is_none() { Ok(self.namespace.delete(&[name])?) } else { Ok(()) }
    }

    /// The anchor as it is stored; `None` if no ntuple is visible.
    fn stored_anchor(&self) -> Result<Option<Bytes>> {
        match self.namespace.get(&anchor_key(&self.namespace.keys(), &self.base), MAX_ANCHOR_BYTES) {
            Ok((stored, _)) => Ok(Some(stored)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn visible_attempt(&self) -> Result<Option<String>> {
        let Some(stored) = self.stored_anchor()? else { return Ok(None) };
        let anchor = StoreAnchor::read(&stored, &self.namespace.keys(), &self.base);
        Ok(anchor.map_err(|e| e.within(&self.name))?.attempt)
    }
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
        assert!(["0", "123", "_clone/set", "probe"].into_iter().all(is_object));
        assert!(!["", "x", "1.root", "_clone/a/b", "notes/1"].into_iter().any(is_object));
    }
}
