//! Ntuples and trees, and reading from them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatchReader;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::{PyArray, PyRecordBatch, PyRecordBatchReader, PySchema};
use tupelo::Error;
use tupelo::ops::copy::{CopyOptions, copy};
use tupelo::ops::inspect;
use tupelo::reader::{ChainPart, ExplainedColumn, Read, Skipped, Tree, TreeCache};
use tupelo::schema::Schema;

use crate::arrow;
use crate::attributes::Attributes;
use crate::error::{OrRaise, cancellable, lock, telling};
use crate::objects::Objects;
use crate::options::Options;
use crate::rules::{self, Rule};
use crate::table::{self, Batch, ClusterInfo, Copied, FieldInfo, Sizes, TableSizes};
use crate::tree::{self, BranchInfo, TreeInfo};
use crate::writer::FileWriter;

/// An open ntuple or tree.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Table {
    inner: tupelo::Table,
}

impl From<tupelo::Table> for Table {
    fn from(inner: tupelo::Table) -> Self {
        Self { inner }
    }
}

/// What to read, and how: the attributes of `tupelo.fields._select.Request`.
#[derive(Debug, FromPyObject)]
pub(crate) struct Request {
    /// Dotted paths or globs; an empty list means all fields, `None` no field.
    patterns: Option<Vec<String>>,
    /// Columns by name and expression.
    computed: Vec<(String, String)>,
    /// Names that expressions may use, and their expressions.
    aliases: Vec<(String, String)>,
    /// Values for all entries, by names that expressions may use.
    given: Option<PyRecordBatch>,
    cut: Option<String>,
    entry_start: u64,
    entry_stop: u64,
    /// Name of an additional last column with entry numbers.
    entry_numbers: Option<String>,
    binary_strings: bool,
    schema: Option<PySchema>,
}

impl Table {
    /// The ntuple or tree.
    pub(crate) fn inner(&self) -> &tupelo::Table {
        &self.inner
    }

    /// The selected fields that cannot be read, according to the metadata.
    pub(crate) fn unreadable(&self, request: &Request) -> Vec<Skipped> {
        let patterns = request.patterns.as_deref();
        patterns.map_or_else(Vec::new, |patterns| self.inner.unreadable(patterns, &[]))
    }

    /// Refuses a request for fields that some of several files lack.
    pub(crate) fn check_complete(&self, request: &Request) -> tupelo::Result<()> {
        let patterns = request.patterns.as_deref().unwrap_or_default();
        self.inner.files().map_or(Ok(()), |files| files.check_complete(patterns, &[]))
    }

    /// The read of a request.
    pub(crate) fn select(&self, request: Request) -> tupelo::Result<Read> {
        let mut read = match request.patterns {
            Some(patterns) => self.inner.read(patterns)?,
            None => self.inner.read_all().without_fields(),
        };
        if let Some(schema) = request.schema {
            read = read.with_schema(&Schema::from_arrow(&schema.into_inner())?)?;
        }
        if let Some(given) = request.given {
            let given = given.into_inner();
            for (field, values) in given.schema().fields().iter().zip(given.columns()) {
                read = read.with_values(field.as_ref().clone(), Arc::clone(values))?;
            }
        }
        let parsed = |(name, text): (String, String)| Ok((name, text.parse()?));
        read = read.with_aliases(request.aliases.into_iter().map(parsed).collect::<tupelo::Result<Vec<_>>>()?)?;
        for (name, text) in request.computed {
            read = read.with_computed(&name, &text.parse()?)?;
        }
        if let Some(cut) = request.cut {
            read = read.with_where(&cut.parse()?)?;
        }
        if let Some(name) = request.entry_numbers {
            read = read.with_entry_numbers(&name);
        }
        Ok(read.entries(request.entry_start..request.entry_stop).with_binary_strings(request.binary_strings))
    }
}

/// The names in an expression.
#[pyfunction]
pub(crate) fn expression_names(py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
    let expression: tupelo::Expression = text.parse().or_raise(py)?;
    Ok(expression.fields().map(str::to_owned).collect())
}

#[pymethods]
impl Table {
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

    /// C++ class: ``ROOT::RNTuple``, ``TTree``, ``TNtuple`` or ``TNtupleD``.
    #[getter]
    fn class_name(&self) -> &str {
        self.inner.tree().map_or("ROOT::RNTuple", |tree| &tree.metadata().class_name)
    }

    /// The program that wrote it; empty for trees, which do not say.
    #[getter]
    fn writer(&self) -> &str {
        self.inner.ntuple().map_or("", |ntuple| ntuple.writer())
    }

    /// Format version of the writer; empty for trees.
    #[getter]
    fn format_version(&self) -> String {
        self.inner.ntuple().map_or_else(|_| String::new(), |ntuple| ntuple.format_version().to_string())
    }

    /// What a tree has beside an ntuple; `None` for an ntuple.
    fn tree(&self) -> Option<TreeInfo> {
        self.inner.tree().map(tree::info)
    }

    /// Names of branches of a tree that are not those of their fields, with the paths of these.
    fn own_names(&self) -> HashMap<String, String> {
        self.inner.tree().map(Tree::own_names).unwrap_or_default()
    }

    /// The branches of a tree, parents first; none for an ntuple.
    fn tree_branches(&self) -> Vec<BranchInfo> {
        self.inner.tree().map(tree::branches).unwrap_or_default()
    }

    /// Path or URL of the file; of several files the first ones and their number.
    #[getter]
    fn file_path(&self) -> String {
        self.inner.file_name()
    }

    /// The paths in their files of the tables of a chain, or of the only one, their first entries and their ends.
    fn parts(&self) -> (Vec<String>, Vec<u64>, Vec<u64>) {
        let Some(chain) = self.inner.files() else {
            return (vec![self.inner.path().to_owned()], vec![0], vec![self.inner.entries()]);
        };
        let parts = chain.parts();
        let of = |entry: fn(&ChainPart) -> u64| parts.iter().map(entry).collect();
        let paths = parts.iter().map(|part| part.path.clone()).collect();
        (paths, of(|part| part.entries.start), of(|part| part.entries.end))
    }

    /// The numbers of the tables of a chain among those that were given.
    fn part_numbers(&self) -> Vec<usize> {
        self.inner.files().map_or_else(|| vec![0], |chain| chain.parts().iter().map(|part| part.number).collect())
    }

    /// The fields that are left out because some files of a chain lack them, as a list for a message.
    fn missing_fields(&self) -> Option<String> {
        self.inner.files()?.missing_text::<&str>(&[], &[])
    }

    /// The fields whose numbers have a narrower type in some files of a chain: one sentence each.
    fn promoted_fields(&self) -> Vec<String> {
        self.inner.files().map(|chain| chain.promoted().to_vec()).unwrap_or_default()
    }

    /// Whether a path or glob names only fields that are left out because the files of a chain differ.
    fn is_differing(&self, pattern: &str) -> bool {
        self.inner.files().is_some_and(|chain| chain.lacks(pattern))
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

    /// Identity of this state of the file.
    fn identity(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.identity()).or_raise(py)
    }

    /// The clusters that have entries.
    fn clusters(&self, py: Python<'_>) -> PyResult<Vec<ClusterInfo>> {
        if let Some(tree) = self.inner.tree() {
            return Ok(tree::clusters(tree));
        }
        let clusters = py.detach(|| tupelo::ops::index::clusters(self.inner.ntuple()?)).or_raise(py)?;
        let info = |cluster: &tupelo::ops::index::Cluster| ClusterInfo {
            first_entry: cluster.first_entry,
            entries: cluster.entries,
            stored_bytes: cluster.stored_bytes,
        };
        Ok(clusters.iter().map(info).collect())
    }

    /// The rules of the format that the file breaks, or files of a chain.
    fn deviations(&self) -> Vec<String> {
        self.inner.deviations().iter().map(ToString::to_string).collect()
    }

    /// One warning for each field that this version cannot read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings()
    }

    /// All readable fields, parents first, hidden ones last, without the alternatives of variants, which cannot be read
    /// alone.
    fn fields(&self, py: Python<'_>) -> Vec<FieldInfo> {
        table::fields(py, table::hidden_last(self.inner.schema()))
    }

    /// The dotted paths of `fields`.
    fn paths(&self) -> Vec<String> {
        table::paths(table::hidden_last(self.inner.schema())).map(|(path, _)| path).collect()
    }

    /// Number of fields that are not hidden.
    fn num_listed_fields(&self) -> usize {
        table::paths(self.inner.schema().fields.iter().filter(|field| !field.is_hidden())).count()
    }

    /// Stored sizes, from metadata only.
    fn sizes(&self, py: Python<'_>) -> PyResult<TableSizes> {
        let sizes = || {
            if let Some(tree) = self.inner.tree() {
                return Ok(tree::sizes(tree));
            }
            let ntuple = self.inner.ntuple()?;
            let summary = inspect::summary(ntuple)?;
            let paths = self.inner.schema().paths().into_iter().map(|(path, _)| path);
            let fields = paths.zip(inspect::paths(ntuple)?.iter().map(Sizes::from)).collect();
            Ok(TableSizes { metadata_bytes: summary.metadata_bytes, pages: Sizes::from(&summary.sizes), fields })
        };
        py.detach(sizes).or_raise(py)
    }

    /// Names of the linked attribute sets.
    fn attribute_sets(&self) -> Vec<String> {
        match self.inner.ntuple() {
            Ok(ntuple) => ntuple.attribute_sets().map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Opens an attribute set.
    fn attribute_set(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        let set = py.detach(|| self.inner.ntuple()?.attribute_set(name)).or_raise(py)?;
        Ok(Self { inner: set.into() })
    }

    /// The objects of a streamer field.
    fn objects(&self, py: Python<'_>, path: &str) -> PyResult<Objects> {
        let inner = py.detach(|| self.inner.ntuple()?.objects(path)).or_raise(py)?;
        Ok(Objects::from(inner))
    }

    /// The objects of a branch of a tree; see `Objects.decode`.
    fn tree_objects<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        entry_start: u64,
        entry_stop: u64,
        make_object: Bound<'py, PyAny>,
        make_opaque: Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let read = || match self.inner.tree() {
            Some(tree) => tree.objects(path, entry_start..entry_stop),
            None => Err(Error::invalid_argument("an ntuple has streamer fields in place of branches of objects")),
        };
        let values = cancellable(py, read)?;
        crate::objects::made(py, &values, make_object, make_opaque)
    }

    /// All entries of an attribute set.
    fn attributes(&self, py: Python<'_>, name: &str) -> PyResult<Attributes> {
        py.detach(|| self.inner.ntuple()?.attributes(name)).or_raise(py).map(Attributes::from)
    }

    /// The metadata of the program that wrote it.
    fn metadata(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let metadata = || match self.inner.tree() {
            Some(_) => Ok(BTreeMap::new()),
            None => self.inner.ntuple()?.metadata(),
        };
        py.detach(metadata).or_raise(py)
    }

    /// The `pyarrow.Schema` of the selection.
    fn arrow_schema<'py>(&self, py: Python<'py>, request: Request) -> PyResult<Bound<'py, PyAny>> {
        let select = || Ok(self.select(request)?.arrow_schema());
        let schema = py.detach(select).or_raise(py)?;
        arrow::schema(py, schema)
    }

    /// The same ntuple with read rules.
    fn with_rules(&self, py: Python<'_>, rules: Vec<Rule>) -> PyResult<Self> {
        let ruled = || {
            let rules = rules.into_iter().map(rules::rule).collect::<tupelo::Result<Vec<_>>>()?;
            self.inner.with_rules(rules)
        };
        Ok(py.detach(ruled).or_raise(py)?.into())
    }

    /// The same tree with another way of fetching baskets.
    fn with_tree_cache(&self, bytes: Option<u64>, learn_entries: u64) -> Self {
        self.inner.with_tree_cache(TreeCache { bytes, learn_entries }).into()
    }

    /// The selection as one `pyarrow.RecordBatch`.
    fn read<'py>(&self, py: Python<'py>, request: Request) -> PyResult<Bound<'py, PyAny>> {
        let batch = cancellable(py, || self.select(request)?.to_batch())?;
        arrow::batch(py, batch)
    }

    /// Read statistics by name; times are wall-clock and CPU time in seconds, `text` is a table.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(metrics) = self.inner.metrics() else { return Ok(None) };
        let counts = PyDict::new(py);
        counts.set_item("requests", metrics.requests)?;
        counts.set_item("retries", metrics.retries)?;
        counts.set_item("latency", metrics.latency().as_secs_f64())?;
        counts.set_item("read_bytes", metrics.read_bytes)?;
        counts.set_item("page_bytes", metrics.page_bytes)?;
        counts.set_item("pages", metrics.pages)?;
        counts.set_item("unpacked_bytes", metrics.unpacked_bytes)?;
        let times = [("read", metrics.read), ("decompress", metrics.decompress), ("decode", metrics.decode)];
        for (name, time) in times {
            let times = PyDict::new(py);
            times.set_item("wall", time.wall.as_secs_f64())?;
            times.set_item("cpu", time.cpu.as_secs_f64())?;
            counts.set_item(name, times)?;
        }
        counts.set_item("elapsed", metrics.elapsed.as_secs_f64())?;
        counts.set_item("idle", metrics.idle().as_secs_f64())?;
        counts.set_item("threads", metrics.threads)?;
        counts.set_item("text", metrics.to_string())?;
        Ok(Some(counts))
    }

    /// What reading the selection would do: numbers by name, `columns` with the same for each, and `text`, a table.
    fn explain<'py>(&self, py: Python<'py>, request: Request) -> PyResult<Bound<'py, PyDict>> {
        let explained = py.detach(|| self.select(request)?.explain()).or_raise(py)?;
        let column = |column: &ExplainedColumn| {
            let numbers = PyDict::new(py);
            numbers.set_item("field", &column.field)?;
            numbers.set_item("type", column.column_type)?;
            numbers.set_item("is_cut", column.is_cut)?;
            numbers.set_item("is_upper_bound", column.is_upper_bound)?;
            numbers.set_item("pages", column.pages)?;
            numbers.set_item("stored_bytes", column.stored_bytes)?;
            numbers.set_item("unpacked_bytes", column.unpacked_bytes)?;
            numbers.set_item("requests", column.requests)?;
            Ok(numbers)
        };
        let numbers = PyDict::new(py);
        numbers.set_item("entries", explained.entries)?;
        numbers.set_item("ruled_out", explained.ruled_out)?;
        numbers.set_item("zone_map_bytes", explained.zone_map_bytes)?;
        numbers.set_item("clusters", explained.clusters)?;
        numbers.set_item("pages", explained.pages())?;
        numbers.set_item("stored_bytes", explained.stored_bytes())?;
        numbers.set_item("unpacked_bytes", explained.unpacked_bytes())?;
        numbers.set_item("requests", explained.requests)?;
        numbers.set_item("columns", explained.columns.iter().map(column).collect::<PyResult<Vec<_>>>()?)?;
        numbers.set_item("text", explained.to_string())?;
        Ok(numbers)
    }

    /// What zone maps say of top-level fields in ranges of the entries, as a `pyarrow.RecordBatch`: start and stop of each range,
    /// then of each field the lowest and the highest value, NaN where nothing is known or a value is NaN, and the number of nulls.
    fn zones<'py>(&self, py: Python<'py>, request: Request, fields: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let zones = || {
            let names: Vec<&str> = fields.iter().map(String::as_str).collect();
            arrow::zones(&self.select(request)?.zones(&names), names.len())
        };
        arrow::batch(py, py.detach(zones).or_raise(py)?)
    }

    /// Single entries of the selection as one `pyarrow.RecordBatch`, in the order of a `pyarrow.UInt64Array`.
    fn take<'py>(&self, py: Python<'py>, request: Request, entries: PyArray) -> PyResult<Bound<'py, PyAny>> {
        let (entries, _) = entries.into_inner();
        let batch = cancellable(py, || {
            let wrong = || Error::invalid_argument("entry numbers must be 64-bit integers");
            let entries = entries.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
            self.select(request)?.take(entries.values())
        })?;
        arrow::batch(py, batch)
    }

    /// Writes the selection as an ntuple of another file, with the counters of its lists. `tell` is called with the
    /// number of entries that are done; an exception that it raises cancels the copy.
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn copy(
        &self,
        py: Python<'_>,
        request: Request,
        file: &FileWriter,
        path: &str,
        options: Options,
        renames: Vec<(String, String)>,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Copied> {
        let copied = telling(py, tell, |progress| {
            let how = CopyOptions::from(options.pages()).with_renames(renames);
            let (read, _) = self.select(request)?.with_counters()?;
            let options = options.to_write()?;
            file.with(|file| copy(read, file, path, options, how, progress))
        })?;
        let Some(copied) = copied else { return Ok(Copied::default()) };
        let mixed = copied.note().map(|what| format!("ntuple '{path}': {what}"));
        let (entries, mut warnings) = (copied.written.entries, copied.warnings);
        warnings.extend(mixed);
        Ok(Copied { entries, warnings })
    }

    /// The selection in batches of `batch_entries` entries, or of about `batch_bytes` bytes if given, before a cut is
    /// applied.
    #[pyo3(signature = (request, *, batch_entries=1, batch_bytes=None))]
    fn batches(
        &self,
        py: Python<'_>,
        request: Request,
        batch_entries: u64,
        batch_bytes: Option<u64>,
    ) -> PyResult<Batches> {
        let batches = || {
            let read = self.select(request)?;
            match batch_bytes {
                Some(bytes) => read.batches_of_bytes(bytes),
                None => read.batches(batch_entries),
            }
        };
        Ok(Batches { inner: Mutex::new(py.detach(batches).or_raise(py)?) })
    }

    /// The selection as an Arrow C stream in a capsule. Decoding does not need the interpreter.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        request: Request,
        batch_bytes: u64,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batches = || {
            let read = self.select(request)?;
            arrow::check_importable(&read.arrow_schema())?;
            read.batches_of_bytes(batch_bytes)
        };
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(py.detach(batches).or_raise(py)?.into_arrow());
        Bound::new(py, PyRecordBatchReader::new(reader))?.call_method1("__arrow_c_stream__", (requested_schema,))
    }
}

/// The fields of what reading gives, as [`Table::fields`] lists them: of an ntuple that is not open.
#[pyfunction]
pub(crate) fn schema_fields(py: Python<'_>, schema: PySchema) -> PyResult<Vec<FieldInfo>> {
    let read = || Ok(table::fields(py, Schema::from_arrow(&schema.into_inner())?.fields.iter()));
    read().or_raise(py)
}

/// What reading the fields that patterns choose gives, as a `pyarrow.RecordBatch` without entries: of the schema of an
/// ntuple that is not open.
#[pyfunction]
pub(crate) fn schema_choose(
    py: Python<'_>,
    schema: PySchema,
    patterns: Vec<String>,
    binary_strings: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let batch = tupelo::ops::index::choose(&schema.into_inner(), &patterns, binary_strings).or_raise(py)?;
    arrow::batch(py, batch)
}

/// A manifest of ntuples and trees, for planning distributed reads.
#[pyclass(module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Manifest {
    inner: tupelo::ops::index::Manifest,
}

#[pymethods]
impl Manifest {
    #[new]
    fn new() -> Self {
        Self { inner: tupelo::ops::index::Manifest::new() }
    }

    /// Adds an ntuple or a tree, without a reference to it.
    fn add(&mut self, py: Python<'_>, table: &Table) -> PyResult<()> {
        py.detach(|| self.inner.add(&table.inner)).or_raise(py)
    }

    /// The JSON document.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.inner.to_json().or_raise(py)
    }
}

/// Batches of a read request in entry order: an iterator.
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = || {
            // A panic does not leave the batches between two states: each call either advances or does not.
            let mut batches = lock(&self.inner)?;
            let start = batches.position();
            let next = batches.next().transpose()?;
            Ok(next.map(|batch| (start, batches.position(), batch)))
        };
        match cancellable(py, next)? {
            None => Ok(None),
            Some((entry_start, entry_stop, batch)) => {
                Ok(Some(Batch { entry_start, entry_stop, data: arrow::batch(py, batch)?.unbind() }))
            }
        }
    }
}
