//! The meaning of the error numbers of DAOS.
//!
//! libdaos has their texts in another library, libgurt, which a client need not find.

use std::ffi::c_int;

use crate::error::ErrorKind;

/// `DER_INVAL`: what libdaos returns for a class that a pool cannot hold, among others.
pub(super) const INVALID: c_int = -1003;
/// `DER_EXIST`.
pub(super) const EXISTS: c_int = -1004;
/// `DER_NONEXIST`.
pub(super) const ABSENT: c_int = -1005;
/// `DER_NOMEM`.
pub(super) const NO_MEMORY: c_int = -1009;
/// `DER_MISC`.
pub(super) const UNKNOWN: c_int = -1025;
/// `DER_TIMEDOUT`.
pub(super) const TIMED_OUT: c_int = -1011;
/// `DER_REC2BIG`: a value is larger than the buffers for it.
pub(super) const TOO_SHORT: c_int = -2013;

/// Numbers, names, meanings and kinds.
const CODES: &[(c_int, &str, &str, ErrorKind)] = &[
    (-1001, "DER_NO_PERM", "access is denied, or it is open read-only", ErrorKind::Denied),
    (-1002, "DER_NO_HDL", "the connection was closed", ErrorKind::Unavailable),
    (INVALID, "DER_INVAL", "DAOS rejected the request", ErrorKind::Other),
    (EXISTS, "DER_EXIST", "it already exists", ErrorKind::Changed),
    (ABSENT, "DER_NONEXIST", "it does not exist", ErrorKind::NotFound),
    (-1006, "DER_UNREACH", "a server cannot be reached", ErrorKind::Unavailable),
    (-1007, "DER_NOSPACE", "the pool is full", ErrorKind::NoSpace),
    (-1008, "DER_ALREADY", "it was already done", ErrorKind::Other),
    (NO_MEMORY, "DER_NOMEM", "out of memory", ErrorKind::Other),
    (TIMED_OUT, "DER_TIMEDOUT", "a server does not answer", ErrorKind::Timeout),
    (-1012, "DER_BUSY", "it is in use", ErrorKind::Busy),
    (-1013, "DER_AGAIN", "the server requests a retry", ErrorKind::Unavailable),
    (-1015, "DER_UNINIT", "libdaos is not initialised", ErrorKind::Other),
    (-1016, "DER_TRUNC", "a buffer is too small", ErrorKind::Other),
    (-1018, "DER_CANCELED", "the request was cancelled by DAOS", ErrorKind::Unavailable),
    (UNKNOWN, "DER_MISC", "unspecified error", ErrorKind::Other),
    (-2001, "DER_IO", "I/O error on the medium", ErrorKind::Other),
    (-2012, "DER_KEY2BIG", "a key is too large", ErrorKind::Other),
    (TOO_SHORT, "DER_REC2BIG", "the value is larger than expected", ErrorKind::Changed),
    (
        -2034,
        "DER_AGENT_COMM",
        "the DAOS agent does not answer: daos_agent must run on this machine",
        ErrorKind::Unavailable,
    ),
    (-2037, "DER_NOTSUPPORTED", "DAOS does not support it", ErrorKind::NotSupported),
];

/// The kind of an error number.
pub(super) fn kind(code: c_int) -> ErrorKind {
    CODES.iter().find(|(known, ..)| *known == code).map_or(ErrorKind::Other, |(.., kind)| *kind)
}

/// The text of an error number: its meaning, name and number.
pub(super) fn text(code: c_int) -> String {
    match CODES.iter().find(|(known, ..)| *known == code) {
        Some((_, name, meaning, _)) => format!("{meaning} ({name}, {code})"),
        None => format!("DAOS error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names_and_kinds() {
        assert_eq!(text(-1007), "the pool is full (DER_NOSPACE, -1007)");
        assert_eq!((text(-7), kind(-7)), ("DAOS error -7".to_owned(), ErrorKind::Other));
        assert_eq!(
            (kind(ABSENT), kind(EXISTS), kind(-1001)),
            (ErrorKind::NotFound, ErrorKind::Changed, ErrorKind::Denied)
        );
        let numbers: std::collections::BTreeSet<c_int> = CODES.iter().map(|(code, ..)| *code).collect();
        assert_eq!(numbers.len(), CODES.len(), "each number has one line");
        assert!(numbers.iter().all(|code| *code < 0));
    }
}
