//! Arrow types and the types inside them.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};

/// The fields directly inside an Arrow type.
pub(crate) fn inner_fields(data_type: &DataType) -> Vec<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item],
        DataType::Struct(members) => members.iter().collect(),
        DataType::Union(members, _) => members.iter().map(|(_, member)| member).collect(),
        _ => Vec::new(),
    }
}

/// The same Arrow type with other fields directly inside it.
pub fn with_inner_fields(data_type: &DataType, field: impl Fn(&FieldRef) -> FieldRef) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(item, sorted) => DataType::Map(field(item), *sorted),
        DataType::Struct(members) => DataType::Struct(members.iter().map(field).collect()),
        DataType::Union(members, mode) => {
            DataType::Union(members.iter().map(|(id, member)| (id, field(member))).collect(), *mode)
        }
        other => other.clone(),
    }
}

/// The same field of another type.
pub fn with_data_type(field: &FieldRef, data_type: DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Levels of fields inside an Arrow type; 0 for a type without fields.
pub fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::Dictionary(_, values) => depth(values),
        _ => inner_fields(data_type).iter().map(|field| depth(field.data_type()) + 1).max().unwrap_or(0),
    }
}
