//! Checks of sealed pages: sizes, checksums and digests.

use tupelo_format::Error as FormatError;
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::PageInfo;
use tupelo_format::wire::Cursor;

use super::MAX_PAGE_BYTES;
use crate::{Error, Result};

/// No codec of the format compresses better, so a page that claims to is damaged: zstd's best is a block of 128 KiB
/// that repeats one byte, in four bytes.
const MAX_EXPANSION: u64 = 1 << 15;

/// Bytes of a page once it is decompressed, if `stored_bytes` can hold that much.
pub fn packed_bytes(page: &PageInfo, stored_bytes: u64, encoding: &Encoding) -> Result<u64> {
    let packed_bytes = match encoding.packed_bytes(page.elements.into()) {
        Some(bytes) if bytes <= MAX_PAGE_BYTES => bytes,
        _ => return Err(Error::limit(format!("page of {} elements exceeds 1 GiB", page.elements))),
    };
    if stored_bytes > packed_bytes || packed_bytes / MAX_EXPANSION > stored_bytes {
        return Err(Error::corrupt(format!("{stored_bytes} stored bytes cannot hold a page of {packed_bytes}")));
    }
    Ok(packed_bytes)
}

/// The page without its checksum. Both that and the digest in the page list are compared if wanted.
pub fn checked<'a>(page: &PageInfo, sealed: &'a [u8], verify: bool) -> Result<&'a [u8]> {
    let (stored, checksum) = match page.has_checksum {
        true => match sealed.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((stored, checksum)) => (stored, Some(checksum)),
            None => return Err(FormatError::corrupt("page is too short for its checksum").into()),
        },
        false => (sealed, None),
    };
    if verify {
        compare(page, stored, checksum)?;
    }
    Ok(stored)
}

/// Compares a page, as it is stored, with its checksum and with the digest in the page list.
pub fn compare(page: &PageInfo, stored: &[u8], checksum: Option<&[u8; CHECKSUM_BYTES]>) -> Result<()> {
    let checksum = checksum.map(|bytes| Cursor::new(bytes, 0).u64_le()).transpose()?;
    let Some(expected) = checksum.or(page.digest) else { return Ok(()) };
    let computed = xxh3(stored);
    let hex = |it: u64| format!("{it:016x}");
    if computed != expected {
        let (expected, computed) = (hex(expected), hex(computed));
        return Err(Error::corrupt(format!("page checksum mismatch (stored {expected}, computed {computed})")));
    }
    if let Some(digest) = page.digest.filter(|&digest| digest != computed) {
        let (digest, computed) = (hex(digest), hex(computed));
        return Err(Error::corrupt(format!(
            "the page is intact, but not the one in the page list (expected XXH3 {digest}, found {computed}): it was \
             misdirected or overwritten later"
        )));
    }
    Ok(())
}
