//! Clusters whose pages are sealed already.

use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::encoding::Encoding;

use super::{ListedPage, SealedPage};
use crate::{Error, Result};

/// The pages of one column of a cluster, in memory.
#[derive(Debug)]
pub struct SealedColumn {
    /// Compression setting.
    pub compression: u32,
    /// The pages, in order.
    pub pages: Vec<SealedPage>,
    /// Its number among the [representations](super::FieldWriter::others) of the field.
    pub representation: usize,
}

/// What is known of a whole cluster before its pages are read.
#[derive(Debug)]
pub struct ListedCluster {
    /// Number of entries.
    pub entries: u64,
    /// The columns of all fields that are stored: those of a field before those of its subfields.
    pub columns: Vec<ListedColumn>,
}

/// What is known of the pages of one column of a cluster.
#[derive(Debug)]
pub struct ListedColumn {
    /// Encoding of the elements.
    pub encoding: Encoding,
    /// Compression setting.
    pub compression: u32,
    /// The pages, in order.
    pub pages: Vec<ListedPage>,
}

/// Pages of a cluster that were read together, each with the place of its column among those of the cluster and its own place
/// in the column.
pub type ReadPages = Vec<((usize, usize), SealedPage)>;

impl ListedColumn {
    /// Number of elements in all pages.
    pub fn elements(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.elements)).sum()
    }

    /// Bytes before compression.
    pub fn unpacked_bytes(&self) -> u64 {
        let bytes = |page: &ListedPage| self.encoding.packed_bytes(page.elements.into()).unwrap_or(u64::MAX);
        self.pages.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes as stored, checksums included.
    pub fn stored_bytes(&self) -> u64 {
        let bytes = |page: &ListedPage| page.bytes + if page.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
        self.pages.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Refuses pages that are not those of a column.
    pub fn check(&self, encoding: &Encoding) -> Result<()> {
        if self.encoding != *encoding {
            let [own, expected] = [&self.encoding, encoding].map(|encoding| encoding.column_type().name());
            return Err(Error::invalid_argument(format!("its pages are encoded as {own}, expected {expected}")));
        }
        self.pages.iter().enumerate().try_for_each(|(number, page)| {
            let packed_bytes = self.encoding.packed_bytes(page.elements.into());
            let is_size = packed_bytes.is_some_and(|packed| (1..=packed).contains(&page.bytes));
            match is_size && page.elements <= i32::MAX as u32 {
                true => Ok(()),
                false => Err(Error::invalid_argument(format!(
                    "page {number} of {} elements and {} bytes is not a valid sealed page",
                    page.elements, page.bytes
                ))),
            }
        })
    }
}
