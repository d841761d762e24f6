//! Clusters whose pages are sealed already.

use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::encoding::Encoding;

use super::SealedPage;
use crate::{Error, Result};

/// A whole cluster.
#[derive(Debug)]
pub(crate) struct SealedCluster {
    pub(crate) entries: u64,
    /// The columns of all fields that are stored: those of a field before those of its subfields.
    pub(crate) columns: Vec<SealedColumn>,
}

/// The pages of one column of a cluster.
#[derive(Debug)]
pub(crate) struct SealedColumn {
    pub(crate) encoding: Encoding,
    /// Compression setting.
    pub(crate) compression: u32,
    pub(crate) pages: Vec<SealedPage>,
}

impl SealedColumn {
    pub(crate) fn elements(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.elements)).sum()
    }

    /// Bytes before compression.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let bytes = |page: &SealedPage| self.encoding.packed_bytes(page.elements.into()).unwrap_or(u64::MAX);
        self.pages.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes as stored, checksums included.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.bytes.len() as u64).sum()
    }

    /// Refuses pages that are not those of a column.
    pub(crate) fn check(&self, encoding: &Encoding) -> Result<()> {
        if self.encoding != *encoding {
            let [own, expected] = [&self.encoding, encoding].map(|encoding| encoding.column_type().name());
            return Err(Error::invalid_argument(format!("its pages are encoded as {own}, expected {expected}")));
        }
        self.pages.iter().enumerate().try_for_each(|(number, page)| {
            let bytes = page.bytes.len().checked_sub(page.checksum_bytes()).map(|bytes| bytes as u64);
            let packed_bytes = self.encoding.packed_bytes(page.elements.into());
            let is_size = bytes.zip(packed_bytes).is_some_and(|(bytes, packed)| (1..=packed).contains(&bytes));
            let is_digest = page.digest.is_none_or(|digest| page.bytes.ends_with(&digest.to_le_bytes()));
            match is_size && is_digest && page.elements <= i32::MAX as u32 {
                true => Ok(()),
                false => Err(Error::invalid_argument(format!(
                    "page {number} of {} elements and {} bytes (including any checksum of {CHECKSUM_BYTES} bytes) is \
                     not a valid sealed page",
                    page.elements,
                    page.bytes.len()
                ))),
            }
        })
    }
}
