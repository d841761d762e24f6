//! Conversion of Arrow data to `PyArrow`.

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PySchema};
use tupelo::Error;
use tupelo::schema::depth;

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
    // With that of the field itself.
    let levels = |field: &FieldRef| depth(field.data_type()) + 1;
    match schema.fields().iter().find(|field| levels(field) > MAX_PYARROW_DEPTH) {
        None => Ok(()),
        Some(field) => Err(Error::unsupported(format!(
            "field '{}' has {} levels of nested types, and PyArrow imports at most {MAX_PYARROW_DEPTH}: choose other \
             fields, or read it by the command `tupelo dump`",
            field.name(),
            levels(field)
        ))),
    }
}
