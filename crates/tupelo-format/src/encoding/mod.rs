//! Column elements to values and back, one page at a time (format specification, "Column Description").
//!
//! A page is decoded straight into its slot of the destination: `packed` is the decompressed page, and the slice
//! that receives the values says how many there are. Encoding is the exact inverse and appends to a buffer.
//!
//! | function | column types | values |
//! |---|---|---|
//! | [`decode_fixed`] | bytes, characters, integers, Real32 and Real64, split or not | little-endian bytes |
//! | [`decode_bits`] | Bit | bitmap, least significant bit first |
//! | [`decode_f32`], [`decode_f64`] | every real type | numbers |
//! | [`decode_index`] | indexes | ends counted from the start of the cluster |
//! | [`decode_switch`] | Switch | indexes and tags |

mod column_type;
mod decode;
mod encode;
mod halves;
mod packing;
mod scalar;
mod simd;

#[cfg(test)]
mod tests;

pub use column_type::ColumnType;
pub use decode::{
    decode_bits, decode_f32, decode_f64, decode_fixed, decode_fixed_past_caches, decode_index, decode_switch,
};
pub use encode::{
    check_f32, check_f64, encode_bits, encode_f32, encode_f64, encode_fixed, encode_index, encode_switch,
};

use std::borrow::Cow;
use std::ops::Range;

use crate::{Error, Result};

/// Limit of a page, as it is stored and as it is decompressed, in bytes: 1 GiB, which is also ROOT's limit of the key
/// that holds it. By default ROOT's pages have at most 1 MiB.
pub const MAX_PAGE_BYTES: u64 = 1 << 30;

/// The encoding of the elements of one column in its pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    column_type: ColumnType,
    bits: u16,
    range: Option<(f64, f64)>,
}

impl Encoding {
    /// From a column description: type, bits on storage of one element, and for Real32Quant the range of values as
    /// (minimum, maximum). A range on another type is dropped.
    ///
    /// # Errors
    /// Corrupt if the type does not come in that many bits, or if Real32Quant has no range, an empty one, or one that
    /// is not of finite width.
    pub fn new(column_type: ColumnType, bits: u16, range: Option<(f64, f64)>) -> Result<Self> {
        if !column_type.bits_range().contains(&bits) {
            return Err(Error::corrupt(format!("{} column cannot have {bits} bits per element", column_type.name())));
        }
        if column_type != ColumnType::Real32Quant {
            return Ok(Self { column_type, bits, range: None });
        }
        match range {
            Some((min, max)) if min < max && (max - min).is_finite() => Ok(Self { column_type, bits, range }),
            Some((min, max)) => {
                Err(Error::corrupt(format!("Real32Quant column has an invalid value range [{min:e}, {max:e}]")))
            }
            None => Err(Error::corrupt("Real32Quant column lacks a value range")),
        }
    }

    /// Of a type that has only one; none for Real32Trunc and Real32Quant, which need a number of bits.
    pub fn of(column_type: ColumnType) -> Option<Self> {
        let bits = column_type.bits_range();
        (bits.start() == bits.end()).then(|| Self { column_type, bits: *bits.start(), range: None })
    }

    /// The type of the column.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// Bits on storage of one element.
    pub fn bits(&self) -> u16 {
        self.bits
    }

    /// Minimum and maximum of the values of a Real32Quant column; none for other types.
    pub fn range(&self) -> Option<(f64, f64)> {
        self.range
    }

    /// Bytes of a page of this many elements before compression; `None` if they do not fit 64 bits.
    pub fn packed_bytes(&self, elements: u64) -> Option<u64> {
        // Whole groups of eight elements take whole bytes, and so no product exceeds the result.
        let bits = u64::from(self.bits);
        (elements / 8).checked_mul(bits)?.checked_add((elements % 8 * bits).div_ceil(8))
    }

    /// Whether a page is its values as they lie in the memory of this machine, one after the other.
    pub fn is_plain(&self) -> bool {
        use ColumnType::*;
        let is_plain = matches!(
            self.column_type,
            Byte | Char | Int8 | UInt8 | Int16 | UInt16 | Int32 | UInt32 | Int64 | UInt64 | Real32 | Real64 | Index64
        );
        is_plain && cfg!(target_endian = "little")
    }

    /// A page of only some elements of a page of `elements`, to decode few of many; `None` if elements depend on others
    /// (split indexes) or share bytes, and for a page of the wrong length.
    pub fn part<'p>(&self, packed: &'p [u8], elements: usize, wanted: Range<usize>) -> Option<Cow<'p, [u8]>> {
        let width = usize::from(self.bits / 8);
        if !self.bits.is_multiple_of(8) || self.check_page(packed, elements).is_err() || wanted.end > elements {
            return None;
        }
        let is_split = self.column_type.unsplit() != self.column_type;
        match (is_split, self.column_type) {
            (true, ty) if ty.is_index() => None,
            (_, ColumnType::Switch) => None,
            (false, _) => packed.get(width * wanted.start..width * wanted.end).map(Cow::Borrowed),
            (true, _) => {
                let planes = packed.chunks_exact(elements.max(1));
                planes
                    .map(|plane| plane.get(wanted.clone()))
                    .collect::<Option<Vec<_>>>()
                    .map(|p| Cow::Owned(p.concat()))
            }
        }
    }

    fn check_page(&self, packed: &[u8], elements: usize) -> Result<()> {
        if self.packed_bytes(elements as u64) != Some(packed.len() as u64) {
            return Err(Error::corrupt(format!(
                "page of {} bytes does not match {elements} elements of {} with {} bits",
                packed.len(),
                self.column_type.name(),
                self.bits
            )));
        }
        Ok(())
    }

    /// The error for a column type that a decoder or encoder was not made for.
    #[cold]
    fn mismatch(&self, values: &str) -> Error {
        Error::unsupported(format!("{} column cannot be read or written as {values}", self.column_type.name()))
    }

    /// Step between neighbouring integers of Real32Quant, and its origin; computed as in ROOT, bit for bit.
    fn quantum(&self) -> Result<Quantum> {
        let (min, max) = self.range.ok_or_else(|| self.mismatch("quantized numbers"))?;
        let steps = ((1_u64 << self.bits.min(32)) - 1) as f64;
        Ok(Quantum { min, max, steps })
    }
}

/// The arithmetic of Real32Quant (`Quantize::QuantizeReals` and `UnquantizeReals` in ROOT's `RColumnElement.hxx`).
#[derive(Clone, Copy)]
struct Quantum {
    min: f64,
    max: f64,
    steps: f64,
}

impl Quantum {
    fn decoder(self) -> impl Fn(u32) -> f64 {
        let scale = (self.max - self.min) / self.steps;
        move |integer| f64::from(integer) * scale + self.min
    }

    /// For values within the range.
    fn encoder(self) -> impl Fn(f64) -> u32 {
        let scale = self.steps / (self.max - self.min);
        // From here on up neighbouring numbers differ by one, and the lower half of their bits counts.
        const ONES: f64 = (1_u64 << (f64::MANTISSA_DIGITS - 1)) as f64;
        move |value| {
            let steps = 0.5 + (value - self.min) * scale;
            // Cut to an integer as by a cast, in instructions that work on several numbers at once.
            let nearest = steps + ONES;
            let is_above = nearest - ONES > steps;
            nearest.to_bits().wrapping_sub(u64::from(is_above)) as u32
        }
    }
}
