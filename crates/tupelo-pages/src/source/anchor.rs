//! The anchor of an ntuple in a store, in each layout.

use tupelo_format::checksum::xxh3;
use tupelo_format::container::AnchorLinks;
use tupelo_format::store::daos::{DaosAnchor, DaosExtension};
use tupelo_format::store::{JsonAnchor, ObjectDigest, ObjectFolder, ObjectLink};
use tupelo_storage::Keys;

use super::keys::{DEFAULT_METADATA_CLASS, DaosKeys, ObjectKeys};
use crate::{Error, Result};

/// The content of the anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAnchor {
    /// Where header and footer are.
    pub links: AnchorLinks,
    /// How objects are named.
    pub keys: ObjectKeys,
    /// The attempt that wrote the ntuple, where Tupelo did.
    pub attempt: Option<String>,
    /// Bytes of all objects, where Tupelo wrote them.
    pub(crate) bytes: Option<u64>,
    /// The mapping of pages to objects, as text, where Tupelo wrote it there.
    pub mapping: Option<String>,
    /// The list of all objects, if there is one.
    pub manifest: Option<ObjectLink>,
    /// The page lists, where they are few and Tupelo wrote them.
    pub(crate) page_lists: Vec<ObjectLink>,
    /// The anchors of attribute sets, where they are few and Tupelo wrote them.
    attribute_sets: Vec<(String, ObjectDigest)>,
    /// XXH3 of header and footer as they are stored.
    head_digests: Option<[u64; 2]>,
}

/// The keys of the ntuple with this name in a DAOS container, as they are written; those that are read say
/// in the anchor where their pages are. `None` for another kind of namespace.
pub fn daos_keys(keys: &Keys, base: &str) -> Option<DaosKeys> {
    match keys {
        Keys::Daos { class, metadata_class, separate_pages } => {
            let keys = DaosKeys::of_name(class, metadata_class, base);
            Some(DaosKeys { separate_pages: *separate_pages, ..keys })
        }
        Keys::Paths => None,
    }
}

/// The keys with the default class of metadata, where another one is chosen. Pages of ntuples of one name have the same keys
/// with both.
pub fn with_default_metadata(keys: &Keys) -> Option<Keys> {
    match keys {
        Keys::Daos { class, metadata_class, separate_pages } if metadata_class != DEFAULT_METADATA_CLASS => {
            let metadata_class = DEFAULT_METADATA_CLASS.to_owned();
            Some(Keys::Daos { class: class.clone(), metadata_class, separate_pages: *separate_pages })
        }
        _ => None,
    }
}

impl StoreAnchor {
    /// Reads the anchor of the ntuple `base`.
    pub fn read(bytes: &[u8], keys: &Keys, base: &str) -> Result<Self> {
        match daos_keys(keys, base) {
            None => Ok(Self::of_json(JsonAnchor::read(bytes)?, base)),
            Some(keys) => Self::of_daos(bytes, keys),
        }
    }

    /// Reads an anchor with numbered objects.
    fn of_json(anchor: JsonAnchor, base: &str) -> Self {
        let folder = anchor.place.folder(base).into();
        let attempt = match anchor.place {
            ObjectFolder::Attempt(attempt) => Some(attempt),
            ObjectFolder::Below => None,
        };
        let (bytes, mapping, manifest, page_lists, attribute_sets) = match anchor.extension {
            Some(own) => (Some(own.bytes), Some(own.mapping), Some(own.manifest), own.page_lists, own.attribute_sets),
            None => (None, None, None, Vec::new(), Vec::new()),
        };
        let (links, keys, head_digests) = (anchor.links, ObjectKeys::Numbered { folder }, None);
        Self { links, keys, attempt, bytes, mapping, manifest, page_lists, attribute_sets, head_digests }
    }

    /// Reads the anchor of an attribute set of an ntuple.
    pub(crate) fn of_set(bytes: &[u8], ntuple: &Self, base: &str) -> Result<Self> {
        let mut anchor = Self::of_json(JsonAnchor::read(bytes)?, base);
        // The objects of a set that Tupelo wrote are among those of the ntuple.
        match &ntuple.keys {
            ObjectKeys::Daos(keys) => anchor.keys = ObjectKeys::Daos(keys.of_set()),
            keys if anchor.attempt.is_some() && anchor.attempt == ntuple.attempt => anchor.keys = keys.clone(),
            ObjectKeys::Numbered { .. } => {}
        }
        Ok(anchor)
    }

    /// Reads an anchor of values with these keys, apart from the class of pages.
    fn of_daos(bytes: &[u8], keys: DaosKeys) -> Result<Self> {
        let anchor = DaosAnchor::read(bytes)?;
        let own = anchor.extension;
        Ok(Self {
            links: anchor.links,
            keys: ObjectKeys::Daos(DaosKeys {
                class: anchor.class.into(),
                separate_pages: own.is_some_and(|own| own.separate_pages),
                ..keys
            }),
            attempt: own.map(|own| own.attempt.to_string()),
            bytes: own.map(|own| own.bytes),
            mapping: None,
            manifest: None,
            page_lists: Vec::new(),
            attribute_sets: Vec::new(),
            head_digests: own.map(|own| [own.header_digest, own.footer_digest]),
        })
    }

    /// Compares the anchor of an attribute set as it is stored, where this anchor has its digest.
    pub(crate) fn check_set(&self, name: &str, stored: &[u8]) -> Result<()> {
        let own = ObjectDigest { bytes: stored.len() as u64, digest: xxh3(stored) };
        let is_named = self.attribute_sets.iter().any(|(known, digest)| known == name && *digest == own);
        match is_named || self.attribute_sets.is_empty() {
            true => Ok(()),
            false => Err(Error::corrupt("it does not match the anchor")),
        }
    }

    /// Compares header and footer as they are stored with the anchor, where it has their digests. A writer that replaces
    /// the ntuple may have replaced them since the anchor was read.
    pub(crate) fn check_head(&self, head: [&[u8]; 2]) -> Result<()> {
        match self.head_digests {
            Some(digests) if digests != head.map(xxh3) => Err(Error::corrupt(
                "header and footer do not match the anchor; if the ntuple was just replaced, open it again",
            )),
            _ => Ok(()),
        }
    }
}

/// The anchor of an ntuple in a DAOS container as bytes; `head` are header and footer as they are stored.
pub(crate) fn write_daos(
    links: AnchorLinks,
    keys: &DaosKeys,
    (bytes, attempt): (u64, u32),
    head: [&[u8]; 2],
) -> Result<Vec<u8>> {
    let [header_digest, footer_digest] = head.map(xxh3);
    let separate_pages = keys.separate_pages;
    let extension = Some(DaosExtension { bytes, attempt, separate_pages, header_digest, footer_digest });
    Ok(DaosAnchor { links, class: keys.class.to_string(), extension }.write()?)
}
