//! Large reads of nested fields from servers, in parts of small clusters: all levels of a part are fetched together, so that
//! requests are few.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_schema::{FieldRef, SchemaRef};

use super::read::Read;
use crate::decode::ValueBuffer;
use crate::{Error, ErrorKind, Result, pool};

/// A part takes about this many bytes in memory.
const PART_BYTES: u64 = 64 << 20;
/// No part takes more, or nothing is read in parts.
const MAX_PART_BYTES: u64 = 2 * PART_BYTES;
/// Parts that are read at the same time.
const PARTS_AT_ONCE: usize = 4;

impl Read {
    /// Everything chosen, read part by part, several at once. `None` where that is not possible or useless, or where a part
    /// takes much memory: such clusters have long runs of pages, which need no parts.
    pub(super) fn decode_in_parts(&self) -> Result<Option<RecordBatch>> {
        let clusters = self.source().clusters(self.range(), 1)?;
        let Some(cluster) = clusters.first() else { return Ok(None) };
        if !self.source().reads_in_parts(self.stored_fields(), cluster)? {
            return Ok(None);
        }
        let parts = self.parts()?;
        if parts.len() < 2 {
            return Ok(None);
        }
        let decode = |part| Ok(self.decode_columns(&part, Some(PARTS_AT_ONCE as u64))?.0);
        let max_rows = usize::try_from(self.count()).unwrap_or(usize::MAX);
        let (mut all, mut is_same): (Option<Concatenation>, _) = (None, true);
        let read = pool::each_waiting(parts, PARTS_AT_ONCE, decode, |batch| {
            let all = match &mut all {
                Some(all) => all,
                None => all.insert(Concatenation::new(batch.schema(), max_rows)?),
            };
            // Strings that are not UTF-8 in some part are bytes in all of them.
            is_same &= all.schema == batch.schema();
            if is_same { all.push(batch) } else { Ok(()) }
        });
        match read {
            // A part may be much larger than was estimated by the first clusters.
            Err(error) if error.kind() == ErrorKind::Limit => Ok(None),
            Err(error) => Err(error),
            Ok(()) => all.filter(|_| is_same).map(Concatenation::finish).transpose(),
        }
    }

    /// Consecutive whole clusters of about [`PART_BYTES`] in memory together, limited to the chosen entries.
    fn parts(&self) -> Result<Vec<Range<u64>>> {
        // Damaged page lists are reported when the entries are read.
        let Ok(bytes_per_entry) = self.bytes_per_entry() else { return Ok(Vec::new()) };
        let most = (PART_BYTES as f64 / bytes_per_entry.max(1.0)) as u64;
        let mut parts: Vec<Range<u64>> = Vec::new();
        let chosen = self.range();
        for cluster in self.source().clusters(chosen.clone(), usize::MAX)? {
            let range = cluster.entry_range();
            let (start, end) = (range.start.max(chosen.start), range.end.min(chosen.end));
            match parts.last_mut().filter(|part| end - part.start <= most) {
                Some(part) => part.end = end,
                None => parts.push(start..end),
            }
        }
        let max_entries = (MAX_PART_BYTES as f64 / bytes_per_entry.max(1.0)) as u64;
        let is_small = |part: &Range<u64>| part.end - part.start <= max_entries;
        Ok(if parts.iter().all(is_small) { parts } else { Vec::new() })
    }
}

/// Consecutive batches of one schema, which are copied together as they come.
struct Concatenation {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    bytes: u64,
}

enum Column {
    /// Values of the same width in bytes, without nulls.
    Values { values: ValueBuffer, width: usize },
    /// Copied at the end.
    Arrays(Vec<ArrayRef>),
}

impl Concatenation {
    /// Room for this number of entries.
    fn new(schema: SchemaRef, max_rows: usize) -> Result<Self> {
        let column = |field: &FieldRef| match field.data_type().primitive_width() {
            Some(width) if !field.is_nullable() => {
                let len = max_rows
                    .checked_mul(width)
                    .ok_or_else(|| Error::limit(format!("{max_rows} values are too many")))?;
                Ok(Column::Values { values: ValueBuffer::with_len(len)?, width })
            }
            _ => Ok(Column::Arrays(Vec::new())),
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(Self { schema, columns, rows: 0, bytes: 0 })
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let (start, end) = (self.rows, self.rows + batch.num_rows());
        self.rows = end;
        for (column, array) in self.columns.iter_mut().zip(batch.into_parts().1) {
            match column {
                Column::Values { values, width } => {
                    let (data, width) = (array.to_data(), *width);
                    let from = data.buffers().first().and_then(|from| from.get(data.offset() * width..));
                    let to = values.bytes_mut().get_mut(start * width..end * width);
                    let (Some(to), Some(from)) = (to, from.and_then(|from| from.get(..(end - start) * width))) else {
                        return Err(Error::corrupt("parts have more entries than the ntuple"));
                    };
                    to.copy_from_slice(from);
                }
                Column::Arrays(arrays) => {
                    self.bytes += array.get_array_memory_size() as u64;
                    arrays.push(array);
                }
            }
        }
        Ok(())
    }

    /// Each array of the parts is freed as soon as it is copied.
    fn finish(self) -> Result<RecordBatch> {
        let rows = self.rows;
        let columns = self.columns.into_iter().zip(self.schema.fields()).collect();
        let columns = pool::map(columns, self.bytes, |(column, field): (Column, &FieldRef)| match column {
            Column::Values { mut values, width } => {
                values.truncate(rows * width);
                let data = ArrayData::builder(field.data_type().clone()).len(rows).add_buffer(values.into());
                Ok(make_array(data.build()?))
            }
            Column::Arrays(arrays) => {
                Ok(arrow_select::concat::concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
            }
        })?;
        // The number of entries must be set for batches without columns.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema, columns, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Float32Array, Int64Array, LargeStringArray};
    use arrow_schema::{DataType, Field, Schema};
    use arrow_select::concat::concat_batches;

    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let fields = [
            ("floats", DataType::Float32, false),
            ("optional", DataType::Int64, true),
            ("flags", DataType::Boolean, false),
            ("texts", DataType::LargeUtf8, false),
        ];
        let schema =
            Arc::new(Schema::new(fields.map(|(name, kind, is_nullable)| Field::new(name, kind, is_nullable)).to_vec()));
        let part = |rows: usize| {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Float32Array::from_iter_values((0..rows).map(|row| row as f32))),
                Arc::new((0..rows).map(|row| (row % 3 > 0).then_some(row as i64)).collect::<Int64Array>()),
                Arc::new((0..rows).map(|row| Some(row % 2 == 0)).collect::<BooleanArray>()),
                Arc::new(LargeStringArray::from_iter_values((0..rows).map(|row| "x".repeat(row)))),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        // A slice begins within its buffers.
        let parts = [part(7), part(0), part(20).slice(3, 10), part(2)];
        for max_rows in [19, 100] {
            let mut all = Concatenation::new(Arc::clone(&schema), max_rows).unwrap();
            parts.iter().try_for_each(|part| all.push(part.clone())).unwrap();
            assert_eq!(all.finish().unwrap(), concat_batches(&schema, &parts).unwrap());
        }
        let mut short = Concatenation::new(Arc::clone(&schema), 10).unwrap();
        assert!(parts.iter().try_for_each(|part| short.push(part.clone())).is_err());
        assert!(Concatenation::new(Arc::clone(&schema), usize::MAX).is_err());
        assert!(Concatenation::new(schema, usize::MAX / 4).is_err());
    }
}
