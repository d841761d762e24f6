//! Conversion of Arrow data to `PyArrow`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PySchema};
use tupelo::Error;
use tupelo::reader::{Bounds, ZoneBounds};
use tupelo::schema::depth;

use crate::error::OrRaise;

/// Maximum nesting of types that `PyArrow` imports, including the column itself.
const MAX_PYARROW_DEPTH: usize = 63;

/// A `pyarrow.RecordBatch`.
pub(crate) fn batch(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    check_importable(&batch.schema()).or_raise(py)?;
    PyRecordBatch::new(batch).into_pyarrow(py)
}

/// A `pyarrow.Schema`.
pub(crate) fn schema(py: Python<'_>, schema: SchemaRef) -> PyResult<Bound<'_, PyAny>> {
    check_importable(&schema).or_raise(py)?;
    PySchema::new(schema).into_pyarrow(py)
}

/// Zones of fields: start and stop, then of each the lowest and the highest value, NaN where nothing is known or a value is
/// NaN, and the number of nulls.
pub(crate) fn zones(zones: &[ZoneBounds], fields: usize) -> tupelo::Result<RecordBatch> {
    let numbers =
        |of: fn(&ZoneBounds) -> u64| Arc::new(UInt64Array::from_iter_values(zones.iter().map(of))) as ArrayRef;
    let bounds = |place: usize, of: fn(Bounds) -> f64| {
        let known = |zone: &ZoneBounds| zone.bounds(place).filter(|bounds| !bounds.has_nan).map_or(f64::NAN, of);
        Arc::new(Float64Array::from_iter_values(zones.iter().map(known))) as ArrayRef
    };
    let mut columns = vec![
        ("start".to_owned(), numbers(|zone| zone.entries.start)),
        ("stop".to_owned(), numbers(|zone| zone.entries.end)),
    ];
    for place in 0..fields {
        columns.push((format!("lowest{place}"), bounds(place, |bounds| bounds.lowest)));
        columns.push((format!("highest{place}"), bounds(place, |bounds| bounds.highest)));
        let nulls = UInt64Array::from_iter_values(zones.iter().map(|zone| zone.nulls(place).unwrap_or_default()));
        columns.push((format!("nulls{place}"), Arc::new(nulls)));
    }
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Refuses what `PyArrow` cannot import: types that are nested too deep, and names with a NUL, which ends them in C.
pub(crate) fn check_importable(schema: &Schema) -> tupelo::Result<()> {
    // With that of the field itself.
    let levels = |field: &FieldRef| depth(field.data_type()) + 1;
    let others = "choose other fields, or read it by the command `tupelo dump`";
    if let Some(field) = schema.fields().iter().find(|field| levels(field) > MAX_PYARROW_DEPTH) {
        return Err(Error::unsupported(format!(
            "field '{}' has {} levels of nested types, and PyArrow imports at most {MAX_PYARROW_DEPTH}: {others}",
            field.name(),
            levels(field)
        )));
    }
    match schema.flattened_fields().into_iter().find(|field| field.name().contains('\0')) {
        None => Ok(()),
        Some(field) => Err(Error::unsupported(format!(
            "field '{}' has a NUL character in its name, which PyArrow cannot import: {others}",
            field.name().escape_debug()
        ))),
    }
}
