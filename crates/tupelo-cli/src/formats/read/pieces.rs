//! Batches cut to pieces that take little memory after they are converted.
//!
//! Dictionaries, runs and views store a value once for many entries; an ntuple has it for each.

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteViewType, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, GenericByteViewArray, GenericListViewArray, OffsetSizeTrait, RecordBatch, RunArray, UnionArray,
    downcast_run_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::{BATCH_BYTES, BATCH_ENTRIES, batch_entries};

/// A part of a batch, which shares its memory, and the bytes that its values take when each is stored by itself.
pub(super) struct Piece {
    pub(super) batch: RecordBatch,
    pub(super) bytes: u64,
}

/// A batch cut to pieces of the usual size. One entry may be larger.
pub(super) fn in_pieces(batch: RecordBatch) -> impl Iterator<Item = Piece> {
    let (count, bytes) = (batch.num_rows() as u64, batch.get_array_memory_size() as u64);
    let most = batch_entries(bytes / count.max(1), BATCH_ENTRIES);
    let (mut next, mut length) = (0, most);
    std::iter::from_fn(move || {
        if next >= count {
            return None;
        }
        loop {
            length = length.min(count - next);
            let piece = batch.slice(next as usize, length as usize);
            let bytes = expanded_bytes_of(&piece);
            if bytes <= BATCH_BYTES || length == 1 {
                next += length;
                // The next entries may be smaller.
                length = (length * 2).min(most);
                return Some(Piece { batch: piece, bytes });
            }
            length /= 2;
        }
    })
}

/// Bytes of a batch if each of its values is stored by itself.
pub(super) fn expanded_bytes_of(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(expanded_bytes).fold(0, u64::saturating_add)
}

/// Bytes of an array if each of its values is stored by itself: at least one for a value.
fn expanded_bytes(array: &ArrayRef) -> u64 {
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    let bytes = match array.data_type() {
        DataType::Utf8View => viewed_bytes(array.as_string_view()),
        DataType::BinaryView => viewed_bytes(array.as_binary_view()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            match values.is_empty() {
                true => 0,
                false => sum(&mut dictionary.normalized_keys().into_iter().map(|key| bytes_at(values, key))),
            }
        }
        DataType::RunEndEncoded(..) => downcast_run_array!(
            array => run_bytes(array),
            _ => 0
        ),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            between(list.values(), list.offsets().first().copied(), list.offsets().last().copied())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            between(list.values(), list.offsets().first().copied(), list.offsets().last().copied())
        }
        DataType::Map(..) => {
            let (map, entries) = (array.as_map(), array.as_map().entries());
            let entries: ArrayRef = std::sync::Arc::new(entries.clone());
            between(&entries, map.offsets().first().copied(), map.offsets().last().copied())
        }
        DataType::ListView(_) => list_view_bytes(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => list_view_bytes(array.as_list_view::<i64>()),
        DataType::FixedSizeList(..) => expanded_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => sum(&mut array.as_struct().columns().iter().map(expanded_bytes)),
        DataType::Union(..) => union_bytes(array.as_union()),
        _ => array.to_data().get_slice_memory_size().unwrap_or(usize::MAX) as u64,
    };
    bytes.max(array.len() as u64)
}

/// The same of a single value.
fn bytes_at(values: &ArrayRef, place: usize) -> u64 {
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value_length(place).unsigned_abs().into(),
        DataType::LargeUtf8 => values.as_string::<i64>().value_length(place).unsigned_abs(),
        other => match other.primitive_width() {
            Some(width) => width as u64,
            None => expanded_bytes(&values.slice(place, 1)),
        },
    }
}

/// The same of a range of items.
fn between<O: OffsetSizeTrait>(items: &ArrayRef, first: Option<O>, last: Option<O>) -> u64 {
    let (first, last) = (first.map_or(0, O::as_usize), last.map_or(0, O::as_usize));
    expanded_bytes(&items.slice(first, last - first))
}

fn viewed_bytes<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> u64 {
    array.lengths().map(u64::from).fold(0, u64::saturating_add)
}

fn run_bytes<R: RunEndIndexType>(array: &RunArray<R>) -> u64 {
    let (ends, values) = (array.run_ends(), array.values());
    let (mut sum, mut before) = (0u64, 0);
    for (place, end) in (ends.get_start_physical_index()..).zip(ends.sliced_values()) {
        let (end, count) = (end.as_usize(), (end.as_usize() - before) as u64);
        sum = sum.saturating_add(bytes_at(values, place).saturating_mul(count));
        before = end;
    }
    sum
}

fn list_view_bytes<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> u64 {
    let items = array.sizes().iter().map(|size| size.as_usize() as u64).fold(0, u64::saturating_add);
    // The sizes of more items would take long to find, and they are too many anyway.
    if items > BATCH_BYTES {
        return items;
    }
    let views = array.offsets().iter().zip(array.sizes());
    let bytes = views.map(|(offset, size)| expanded_bytes(&array.values().slice(offset.as_usize(), size.as_usize())));
    bytes.fold(0, u64::saturating_add)
}

fn union_bytes(array: &UnionArray) -> u64 {
    let value = |place: usize| match array.offsets() {
        Some(_) => bytes_at(array.child(array.type_id(place)), array.value_offset(place)),
        None => 0,
    };
    (0..array.len()).map(value).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        BooleanArray, DictionaryArray, FixedSizeListArray, Int8Array, Int32Array, Int64Array, LargeListViewArray,
        ListArray, StringArray, StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::*;

    fn bytes(array: impl Array + 'static) -> u64 {
        expanded_bytes(&(Arc::new(array) as ArrayRef))
    }

    fn runs(ends: Vec<i32>, values: impl Array + 'static) -> RunArray<Int32Type> {
        RunArray::try_new(&Int32Array::from(ends), &values).expect("runs")
    }

    #[test]
    fn values_count_as_often_as_they_occur() {
        assert_eq!(bytes(Int32Array::from(vec![1, 2, 3])), 12);
        assert_eq!(bytes(BooleanArray::from(vec![true; 800])), 800);
        assert_eq!(bytes(runs(vec![10, 1000], Int64Array::from(vec![1, 2]))), 8000);
        let texts = StringArray::from(vec!["", "0123456789"]);
        let both = runs(vec![900, 1000], texts.clone());
        assert_eq!(bytes(both.slice(850, 100)), 500);
        let keys = Int8Array::from(vec![Some(1), Some(0), Some(1), None]);
        assert_eq!(bytes(DictionaryArray::<Int8Type>::new(keys, Arc::new(texts))), 20);
        let view = StringViewArray::from(vec!["a text that is longer than a view"; 3]);
        assert_eq!(bytes(view), 99);
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let items: ArrayRef = Arc::new(Int32Array::from(vec![0; 100]));
        let (offsets, sizes) = (vec![0i64; 50].into(), vec![100i64; 50].into());
        let views = LargeListViewArray::try_new(Arc::clone(&item), offsets, sizes, Arc::clone(&items), None);
        assert_eq!(bytes(views.expect("views")), 20_000);
        let fixed = FixedSizeListArray::try_new(item, 10, items, None).expect("lists");
        assert_eq!(bytes(fixed.slice(2, 3)), 120);
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1); 5]), None, Some(vec![])]);
        assert_eq!(bytes(lists.slice(1, 2)), 2);
        assert_eq!(bytes(StructArray::new_empty_fields(1 << 40, None)), 1 << 40);
    }

    /// Defect: the values of many entries were made at once, whatever their size.
    #[test]
    fn pieces_are_small_when_they_are_expanded() {
        let large = "x".repeat(1 << 20);
        let texts = runs(vec![10, 20, 40_000, 40_003], StringArray::from(vec!["", large.as_str(), "", large.as_str()]));
        let batch = RecordBatch::try_from_iter([("x", Arc::new(texts) as ArrayRef)]).expect("a batch");
        let (mut entries, mut bytes, mut pieces) = (0, 0, 0);
        for piece in in_pieces(batch) {
            assert!(piece.bytes <= BATCH_BYTES && piece.batch.num_rows() > 0);
            (entries, bytes, pieces) = (entries + piece.batch.num_rows(), bytes + piece.bytes, pieces + 1);
        }
        assert_eq!(entries, 40_003);
        assert!(bytes >= 13 << 20, "{bytes}");
        assert!((3..20).contains(&pieces), "{pieces} pieces");
    }
}
