//! Files of other formats being read, as record batches.
//!
//! A file is read several times: for its types, for missing values, to be written, and to be compared. So it must be a
//! local file. What it says of sizes is compared with what it has before memory is allocated.

mod arrow;
mod convert;
mod csv;
mod guard;
mod json;
mod lines;
mod npy;
mod npz;
mod parquet;
mod pieces;
mod stored;

use std::fmt;
// FS: a file of another format; the storage of the engine is for ROOT files.
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};

pub(crate) use self::convert::{convert, convert_batch, read_back};
pub(crate) use self::stored::{Stored, either, same_type, stored};
use super::Format;
use crate::failure::Failure;

/// Default number of entries from which the types in a text are inferred.
pub(crate) const INFERRED_ENTRIES: usize = 10_000;
/// Memory of a batch, in bytes.
const BATCH_BYTES: u64 = 16 << 20;
/// Maximum number of entries in a batch of values that may be stored once for many of them, as in dictionaries.
const BATCH_ENTRIES: u64 = 1 << 14;
/// Maximum number of entries in a batch of values that are stored one by one.
const PLAIN_BATCH_ENTRIES: u64 = 1 << 20;
/// Key of the metadata of columns of an unknown type, with the reason.
const REFUSED: &str = "tupelo.refused";

/// What reading is limited to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Entries from which the types in a text are inferred.
    pub(crate) inferred: usize,
    /// What is between the values of a line of CSV, if that was given.
    pub(crate) delimiter: Option<u8>,
    /// Memory that a batch or an entry of a file may take, in bytes.
    pub(crate) memory: u64,
}

/// Batches of a file, in order.
pub(crate) type Batches<'f> = Box<dyn Iterator<Item = Result<RecordBatch, Failure>> + 'f>;

/// A file of another format.
pub(crate) trait ForeignFile {
    /// Its columns.
    fn schema(&self) -> &SchemaRef;

    /// Number of entries, if it is known before they are read. That of texts is not.
    fn entries(&self) -> Option<u64> {
        None
    }

    /// Whether it is known before a column is read that none of its values is missing.
    fn is_complete(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// Some columns, in ascending order, of a range of entries.
    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure>;
}

/// Opens a file. Texts have the columns and types of another file, if one is given.
pub(crate) fn open(
    path: &Path,
    format: Format,
    limits: Limits,
    like: Option<&SchemaRef>,
) -> Result<Box<dyn ForeignFile>, Failure> {
    let place = Place::of(path)?;
    Ok(match format {
        Format::Parquet => Box::new(parquet::ParquetFile::open(place)?),
        Format::Arrow => Box::new(arrow::ArrowFile::open(place, limits)?),
        Format::Csv => Box::new(csv::CsvFile::open(place, limits, like)?),
        Format::Jsonl => Box::new(json::JsonFile::open(place, limits, like)?),
        Format::Npy => Box::new(npy::NpyFile::open(place, limits)?),
        Format::Npz => Box::new(npz::NpzFile::open(place, limits)?),
    })
}

/// An open file with its name.
struct Place {
    name: String,
    file: File,
    bytes: u64,
}

impl Place {
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failed = |error| Failure::new(format_args!("{name}: cannot be read: {error}"));
        // FS: a file of another format; the storage of the engine is for ROOT files.
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let refused = Failure::usage(format_args!("{name}: expected a regular file, which is read several times"));
            return Err(refused.with_hint("write the data to a file first"));
        }
        Ok(Self { bytes: metadata.len(), name, file })
    }

    /// An error of this file.
    fn failure(&self, what: impl fmt::Display) -> Failure {
        Failure::new(format_args!("{}: {what}", self.name))
    }

    /// Another handle, whose position is its own only until the next seek.
    fn handle(&self) -> Result<File, Failure> {
        self.file.try_clone().map_err(|error| self.failure(format_args!("cannot be read: {error}")))
    }

    /// A handle at the beginning.
    fn rewound(&self) -> Result<File, Failure> {
        use std::io::Seek;
        let mut file = self.handle()?;
        file.rewind().map_err(|error| self.failure(format_args!("cannot be read: {error}")))?;
        Ok(file)
    }
}

/// Entries of a batch that takes the usual memory.
fn batch_entries(bytes_per_entry: u64, most: u64) -> u64 {
    (BATCH_BYTES / bytes_per_entry.max(1)).clamp(1, most)
}

/// A column of an unknown type.
fn refused(name: &str, reason: &str) -> Field {
    let metadata = [(REFUSED.to_owned(), reason.to_owned())];
    Field::new(name, DataType::Null, true).with_metadata(metadata.into())
}

/// The rows of batches that are in a range of entries. The first row is entry `first`.
fn in_range<'f>(
    batches: impl Iterator<Item = Result<RecordBatch, Failure>> + 'f,
    mut first: u64,
    range: Range<u64>,
) -> Batches<'f> {
    let mut batches = batches.fuse();
    Box::new(std::iter::from_fn(move || {
        while first < range.end {
            let batch = match batches.next()? {
                Ok(batch) => batch,
                Err(failure) => return Some(Err(failure)),
            };
            let count = batch.num_rows() as u64;
            let (start, end) = (range.start.max(first), range.end.min(first + count));
            let skipped = start - first;
            first += count;
            if start < end {
                return Some(Ok(batch.slice(skipped as usize, (end - start) as usize)));
            }
        }
        None
    }))
}
