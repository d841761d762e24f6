//! A DAOS container as a namespace.
//!
//! Keys are `CLASS/HI/LO/DKEY/AKEY`: see [`Keys::Daos`].
//!
//! # How a value is replaced
//! DAOS has a condition that a value is new, but none on what it replaces. So a writer that replaces a value also writes
//! a *lock* beside it, which must be new, by the same update, which is atomic. The akey of the lock is computed from the
//! key, the digest of the value that is replaced, and how often a value with this digest was replaced before: of all that
//! replace the same value, only one meets the condition. A lock is an akey with the highest bit set whose value is
//! [`LOCK`]. Locks are not listed, and stay when the value is removed.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::{
    Condition, Keys, NewObject, ObjectEntry, ObjectRange, ObjectSink, ObjectSource, ObjectVersion, key, probe,
};
use crate::daos::{Access, Classes, DaosContainer, DaosKey, DaosPlace, NewValue, parse_number};
use crate::error::{Error, ErrorKind, Result};
use crate::net::Options;
use crate::source::{Hints, Traffic};

/// The value stored as a lock.
const LOCK: &[u8] = b"tupelock";
/// Names of data sets are shorter.
const MAX_NAME_BYTES: u64 = 64 << 10;
/// Bit of the akeys of locks. Ordinary akeys may have it, too.
const LOCK_BIT: u64 = 1 << 63;
/// Locks that are looked for by one request: 16. A value with the same digest is rarely replaced again.
const LOCKS_PER_REQUEST: u64 = 16;

/// A value is fetched as a whole, so near values are not merged and a request is as large as the value. Requests cost
/// microseconds and all of a batch are sent at the same time; as many clusters as this keep the servers busy.
const DAOS_HINTS: Hints = Hints { gap_bytes: 0, max_request_bytes: 16 << 20, concurrency: 16 };

/// Values in a container.
#[derive(Debug)]
pub(super) struct ContainerNamespace {
    container: DaosContainer,
    classes: Classes,
    separate_pages: bool,
}

impl ContainerNamespace {
    /// Opens a container; `base` is its URI, and errors name the data set `name` in it.
    pub(super) fn open(
        place: &DaosPlace,
        base: &str,
        options: &Options,
        access: Access,
        action: &'static str,
        name: &str,
    ) -> Result<Self> {
        let uri = format!("{base}{name}");
        let container = DaosContainer::open(place, base, options, access, action, &uri)?;
        let classes = match access {
            Access::Read => Classes::of(options),
            Access::Write => Classes::checked(&container, options, action, &uri)?,
        };
        Ok(Self { container, classes, separate_pages: options.get("daos_objects") == Some("page") })
    }

    fn parse(&self, key: &str, action: &'static str) -> Result<DaosKey> {
        let reason = "expected a DAOS key of the form CLASS/HI/LO/DKEY/AKEY, with hexadecimal numbers";
        key.parse().map_err(|_| key::refused(key, self, action, reason))
    }

    fn parse_all<'a>(&self, keys: impl Iterator<Item = &'a str>, action: &'static str) -> Result<Vec<DaosKey>> {
        keys.map(|key| self.parse(key, action)).collect()
    }

    /// Number of replacements of a value with this digest under a key.
    fn replacements(&self, key: &DaosKey, digest: u64) -> Result<u64> {
        let mut before = 0;
        loop {
            let locks: Vec<DaosKey> = (before..before + LOCKS_PER_REQUEST).map(|at| lock_of(key, digest, at)).collect();
            let sizes = self.container.sizes(&locks)?;
            match sizes.iter().zip(before..).find(|(bytes, _)| **bytes == 0) {
                Some((_, first)) => return Ok(first),
                None => before += LOCKS_PER_REQUEST,
            }
        }
    }

    /// The lock that the writer takes who replaces a version of a value.
    fn lock(&self, key: &DaosKey, version: &ObjectVersion) -> Result<DaosKey> {
        let changed =
            || Error::new(ErrorKind::Changed, "write", format!("{self}{key}"), "another writer has changed it");
        let digest = version.etag.as_deref().and_then(|etag| u64::from_str_radix(etag, 16).ok());
        let digest = digest.ok_or_else(changed)?;
        // Before the value is compared: a writer that replaces it after that has this lock.
        let replacements = match version.generation.as_deref().and_then(|number| number.parse().ok()) {
            Some(replacements) => replacements,
            None => self.replacements(key, digest)?,
        };
        match self.container.get(key, u64::MAX) {
            Ok(bytes) if digest_of(&bytes) == digest => Ok(lock_of(key, digest, replacements)),
            Ok(_) => Err(changed()),
            Err(error) if error.is_not_found() => Err(changed()),
            Err(error) => Err(error),
        }
    }

    fn is_lock(&self, key: &DaosKey, bytes: u64) -> Result<bool> {
        if key.akey & LOCK_BIT == 0 || bytes != LOCK.len() as u64 {
            return Ok(false);
        }
        Ok(self.container.get(key, bytes)? == LOCK)
    }
}

/// The names of the data sets in a DAOS container: the values with the akey 0 of the object 0/0, which no data set uses
/// otherwise. None in other namespaces.
///
/// # Errors
/// Errors of the back end.
pub fn names_in_container(namespace: &dyn ObjectSource) -> Result<Vec<String>> {
    let Keys::Daos { metadata_class, .. } = namespace.keys() else { return Ok(Vec::new()) };
    let listed = namespace.list(&format!("{metadata_class}/0/0/"))?.into_iter();
    let names = listed.filter(|entry| entry.key.ends_with("/0") && entry.bytes <= MAX_NAME_BYTES);
    let name = |entry: ObjectEntry| {
        let (name, _) = namespace.get(&entry.key, MAX_NAME_BYTES)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    };
    names.map(name).collect()
}

fn digest_of(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The lock of the replacement of a value. This mixing must never change: all writers have to agree.
fn lock_of(key: &DaosKey, digest: u64, replacements: u64) -> DaosKey {
    let mut text = b"replaced".to_vec();
    for number in [key.akey, digest, replacements] {
        text.extend(number.to_le_bytes());
    }
    DaosKey { akey: XxHash3_64::oneshot(&text) | LOCK_BIT, ..key.clone() }
}

fn new_value(key: DaosKey, object: &NewObject, is_new: bool) -> NewValue {
    NewValue { key, pieces: object.pieces.clone(), is_new }
}

impl fmt::Display for ContainerNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.container.fmt(f)
    }
}

impl ObjectSource for ContainerNamespace {
    fn keys(&self) -> Keys {
        let Classes { data, metadata } = self.classes.clone();
        Keys::Daos { class: data, metadata_class: metadata, separate_pages: self.separate_pages }
    }

    fn hints(&self) -> Hints {
        DAOS_HINTS
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        Some(Arc::clone(self.container.traffic()))
    }

    /// The version is the digest of the value.
    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        let bytes = self.container.get(&self.parse(key, "read")?, max_bytes)?;
        let etag = Some(format!("{:016x}", digest_of(&bytes)));
        Ok((bytes, ObjectVersion { etag, generation: None }))
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let one = |ObjectRange { key, range }: &ObjectRange| Ok((self.parse(key, "read")?, range.clone()));
        self.container.get_ranges(&ranges.iter().map(one).collect::<Result<Vec<_>>>()?)
    }

    /// Lists an object: a prefix begins with `CLASS/HI/LO/`. Objects of a container cannot be listed.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        let refused = || {
            key::refused(
                prefix,
                self,
                "list",
                "DAOS lists the keys of one object: the prefix must begin with CLASS/HI/LO/",
            )
        };
        let parts: Vec<&str> = prefix.split('/').collect();
        let [class, hi, lo, rest @ ..] = parts.as_slice() else { return Err(refused()) };
        // What follows the first parts: none, the beginning of a dkey, or a dkey and the beginning of an akey.
        let ([start] | [start, _]) = rest else { return Err(refused()) };
        let dkey = if rest.len() == 2 { parse_number(start).ok_or_else(refused)? } else { 0 };
        let object: DaosKey = format!("{class}/{hi}/{lo}/{dkey:x}/0").parse().map_err(|_| refused())?;
        let found = match rest.len() {
            2 => self.container.list_dkey(&object)?,
            _ => {
                let is_wanted = |dkey: u64| format!("{dkey:x}").starts_with(start);
                self.container.list(&object.class, object.hi, object.lo, is_wanted)?
            }
        };
        let mut entries = Vec::with_capacity(found.len());
        for (key, bytes) in found {
            let text = key.to_string();
            if text.starts_with(prefix) && !self.is_lock(&key, bytes)? {
                entries.push(ObjectEntry { key: text, bytes, modified: None });
            }
        }
        entries.sort();
        Ok(entries)
    }
}

impl ObjectSink for ContainerNamespace {
    /// Never overwrites a value.
    fn put(&self, objects: &[NewObject]) -> Result<()> {
        let keys = self.parse_all(objects.iter().map(|object| &*object.key), "write")?;
        let values: Vec<NewValue> =
            keys.into_iter().zip(objects).map(|(key, object)| new_value(key, object, true)).collect();
        self.container.update(&values)
    }

    /// Values are durable when they are written.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// The version also has the number of replacements so far, so that equal values of different times differ.
    fn state(&self, key: &str, max_bytes: u64) -> Result<(Condition, Option<Bytes>)> {
        let parsed = self.parse(key, "read")?;
        let get = || match self.container.get(&parsed, max_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        };
        let mut found = get()?;
        loop {
            let Some(bytes) = found else { return Ok((Condition::Absent, None)) };
            let digest = digest_of(&bytes);
            let generation = self.replacements(&parsed, digest)?;
            // Counted while this was the value.
            let again = get()?;
            if again.as_ref() == Some(&bytes) {
                let version =
                    ObjectVersion { etag: Some(format!("{digest:016x}")), generation: Some(generation.to_string()) };
                return Ok((Condition::Version(version), Some(bytes)));
            }
            found = again;
        }
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        self.publish_with(&[], key, bytes, condition)
    }

    /// All are written by one update, so others must have the same `CLASS/HI/LO/DKEY`.
    fn publish_with(&self, others: &[NewObject], key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        let parsed = self.parse(key, "write")?;
        let others_keys = self.parse_all(others.iter().map(|object| &*object.key), "write")?;
        let is_new = *condition == Condition::Absent;
        let mut values = vec![NewValue { key: parsed.clone(), pieces: vec![bytes.clone()], is_new }];
        values.extend(others_keys.into_iter().zip(others).map(|(key, object)| new_value(key, object, false)));
        // Before what costs requests.
        self.container.check_together(&values)?;
        if let Condition::Version(version) = condition {
            let lock = self.lock(&parsed, version)?;
            values.push(NewValue { key: lock, pieces: vec![Bytes::from_static(LOCK)], is_new: true });
        }
        match self.container.update_together(&values) {
            // The lock is what exists, but the value is what changed.
            Err(error) if error.kind() == ErrorKind::Changed => {
                Err(Error::new(ErrorKind::Changed, "write", format!("{self}{key}"), "another writer has written it"))
            }
            // Whether it was written is unknown.
            Err(error) if error.is_retryable() => match self.container.get(&parsed, u64::MAX) {
                Ok(found) if found == bytes => Ok(()),
                _ => Err(error),
            },
            result => result,
        }
    }

    fn honours_conditions(&self, probe: &str) -> Result<bool> {
        probe::honours_conditions(self, probe)
    }

    fn delete(&self, keys: &[String]) -> Result<()> {
        self.container.remove(&self.parse_all(keys.iter().map(String::as_str), "remove")?)
    }
}

#[cfg(test)]
mod tests;
