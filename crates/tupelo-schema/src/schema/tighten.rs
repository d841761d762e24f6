//! Schemas without needless nullability.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_schema::{DataType, FieldRef, Schema as ArrowSchema};

use super::arrow::{metadata, standard_base};

/// The schema of a batch in which only those fields are nullable that contain nulls, or whose C++ type requires it.
/// Many libraries mark everything as nullable; written unchanged, all fields would become optionals.
pub fn tighten(batch: &RecordBatch) -> ArrowSchema {
    let fields = batch.schema();
    let fields = fields.fields().iter().zip(batch.columns()).map(|(field, array)| tight(field, array));
    ArrowSchema::new(fields.collect::<Vec<_>>()).with_metadata(batch.schema().metadata().clone())
}

fn tight(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    let base = field.metadata().get(metadata::TYPE).map_or("", |name| standard_base(name));
    let is_optional = matches!(base, "std::optional" | "std::unique_ptr");
    let is_unknown = *field.data_type() == DataType::Null;
    let nullable = field.is_nullable() && (is_optional || is_unknown || array.null_count() > 0);
    let data_type = match (field.data_type(), array.data_type()) {
        (DataType::List(item), DataType::List(_)) => DataType::List(tight(item, array.as_list::<i32>().values())),
        (DataType::LargeList(item), DataType::LargeList(_)) => {
            DataType::LargeList(tight(item, array.as_list::<i64>().values()))
        }
        (DataType::FixedSizeList(item, size), DataType::FixedSizeList(..)) => {
            DataType::FixedSizeList(tight(item, array.as_fixed_size_list().values()), *size)
        }
        (DataType::Struct(fields), DataType::Struct(_)) => {
            let members = present(array.as_struct());
            DataType::Struct(fields.iter().zip(&members).map(|(field, array)| tight(field, array)).collect())
        }
        (DataType::Map(entries, sorted), DataType::Map(..)) => {
            let structs: ArrayRef = Arc::new(array.as_map().entries().clone());
            DataType::Map(tight(entries, &structs), *sorted)
        }
        (DataType::Union(fields, mode), DataType::Union(..)) => {
            let union = array.as_union();
            let tighten = |(id, field)| (id, tight(field, union.child(id)));
            DataType::Union(fields.iter().map(tighten).collect(), *mode)
        }
        (other, _) => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(nullable))
}

/// The members of the structs that are not null.
fn present(structs: &StructArray) -> Vec<ArrayRef> {
    let members = structs.columns().to_vec();
    let Some(nulls) = structs.nulls().filter(|nulls| nulls.null_count() > 0) else { return members };
    let valid = BooleanArray::new(nulls.inner().clone(), None);
    members.into_iter().map(|member| arrow_select::filter::filter(&member, &valid).unwrap_or(member)).collect()
}
