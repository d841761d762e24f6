//! NumPy arrays: `.npy`.
//!
//! The crate `npyz` is not used: it takes any memory that a header asks for, and its parser any depth of brackets.

mod header;
mod places;
mod values;

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

pub(super) use self::header::Header;
pub(super) use self::places::Places;
pub(super) use self::values::{Dtype, field, values};
use super::{Batches, ForeignFile, Limits, PLAIN_BATCH_ENTRIES, Place, batch_entries};
use crate::failure::Failure;

/// The column of an array that is not structured.
const COLUMN: &str = "data";

/// A `.npy` file.
pub(super) struct NpyFile {
    place: Place,
    schema: SchemaRef,
    /// The columns, each with its place in an entry.
    columns: Vec<(usize, Dtype)>,
    entries: u64,
    entry_bytes: usize,
    /// Where the entries begin.
    start: u64,
}

impl NpyFile {
    pub(super) fn open(place: Place, limits: Limits) -> Result<Self, Failure> {
        let mut input = BufReader::new(place.rewound()?);
        let header = Header::read(&mut input).map_err(|what| place.failure(what))?;
        let entry_bytes = header.entry_bytes(limits.memory).map_err(|what| place.failure(what))?;
        let start = header.length;
        let (needed, left) = ((entry_bytes as u64).checked_mul(header.entries), place.bytes.saturating_sub(start));
        if needed.is_none_or(|needed| needed > left) {
            let needed = needed.map_or("more than 2⁶⁴".to_owned(), |needed| needed.to_string());
            let what = format!("expected {needed} bytes of values, {left} left; copy the file again");
            return Err(place.failure(what));
        }
        let entries = header.entries;
        let (names, columns): (Vec<String>, Vec<(usize, Dtype)>) = match header.entry {
            Dtype::Record(members) => {
                // Those without a name are padding.
                let named = members.into_iter().filter(|member| !member.name.is_empty());
                named.map(|member| (member.name, (member.offset, member.dtype))).unzip()
            }
            dtype => (vec![COLUMN.to_owned()], vec![(0, dtype)]),
        };
        let fields: Vec<Field> = names.iter().zip(&columns).map(|(name, (_, dtype))| field(name, dtype)).collect();
        Ok(Self { place, schema: Arc::new(Schema::new(fields)), columns, entries, entry_bytes, start })
    }
}

impl ForeignFile for NpyFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn entries(&self) -> Option<u64> {
        Some(self.entries)
    }

    fn is_complete(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|(_, dtype)| !dtype.has_missing())
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        let schema = Arc::new(self.schema.project(columns).map_err(|error| self.place.failure(error))?);
        let columns: Vec<&(usize, Dtype)> = columns.iter().filter_map(|&column| self.columns.get(column)).collect();
        let most = batch_entries(self.entry_bytes as u64, PLAIN_BATCH_ENTRIES);
        let mut next = range.start;
        let mut bytes = Vec::new();
        Ok(Box::new(std::iter::from_fn(move || {
            let count = most.min(range.end.checked_sub(next)?);
            if count == 0 {
                return None;
            }
            let batch = self.read(&schema, &columns, next, count as usize, &mut bytes);
            next = if batch.is_ok() { next + count } else { range.end };
            Some(batch)
        })))
    }
}

impl NpyFile {
    fn read(
        &self,
        schema: &SchemaRef,
        columns: &[&(usize, Dtype)],
        first: u64,
        count: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<RecordBatch, Failure> {
        bytes.resize(self.entry_bytes * count, 0);
        let mut file = self.place.handle()?;
        let at = SeekFrom::Start(self.start + first * self.entry_bytes as u64);
        let read = file.seek(at).and_then(|_| file.read_exact(bytes));
        read.map_err(|error| self.place.failure(format_args!("cannot be read: {error}")))?;
        let array = |(offset, dtype): &&(usize, Dtype)| {
            values(dtype, bytes, &Places::of_entries(count, self.entry_bytes).at(*offset))
        };
        let arrays = columns.iter().map(array).collect::<Result<Vec<_>, _>>();
        let arrays = arrays.map_err(|what| {
            self.place.failure(format_args!("entries {first} to {}: {what}", first + count as u64 - 1))
        })?;
        RecordBatch::try_new(schema.clone(), arrays).map_err(|error| self.place.failure(error))
    }
}
