//! What to request from an object, and the answer.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;

use super::client::{sending, store_failure};
use crate::error::ErrorKind;
use crate::net::Failure;

/// Which bytes to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Range(Range<u64>),
    /// This many bytes at the end, or the whole object if it has fewer.
    Last(u64),
}

/// What distinguishes a version of an object from the next one under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    /// The time of the last change, as the server writes it.
    pub(super) modified: Option<String>,
}

impl Identity {
    /// The ETag for `If-Match`, which ignores weak ones.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }

    /// Whether `other` is the same version; what a server does not send is not compared.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            _ if self.size != other.size => false,
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => match (&self.modified, &other.modified) {
                (Some(mine), Some(theirs)) => mine == theirs,
                _ => true,
            },
        }
    }
}

/// The answer to a request for a part.
#[derive(Debug)]
pub(super) struct Answer {
    /// The bytes that the server announces: not always those that were requested, nor those that follow.
    pub(super) range: Range<u64>,
    pub(super) identity: Identity,
    pub(super) body: Body,
}

/// The bytes of an answer.
pub(super) enum Body {
    Http(Response),
    Store(BoxStream<'static, object_store::Result<Bytes>>),
    /// A whole object, from a server that cannot send parts.
    Whole(Option<Bytes>),
}

impl Body {
    /// The next bytes, `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Http(response) => response.chunk().await.map_err(sending),
            Self::Store(stream) => stream.next().await.transpose().map_err(store_failure),
            Self::Whole(bytes) => Ok(bytes.take()),
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
