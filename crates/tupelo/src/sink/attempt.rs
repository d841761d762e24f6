//! An attempt to write an ntuple to a store: the names of its objects, which no other attempt uses.

use std::time::SystemTime;

use bytes::Bytes;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tupelo_format::store::Place;
use tupelo_storage::{ErrorKind, NewObject, ObjectSink as Namespace};

use crate::source::{AttemptNumbers, DaosKeys, ObjectKeys, daos_keys};
use crate::{Error, Result};

/// Writers that may take a number first, of those that begin at the same time.
const MAX_COLLISIONS: usize = 100;
/// How the name of an attempt begins: the time in UTC.
const TIME: &str = "%Y%m%dT%H%M%S";
/// Random hexadecimal digits after the time and a hyphen.
const RANDOM_CHARS: usize = 12;

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
    /// Begins an attempt to write the ntuple `base`; `is_caged` if pages share objects.
    pub(super) fn begin(namespace: &dyn Namespace, base: &str, is_caged: bool) -> Result<Self> {
        let name = new_name();
        match daos_keys(&namespace.keys(), base) {
            Some(keys) => Self::in_container(namespace, keys, &name, is_caged),
            None => {
                let place = Place::Attempt(name);
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
            let record = format!("{folder}{attempt:x}");
            if put_new(namespace, &record, write_record(name, &keys))? {
                let kind = Kind::Numbers { keys: keys.clone(), attempt, record };
                return Ok(Self { kind, keys: ObjectKeys::Daos(keys), numbers });
            }
        }
        Err(Error::limit("many writers begin at the same time"))
    }
}

/// The name of a new attempt.
fn new_name() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", jiff::Timestamp::now().strftime(TIME), &random[..RANDOM_CHARS])
}

/// Whether this is the name of an attempt: `YYYYMMDDTHHMMSS-` and twelve hexadecimal digits.
pub(crate) fn is_attempt(name: &str) -> bool {
    let is_time = |time: &str| {
        time.len() == 15 && time.chars().enumerate().all(|(at, c)| if at == 8 { c == 'T' } else { c.is_ascii_digit() })
    };
    let is_random = |random: &str| random.len() == RANDOM_CHARS && random.chars().all(|c| c.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(time, random)| is_time(time) && is_random(random))
}

/// When an attempt began, from its name.
pub(crate) fn began(name: &str) -> Option<SystemTime> {
    let time = DateTime::strptime(TIME, name.split('-').next()?).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().into())
}

/// Writes a record; false if it exists.
pub(super) fn put_new(namespace: &dyn Namespace, key: &str, text: String) -> Result<bool> {
    match namespace.put(&[NewObject { key: key.to_owned(), pieces: vec![Bytes::from(text)] }]) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Changed => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What a record says when each page is in a separate object.
const SEPARATE: &str = " separate";

/// The record of an attempt: its name, the object class of its pages, and whether these have separate objects.
fn write_record(name: &str, keys: &DaosKeys) -> String {
    format!("{name} {}{}", keys.class, if keys.separate_pages { SEPARATE } else { "" })
}

/// The name of an attempt and the keys of its pages, from its record.
pub(crate) fn read_record<'r>(record: &'r str, keys: &DaosKeys) -> Option<(&'r str, DaosKeys)> {
    let (name, class) = record.split_once(' ')?;
    let (class, separate_pages) = match class.strip_suffix(SEPARATE) {
        Some(class) => (class, true),
        None => (class, false),
    };
    Some((name, DaosKeys { class: class.into(), separate_pages, ..keys.clone() }))
}

/// The number of the attempt of which this is the key of the record.
pub(crate) fn attempt_of_record(key: &str, folder: &str) -> Option<u32> {
    u32::from_str_radix(key.strip_prefix(folder)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_of_attempts_are_recognised() {
        assert!(is_attempt("20260131T235959-0123456789ab"));
        for name in
            ["mine", "b.objects", "20260131T235959", "20260131T235959-0123456789a", "2026013xT235959-0123456789ab"]
        {
            assert!(!is_attempt(name), "{name}");
        }
        let name = new_name();
        assert!(is_attempt(&name), "{name}");
        assert!(began(&name).unwrap() <= SystemTime::now());
        assert_eq!(began("19700101T000010-0123456789ab"), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(10)));
        assert_eq!(began("now"), None);
    }
}
