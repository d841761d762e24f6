//! Many files: patterns, chains, common fields and unions of fields.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3_arrow::PySchema;
use tupelo::dataset::{FieldPolicy, opened_at_once};
use tupelo::ops::export::{self, OriginalTrees};
use tupelo::ops::merge::{self, MissingBranches, UnlikeBranches};
use tupelo::reader::{Location, Unmatched};
use tupelo::writer::TreeOptions;
use tupelo::{Error, MoveOptions, Table as Source};

use crate::arrow;
use crate::error::{OrRaise, cancellable, lock, telling};
use crate::file::open_options;
use crate::ntuple::Table;
use crate::options::Options;
use crate::storage::{Storage, or_default};
use crate::writer::FileWriter;

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

/// An open table, or a file and the path of a table in it; `None` stands for the only one.
#[derive(FromPyObject)]
pub(crate) enum TableSource {
    Open(Py<Table>),
    Stored(String, Option<String>),
}

/// The tables of several files, one after the other. `fields` is "common", "union" or "defaults". With `allow_missing`, files
/// without such a table are left out.
#[pyfunction]
#[pyo3(signature = (places, *, fields, allow_missing, page_checksums, memory_budget, storage=None))]
pub(crate) fn chain(
    py: Python<'_>,
    places: Vec<TableSource>,
    fields: &str,
    allow_missing: bool,
    page_checksums: bool,
    memory_budget: Option<u64>,
    storage: Option<&Storage>,
) -> PyResult<Table> {
    let storage = or_default(storage);
    let files = places.iter().filter_map(|place| match place {
        TableSource::Open(_) => None,
        TableSource::Stored(file, _) => Some(file.as_str()),
    });
    let (count, at_once) = (places.len(), opened_at_once(files));
    let policy = match fields {
        "union" => FieldPolicy::Union,
        "defaults" => FieldPolicy::Defaults,
        _ => FieldPolicy::Common,
    };
    let open = move |number: usize| {
        let (file, object) = match &places[number] {
            TableSource::Open(table) => return Ok(Some(table.get().inner().clone())),
            TableSource::Stored(file, object) => (file, object),
        };
        let options = open_options(file, page_checksums, memory_budget).with_storage(storage.clone());
        match options.open_file()?.table(object.as_deref()) {
            Err(error) if allow_missing && error.is_not_found() => Ok(None),
            table => table.map(Some),
        }
    };
    Ok(cancellable(py, || Source::chain(count, at_once, policy, open))?.into())
}

/// The fields of several tables side by side, each with a prefix: by entry, or by keys.
#[pyfunction]
#[pyo3(signature = (tables, prefixes, *, on, unmatched))]
pub(crate) fn join(
    py: Python<'_>,
    tables: Vec<Py<Table>>,
    prefixes: Vec<String>,
    on: Vec<String>,
    unmatched: &str,
) -> PyResult<Table> {
    let unmatched = match unmatched {
        "null" => Unmatched::Null,
        "drop" => Unmatched::Drop,
        _ => Unmatched::Error,
    };
    let tables: Vec<Source> = tables.iter().map(|table| table.get().inner().clone()).collect();
    let sides = prefixes.into_iter().zip(tables);
    let joined = cancellable(py, || match on.is_empty() {
        true => Source::join(sides),
        false => Source::join_by(sides, on, unmatched),
    })?;
    Ok(joined.into())
}

/// A tree together with its friends.
#[pyfunction]
#[pyo3(signature = (table, *, page_checksums, memory_budget, storage=None))]
pub(crate) fn with_friends(
    py: Python<'_>,
    table: &Table,
    page_checksums: bool,
    memory_budget: Option<u64>,
    storage: Option<&Storage>,
) -> PyResult<Table> {
    let storage = or_default(storage);
    let open = |location: &Location| {
        let options = open_options(&location.file, page_checksums, memory_budget).with_storage(storage.clone());
        options.open_file()?.table(location.object.as_deref())
    };
    Ok(cancellable(py, || table.inner().with_friends(open))?.into())
}

/// What became of the objects of several files.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct MergedObjects {
    /// Number of objects that were written.
    written: u64,
    /// Number of histograms that are sums.
    sums: u64,
    /// Paths of objects of later files that were left out, and why.
    left_out: Vec<(String, String)>,
}

/// Writes the objects of files that are neither ntuples nor trees; histograms of the same path are summed.
#[pyfunction]
#[pyo3(signature = (files, to, options, storage=None))]
pub(crate) fn merge_objects(
    py: Python<'_>,
    files: Vec<String>,
    to: &FileWriter,
    options: Options,
    storage: Option<&Storage>,
) -> PyResult<MergedObjects> {
    let storage = or_default(storage);
    let merged = cancellable(py, || {
        let compression = options.to_write()?.compression();
        let open = |number: usize| open_options(&files[number], true, None).with_storage(storage.clone()).open_file();
        to.with(|to| merge::merge_objects(files.len(), open, to, compression))
    })?;
    let left_out = merged.left_out.into_iter().map(|it| (it.name, it.reason)).collect();
    Ok(MergedObjects { written: merged.written, sums: merged.sums, left_out })
}

/// Writes the entries of trees as one tree; the entries that were written, or `None`, and what was left out.
#[pyfunction]
#[pyo3(signature = (path, trees, mode, to, options, storage=None))]
pub(crate) fn merge_tree(
    py: Python<'_>,
    path: &str,
    trees: Vec<(String, String)>,
    mode: &str,
    to: &FileWriter,
    options: Options,
    storage: Option<&Storage>,
) -> PyResult<(Option<u64>, Vec<String>)> {
    let storage = or_default(storage);
    let merged = telling(py, None, |progress| {
        let count = trees.len();
        let table = move |number: usize| {
            let (file, name) = &trees[number];
            open_options(file, true, None).with_storage(storage.clone()).open_file()?.table(Some(name))
        };
        let open = |number: usize| match table(number)? {
            Source::Tree(tree) => Ok(tree),
            other => Err(Error::invalid_argument(format!("{}: not a tree", other.file_name()))),
        };
        let (compression, mut left_out) = (options.compression()?, Vec::new());
        let missing = match mode {
            "union" => MissingBranches::Fill,
            "intersect" => MissingBranches::Drop,
            _ => MissingBranches::Refuse,
        };
        let unlike = match missing {
            MissingBranches::Refuse => UnlikeBranches::default(),
            _ => UnlikeBranches::of(count, open)?,
        };
        let moving = MoveOptions::default().with_compression(compression);
        let Some(moving) = missing.moving(&unlike, moving) else {
            let mut how = TreeOptions::of(&open(0)?);
            if let Some(compression) = compression {
                how = how.with_compression(compression);
            }
            let table = table.clone();
            let all = Source::chain(count, 1, missing.policy(), move |number| table(number).map(Some))?;
            if let Some(missing) = all.files().and_then(|files| files.missing_text::<&str>(&[], &[])) {
                left_out.push(format!("some files lack the branches {missing}"));
            }
            let read = all.read_all();
            let mut originals = OriginalTrees::of(&read);
            for number in 0..count {
                originals.add(&open(number)?);
            }
            let rewritten = to.with(|to| export::rewrite(read, originals, to, path, how, progress))?;
            let Some(rewritten) = rewritten else { return Ok(None) };
            let renamed = rewritten.renamed.iter().map(|(from, to)| format!("class {from} is stored as {to}"));
            left_out.extend(rewritten.left_out.into_iter().chain(renamed));
            return Ok(Some((rewritten.written, left_out)));
        };
        if !unlike.missing.is_empty() {
            left_out.push(format!("some files lack the branches {}", unlike.missing.join(", ")));
        }
        let merged = to.with(|to| merge::merge_tree(path, count, open, to, moving, progress))?;
        Ok(merged.map(|merged| {
            left_out.extend(merged.left_out.into_iter().map(|it| it.reason));
            (merged.written, left_out)
        }))
    })?;
    let (written, left_out) = merged.unwrap_or_default();
    Ok((written.map(|written| written.entries), left_out))
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
