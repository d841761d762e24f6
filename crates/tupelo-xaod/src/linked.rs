//! Values of two variables together: links whose containers are listed beside them, and lists whose items are.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, LargeListArray, StructArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField};

use crate::links::{INDEX, KEY, key_numbers};
use crate::lists::{Wrong, entries_of_items, from_zero, in_items, list_of, position, ranges};
use crate::stores::LinkedKind;

/// Bits of the index of a packed link; the place of its container is above them.
pub(crate) const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Values with those that belong to them: `values` and `linked` have a list for each entry.
///
/// # Errors
/// The place of an entry, and what is wrong with it.
pub(crate) fn joined(values: &LargeListArray, linked: &ArrayRef, kind: LinkedKind) -> Result<ArrayRef, Wrong> {
    let linked = linked.as_list_opt::<i64>().ok_or_else(|| (0, "the linked variable has no lists".to_owned()))?;
    let (offsets, items) = from_zero(values);
    let (ends, others) = from_zero(linked);
    let items = match kind {
        LinkedKind::Containers => {
            let keys = key_numbers(&others).ok_or_else(|| (0, "the linked variable has no keys".to_owned()))?;
            let entries = entries_of_items(&(0..values.len()).collect::<Vec<_>>(), &offsets);
            let change = |values: &ArrayRef, entries: &[usize]| unpacked(values, entries, &ends, &keys);
            in_items(&items, &entries, &change)?
        }
        LinkedKind::Items => {
            let numbers = plain_numbers(&items).ok_or_else(|| (0, "its values are not ends of lists".to_owned()))?;
            let bounds = item_bounds(&offsets, &numbers, &ends)?;
            let item = Arc::new(ArrowField::new("item", others.data_type().clone(), others.is_nullable()));
            // Items after the last end of an entry belong to no element.
            let taken: Vec<u64> = bounds.iter().flat_map(|&(start, end)| start as u64..end as u64).collect();
            let taken = arrow_select::take::take(&others, &arrow_array::UInt64Array::from(taken), None);
            let lengths = OffsetBuffer::from_lengths(bounds.iter().map(|(start, end)| end - start));
            list_of(&item, lengths, taken.map_err(|error| (0, error.to_string()))?, None)?
        }
    };
    let item = Arc::new(ArrowField::new("item", items.data_type().clone(), items.is_nullable()));
    list_of(&item, offsets, items, values.nulls())
}

/// The items of each element, as places among those of all entries.
pub(crate) fn item_bounds(
    offsets: &OffsetBuffer<i64>,
    numbers: &UInt32Array,
    ends: &OffsetBuffer<i64>,
) -> Result<Vec<(usize, usize)>, Wrong> {
    let mut found = Vec::with_capacity(numbers.len());
    for (entry, elements) in ranges(offsets).enumerate() {
        let [start, end] = [entry, entry + 1].map(|at| position(ends.get(at).copied().unwrap_or(0)));
        let mut begin = start;
        for element in elements {
            let number = numbers.value(element);
            let own = start + number as usize;
            if number == 0 {
                // An element that was never filled is empty, whatever is before it.
                found.push((begin, begin));
                continue;
            }
            if own < begin || own > end {
                let count = end - start;
                return Err((entry, format!("a list ends at {number}, expected from {} to {count}", begin - start)));
            }
            found.push((begin, own));
            begin = own;
        }
    }
    Ok(found)
}

/// Packed links as links.
fn unpacked(
    values: &ArrayRef,
    entries: &[usize],
    ends: &OffsetBuffer<i64>,
    keys: &UInt32Array,
) -> Result<ArrayRef, Wrong> {
    let numbers = plain_numbers(values).ok_or_else(|| (0, "its values are not packed links".to_owned()))?;
    let (mut own_keys, mut indices) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
    for (&packed, &entry) in numbers.values().iter().zip(entries) {
        own_keys.push(key_of(packed, entry, ends, keys)?);
        indices.push(packed & INDEX_MASK);
    }
    let column = |name: &str, numbers: Vec<u32>| {
        let array: ArrayRef = Arc::new(UInt32Array::from(numbers));
        (Arc::new(ArrowField::new(name, DataType::UInt32, false)), array)
    };
    Ok(Arc::new(StructArray::from(vec![column(KEY, own_keys), column(INDEX, indices)])))
}

/// The key of the container of a packed link; 0 for null links.
pub(crate) fn key_of(packed: u32, entry: usize, ends: &OffsetBuffer<i64>, keys: &UInt32Array) -> Result<u32, Wrong> {
    let [start, end] = [entry, entry + 1].map(|at| position(ends.get(at).copied().unwrap_or(0)));
    let place = (packed >> INDEX_BITS) as usize;
    match start + place < end {
        true => Ok(keys.value(start + place)),
        false if packed == 0 => Ok(0),
        false => Err((entry, format!("a packed link has the container {place}, but {} are listed", end - start))),
    }
}

/// The index of a packed link.
pub(crate) fn index_of(packed: u32) -> u32 {
    packed & INDEX_MASK
}

/// A packed link to another element of the same container; the null link without one.
pub(crate) fn with_index(packed: u32, index: Option<u32>) -> u32 {
    index.map_or(0, |index| packed & !INDEX_MASK | index & INDEX_MASK)
}

/// The numbers in records, which may be in a base class, with one member.
pub(crate) fn plain_numbers(values: &ArrayRef) -> Option<UInt32Array> {
    match values.as_struct_opt() {
        Some(record) if record.num_columns() == 1 => plain_numbers(record.column(0)),
        Some(_) => None,
        None => values.as_primitive_opt::<UInt32Type>().cloned(),
    }
}

/// Values of the type of others, with other [plain numbers](plain_numbers).
pub(crate) fn with_plain_numbers(values: &ArrayRef, numbers: Vec<u32>) -> ArrayRef {
    match values.as_struct_opt() {
        Some(record) if record.num_columns() == 1 => {
            let inner = with_plain_numbers(record.column(0), numbers);
            Arc::new(StructArray::new(record.fields().clone(), vec![inner], record.nulls().cloned()))
        }
        _ => Arc::new(UInt32Array::from(numbers)),
    }
}
