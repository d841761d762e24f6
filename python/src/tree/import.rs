//! Trees as ntuples.

use std::collections::HashSet;
use std::ops::ControlFlow;

use pyo3::prelude::*;
use tupelo::ops::import::{self, ImportOptions, ImportPlan, Importer};
use tupelo::reader::Skipped;
use tupelo::{Error, Tree};

use crate::error::{OrRaise, cancellable};
use crate::file::File;
use crate::ntuple::{Request, Table};
use crate::options::Options;
use crate::writer::FileWriter;

/// Branch, field, number of values that were compared, and the first entry in which they differ.
type ComparedRow = (String, String, u64, Option<u64>);

/// What becomes one ntuple: a selection of each tree.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Import {
    trees: Vec<Tree>,
    plans: Vec<ImportPlan>,
    skipped: Vec<Vec<Skipped>>,
}

#[pymethods]
impl Import {
    /// Plans the import of trees. `renames` are pairs of names; `dots` replaces dots in names; with `collections`, arrays
    /// with the same counter become one collection.
    #[new]
    fn new(
        py: Python<'_>,
        trees: Vec<(PyRef<'_, Table>, Request)>,
        renames: Vec<(String, String)>,
        dots: char,
        collections: bool,
    ) -> PyResult<Self> {
        let options = ImportOptions::default().with_renames(renames).with_dots(dots).with_collections(collections);
        let mut made = Self { trees: Vec::new(), plans: Vec::new(), skipped: Vec::new() };
        for (table, request) in trees {
            let plan = || {
                let found = table.inner().tree();
                let tree = found.ok_or_else(|| Error::invalid_argument("an ntuple cannot be imported; copy it"))?;
                let mut skipped = table.unreadable(&request);
                let (read, _) = table.select(request)?.with_counters()?;
                let plan = ImportPlan::new(tree, read, &options)?;
                skipped.extend_from_slice(plan.skipped());
                let plan = match made.plans.first() {
                    Some(first) => first.matched(plan)?,
                    None => plan,
                };
                Ok((tree.clone(), plan, skipped))
            };
            let (tree, plan, skipped) = plan().or_raise(py)?;
            made.skipped.push(skipped);
            made.trees.push(tree);
            made.plans.push(plan);
        }
        Ok(made)
    }

    /// Copies the objects of a file whose paths match and are not among `known`. Returns all known paths, and those of
    /// objects that were left out.
    #[staticmethod]
    fn copy_objects(
        py: Python<'_>,
        from_: &File,
        to: &FileWriter,
        patterns: Vec<String>,
        options: Options,
        mut known: HashSet<String>,
    ) -> PyResult<(HashSet<String>, Vec<String>)> {
        let left_out = cancellable(py, || {
            let compression = options.to_write()?.compression();
            to.with(|to| import::copy_objects(from_.inner(), to, &patterns, compression, &mut known))
        })?;
        Ok((known, left_out))
    }

    /// Branches and fields of each tree that are not imported, with the reason.
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
        let mut raised = None;
        let written = cancellable(py, || {
            let (Some(tree), Some(first)) = (self.trees.first(), self.plans.first()) else {
                return Err(Error::invalid_argument("no tree is imported"));
            };
            let options = options.to_write()?;
            file.with(|file| {
                let mut importer = Importer::create(first, tree, file, path, options)?;
                let mut before = 0;
                for plan in &self.plans {
                    let mut progress = |done: u64| match tell
                        .as_ref()
                        .map(|tell| Python::attach(|py| tell.call1(py, (before + done,))))
                    {
                        Some(Err(error)) => {
                            raised = Some(error);
                            ControlFlow::Break(())
                        }
                        None | Some(Ok(_)) => ControlFlow::Continue(()),
                    };
                    if importer.append(plan, &mut progress)?.is_break() {
                        return Ok(before);
                    }
                    before += plan.read().count();
                }
                importer.finish().map(|written| written.entries)
            })
        });
        match raised {
            Some(error) => Err(error),
            None => written,
        }
    }

    /// Compares at most `most` entries of each tree with the ntuple: their number, and a row for each field.
    fn compare(&self, py: Python<'_>, ntuple: &Table, most: u64) -> PyResult<(u64, Vec<ComparedRow>)> {
        let found = cancellable(py, || {
            import::validate(self.plans.iter().cloned().map(Ok::<_, Error>), ntuple.inner().ntuple()?, most)
        })?;
        let rows =
            found.fields.into_iter().map(|field| (field.branch, field.field, field.values, field.first_difference));
        Ok((found.entries, rows.collect()))
    }
}
