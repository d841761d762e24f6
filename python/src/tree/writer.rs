//! Writing trees.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3_arrow::PySchema;
use pyo3_arrow::input::AnyRecordBatch;
use tupelo::Error;
use tupelo::schema::Schema;
use tupelo::writer::{Jagged, TreeOptions};

use crate::error::{OrRaise, cancellable, lock};
use crate::options::parse_compression;
use crate::writer::{FileWriter, closed};

/// Every key is required. None means the default of the engine.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    title: String,
    compression: Option<String>,
    auto_flush: Option<i64>,
    basket_bytes: Option<u32>,
    optimise_baskets: bool,
    split_level: Option<u8>,
    jagged: String,
}

impl Options {
    fn to_tree(&self) -> tupelo::Result<TreeOptions> {
        let jagged = match self.jagged.as_str() {
            "counter" => Jagged::Counter,
            "vector" => Jagged::Vector,
            "same" => Jagged::Same,
            other => {
                let what = format!("jagged is '{other}'; expected 'counter', 'vector' or 'same'");
                return Err(Error::invalid_argument(what));
            }
        };
        let mut options = TreeOptions::default()
            .with_title(&self.title)
            .with_optimised_baskets(self.optimise_baskets)
            .with_jagged(jagged);
        if let Some(text) = &self.compression {
            options = options.with_compression(parse_compression(text)?);
        }
        if let Some(auto_flush) = self.auto_flush {
            options = options.with_auto_flush(auto_flush);
        }
        if let Some(bytes) = self.basket_bytes {
            options = options.with_basket_bytes(bytes);
        }
        if let Some(level) = self.split_level {
            options = options.with_split_level(level);
        }
        Ok(options)
    }
}

/// A tree that is being written.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct TreeWriter {
    inner: Mutex<Option<tupelo::writer::TreeWriter>>,
}

impl TreeWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut tupelo::writer::TreeWriter) -> tupelo::Result<T> + Send,
    ) -> PyResult<T> {
        cancellable(py, || call(lock(&self.inner)?.as_mut().ok_or_else(|| closed("tree"))?))
    }
}

#[pymethods]
impl TreeWriter {
    /// Creates a tree with the path `DIRECTORY/NAME` for an Arrow schema.
    #[new]
    fn new(py: Python<'_>, file: &FileWriter, path: &str, schema: PySchema, options: Options) -> PyResult<Self> {
        let schema = schema.into_inner();
        let begin = || file.with(|file| file.tree(path, &Schema::from_arrow(&schema)?, options.to_tree()?));
        Ok(Self { inner: Mutex::new(Some(py.detach(begin).or_raise(py)?)) })
    }

    /// Entries written so far; 0 once it is finished.
    #[getter]
    fn num_entries(&self, py: Python<'_>) -> PyResult<u64> {
        let entries = || Ok(lock(&self.inner)?.as_ref().map_or(0, tupelo::writer::TreeWriter::entries));
        py.detach(entries).or_raise(py)
    }

    /// Appends all entries of an object with the Arrow C data or stream interface.
    fn write(&self, py: Python<'_>, data: AnyRecordBatch) -> PyResult<()> {
        let batches = data.into_reader()?.collect::<Result<Vec<_>, _>>().map_err(Error::from).or_raise(py)?;
        self.with(py, |writer| batches.iter().try_for_each(|batch| writer.write(batch)))
    }

    /// Ends the open cluster.
    fn flush_cluster(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, tupelo::writer::TreeWriter::flush_cluster)
    }

    /// Aborts the tree and removes it. Does nothing if it is finished.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| lock(&self.inner)?.take().map_or(Ok(()), tupelo::writer::TreeWriter::abandon)).or_raise(py)
    }

    /// Finishes the tree; returns the number of entries.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let written = self.with(py, tupelo::writer::TreeWriter::finish)?;
        py.detach(|| lock(&self.inner).map(|mut writer| drop(writer.take()))).or_raise(py)?;
        Ok(written.entries)
    }
}
