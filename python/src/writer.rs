//! Writing files and ntuples.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, UnionFields};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::input::AnyRecordBatch;
use pyo3_arrow::{PySchema, PyTable};
use tupelo::schema::Schema;
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::ObjectOptions;
use tupelo::{Compression, Error, StreamerInfos};

use crate::arrow;
use crate::attributes::AttributeSetWriter;
use crate::error::{OrRaise, cancellable, lock};
use crate::objects;
use crate::options::{Options, parse_compression};
use crate::storage::{Storage, or_default};
use crate::table::ObjectInfo;

/// A ROOT file that is being written; nothing is visible before it is finished.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct FileWriter {
    inner: Mutex<Option<tupelo::FileWriter>>,
}

#[pymethods]
impl FileWriter {
    /// Creates a file, or opens one to add ntuples. `mapping` is for ntuples in object stores.
    #[new]
    #[pyo3(signature = (path, *, update, storage=None, mapping=None))]
    fn new(
        py: Python<'_>,
        path: &str,
        update: bool,
        storage: Option<&Storage>,
        mapping: Option<&str>,
    ) -> PyResult<Self> {
        let storage = or_default(storage);
        let open = || match mapping {
            _ if update => tupelo::update(path),
            Some(mapping) if is_object_uri(path) => {
                let options = ObjectOptions::default().with_mapping(mapping.parse()?);
                tupelo::FileWriter::create_objects(path, &storage, options)
            }
            Some(_) => {
                let what = "a mapping is for object stores, such as ntpl+s3://BUCKET/PREFIX";
                Err(Error::invalid_argument(format!("{}: {what}", display_name(path))))
            }
            None => tupelo::FileWriter::create_at(path, &storage),
        };
        Ok(Self { inner: Mutex::new(Some(py.detach(open).or_raise(py)?)) })
    }

    /// Creates an ntuple with the path `DIRECTORY/NAME` for an Arrow schema, in which nullable means optional.
    fn ntuple(&self, py: Python<'_>, path: &str, schema: PySchema, options: Options) -> PyResult<NtupleWriter> {
        self.begin(py, |file| {
            let schema = options.project(Schema::from_arrow(&schema.into_inner())?)?;
            file.ntuple(path, &schema, options.to_write()?)
        })
    }

    /// Continues an existing ntuple of the file.
    fn append(&self, py: Python<'_>, path: &str, options: Options) -> PyResult<NtupleWriter> {
        self.begin(py, |file| file.append(path, options.to_write()?))
    }

    /// Adds fields to an existing ntuple of the file, with values for all of its entries.
    fn append_fields(&self, py: Python<'_>, path: &str, schema: PySchema, options: Options) -> PyResult<FieldsWriter> {
        let begin = || {
            let schema = Schema::from_arrow(&schema.into_inner())?;
            self.with(|file| file.append_fields(path, &schema, options.to_write()?))
        };
        Ok(FieldsWriter { inner: Mutex::new(Some(py.detach(begin).or_raise(py)?)) })
    }

    /// Writes a histogram of a class from the values of its members; see `objects::of_members`. `compression` is that of
    /// ntuples, None for the default.
    fn histogram(
        &self,
        py: Python<'_>,
        path: &str,
        title: &str,
        class_name: &str,
        members: &Bound<'_, PyDict>,
        compression: Option<&str>,
    ) -> PyResult<()> {
        let compression = compression.map_or_else(|| Ok(Compression::default()), parse_compression).or_raise(py)?;
        let object = objects::of_members(class_name, members, &StreamerInfos::histograms())?;
        py.detach(|| self.with(|file| file.object(path, title, &object, compression))).or_raise(py)
    }

    /// Makes a directory and those above it, as far as they are missing.
    fn make_directory(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| self.with(|file| file.make_directory(path))).or_raise(py)
    }

    /// Removes an object with all its cycles, one cycle, or an empty directory.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        // A name is not a pattern here.
        let name = tupelo::schema::escaped(name);
        let remove = || self.with(|file| tupelo::ops::objects::remove(file, &[name], false).map(|_| ()));
        py.detach(remove).or_raise(py)
    }

    /// Gives an object another path, which is returned.
    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<String> {
        let rename = || self.with(|file| tupelo::ops::objects::rename(file, old, new, false));
        Ok(py.detach(rename).or_raise(py)?.path)
    }

    /// The objects that were in the file, all cycles.
    fn objects(&self, py: Python<'_>) -> PyResult<Vec<ObjectInfo>> {
        let objects = || lock(&self.inner)?.as_ref().ok_or_else(|| closed("file"))?.objects();
        let objects = py.detach(objects).or_raise(py)?;
        Ok(objects.into_iter().map(ObjectInfo::from).collect())
    }

    /// Whether it can only be aborted: it is finished, or poisoned by an error.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| Ok(lock(&self.inner)?.as_ref().is_none_or(tupelo::FileWriter::is_closed))).or_raise(py)
    }

    /// Makes the file visible. Every ntuple must be finished.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        cancellable(py, || lock(&self.inner)?.take().ok_or_else(|| closed("file"))?.finish())
    }

    /// Aborts the file: the old file or the last checkpoint is kept. Returns the name of the file with the last
    /// checkpoint, if it is another one. Does nothing if the file is finished.
    fn abort(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| lock(&self.inner)?.take().map_or(Ok(None), tupelo::FileWriter::abort)).or_raise(py)
    }
}

impl FileWriter {
    /// Calls a function with the file.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&tupelo::FileWriter) -> tupelo::Result<T>) -> tupelo::Result<T> {
        work(lock(&self.inner)?.as_ref().ok_or_else(|| closed("file"))?)
    }

    fn begin(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(&tupelo::FileWriter) -> tupelo::Result<tupelo::NtupleWriter> + Send,
    ) -> PyResult<NtupleWriter> {
        let begin = || begin(lock(&self.inner)?.as_ref().ok_or_else(|| closed("file"))?);
        Ok(NtupleWriter { inner: Mutex::new(Some(py.detach(begin).or_raise(py)?)) })
    }
}

/// An ntuple that is being written.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct NtupleWriter {
    inner: Mutex<Option<tupelo::NtupleWriter>>,
}

impl NtupleWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut tupelo::NtupleWriter) -> tupelo::Result<T> + Send,
    ) -> PyResult<T> {
        cancellable(py, || call(lock(&self.inner)?.as_mut().ok_or_else(|| closed("ntuple"))?))
    }
}

#[pymethods]
impl NtupleWriter {
    /// Entries written so far; 0 once it is finished.
    #[getter]
    fn num_entries(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| Ok(lock(&self.inner)?.as_ref().map_or(0, tupelo::NtupleWriter::entries))).or_raise(py)
    }

    /// The `pyarrow.Schema` of the data to write: all fields that are not projected.
    fn arrow_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = self.with(py, |writer| {
            let stored = writer.schema().fields.into_iter().filter(|field| field.projected_from.is_none());
            Ok(Schema { fields: stored.collect() }.to_arrow(true))
        })?;
        arrow::schema(py, schema.into())
    }

    /// Appends all entries of an object with the Arrow C data or stream interface, or none after an error.
    fn write(&self, py: Python<'_>, data: AnyRecordBatch) -> PyResult<()> {
        let batches = data.into_reader()?.collect::<Result<Vec<_>, _>>().map_err(Error::from).or_raise(py)?;
        self.with(py, |writer| writer.write_all(&batches))
    }

    /// Adds top-level fields, with the projections of the options. Returns the `pyarrow.Schema` of the stored ones.
    fn add_fields<'py>(&self, py: Python<'py>, schema: PySchema, options: Options) -> PyResult<Bound<'py, PyAny>> {
        let schema = self.with(py, |writer| {
            let mut added = Schema::from_arrow(&schema.into_inner())?;
            if options.has_projections() {
                // Sources may be existing fields.
                let mut all = writer.schema();
                let known = all.fields.len();
                all.fields.extend(added.fields);
                added.fields = options.project(all)?.fields.split_off(known);
            }
            writer.add_fields(&added)?;
            added.fields.retain(|field| field.projected_from.is_none());
            Ok(added.to_arrow(true))
        })?;
        arrow::schema(py, schema.into())
    }

    /// Adds members to the record of a path.
    fn add_members(&self, py: Python<'_>, path: &str, schema: PySchema) -> PyResult<()> {
        self.with(py, |writer| writer.add_members(path, &Schema::from_arrow(&schema.into_inner())?))
    }

    /// Ends the open cluster.
    fn flush_cluster(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, tupelo::NtupleWriter::flush_cluster)
    }

    /// Makes the data written so far readable and durable.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, tupelo::NtupleWriter::checkpoint)
    }

    /// The pairs of the metadata.
    fn metadata(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        self.with(py, |writer| Ok(writer.metadata()))
    }

    /// Sets a value in the metadata, or removes it if it is None.
    fn set_metadata(&self, py: Python<'_>, key: &str, value: Option<&str>) -> PyResult<()> {
        self.with(py, |writer| match value {
            Some(value) => writer.set_metadata(key, value),
            None => writer.remove_metadata(key),
        })
    }

    /// Creates or continues an attribute set.
    fn attribute_set(&self, py: Python<'_>, name: &str, schema: PySchema) -> PyResult<AttributeSetWriter> {
        let schema = schema.into_inner();
        let set = self.with(py, |writer| writer.attribute_set(name, &Schema::from_arrow(&schema)?))?;
        Ok(set.into())
    }

    /// A fill context with its own clusters.
    fn fill_context(&self, py: Python<'_>) -> PyResult<FillContext> {
        let context = self.with(py, tupelo::NtupleWriter::fill_context)?;
        Ok(FillContext { inner: Mutex::new(Some(context)) })
    }

    /// Aborts the ntuple and removes it. Does nothing if it is finished.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.inner)?.take().map_or(Ok(()), tupelo::NtupleWriter::abandon)).or_raise(py)
    }

    /// Finishes the ntuple; returns the number of entries. After an error, such as an open fill context, it is
    /// unchanged.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let written = self.with(py, tupelo::NtupleWriter::finish)?;
        py.detach(|| lock(&self.inner).map(|mut writer| drop(writer.take()))).or_raise(py)?;
        Ok(written.entries)
    }
}

/// Fields that are being added to an ntuple.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct FieldsWriter {
    inner: Mutex<Option<tupelo::writer::FieldsWriter>>,
}

impl FieldsWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut tupelo::writer::FieldsWriter) -> tupelo::Result<T> + Send,
    ) -> PyResult<T> {
        cancellable(py, || call(lock(&self.inner)?.as_mut().ok_or_else(|| closed("ntuple"))?))
    }
}

#[pymethods]
impl FieldsWriter {
    /// Values of the next entries: an object with the Arrow C data or stream interface.
    fn write(&self, py: Python<'_>, data: AnyRecordBatch) -> PyResult<()> {
        let batches = data.into_reader()?.collect::<Result<Vec<_>, _>>().map_err(Error::from).or_raise(py)?;
        self.with(py, |writer| batches.iter().try_for_each(|batch| writer.write(batch)))
    }

    /// Adds the fields; returns the number of entries.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let written = self.with(py, tupelo::writer::FieldsWriter::finish)?;
        Ok(written.entries)
    }

    /// Leaves the ntuple as it was.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.inner)?.take().map_or(Ok(()), tupelo::writer::FieldsWriter::abandon)).or_raise(py)
    }
}

/// A fill context of an ntuple, for one of several threads.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct FillContext {
    inner: Mutex<Option<tupelo::writer::FillContext>>,
}

impl FillContext {
    fn with(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut tupelo::writer::FillContext) -> tupelo::Result<()> + Send,
    ) -> PyResult<()> {
        cancellable(py, || call(lock(&self.inner)?.as_mut().ok_or_else(|| closed("fill context"))?))
    }
}

#[pymethods]
impl FillContext {
    /// Appends all entries of an object with the Arrow C data or stream interface, or none after an error.
    fn write(&self, py: Python<'_>, data: AnyRecordBatch) -> PyResult<()> {
        let batches = data.into_reader()?.collect::<Result<Vec<_>, _>>().map_err(Error::from).or_raise(py)?;
        self.with(py, |context| context.write_all(&batches))
    }

    /// Ends the open cluster.
    fn flush_cluster(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, tupelo::writer::FillContext::flush_cluster)
    }

    /// Finishes the context.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        cancellable(py, || lock(&self.inner)?.take().ok_or_else(|| closed("fill context"))?.finish())
    }

    /// Discards data that are not written yet.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.inner).map(|mut context| drop(context.take()))).or_raise(py)
    }
}

/// The `pyarrow.Schema` of data, nullable only for fields with nulls or of optional types.
#[pyfunction]
pub(crate) fn tighten<'py>(py: Python<'py>, data: PyTable) -> PyResult<Bound<'py, PyAny>> {
    let (batches, schema) = data.into_inner();
    let tight = py.detach(|| {
        // Without entries there are no nulls.
        let empty = [RecordBatch::new_empty(schema.clone())];
        let batches = if batches.is_empty() { empty.as_slice() } else { batches.as_slice() };
        let tight = batches.iter().map(|batch| tupelo::schema::tighten(batch).fields().clone());
        let somewhere = tight.reduce(|a, b| combine(&a, &b, |a, b| a || b)).unwrap_or_default();
        // Nulls below a null do not count for a field that is not nullable.
        let fields = combine(&somewhere, schema.fields(), |is_null, may_be| is_null && may_be);
        ArrowSchema::new(fields).with_metadata(schema.metadata().clone())
    });
    arrow::schema(py, tight.into())
}

/// Compresses data as ROOT does, by ROOT's number of a codec and a level; None if they would not get smaller.
#[pyfunction]
pub(crate) fn compress(py: Python<'_>, data: PyBackedBytes, setting: u32) -> PyResult<Option<Bound<'_, PyBytes>>> {
    let compressed = || {
        let mut out = Vec::new();
        tupelo::compress(Compression::from_setting(setting)?, &data, &mut out)?;
        Ok::<_, Error>(out)
    };
    let out = py.detach(compressed).or_raise(py)?;
    Ok((out.len() < data.len()).then(|| PyBytes::new(py, &out)))
}

/// The C++ types that the top-level fields of a schema would be written as; empty for untyped ones.
#[pyfunction]
pub(crate) fn type_names(py: Python<'_>, schema: PySchema) -> PyResult<Vec<String>> {
    let schema = Schema::from_arrow(&schema.into_inner()).or_raise(py)?;
    Ok(schema.fields.into_iter().map(|field| field.type_name).collect())
}

/// Merges fields that differ only in nullability.
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

#[cold]
pub(crate) fn closed(what: &str) -> Error {
    Error::invalid_argument(format!("the {what} is closed"))
}
