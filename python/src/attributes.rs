//! Attribute sets: values for ranges of entries.

use std::ops::Range;
use std::sync::Mutex;

use arrow_array::RecordBatchReader;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use tupelo::reader;
use tupelo::writer;

use crate::arrow;
use crate::error::OrRaise;
use crate::error::lock;

/// The entries of an attribute set.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Attributes {
    inner: reader::Attributes,
}

impl From<reader::Attributes> for Attributes {
    fn from(inner: reader::Attributes) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Attributes {
    /// Start and end of the entry ranges.
    fn ranges(&self) -> (Vec<u64>, Vec<u64>) {
        self.inner.ranges().iter().map(|range| (range.start, range.end)).unzip()
    }

    /// The values, as a `pyarrow.RecordBatch`.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrow::batch(py, self.inner.values().clone())
    }

    /// Positions of the ranges that contain an entry.
    fn of_entry(&self, py: Python<'_>, entry: u64) -> PyResult<Self> {
        self.inner.of_entry(entry).or_raise(py).map(Self::from)
    }

    /// Positions of the ranges that contain all entries of a range.
    fn containing(&self, py: Python<'_>, entry_start: u64, entry_stop: u64) -> PyResult<Self> {
        self.inner.containing(entry_start..entry_stop).or_raise(py).map(Self::from)
    }

    /// Positions of the ranges that overlap a range.
    fn overlapping(&self, py: Python<'_>, entry_start: u64, entry_stop: u64) -> PyResult<Self> {
        self.inner.overlapping(entry_start..entry_stop).or_raise(py).map(Self::from)
    }

    /// Positions of the ranges within a range.
    fn within(&self, py: Python<'_>, entry_start: u64, entry_stop: u64) -> PyResult<Self> {
        self.inner.within(entry_start..entry_stop).or_raise(py).map(Self::from)
    }
}

/// An attribute set being written.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct AttributeSetWriter {
    inner: Mutex<writer::AttributeSetWriter>,
}

impl From<writer::AttributeSetWriter> for AttributeSetWriter {
    fn from(inner: writer::AttributeSetWriter) -> Self {
        Self { inner: Mutex::new(inner) }
    }
}

#[pymethods]
impl AttributeSetWriter {
    /// Appends values: item `i` of the data applies to the entries from `starts[i]` to `stops[i]`, exclusive.
    fn write(&self, py: Python<'_>, starts: Vec<u64>, stops: Vec<u64>, data: AnyRecordBatch) -> PyResult<()> {
        let reader = data.into_reader()?;
        let write = || {
            let schema = reader.schema();
            let batches = reader.collect::<Result<Vec<_>, _>>()?;
            let rows = arrow_select::concat::concat_batches(&schema, &batches)?;
            let ranges: Vec<Range<u64>> = starts.into_iter().zip(stops).map(|(start, stop)| start..stop).collect();
            lock(&self.inner)?.write(&ranges, &rows)
        };
        py.detach(write).or_raise(py)
    }
}
