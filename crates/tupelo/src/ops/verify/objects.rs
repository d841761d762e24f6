//! The objects of an ntuple in an object store, as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tupelo_core::pool;
use tupelo_format::checksum::{Xxh3, xxh3};
use tupelo_format::locator::Locator;
use tupelo_format::store::ObjectDigest;
use tupelo_pages::source::{CLONES, Objects, missing};
use tupelo_storage::{ErrorKind, ObjectRange};

use crate::{Error, Result};

/// Objects that are read at once, in bytes and number.
const BATCH_BYTES: u64 = 32 << 20;
const BATCH_OBJECTS: usize = 256;

/// Compares the objects with the manifest: their sizes, where the store has listings, the digests of header, footer, page
/// lists and anchors of attribute sets, and, if `is_deep`, of all. Each difference is passed to `found`.
///
/// # Errors
/// Errors of the store.
pub(super) fn check(
    objects: &Objects,
    page_lists: &[Locator],
    is_deep: bool,
    found: &mut dyn FnMut(Error),
) -> Result<()> {
    let manifest = match objects.manifest() {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(()),
        Err(error) if error.is_retryable() => return Err(error),
        Err(error) => {
            found(error);
            return Ok(());
        }
    };
    let folder = objects.folder().unwrap_or_default();
    let numbered = (0..).zip(manifest.numbered).map(|(number, it): (u64, _)| (number.to_string(), it));
    let mut expected: Vec<(String, ObjectDigest)> = numbered.chain(manifest.named).collect();
    check_sizes(objects, folder, &mut expected, found)?;
    if !is_deep {
        let links = objects.anchor().links;
        let envelopes = page_lists.iter().chain([&links.header.locator, &links.footer.locator]);
        let numbers = envelopes.filter_map(|locator| match locator {
            Locator::Object { location, .. } => Some(location.to_string()),
            _ => None,
        });
        let numbers: HashSet<String> = numbers.collect();
        expected.retain(|(name, _)| numbers.contains(name) || name.starts_with(CLONES));
    }
    let mut rest = expected.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0u64;
        let fits = rest.iter().take(BATCH_OBJECTS).take_while(|(_, object)| {
            bytes = bytes.saturating_add(object.bytes);
            bytes <= BATCH_BYTES
        });
        let (batch, others) = rest.split_at(fits.count().max(1));
        if let Err(error) = check_digests(objects, folder, batch, found) {
            if error.is_retryable() {
                return Err(error);
            }
            // One of them cannot be read: which one?
            for object in batch {
                if let Err(error) = check_digests(objects, folder, std::slice::from_ref(object), found) {
                    found(error);
                }
            }
        }
        rest = others;
    }
    Ok(())
}

/// Removes those objects that are missing or have another size.
fn check_sizes(
    objects: &Objects,
    folder: &str,
    expected: &mut Vec<(String, ObjectDigest)>,
    found: &mut dyn FnMut(Error),
) -> Result<()> {
    let listed = match objects.namespace().list(folder) {
        // Web servers have no listings.
        Err(error) if error.kind() == ErrorKind::NotSupported => return Ok(()),
        listed => listed?,
    };
    let sizes: HashMap<&str, u64> =
        listed.iter().filter_map(|entry| Some((entry.key.strip_prefix(folder)?, entry.bytes))).collect();
    expected.retain(|(name, object)| match sizes.get(name.as_str()) {
        Some(bytes) if *bytes == object.bytes => true,
        Some(bytes) => {
            found(Error::corrupt(format!("object {name} has {bytes} bytes, but {} were written", object.bytes)));
            false
        }
        None => {
            found(Error::corrupt(format!("object {name} is missing")));
            false
        }
    });
    Ok(())
}

fn check_digests(
    objects: &Objects,
    folder: &str,
    batch: &[(String, ObjectDigest)],
    found: &mut dyn FnMut(Error),
) -> Result<()> {
    let range = |(name, object): &(String, ObjectDigest)| ObjectRange {
        key: Arc::from(format!("{folder}{name}")),
        range: 0..object.bytes,
    };
    if let [(name, object)] = batch
        && object.bytes > BATCH_BYTES
    {
        return check_large(objects, folder, name, object, found);
    }
    let ranges: Vec<ObjectRange> = batch.iter().map(range).collect();
    let read = objects.namespace().get_ranges(&ranges).map_err(missing)?;
    for ((name, object), bytes) in batch.iter().zip(read) {
        if xxh3(&bytes) != object.digest {
            found(Error::corrupt(format!("object {name} differs from what was written")));
        }
    }
    Ok(())
}

/// Compares an object with its digest, a piece at a time.
fn check_large(
    objects: &Objects,
    folder: &str,
    name: &str,
    object: &ObjectDigest,
    found: &mut dyn FnMut(Error),
) -> Result<()> {
    let key: Arc<str> = Arc::from(format!("{folder}{name}"));
    let mut hasher = Xxh3::default();
    let mut at = 0;
    while at < object.bytes {
        pool::check()?;
        let range = at..object.bytes.min(at + BATCH_BYTES);
        at = range.end;
        let pieces =
            objects.namespace().get_ranges(&[ObjectRange { key: Arc::clone(&key), range }]).map_err(missing)?;
        pieces.iter().for_each(|piece| hasher.add(piece));
    }
    if hasher.finish() != object.digest {
        found(Error::corrupt(format!("object {name} differs from what was written")));
    }
    Ok(())
}
