//! Values in the types that an ntuple reads as.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, LargeListArray, MapArray, NullArray, RecordBatch,
    RecordBatchOptions, StructArray, UInt8Array, UnionArray, make_array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, UnionFields};
use arrow_select::filter::filter;
use tupelo::schema::{Field as StoredField, Kind};

type Result<T> = std::result::Result<T, ArrowError>;

/// A batch in the types of a schema.
///
/// # Errors
/// Those of [`convert`], with the name of the column.
pub(crate) fn convert_batch(batch: &RecordBatch, schema: &SchemaRef) -> std::result::Result<RecordBatch, String> {
    let mut arrays = Vec::with_capacity(batch.num_columns());
    for (array, field) in batch.columns().iter().zip(schema.fields()) {
        let converted = convert(array, field.data_type());
        arrays.push(converted.map_err(|error| format!("column '{}': {error}", field.name().escape_debug()))?);
    }
    // Nulls are checked where they are written, which names the field.
    let schema = Arc::new(Schema::new(fields_of(schema.fields(), &arrays)));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|error| error.to_string())
}

/// Most items that runs and list views of a batch may stand for, which take almost no bytes in the file.
const MAX_EXPANDED: usize = 1 << 25;

fn check_expanded(items: usize) -> Result<()> {
    match items {
        ..=MAX_EXPANDED => Ok(()),
        _ => {
            let what = format!("a batch stands for {items} values, which exceeds the limit of {MAX_EXPANDED}");
            Err(ArrowError::InvalidArgumentError(what))
        }
    }
}

/// The items of all list views together.
fn viewed_items(array: &ArrayRef) -> usize {
    let size = |size: i64| usize::try_from(size).unwrap_or(usize::MAX);
    let sizes: Vec<usize> = match array.data_type() {
        DataType::ListView(_) => array.as_list_view::<i32>().sizes().iter().map(|it| size((*it).into())).collect(),
        _ => array.as_list_view::<i64>().sizes().iter().map(|it| size(*it)).collect(),
    };
    sizes.into_iter().fold(0, usize::saturating_add)
}

/// An array in another type with the same values.
///
/// # Errors
/// Those of `arrow_cast`, and for values that the type cannot hold.
pub(crate) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), to) {
        (DataType::Dictionary(_, value), _) => convert(&cast(array, value)?, to),
        (DataType::RunEndEncoded(_, value), _) => {
            check_expanded(array.len())?;
            convert(&cast(array, value.data_type())?, to)
        }
        (DataType::ListView(item) | DataType::LargeListView(item), _) => {
            check_expanded(viewed_items(array))?;
            convert(&cast(array, &DataType::LargeList(Arc::clone(item)))?, to)
        }
        (DataType::List(_), DataType::LargeList(item)) => {
            let list = array.as_list::<i32>();
            list_of(&wide(list.offsets()), list.values(), list, item)
        }
        (DataType::Map(..), DataType::Map(entries, is_sorted)) => {
            let map = array.as_map();
            let pairs: ArrayRef = Arc::new(map.entries().clone());
            let pairs = convert(&pairs, entries.data_type())?;
            let (fields, members, _) = pairs.as_struct().clone().into_parts();
            // Keys, which come first, are never null.
            let field = |(place, field): (usize, &FieldRef)| {
                field.as_ref().clone().with_nullable(place > 0 && field.is_nullable())
            };
            let fields: Vec<Field> = fields.iter().enumerate().map(field).collect();
            let pairs = StructArray::try_new(fields.into(), members, None)?;
            let entries = entries.as_ref().clone().with_data_type(pairs.data_type().clone()).with_nullable(false);
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Ok(Arc::new(MapArray::try_new(Arc::new(entries), offsets, pairs, nulls, *is_sorted)?))
        }
        (DataType::Map(..), DataType::LargeList(item)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            list_of(&wide(map.offsets()), &entries, map, item)
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let list = array.as_list::<i64>();
            list_of(list.offsets(), list.values(), list, item)
        }
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, DataType::LargeList(item)) => {
            let binary = cast(array, &DataType::LargeBinary)?;
            let binary = binary.as_binary::<i64>();
            let bytes = ScalarBuffer::new(binary.values().clone(), 0, binary.values().len());
            let bytes: ArrayRef = Arc::new(UInt8Array::new(bytes, None));
            list_of(binary.offsets(), &bytes, binary, item)
        }
        (DataType::FixedSizeList(_, size), DataType::FixedSizeList(item, wanted)) if size == wanted => {
            let list = array.as_fixed_size_list();
            let values = convert(list.values(), item.data_type())?;
            let nulls = list.nulls().cloned();
            let item = field_of(item, &values);
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, *size, values, nulls, list.len())?))
        }
        (DataType::FixedSizeBinary(size), DataType::FixedSizeList(item, wanted)) if size == wanted => {
            let binary = array.as_fixed_size_binary();
            let bytes: Vec<u8> = (0..binary.len()).flat_map(|entry| binary.value(entry).to_vec()).collect();
            let nulls = binary.nulls().cloned();
            let bytes: ArrayRef = Arc::new(UInt8Array::from(bytes));
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, bytes, nulls, binary.len())?))
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let records = array.as_struct();
            let members = records.columns().iter().zip(fields);
            let members = members.map(|(member, field)| convert(member, field.data_type()));
            let members = members.collect::<Result<Vec<_>>>()?;
            let (fields, nulls) = (fields_of(fields, &members), records.nulls().cloned());
            Ok(Arc::new(StructArray::try_new_with_length(fields, members, nulls, records.len())?))
        }
        (DataType::Union(..), DataType::Union(..)) => union(array, to),
        _ => cast(array, to),
    }
}

/// The fields of arrays. Nulls are allowed everywhere: where they are not, writing says so.
fn fields_of(fields: &Fields, arrays: &[ArrayRef]) -> Fields {
    fields.iter().zip(arrays).map(|(field, array)| field_of(field, array)).collect()
}

fn field_of(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(true))
}

/// An array of a field as it is read back: what is optional and has no type name is a list of at most one.
///
/// # Errors
/// Those of Arrow.
pub(crate) fn read_back(array: &ArrayRef, field: &StoredField) -> Result<ArrayRef> {
    match (&field.kind, array.data_type()) {
        (Kind::Optional(item), _) if field.type_name.is_empty() => {
            let offsets = OffsetBuffer::from_lengths((0..array.len()).map(|entry| usize::from(array.is_valid(entry))));
            let present = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
                Some(nulls) => filter(array, &BooleanArray::new(nulls.inner().clone(), None))?,
                None => Arc::clone(array),
            };
            let items = make_array(present.to_data().into_builder().nulls(None).build()?);
            let items = read_back(&items, item)?;
            let item = Arc::new(Field::new("item", items.data_type().clone(), true));
            Ok(Arc::new(LargeListArray::try_new(item, offsets, items, None)?))
        }
        (Kind::Optional(item), _) => read_back(array, item),
        (Kind::Collection(item) | Kind::Map(item), DataType::LargeList(known)) => {
            let list = array.as_list::<i64>();
            let items = read_back(list.values(), item)?;
            let (item, offsets) = (field_of(known, &items), list.offsets().clone());
            Ok(Arc::new(LargeListArray::try_new(item, offsets, items, list.nulls().cloned())?))
        }
        (Kind::Record(members), DataType::Struct(known)) => {
            let records = array.as_struct();
            let columns = records.columns().iter().zip(members).map(|(column, member)| read_back(column, member));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let (fields, nulls) = (fields_of(known, &columns), records.nulls().cloned());
            Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, records.len())?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    // A value that does not fit is an error instead of a null.
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn wide(offsets: &OffsetBuffer<i32>) -> OffsetBuffer<i64> {
    OffsetBuffer::new(offsets.iter().map(|&offset| i64::from(offset)).collect())
}

/// A list of other items, without those before and after it.
fn list_of(offsets: &OffsetBuffer<i64>, values: &ArrayRef, list: &dyn Array, item: &FieldRef) -> Result<ArrayRef> {
    let bound = |offset: Option<&i64>| usize::try_from(offset.copied().unwrap_or(0)).unwrap_or(0);
    let (first, last) = (bound(offsets.first()), bound(offsets.last()));
    let values = convert(&values.slice(first, last - first), item.data_type())?;
    let offsets = OffsetBuffer::new(offsets.iter().map(|offset| offset - first as i64).collect());
    Ok(Arc::new(LargeListArray::try_new(field_of(item, &values), offsets, values, list.nulls().cloned())?))
}

/// A dense union in the numbering of another type. If that is not its own, 0 has no value, then the alternatives follow
/// in order.
fn union(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (union, DataType::Union(from, _), DataType::Union(wanted, _)) = (array.as_union(), array.data_type(), to)
    else {
        return cast(array, to);
    };
    let Some(offsets) = union.offsets() else { return cast(array, to) };
    if from.iter().map(|(id, _)| id).eq(wanted.iter().map(|(id, _)| id)) {
        let child = |(id, field): (i8, &FieldRef)| convert(union.child(id), field.data_type());
        let children = wanted.iter().map(child).collect::<Result<Vec<_>>>()?;
        let fields = wanted.iter().zip(&children).map(|((id, field), child)| (id, field_of(field, child)));
        return Ok(Arc::new(UnionArray::try_new(
            fields.collect(),
            union.type_ids().clone(),
            Some(offsets.clone()),
            children,
        )?));
    }
    let mut numbers = [0i8; 128];
    let mut alternatives: Vec<&ArrayRef> = Vec::new();
    for (id, _) in from.iter().filter(|(_, field)| *field.data_type() != DataType::Null) {
        alternatives.push(union.child(id));
        let number = i8::try_from(alternatives.len()).unwrap_or(i8::MAX);
        numbers.get_mut(usize::try_from(id).unwrap_or(0)).into_iter().for_each(|known| *known = number);
    }
    let mut children: Vec<ArrayRef> = vec![Arc::new(NullArray::new(union.len()))];
    let is_value = |(_, field): &(i8, &FieldRef)| *field.data_type() != DataType::Null;
    for (child, (_, field)) in alternatives.into_iter().zip(wanted.iter().filter(is_value)) {
        children.push(convert(child, field.data_type())?);
    }
    let fields: UnionFields =
        wanted.iter().zip(&children).map(|((id, field), child)| (id, field_of(field, child))).collect();
    // Values of the same alternative are in order, as they are read.
    let mut next = 0;
    let (mut ids, mut places) = (Vec::with_capacity(union.len()), Vec::with_capacity(union.len()));
    for (&id, &offset) in union.type_ids().iter().zip(offsets.iter()) {
        let number = usize::try_from(id).ok().and_then(|id| numbers.get(id)).copied().unwrap_or(0);
        ids.push(number);
        places.push(if number == 0 { next } else { offset });
        next += i32::from(number == 0);
    }
    let places = Some(ScalarBuffer::from(places));
    Ok(Arc::new(UnionArray::try_new(fields, ScalarBuffer::from(ids), places, children)?))
}
