//! Trees as ntuples.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use pyo3::prelude::*;
use tupelo::Error;
use tupelo::ops::import::{self, ImportOptions};
use tupelo::reader::Skipped;

use crate::error::{cancellable, telling};
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

/// Trees that become one ntuple.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Import {
    inner: import::Import,
    skipped: Vec<Skipped>,
}

/// The import of what a request selects, and what is left out.
fn planned(table: &Table, request: Request, options: &ImportOptions) -> Result<Import, Error> {
    table.check_complete(&request)?;
    let mut skipped = table.unreadable(&request);
    let (read, _) = table.select(request)?.with_counters()?;
    let inner = import::Import::new(read, options)?;
    inner.check()?;
    skipped.extend_from_slice(inner.skipped());
    Ok(Import { inner, skipped })
}

#[pymethods]
impl Import {
    /// Plans the import of what a request selects of a tree, or of those of several files, in ranges of entries. `renames`
    /// are pairs of names; `dots` replaces dots in names; with `collections`, arrays with the same counter become one
    /// collection, and with `class_names`, records have the names of their classes.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        py: Python<'_>,
        table: &Table,
        request: Request,
        ranges: Vec<(u64, u64)>,
        renames: Vec<(String, String)>,
        dots: char,
        collections: bool,
        class_names: bool,
    ) -> PyResult<Self> {
        let options = ImportOptions::default().with_renames(renames).with_dots(dots);
        let options = options.with_collections(collections).with_class_names(class_names);
        let planned = cancellable(py, || planned(table, request, &options))?;
        let ranges = ranges.into_iter().map(|(start, end)| Range { start, end }).collect();
        Ok(Self { inner: planned.inner.with_ranges(ranges), ..planned })
    }

    /// Number of entries to import.
    #[getter]
    fn entries(&self) -> u64 {
        self.inner.count()
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

    /// Branches and fields that are not imported: pairs of name and reason.
    fn skipped(&self) -> Vec<(String, String)> {
        self.skipped.iter().map(|it| (it.name.clone(), it.reason.clone())).collect()
    }

    /// What trees have besides branches, which an ntuple cannot hold.
    fn not_kept(&self) -> Vec<String> {
        self.inner.not_kept().to_vec()
    }

    /// Classes and containers that are stored as others, and these; empty for records without a name.
    fn renamed(&self) -> BTreeMap<String, String> {
        self.inner.renamed().clone()
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
        let written = telling(py, tell, |progress| {
            let options = options.to_write()?;
            file.with(|file| self.inner.write(file, path, options, progress))
        })?;
        Ok(written.map_or(0, |written| written.entries))
    }

    /// Compares at most `most` entries of each range of each tree with the ntuple.
    fn compare(&self, py: Python<'_>, ntuple: &Table, most: u64) -> PyResult<Comparison> {
        let found = cancellable(py, || self.inner.validate(ntuple.inner().ntuple()?, most))?;
        let fields = found.fields.into_iter().map(|field| ComparedField {
            branch: field.branch,
            field: field.field,
            num_values: field.values,
            first_difference: field.first_difference,
        });
        Ok(Comparison { entries: found.entries, fields: fields.collect() })
    }
}
