//! Values of entries that lack a field.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, LargeListArray, ListArray, make_array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use tupelo_format::wire::Memory;
use tupelo_pages::source::DEFAULT_MEMORY_BUDGET_BYTES;

use crate::Result;

/// The values of entries that lack a field of this type: nulls where it has them, and else zeros, empty texts and lists.
pub(crate) fn default_values(data_type: &DataType, is_nullable: bool, len: usize) -> ArrayRef {
    fn without_nulls(data: ArrayData, is_nullable: bool) -> ArrayData {
        let fields: Vec<bool> = match data.data_type() {
            DataType::Struct(fields) => fields.iter().map(|field| field.is_nullable()).collect(),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => {
                vec![item.is_nullable()]
            }
            _ => vec![true; data.child_data().len()],
        };
        let children = data.child_data().iter().cloned().zip(fields);
        let children = children.map(|(child, is_nullable)| without_nulls(child, is_nullable)).collect();
        let nulls = data.nulls().filter(|_| is_nullable).cloned();
        let valid = data.clone().into_builder().nulls(nulls).child_data(children).build();
        valid.unwrap_or(data)
    }
    make_array(without_nulls(ArrayData::new_null(data_type, len), is_nullable))
}

/// Lists of as many default values as their counter says, which no stored bytes limit. None for another type.
///
/// # Errors
/// Limit above [`DEFAULT_MEMORY_BUDGET_BYTES`].
pub(super) fn zeros_for(data_type: &DataType, counts: &ArrayRef) -> Result<Option<ArrayRef>> {
    let (DataType::List(item) | DataType::LargeList(item)) = data_type else { return Ok(None) };
    let default_items = |count: usize| default_values(item.data_type(), item.is_nullable(), count);
    let counts = cast(counts, &DataType::Int64)?;
    let counts: Vec<usize> =
        counts.as_primitive::<Int64Type>().iter().map(|count| count.unwrap_or(0).try_into().unwrap_or(0)).collect();
    let total = counts.iter().try_fold(0_usize, |total, count| total.checked_add(*count)).unwrap_or(usize::MAX);
    // Records without members take none, but have offsets.
    let item_bytes = default_items(1).to_data().get_slice_memory_size()?.max(1);
    let bytes = total.saturating_mul(item_bytes) as u64;
    Memory::new(DEFAULT_MEMORY_BUDGET_BYTES).take(bytes, format_args!("the default values of {total} items"))?;
    let (item, items) = (Arc::clone(item), default_items(total));
    Ok(Some(match data_type {
        DataType::List(_) => Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(counts), items, None)),
        _ => Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths(counts), items, None)),
    }))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, Int64Array};
    use arrow_schema::{Field, Fields};

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn lists_have_as_many_zeros_as_their_counter_says() {
        let counts: ArrayRef = Arc::new(Int32Array::from(vec![2, 0, -1, 1]));
        let of = |item: DataType| Arc::new(Field::new("item", item, false));
        for list in [DataType::List(of(DataType::Float32)), DataType::LargeList(of(DataType::Float32))] {
            let zeros = zeros_for(&list, &counts).unwrap().unwrap();
            assert_eq!((zeros.data_type(), zeros.null_count()), (&list, 0));
            let lists = cast(&zeros, &DataType::LargeList(of(DataType::Float64))).unwrap();
            assert_eq!(lists.as_list::<i64>().offsets().to_vec(), [0, 2, 2, 2, 3]);
            assert_eq!(lists.as_list::<i64>().values().len(), 3);
        }
        assert!(zeros_for(&DataType::LargeUtf8, &counts).unwrap().is_none());
    }

    #[test]
    fn counters_do_not_dictate_memory() {
        let counts: ArrayRef = Arc::new(Int32Array::from(vec![i32::MAX; 3]));
        let item = Arc::new(Field::new("item", DataType::Float64, false));
        let error = zeros_for(&DataType::LargeList(item), &counts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        // Whose items take no memory.
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX; 3]));
        let nothing = Arc::new(Field::new("item", DataType::Struct(Fields::empty()), false));
        for list in [DataType::List(Arc::clone(&nothing)), DataType::LargeList(nothing)] {
            assert_eq!(zeros_for(&list, &counts).unwrap_err().kind(), ErrorKind::Limit, "{list}");
        }
    }
}
