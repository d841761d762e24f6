//! Writing files and ntuples.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema as ArrowSchema, UnionFields};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use pyo3_arrow::{PySchema, PyTable};
use tupelo::schema::Schema;
use tupelo::{Compression, Error, WriteOptions};

use crate::error::OrRaise;

/// A ROOT file that is being written; nothing is visible before it is finished.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct FileWriter {
    inner: Mutex<Option<tupelo::FileWriter>>,
}

#[pymethods]
impl FileWriter {
    /// Begins a new file, or opens one to add ntuples.
    #[new]
    fn new(py: Python<'_>, path: &str, update: bool) -> PyResult<Self> {
        let open = || if update { tupelo::update(path) } else { tupelo::create(path) };
        Ok(Self { inner: Mutex::new(Some(py.detach(open).or_raise(py)?)) })
    }

    /// Begins an ntuple under `DIRECTORY/NAME` for entries of an Arrow schema, in which nullable means optional.
    #[expect(clippy::too_many_arguments, reason = "the package over this gives them names and defaults")]
    fn ntuple(
        &self,
        py: Python<'_>,
        path: &str,
        schema: PySchema,
        description: &str,
        compression: Option<&str>,
        page_bytes: Option<u64>,
        cluster_bytes: Option<u64>,
        encodings: BTreeMap<String, String>,
        compressions: BTreeMap<String, String>,
    ) -> PyResult<NtupleWriter> {
        let begin = || {
            let mut options = WriteOptions::default().with_description(description);
            if let Some(text) = compression {
                options = options.with_compression(parse_compression(text)?);
            }
            if let Some(bytes) = page_bytes {
                options = options.with_page_bytes(bytes);
            }
            if let Some(bytes) = cluster_bytes {
                options = options.with_cluster_bytes(bytes);
            }
            for (field, encoding) in &encodings {
                options = options.with_field_encoding(field, encoding)?;
            }
            for (field, text) in &compressions {
                options = options.with_field_compression(field, parse_compression(text)?);
            }
            let schema = Schema::from_arrow(&schema.into_inner())?;
            let file = lock(&self.inner);
            let file = file.as_ref().ok_or_else(|| closed("file"))?;
            file.ntuple(path, &schema, options)
        };
        let inner = py.detach(begin).or_raise(py)?;
        Ok(NtupleWriter { inner: Mutex::new(Some(inner)) })
    }

    /// Makes the file visible. Every ntuple must be finished.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.inner).take().ok_or_else(|| closed("file"))?.finish()).or_raise(py)
    }

    /// Gives the file up: what was there before, or at the last checkpoint, stays. Gives the name of the file that keeps
    /// the last checkpoint, if it is another one. Does nothing to a file that is finished.
    fn abort(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| lock(&self.inner).take().map_or(Ok(None), tupelo::FileWriter::abort)).or_raise(py)
    }
}

/// One ntuple being written.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct NtupleWriter {
    inner: Mutex<Option<tupelo::NtupleWriter>>,
}

#[pymethods]
impl NtupleWriter {
    /// Entries written so far; 0 once it is finished.
    #[getter]
    fn num_entries(&self) -> u64 {
        lock(&self.inner).as_ref().map_or(0, tupelo::NtupleWriter::entries)
    }

    /// Appends all entries of anything that speaks the Arrow C data or stream interface.
    fn write(&self, py: Python<'_>, data: AnyRecordBatch) -> PyResult<()> {
        let mut reader = data.into_reader()?;
        let write = || {
            let mut writer = lock(&self.inner);
            let writer = writer.as_mut().ok_or_else(|| closed("ntuple"))?;
            reader.try_for_each(|batch| writer.write(&batch.map_err(arrow)?))
        };
        py.detach(write).or_raise(py)
    }

    /// Ends the ntuple: entries, clusters, bytes of pages as stored, bytes of pages before compression.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let finish = || lock(&self.inner).take().ok_or_else(|| closed("ntuple"))?.finish();
        let written = py.detach(finish).or_raise(py)?;
        Ok((written.entries, written.clusters, written.stored_bytes, written.unpacked_bytes))
    }
}

/// The `pyarrow.Schema` of data, nullable only where there are nulls or where an optional is meant.
#[pyfunction]
pub(crate) fn tighten<'py>(py: Python<'py>, data: PyTable) -> PyResult<Bound<'py, PyAny>> {
    let (batches, schema) = data.into_inner();
    let tight = py.detach(|| {
        // Without a single entry nothing speaks for nulls.
        let empty = [RecordBatch::new_empty(schema.clone())];
        let batches = if batches.is_empty() { empty.as_slice() } else { batches.as_slice() };
        let tight = batches.iter().map(|batch| tupelo::schema::tighten(batch).fields().clone());
        let somewhere = tight.reduce(|a, b| combine(&a, &b, |a, b| a || b)).unwrap_or_default();
        // Nulls below a null are none of a field that cannot have any.
        let fields = combine(&somewhere, schema.fields(), |is_null, may_be| is_null && may_be);
        ArrowSchema::new(fields).with_metadata(schema.metadata().clone())
    });
    PySchema::new(tight.into()).into_pyarrow(py)
}

/// The C++ types that the top-level fields of a schema would be written as; empty for untyped ones.
#[pyfunction]
pub(crate) fn type_names(py: Python<'_>, schema: PySchema) -> PyResult<Vec<String>> {
    let schema = Schema::from_arrow(&schema.into_inner()).or_raise(py)?;
    Ok(schema.fields.into_iter().map(|field| field.type_name).collect())
}

/// Fields that differ in nothing but what is nullable, which is decided from that of both.
fn combine(a: &Fields, b: &Fields, nullable: fn(bool, bool) -> bool) -> Fields {
    a.iter().zip(b).map(|(a, b)| combine_field(a, b, nullable)).collect()
}

fn combine_field(a: &FieldRef, b: &FieldRef, nullable: fn(bool, bool) -> bool) -> FieldRef {
    let field = |a, b| combine_field(a, b, nullable);
    let data_type = match (a.data_type(), b.data_type()) {
        (DataType::List(a), DataType::List(b)) => DataType::List(field(a, b)),
        (DataType::LargeList(a), DataType::LargeList(b)) => DataType::LargeList(field(a, b)),
        (DataType::FixedSizeList(a, size), DataType::FixedSizeList(b, _)) => {
            DataType::FixedSizeList(field(a, b), *size)
        }
        (DataType::Map(a, sorted), DataType::Map(b, _)) => DataType::Map(field(a, b), *sorted),
        (DataType::Struct(a), DataType::Struct(b)) => DataType::Struct(combine(a, b, nullable)),
        (DataType::Union(a, mode), DataType::Union(b, _)) => {
            let both = a.iter().zip(b.iter()).map(|((id, a), (_, b))| (id, field(a, b)));
            DataType::Union(both.collect::<UnionFields>(), *mode)
        }
        (other, _) => other.clone(),
    };
    let is_nullable = nullable(a.is_nullable(), b.is_nullable());
    Field::new(a.name(), data_type, is_nullable).with_metadata(a.metadata().clone()).into()
}

fn parse_compression(text: &str) -> tupelo::Result<Compression> {
    text.parse::<Compression>().map_err(|error| Error::invalid_argument(error.to_string()))
}

/// What a stream of batches said when it failed.
fn arrow(error: ArrowError) -> Error {
    Error::from(error)
}

#[cold]
fn closed(what: &str) -> Error {
    Error::invalid_argument(format!("the {what} is closed"))
}

/// The engine says itself when a writer is of no use any more, so a panic under the lock needs no poison.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
