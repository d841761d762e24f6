//! ROOT files, for reading.

mod object;

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tupelo::{OpenOptions, reader};

use self::object::FileObject;
use crate::error::{OrRaise, cancellable};
use crate::ntuple::Table;
use crate::objects;
use crate::storage::{Storage, or_default};
use crate::table::ObjectInfo;

/// A file, and the path of an object in it.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct Location {
    file: String,
    object: Option<String>,
}

/// Splits `FILE:NAME` into file and name.
#[pyfunction]
pub(crate) fn parse_location(text: &str) -> Location {
    let reader::Location { file, object } = reader::Location::parse(text);
    Location { file, object }
}

/// How to open a file, with the default budget for `None`.
pub(crate) fn open_options(path: &str, page_checksums: bool, memory_budget: Option<u64>) -> OpenOptions {
    let location = reader::Location { file: path.to_owned(), object: None };
    let options = OpenOptions::at(location).with_page_checksums(page_checksums);
    match memory_budget {
        Some(bytes) => options.with_memory_budget(bytes),
        None => options,
    }
}

/// An open ROOT file.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct File {
    inner: tupelo::File,
}

impl File {
    pub(crate) fn inner(&self) -> &tupelo::File {
        &self.inner
    }
}

#[pymethods]
impl File {
    /// Opens a file. `page_checksums` enables the verification of page checksums, `memory_budget` is a limit in bytes
    /// (None for the default), `metrics` enables read statistics, `storage` is for remote files, and `recover` rebuilds lost
    /// directories.
    #[new]
    #[pyo3(signature = (
        path, *, page_checksums=reader::DEFAULT_PAGE_CHECKSUMS, memory_budget=None, metrics=false, storage=None, recover=false
    ))]
    fn new(
        py: Python<'_>,
        path: &str,
        page_checksums: bool,
        memory_budget: Option<u64>,
        metrics: bool,
        storage: Option<&Storage>,
        recover: bool,
    ) -> PyResult<Self> {
        let open = || {
            let options = open_options(path, page_checksums, memory_budget).with_metrics(metrics);
            options.with_storage(or_default(storage)).with_recover(recover).open_file()
        };
        Ok(Self { inner: cancellable(py, open)? })
    }

    /// Opens a file in memory, with `name` in errors; otherwise as `new`.
    #[staticmethod]
    #[pyo3(signature = (name, data, *, page_checksums, memory_budget, metrics))]
    fn of_bytes(
        py: Python<'_>,
        name: &str,
        data: PyBackedBytes,
        page_checksums: bool,
        memory_budget: Option<u64>,
        metrics: bool,
    ) -> PyResult<Self> {
        let open = || {
            let file = tupelo::File::of_bytes(name, data)?.with_page_checksums(page_checksums);
            Ok(with_options(file, memory_budget, metrics))
        };
        Ok(Self { inner: py.detach(open).or_raise(py)? })
    }

    /// Opens a file of `size_bytes` bytes, whose ranges `read(starts, ends)` returns; otherwise as `of_bytes`.
    #[staticmethod]
    #[pyo3(signature = (name, size_bytes, read, *, page_checksums, memory_budget, metrics))]
    fn of_ranges(
        py: Python<'_>,
        name: &str,
        size_bytes: u64,
        read: Py<PyAny>,
        page_checksums: bool,
        memory_budget: Option<u64>,
        metrics: bool,
    ) -> PyResult<Self> {
        let open = || {
            let source = Arc::new(FileObject::new(name, size_bytes, read));
            let file = tupelo::File::new(source, page_checksums)?;
            Ok(with_options(file, memory_budget, metrics))
        };
        Ok(Self { inner: py.detach(open).or_raise(py)? })
    }

    /// The same file with directories that are rebuilt from the keys in it, if its own lead to nothing.
    fn recovered(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { inner: cancellable(py, || self.inner.clone().recovered())? })
    }

    /// Raises an error if the writer of the file did not save its directories.
    fn check_saved(&self, py: Python<'_>) -> PyResult<()> {
        cancellable(py, || self.inner.check_saved())
    }

    /// The rules of the format that the file breaks, as far as they are known.
    fn deviations(&self) -> Vec<String> {
        self.inner.deviations().iter().map(ToString::to_string).collect()
    }

    /// Size of the file in bytes, if known.
    #[getter]
    fn size_bytes(&self) -> Option<u64> {
        self.inner.size()
    }

    /// The UUID of the file, from its header.
    fn uuid(&self, py: Python<'_>) -> PyResult<[u8; 16]> {
        let (_, uuid) = py.detach(|| self.inner.header()).or_raise(py)?;
        Ok(uuid)
    }

    /// All objects in the directories with all cycles, in file order.
    fn objects(&self, py: Python<'_>) -> PyResult<Vec<ObjectInfo>> {
        let objects = cancellable(py, || self.inner.objects())?;
        Ok(objects.into_iter().map(ObjectInfo::from).collect())
    }

    /// Paths of the ntuples and the trees.
    fn table_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.inner.table_names()).or_raise(py)
    }

    /// Opens an ntuple or a tree by its path, or the only ntuple or, without ntuples, the only tree.
    fn table(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Table> {
        let inner = cancellable(py, || self.inner.table(name))?;
        Ok(Table::from(inner))
    }

    /// Decodes another object of the directories, as `Objects.decode` does.
    fn object<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        make_object: Bound<'py, PyAny>,
        make_opaque: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = cancellable(py, || self.inner.object(name))?;
        objects::to_python(&value, make_object, make_opaque)
    }
}

/// A file that was opened from an object of Python, with the other options.
fn with_options(file: tupelo::File, memory_budget: Option<u64>, metrics: bool) -> tupelo::File {
    let file = if metrics { file.with_metrics() } else { file };
    match memory_budget {
        Some(bytes) => file.with_memory_budget(bytes),
        None => file,
    }
}
