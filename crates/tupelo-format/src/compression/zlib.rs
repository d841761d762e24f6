//! `ZL` and `CS` blocks: deflate with and without a zlib stream around it, by libdeflate.
//!
//! Like ROOT, both ignore bytes that stand between the end of the deflate stream and the end of the block.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use crate::{Error, Result};

thread_local! {
    // Pages are small and many: a context for each would cost more than some of them.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    static COMPRESSOR: RefCell<Option<(u8, Compressor)>> = const { RefCell::new(None) };
}

pub(super) fn decompress(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let outcome = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.zlib_decompress(payload, out));
    check("zlib", outcome, out.len())
}

/// The payload that ROOT wrote before it knew zlib: a bare deflate stream without a checksum.
pub(super) fn decompress_deflate(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let outcome = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.deflate_decompress(payload, out));
    check("deflate", outcome, out.len())
}

fn check(codec: &str, outcome: Result<usize, DecompressionError>, wanted: usize) -> Result<()> {
    match outcome {
        Ok(bytes) if bytes == wanted => Ok(()),
        Ok(bytes) => Err(Error::corrupt(format!("{codec}: block has {bytes} bytes, expected {wanted}"))),
        Err(DecompressionError::InsufficientSpace) => {
            Err(Error::corrupt(format!("{codec}: block has more than {wanted} bytes")))
        }
        Err(DecompressionError::BadData) => Err(Error::corrupt(format!("{codec}: damaged stream"))),
    }
}

pub(super) fn compress(level: u8, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |what: String| Error::limit(format!("zlib: {what}"));
    let new = || CompressionLvl::new(i32::from(level)).map(|lvl| (level, Compressor::new(lvl)));
    COMPRESSOR.with_borrow_mut(|kept| {
        let (_, compressor) = match kept.take_if(|(kept_level, _)| *kept_level == level) {
            Some(kept_one) => kept.insert(kept_one),
            None => kept.insert(new().map_err(|error| failed(format!("{error:?}")))?),
        };
        let bound = compressor.zlib_compress_bound(data.len());
        super::append(out, bound, |out| compressor.zlib_compress(data, out)).map_err(|error| failed(error.to_string()))
    })
}
