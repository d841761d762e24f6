//! Why a request failed, before it is the error of an operation.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// Why an attempt failed. Its text has no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) reason: String,
    /// Whether the same request may succeed later.
    pub(crate) is_transient: bool,
    /// The wait that the server asks for.
    pub(crate) wait: Option<Duration>,
}

impl Failure {
    /// A failure that another attempt does not change.
    #[cold]
    pub(crate) fn lasting(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_transient: false, wait: None }
    }

    /// A failure that another attempt may not have.
    #[cold]
    pub(crate) fn transient(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_transient: true, wait: None }
    }

    /// The same failure, with what was done before its reason.
    #[must_use]
    pub(crate) fn context(mut self, context: impl fmt::Display) -> Self {
        self.reason = format!("{context}: {}", self.reason);
        self
    }

    /// The same failure, with a remark after its reason.
    #[must_use]
    pub(crate) fn remark(mut self, remark: impl fmt::Display) -> Self {
        self.reason = format!("{}; {remark}", self.reason);
        self
    }

    /// The error of the operation.
    #[cold]
    pub(crate) fn into_error(self, action: impl Into<String>, uri: impl fmt::Display) -> Error {
        Error::new(self.kind, action.into(), uri, self.reason)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

/// Of a connection.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::transient(ErrorKind::Unavailable, "the server closed the connection"),
            kind => Self::transient(kind.into(), error.to_string()),
        }
    }
}
