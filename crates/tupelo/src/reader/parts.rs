//! Large reads from servers, in parts: while some are decoded, others are fetched.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};

use super::read::Read;
use crate::{ErrorKind, Result, pool};

/// A part takes about this many bytes in memory.
const PART_BYTES: u64 = 64 << 20;
/// Fields by which a read is judged to need a server.
const SAMPLED_FIELDS: usize = 8;
/// Parts that are read at the same time.
const PARTS_AT_ONCE: usize = 4;

impl Read {
    /// Everything chosen, read part by part, several at once. `None` where that is not possible,
    /// or useless because no server has to be waited for.
    pub(super) fn decode_in_parts(&self) -> Result<Option<RecordBatch>> {
        let parts = if self.is_remote()? { self.parts()? } else { Vec::new() };
        if parts.len() < 2 {
            return Ok(None);
        }
        let decode = |part| Ok(self.decode_columns(&part, Some(PARTS_AT_ONCE as u64))?.0);
        let batches = pool::map_waiting(parts, PARTS_AT_ONCE, decode);
        let batches = match batches {
            // A part may be much larger than was estimated by the first clusters.
            Err(error) if error.kind() == ErrorKind::Limit => return Ok(None),
            batches => batches?,
        };
        // Strings that are not UTF-8 in some part are bytes in all of them.
        let is_same = batches.windows(2).all(|pair| pair[0].schema_ref() == pair[1].schema_ref());
        if is_same { concatenate(batches).map(Some) } else { Ok(None) }
    }

    /// Whether pages must be fetched from a server, judged by the first fields in the first cluster.
    fn is_remote(&self) -> Result<bool> {
        let fields = self.stored_fields();
        let fields = &fields[..fields.len().min(SAMPLED_FIELDS)];
        let clusters = self.source().clusters(self.range(), 1)?;
        clusters.first().map_or(Ok(false), |cluster| self.source().is_remote(fields, cluster))
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
        Ok(parts)
    }
}

/// The batches after each other. Each column of them is freed as soon as it is copied.
pub(super) fn concatenate(mut batches: Vec<RecordBatch>) -> Result<RecordBatch> {
    if batches.len() == 1 {
        return Ok(batches.swap_remove(0));
    }
    let schema = batches[0].schema();
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let bytes = batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); schema.fields().len()];
    for batch in batches {
        columns.iter_mut().zip(batch.into_parts().1).for_each(|(column, array)| column.push(array));
    }
    let columns = pool::map(columns, bytes, |column| {
        Ok(arrow_select::concat::concat(&column.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
    })?;
    // The number of rows must be set for batches without columns.
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
