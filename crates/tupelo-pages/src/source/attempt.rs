//! The names of attempts to write an ntuple to a store.

use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::{Error, Result};

/// How the name of an attempt begins: the time in UTC.
const TIME: &str = "%Y%m%dT%H%M%S";
/// Random hexadecimal digits after the time and a hyphen.
const RANDOM_CHARS: usize = 12;
/// Those of them at the end that say in which store of a mirror the ntuple is.
const STORE_CHARS: usize = 2;

/// The names of new attempts to write one ntuple to this many stores: they differ only in their last two digits.
///
/// # Errors
/// More than 256 stores.
pub fn new_names(stores: usize) -> Result<Vec<String>> {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let common = format!("{}-{}", jiff::Timestamp::now().strftime(TIME), &random[..RANDOM_CHARS - STORE_CHARS]);
    let number = |store| {
        let number = u8::try_from(store).map_err(|_| Error::limit("mirror has more than 256 members"))?;
        Ok(format!("{common}{number:02x}"))
    };
    (0..stores).map(number).collect()
}

/// Whether this is the name of an attempt: `YYYYMMDDTHHMMSS-` and twelve hexadecimal digits.
pub fn is_attempt(name: &str) -> bool {
    let is_time = |time: &str| {
        time.len() == 15 && time.chars().enumerate().all(|(at, c)| if at == 8 { c == 'T' } else { c.is_ascii_digit() })
    };
    let is_random = |random: &str| random.len() == RANDOM_CHARS && random.chars().all(|c| c.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(time, random)| is_time(time) && is_random(random))
}

/// What the names of attempts have in common that write the same ntuple to several stores.
pub(crate) fn without_store(name: &str) -> Option<&str> {
    name.split_at_checked(name.len().checked_sub(STORE_CHARS)?).map(|(common, _)| common).filter(|_| is_attempt(name))
}

/// The time that a writer may take from sealing its record until the ntuple is visible: 10 minutes. `tupelo gc` keeps
/// the objects of a sealed attempt for this time, whatever their age.
pub const PUBLISHING_TIME: Duration = Duration::from_secs(10 * 60);

/// The word after which a record has the time when its writer was about to make the ntuple visible.
const SEALED: &str = " sealed ";
/// The word after which a sealed record has the attempt that it replaces.
const AFTER: &str = " after ";
/// As [`SEALED`], for the time when `tupelo gc` was about to remove its objects.
const REMOVED: &str = " removed ";

/// The record of an attempt that is about to become visible and to replace `visible`.
pub(crate) fn sealed_record(record: &str, visible: Option<&str>) -> String {
    let after = visible.map(|visible| format!("{AFTER}{visible}")).unwrap_or_default();
    format!("{record}{SEALED}{}{after}", jiff::Timestamp::now().strftime(TIME))
}

/// The record of an attempt whose objects are being removed.
pub fn removed_record(record: &str) -> String {
    let record = record.split_once(REMOVED).map_or(record, |(record, _)| record);
    format!("{record}{REMOVED}{}", jiff::Timestamp::now().strftime(TIME))
}

/// When a record was sealed.
pub fn sealed(record: &str) -> Option<SystemTime> {
    began(record.split_once(SEALED)?.1.split(' ').next()?)
}

/// The attempt that a sealed one replaces.
pub fn replaced(record: &str) -> Option<&str> {
    record.split_once(AFTER)?.1.split(' ').next()
}

/// When objects of the attempt with this record were removed.
pub fn removed(record: &str) -> Option<SystemTime> {
    began(record.split_once(REMOVED)?.1)
}

/// When an attempt began, from its name.
pub fn began(name: &str) -> Option<SystemTime> {
    let time = DateTime::strptime(TIME, name.split('-').next()?).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attempts_are_recognised() {
        assert!(is_attempt("20260131T235959-0123456789ab"));
        for name in
            ["mine", "b.objects", "20260131T235959", "20260131T235959-0123456789a", "2026013xT235959-0123456789ab"]
        {
            assert!(!is_attempt(name), "{name}");
        }
        let names = new_names(2).unwrap();
        assert!(names.iter().all(|name| is_attempt(name) && began(name).unwrap() <= SystemTime::now()), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(without_store(&names[0]), without_store(&names[1]));
        assert_ne!(without_store(&names[0]), without_store(&new_names(1).unwrap()[0]));
        assert_eq!((without_store("mine"), without_store("é")), (None, None));
        assert!(new_names(257).is_err());
        assert_eq!(began("19700101T000010-0123456789ab"), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(10)));
        assert_eq!(began("now"), None);
        let record = sealed_record("name SX", None);
        assert!(sealed(&record).unwrap() <= SystemTime::now() && record.starts_with("name SX sealed "), "{record}");
        assert_eq!((sealed(&removed_record(&record)), removed(&record)), (sealed(&record), None));
        assert_eq!(replaced(&record), None);
        let record = sealed_record("name SX", Some("7"));
        assert_eq!((replaced(&record), replaced(&removed_record(&record))), (Some("7"), Some("7")));
        let twice = removed_record(&removed_record(&record));
        assert!(removed(&twice).is_some() && twice.matches("removed").count() == 1, "{twice}");
        assert_eq!(sealed("name SX"), None);
    }
}
