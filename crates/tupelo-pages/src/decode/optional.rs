//! Optionals: on disk, present values are consecutive; Arrow also has slots for missing ones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeBinaryArray, LargeListArray, LargeStringArray, UInt64Array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use bytemuck::Pod;
use tupelo_schema::schema::Field;

use super::node::Assembly;
use super::{mismatch, try_allocation};
use crate::{Error, Result};

impl Assembly<'_> {
    /// Arrow optionals from the present values.
    pub(super) fn optional(self, field: &Field, dense: ArrayRef, offsets: &OffsetBuffer<i64>) -> Result<ArrayRef> {
        let Some(there) = presence(offsets) else {
            let what = format!("optional has {} values, expected at most one", most(offsets));
            return Err(self.table.named(field, Error::corrupt(what)));
        };
        let count = there.len();
        if dense.len() == count {
            return Ok(dense);
        }
        // Arrow makes a slot for every missing value, and a copy of all present ones.
        let missing = (count - dense.len().min(count)) as u64;
        let bytes = missing.saturating_mul(slot_bytes(dense.data_type()));
        let bytes = bytes.saturating_add(dense.get_array_memory_size() as u64).saturating_add(count as u64 * 9);
        let reserved = self.memory.reserve_values(bytes);
        let reserved = reserved.and_then(|()| try_allocation(usize::try_from(bytes).unwrap_or(usize::MAX)));
        reserved.map_err(|e| self.table.named(field, e))?;
        spread(&dense, offsets, NullBuffer::new(there))
    }
}

/// Memory of a missing value that has a slot in Arrow.
fn slot_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Null => 0,
        DataType::FixedSizeList(item, size) => {
            slot_bytes(item.data_type()).saturating_mul(u64::from(size.unsigned_abs())).saturating_add(1)
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| slot_bytes(field.data_type())).fold(1, u64::saturating_add)
        }
        // Offsets of lists and strings, places of variants: no wider than the widest number, and a bit for its absence.
        _ => 9,
    }
}

/// For each optional, whether its value is present; `None` if one has several values.
fn presence(offsets: &[i64]) -> Option<BooleanBuffer> {
    let count = offsets.len().saturating_sub(1);
    let mut words = Vec::with_capacity(count.div_ceil(64));
    // Lengths of all together: no branch is needed for each.
    let mut lengths = 0;
    for start in (0..count).step_by(64) {
        let mut word = 0;
        let end = count.min(start + 64);
        for (bit, pair) in offsets[start..=end].windows(2).enumerate() {
            let length = pair[1].wrapping_sub(pair[0]).cast_unsigned();
            lengths |= length;
            word |= (length & 1) << bit;
        }
        words.push(word);
    }
    (lengths <= 1).then(|| BooleanBuffer::new(Buffer::from_vec(words), 0, count))
}

#[cold]
fn most(offsets: &[i64]) -> i64 {
    offsets.windows(2).map(|pair| pair[1] - pair[0]).find(|&length| length > 1).unwrap_or_default()
}

/// Moves dense values to their slots; the `i`-th slot begins at value `offsets[i]`.
fn spread(dense: &ArrayRef, offsets: &OffsetBuffer<i64>, nulls: NullBuffer) -> Result<ArrayRef> {
    if dense.nulls().is_none() {
        match dense.data_type() {
            // Their content stays in place: a missing value is an empty range.
            DataType::LargeUtf8 => {
                let (ends, values, _) = dense.as_string::<i64>().clone().into_parts();
                let array = LargeStringArray::try_new(ranges(&ends, offsets), values, Some(nulls));
                return Ok(Arc::new(array.map_err(mismatch)?));
            }
            DataType::LargeBinary => {
                let (ends, values, _) = dense.as_binary::<i64>().clone().into_parts();
                let array = LargeBinaryArray::try_new(ranges(&ends, offsets), values, Some(nulls));
                return Ok(Arc::new(array.map_err(mismatch)?));
            }
            DataType::LargeList(_) => {
                let (item, ends, values, _) = dense.as_list::<i64>().clone().into_parts();
                let array = LargeListArray::try_new(item, ranges(&ends, offsets), values, Some(nulls));
                return Ok(Arc::new(array.map_err(mismatch)?));
            }
            data_type => {
                let values = match data_type.primitive_width() {
                    Some(1) => Some(fixed::<u8>(dense, offsets)),
                    Some(2) => Some(fixed::<u16>(dense, offsets)),
                    Some(4) => Some(fixed::<u32>(dense, offsets)),
                    Some(8) => Some(fixed::<u64>(dense, offsets)),
                    _ => None,
                };
                if let Some(values) = values {
                    let data = arrow_data::ArrayData::builder(data_type.clone()).len(nulls.len()).add_buffer(values);
                    return Ok(arrow_array::make_array(data.nulls(Some(nulls)).build().map_err(mismatch)?));
                }
            }
        }
    }
    let places = offsets.iter().take(nulls.len()).map(|offset| offset.unsigned_abs()).collect::<Vec<_>>();
    arrow_select::take::take(dense, &UInt64Array::new(places.into(), Some(nulls)), None).map_err(mismatch)
}

/// Offsets of the slots, from those of the values.
fn ranges(ends: &OffsetBuffer<i64>, offsets: &OffsetBuffer<i64>) -> OffsetBuffer<i64> {
    let ends: &[i64] = ends;
    OffsetBuffer::new(offsets.iter().map(|&offset| ends[offset.unsigned_abs() as usize]).collect())
}

/// Numbers in their slots, and zeros in the others.
fn fixed<T: ArrowNativeType + Pod>(dense: &ArrayRef, offsets: &[i64]) -> Buffer {
    let data = dense.to_data();
    let values = data.buffers().first().map_or(&[][..], |buffer| buffer.typed_data::<T>());
    let values = &values[data.offset()..][..data.len()];
    let Some(last) = values.len().checked_sub(1) else {
        return Buffer::from_vec(vec![T::zeroed(); offsets.len().saturating_sub(1)]);
    };
    // Both values are available, so no branch is needed.
    let place = |pair: &[i64]| {
        let value = values[(pair[0].unsigned_abs() as usize).min(last)];
        if pair[1] > pair[0] { value } else { T::zeroed() }
    };
    Buffer::from_vec(offsets.windows(2).map(place).collect())
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, StructArray};

    use super::*;

    #[test]
    fn presence_is_a_bit_for_each() {
        let offsets: Vec<i64> =
            (0..200).scan(0, |sum, i| Some(std::mem::replace(sum, *sum + i64::from(i % 3 == 0)))).collect();
        let there = presence(&offsets).unwrap();
        assert_eq!(there.len(), 199);
        assert!(there.iter().enumerate().all(|(i, bit)| bit == (i % 3 == 0)));
        assert!(presence(&[0, 1, 3, 3]).is_none() && most(&[0, 1, 3, 3]) == 2);
        assert_eq!(
            (presence(&[0]).map(|bits| bits.len()), presence(&[0; 65]).map(|bits| bits.count_set_bits())),
            (Some(0), Some(0))
        );
    }

    #[test]
    fn values_of_every_kind_find_their_places() {
        let there = [true, false, false, true, true, false];
        let offsets = OffsetBuffer::<i64>::from_lengths(there.map(usize::from));
        let places = UInt64Array::from(vec![Some(0), None, None, Some(1), Some(2), None]);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 9]));
        let texts: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "", "ccc"]));
        let lists = OffsetBuffer::<i64>::from_lengths([1, 0, 2]);
        let item = Arc::new(arrow_schema::Field::new("item", DataType::Int32, false));
        let list: ArrayRef = Arc::new(LargeListArray::new(item, lists, numbers.clone(), None));
        let field = Arc::new(arrow_schema::Field::new("x", DataType::Int32, false));
        let record: ArrayRef = Arc::new(StructArray::from(vec![(field, numbers.clone())]));
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from(vec![&b"x"[..], b"", b"yz"]));
        for dense in [numbers, texts, list, record, bytes] {
            let nulls = NullBuffer::new(presence(&offsets).unwrap());
            let expected = arrow_select::take::take(&dense, &places, None).unwrap();
            assert_eq!(&spread(&dense, &offsets, nulls).unwrap(), &expected);
        }
        let nothing: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
        let none = OffsetBuffer::<i64>::from_lengths([0, 0]);
        assert_eq!(spread(&nothing, &none, NullBuffer::new(presence(&none).unwrap())).unwrap().null_count(), 2);
    }
}
