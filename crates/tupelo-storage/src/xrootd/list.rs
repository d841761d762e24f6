//! Directories.

use std::sync::Arc;

use bytes::BytesMut;

use super::client::Client;
use super::connection::Room;
use super::file::stat;
use super::message::{Listed, Request, Stat, parse_listing};
use super::url::{Url, with_opaque};
use crate::error::Result;
use crate::net::Failure;

/// Maximum size of the listing of a directory, in bytes (64 MiB): about half a million entries.
pub const MAX_LISTING_BYTES: usize = 64 << 20;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// Size in bytes; of a directory, what the server reports.
    pub size_bytes: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// The entries of a directory, ordered by name.
pub(super) fn list(client: Client) -> Result<Vec<Entry>> {
    let client = Arc::new(client);
    let (shared, attempts) = (Arc::clone(&client), client.attempts(MAX_LISTING_BYTES as u64));
    client.run("list", async move { attempts.repeat(|| attempt(&shared)).await })
}

async fn attempt(client: &Client) -> Result<Vec<Entry>, Failure> {
    let request = |url: &Url| Request::List { path: url.request_path() };
    let answer = client.perform(&client.url, request, || Room::Bytes(BytesMut::new(), MAX_LISTING_BYTES)).await?;
    let mut entries = Vec::new();
    for Listed { name, stat: known } in parse_listing(&answer.body)? {
        let found = match known {
            Some(found) => found,
            None => {
                let path = format!("{}/{name}", answer.url.path.trim_end_matches('/'));
                stat(&answer.connection, with_opaque(&path, answer.url.opaque.as_deref())).await?
            }
        };
        let Stat { size_bytes, .. } = found;
        entries.push(Entry { name, size_bytes, is_directory: found.is_directory() });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
