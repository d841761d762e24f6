//! An attempt to write an ntuple to a store: the names of its objects, which no other attempt uses.

use bytes::Bytes;
use tupelo_format::store::Place;
use tupelo_storage::{ErrorKind, NewObject, ObjectSink as Namespace};

use crate::source::{AttemptNumbers, DaosKeys, ObjectKeys, daos_keys};
use crate::{Error, Result};

/// Writers that may take a number first, of those that begin at the same time.
const MAX_COLLISIONS: usize = 100;

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) kind: Kind,
    pub(super) keys: ObjectKeys,
    pub(super) numbers: AttemptNumbers,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// In a separate folder.
    Folder { place: Place, folder: String },
    /// By its numbers, in a DAOS container.
    Numbers {
        keys: DaosKeys,
        attempt: u32,
        /// The key of the record of the attempt.
        record: String,
    },
}

impl Attempt {
    /// Begins the attempt `name` to write the ntuple `base`; `is_caged` if pages share objects.
    pub(super) fn begin(namespace: &dyn Namespace, base: &str, is_caged: bool, name: &str) -> Result<Self> {
        match daos_keys(&namespace.keys(), base) {
            Some(keys) => Self::in_container(namespace, keys, name, is_caged),
            None => {
                let place = Place::Attempt(name.to_owned());
                let folder = place.folder(base);
                let keys = ObjectKeys::Numbered { folder: folder.as_str().into() };
                let numbers = AttemptNumbers { first: 0, end: u64::MAX };
                Ok(Self { kind: Kind::Folder { place, folder }, keys, numbers })
            }
        }
    }

    /// Records the attempt with its object class, so that no other one gets its number.
    fn in_container(namespace: &dyn Namespace, keys: DaosKeys, name: &str, is_caged: bool) -> Result<Self> {
        let folder = keys.attempts();
        for _ in 0..MAX_COLLISIONS {
            let listed = namespace.list(&folder)?;
            let numbers = listed.iter().filter_map(|entry| attempt_of_record(&entry.key, &folder));
            let attempt = numbers.max().unwrap_or(0) + 1;
            let numbers = AttemptNumbers::new(attempt, is_caged).ok_or_else(|| {
                Error::limit(format!("attempt {attempt} to write the ntuple; `tupelo gc` removes those before it"))
            })?;
            let record = keys.attempt(attempt);
            if put_new(namespace, &record, keys.record(name))? {
                let kind = Kind::Numbers { keys: keys.clone(), attempt, record };
                return Ok(Self { kind, keys: ObjectKeys::Daos(keys), numbers });
            }
        }
        Err(Error::limit("many writers begin at the same time"))
    }
}

/// Writes a record; false if it exists.
pub(super) fn put_new(namespace: &dyn Namespace, key: &str, text: String) -> Result<bool> {
    match namespace.put(&[NewObject { key: key.to_owned(), pieces: vec![Bytes::from(text)] }]) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Changed => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The number of the attempt of which this is the key of the record.
pub(crate) fn attempt_of_record(key: &str, folder: &str) -> Option<u32> {
    u32::from_str_radix(key.strip_prefix(folder)?, 16).ok()
}
