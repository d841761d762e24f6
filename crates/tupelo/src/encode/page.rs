//! Pages on their way into a sink: packed, then sealed, then stored.

use std::cell::RefCell;

use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::compression::{self, Compression};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::PageInfo;
use tupelo_format::locator::Locator;

use crate::{Error, Result, sink};

thread_local! {
    /// Output buffer of the codecs, which want room for incompressible data.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How the pages of a column are encoded, compressed and protected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageOptions {
    pub(crate) encoding: Encoding,
    pub(crate) compression: Compression,
    pub(crate) has_checksum: bool,
    /// Largest page, in bytes of packed elements.
    pub(crate) page_bytes: u64,
}

/// An encoded page that is not compressed yet.
#[derive(Debug)]
pub(crate) struct PackedPage {
    pub(crate) elements: u32,
    pub(crate) bytes: Vec<u8>,
}

impl PackedPage {
    /// Size of the page before compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The largest size that the sealed page can have: pages that do not shrink are stored uncompressed.
    pub(crate) fn max_sealed_bytes(&self) -> u64 {
        self.bytes() + CHECKSUM_BYTES as u64
    }

    /// Compresses the page and appends its checksum.
    pub(crate) fn seal(self, options: &PageOptions) -> Result<SealedPage> {
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
        Ok(SealedPage { elements: self.elements, bytes, digest })
    }
}

/// A compressed page, followed by its checksum if it has one.
#[derive(Debug)]
pub(crate) struct SealedPage {
    pub(crate) elements: u32,
    /// The page and, if there is one, the checksum.
    pub(crate) bytes: Vec<u8>,
    /// The checksum.
    pub(crate) digest: Option<u64>,
}

impl SealedPage {
    /// Bytes of the checksum among those of the page.
    pub(crate) fn checksum_bytes(&self) -> usize {
        if self.digest.is_some() { CHECKSUM_BYTES } else { 0 }
    }

    /// The page as a sink takes it.
    pub(crate) fn as_stored(&self) -> sink::SealedPage<'_> {
        sink::SealedPage { bytes: &self.bytes, checksum_bytes: self.checksum_bytes() }
    }

    /// The page list's record of the page.
    pub(crate) fn stored_at(&self, locator: Locator) -> PageInfo {
        PageInfo { elements: self.elements, has_checksum: self.digest.is_some(), locator, digest: self.digest }
    }
}

/// The stored pages of one column of one cluster.
#[derive(Debug)]
pub(crate) struct StoredColumn {
    pub(crate) pages: Vec<PageInfo>,
    /// Compression setting.
    pub(crate) compression: u32,
}
