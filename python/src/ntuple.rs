//! Ntuples and what is read from them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader, PySchema};
use tupelo::ops::inspect::{self, Sizes};
use tupelo::reader::Read;
use tupelo::schema::{Field, Kind, Schema};

use crate::attributes::Attributes;
use crate::error::OrRaise;
use crate::objects::Objects;
use crate::rules::{self, RuleRow};

/// Dotted path, index of the parent in the list, name, C++ type, description and kind.
type FieldRow = (String, Option<usize>, String, String, String, &'static str);

/// Stored bytes, bytes before compression, and the codecs in use.
type SizesRow = (u64, u64, String);

/// One open ntuple.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Ntuple {
    inner: tupelo::Ntuple,
}

impl From<tupelo::Ntuple> for Ntuple {
    fn from(inner: tupelo::Ntuple) -> Self {
        Self { inner }
    }
}

impl Ntuple {
    fn select(
        &self,
        patterns: &[String],
        entry_start: u64,
        entry_stop: u64,
        binary_strings: bool,
        schema: Option<PySchema>,
    ) -> tupelo::Result<Read> {
        let mut read = self.inner.read(patterns)?;
        if let Some(schema) = schema {
            read = read.with_schema(&Schema::from_arrow(&schema.into_inner())?)?;
        }
        Ok(read.entries(entry_start..entry_stop).with_binary_strings(binary_strings))
    }
}

#[pymethods]
impl Ntuple {
    /// Name, without directories.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Path in the file.
    #[getter]
    fn path(&self) -> &str {
        self.inner.path()
    }

    /// Free text.
    #[getter]
    fn description(&self) -> &str {
        self.inner.description()
    }

    /// The program that wrote it.
    #[getter]
    fn writer(&self) -> &str {
        self.inner.writer()
    }

    /// Version of the format that the writer claims.
    #[getter]
    fn format_version(&self) -> String {
        self.inner.format_version().to_string()
    }

    /// Number of entries.
    #[getter]
    fn num_entries(&self) -> u64 {
        self.inner.entries()
    }

    /// Number of clusters.
    #[getter]
    fn num_clusters(&self) -> u64 {
        self.inner.clusters()
    }

    /// One sentence for each field that this version cannot read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }

    /// All fields that can be read, parents first. The alternatives of a variant are not there: they only make sense
    /// together.
    fn fields(&self) -> Vec<FieldRow> {
        let paths = self.inner.schema().paths();
        // Parents come first, so the nearest field above is the last one whose path is a prefix.
        let mut above: Vec<(usize, String)> = Vec::new();
        let mut fields = Vec::with_capacity(paths.len());
        let mut variant = None;
        for (path, field) in paths {
            if variant.as_ref().is_some_and(|variant: &String| path.starts_with(variant)) {
                continue;
            }
            variant = holds_variant(field).then(|| format!("{path}."));
            let index = fields.len();
            let is_below = |parent: &str| path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'));
            while above.last().is_some_and(|(_, parent)| !is_below(parent)) {
                above.pop();
            }
            let parent = above.last().map(|(index, _)| *index);
            above.push((index, path.clone()));
            let type_name = field.display_type().to_owned();
            fields.push((path, parent, field.name.clone(), type_name, field.description.clone(), kind(field)));
        }
        fields
    }

    /// What is stored, from metadata alone: bytes of anchor, header, footer and page lists, then what all pages take, and
    /// what each field takes with all below it, by dotted path.
    fn sizes(&self, py: Python<'_>) -> PyResult<(u64, SizesRow, BTreeMap<String, SizesRow>)> {
        let sizes = || {
            let summary = inspect::summary(&self.inner)?;
            let paths = self.inner.schema().paths().into_iter().map(|(path, _)| path);
            let fields = paths.zip(inspect::paths(&self.inner)?.iter().map(sizes_row)).collect();
            Ok((summary.metadata_bytes, sizes_row(&summary.sizes), fields))
        };
        py.detach(sizes).or_raise(py)
    }

    /// Names of the linked attribute sets.
    fn attribute_sets(&self) -> Vec<String> {
        self.inner.attribute_sets().map(str::to_owned).collect()
    }

    /// Opens an attribute set.
    fn attribute_set(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        let inner = py.detach(|| self.inner.attribute_set(name)).or_raise(py)?;
        Ok(Self { inner })
    }

    /// The objects of a streamer field.
    fn objects(&self, py: Python<'_>, path: &str) -> PyResult<Objects> {
        let inner = py.detach(|| self.inner.objects(path)).or_raise(py)?;
        Ok(Objects::from(inner))
    }

    /// All rows of an attribute set.
    fn attributes(&self, py: Python<'_>, name: &str) -> PyResult<Attributes> {
        py.detach(|| self.inner.attributes(name)).or_raise(py).map(Attributes::from)
    }

    /// The metadata of the program that wrote it.
    fn metadata(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        py.detach(|| self.inner.metadata()).or_raise(py)
    }

    /// The `pyarrow.Schema` of the chosen fields.
    fn arrow_schema<'py>(
        &self,
        py: Python<'py>,
        patterns: Vec<String>,
        binary_strings: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let select = || Ok(self.select(&patterns, 0, 0, binary_strings, None)?.arrow_schema());
        let schema = py.detach(select).or_raise(py)?;
        PySchema::new(schema).into_pyarrow(py)
    }

    /// The same ntuple, read by rules.
    fn with_rules(&self, py: Python<'_>, rules: Vec<RuleRow>) -> PyResult<Self> {
        let ruled = || {
            let rules = rules.into_iter().map(rules::rule).collect::<tupelo::Result<Vec<_>>>()?;
            self.inner.with_rules(rules)
        };
        Ok(py.detach(ruled).or_raise(py)?.into())
    }

    /// The chosen entries of the chosen fields as one `pyarrow.RecordBatch`; those of another schema, where one is
    /// given.
    fn read<'py>(
        &self,
        py: Python<'py>,
        patterns: Vec<String>,
        entry_start: u64,
        entry_stop: u64,
        binary_strings: bool,
        schema: Option<PySchema>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let read = || self.select(&patterns, entry_start, entry_stop, binary_strings, schema)?.to_batch();
        let batch = py.detach(read).or_raise(py)?;
        PyRecordBatch::new(batch).into_pyarrow(py)
    }

    /// What reading cost: counts by name, times in seconds as a pair of wall and CPU time, and a text of it all.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyDict>, String)>> {
        let Some(metrics) = self.inner.metrics() else { return Ok(None) };
        let counts = PyDict::new(py);
        counts.set_item("requests", metrics.requests)?;
        counts.set_item("read_bytes", metrics.read_bytes)?;
        counts.set_item("page_bytes", metrics.page_bytes)?;
        counts.set_item("pages", metrics.pages)?;
        counts.set_item("unpacked_bytes", metrics.unpacked_bytes)?;
        let times = [("read", metrics.read), ("decompress", metrics.decompress), ("decode", metrics.decode)];
        for (name, time) in times {
            counts.set_item(name, (time.wall.as_secs_f64(), time.cpu.as_secs_f64()))?;
        }
        counts.set_item("elapsed", metrics.elapsed.as_secs_f64())?;
        counts.set_item("idle", metrics.idle().as_secs_f64())?;
        counts.set_item("threads", metrics.threads)?;
        Ok(Some((counts, metrics.to_string())))
    }

    /// Single entries of the chosen fields as one `pyarrow.RecordBatch`, in the order given.
    fn take<'py>(&self, py: Python<'py>, patterns: Vec<String>, entries: Vec<u64>) -> PyResult<Bound<'py, PyAny>> {
        let batch = py.detach(|| self.inner.read(&patterns)?.take(&entries)).or_raise(py)?;
        PyRecordBatch::new(batch).into_pyarrow(py)
    }

    /// The same in batches of `batch_entries` entries, or of about `batch_bytes` bytes where that is given.
    #[expect(clippy::too_many_arguments, reason = "the package over this gives them names and defaults")]
    fn batches(
        &self,
        py: Python<'_>,
        patterns: Vec<String>,
        entry_start: u64,
        entry_stop: u64,
        batch_entries: u64,
        batch_bytes: Option<u64>,
        binary_strings: bool,
        schema: Option<PySchema>,
    ) -> PyResult<Batches> {
        let batches = || {
            let read = self.select(&patterns, entry_start, entry_stop, binary_strings, schema)?;
            match batch_bytes {
                Some(bytes) => read.batches_of_bytes(bytes),
                None => read.batches(batch_entries),
            }
        };
        Ok(Batches { inner: Mutex::new(py.detach(batches).or_raise(py)?) })
    }

    /// The same as an Arrow C stream, in a capsule. Decoding needs no interpreter.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        patterns: Vec<String>,
        batch_entries: u64,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batches = || self.inner.read(&patterns)?.batches(batch_entries);
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(py.detach(batches).or_raise(py)?.into_arrow());
        Bound::new(py, PyRecordBatchReader::new(reader))?.call_method1("__arrow_c_stream__", (requested_schema,))
    }
}

/// Whether the values behind a field's path are variants: its own, or its items'.
fn holds_variant(field: &Field) -> bool {
    match &field.kind {
        Kind::Variant(_) => true,
        Kind::Array { item, .. }
        | Kind::Wrapper(item)
        | Kind::Collection(item)
        | Kind::Map(item)
        | Kind::Optional(item) => holds_variant(item),
        _ => false,
    }
}

fn sizes_row(sizes: &Sizes) -> SizesRow {
    (sizes.stored_bytes, sizes.unpacked_bytes, sizes.codec())
}

/// What a field is, in one word.
fn kind(field: &Field) -> &'static str {
    match &field.kind {
        Kind::Primitive(_) => "primitive",
        Kind::String => "string",
        Kind::Streamer => "streamer",
        Kind::Cardinality { .. } => "cardinality",
        Kind::Bitset { .. } => "bitset",
        Kind::Array { .. } => "array",
        Kind::Wrapper(_) => "wrapper",
        Kind::Collection(_) => "collection",
        Kind::Map(_) => "map",
        Kind::Optional(_) => "optional",
        Kind::Record(_) => "record",
        Kind::Tuple(_) => "tuple",
        Kind::Variant(_) => "variant",
    }
}

/// Batches of one reading request, in entry order: an iterator of first entry and `pyarrow.RecordBatch`.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Batches {
    inner: Mutex<tupelo::reader::Batches>,
}

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyAny>)>> {
        let next = || {
            // A panic elsewhere leaves the batches where they were: each call either advances or does not.
            let mut batches = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let position = batches.position();
            batches.next().map(|batch| batch.map(|batch| (position, batch)))
        };
        match py.detach(next).transpose().or_raise(py)? {
            None => Ok(None),
            Some((position, batch)) => Ok(Some((position, PyRecordBatch::new(batch).into_pyarrow(py)?))),
        }
    }
}
