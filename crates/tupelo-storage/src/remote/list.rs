//! Listing of stores.

use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;

use super::client::store_failure;
use super::store::{Address, StoreObject, store};
use crate::error::ErrorKind;
use crate::net::{Entry, Failure, Options, repeat, run};

/// Maximum number of entries of a listing.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum number of requests for it: a server must not continue it indefinitely with empty pages.
const MAX_PAGES: usize = 10_000;

/// The objects and folders in the folder `address`, or the object itself. `base` is the URL of its bucket.
pub(super) fn list(address: &Address, base: &str, options: &Options) -> Result<Vec<Entry>, Failure> {
    let folder = if address.key.is_empty() || address.key.ends_with('/') {
        address.key.clone()
    } else {
        format!("{}/", address.key)
    };
    let mut entries = pages(address, base, folder, options)?;
    if entries.is_empty() && !address.key.is_empty() {
        let object = StoreObject::new(address.clone(), options)?;
        let limits = options.limits();
        let head = run(async move {
            let head = async || object.store()?.head(object.path()).await.map_err(store_failure);
            repeat(&limits, head).await
        });
        let missing = "there is no object or folder of this name";
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

/// What starts with a prefix, up to the next slash.
fn pages(address: &Address, base: &str, prefix: String, options: &Options) -> Result<Vec<Entry>, Failure> {
    let store = store(address, options)?;
    let (limits, base) = (options.limits(), base.to_owned());
    run(async move {
        let mut entries = Vec::new();
        let mut page_token = None;
        for _ in 0..MAX_PAGES {
            let page = repeat(&limits, || {
                let request = PaginatedListOptions {
                    delimiter: Some("/".into()),
                    page_token: page_token.clone(),
                    ..PaginatedListOptions::default()
                };
                let (store, prefix) = (Arc::clone(&store), prefix.as_str());
                async move {
                    store.list_paginated(Some(prefix).filter(|p| !p.is_empty()), request).await.map_err(store_failure)
                }
            });
            let page = page.await?;
            let folders = page.result.common_prefixes.iter().map(|path| (format!("{path}/"), None));
            let objects = page.result.objects.iter().map(|found| (found.location.to_string(), Some(found.size)));
            // Some tools create an empty object whose key is the prefix of the folder.
            let inside = folders.chain(objects).filter(|(key, _)| format!("{}/", key.trim_end_matches('/')) != prefix);
            entries.extend(inside.map(|(key, size)| Entry { url: format!("{base}/{key}"), size }));
            if entries.len() > MAX_ENTRIES {
                let reason = format!("it has more than {MAX_ENTRIES} entries");
                return Err(Failure::lasting(ErrorKind::NotSupported, reason));
            }
            page_token = page.page_token;
            if page_token.is_none() {
                return Ok(entries);
            }
        }
        let reason = format!("its listing does not end after {MAX_PAGES} requests");
        Err(Failure::lasting(ErrorKind::Other, reason))
    })
}
