//! Where pages are stored: the one place where locators become byte ranges.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::container;
use tupelo_format::envelope::PageInfo;
use tupelo_storage::Hints;

use super::{File, MAX_PAGE_BYTES};
use crate::{Error, Result};

/// A byte range of a blob. A ROOT file is one blob; in an object store every object is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BlobRange {
    pub(crate) blob: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl BlobRange {
    pub(crate) fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether another range of the same blob begins where this one ends.
    pub(crate) fn is_followed_by(&self, next: &Self) -> bool {
        self.blob == next.blob && self.end == next.start
    }
}

/// Stores the pages of an ntuple. Nothing above it knows whether they are in a ROOT file.
pub(crate) trait PageStore: fmt::Debug + Send + Sync {
    /// What the back end is good at.
    fn hints(&self) -> Hints;

    /// The bytes of a sealed page, checksum included. The range is within its blob.
    fn page_range(&self, page: &PageInfo) -> Result<BlobRange>;

    /// Whether the decoding thread reads this range itself, with [`PageStore::read_into`], and nothing is fetched
    /// ahead.
    fn is_read_in_place(&self, range: &BlobRange) -> bool;

    /// Fetches ranges with as few requests as the hints allow; gives the bytes of each.
    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>>;

    /// Reads consecutive bytes into pieces that follow each other.
    fn read_into(&self, blob: u64, start: u64, pieces: &mut [&mut [u8]]) -> Result<()>;
}

/// The number of the only blob.
const FILE: u64 = 0;

/// Pages in a ROOT file.
#[derive(Debug, Clone)]
pub(crate) struct FileStore {
    pub(super) file: File,
    /// Payloads with more stored bytes are split into several keys; 0 for never.
    pub(super) max_key_bytes: u64,
}

impl FileStore {
    fn is_split(&self, range: &BlobRange) -> bool {
        self.max_key_bytes > 0 && range.bytes() > self.max_key_bytes
    }
}

impl PageStore for FileStore {
    fn hints(&self) -> Hints {
        self.file.source.hints()
    }

    fn page_range(&self, page: &PageInfo) -> Result<BlobRange> {
        let (offset, bytes) = page.locator.in_file()?;
        let size = self.file.size();
        if bytes > MAX_PAGE_BYTES && bytes <= size {
            return Err(Error::limit(format!("a page of {bytes} stored bytes, at most {MAX_PAGE_BYTES} are read")));
        }
        let checksum = if page.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
        match offset.checked_add(bytes).and_then(|end| end.checked_add(checksum)) {
            Some(end) if end <= size => Ok(BlobRange { blob: FILE, start: offset, end }),
            _ => {
                let what = format!("{bytes} bytes at offset {offset} lie past the end of the file ({size} bytes)");
                Err(Error::corrupt(what))
            }
        }
    }

    fn is_read_in_place(&self, range: &BlobRange) -> bool {
        self.hints().is_near && !self.is_split(range)
    }

    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
        if !ranges.iter().any(|range| self.is_split(range)) {
            let ranges: Vec<Range<u64>> = ranges.iter().map(|range| range.start..range.end).collect();
            return Ok(self.file.source.read_ranges(&ranges)?);
        }
        let gather = |range: &BlobRange| {
            let max_key = self.max_key_bytes;
            self.file.attempt(|fetched| container::payload(fetched, range.start, range.bytes(), max_key))
        };
        ranges.iter().map(gather).collect()
    }

    fn read_into(&self, _: u64, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        Ok(self.file.source.read_into(start, pieces)?)
    }
}
