//! Arrays under other types of the same memory layout.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field as ArrowField};

use crate::Result;

/// The same array with its strings as bytes, at whatever depth.
pub(super) fn binary(array: ArrayRef) -> Result<ArrayRef> {
    let data_type = binary_type(array.data_type());
    match &data_type == array.data_type() {
        true => Ok(array),
        false => relabel(&array.to_data(), &data_type).map(make_array),
    }
}

/// The type with strings as bytes.
pub(crate) fn binary_type(data_type: &DataType) -> DataType {
    let field =
        |field: &Arc<ArrowField>| Arc::new(field.as_ref().clone().with_data_type(binary_type(field.data_type())));
    match data_type {
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(members) => DataType::Struct(members.iter().map(field).collect()),
        DataType::Union(members, mode) => {
            DataType::Union(members.iter().map(|(id, member)| (id, field(member))).collect(), *mode)
        }
        other => other.clone(),
    }
}

/// The same buffers under another type that lies in memory alike.
pub(crate) fn relabel(data: &ArrayData, data_type: &DataType) -> Result<ArrayData> {
    let types: Vec<&DataType> = match data_type {
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => vec![item.data_type()],
        DataType::Struct(members) => members.iter().map(|member| member.data_type()).collect(),
        DataType::Union(members, _) => members.iter().map(|(_, member)| member.data_type()).collect(),
        _ => Vec::new(),
    };
    let children = data.child_data().iter().zip(types).map(|(child, data_type)| relabel(child, data_type));
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(data.clone().into_builder().data_type(data_type.clone()).child_data(children).build()?)
}
