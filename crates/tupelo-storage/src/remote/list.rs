//! Listing of stores.

use std::sync::Arc;
use std::time::Duration;

use object_store::list::PaginatedListOptions;
use object_store::{ListResult, ObjectStoreExt};

use super::client::store_failure;
use super::store::{Address, Store, StoreObject, check_length, store};
use crate::error::ErrorKind;
use crate::net::{Attempts, Entry, Failure, Options, repeat, run};

/// Maximum number of entries of a listing.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum size of the names in a listing, in bytes.
const MAX_NAME_BYTES: usize = 128 << 20;
/// Maximum number of pages without entries in a listing: some stores send a few where objects were deleted.
const MAX_EMPTY_PAGES: usize = 1000;
/// Time that a listing may take for each entry, beyond the total time of a request.
const SLOWEST_ENTRY: Duration = Duration::from_millis(10);

/// The objects and folders in the folder `address`, or the object itself. `base` is the URL of its bucket.
pub(super) fn list(address: &Address, base: &str, options: &Options) -> Result<Vec<Entry>, Failure> {
    let folder = if address.key.is_empty() || address.key.ends_with('/') {
        address.key.clone()
    } else {
        format!("{}/", address.key)
    };
    let inside = format!("{base}/{folder}");
    let mut entries = entries(address, base, folder, options)?;
    if entries.iter().any(|entry| !entry.url.starts_with(&inside)) {
        let what = "the listing of the server is invalid: it contains a name outside the folder";
        return Err(Failure::lasting(ErrorKind::Other, what));
    }
    let missing = "no such object or folder";
    if entries.is_empty() && address.key.ends_with('/') {
        return Err(Failure::lasting(ErrorKind::NotFound, missing));
    }
    if entries.is_empty() && !address.key.is_empty() {
        let object = StoreObject::new(address.clone(), options)?;
        let limits = options.limits();
        let head = run(async move {
            let head = async || object.store()?.head(object.path()).await.map_err(store_failure);
            repeat(&limits, head).await
        });
        let size = match head {
            Ok(found) => Some(found.size),
            Err(failure) if failure.kind == ErrorKind::NotFound => {
                return Err(Failure::lasting(ErrorKind::NotFound, missing));
            }
            Err(failure) => return Err(failure),
        };
        entries.push(Entry { url: format!("{base}/{}", address.key), size });
    }
    entries.sort();
    Ok(entries)
}

/// The failure to list a folder of a web server.
#[cold]
pub(super) fn no_listings() -> Failure {
    Failure::lasting(ErrorKind::NotSupported, "web servers do not list files: specify their names")
}

/// What starts with a prefix, up to the next slash.
fn entries(address: &Address, base: &str, prefix: String, options: &Options) -> Result<Vec<Entry>, Failure> {
    let store = store(address, options)?;
    let (limits, base) = (options.limits(), base.to_owned());
    run(async move {
        let mut entries = Vec::<Entry>::new();
        let add = |page: ListResult| {
            let folders = page.common_prefixes.iter().map(|path| (format!("{path}/"), None));
            let objects = page.objects.iter().map(|found| (found.location.to_string(), Some(found.size)));
            // Some tools create an empty object whose key is the prefix of the folder.
            let inside = folders.chain(objects).filter(|(key, _)| format!("{}/", key.trim_end_matches('/')) != prefix);
            entries.extend(inside.map(|(key, size)| Entry { url: format!("{base}/{key}"), size }));
        };
        pages(&store, Attempts::new(&limits), &prefix, Some("/"), add).await?;
        Ok(entries)
    })
}

/// Gets all pages of a listing of what starts with a prefix, with a delimiter up to the next one.
pub(super) async fn pages(
    store: &Arc<dyn Store>,
    mut call: Attempts,
    prefix: &str,
    delimiter: Option<&'static str>,
    mut each: impl FnMut(ListResult) + Send,
) -> Result<(), Failure> {
    check_length(prefix)?;
    let (mut received, mut name_bytes, mut empty_pages) = (0, 0, 0);
    let mut page_token = None;
    loop {
        let page =
            call.of_same_call().repeat(|| {
                let request = PaginatedListOptions {
                    delimiter: delimiter.map(Into::into),
                    page_token: page_token.clone(),
                    ..PaginatedListOptions::default()
                };
                let store = Arc::clone(store);
                async move {
                    store.list_paginated(Some(prefix).filter(|p| !p.is_empty()), request).await.map_err(store_failure)
                }
            });
        let page = page.await?;
        let ListResult { common_prefixes, objects, .. } = &page.result;
        let added = common_prefixes.len() + objects.len();
        received += added;
        for name in common_prefixes.iter().chain(objects.iter().map(|found| &found.location)) {
            check_length(name.as_ref()).map_err(|failure| failure.context("the listing of the server is invalid"))?;
            name_bytes += name.as_ref().len();
        }
        // A page has at most a thousand entries, unless the server does not keep the protocol.
        call.extend(SLOWEST_ENTRY.saturating_mul(added.min(MAX_ENTRIES) as u32));
        each(page.result);
        empty_pages += usize::from(added == 0);
        if empty_pages > MAX_EMPTY_PAGES {
            let reason = format!("the server sent more than {MAX_EMPTY_PAGES} pages without entries");
            return Err(Failure::lasting(ErrorKind::Other, reason));
        }
        if received > MAX_ENTRIES || name_bytes > MAX_NAME_BYTES {
            let mib = MAX_NAME_BYTES >> 20;
            let reason = format!("it exceeds the limit of {MAX_ENTRIES} entries or {mib} MiB of names");
            return Err(Failure::lasting(ErrorKind::NotSupported, reason));
        }
        match page.page_token {
            None => return Ok(()),
            next if next == page_token => {
                let reason = "the server repeats the same page of its listing";
                return Err(Failure::lasting(ErrorKind::Other, reason));
            }
            Some(next) => {
                check_length(&next).map_err(|failure| failure.context("the listing of the server is invalid"))?;
                page_token = Some(next);
            }
        }
    }
}
