//! Listings of directories.

use std::sync::Arc;

use bytes::BytesMut;

use super::client::Client;
use super::connection::Room;
use super::file::stat;
use super::message::{Listed, Request, Stat, parse_listing};
use super::url::{Url, with_opaque};
use crate::error::{ErrorKind, Result};
use crate::net::{Entry, Failure};

/// Maximum size of the listing of a directory, in bytes (64 MiB): about half a million entries.
pub const MAX_LISTING_BYTES: usize = 64 << 20;

/// The entries of a directory with their URLs, ordered by name; for the URL of a file, the file.
pub(super) fn list(client: Client, url: &str) -> Result<Vec<Entry>> {
    let client = Arc::new(client);
    // The total time only: how much the server will send is not known.
    let (shared, attempts) = (Arc::clone(&client), client.attempts(0));
    let listing = client.run("list", async move { attempts.repeat(|| attempt(&shared)).await })?;
    let found = match listing {
        Listing::File(size) => return Ok(vec![Entry { url: url.to_owned(), size: Some(size) }]),
        Listing::Directory(found) => found,
    };
    let (base, opaque) = url.split_once('?').map_or((url, None), |(base, opaque)| (base, Some(opaque)));
    let base = base.trim_end_matches('/');
    let entry = |(name, stat): (String, Stat)| {
        let path = format!("{base}/{name}{}", if stat.is_directory() { "/" } else { "" });
        let size = (!stat.is_directory()).then_some(stat.size_bytes);
        Entry { url: with_opaque(&path, opaque.filter(|opaque| !opaque.is_empty())), size }
    };
    Ok(found.into_iter().map(entry).collect())
}

/// The entries under a path.
enum Listing {
    /// Names, in their order.
    Directory(Vec<(String, Stat)>),
    /// The size of a file in bytes.
    File(u64),
}

async fn attempt(client: &Client) -> Result<Listing, Failure> {
    let request = |url: &Url| Request::List { path: url.request_path() };
    let room = || Room::Bytes(BytesMut::new(), MAX_LISTING_BYTES);
    let answer = match client.perform(&client.url, request, room).await {
        Ok(answer) => answer,
        // Servers differ in what they say of a file.
        Err(failure @ Failure { kind: ErrorKind::Other | ErrorKind::NotSupported | ErrorKind::NotFound, .. }) => {
            return file(client).await.ok_or(failure);
        }
        Err(failure) => return Err(failure),
    };
    let mut found = Vec::new();
    for Listed { name, stat: known } in parse_listing(&answer.body)? {
        let known = match known {
            Some(known) => known,
            None => {
                let path = format!("{}/{name}", answer.url.path.trim_end_matches('/'));
                let path = with_opaque(&path, answer.url.opaque.as_deref());
                stat(&answer.connection, &Request::Stat { path }).await?
            }
        };
        found.push((name, known));
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(Listing::Directory(found))
}

/// The path as a file, if it is one.
async fn file(client: &Client) -> Option<Listing> {
    let request = |url: &Url| Request::Stat { path: url.request_path() };
    let answer = client.perform(&client.url, request, Room::control).await.ok()?;
    let stat = Stat::parse(&answer.body).ok().filter(|stat| !stat.is_directory())?;
    Some(Listing::File(stat.size_bytes))
}
