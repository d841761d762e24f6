//! Lists without what is before and behind a slice.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, FieldRef};

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

/// The places of the items of each list.
pub(crate) fn ranges(offsets: &OffsetBuffer<i64>) -> impl Iterator<Item = Range<usize>> {
    offsets.iter().zip(offsets.iter().skip(1)).map(|(&start, &end)| position(start)..position(end))
}

/// The first list that has another length than the one beside it, and both lengths.
pub(crate) fn first_differing(own: &OffsetBuffer<i64>, other: &OffsetBuffer<i64>) -> Option<(usize, (usize, usize))> {
    // Variables of one container usually share their offsets.
    if own.ptr_eq(other) {
        return None;
    }
    own.lengths().zip(other.lengths()).enumerate().find(|(_, (own, other))| own != other)
}

/// The entry of each item.
pub(crate) fn entries_of_items(entries: &[usize], offsets: &OffsetBuffer<i64>) -> Vec<usize> {
    entries.iter().zip(offsets.lengths()).flat_map(|(&entry, count)| repeat_n(entry, count)).collect()
}

/// Lists of these items.
pub(crate) fn list_of(
    item: &FieldRef,
    offsets: OffsetBuffer<i64>,
    items: ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, Wrong> {
    match LargeListArray::try_new(Arc::clone(item), offsets, items, nulls.cloned()) {
        Ok(lists) => Ok(Arc::new(lists)),
        Err(error) => Err((0, error.to_string())),
    }
}

/// The items of a fixed-size list, those of a slice only.
pub(crate) fn fixed_items(list: &FixedSizeListArray) -> (usize, ArrayRef) {
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    (size, list.values().slice(0, list.len() * size))
}

/// Bytes of the values of an element, those in its lists and texts included.
pub(crate) fn bytes_of(values: &ArrayRef, range: Range<usize>) -> u64 {
    let count = range.len() as u64;
    let inside = |offsets: &[i64]| {
        let bound = |at: usize| position(offsets.get(at).copied().unwrap_or(0));
        bound(range.start)..bound(range.end)
    };
    match values.data_type() {
        DataType::LargeList(_) => {
            let list = values.as_list::<i64>();
            size_of::<i64>() as u64 * count + bytes_of(list.values(), inside(list.offsets()))
        }
        DataType::FixedSizeList(_, size) => {
            let (list, size) = (values.as_fixed_size_list(), usize::try_from(*size).unwrap_or(0));
            bytes_of(list.values(), range.start * size..range.end * size)
        }
        DataType::Struct(_) => values.as_struct().columns().iter().map(|it| bytes_of(it, range.clone())).sum(),
        DataType::LargeUtf8 => {
            let bytes = inside(values.as_string::<i64>().offsets());
            size_of::<i64>() as u64 * count + bytes.len() as u64
        }
        DataType::LargeBinary => {
            let bytes = inside(values.as_binary::<i64>().offsets());
            size_of::<i64>() as u64 * count + bytes.len() as u64
        }
        data_type => data_type.primitive_width().unwrap_or(1) as u64 * count,
    }
}

/// The place of an entry, and what is wrong with it.
pub(crate) type Wrong = (usize, String);

/// Values with other items in their lists, however deep: `change` gets the items and the entry of each, and may give items of
/// another type.
pub(crate) fn in_items(
    values: &ArrayRef,
    entries: &[usize],
    change: &impl Fn(&ArrayRef, &[usize]) -> Result<ArrayRef, Wrong>,
) -> Result<ArrayRef, Wrong> {
    let (Some(list), DataType::LargeList(item)) = (values.as_list_opt::<i64>(), values.data_type()) else {
        return change(values, entries);
    };
    let (offsets, items) = from_zero(list);
    let items = in_items(&items, &entries_of_items(entries, &offsets), change)?;
    let item = Arc::new(item.as_ref().clone().with_data_type(items.data_type().clone()));
    list_of(&item, offsets, items, list.nulls())
}
