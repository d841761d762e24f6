//! Trees as ntuples.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tupelo::ops::import::{self, ImportOptions, ImportPlan};
use tupelo::reader::Skipped;
use tupelo::{Error, Tree};

use crate::error::{OrRaise, cancellable};
use crate::file::File;
use crate::ntuple::{Request, Table};
use crate::options::Options;
use crate::writer::FileWriter;

/// What was compared of a field.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct ComparedField {
    branch: String,
    field: String,
    num_values: u64,
    /// The first entry in which they differ.
    first_difference: Option<u64>,
}

/// The trees and the ntuple, compared.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    entries: u64,
    fields: Vec<ComparedField>,
}

/// Objects of a file that were copied.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct CopiedObjects {
    /// All paths that are known now.
    known: HashSet<String>,
    /// Paths of the objects that were left out.
    left_out: Vec<String>,
}

/// Trees that become one ntuple; a selection of them is imported.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Import {
    inner: import::Import,
    options: ImportOptions,
    /// A function that opens a tree again, by its number: the table and the request.
    open: Py<PyAny>,
    skipped: Vec<Vec<Skipped>>,
}

/// The plan for what a request selects of a tree, and what is left out.
fn plan(table: &Table, request: Request, options: &ImportOptions) -> Result<(Tree, ImportPlan, Vec<Skipped>), Error> {
    let found = table.inner().tree();
    let tree = found.ok_or_else(|| Error::invalid_argument("an ntuple cannot be imported; copy it"))?;
    let mut skipped = table.unreadable(&request);
    let (read, _) = table.select(request)?.with_counters()?;
    let plan = ImportPlan::new(tree, read, options)?;
    skipped.extend_from_slice(plan.skipped());
    Ok((tree.clone(), plan, skipped))
}

impl Import {
    /// Runs work that opens trees again. What `open` raises cancels it, as signal handlers do.
    fn opening<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Raised, &dyn Fn(usize) -> Result<(Tree, ImportPlan), Error>) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let raised = Raised::default();
        let done = cancellable(py, || {
            let open = |number: usize| {
                let opened = Python::attach(|py| {
                    let opened = self.open.call1(py, (number,))?;
                    opened
                        .extract::<(PyRef<'_, Table>, Request)>(py)
                        .map(|(table, request)| (Table::from(table.inner().clone()), request))
                });
                let (table, request) = opened.map_err(|error| raised.keep(error))?;
                let (tree, plan, _) = plan(&table, request, &self.options)?;
                Ok((tree, plan))
            };
            work(&raised, &open)
        });
        raised.or(done)
    }
}

/// What a function of the caller raised in the engine.
#[derive(Default)]
struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    /// An error of the engine for an exception, which is raised in its place.
    fn keep(&self, error: PyErr) -> Error {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Error::invalid_argument("a function of the caller failed")
    }

    fn or<T>(self, done: PyResult<T>) -> PyResult<T> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(done, Err)
    }
}

#[pymethods]
impl Import {
    /// Plans the import of `trees`, an iterable of tables with requests, which are closed as far as nothing else keeps them
    /// open; `open` opens one again. `renames` are pairs of names; `dots` replaces dots in names; with `collections`,
    /// arrays with the same counter become one collection.
    #[new]
    fn new(
        py: Python<'_>,
        trees: &Bound<'_, PyAny>,
        open: Py<PyAny>,
        renames: Vec<(String, String)>,
        dots: char,
        collections: bool,
    ) -> PyResult<Self> {
        let options = ImportOptions::default().with_renames(renames).with_dots(dots).with_collections(collections);
        let (mut inner, mut skipped) = (None, Vec::new());
        for tree in trees.try_iter()? {
            let (table, request) = tree?.extract::<(PyRef<'_, Table>, Request)>()?;
            let add = || {
                let (tree, plan, left_out) = plan(&table, request, &options)?;
                skipped.push(left_out);
                match &mut inner {
                    Some(inner) => import::Import::add(inner, &tree, plan),
                    none => {
                        *none = Some(import::Import::new(tree, plan)?);
                        Ok(())
                    }
                }
            };
            add().or_raise(py)?;
        }
        let inner = inner.ok_or_else(|| Error::invalid_argument("the list of files is empty")).or_raise(py)?;
        Ok(Self { inner, options, open, skipped })
    }

    /// Number of entries of all trees.
    #[getter]
    fn entries(&self) -> u64 {
        self.inner.count()
    }

    /// Path of the first tree.
    #[getter]
    fn path(&self) -> &str {
        self.inner.tree().path()
    }

    /// Copies the objects of a file whose paths match and are not among `known`.
    #[staticmethod]
    fn copy_objects(
        py: Python<'_>,
        from_: &File,
        to: &FileWriter,
        patterns: Vec<String>,
        options: Options,
        mut known: HashSet<String>,
    ) -> PyResult<CopiedObjects> {
        let left_out = cancellable(py, || {
            let compression = options.to_write()?.compression();
            to.with(|to| import::copy_objects(from_.inner(), to, &patterns, compression, &mut known))
        })?;
        Ok(CopiedObjects { known, left_out })
    }

    /// Branches and fields of each tree that are not imported: pairs of name and reason.
    fn skipped(&self) -> Vec<Vec<(String, String)>> {
        let pairs = |skipped: &Vec<Skipped>| skipped.iter().map(|it| (it.name.clone(), it.reason.clone())).collect();
        self.skipped.iter().map(pairs).collect()
    }

    /// Writes the ntuple; returns the number of entries. `tell` is called with the number of entries that are done; an
    /// exception that it raises cancels the import.
    fn write(
        &self,
        py: Python<'_>,
        file: &FileWriter,
        path: &str,
        options: Options,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.opening(py, |raised, open| {
            let options = options.to_write()?;
            let mut cancelled = None;
            let mut progress = |done: u64| match tell.as_ref().map(|tell| Python::attach(|py| tell.call1(py, (done,))))
            {
                Some(Err(error)) => {
                    cancelled = Some(raised.keep(error));
                    ControlFlow::Break(())
                }
                None | Some(Ok(_)) => ControlFlow::Continue(()),
            };
            let written = file.with(|file| self.inner.write(file, path, options, open, &mut progress))?;
            match cancelled {
                Some(cancelled) => Err(cancelled),
                None => Ok(written.map_or(0, |written| written.entries)),
            }
        })
    }

    /// Compares at most `most` entries of each tree with the ntuple.
    fn compare(&self, py: Python<'_>, ntuple: &Table, most: u64) -> PyResult<Comparison> {
        let found = self.opening(py, |_, open| self.inner.validate(ntuple.inner().ntuple()?, most, open))?;
        let fields = found.fields.into_iter().map(|field| ComparedField {
            branch: field.branch,
            field: field.field,
            num_values: field.values,
            first_difference: field.first_difference,
        });
        Ok(Comparison { entries: found.entries, fields: fields.collect() })
    }
}
