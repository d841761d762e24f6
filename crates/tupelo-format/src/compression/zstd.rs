//! `ZS` blocks: a Zstandard frame.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use crate::{Error, Result};

thread_local! {
    // Pages are small and many: a context for each would cost more than some of them.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static COMPRESSOR: RefCell<Option<(u8, Compressor<'static>)>> = const { RefCell::new(None) };
}

pub(super) fn decompress(payload: &[u8], out: &mut [u8]) -> Result<()> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new().map_err(|error| Error::limit(format!("zstd: {error}")))?),
        };
        match decompressor.decompress_to_buffer(payload, out) {
            Ok(bytes) if bytes == out.len() => Ok(()),
            Ok(bytes) => Err(Error::corrupt(format!("zstd: block has {bytes} bytes, expected {}", out.len()))),
            Err(error) => Err(Error::corrupt(format!("zstd: {error}"))),
        }
    })
}

/// Uses zstd's own level `2 * level`, as ROOT does (`core/zstd/src/ZipZSTD.cxx`).
pub(super) fn compress(level: u8, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |error: std::io::Error| Error::limit(format!("zstd: {error}"));
    COMPRESSOR.with_borrow_mut(|kept| {
        let (_, compressor) = match kept.take_if(|(kept_level, _)| *kept_level == level) {
            Some(kept_one) => kept.insert(kept_one),
            None => kept.insert((level, Compressor::new(2 * i32::from(level)).map_err(failed)?)),
        };
        let bound = zstd::zstd_safe::compress_bound(data.len());
        super::append(out, bound, |out| compressor.compress_to_buffer(data, out)).map_err(failed)
    })
}
