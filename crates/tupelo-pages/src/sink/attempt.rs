//! An attempt to write an ntuple to a store: the names of its objects, which no other attempt uses.

use std::collections::BTreeSet;
use std::time::SystemTime;

use bytes::Bytes;
use tupelo_format::store::ObjectFolder;
use tupelo_storage::{Condition, ErrorKind, NewObject, ObjectSink as Namespace};

use crate::source::{
    AttemptNumbers, DaosKeys, MAX_RECORD_BYTES, ObjectKeys, PUBLISHING_TIME, RECORD, daos_keys, removed, sealed,
    sealed_record,
};
use crate::{Error, Result};

/// Writers that may take a number first, of those that begin at the same time.
const MAX_COLLISIONS: usize = 100;

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) kind: Kind,
    pub(super) keys: ObjectKeys,
    pub(super) numbers: AttemptNumbers,
    pub(super) record: Record,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// In a separate folder.
    Folder { place: ObjectFolder, folder: String },
    /// By its numbers, in a DAOS container.
    Numbers { keys: DaosKeys, attempt: u32 },
}

/// The record of an attempt, by which its writer and `tupelo gc` agree whether the attempt becomes visible or is removed.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) key: String,
    /// As it is written when the attempt begins, or, in a folder, without the words after it.
    text: String,
    /// Whether it exists since the attempt began. In a folder, the one of writer and `tupelo gc` that creates it has decided.
    is_written: bool,
    /// The attempt that the ntuple replaces.
    visible: Option<String>,
}

impl Record {
    /// Marks the record, so that `tupelo gc` knows that the attempt is about to become visible. A collection marks the
    /// record, too, before it removes anything, so one of both fails. Returns whether this one succeeds.
    pub(super) fn seal(&self, namespace: &dyn Namespace) -> Result<bool> {
        let condition = if self.is_written {
            let (condition, found) = namespace.state(&self.key, MAX_RECORD_BYTES)?;
            if found.as_deref() != Some(self.text.as_bytes()) {
                return Ok(false);
            }
            condition
        } else {
            Condition::Absent
        };
        match namespace.publish(&self.key, sealed_record(&self.text, self.visible.as_deref()).into(), &condition) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Changed => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the attempt that was sealed at this time is still as its writer left it. A collection leaves a sealed attempt
    /// alone for [`PUBLISHING_TIME`], so only a writer that was suspended needs a request to know.
    pub(super) fn is_kept(&self, namespace: &dyn Namespace, since: SystemTime) -> Result<bool> {
        if since.elapsed().is_ok_and(|time| time < PUBLISHING_TIME / 2) {
            return Ok(true);
        }
        let (_, found) = namespace.state(&self.key, MAX_RECORD_BYTES)?;
        let found = found.map(|found| String::from_utf8_lossy(&found).into_owned()).unwrap_or_default();
        Ok(sealed(&found).is_some() && removed(&found).is_none())
    }

    /// Whether the attempt still has its number.
    pub(super) fn is_there(&self, namespace: &dyn Namespace) -> Result<bool> {
        let (_, found) = namespace.state(&self.key, MAX_RECORD_BYTES)?;
        Ok(found.is_some_and(|found| found.starts_with(self.text.as_bytes())))
    }
}

impl Attempt {
    /// Begins the attempt `name` to write the ntuple `base`; `is_caged` if pages share objects. `visible` is the attempt that
    /// the anchor names.
    pub(super) fn begin(
        namespace: &dyn Namespace,
        base: &str,
        is_caged: bool,
        name: &str,
        visible: Option<&str>,
    ) -> Result<Self> {
        match daos_keys(&namespace.keys(), base) {
            Some(keys) => Self::in_container(namespace, keys, name, is_caged, visible),
            None => {
                let place = ObjectFolder::Attempt(name.to_owned());
                let folder = place.folder(base);
                let keys = ObjectKeys::Numbered { folder: folder.as_str().into() };
                let numbers = AttemptNumbers { first: 0, end: u64::MAX };
                let record = Record {
                    key: format!("{folder}{RECORD}"),
                    text: name.to_owned(),
                    is_written: false,
                    visible: visible.map(str::to_owned),
                };
                Ok(Self { kind: Kind::Folder { place, folder }, keys, numbers, record })
            }
        }
    }

    /// Records the attempt with its object class, so that no other one gets its number.
    fn in_container(
        namespace: &dyn Namespace,
        keys: DaosKeys,
        name: &str,
        is_caged: bool,
        visible: Option<&str>,
    ) -> Result<Self> {
        let folder = keys.attempts();
        for _ in 0..MAX_COLLISIONS {
            let listed = namespace.list(&folder)?;
            let mut used: BTreeSet<u32> =
                listed.iter().filter_map(|entry| attempt_of_record(&entry.key, &folder)).collect();
            // Its record may be lost.
            used.extend(visible.and_then(|number| number.parse::<u32>().ok()));
            let (attempt, numbers) = free_number(&used, is_caged).ok_or_else(|| {
                Error::limit(
                    "all numbers for attempts to write the ntuple are in use; run `tupelo gc` and try again a day \
                     later",
                )
            })?;
            let record = Record {
                key: keys.attempt(attempt),
                text: keys.record(name),
                is_written: true,
                visible: visible.map(str::to_owned),
            };
            if put_new(namespace, &record.key, record.text.clone())? {
                let kind = Kind::Numbers { keys: keys.clone(), attempt };
                return Ok(Self { kind, keys: ObjectKeys::Daos(keys), numbers, record });
            }
        }
        Err(Error::limit("too many writers begin at the same time; try again"))
    }
}

/// A number that no attempt has: the next one or, where there is none, one that was collected.
fn free_number(used: &BTreeSet<u32>, is_caged: bool) -> Option<(u32, AttemptNumbers)> {
    let next = used.last().map_or(Some(1), |last| last.checked_add(1));
    let gaps = (1..).filter(|number| !used.contains(number));
    let numbers = next.into_iter().chain(gaps.take(1));
    numbers.filter_map(|attempt| Some((attempt, AttemptNumbers::new(attempt, is_caged)?))).next()
}

/// Writes a record; false if it exists.
pub(super) fn put_new(namespace: &dyn Namespace, key: &str, text: String) -> Result<bool> {
    match namespace.put(&[NewObject { key: key.to_owned(), pieces: vec![Bytes::from(text)] }]) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Changed => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The number of the attempt whose record has this key.
pub fn attempt_of_record(key: &str, folder: &str) -> Option<u32> {
    u32::from_str_radix(key.strip_prefix(folder)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_when_there_are_no_others() {
        let free =
            |used: &[u32], is_caged| free_number(&used.iter().copied().collect(), is_caged).map(|(attempt, _)| attempt);
        assert_eq!((free(&[], true), free(&[1, 3], true), free(&[255], false)), (Some(1), Some(4), Some(256)));
        assert_eq!((free(&[1, 2, 255], true), free(&[u32::MAX], false)), (Some(3), Some(1)));
        assert_eq!(free(&(1..=255).collect::<Vec<_>>(), true), None);
    }

    #[test]
    fn a_writer_that_was_suspended_looks_at_its_record_again() {
        let store = tupelo_storage::objects::ObjectMemory::new();
        let attempt = Attempt::begin(&store, "x", false, "20260101T000000-0123456789ab", None).unwrap();
        let record = &attempt.record;
        let (now, early) = (SystemTime::now(), SystemTime::now() - PUBLISHING_TIME);
        assert!(record.seal(&store).unwrap() && record.is_kept(&store, early).unwrap());
        let (condition, text) = store.state(&record.key, MAX_RECORD_BYTES).unwrap();
        let text = String::from_utf8(text.unwrap().to_vec()).unwrap();
        store.publish(&record.key, crate::source::removed_record(&text).into(), &condition).unwrap();
        assert!(record.is_kept(&store, now).unwrap(), "without a request");
        assert!(!record.is_kept(&store, early).unwrap() && !record.seal(&store).unwrap());
    }
}
