//! Which pages share an object.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use tupelo_storage::Keys;

use super::sizes::{format_bytes, parse_bytes};
use crate::{Error, Result};

/// An object with more bytes than this is split: 1 GiB. Locators have 32 bits for offsets; ROOT intends to use 30 of
/// them.
const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// How the pages of an ntuple become objects of a store. Locators record it page by page, so that readers need not know
/// it. As text: `page`, `cage:SIZE`, `page-group`, `cluster` or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mapping {
    /// Each page is an object, as ROOT writes them.
    Page,
    /// Pages of one column of a cluster share objects up to this size in bytes; a larger page is stored alone.
    Cage(u64),
    /// All pages of one column of a cluster are one object.
    PageGroup,
    /// All pages of a cluster are one object.
    Cluster,
    /// By the store: `cluster` in a directory, `page` in a DAOS container, and elsewhere `cage` with the size of the largest
    /// request.
    #[default]
    Auto,
}

impl Mapping {
    /// The mapping for a store, instead of [`Mapping::Auto`].
    pub fn resolve(self, reads_in_place: bool, max_request_bytes: u64) -> Self {
        match self {
            Self::Auto if reads_in_place => Self::Cluster,
            Self::Auto => Self::Cage(max_request_bytes),
            chosen => chosen,
        }
    }

    /// The mapping for a store whose objects have these keys.
    ///
    /// # Errors
    /// Invalid argument for mappings that a DAOS container does not have.
    pub(crate) fn resolve_in(self, keys: &Keys, reads_in_place: bool, max_request_bytes: u64) -> Result<Self> {
        match keys {
            Keys::Daos { separate_pages, .. } => self.resolve_in_container(*separate_pages),
            _ => Ok(self.resolve(reads_in_place, max_request_bytes)),
        }
    }

    /// The mapping for a DAOS container, where columns of a cluster have keys of their own. ROOT since 6.38 reads `page`
    /// only.
    fn resolve_in_container(self, separate_pages: bool) -> Result<Self> {
        match self {
            Self::Auto => Ok(Self::Page),
            Self::Cage(_) | Self::PageGroup if separate_pages => {
                let what = format!("daos_objects=page stores each page in a separate object, but '{self}' does not");
                Err(Error::invalid_argument(format!("{what}; use the mapping page")))
            }
            Self::Cluster => Err(Error::invalid_argument(
                "DAOS does not support the mapping 'cluster'; use page, cage:SIZE or page-group",
            )),
            chosen => Ok(chosen),
        }
    }

    /// Whether pages of a whole cluster must be stored together.
    pub fn needs_whole_clusters(self) -> bool {
        self != Self::Page
    }

    /// The pages of each object, for the columns and bytes of pages that are ordered by column.
    pub fn objects(self, pages: impl IntoIterator<Item = (u32, u64)>) -> Vec<Range<usize>> {
        let limit = match self {
            Self::Page => 0,
            Self::Cage(bytes) => bytes.min(MAX_OBJECT_BYTES),
            Self::PageGroup | Self::Cluster | Self::Auto => MAX_OBJECT_BYTES,
        };
        let mut objects: Vec<Range<usize>> = Vec::new();
        let (mut bytes, mut column) = (0u64, None);
        for (index, (page_column, page_bytes)) in pages.into_iter().enumerate() {
            let is_same_group = self == Self::Cluster || column == Some(page_column);
            match objects.last_mut().filter(|_| is_same_group && bytes.saturating_add(page_bytes) <= limit) {
                Some(object) => object.end = index + 1,
                None => {
                    objects.push(index..index + 1);
                    bytes = 0;
                }
            }
            (bytes, column) = (bytes.saturating_add(page_bytes), Some(page_column));
        }
        objects
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page => f.write_str("page"),
            Self::Cage(bytes) => write!(f, "cage:{}", format_bytes(*bytes)),
            Self::PageGroup => f.write_str("page-group"),
            Self::Cluster => f.write_str("cluster"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for Mapping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let expected = "expected page, cage:SIZE (such as cage:1MiB), page-group, cluster or auto";
            Error::invalid_argument(format!("'{text}' is not a mapping{why}; {expected}"))
        };
        match text.trim() {
            "page" => Ok(Self::Page),
            "page-group" => Ok(Self::PageGroup),
            "cluster" => Ok(Self::Cluster),
            "auto" => Ok(Self::Auto),
            other => match other.strip_prefix("cage:").map(parse_bytes) {
                Some(Ok(bytes)) => Ok(Self::Cage(bytes)),
                Some(Err(error)) => Err(wrong(&format!(": {error}"))),
                None => Err(wrong("")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_share_objects() {
        let sizes = [(0, 40), (0, 50), (0, 30), (1, 200), (1, 10), (3, 10)];
        let whole = |ends: &[usize]| {
            let starts = std::iter::once(&0).chain(ends);
            starts.zip(ends).map(|(start, end)| *start..*end).collect::<Vec<_>>()
        };
        for (mapping, ends) in [
            ("page", &[1, 2, 3, 4, 5, 6][..]),
            ("cage:90", &[2, 3, 4, 5, 6]),
            ("cage:1KiB", &[3, 5, 6]),
            ("page-group", &[3, 5, 6]),
            ("cluster", &[6]),
        ] {
            assert_eq!(mapping.parse::<Mapping>().unwrap().objects(sizes), whole(ends), "{mapping}");
        }
        assert_eq!(Mapping::Cluster.objects([]), Vec::<Range<usize>>::new());
    }

    #[test]
    fn mappings_have_names() {
        for name in ["page", "cage:1 MiB", "cage:65537", "page-group", "cluster", "auto"] {
            let mapping: Mapping = name.parse().unwrap();
            assert_eq!(mapping.to_string().replace(' ', ""), name.replace(' ', ""));
        }
        for wrong in ["", "cage", "cage:", "cage:0", "pages", "cage:1 mile"] {
            let error = wrong.parse::<Mapping>().unwrap_err().to_string();
            assert!(error.contains("is not a mapping") && error.contains("expected page, cage:SIZE"), "{error}");
        }
        assert_eq!(Mapping::Auto.resolve(true, 1), Mapping::Cluster);
        assert_eq!(Mapping::Auto.resolve(false, 1 << 24).to_string(), "cage:16MiB");
        assert_eq!(Mapping::Page.resolve(true, 1), Mapping::Page);
        let in_container = |mapping: Mapping, separate_pages| {
            let keys = Keys::Daos { class: "SX".into(), metadata_class: "SX".into(), separate_pages };
            mapping.resolve_in(&keys, true, 1)
        };
        assert_eq!(in_container(Mapping::Auto, false).unwrap(), Mapping::Page);
        let error = in_container(Mapping::Cluster, false).unwrap_err().to_string();
        assert!(error.contains("use page, cage:SIZE"), "{error}");
        let error = in_container(Mapping::PageGroup, true).unwrap_err().to_string();
        assert!(error.contains("use the mapping page"), "{error}");
    }
}
