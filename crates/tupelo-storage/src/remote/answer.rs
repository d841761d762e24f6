//! Requests for an object, and their answers.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;

use super::client::{sending, store_failure};
use crate::error::ErrorKind;
use crate::net::{Failure, is_settled};

/// Which bytes to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ByteRange {
    Range(Range<u64>),
    /// This many bytes at the end, or the whole object if it has fewer.
    Last(u64),
}

/// The properties that distinguish versions of an object under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    /// The time of the last change, as the server writes it.
    pub(super) modified: Option<String>,
    /// The same, where it could be parsed.
    pub(super) modified_at: Option<SystemTime>,
    /// The number of the version, in stores that have one.
    pub(super) generation: Option<String>,
}

impl Identity {
    /// The ETag for `If-Match`, which ignores weak ones.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// Whether `later`, from a later answer, is the same version. Properties of this version that are set must match
    /// those of the later one.
    pub(super) fn is_same(&self, later: &Self) -> bool {
        match (&self.etag, &self.modified) {
            _ if self.size != later.size => false,
            (Some(etag), _) => later.etag.as_ref() == Some(etag),
            (None, Some(modified)) => later.modified.as_ref() == Some(modified),
            (None, None) => true,
        }
    }

    /// What identifies this version for other processes and later ones, with its size; `None` if nothing does for sure.
    pub(super) fn lasting(&self, now: SystemTime) -> Option<String> {
        let size = self.size;
        if let Some(etag) = self.strong_etag() {
            return Some(format!("{size} {etag}"));
        }
        let modified_at = self.modified_at?;
        let modified = self.modified.as_deref().filter(|_| is_settled(modified_at, now))?;
        // A weak one that changes means that the object did.
        Some(format!("{size} {modified} {}", self.etag.as_deref().unwrap_or_default()))
    }
}

/// The version of an object, as stores take it for a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) etag: Option<String>,
    pub(crate) generation: Option<String>,
}

/// The answer to a request for a part.
#[derive(Debug)]
pub(super) struct Answer {
    /// The bytes that the server announces: not always those that were requested, nor those that follow.
    pub(super) range: Range<u64>,
    pub(super) identity: Identity,
    /// Whether the whole object follows, from a server that does not send parts.
    pub(super) is_whole: bool,
    pub(super) body: Body,
}

/// The bytes of an answer.
pub(super) enum Body {
    Http(Response),
    Store(BoxStream<'static, object_store::Result<Bytes>>),
    Bytes(Option<Bytes>),
}

impl Body {
    /// The next bytes, `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Http(response) => response.chunk().await.map_err(sending),
            Self::Store(stream) => stream.next().await.transpose().map_err(store_failure),
            Self::Bytes(bytes) => Ok(bytes.take()),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// The failure of a request for a version that is gone.
#[cold]
pub(super) fn replaced() -> Failure {
    Failure::lasting(ErrorKind::Changed, "the object was replaced after it was opened")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn identity(etag: Option<&str>, modified: Option<u64>) -> Identity {
        Identity {
            size: 10,
            etag: etag.map(str::to_owned),
            modified: modified.map(|seconds| format!("second {seconds}")),
            modified_at: modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            generation: None,
        }
    }

    #[test]
    fn what_was_sent_once_is_expected_again() {
        let (both, etag, modified) = (identity(Some("1"), Some(5)), identity(Some("1"), None), identity(None, Some(5)));
        assert!(both.is_same(&both) && both.is_same(&etag) && etag.is_same(&both) && modified.is_same(&both));
        assert!(!both.is_same(&modified), "the ETag is missing");
        assert!(!modified.is_same(&etag), "the time is missing");
        assert!(!both.is_same(&identity(Some("2"), Some(5))) && !modified.is_same(&identity(None, Some(6))));
        assert!(!identity(None, None).is_same(&Identity { size: 11, ..identity(None, None) }));
    }

    #[test]
    fn only_settled_times_identify_a_version() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(identity(Some("\"1\""), None).lasting(at(0)).unwrap(), "10 \"1\"");
        assert_eq!(identity(None, Some(100)).lasting(at(110)).unwrap(), "10 second 100 ");
        assert_eq!(identity(Some("W/\"1\""), Some(100)).lasting(at(110)).unwrap(), "10 second 100 W/\"1\"");
        for (identity, now) in [
            (identity(None, Some(100)), 109),
            (identity(None, Some(100)), 90),
            (identity(Some("W/\"1\""), None), 200),
            (identity(None, None), 200),
        ] {
            assert_eq!(identity.lasting(at(now)), None, "{identity:?}");
        }
    }
}
