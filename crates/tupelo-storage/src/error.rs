//! The error type of this crate.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::ops::Range;

/// Kinds of errors that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The object does not exist.
    NotFound,
    /// The system refuses access: permissions, credentials, a read-only medium.
    Denied,
    /// The object changed since it was opened, or another writer created it first.
    Changed,
    /// Another writer has locked the file.
    Busy,
    /// A request timed out.
    Timeout,
    /// The back end cannot be reached, or requests a retry.
    Unavailable,
    /// The disk is full, or a quota or size limit is reached.
    NoSpace,
    /// The back end does not support the operation for this object.
    NotSupported,
    /// A range outside the object was read or patched.
    OutOfRange,
    /// The caller cancelled the work: see [`cancellable`](crate::cancel::cancellable).
    Cancelled,
    /// Anything else; the message has the details.
    Other,
}

impl ErrorKind {
    /// All kinds, for exhaustive tables and tests.
    pub const ALL: [Self; 11] = [
        Self::NotFound,
        Self::Denied,
        Self::Changed,
        Self::Busy,
        Self::Timeout,
        Self::Unavailable,
        Self::NoSpace,
        Self::NotSupported,
        Self::OutOfRange,
        Self::Cancelled,
        Self::Other,
    ];
}

impl From<io::ErrorKind> for ErrorKind {
    fn from(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as Io;
        match kind {
            Io::NotFound => Self::NotFound,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => Self::Denied,
            Io::AlreadyExists | Io::StaleNetworkFileHandle => Self::Changed,
            Io::ResourceBusy | Io::ExecutableFileBusy | Io::WouldBlock => Self::Busy,
            Io::TimedOut => Self::Timeout,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::NotConnected
            | Io::BrokenPipe
            | Io::HostUnreachable
            | Io::NetworkUnreachable
            | Io::NetworkDown => Self::Unavailable,
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => Self::NoSpace,
            Io::Unsupported | Io::IsADirectory => Self::NotSupported,
            Io::UnexpectedEof => Self::OutOfRange,
            _ => Self::Other,
        }
    }
}

/// A failed operation on an object: `cannot ACTION URI: REASON`.
///
/// [`Display`](fmt::Display) is complete: it includes the text of [`source`](StdError::source), which gives
/// access to the cause itself.
pub struct Error {
    // Boxed, so that results stay small.
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    action: Cow<'static, str>,
    uri: String,
    reason: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with a message as its reason.
    ///
    /// `action` completes the sentence "cannot … URI" (`read bytes 0..64 of`), `reason` says why not.
    #[cold]
    pub fn new(
        kind: ErrorKind,
        action: impl Into<Cow<'static, str>>,
        uri: impl fmt::Display,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        let inner = Inner { kind, action: action.into(), uri: uri.to_string(), reason: reason.into(), source: None };
        Self { inner: Box::new(inner) }
    }

    /// An error of the operating system.
    #[cold]
    pub fn from_io(action: impl Into<Cow<'static, str>>, uri: impl fmt::Display, source: io::Error) -> Self {
        Self::new(source.kind().into(), action, uri, "").with_source(source)
    }

    /// A read past the end of `uri`, which has `size_bytes`.
    #[cold]
    pub fn out_of_range(range: &Range<u64>, uri: impl fmt::Display, size_bytes: u64) -> Self {
        let action = format!("read bytes {}..{} of", range.start, range.end);
        let reason = if range.start > range.end {
            Cow::from("the range ends before it starts")
        } else {
            Cow::from(format!("it ends at byte {size_bytes}"))
        };
        Self::new(ErrorKind::OutOfRange, action, uri, reason)
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// The same error with another reason appended.
    #[must_use]
    pub(crate) fn with_reason(mut self, reason: &str) -> Self {
        let old = std::mem::take(&mut self.inner.reason);
        self.inner.reason = if old.is_empty() { reason.to_owned() } else { format!("{old}; {reason}") }.into();
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The URI or path of the object.
    pub fn uri(&self) -> &str {
        &self.inner.uri
    }

    /// Whether the same call may succeed on a retry.
    pub fn is_retryable(&self) -> bool {
        matches!(self.inner.kind, ErrorKind::Timeout | ErrorKind::Unavailable)
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.inner.kind == ErrorKind::NotFound
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { action, uri, reason, source, .. } = &*self.inner;
        write!(f, "cannot {action} {uri}")?;
        if !reason.is_empty() {
            write!(f, ": {reason}")?;
        }
        match source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.inner.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_word_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn messages_have_action_object_and_reason() {
        let denied = Error::from_io("open", "/data/x.root", io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.kind(), ErrorKind::Denied);
        assert_eq!(denied.to_string(), "cannot open /data/x.root: permission denied");
        assert!(std::error::Error::source(&denied).is_some());
        let range = Error::out_of_range(&(10..20), "memory:x", 15);
        assert_eq!(range.to_string(), "cannot read bytes 10..20 of memory:x: it ends at byte 15");
        let both = Error::new(ErrorKind::Timeout, "read", "s3://b/k", "3 attempts").with_source("connection reset");
        assert_eq!(both.to_string(), "cannot read s3://b/k: 3 attempts: connection reset");
    }

    #[test]
    fn only_transient_errors_are_retryable() {
        for kind in ErrorKind::ALL {
            let retryable = matches!(kind, ErrorKind::Timeout | ErrorKind::Unavailable);
            assert_eq!(Error::new(kind, "read", "x", "").is_retryable(), retryable, "{kind:?}");
        }
    }

    #[test]
    fn full_disks_quotas_and_size_limits_have_one_kind() {
        for io in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            assert_eq!(ErrorKind::from(io), ErrorKind::NoSpace);
        }
    }
}
