//! The keys of the objects of an ntuple in a store.

use std::fmt;
use std::sync::Arc;

use tupelo_format::store::daos::{
    ANCHOR_AKEY, FOOTER_AKEY, HEADER_AKEY, METADATA_DKEY, METADATA_OBJECT, PAGE_AKEY, PAGE_LIST_OBJECT, RESERVED_INDEX,
    ntuple_index,
};

use crate::{Error, Result};

/// A ROOT file, or an object of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Blob {
    /// In a DAOS container, the cluster whose pages the object has; the largest number for no pages.
    pub cluster: u32,
    /// In a DAOS container, the column; of an object without pages, whether it is a page list or not.
    pub column: u32,
    /// Number of the blob.
    pub number: u64,
}

/// The number that no cluster has.
const METADATA: u32 = u32::MAX;
/// The column numbers of page lists, and of header and footer.
const PAGE_LIST: u32 = 0;
const HEAD: u32 = 1;

impl Blob {
    /// A blob that its number alone identifies.
    pub const fn numbered(number: u64) -> Self {
        Self { cluster: 0, column: 0, number }
    }
}

/// How the objects of one ntuple, or of one of its attribute sets, are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectKeys {
    /// Numbers in a folder.
    Numbered {
        /// The folder, with a slash at its end.
        folder: Arc<str>,
    },
    /// Values in a DAOS container.
    Daos(DaosKeys),
}

/// The keys of the values of an ntuple in a DAOS container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaosKeys {
    /// Object class of pages.
    pub class: Arc<str>,
    /// Object class of everything else.
    pub(crate) metadata_class: Arc<str>,
    /// The upper half of the ids of all objects.
    pub(crate) index: u32,
    /// Whether these are the keys of an attribute set. Sets share the objects of an ntuple: no two have a number in common.
    pub(crate) is_set: bool,
    /// Whether each page is in a separate object.
    pub separate_pages: bool,
}

/// The first of the objects with the clusters of attribute sets.
const SETS: u64 = 1 << 63;
/// What the record of an attempt says when each page is in a separate object.
const SEPARATE: &str = " separate";
/// The object class of anchors and page lists if none is chosen, as in ROOT.
pub(crate) const DEFAULT_METADATA_CLASS: &str = "SX";
/// The name of the record of an attempt in its folder.
pub const RECORD: &str = "record";
/// Maximum size of the record of an attempt.
pub const MAX_RECORD_BYTES: u64 = 1 << 10;

impl DaosKeys {
    /// The keys of an ntuple with this name.
    pub(crate) fn of_name(class: &str, metadata_class: &str, name: &str) -> Self {
        let (class, metadata_class, index) = (class.into(), metadata_class.into(), ntuple_index(name));
        Self { class, metadata_class, index, is_set: false, separate_pages: false }
    }

    /// Key of the anchor.
    pub fn anchor(&self) -> String {
        self.metadata(METADATA_OBJECT, ANCHOR_AKEY)
    }

    /// Key of the header.
    pub fn header(&self) -> String {
        self.metadata(METADATA_OBJECT, HEADER_AKEY)
    }

    /// Key of the footer.
    pub fn footer(&self) -> String {
        self.metadata(METADATA_OBJECT, FOOTER_AKEY)
    }

    fn metadata(&self, object: u64, akey: u64) -> String {
        format!("{}/{:x}/{object:x}/{METADATA_DKEY:x}/{akey:x}", self.metadata_class, self.index)
    }

    /// The folder of the pages of a cluster, or of a page with this number in a separate object.
    pub fn pages(&self, number: u64) -> String {
        let object = if self.is_set { SETS | number } else { number };
        format!("{}/{:x}/{object:x}/", self.class, self.index)
    }

    /// The folder of the page lists, and of all envelopes and anchors of attribute sets.
    pub fn page_lists(&self) -> String {
        format!("{}/{:x}/{PAGE_LIST_OBJECT:x}/", self.metadata_class, self.index)
    }

    /// The folder of the name of the ntuple, and of the attempts to write it.
    pub fn attempts(&self) -> String {
        format!("{}/{RESERVED_INDEX:x}/0/{:x}/", self.metadata_class, self.index)
    }

    /// The key of the name of the ntuple, for `tupelo_storage::names_in_container`.
    pub fn name_record(&self) -> String {
        format!("{}0", self.attempts())
    }

    /// The key of the record of an attempt.
    pub(crate) fn attempt(&self, number: u32) -> String {
        format!("{}{number:x}", self.attempts())
    }

    /// The record of the attempt `name`: that name, the object class of its pages, and whether these have separate objects.
    pub(crate) fn record(&self, name: &str) -> String {
        format!("{name} {}{}", self.class, if self.separate_pages { SEPARATE } else { "" })
    }

    /// The record of an attempt, by its words. Words after these are for `tupelo gc`.
    pub fn of_record<'r>(&self, record: &'r str) -> Option<(&'r str, Self)> {
        let mut words = record.split(' ');
        let (name, class) = (words.next()?, words.next()?);
        // Other characters could make it a part of another key.
        let is_class = !class.is_empty() && class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let separate_pages = words.next() == Some(SEPARATE.trim());
        is_class.then(|| (name, Self { class: class.into(), separate_pages, ..self.clone() }))
    }

    /// The keys of an attribute set.
    pub fn of_set(&self) -> Self {
        Self { is_set: true, ..self.clone() }
    }
}

impl ObjectKeys {
    /// The object with a page.
    pub(crate) fn of_page(&self, cluster: u64, column: u32, number: u64) -> Result<Blob> {
        match self {
            Self::Numbered { .. } => Ok(Blob::numbered(number)),
            Self::Daos(_) => match u32::try_from(cluster) {
                Ok(cluster) if cluster != METADATA => Ok(Blob { cluster, column, number }),
                _ => Err(Error::limit(format!("cluster number {cluster} is too large for DAOS"))),
            },
        }
    }

    /// The object with an envelope.
    pub(crate) fn of_envelope(&self, number: u64) -> Blob {
        match self {
            Self::Numbered { .. } => Blob::numbered(number),
            Self::Daos(keys) => {
                let is_head = !keys.is_set && matches!(number, HEADER_AKEY | FOOTER_AKEY);
                Blob { cluster: METADATA, column: if is_head { HEAD } else { PAGE_LIST }, number }
            }
        }
    }

    /// The key of an object.
    pub(crate) fn key(&self, blob: Blob) -> String {
        let Blob { cluster, column, number } = blob;
        match self {
            Self::Numbered { folder } => format!("{folder}{number}"),
            Self::Daos(keys) => match (cluster, column) {
                (METADATA, HEAD) => keys.metadata(METADATA_OBJECT, number),
                (METADATA, _) => keys.metadata(PAGE_LIST_OBJECT, number),
                _ if keys.separate_pages => format!("{}{METADATA_DKEY:x}/{PAGE_AKEY:x}", keys.pages(number)),
                _ => format!("{}{column:x}/{number:x}", keys.pages(cluster.into())),
            },
        }
    }

    /// What the key has in common with no other object of the ntuple, for messages.
    pub fn name(&self, blob: Blob) -> String {
        let Blob { cluster, column, number } = blob;
        match self {
            Self::Numbered { .. } => number.to_string(),
            Self::Daos(_) => match (cluster, column, number) {
                (METADATA, HEAD, HEADER_AKEY) => "header".to_owned(),
                (METADATA, HEAD, _) => "footer".to_owned(),
                (METADATA, ..) => format!("page list {number}"),
                _ => format!("{cluster}/{column}/{number}"),
            },
        }
    }
}

/// The numbers of the objects that one attempt to write an ntuple to a DAOS container may use. Attempts count from 1; ROOT
/// uses the numbers of attempt 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptNumbers {
    /// The first number of the attempt.
    pub(crate) first: u64,
    /// The first number of the next one.
    pub(crate) end: u64,
}

impl AttemptNumbers {
    /// Numbers of objects with several pages have 32 bits in locators; those of others begin after all of these.
    pub(crate) fn new(attempt: u32, is_caged: bool) -> Option<Self> {
        let bits = if is_caged { CAGE_BITS } else { NUMBER_BITS };
        let first = u64::from(attempt) << bits;
        let end = first.checked_add(1 << bits)?;
        (end <= if is_caged { 1 << 32 } else { 1 << 63 }).then_some(Self { first, end })
    }

    /// The first number of an attempt whose pages share no objects.
    pub fn first_of(attempt: u64) -> u64 {
        attempt << NUMBER_BITS
    }

    /// The attempt that an object belongs to.
    pub fn attempt_of(number: u64) -> u64 {
        match number >> NUMBER_BITS {
            0 => number >> CAGE_BITS,
            attempt => attempt,
        }
    }
}

/// Of the number of an object with several pages: 16 million objects in each of 255 attempts.
const CAGE_BITS: u32 = 24;
const NUMBER_BITS: u32 = 40;

impl fmt::Display for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_root() {
        let keys = DaosKeys::of_name("S2", "SX", "Events");
        assert_eq!(keys.anchor(), "SX/87d4b929/ffffffffffffffff/5a3c69f0cafe4a11/4243544b5344422a");
        assert_eq!(keys.attempts(), "SX/0/0/87d4b929/");
        let all = ObjectKeys::Daos(keys.clone());
        let page = all.of_page(17, 3, 255).unwrap();
        assert_eq!((all.key(page), all.name(page)), ("S2/87d4b929/11/3/ff".to_owned(), "17/3/255".to_owned()));
        let list = all.of_envelope(1 << 40);
        assert_eq!(all.key(list), "SX/87d4b929/fffffffffffffffe/5a3c69f0cafe4a11/10000000000");
        assert_eq!(all.key(all.of_envelope(HEADER_AKEY)), keys.header());
        assert_eq!(all.key(all.of_envelope(FOOTER_AKEY)), keys.footer());
        assert!(all.of_page(u32::MAX.into(), 0, 0).is_err());
        let set = ObjectKeys::Daos(keys.of_set());
        assert_eq!(set.key(set.of_page(17, 3, 255).unwrap()), "S2/87d4b929/8000000000000011/3/ff");
        let separate = ObjectKeys::Daos(DaosKeys { separate_pages: true, ..keys });
        assert_eq!(separate.key(page), "S2/87d4b929/ff/5a3c69f0cafe4a11/4243544b53444229");
        assert_eq!(set.key(set.of_envelope(9)), "SX/87d4b929/fffffffffffffffe/5a3c69f0cafe4a11/9");
    }

    #[test]
    fn records_have_words() {
        let keys = DaosKeys::of_name("S2", "SX", "Events");
        let separate = DaosKeys { separate_pages: true, ..keys.clone() };
        for keys in [keys.clone(), separate] {
            let record = keys.record("name");
            assert_eq!(keys.of_record(&record), Some(("name", keys.clone())));
            assert_eq!(keys.of_record(&format!("{record} more")), Some(("name", keys.clone())));
        }
        for record in ["", "name", "name ", "name SX/1", "name ../x"] {
            assert_eq!(keys.of_record(record), None, "{record}");
        }
    }

    #[test]
    fn objects_of_a_folder_have_numbers() {
        let keys = ObjectKeys::Numbered { folder: "events.objects/x/".into() };
        assert_eq!(keys.of_page(17, 3, 255).unwrap(), Blob::numbered(255));
        assert_eq!(keys.key(keys.of_envelope(7)), "events.objects/x/7");
    }

    #[test]
    fn attempts_share_no_numbers() {
        let all = [(1, true), (2, true), (255, true), (1, false), (2, false), (1000, false)];
        let numbers = all.map(|(attempt, is_caged)| AttemptNumbers::new(attempt, is_caged).unwrap());
        for pair in numbers.windows(2) {
            assert!(pair[0].end <= pair[1].first, "{pair:?}");
        }
        for ((attempt, _), numbers) in all.into_iter().zip(numbers) {
            for number in [numbers.first, numbers.end - 1] {
                assert_eq!(AttemptNumbers::attempt_of(number), u64::from(attempt));
            }
        }
        assert_eq!(AttemptNumbers::new(256, true), None);
        assert_eq!(AttemptNumbers::new(u32::MAX, false), None);
        assert_eq!(AttemptNumbers::attempt_of(7), 0);
    }
}
