//! What can go wrong in an exchange with a server, before it is an error of a file.

use std::fmt::Display;
use std::io;

use super::message::{Malformed, ServerError};
use super::secret::hide_in_message;
use crate::error::{Error, ErrorKind};

/// Why a request failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) reason: String,
    /// Whether a new connection may help.
    pub(super) is_retryable: bool,
}

impl Failure {
    /// A failure that is final.
    #[cold]
    pub(super) fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_retryable: false }
    }

    /// A failure that may be gone with the next attempt.
    #[cold]
    pub(super) fn transient(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { is_retryable: true, ..Self::new(kind, reason) }
    }

    /// The same failure, with what was done before its reason.
    #[must_use]
    pub(super) fn context(mut self, context: impl Display) -> Self {
        self.reason = format!("{context}: {}", self.reason);
        self
    }

    /// The same failure, with a remark after its reason.
    #[must_use]
    pub(super) fn remark(mut self, remark: impl Display) -> Self {
        self.reason = format!("{}; {remark}", self.reason);
        self
    }

    /// The error of an operation on a file.
    pub(super) fn into_error(self, action: impl Into<String>, uri: impl Display) -> Error {
        Error::new(self.kind, action.into(), uri, self.reason)
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::transient(ErrorKind::Other, malformed.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                return Self::transient(ErrorKind::Unavailable, "the server closed the connection");
            }
            kind => ErrorKind::from(kind),
        };
        Self::transient(kind, error.to_string())
    }
}

/// The meaning of the codes of `kXR_error`, by the published table `XErrorCode`.
impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let (kind, is_retryable) = match error.code {
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
        Self { kind, reason: hide_in_message(&error.to_string()), is_retryable }
    }
}
