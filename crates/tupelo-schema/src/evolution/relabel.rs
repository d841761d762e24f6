//! Arrays under other types of the same memory layout.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::Result;
use crate::schema::{inner_fields, with_data_type, with_inner_fields};

/// The same array with its strings as bytes, at whatever depth.
pub(super) fn binary(array: ArrayRef) -> Result<ArrayRef> {
    let data_type = binary_type(array.data_type());
    match &data_type == array.data_type() {
        true => Ok(array),
        false => relabel(&array.to_data(), &data_type).map(make_array),
    }
}

/// The type with strings as bytes.
pub fn binary_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 => DataType::LargeBinary,
        other => with_inner_fields(other, |field| with_data_type(field, binary_type(field.data_type()))),
    }
}

/// The same buffers under another type with the same memory layout.
pub fn relabel(data: &ArrayData, data_type: &DataType) -> Result<ArrayData> {
    let fields = inner_fields(data_type);
    let children = data.child_data().iter().zip(fields).map(|(child, field)| relabel(child, field.data_type()));
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(data.clone().into_builder().data_type(data_type.clone()).child_data(children).build()?)
}
