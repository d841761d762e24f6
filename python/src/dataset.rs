//! Many files: patterns, common fields and unions of fields.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3_arrow::PySchema;

use crate::arrow;
use crate::error::{OrRaise, cancellable, lock};
use crate::storage::{Storage, or_default};

/// The files that match a pattern, sorted; `None` if it has no wildcards, or is the name of a file.
#[pyfunction]
#[pyo3(signature = (pattern, storage=None))]
pub(crate) fn matching_files(
    py: Python<'_>,
    pattern: &str,
    storage: Option<&Storage>,
) -> PyResult<Option<Vec<String>>> {
    cancellable(py, || tupelo::dataset::matching_files(pattern, &or_default(storage)))
}

/// Collects the fields that all files have.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct CommonFields {
    inner: Mutex<tupelo::dataset::CommonFields>,
}

#[pymethods]
impl CommonFields {
    #[new]
    fn new() -> Self {
        Self { inner: Mutex::default() }
    }

    /// Adds the selected fields of a file: pairs of top-level field and dotted path, parents first.
    fn add(&self, py: Python<'_>, paths: Vec<(String, String)>) -> PyResult<()> {
        lock(&self.inner).or_raise(py)?.add_paths(&paths);
        Ok(())
    }

    /// Whether no file has a selected field.
    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(lock(&self.inner).or_raise(py)?.is_empty())
    }

    /// The paths to read of every file, or `None` if all have the same fields.
    fn paths(&self, py: Python<'_>) -> PyResult<Option<Vec<String>>> {
        lock(&self.inner).or_raise(py)?.paths().or_raise(py)
    }

    /// The fields that some files lack, as text; `None` if all have the same fields.
    fn skipped_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(lock(&self.inner).or_raise(py)?.skipped_text())
    }
}

/// Collects the fields that any file has.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct UnionFields {
    inner: Mutex<tupelo::dataset::UnionFields>,
}

#[pymethods]
impl UnionFields {
    #[new]
    fn new() -> Self {
        Self { inner: Mutex::default() }
    }

    /// Adds the `pyarrow.Schema` of a file.
    fn add(&self, py: Python<'_>, schema: PySchema, name: &str) -> PyResult<()> {
        lock(&self.inner).or_raise(py)?.add(&schema.into_inner(), name).or_raise(py)
    }

    /// The `pyarrow.Schema` of all files.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = lock(&self.inner).or_raise(py)?.schema();
        arrow::schema(py, Arc::new(schema))
    }
}
