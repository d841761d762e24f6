//! Files that a Python object reads by ranges.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tupelo::storage::range::coalesce;
use tupelo::storage::{ByteSource, Error, ErrorKind, Hints, Result};

/// Ranges at most this many bytes apart (64 KiB) are merged: a call of Python costs more.
const GAP_BYTES: u64 = 64 << 10;
/// Maximum size of a request (8 MiB).
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// A source whose ranges a Python function returns: `read(starts, ends) -> list[bytes]`.
pub(crate) struct FileObject {
    name: String,
    size_bytes: u64,
    read: Py<PyAny>,
}

impl FileObject {
    pub(crate) fn new(name: &str, size_bytes: u64, read: Py<PyAny>) -> Self {
        Self { name: name.to_owned(), size_bytes, read }
    }

    fn call(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let action = || format!("read {} ranges of", ranges.len());
        if let Some(range) = ranges.iter().find(|range| range.start > range.end || range.end > self.size_bytes) {
            return Err(Error::out_of_range(range, self, self.size_bytes));
        }
        let answers: Vec<Bytes> = Python::attach(|py| {
            let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            let ends: Vec<u64> = ranges.iter().map(|range| range.end).collect();
            let answers: Vec<PyBackedBytes> = self.read.call1(py, (starts, ends))?.extract(py)?;
            Ok(answers.into_iter().map(Bytes::from_owner).collect())
        })
        .map_err(|error: PyErr| Error::new(ErrorKind::Other, action(), self, error.to_string()))?;
        let expected = ranges.iter().map(|range| range.end - range.start);
        if !expected.eq(answers.iter().map(|answer| answer.len() as u64)) {
            return Err(Error::new(
                ErrorKind::Other,
                action(),
                self,
                "the file object returned other numbers of bytes",
            ));
        }
        Ok(answers)
    }
}

impl ByteSource for FileObject {
    fn size(&self) -> Result<u64> {
        Ok(self.size_bytes)
    }

    fn hints(&self) -> Hints {
        Hints { gap_bytes: GAP_BYTES, max_request_bytes: MAX_REQUEST_BYTES, concurrency: 1 }
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.call(&[range])?.pop().unwrap_or_default())
    }

    /// By one call, which may run its requests at the same time.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let plan = coalesce(ranges, GAP_BYTES, MAX_REQUEST_BYTES);
        Ok(plan.cut(&self.call(plan.requests())?))
    }
}

impl fmt::Display for FileObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for FileObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileObject({})", self.name)
    }
}
