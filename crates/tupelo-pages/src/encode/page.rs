//! Pages on their way into a sink: packed, then sealed, then stored.

use std::cell::RefCell;

use bytes::Bytes;
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::compression::{self, Compression};
use tupelo_format::encoding::{Encoding, MAX_PAGE_BYTES};
use tupelo_format::envelope::PageInfo;
use tupelo_format::locator::Locator;

use crate::source::checked;
use crate::{Error, Result, sink};

thread_local! {
    /// Output buffer of the codecs, which need room for incompressible data.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How the pages of a column are encoded, compressed and protected.
#[derive(Debug, Clone, Copy)]
pub struct PageOptions {
    /// Encoding of the elements.
    pub encoding: Encoding,
    /// Codec of the page.
    pub compression: Compression,
    /// Whether a checksum follows the page.
    pub has_checksum: bool,
    /// Largest page, in bytes of packed elements.
    pub page_bytes: u64,
}

impl PageOptions {
    /// Elements of the largest page. With its checksum it does not exceed what a sink can store.
    pub(crate) fn max_elements(&self) -> usize {
        let page_bytes = self.page_bytes.min(MAX_PAGE_BYTES - CHECKSUM_BYTES as u64);
        (page_bytes * 8 / u64::from(self.encoding.bits())).clamp(1, i32::MAX as u64) as usize
    }
}

/// An encoded page that is not compressed yet.
#[derive(Debug)]
pub struct PackedPage {
    /// Number of elements.
    pub(crate) elements: u32,
    /// The encoded elements.
    pub(crate) bytes: Vec<u8>,
}

impl PackedPage {
    /// Size of the page before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The largest size that the sealed page can have: pages that do not shrink are stored uncompressed.
    pub fn max_sealed_bytes(&self) -> u64 {
        self.bytes() + CHECKSUM_BYTES as u64
    }

    /// Compresses the page and appends its checksum.
    pub fn seal(self, options: &PageOptions) -> Result<SealedPage> {
        let mut bytes = self.bytes;
        if !options.compression.is_none() {
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                compression::compress(options.compression, &bytes, scratch)?;
                // Without spare capacity, because the page stays in memory until it is stored.
                bytes = Vec::with_capacity(scratch.len() + CHECKSUM_BYTES);
                bytes.extend_from_slice(scratch);
                Ok::<_, Error>(())
            })?;
        }
        let digest = options.has_checksum.then(|| xxh3(&bytes));
        if let Some(checksum) = digest {
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        Ok(SealedPage { elements: self.elements, bytes: bytes.into(), digest })
    }
}

/// A compressed page, followed by its checksum if it has one.
#[derive(Debug)]
pub struct SealedPage {
    /// Number of elements.
    pub(crate) elements: u32,
    /// The page and, if there is one, the checksum.
    pub(crate) bytes: Bytes,
    /// The checksum.
    pub digest: Option<u64>,
}

impl SealedPage {
    /// A page as it was stored, which must match its checksum, and say that it has `packed_bytes` when it is decompressed.
    pub fn of_stored(listed: &PageInfo, bytes: Bytes, packed_bytes: Option<u64>) -> Result<Self> {
        let content = checked(listed, &bytes, true)?;
        packed_bytes.map_or(Ok(()), |packed| compression::check_size(content, packed))?;
        let has_checksum = content.len() < bytes.len();
        let digest = bytes.last_chunk().filter(|_| has_checksum).copied().map(u64::from_le_bytes);
        Ok(Self { elements: listed.elements, bytes, digest })
    }

    /// What a list of pages knows of it.
    pub fn listed(&self) -> ListedPage {
        let bytes = self.bytes.len().saturating_sub(self.checksum_bytes()) as u64;
        ListedPage { elements: self.elements, bytes, has_checksum: self.digest.is_some() }
    }

    /// Bytes of the checksum among those of the page.
    pub(crate) fn checksum_bytes(&self) -> usize {
        if self.digest.is_some() { CHECKSUM_BYTES } else { 0 }
    }

    /// The page as a sink takes it, as one of a column.
    pub fn as_stored(&self, column: u32) -> sink::PageBytes<'_> {
        sink::PageBytes { bytes: &self.bytes, checksum_bytes: self.checksum_bytes(), column }
    }

    /// The page list's record of the page.
    pub fn stored_at(&self, locator: Locator) -> PageInfo {
        PageInfo { elements: self.elements, has_checksum: self.digest.is_some(), locator, digest: self.digest }
    }
}

/// What is known of a page.
#[derive(Debug, Clone, Copy)]
pub struct ListedPage {
    /// Number of elements.
    pub elements: u32,
    /// Bytes as stored, without the checksum.
    pub bytes: u64,
    /// Whether a checksum follows the page.
    pub(crate) has_checksum: bool,
}

impl From<&PageInfo> for ListedPage {
    fn from(page: &PageInfo) -> Self {
        Self { elements: page.elements, bytes: page.locator.stored_bytes(), has_checksum: page.has_checksum }
    }
}

/// The stored pages of one column of one cluster.
#[derive(Debug)]
pub struct StoredColumn {
    /// The pages, in order.
    pub pages: Vec<PageInfo>,
    /// Compression setting.
    pub compression: u32,
    /// Its number among the [representations](super::FieldWriter::others) of the field.
    pub representation: usize,
}

impl StoredColumn {
    /// Number of elements in all pages.
    pub fn elements(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.elements)).sum()
    }
}

#[cfg(test)]
mod tests {
    use tupelo_format::encoding::ColumnType;

    use super::*;
    use crate::sink::MAX_KEY_BYTES;
    use crate::source;

    /// Regression: readers accepted pages of 1 GiB, and writers refused to make more than 512 MiB.
    #[test]
    fn the_largest_pages_can_be_stored_and_read() {
        for column_type in [ColumnType::Bit, ColumnType::Int8, ColumnType::SplitReal64, ColumnType::Switch] {
            let encoding = Encoding::of(column_type).unwrap();
            let compression = Compression::NONE;
            let options = |page_bytes| PageOptions { encoding, compression, has_checksum: true, page_bytes };
            let elements = options(MAX_PAGE_BYTES).max_elements() as u64;
            let bytes = encoding.packed_bytes(elements).unwrap();
            assert!(bytes + CHECKSUM_BYTES as u64 <= MAX_KEY_BYTES);
            assert!(elements == i32::MAX as u64 || bytes + 24 > MAX_KEY_BYTES, "{bytes}");
            let page = |elements: u64| {
                let locator = Locator::File { offset: 0, bytes };
                PageInfo { elements: elements as u32, has_checksum: true, locator, digest: None }
            };
            assert_eq!(source::packed_bytes(&page(elements), bytes, &encoding).unwrap(), bytes);
            assert_eq!(options(1).max_elements(), if encoding.bits() == 1 { 8 } else { 1 });
        }
        let doubles = Encoding::of(ColumnType::Real64).unwrap();
        let locator = Locator::File { offset: 0, bytes: MAX_PAGE_BYTES };
        let largest = PageInfo { elements: 1 << 27, has_checksum: true, locator, digest: None };
        assert_eq!(source::packed_bytes(&largest, MAX_PAGE_BYTES, &doubles).unwrap(), MAX_PAGE_BYTES);
        let larger = PageInfo { elements: largest.elements + 1, ..largest };
        assert!(source::packed_bytes(&larger, MAX_PAGE_BYTES, &doubles).is_err());
    }
}
