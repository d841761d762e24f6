//! The meaning of server messages for a request.

use super::message::{Malformed, ServerError};
use crate::error::ErrorKind;
use crate::net::{Failure, hide_in_message};

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::transient(ErrorKind::Other, malformed.0)
    }
}

/// The meaning of the codes of `kXR_error`, by the published table `XErrorCode`.
impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let (kind, is_transient) = match error.code {
            // Locked, or opened by a writer.
            3003 | 3020 => (ErrorKind::Busy, false),
            // A handle that the server no longer knows.
            3004 => (ErrorKind::Unavailable, true),
            // Errors of a disk or of the server: another one may have a copy.
            3007 | 3012 => (ErrorKind::Other, true),
            // Memory, no server, overloaded.
            3008 | 3014 | 3024 => (ErrorKind::Unavailable, true),
            // A full disk, a quota.
            3009 | 3021 => (ErrorKind::NoSpace, false),
            // Not authorized, a missing signature, read only, a demand for TLS, failed authentication.
            3010 | 3022 | 3025 | 3028 | 3030 => (ErrorKind::Denied, false),
            // Not found, no copies left.
            3011 | 3029 => (ErrorKind::NotFound, false),
            // Unsupported, not a file, a directory.
            3013 | 3015 | 3016 => (ErrorKind::NotSupported, false),
            // Exists.
            3018 => (ErrorKind::Changed, false),
            // Timeouts in the server.
            3034 | 3035 => (ErrorKind::Timeout, true),
            _ => (ErrorKind::Other, false),
        };
        Self { kind, reason: hide_in_message(&error.to_string()), is_transient, wait: None }
    }
}
