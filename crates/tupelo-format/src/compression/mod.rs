//! ROOT's compression blocks over zlib, lzma, lz4 and zstd (format specification, "Compression Block").
//!
//! A payload whose stored size equals its uncompressed size is stored as it is. Otherwise it is a chain of blocks,
//! each of at most [`MAX_BLOCK_BYTES`] uncompressed bytes behind a header of [`BLOCK_HEADER_BYTES`]:
//!
//! | bytes | what it is |
//! |---|---|
//! | 2 + 1 | codec and its version: `ZL\x08`, `XZ\x00`, `L4\x01`, `ZS\x01`; `CS\x08` in files of the last century |
//! | 3 | stored bytes behind this header, little-endian |
//! | 3 | uncompressed bytes, little-endian |
//!
//! The blocks say themselves how they were compressed; the [`Compression`] that a page list or a file header names
//! is not needed for reading. Reference: `core/zip/src/RZip.cxx` and `core/*/src/Zip*` of ROOT.

mod lz4;
mod lzma;
mod setting;
mod zlib;
mod zstd;

#[cfg(test)]
mod tests;

pub use setting::{Algorithm, Compression};

use std::cell::RefCell;

use crate::checksum::CHECKSUM_BYTES;
use crate::wire::Memory;
use crate::{Error, Result};

/// Bytes of the header of one block.
pub const BLOCK_HEADER_BYTES: usize = 9;
/// Uncompressed bytes that one block can hold: three bytes have no room for more.
pub const MAX_BLOCK_BYTES: usize = 0xff_ffff;

/// Bytes of scratch memory that a thread keeps between two pages: enough for the usual ones, not for an envelope.
const MAX_SCRATCH_BYTES: usize = 4 << 20;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
enum Codec {
    Zlib,
    Deflate,
    Lzma,
    Lz4,
    Zstd,
}

struct Block<'a> {
    codec: Codec,
    payload: &'a [u8],
    uncompressed_bytes: usize,
}

/// What becomes of the checksum that each block of lz4 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockChecksums {
    /// It is compared.
    Compare,
    /// It is not: a checksum of all blocks together was compared already.
    Trust,
}

impl Block<'_> {
    /// Fills `out`, which has the size that the header promises; the codecs refuse any other.
    fn decode<E: From<Error>>(
        &self,
        out: &mut [u8],
        checksums: BlockChecksums,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        go_on()?;
        match self.codec {
            Codec::Zlib => zlib::decompress(self.payload, out)?,
            Codec::Deflate => zlib::decompress_deflate(self.payload, out)?,
            Codec::Lzma => return lzma::decompress(self.payload, out, go_on),
            Codec::Lz4 => lz4::decompress(self.payload, out, checksums)?,
            Codec::Zstd => zstd::decompress(self.payload, out)?,
        }
        Ok(())
    }
}

/// The first block of a chain that still has to yield `wanted` bytes, and the rest of the chain.
fn next_block(chain: &[u8], wanted: usize) -> Result<(Block<'_>, &[u8])> {
    let Some((&[t0, t1, t2, s0, s1, s2, u0, u1, u2], rest)) = chain.split_first_chunk::<BLOCK_HEADER_BYTES>() else {
        return Err(Error::corrupt(format!(
            "compression block: expected a header of {BLOCK_HEADER_BYTES} bytes, {} left; {wanted} uncompressed bytes \
             missing",
            chain.len()
        )));
    };
    let codec = match &[t0, t1, t2] {
        b"ZL\x08" => Codec::Zlib,
        b"CS\x08" => Codec::Deflate,
        b"XZ\x00" => Codec::Lzma,
        b"L4\x01" => Codec::Lz4,
        b"ZS\x01" => Codec::Zstd,
        tag => return Err(Error::unsupported(format!("compression block: unknown codec \"{}\"", tag.escape_ascii()))),
    };
    let size = |low: u8, middle: u8, high: u8| usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
    let (stored_bytes, uncompressed_bytes) = (size(s0, s1, s2), size(u0, u1, u2));
    if uncompressed_bytes == 0 || uncompressed_bytes > wanted {
        return Err(Error::corrupt(format!(
            "compression block: header says {uncompressed_bytes} uncompressed bytes, {wanted} missing"
        )));
    }
    match rest.split_at_checked(stored_bytes) {
        Some((payload, rest)) => Ok((Block { codec, payload, uncompressed_bytes }, rest)),
        None => Err(Error::corrupt(format!(
            "compression block: header says {stored_bytes} stored bytes, {} left",
            rest.len()
        ))),
    }
}

/// Checks that a whole payload says that it has this size when it is decompressed, without doing so.
///
/// # Errors
/// Corrupt if sizes disagree in any way, or bytes are left over; unsupported if a block names an unknown codec.
pub fn check_size(block: &[u8], uncompressed_bytes: u64) -> Result<()> {
    if block.len() as u64 == uncompressed_bytes {
        return Ok(());
    }
    check_smaller(block.len(), uncompressed_bytes)?;
    let (mut chain, mut missing) = (block, usize::try_from(uncompressed_bytes).unwrap_or(usize::MAX));
    while missing > 0 {
        let (block, rest) = next_block(chain, missing)?;
        (chain, missing) = (rest, missing - block.uncompressed_bytes);
    }
    check_end(chain)
}

/// Decompresses a whole payload into `out`, which it must fill exactly.
///
/// # Errors
/// Corrupt if sizes disagree in any way, bytes are left over or a checksum or stream is wrong; unsupported if a
/// block names an unknown codec. `out` then holds unspecified bytes.
pub fn decompress_into(block: &[u8], out: &mut [u8]) -> Result<()> {
    decompress_while(block, out, BlockChecksums::Compare, || Ok(()))
}

/// Like [`decompress_into`], but cancellable: calls `go_on` before each block of up to 16 MiB, and before each MiB with
/// slow codecs.
///
/// # Errors
/// The first error of `go_on`, which stops decompression; otherwise as [`decompress_into`].
pub fn decompress_while<E: From<Error>>(
    block: &[u8],
    out: &mut [u8],
    checksums: BlockChecksums,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    if block.len() == out.len() {
        out.copy_from_slice(block);
        return Ok(());
    }
    check_smaller(block.len(), out.len() as u64)?;
    let (mut chain, mut missing) = (block, out);
    while !missing.is_empty() {
        let (block, rest) = next_block(chain, missing.len())?;
        let (out, after) = missing.split_at_mut_checked(block.uncompressed_bytes).unwrap_or_default();
        block.decode(out, checksums, &mut go_on)?;
        (chain, missing) = (rest, after);
    }
    Ok(check_end(chain)?)
}

/// Decompresses a whole payload whose size is only claimed, as in an envelope.
///
/// Memory grows with the actual output of the blocks: at most one block (16 MiB), or the size decompressed so far, is
/// reserved in advance.
///
/// # Errors
/// Limit if `uncompressed_bytes` exceeds `limit_bytes`; otherwise as [`decompress_into`].
pub fn decompress(block: &[u8], uncompressed_bytes: u64, limit_bytes: u64) -> Result<Vec<u8>> {
    decompress_within(block, uncompressed_bytes, limit_bytes, &Memory::unlimited())
}

/// As [`decompress`], with memory that is counted as it grows.
pub fn decompress_within(block: &[u8], uncompressed_bytes: u64, limit_bytes: u64, memory: &Memory) -> Result<Vec<u8>> {
    let total = match usize::try_from(uncompressed_bytes) {
        Ok(total) if uncompressed_bytes <= limit_bytes => total,
        _ => {
            return Err(Error::limit(format!(
                "{uncompressed_bytes} uncompressed bytes exceed the limit of {limit_bytes}"
            )));
        }
    };
    if block.len() == total {
        memory.take(uncompressed_bytes, "stored bytes")?;
        return Ok(block.to_vec());
    }
    check_smaller(block.len(), uncompressed_bytes)?;
    let (mut chain, mut out) = (block, Vec::new());
    while out.len() < total {
        let (start, missing) = (out.len(), total - out.len());
        let (block, rest) = next_block(chain, missing)?;
        let (before, more) = (out.capacity(), start.max(block.uncompressed_bytes).min(missing));
        if before.saturating_sub(start) < block.uncompressed_bytes {
            // While it grows, both the old and the new bytes are in memory.
            memory.take(start.saturating_add(more) as u64, "decompressed bytes")?;
            out.reserve_exact(more);
            memory.reset(memory.used().saturating_sub(before as u64));
        }
        out.resize(start + block.uncompressed_bytes, 0);
        let added = out.get_mut(start..).unwrap_or_default();
        block.decode(added, BlockChecksums::Compare, || Ok::<_, Error>(()))?;
        chain = rest;
    }
    check_end(chain)?;
    Ok(out)
}

fn check_smaller(stored_bytes: usize, uncompressed_bytes: u64) -> Result<()> {
    if stored_bytes as u64 > uncompressed_bytes {
        return Err(Error::corrupt(format!("{stored_bytes} stored bytes for {uncompressed_bytes} uncompressed bytes")));
    }
    Ok(())
}

fn check_end(chain: &[u8]) -> Result<()> {
    if !chain.is_empty() {
        return Err(Error::corrupt(format!("{} bytes follow the last compression block", chain.len())));
    }
    Ok(())
}

/// Compresses `data` into blocks and appends them to `out`, or appends `data` itself where a block would not get
/// smaller, as ROOT does (`RNTupleCompressor::Zip`). Never appends more than `data.len()` bytes.
///
/// Data above [`MAX_BLOCK_BYTES`] become blocks of equal size; ROOT fills each but the last, and then stores all of
/// it raw if the last few bytes cannot shrink.
///
/// # Errors
/// Limit if a codec cannot get the memory that it needs; `out` is then as it was before.
pub fn compress(compression: Compression, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let outcome = compress_blocks(compression, data, out);
    if !matches!(outcome, Ok(true)) {
        out.truncate(start);
    }
    if !outcome? {
        out.reserve(data.len() + CHECKSUM_BYTES);
        out.extend_from_slice(data);
    }
    Ok(())
}

/// Whether every block got smaller; stops at the first that does not.
fn compress_blocks(compression: Compression, data: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    let Some((algorithm, level)) = compression.codec() else {
        return Ok(false);
    };
    if data.is_empty() {
        return Ok(false);
    }
    let block_bytes = data.len().div_ceil(data.len().div_ceil(MAX_BLOCK_BYTES));
    for data in data.chunks(block_bytes) {
        let start = out.len();
        out.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        let tag = match algorithm {
            Algorithm::Zlib => zlib::compress(level, data, out).map(|()| b"ZL\x08"),
            Algorithm::Lzma => lzma::compress(level, data, out).map(|()| b"XZ\x00"),
            Algorithm::Lz4 => lz4::compress(level, data, out).map(|()| b"L4\x01"),
            Algorithm::Zstd => zstd::compress(level, data, out).map(|()| b"ZS\x01"),
        }?;
        let stored = out.get_mut(start..).unwrap_or_default();
        if stored.len() >= data.len() {
            return Ok(false);
        }
        let [s0, s1, s2, ..] = (stored.len() - BLOCK_HEADER_BYTES).to_le_bytes();
        let [u0, u1, u2, ..] = data.len().to_le_bytes();
        let [t0, t1, t2] = *tag;
        if let Some(header) = stored.first_chunk_mut() {
            *header = [t0, t1, t2, s0, s1, s2, u0, u1, u2];
        }
    }
    Ok(true)
}

/// Appends the output of `encode` to `out`. `encode` gets a buffer of `bound` bytes, as every codec here requires.
///
/// The buffer is reused for the next page, so that it is not cleared for every page. `out` grows only by the bytes
/// written, with room for the checksum that follows most payloads.
fn append<E>(out: &mut Vec<u8>, bound: usize, encode: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<(), E> {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < bound {
            scratch.resize(bound, 0);
        }
        let outcome = encode(scratch.get_mut(..bound).unwrap_or_default());
        if let Ok(written) = outcome {
            out.reserve(written + CHECKSUM_BYTES);
            out.extend_from_slice(scratch.get(..written).unwrap_or_default());
        }
        if scratch.len() > MAX_SCRATCH_BYTES {
            *scratch = Vec::new();
        }
        outcome.map(|_| ())
    })
}
