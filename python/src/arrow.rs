//! Conversion of Arrow data to `PyArrow`.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PySchema};
use tupelo::Error;

use crate::error::OrRaise;

/// Maximum nesting of types that `PyArrow` imports, including the column itself.
const MAX_PYARROW_DEPTH: usize = 63;

/// A `pyarrow.RecordBatch`.
pub(crate) fn batch(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    check_depth(&batch.schema()).or_raise(py)?;
    PyRecordBatch::new(batch).into_pyarrow(py)
}

/// A `pyarrow.Schema`.
pub(crate) fn schema(py: Python<'_>, schema: SchemaRef) -> PyResult<Bound<'_, PyAny>> {
    check_depth(&schema).or_raise(py)?;
    PySchema::new(schema).into_pyarrow(py)
}

/// Refuses types that are nested deeper than `PyArrow` can import.
pub(crate) fn check_depth(schema: &Schema) -> tupelo::Result<()> {
    match schema.fields().iter().find(|field| depth(field.data_type()) > MAX_PYARROW_DEPTH) {
        None => Ok(()),
        Some(field) => Err(Error::unsupported(format!(
            "field '{}' has {} levels of nested types, and PyArrow imports at most {MAX_PYARROW_DEPTH}: choose other \
             fields, or read it by the command `tupelo dump`",
            field.name(),
            depth(field.data_type())
        ))),
    }
}

fn depth(data_type: &DataType) -> usize {
    let below = match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => depth(item.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| depth(field.data_type())).max().unwrap_or(0),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| depth(field.data_type())).max().unwrap_or(0),
        _ => 0,
    };
    below + 1
}
