//! Pages to values: checks the lengths, then picks the kernel.

use super::scalar::{self, Word};
use super::{ColumnType, Encoding, halves, packing};
use crate::{Error, Result};

/// Decodes bytes, characters, integers and unpacked reals to little-endian elements of
/// [`width_bytes`](ColumnType::width_bytes).
///
/// # Errors
/// Unsupported if the type has no such width, corrupt if `packed` or `out` do not have the size of each other.
pub fn decode_fixed(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> Result<()> {
    use ColumnType::*;
    check_fixed(encoding, packed, out)?;
    match encoding.column_type() {
        SplitUInt16 => u16::unsplit(packed, out.as_chunks_mut().0, u16::to_le_bytes),
        SplitInt16 => u16::unsplit(packed, out.as_chunks_mut().0, |word| word.unzigzag().to_le_bytes()),
        SplitUInt32 | SplitReal32 => u32::unsplit(packed, out.as_chunks_mut().0, u32::to_le_bytes),
        SplitInt32 => u32::unsplit(packed, out.as_chunks_mut().0, |word| word.unzigzag().to_le_bytes()),
        SplitUInt64 | SplitReal64 => u64::unsplit(packed, out.as_chunks_mut().0, u64::to_le_bytes),
        SplitInt64 => u64::unsplit(packed, out.as_chunks_mut().0, |word| word.unzigzag().to_le_bytes()),
        _ => out.copy_from_slice(packed),
    }
    Ok(())
}

/// Like [`decode_fixed`], for values that are not read soon: uses non-temporal stores where possible, so that the
/// caches need not load the lines that are overwritten. This applies to split elements of four or eight bytes on x86-64
/// if `out` is aligned to 16 bytes.
///
/// # Errors
/// As for [`decode_fixed`].
pub fn decode_fixed_past_caches(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> Result<()> {
    use ColumnType::*;
    check_fixed(encoding, packed, out)?;
    match encoding.column_type() {
        SplitUInt32 | SplitReal32 => u32::unsplit_past_caches(packed, out, |word| word),
        SplitInt32 => u32::unsplit_past_caches(packed, out, u32::unzigzag),
        SplitUInt64 | SplitReal64 => u64::unsplit_past_caches(packed, out, |word| word),
        SplitInt64 => u64::unsplit_past_caches(packed, out, u64::unzigzag),
        _ => return decode_fixed(encoding, packed, out),
    }
    Ok(())
}

fn check_fixed(encoding: &Encoding, packed: &[u8], out: &[u8]) -> Result<()> {
    let width = encoding.column_type().width_bytes().ok_or_else(|| encoding.mismatch("elements of fixed width"))?;
    encoding.check_page(packed, out.len() / width)?;
    if packed.len() != out.len() {
        return Err(Error::corrupt(format!(
            "page of {} bytes does not fit a buffer of {} bytes",
            packed.len(),
            out.len()
        )));
    }
    Ok(())
}

/// Copies the `count` elements of a Bit page from element `skip` on into the bitmap `out`, from its bit `out_bit` on;
/// no other bit of `out` changes. Both are packed least significant bit first.
///
/// # Errors
/// Corrupt if either has too few bits.
pub fn decode_bits(packed: &[u8], skip: usize, count: usize, out: &mut [u8], out_bit: usize) -> Result<()> {
    let has_room =
        |bytes: &[u8], start: usize| start.checked_add(count).is_some_and(|end| end.div_ceil(8) <= bytes.len());
    if !has_room(packed, skip) || !has_room(out, out_bit) {
        return Err(Error::corrupt(format!(
            "{count} bits from bit {skip} of {} bytes do not fit at bit {out_bit} of {} bytes",
            packed.len(),
            out.len()
        )));
    }
    scalar::copy_bits(packed, skip, count, out, out_bit);
    Ok(())
}

/// Decodes any real type but Real64 and SplitReal64, which single precision cannot hold.
///
/// # Errors
/// Unsupported for those and for types that are not real, corrupt if the size of `packed` does not match `out`.
pub fn decode_f32(encoding: &Encoding, packed: &[u8], out: &mut [f32]) -> Result<()> {
    if encoding.column_type().unsplit() == ColumnType::Real64 {
        return Err(encoding.mismatch("single-precision numbers"));
    }
    if encoding.column_type() == ColumnType::SplitReal32 {
        // As integers of the same bits: compilers put those together four at a time, numbers one by one.
        encoding.check_page(packed, out.len())?;
        u32::unsplit(packed, bytemuck::cast_slice_mut(out), |bits| bits);
        return Ok(());
    }
    decode_reals(encoding, packed, out, |single| single, |double| double as f32)
}

/// Decodes any real type.
///
/// # Errors
/// Unsupported if the type is not real, corrupt if the size of `packed` does not match `out`.
pub fn decode_f64(encoding: &Encoding, packed: &[u8], out: &mut [f64]) -> Result<()> {
    decode_reals(encoding, packed, out, f64::from, |double| double)
}

fn decode_reals<T>(
    encoding: &Encoding,
    packed: &[u8],
    out: &mut [T],
    single: impl Fn(f32) -> T,
    double: impl Fn(f64) -> T,
) -> Result<()> {
    use ColumnType::*;
    encoding.check_page(packed, out.len())?;
    let bits = encoding.bits();
    match encoding.column_type() {
        Real16 => halves::decode(false, packed, out, single),
        SplitReal16 => halves::decode(true, packed, out, single),
        Real32 => u32::load(packed, out, |word| single(f32::from_bits(word))),
        SplitReal32 => u32::unsplit(packed, out, |word| single(f32::from_bits(word))),
        Real64 => u64::load(packed, out, |word| double(f64::from_bits(word))),
        SplitReal64 => u64::unsplit(packed, out, |word| double(f64::from_bits(word))),
        Real32Trunc => {
            let dropped = 32 - u32::from(bits);
            packing::unpack(bits, packed, out, |kept| single(f32::from_bits(kept << dropped)));
        }
        Real32Quant => {
            let unquantize = encoding.quantum()?.decoder();
            packing::unpack(bits, packed, out, |integer| double(unquantize(integer)));
        }
        _ => return Err(encoding.mismatch("real numbers")),
    }
    Ok(())
}

/// Decodes the ends of collections. Sums of differences wrap around within the width of the column, as in ROOT.
///
/// # Errors
/// Unsupported if the type is not an index, corrupt if the size of `packed` does not match `out`.
pub fn decode_index(encoding: &Encoding, packed: &[u8], out: &mut [u64]) -> Result<()> {
    use ColumnType::*;
    encoding.check_page(packed, out.len())?;
    match encoding.column_type() {
        Index32 => u32::load(packed, out, u64::from),
        Index64 => u64::load(packed, out, |end| end),
        SplitIndex32 => {
            let mut end = 0_u32;
            u32::unsplit(packed, out, |size| {
                end = end.wrapping_add(size);
                u64::from(end)
            });
        }
        SplitIndex64 => {
            let mut end = 0_u64;
            u64::unsplit(packed, out, |size| {
                end = end.wrapping_add(size);
                end
            });
        }
        _ => return Err(encoding.mismatch("indexes")),
    }
    Ok(())
}

/// Decodes a Switch page: for each variant the index within the column of its alternative, and the alternative
/// counted from 1; tag 0 is a variant without a value.
///
/// # Errors
/// Corrupt if `indexes`, `tags` and `packed` are not all of the same number of elements.
pub fn decode_switch(packed: &[u8], indexes: &mut [u64], tags: &mut [u32]) -> Result<()> {
    let (elements, rest) = packed.as_chunks::<{ scalar::SWITCH_BYTES }>();
    if !rest.is_empty() || elements.len() != indexes.len() || elements.len() != tags.len() {
        return Err(Error::corrupt(format!(
            "Switch page of {} bytes does not match {} indexes and {} tags",
            packed.len(),
            indexes.len(),
            tags.len()
        )));
    }
    scalar::unswitch(elements, indexes, tags);
    Ok(())
}
