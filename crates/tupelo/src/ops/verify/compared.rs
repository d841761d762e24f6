//! Pages whose checksums have been compared.

use std::collections::BTreeMap;

use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::envelope::PageInfo;
use tupelo_pages::source::BlobRange;

use crate::{Error, Result};

/// Pages by the bytes where they lie. Columns and clusters may list the same page, and a small file may list one a million
/// times.
///
/// As long as no more bytes were compared than the file has, nothing needs to be remembered; most files end before that.
pub(super) struct Compared {
    /// Stored bytes that may be compared without being remembered.
    left: u64,
    pages: BTreeMap<BlobRange, Page>,
}

struct Page {
    /// XXH3 of the stored bytes without the checksum.
    digest: u64,
    has_checksum: bool,
    is_whole: bool,
}

impl Compared {
    pub(super) fn of_file(file_bytes: u64) -> Self {
        Self { left: file_bytes, pages: BTreeMap::new() }
    }

    /// What is known of a page: that it is whole, or what is wrong with it; `None` where it has to be compared.
    pub(super) fn outcome(&self, page: &PageInfo, range: BlobRange) -> Option<Result<()>> {
        let beyond = BlobRange { start: range.end, end: 0, ..range };
        let (found, known) = self.pages.range(..beyond).next_back().filter(|(found, _)| found.blob == range.blob)?;
        if *found == range && known.has_checksum == page.has_checksum {
            let is_meant = page.digest.is_none_or(|digest| digest == known.digest);
            return Some(match known.is_whole && is_meant {
                true => Ok(()),
                false => Err(Error::corrupt("another column lists the same page, which is damaged or does not match")),
            });
        }
        // Format specification, "Page Locations": byte ranges may be identical, but must not overlap otherwise.
        let (bytes, offset) = (found.bytes(), found.start);
        let what = || format!("the page overlaps another page of {bytes} bytes at offset {offset}");
        (found.end > range.start).then(|| Err(Error::corrupt(what())))
    }

    /// Remembers a page that was compared, where that is needed.
    pub(super) fn add(&mut self, page: &PageInfo, range: BlobRange, sealed: &[u8], is_whole: bool) {
        if let Some(left) = self.left.checked_sub(range.bytes()) {
            self.left = left;
            return;
        }
        self.left = 0;
        let checksum = if page.has_checksum { CHECKSUM_BYTES } else { 0 };
        let digest = xxh3(&sealed[..sealed.len().saturating_sub(checksum)]);
        self.pages.insert(range, Page { digest, has_checksum: page.has_checksum, is_whole });
    }
}
