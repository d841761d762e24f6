//! An object on a server: one request for a part of it, without retries.

use super::answer::{Answer, Identity, Part};
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
    pub(super) async fn get(&self, part: &Part, pinned: Option<&Identity>) -> Result<Answer, Failure> {
        match self {
            Self::Http(object) => object.get(part, pinned).await,
            Self::Store(object) => object.get(part, pinned).await,
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
