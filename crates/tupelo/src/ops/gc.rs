//! Removes objects: those that no ntuple uses, of writers that were killed and of ntuples that were replaced; and ntuples.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tupelo_format::store::{MAX_ANCHOR_BYTES, ObjectFolder};
use tupelo_pages::sink::attempt_of_record;
use tupelo_pages::source::{
    AttemptNumbers, CLONES, DaosKeys, MAX_RECORD_BYTES, ObjectKeys, RECORD, StoreAnchor, anchor_key, began, daos_keys,
    is_attempt, removed, removed_record, replaced, sealed, with_default_metadata,
};
use tupelo_storage::local::dead_temporaries;
pub use tupelo_storage::local::{DeadFile, remove_dead};
use tupelo_storage::{Condition, ErrorKind, Keys, ObjectEntry, ObjectSink, Storage, display_name};

use super::repair::is_restorable;
use crate::{Error, Result};
pub use tupelo_pages::source::PUBLISHING_TIME;

/// Objects written at most this long ago may belong to a running writer: one day.
pub const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Clusters, or pages in separate objects, that are missing one after the other, after which a DAOS container has no others
/// of the attempt: a writer has fewer at a time.
const MAX_EMPTY_OBJECTS: u32 = 1000;

/// The objects of one attempt to write an ntuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The attempt as recorded in the anchor. Empty if ROOT wrote the ntuple.
    id: String,
    /// Name of the attempt; it begins with the time in UTC when it began.
    pub attempt: String,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// When the newest object was written, if the store knows; in a DAOS container, when the attempt began or ended.
    pub newest: Option<SystemTime>,
    keys: Vec<String>,
    /// None of what ROOT wrote.
    record: Option<Record>,
}

/// The result of a [`Collector`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// Attempts that are not visible and can be removed.
    pub orphans: Vec<Attempt>,
    /// Number of attempts that are not visible, but younger.
    pub young: u64,
    /// Number of attempts whose writers are about to make them visible, or were less than [`PUBLISHING_TIME`] ago. They are
    /// kept, whatever their age.
    pub publishing: u64,
    /// Attempts that cannot be read, one sentence each. Their objects may be orphans.
    pub unreadable: Vec<String>,
    /// What killed writers have left in a directory that is not an object: the keys of temporary files, and of empty folders,
    /// which end with a slash. See [`Collector::remove_temporary`].
    pub temporary: Vec<String>,
}

/// The temporary files of killed writers in a local directory. See [`dead_files`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadFiles {
    /// Those that can be removed.
    pub files: Vec<DeadFile>,
    /// Number of younger ones.
    pub young: u64,
    /// Those that have the entries of a checkpoint, while their target does not exist: [`repair`](super::repair::repair)
    /// gives it the name.
    pub restorable: Vec<DeadFile>,
}

/// Finds the temporary files of writers of local files that have ended: `NAME.tmp-RANDOM-tupelo`, and of old versions
/// `.tupelo-RANDOM`. Files that a process has locked, as running writers do, are not among them. [`remove_dead`] removes them.
///
/// # Errors
/// Errors of the system when reading the directory.
pub fn dead_files(directory: &Path, older_than: Duration) -> Result<DeadFiles> {
    let mut found = DeadFiles::default();
    for file in dead_temporaries(directory)? {
        let is_old = file.modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age >= older_than);
        if !file.target.exists() && is_restorable(&file.path) {
            found.restorable.push(file);
        } else if is_old || older_than.is_zero() {
            found.files.push(file);
        } else {
            found.young += 1;
        }
    }
    Ok(found)
}

/// The record of an attempt: see `docs/internals/object-layout.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    key: String,
    /// The name of the attempt if it has no record, as in a folder until the attempt is about to become visible or to
    /// be removed.
    text: String,
    /// The condition that it was not changed since.
    condition: Condition,
}

impl Record {
    /// Whether the record is in a folder, and the first object is among those that are removed: a writer that seals its record
    /// looks for this object next.
    fn is_needless_without(&self, removed: &[String]) -> bool {
        let first = self.key.strip_suffix(RECORD).map(|folder| format!("{folder}0"));
        first.is_some_and(|first| removed.contains(&first))
    }
}

impl Attempt {
    fn new(id: &str, attempt: &str) -> Self {
        let (id, attempt) = (id.to_owned(), attempt.to_owned());
        Self { id, attempt, objects: 0, bytes: 0, newest: None, keys: Vec::new(), record: None }
    }

    /// Whether its writer may be making it visible.
    fn is_publishing(&self, now: SystemTime) -> bool {
        let record = self.record.as_ref().filter(|record| removed(&record.text).is_none());
        // A clock that is ahead makes it young.
        let is_over = |since| now.duration_since(since).is_ok_and(|time| time >= PUBLISHING_TIME);
        record.and_then(|record| sealed(&record.text)).is_some_and(|since| !is_over(since))
    }

    /// Whether only its record is left, which stays for a while: a writer that does not know that it was collected
    /// may still write objects, whose number no other one must have.
    fn is_marker(&self) -> bool {
        let removed = self.record.as_ref().and_then(|record| removed(&record.text));
        let since = removed.map(|removed| SystemTime::now().duration_since(removed).unwrap_or_default());
        self.objects == 0 && since.is_some_and(|since| since < DEFAULT_AGE)
    }

    fn add(&mut self, entry: ObjectEntry) {
        self.objects += 1;
        self.bytes += entry.bytes;
        self.keys.push(entry.key);
    }
}

/// The attempt that wrote a value of a DAOS container.
fn attempt_of(entry: &ObjectEntry) -> Option<u64> {
    let number = entry.key.rsplit('/').next().and_then(|akey| u64::from_str_radix(akey, 16).ok());
    number.map(AttemptNumbers::attempt_of)
}

/// Finds and removes orphans, which are the objects of attempts to write an ntuple that are not visible; or the ntuple.
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
    /// Storage errors; unsupported unless it is a writable object store.
    pub fn new(uri: &str, storage: &Storage) -> Result<Self> {
        let (namespace, base) = storage.object_sink(uri)?;
        Ok(Self::over(namespace, &base, &display_name(uri)))
    }

    /// For the ntuple `base` in any namespace; `name` is its URI, for messages.
    pub fn over(namespace: Arc<dyn ObjectSink>, base: &str, name: &str) -> Self {
        Self { namespace, base: base.to_owned(), name: name.to_owned() }
    }

    /// The orphans whose newest object is older than `age`, or has an unknown age, by name; and what may be one, but cannot
    /// be read.
    ///
    /// # Errors
    /// Corrupt or unsupported if there is an anchor that cannot be read: it is not known then which objects are in use.
    /// Storage errors.
    pub fn find(&self, age: Duration) -> Result<Leftovers> {
        let mut unreadable = Vec::new();
        let mut attempts = self.attempts(&mut unreadable)?;
        // After the listing: an attempt that became visible since is not an orphan.
        let visible = self.visible_attempts()?;
        let now = SystemTime::now();
        let is_old = |modified: Option<SystemTime>| {
            // A clock that is ahead makes an object new.
            modified.is_none_or(|modified| now.duration_since(modified).is_ok_and(|since| since >= age))
        };
        let published = published(&attempts, visible.clone());
        attempts.retain(|it| !visible.contains(&it.id));
        let is_publishing = |it: &Attempt| it.is_publishing(now) && !published.contains(&it.id);
        let (publishing, others): (Vec<_>, Vec<_>) = attempts.into_iter().partition(is_publishing);
        let (orphans, young): (Vec<_>, Vec<_>) = others.into_iter().partition(|it| is_old(it.newest));
        let mut temporary = self.temporary()?;
        temporary.retain(|file| is_old(file.modified));
        let temporary = temporary.into_iter().map(|file| file.key).collect();
        let (young, publishing) = (young.len() as u64, publishing.len() as u64);
        Ok(Leftovers { orphans, young, publishing, unreadable, temporary })
    }

    /// What is in a directory, but is not an object.
    fn temporary(&self) -> Result<Vec<ObjectEntry>> {
        let attempts = ObjectFolder::attempts(&self.base);
        let mut found = self.namespace.remains(&self.base, &attempts)?;
        found.retain(|file| match file.key.strip_prefix(&attempts) {
            // Beside the anchor, or the folder of all attempts.
            None | Some("") => true,
            Some(key) => key.split_once('/').is_some_and(|(attempt, _)| is_attempt(attempt)),
        });
        Ok(found)
    }

    /// Removes [`temporary`](Leftovers::temporary) files and folders.
    ///
    /// # Errors
    /// Storage errors.
    pub fn remove_temporary(&self, keys: &[String]) -> Result<()> {
        Ok(self.namespace.remove_remains(keys)?)
    }

    /// The visible ntuple.
    ///
    /// # Errors
    /// Not found if there is none; corrupt or unsupported for an anchor that cannot be read; storage errors.
    pub fn find_visible(&self) -> Result<Attempt> {
        let keys = self.namespace.keys();
        let stored = match self.namespace.get(&anchor_key(&keys, &self.base), MAX_ANCHOR_BYTES) {
            Ok((stored, _)) => stored,
            Err(error) if error.is_not_found() => {
                return Err(Error::not_found("the ntuple does not exist").in_file(&self.name));
            }
            Err(error) => return Err(error.into()),
        };
        let anchor = StoreAnchor::read(&stored, &keys, &self.base).map_err(|e| e.in_file(&self.name))?;
        let Some(id) = &anchor.attempt else { return self.of_root(&anchor.keys) };
        let known = self.attempts(&mut Vec::new())?.into_iter().find(|it| it.id == *id);
        Ok(known.unwrap_or_else(|| Attempt::new(id, id)))
    }

    /// Removes the visible ntuple: its anchor first, then its objects. Readers that have it open fail from then on. If it is
    /// replaced at the same time, the new ntuple is removed or stays as a whole.
    ///
    /// # Errors
    /// As [`find_visible`](Self::find_visible).
    pub fn remove_visible(&self) -> Result<Attempt> {
        let visible = self.find_visible()?;
        let keys = self.namespace.keys();
        let own = daos_keys(&keys, &self.base);
        self.namespace.delete(&match &own {
            // Together, because a new ntuple has them together.
            Some(own) => vec![own.anchor(), own.header(), own.footer()],
            None => vec![anchor_key(&keys, &self.base)],
        })?;
        self.remove(&visible)?;
        if let Some(own) = own
            && self.anchors()?.is_empty()
        {
            self.namespace.delete(&[own.name_record()])?;
        }
        Ok(visible)
    }

    /// All attempts whose objects can be found.
    fn attempts(&self, unreadable: &mut Vec<String>) -> Result<Vec<Attempt>> {
        match daos_keys(&self.namespace.keys(), &self.base) {
            Some(keys) => self.in_container(&keys, unreadable),
            None => self.in_folder(unreadable),
        }
    }

    /// The objects of the ntuple that ROOT wrote, which has no attempts.
    fn of_root(&self, keys: &ObjectKeys) -> Result<Attempt> {
        let mut found = Attempt::new("", "");
        match keys {
            ObjectKeys::Numbered { folder } => {
                let is_own = |entry: &ObjectEntry| entry.key.strip_prefix(&**folder).is_some_and(is_object);
                self.namespace.list(folder)?.into_iter().filter(is_own).for_each(|entry| found.add(entry));
            }
            ObjectKeys::Daos(keys) => {
                self.each_page(keys, 0, &mut |attempt, entry| {
                    if attempt == 0 {
                        found.add(entry);
                    }
                })?;
                let lists = self.namespace.list(&keys.page_lists())?.into_iter();
                lists.filter(|entry| attempt_of(entry) == Some(0)).for_each(|entry| found.add(entry));
            }
        }
        Ok(found)
    }

    /// All attempts that have objects beside an anchor.
    fn in_folder(&self, unreadable: &mut Vec<String>) -> Result<Vec<Attempt>> {
        let prefix = ObjectFolder::attempts(&self.base);
        let mut attempts: BTreeMap<String, Attempt> = BTreeMap::new();
        for entry in self.namespace.list(&prefix)? {
            let parts = entry.key.strip_prefix(&prefix).and_then(|key| key.split_once('/'));
            let is_known = |name| name == RECORD || is_object(name);
            // Objects that writers do not create are not removed.
            let Some((attempt, name)) = parts.filter(|(attempt, name)| is_attempt(attempt) && is_known(name)) else {
                continue;
            };
            let orphan = attempts.entry(attempt.to_owned()).or_insert_with(|| Attempt::new(attempt, attempt));
            orphan.newest = orphan.newest.max(entry.modified);
            match name == RECORD {
                true => orphan.record = self.record(&entry.key)?,
                false => orphan.add(entry),
            }
        }
        let mut readable = Vec::with_capacity(attempts.len());
        for (name, mut orphan) in attempts {
            let absent = || {
                let key = format!("{}{RECORD}", ObjectFolder::Attempt(name.clone()).folder(&self.base));
                Record { key, text: name.clone(), condition: Condition::Absent }
            };
            let Record { text, condition, .. } = orphan.record.get_or_insert_with(absent);
            let is_marked = sealed(text).is_some() || removed(text).is_some();
            match text.split(' ').next() == Some(&name) && is_marked == (*condition != Condition::Absent) {
                true if orphan.is_marker() => {}
                true => readable.push(orphan),
                false => unreadable.push(unreadable_record(&name)),
            }
        }
        Ok(readable)
    }

    /// A record; none if it was removed meanwhile.
    fn record(&self, key: &str) -> Result<Option<Record>> {
        let key = key.to_owned();
        match self.namespace.state(&key, MAX_RECORD_BYTES) {
            Ok((condition, Some(text))) => {
                Ok(Some(Record { key, text: String::from_utf8_lossy(&text).into_owned(), condition }))
            }
            Ok((_, None)) => Ok(None),
            // Limit of the size, larger than any record.
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                Ok(Some(Record { key, text: String::new(), condition: Condition::Absent }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// All attempts that have a record in a DAOS container. When they began is known, but not the age of their objects.
    fn in_container(&self, keys: &DaosKeys, unreadable: &mut Vec<String>) -> Result<Vec<Attempt>> {
        let folder = keys.attempts();
        let mut attempts: BTreeMap<u64, (DaosKeys, Attempt)> = BTreeMap::new();
        for entry in self.namespace.list(&folder)? {
            let Some(number) = attempt_of_record(&entry.key, &folder).filter(|number| *number > 0) else { continue };
            let Some(record) = self.record(&entry.key)? else { continue };
            let Some((name, own)) = keys.of_record(&record.text).filter(|(name, _)| is_attempt(name)) else {
                unreadable.push(unreadable_record(&number.to_string()));
                continue;
            };
            let mut orphan = Attempt::new(&number.to_string(), name);
            orphan.newest = began(name).max(sealed(&record.text));
            orphan.record = Some(record);
            attempts.insert(number.into(), (own, orphan));
        }
        // Attempts whose pages are in the same objects have one search: clusters count from zero in each of them.
        let mut searches: Vec<(DaosKeys, u64)> = Vec::new();
        for (number, (own, _)) in &attempts {
            let first = if own.separate_pages { AttemptNumbers::first_of(*number) } else { 0 };
            if !searches.iter().any(|(keys, known)| keys == own && *known == first) {
                searches.push((own.clone(), first));
            }
        }
        for (keys, first) in searches {
            let is_read = self.each_page(&keys, first, &mut |attempt, entry| {
                if let Some((_, orphan)) = attempts.get_mut(&attempt).filter(|(own, _)| *own == keys) {
                    orphan.add(entry);
                }
            })?;
            if !is_read {
                let kept = "the pool does not support; their objects are kept";
                let what = format!("found attempts with the object class {}, which {kept}", keys.class);
                if !unreadable.contains(&what) {
                    unreadable.push(what);
                }
                attempts.retain(|_, (own, _)| *own != keys);
            }
        }
        for entry in self.namespace.list(&keys.page_lists())? {
            if let Some((_, orphan)) = attempt_of(&entry).and_then(|attempt| attempts.get_mut(&attempt)) {
                orphan.add(entry);
            }
        }
        Ok(attempts.into_values().map(|(_, orphan)| orphan).filter(|orphan| !orphan.is_marker()).collect())
    }

    /// Visits the pages in objects from a number on, also those of attribute sets, each with its attempt. Writers may have
    /// stopped before they wrote objects in between. Returns false if the pool has no such object class.
    fn each_page(&self, keys: &DaosKeys, first: u64, visit: &mut dyn FnMut(u64, ObjectEntry)) -> Result<bool> {
        let mut empty = 0;
        for object in first.. {
            let list = |keys: &DaosKeys| self.namespace.list(&keys.pages(object));
            let listed = match list(keys).and_then(|pages| Ok([pages, list(&keys.of_set())?].concat())) {
                Err(error) if error.kind() == ErrorKind::NotSupported => return Ok(false),
                listed => listed?,
            };
            empty = if listed.is_empty() { empty + 1 } else { 0 };
            if empty == MAX_EMPTY_OBJECTS {
                break;
            }
            for entry in listed {
                // Separate objects have the numbers of their pages.
                let separate = keys.separate_pages.then(|| AttemptNumbers::attempt_of(object));
                if let Some(attempt) = separate.or_else(|| attempt_of(&entry)) {
                    visit(attempt, entry);
                }
            }
        }
        Ok(true)
    }

    /// Removes the objects of an attempt that is not visible. Returns false if they are kept, because its writer has made it
    /// visible since it was found, or is about to, or because another collection removes them.
    ///
    /// # Errors
    /// Storage errors.
    pub fn remove(&self, orphan: &Attempt) -> Result<bool> {
        if let Some(Record { key, text, condition }) = &orphan.record {
            if orphan.objects == 0 && removed(text).is_some() {
                self.namespace.delete(std::slice::from_ref(key))?;
                self.remove_name()?;
                return Ok(true);
            }
            // Its writer seals the record before it makes the ntuple visible: only one of both succeeds.
            match self.namespace.publish(key, removed_record(text).into(), condition) {
                Err(error) if error.kind() == ErrorKind::Changed => return Ok(false),
                marked => marked?,
            }
        }
        // After that: a writer that sealed its record long ago may have gone on.
        if self.visible_attempts()?.contains(&orphan.id) {
            return Ok(false);
        }
        self.namespace.delete(&orphan.keys)?;
        // Last, and only if its writer fails without it because the first object is gone.
        let of_folder = orphan.record.as_ref().filter(|record| record.is_needless_without(&orphan.keys));
        of_folder.map_or(Ok(()), |record| self.namespace.delete(std::slice::from_ref(&record.key)))?;
        Ok(true)
    }

    /// Removes the name of the ntuple from a DAOS container, if nothing else is left of it.
    fn remove_name(&self) -> Result<()> {
        let Some(own) = daos_keys(&self.namespace.keys(), &self.base) else { return Ok(()) };
        let (name, folder) = (own.name_record(), own.attempts());
        let is_last = self.namespace.list(&folder)?.iter().all(|entry| entry.key == name);
        let is_visible = !self.anchors()?.is_empty();
        if is_last && !is_visible { Ok(self.namespace.delete(&[name])?) } else { Ok(()) }
    }

    /// The anchors as they are stored: none if no ntuple is visible. In a container with another class for metadata, also that
    /// with the default class, whose pages have the same keys.
    fn anchors(&self) -> Result<Vec<(Keys, Bytes)>> {
        let own = self.namespace.keys();
        let all = [with_default_metadata(&own), Some(own)];
        let mut anchors = Vec::new();
        for keys in all.into_iter().flatten() {
            match self.namespace.get(&anchor_key(&keys, &self.base), MAX_ANCHOR_BYTES) {
                Ok((stored, _)) => anchors.push((keys, stored)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(anchors)
    }

    fn visible_attempts(&self) -> Result<Vec<String>> {
        let mut visible = Vec::new();
        for (keys, stored) in self.anchors()? {
            let anchor = StoreAnchor::read(&stored, &keys, &self.base).map_err(|e| e.in_file(&self.name))?;
            visible.extend(anchor.attempt);
        }
        Ok(visible)
    }
}

#[cold]
fn unreadable_record(attempt: &str) -> String {
    format!("the record of attempt {attempt} cannot be read; its objects are kept")
}

/// The attempts that are or were visible, as far as their records tell it: an attempt that became visible has replaced the one
/// that its record names.
fn published(attempts: &[Attempt], mut known: Vec<String>) -> Vec<String> {
    let mut next = 0;
    while let Some(id) = known.get(next) {
        let record = attempts.iter().find(|it| it.id == *id).and_then(|it| it.record.as_ref());
        let before = record.and_then(|record| replaced(&record.text)).filter(|id| !known.iter().any(|it| it == id));
        known.extend(before.map(str::to_owned));
        next += 1;
    }
    known
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
    fn only_objects_of_writers_are_removed() {
        assert!(["0", "123", "_clone/set", "probe"].into_iter().all(is_object));
        assert!(!["", "x", "1.root", "_clone/a/b", "notes/1"].into_iter().any(is_object));
    }
}
