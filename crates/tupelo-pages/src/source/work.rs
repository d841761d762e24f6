//! How much metadata an operation on a whole file reads: ntuples may point to the same bytes, and then a small file could
//! ask for any amount of work.

use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_format::locator::EnvelopeLink;

use crate::{Error, Result};

/// Stored bytes of metadata that an operation reads for each byte of the file. Where nothing is shared it is one at most.
const STORED_PER_BYTE: u64 = 16;
/// Unpacked bytes of metadata for each byte of the file.
const UNPACKED_PER_BYTE: u64 = 128;
/// Bytes that may be read from any file.
const LEAST_BYTES: u64 = 64 << 20;

/// The bytes that an operation may still read.
#[derive(Debug)]
pub(super) struct Work {
    stored: AtomicU64,
    unpacked: AtomicU64,
}

/// Bytes of metadata.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MetadataBytes {
    pub(super) stored: u64,
    pub(super) unpacked: u64,
}

impl MetadataBytes {
    pub(super) fn of_envelopes<'l>(links: impl IntoIterator<Item = &'l EnvelopeLink>) -> Self {
        links.into_iter().fold(Self::default(), |sum, link| Self {
            stored: sum.stored.saturating_add(link.locator.stored_bytes()),
            unpacked: sum.unpacked.saturating_add(link.length),
        })
    }
}

impl Work {
    pub(super) fn of_file(file_bytes: u64) -> Self {
        let limit = |per_byte: u64| AtomicU64::new(file_bytes.saturating_mul(per_byte).max(LEAST_BYTES));
        Self { stored: limit(STORED_PER_BYTE), unpacked: limit(UNPACKED_PER_BYTE) }
    }

    pub(super) fn take(&self, metadata: MetadataBytes) -> Result<()> {
        let take = |left: &AtomicU64, bytes: u64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
        };
        match take(&self.stored, metadata.stored) && take(&self.unpacked, metadata.unpacked) {
            true => Ok(()),
            false => Err(Error::limit(
                "the ntuples of the file share their metadata, and reading all of them would take far longer than the \
                 file size warrants; open this one by its name",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_in_proportion_to_the_file() {
        let work = Work::of_file(LEAST_BYTES);
        let stored = |stored| work.take(MetadataBytes { stored, unpacked: 0 });
        assert!((0..STORED_PER_BYTE).all(|_| stored(LEAST_BYTES).is_ok()));
        assert!(stored(1).is_err() && stored(0).is_ok());
        let unpacked = |unpacked| work.take(MetadataBytes { stored: 0, unpacked });
        assert!(unpacked(LEAST_BYTES * UNPACKED_PER_BYTE).is_ok() && unpacked(1).is_err());
    }
}
