//! An object on a server: one request for a part of it, without retries.

use super::answer::{Answer, ByteRange, Identity, Version};
use super::http::HttpObject;
use super::store::StoreObject;
use crate::net::Failure;

/// An object on a server.
#[derive(Debug)]
pub(super) enum Object {
    Http(Box<HttpObject>),
    Store(StoreObject),
}

impl Object {
    /// Requests a part, of the pinned version if there is one.
    pub(super) async fn get(&self, part: &ByteRange, pinned: Option<&Identity>) -> Result<Answer, Failure> {
        match self {
            Self::Http(object) => object.get(part, pinned).await,
            Self::Store(object) => object.get(part, pinned).await,
        }
    }

    /// Whether the object has no bytes, asked without a range: servers refuse all ranges of it.
    pub(super) async fn is_empty(&self) -> Result<bool, Failure> {
        match self {
            Self::Http(object) => object.is_empty().await,
            Self::Store(object) => object.is_empty().await,
        }
    }

    /// The version of an object that has no bytes, asked without a range; `None` if it has some.
    pub(super) async fn empty_version(&self) -> Result<Option<Version>, Failure> {
        match self {
            Self::Http(object) => Ok(object.is_empty().await?.then_some(Version { etag: None, generation: None })),
            Self::Store(object) => object.empty_version().await,
        }
    }

    /// Distinguishes it from objects with the same name: hidden parameters, or another server.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Http(object) => object.place(),
            Self::Store(object) => object.place(),
        }
    }

    /// Whether the server can send the end of an object whose size is unknown.
    pub(super) fn has_last_part(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Store(object) => object.has_last_part(),
        }
    }
}
