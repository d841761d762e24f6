//! Remote files.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tupelo::storage::{self, ByteSource, Cache};

use crate::error::{OrRaise, cancellable};

/// Options of remote files, by name, and the directory of a cache. It can be pickled, with its secrets.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    options: BTreeMap<String, String>,
    cache: Option<String>,
    pub(crate) inner: tupelo::Storage,
}

#[pymethods]
impl Storage {
    #[new]
    fn new(py: Python<'_>, options: BTreeMap<String, String>, cache: Option<String>) -> PyResult<Self> {
        let made = || -> tupelo::Result<_> {
            let given = storage::Options::new(&options);
            let inner =
                tupelo::Storage::new(given.map_err(|error| tupelo::Error::invalid_argument(error.to_string()))?);
            Ok(match &cache {
                Some(directory) => inner.with_cache(Cache::open(directory, Cache::DEFAULT_BYTES)?),
                None => inner,
            })
        };
        let inner = py.detach(made).or_raise(py)?;
        Ok(Self { options, cache, inner })
    }

    /// Opens a file or an object for reading.
    fn open(&self, py: Python<'_>, name: &str) -> PyResult<Source> {
        cancellable(py, || {
            let inner = self.inner.open(name)?;
            Ok(Source { size_bytes: inner.size()?, inner })
        })
    }

    fn __getnewargs__(&self) -> (BTreeMap<String, String>, Option<String>) {
        (self.options.clone(), self.cache.clone())
    }

    fn __eq__(&self, other: &Self) -> bool {
        (&self.options, &self.cache) == (&other.options, &other.cache)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.options, &self.cache).hash(&mut hasher);
        hasher.finish()
    }

    /// Without values, which may be secret.
    fn __repr__(&self) -> String {
        let names: Vec<_> = self.options.keys().map(|name| format!("{name}=…")).collect();
        format!("Storage({})", names.join(", "))
    }
}

/// The bytes of an open file or object.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Source {
    inner: Arc<dyn ByteSource>,
    /// Size in bytes when it was opened.
    #[pyo3(get)]
    size_bytes: u64,
}

#[pymethods]
impl Source {
    /// Reads ranges from first byte to end, in any order, by as few requests as the store allows.
    fn read_ranges<'py>(&self, py: Python<'py>, ranges: Vec<(u64, u64)>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let ranges: Vec<_> = ranges.into_iter().map(|(start, end)| start..end).collect();
        let found = cancellable(py, || Ok(self.inner.read_ranges(&ranges)?))?;
        Ok(found.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }
}

/// The given storage, or all defaults.
pub(crate) fn or_default(storage: Option<&Storage>) -> tupelo::Storage {
    storage.map_or_else(tupelo::Storage::default, |storage| storage.inner.clone())
}

/// A name without what may be secret.
#[pyfunction]
pub(crate) fn display_name(name: &str) -> String {
    storage::display_name(name)
}

/// Whether a name is the URI of an ntuple in an object store.
#[pyfunction]
pub(crate) fn is_object_uri(name: &str) -> bool {
    storage::is_object_uri(name)
}

/// Whether a name is a URL of another scheme than `file`.
#[pyfunction]
pub(crate) fn is_remote(name: &str) -> bool {
    storage::local_path(name).is_none()
}
