//! Vectors of numbers, the usual form without a cursor.

use std::ops::Range;

use arrow_buffer::MutableBuffer;
use tupelo_format::object::Basic;

use super::numbers::swap_in_place;
use super::{Column, Offsets};
use crate::Basket;
use crate::layout::{ValueLayout, stored_bytes};

/// Bit of a byte count (`kByteCountMask`).
const BYTE_COUNT: usize = 0x4000_0000;
/// Bit of the first byte of a version, if members are stored together (`kStreamedMemberWise`).
const MEMBER_WISE: u8 = 0x40;

/// Vectors of numbers, or of such vectors, in their usual form: byte count, version, and the number of items before the
/// items of each vector.
pub(super) struct Vectors<'c> {
    /// Offsets of each dimension.
    levels: Vec<&'c mut Offsets>,
    out: &'c mut MutableBuffer,
    /// Bytes of a number.
    width: usize,
}

impl<'c> Vectors<'c> {
    /// `None` for all other layouts.
    pub(super) fn of(layout: &ValueLayout, mut column: &'c mut Column) -> Option<Self> {
        let ValueLayout::Headed(body) = layout else { return None };
        let mut body: &ValueLayout = body;
        let mut levels = Vec::new();
        loop {
            match (body, column) {
                (ValueLayout::Counted(item), Column::List(offsets, items)) => {
                    levels.push(offsets);
                    (body, column) = (item, &mut **items);
                }
                (ValueLayout::Number(Basic::Bool | Basic::Double32 | Basic::Float16, _), _) => return None,
                (ValueLayout::Number(basic, _), Column::Numbers(out)) if !levels.is_empty() => {
                    return Some(Self { levels, out, width: stored_bytes(*basic) });
                }
                _ => return None,
            }
        }
    }

    /// Reads entries without a cursor. Returns whether all have the usual form; if not, nothing is appended.
    pub(super) fn read(&mut self, basket: &Basket<'_>, entries: Range<usize>) -> bool {
        let lengths: Vec<usize> = self.levels.iter().map(|offsets| offsets.0.len()).collect();
        let start = self.out.len();
        if let Some(offsets) = self.levels.first_mut() {
            offsets.0.reserve(entries.len());
        }
        for index in entries {
            let entry = basket.entry(index).and_then(|range| basket.data.get(range));
            let is_read = entry.and_then(|entry| {
                let (head, mut items) = entry.split_first_chunk::<10>()?;
                let [b0, b1, b2, b3, v0, _, n0, n1, n2, n3] = *head;
                let is_whole = u32::from_be_bytes([b0, b1, b2, b3]) as usize == BYTE_COUNT | (items.len() + 6);
                let count = u32::from_be_bytes([n0, n1, n2, n3]) as usize;
                let is_usual = is_whole && v0 & MEMBER_WISE == 0;
                is_usual.then(|| append_vector(&mut self.levels, self.out, self.width, count, &mut items))??;
                items.is_empty().then_some(())
            });
            if is_read.is_none() {
                self.levels.iter_mut().zip(lengths).for_each(|(offsets, length)| offsets.0.truncate(length));
                self.out.truncate(start);
                return false;
            }
        }
        swap_in_place(self.width, self.out.get_mut(start..).unwrap_or_default());
        true
    }
}

/// Appends a vector of `count` items, and leaves the bytes that follow it. `None` where bytes are missing.
fn append_vector(
    levels: &mut [&mut Offsets],
    out: &mut MutableBuffer,
    width: usize,
    count: usize,
    bytes: &mut &[u8],
) -> Option<()> {
    let (offsets, below) = levels.split_first_mut()?;
    if below.is_empty() {
        let (items, rest) = bytes.split_at_checked(count.checked_mul(width)?)?;
        out.extend_from_slice(items);
        *bytes = rest;
    } else {
        for _ in 0..count {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            *bytes = rest;
            append_vector(below, out, width, u32::from_be_bytes(*length) as usize, bytes)?;
        }
    }
    offsets.push_length(count);
    Some(())
}
