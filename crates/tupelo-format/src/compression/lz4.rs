//! `L4` blocks: a checksum of its own, then an LZ4 block (`core/lz4/src/ZipLZ4.cxx` of ROOT).

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use twox_hash::XxHash64;

use super::BlockChecksums;
use crate::wire::Cursor;
use crate::{Error, Result};

/// XXH64 with seed 0 of the LZ4 block, big-endian, in front of it.
const CHECKSUM_BYTES: usize = 8;
/// From this level on ROOT uses LZ4's high-compression mode.
const MIN_HIGH_COMPRESSION_LEVEL: u8 = 4;

pub(super) fn decompress(payload: &[u8], out: &mut [u8], checksums: BlockChecksums) -> Result<()> {
    let mut cursor = Cursor::new(payload, 0);
    // The offset of an error within a block means nothing to the caller.
    let stored = cursor.u64_be().map_err(|_| Error::corrupt("lz4: block is too short for its checksum"))?;
    let block = payload.get(CHECKSUM_BYTES..).unwrap_or_default();
    if checksums == BlockChecksums::Compare {
        let computed = XxHash64::oneshot(0, block);
        if stored != computed {
            let what = format!("lz4: checksum mismatch (stored {stored:016x}, computed {computed:016x})");
            return Err(Error::corrupt(what));
        }
    }
    let size = i32::try_from(out.len()).map_err(|_| Error::corrupt("lz4: block exceeds 2 GiB"))?;
    match decompress_to_buffer(block, Some(size), out) {
        Ok(bytes) if bytes == out.len() => Ok(()),
        Ok(bytes) => Err(Error::corrupt(format!("lz4: block has {bytes} bytes, expected {}", out.len()))),
        Err(_) => Err(Error::corrupt("lz4: damaged block")),
    }
}

pub(super) fn compress(level: u8, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mode = match level {
        MIN_HIGH_COMPRESSION_LEVEL.. => CompressionMode::HIGHCOMPRESSION(i32::from(level)),
        _ => CompressionMode::DEFAULT,
    };
    let failed = |error: std::io::Error| Error::limit(format!("lz4: {error}"));
    let bound = CHECKSUM_BYTES + compress_bound(data.len()).map_err(failed)?;
    super::append(out, bound, |out| {
        let (checksum, block) = out.split_at_mut_checked(CHECKSUM_BYTES).unwrap_or_default();
        let bytes = compress_to_buffer(data, Some(mode), false, block)?;
        let written = block.get(..bytes).unwrap_or_default();
        checksum.copy_from_slice(&XxHash64::oneshot(0, written).to_be_bytes());
        Ok(CHECKSUM_BYTES + bytes)
    })
    .map_err(failed)
}
