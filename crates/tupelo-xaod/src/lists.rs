//! Lists without what is before and behind a slice.

use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray};
use arrow_buffer::OffsetBuffer;

/// An offset as a position; offsets are never negative.
pub(crate) fn position(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

/// The offsets of lists from 0 on, and the items of these lists only.
pub(crate) fn from_zero(list: &LargeListArray) -> (OffsetBuffer<i64>, ArrayRef) {
    let offsets = list.offsets();
    let [start, end] = [offsets.first(), offsets.last()].map(|offset| offset.copied().unwrap_or(0));
    let own = match start {
        0 => offsets.clone(),
        _ => OffsetBuffer::new(offsets.iter().map(|offset| offset - start).collect()),
    };
    (own, list.values().slice(position(start), position(end - start)))
}

/// The items of a fixed-size list, those of a slice only.
pub(crate) fn fixed_items(list: &FixedSizeListArray) -> (usize, ArrayRef) {
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    (size, list.values().slice(list.offset() * size, list.len() * size))
}
