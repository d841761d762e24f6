//! Values to pages: checks the values, then picks the kernel.

use std::fmt::Debug;

use super::scalar::{self, Word};
use super::{ColumnType, Encoding, halves, packing};
use crate::{Error, Result};

/// The largest number of half precision.
const HALF_MAX: f32 = 65504.0;
/// The smallest number that half precision rounds to infinity: half a step above the largest.
const HALF_OVERFLOW: f32 = 65520.0;
/// The smallest number that single precision rounds to infinity, which is likewise half a step above its largest.
const SINGLE_OVERFLOW: f64 = (2.0 - f32::EPSILON as f64 / 2.0) * (1_u128 << 127) as f64;

/// Grows `out` by the bytes of a page and returns those.
fn room<'a>(encoding: &Encoding, elements: usize, out: &'a mut Vec<u8>) -> Result<&'a mut [u8]> {
    let bytes = encoding.packed_bytes(elements as u64).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| Error::limit(format!("page of {elements} elements is too large")))?;
    let start = out.len();
    out.resize(start + bytes, 0);
    Ok(out.get_mut(start..).unwrap_or_default())
}

/// The inverse of [`decode_fixed`](super::decode_fixed): appends the page for the little-endian elements in `values`.
///
/// # Errors
/// Unsupported if the type has no fixed width, corrupt if `values` end within an element.
pub fn encode_fixed(encoding: &Encoding, values: &[u8], out: &mut Vec<u8>) -> Result<()> {
    use ColumnType::*;
    let column_type = encoding.column_type();
    let width = column_type.width_bytes().ok_or_else(|| encoding.mismatch("elements of fixed width"))?;
    encoding.check_page(values, values.len() / width)?;
    if column_type == column_type.unsplit() {
        out.extend_from_slice(values);
        return Ok(());
    }
    let page = room(encoding, values.len() / width, out)?;
    match column_type {
        SplitUInt16 => u16::split(values.as_chunks().0, page, u16::from_le_bytes),
        SplitInt16 => u16::split(values.as_chunks().0, page, |bytes| u16::from_le_bytes(bytes).zigzag()),
        SplitUInt32 | SplitReal32 => u32::split(values.as_chunks().0, page, u32::from_le_bytes),
        SplitInt32 => u32::split(values.as_chunks().0, page, |bytes| u32::from_le_bytes(bytes).zigzag()),
        SplitUInt64 | SplitReal64 => u64::split(values.as_chunks().0, page, u64::from_le_bytes),
        _ => u64::split(values.as_chunks().0, page, |bytes| u64::from_le_bytes(bytes).zigzag()),
    }
    Ok(())
}

/// Appends the Bit page for the `count` bits of `bitmap` from bit `skip` on; the last byte is filled up with zeros.
///
/// # Errors
/// Corrupt if the bitmap has too few bits.
pub fn encode_bits(bitmap: &[u8], skip: usize, count: usize, out: &mut Vec<u8>) -> Result<()> {
    if skip.checked_add(count).is_none_or(|end| end.div_ceil(8) > bitmap.len()) {
        return Err(Error::corrupt(format!(
            "expected {count} bits from bit {skip}, bitmap has {} bytes",
            bitmap.len()
        )));
    }
    let start = out.len();
    out.resize(start + count.div_ceil(8), 0);
    scalar::copy_bits(bitmap, skip, count, out.get_mut(start..).unwrap_or_default(), 0);
    Ok(())
}

/// The inverse of [`decode_f32`](super::decode_f32). Real16 rounds to nearest even, Real32Trunc cuts bits off,
/// Real32Quant rounds to the nearest step. Infinities and NaN stay what they are, but for Real32Quant.
///
/// # Errors
/// Unsupported for Real64, for types that are not real, and for a value that [`check_f32`] refuses.
pub fn encode_f32(encoding: &Encoding, values: &[f32], out: &mut Vec<u8>) -> Result<()> {
    if encoding.column_type().unsplit() == ColumnType::Real64 {
        return Err(encoding.mismatch("single-precision numbers"));
    }
    check_f32(encoding, values)?;
    encode_reals(encoding, values, out, |single| single, f64::from)
}

/// The inverse of [`decode_f64`](super::decode_f64). Real32Quant takes the numbers as they are, the other types but
/// Real64 and SplitReal64 cast them to single precision first, as ROOT does.
///
/// # Errors
/// Unsupported for types that are not real and for a value that [`check_f64`] refuses.
pub fn encode_f64(encoding: &Encoding, values: &[f64], out: &mut Vec<u8>) -> Result<()> {
    check_f64(encoding, values)?;
    encode_reals(encoding, values, out, |double| double as f32, |double| double)
}

/// Whether an encoding holds single-precision numbers, rounded or cut: encodings of a range those within it, Real16 all but
/// finite ones that would become infinite, the others all.
///
/// # Errors
/// Unsupported for the first value that it does not hold.
pub fn check_f32(encoding: &Encoding, values: &[f32]) -> Result<()> {
    match encoding.column_type().unsplit() {
        ColumnType::Real32Quant => check_range(encoding, values, f64::from),
        ColumnType::Real16 => check_finite(encoding, values, |value| is_too_large_for_half(*value)),
        _ => Ok(()),
    }
}

/// The same for double-precision numbers, which may also be too large for single precision.
///
/// # Errors
/// As [`check_f32`].
pub fn check_f64(encoding: &Encoding, values: &[f64]) -> Result<()> {
    match encoding.column_type().unsplit() {
        ColumnType::Real32Quant => check_range(encoding, values, |value| value),
        ColumnType::Real16 => check_finite(encoding, values, |value| {
            is_too_large_for_half(*value as f32) | is_too_large_for_single(*value)
        }),
        ColumnType::Real32 | ColumnType::Real32Trunc => {
            check_finite(encoding, values, |value| is_too_large_for_single(*value))
        }
        _ => Ok(()),
    }
}

/// Whether a finite number becomes infinite when it is rounded to half precision.
fn is_too_large_for_half(value: f32) -> bool {
    value.is_finite() & (value.abs() >= HALF_OVERFLOW)
}

/// Whether a finite number becomes infinite when it is rounded to single precision.
fn is_too_large_for_single(value: f64) -> bool {
    value.is_finite() & (value.abs() >= SINGLE_OVERFLOW)
}

/// The check of encodings that can store infinity: no finite value may become infinite.
fn check_finite<T: Debug>(encoding: &Encoding, values: &[T], is_too_large: impl Fn(&T) -> bool) -> Result<()> {
    // A first look without a branch, which is all that good values get.
    let is_good = values.iter().fold(true, |is_good, value| is_good & !is_too_large(value));
    let too_large = || values.iter().find(|value| is_too_large(value));
    let Some(value) = (!is_good).then(too_large).flatten() else { return Ok(()) };
    let largest = if encoding.column_type().unsplit() == ColumnType::Real16 { HALF_MAX } else { f32::MAX };
    let name = encoding.column_type().name();
    Err(Error::unsupported(format!(
        "value {value:?} is too large for the {name} column: the largest value is {largest:?}"
    )))
}

/// The check of Real32Quant, to which infinity and NaN are outside, too.
fn check_range<T: Copy>(encoding: &Encoding, values: &[T], double: impl Fn(T) -> f64) -> Result<()> {
    let quantum = encoding.quantum()?;
    // Written so that NaN is outside; and a first look without a branch, which is all that good values get.
    let inside = |value: f64| (quantum.min <= value) & (value <= quantum.max);
    let outside = || values.iter().map(|value| double(*value)).find(|value| !inside(*value));
    let is_good = values.iter().fold(true, |is_good, value| is_good & inside(double(*value)));
    if !is_good && let Some(value) = outside() {
        return Err(Error::unsupported(format!(
            "value {value} is outside the range [{}, {}] of the Real32Quant column",
            quantum.min, quantum.max
        )));
    }
    Ok(())
}

/// For values that the encoding holds.
fn encode_reals<T: Copy>(
    encoding: &Encoding,
    values: &[T],
    out: &mut Vec<u8>,
    single: impl Fn(T) -> f32,
    double: impl Fn(T) -> f64,
) -> Result<()> {
    use ColumnType::*;
    let bits = encoding.bits();
    match encoding.column_type() {
        Real16 => halves::encode(false, values, room(encoding, values.len(), out)?, single),
        SplitReal16 => halves::encode(true, values, room(encoding, values.len(), out)?, single),
        Real32 => u32::store(values, room(encoding, values.len(), out)?, |value| single(value).to_bits()),
        SplitReal32 => u32::split(values, room(encoding, values.len(), out)?, |value| single(value).to_bits()),
        Real64 => u64::store(values, room(encoding, values.len(), out)?, |value| double(value).to_bits()),
        SplitReal64 => u64::split(values, room(encoding, values.len(), out)?, |value| double(value).to_bits()),
        Real32Trunc => {
            let dropped = 32 - u32::from(bits);
            packing::pack(bits, values, out, |value| single(value).to_bits() >> dropped);
        }
        Real32Quant => {
            let quantize = encoding.quantum()?.encoder();
            packing::pack(bits, values, out, |value| quantize(double(value)));
        }
        _ => return Err(encoding.mismatch("real numbers")),
    }
    Ok(())
}

/// The inverse of [`decode_index`](super::decode_index).
///
/// # Errors
/// Unsupported if the type is not an index or an end does not fit its 32 bits.
pub fn encode_index(encoding: &Encoding, ends: &[u64], out: &mut Vec<u8>) -> Result<()> {
    use ColumnType::*;
    let column_type = encoding.column_type();
    if !column_type.is_index() {
        return Err(encoding.mismatch("indexes"));
    }
    let largest = if column_type.unsplit() == Index32 { u64::from(u32::MAX) } else { u64::MAX };
    if let Some(end) = ends.iter().find(|end| **end > largest) {
        return Err(Error::unsupported(format!("index {end} does not fit the {} column", column_type.name())));
    }
    let page = room(encoding, ends.len(), out)?;
    let mut last = 0;
    let mut size = |end: u64| end.wrapping_sub(std::mem::replace(&mut last, end));
    match column_type {
        Index32 => u32::store(ends, page, |end| end as u32),
        Index64 => u64::store(ends, page, |end| end),
        SplitIndex32 => u32::split(ends, page, |end| size(end) as u32),
        _ => u64::split(ends, page, size),
    }
    Ok(())
}

/// The inverse of [`decode_switch`](super::decode_switch).
///
/// # Errors
/// Corrupt if there are not as many tags as indexes.
pub fn encode_switch(indexes: &[u64], tags: &[u32], out: &mut Vec<u8>) -> Result<()> {
    if indexes.len() != tags.len() {
        return Err(Error::corrupt(format!("found {} indexes, but {} tags", indexes.len(), tags.len())));
    }
    out.reserve(indexes.len().saturating_mul(scalar::SWITCH_BYTES));
    for (index, tag) in indexes.iter().zip(tags) {
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(&tag.to_le_bytes());
    }
    Ok(())
}
