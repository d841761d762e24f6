//! The stores of ntuples: the only place where locators become byte ranges.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::container::{self, Anchor, AnchorLinks, FetchedRanges};
use tupelo_format::descriptor::AttributeSet;
use tupelo_format::envelope::{EnvelopeType, PageInfo};
use tupelo_format::locator::EnvelopeLink;
use tupelo_format::open;
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::Hints;

use super::{Blob, File, MAX_PAGE_BYTES};
use crate::{Error, Result};

/// A byte range of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobRange {
    /// The blob.
    pub blob: Blob,
    /// First byte.
    pub start: u64,
    /// Byte after the last one.
    pub end: u64,
}

impl BlobRange {
    /// A range of a ROOT file.
    pub fn in_file(range: Range<u64>) -> Self {
        Self { blob: FILE, start: range.start, end: range.end }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether another range of the same blob begins where this one ends.
    pub fn is_followed_by(&self, next: &Self) -> bool {
        self.blob == next.blob && self.end == next.start
    }
}

/// Most bytes that are requested of a store of unknown size: 1 TiB.
const MAX_UNKNOWN_BYTES: u64 = 1 << 40;

/// What limits the sizes that metadata claim: the size of the store, if known.
pub(crate) fn size_limit(size: Option<u64>) -> u64 {
    size.unwrap_or(MAX_UNKNOWN_BYTES)
}

/// Stores the envelopes and pages of one ntuple. Nothing above it knows whether they are in a ROOT file.
pub trait PageStore: fmt::Debug + Send + Sync {
    /// Path or URI, for messages.
    fn name(&self) -> String;

    /// Size of everything stored, other ntuples in the same file included, in bytes, if known.
    fn size(&self) -> Option<u64>;

    /// The hints of the back end.
    fn hints(&self) -> Hints;

    /// Payloads with more stored bytes are split into several blobs; 0 for never.
    fn max_blob_bytes(&self) -> u64;

    /// The version of the format, and the links to header and footer.
    fn anchor(&self) -> &AnchorLinks;

    /// XXH3 of what changes when the ntuple, or the file around it, is rewritten. Page lists and pages are not read.
    fn identity(&self) -> Result<u64>;

    /// Refuses the ntuple if another one was requested: in some stores, two names can lead to one ntuple.
    fn check_name(&self, _: &str) -> Result<()> {
        Ok(())
    }

    /// Fetches envelopes as they are stored, with as few requests as the hints allow.
    fn envelopes(&self, envelopes: &[(EnvelopeType, EnvelopeLink)]) -> Result<Vec<Bytes>>;

    /// The error that explains apparent damage: a store that changed since it was opened is not damaged.
    fn unless_changed(&self, error: Error) -> Error {
        error
    }

    /// The store of a linked attribute set.
    fn attribute_set(&self, set: &AttributeSet) -> Result<Box<dyn PageStore>>;

    /// The layouts of classes that are stored beside the ntuple.
    fn streamer_infos(&self) -> Result<StreamerInfos>;

    /// The bytes of an envelope as it is stored.
    fn envelope_range(&self, link: &EnvelopeLink) -> Result<BlobRange>;

    /// The bytes of a sealed page of a cluster and column, checksum included. The range is within its blob.
    fn page_range(&self, cluster: u64, column: u32, page: &PageInfo) -> Result<BlobRange>;

    /// Whether the decoding thread reads this range itself, with [`PageStore::read_into`], and nothing is fetched
    /// ahead.
    fn is_read_in_place(&self, range: &BlobRange) -> bool;

    /// Fetches ranges with as few requests as the hints allow; gives the bytes of each.
    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>>;

    /// Reads consecutive bytes into pieces that follow each other.
    fn read_into(&self, blob: Blob, start: u64, pieces: &mut [&mut [u8]]) -> Result<()>;
}

/// The only blob.
const FILE: Blob = Blob::numbered(0);
/// The header of a ROOT file in its longer layout, with the UUID after it, in bytes.
const FILE_HEADER_BYTES: u64 = 93;

/// An ntuple in a ROOT file.
#[derive(Debug, Clone)]
pub struct FileStore {
    file: File,
    anchor: Anchor,
    links: AnchorLinks,
}

impl FileStore {
    /// The ntuple of an anchor of a file.
    pub fn new(file: File, anchor: Anchor) -> Self {
        let links = anchor.links();
        Self { file, anchor, links }
    }

    fn is_split(&self, range: &BlobRange) -> bool {
        self.anchor.max_key_size > 0 && range.bytes() > self.anchor.max_key_size
    }
}

impl PageStore for FileStore {
    fn name(&self) -> String {
        self.file.source.to_string()
    }

    fn size(&self) -> Option<u64> {
        Some(self.file.size())
    }

    fn hints(&self) -> Hints {
        self.file.source.hints()
    }

    fn unless_changed(&self, error: Error) -> Error {
        error.unless_changed(&*self.file.source)
    }

    fn max_blob_bytes(&self) -> u64 {
        self.anchor.max_key_size
    }

    fn anchor(&self) -> &AnchorLinks {
        &self.links
    }

    /// Of the file's header with its UUID, its size, the anchor, and the footer as it is stored.
    fn identity(&self) -> Result<u64> {
        let (size, anchor) = (self.file.size(), &self.anchor);
        let footer_bytes = anchor.nbytes_footer.min(size.saturating_sub(anchor.seek_footer));
        let parts = |fetched: &FetchedRanges| {
            Ok((fetched.get(0, FILE_HEADER_BYTES.min(size))?, fetched.get(anchor.seek_footer, footer_bytes)?))
        };
        let (head, footer) = self.file.attempt(parts)?;
        Ok(xxh3(&[&head[..], &size.to_le_bytes(), &anchor.write(), &footer[..]].concat()))
    }

    fn envelopes(&self, envelopes: &[(EnvelopeType, EnvelopeLink)]) -> Result<Vec<Bytes>> {
        let max_key = self.anchor.max_key_size;
        self.file.attempt(|fetched| open::stored_envelopes(fetched, envelopes.iter().copied(), max_key))
    }

    fn attribute_set(&self, set: &AttributeSet) -> Result<Box<dyn PageStore>> {
        let anchor = self.file.attempt(|fetched| open::attribute_set_anchor(fetched, set))?;
        Ok(Box::new(Self::new(self.file.clone(), anchor)))
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        self.file.attempt(container::streamer_infos)
    }

    fn envelope_range(&self, link: &EnvelopeLink) -> Result<BlobRange> {
        let (offset, bytes) = link.locator.in_file()?;
        Ok(BlobRange::in_file(offset..offset.saturating_add(bytes)))
    }

    fn page_range(&self, _: u64, _: u32, page: &PageInfo) -> Result<BlobRange> {
        let (offset, bytes) = page.locator.in_file()?;
        let size = self.file.size();
        if bytes > MAX_PAGE_BYTES && bytes <= size {
            return Err(Error::limit(format!("page of {bytes} stored bytes exceeds the limit of {MAX_PAGE_BYTES}")));
        }
        let checksum = if page.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
        match offset.checked_add(bytes).and_then(|end| end.checked_add(checksum)) {
            Some(end) if end <= size => Ok(BlobRange { blob: FILE, start: offset, end }),
            _ => {
                let what = format!("{bytes} bytes at offset {offset} extend past the end of the file ({size} bytes)");
                Err(Error::corrupt(what))
            }
        }
    }

    fn is_read_in_place(&self, range: &BlobRange) -> bool {
        self.file.source.reads_in_place(&(range.start..range.end)) && !self.is_split(range)
    }

    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
        if !ranges.iter().any(|range| self.is_split(range)) {
            let ranges: Vec<Range<u64>> = ranges.iter().map(|range| range.start..range.end).collect();
            return Ok(self.file.source.read_ranges(&ranges)?);
        }
        let gather = |range: &BlobRange| {
            let max_key = self.anchor.max_key_size;
            self.file.attempt(|fetched| container::payload(fetched, range.start, range.bytes(), max_key))
        };
        ranges.iter().map(gather).collect()
    }

    fn read_into(&self, _: Blob, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        Ok(self.file.source.read_into(start, pieces)?)
    }
}
