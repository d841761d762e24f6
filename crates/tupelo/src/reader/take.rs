//! Single entries.

use std::ops::Range;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use tupelo_pages::plan;

use super::read::Read;
use crate::{Error, Result};

/// Single entries are read in one range if the entries between them take at most this many bytes in each column,
/// because a separate range costs more.
const NEAR_BYTES: u64 = 16 << 10;
/// Single entries at most this far apart are always read in one range.
const NEAR_ENTRIES: u64 = 64;
/// Single entries and the entries between them are decoded in parts of about this many bytes in memory.
const TAKEN_BYTES: u64 = 64 << 20;

impl Read {
    /// Reads single entries in the given order, which may contain duplicates; the range of [`Read::entries`] and cuts
    /// are ignored. Only the pages that hold these entries are read, in one request of many ranges for remote sources.
    ///
    /// # Errors
    /// Invalid argument for an entry past the end of the ntuple, and those of [`Read::to_batch`].
    pub fn take(&self, entries: &[u64]) -> Result<RecordBatch> {
        let take = || {
            let count = self.source().entries();
            if let Some(beyond) = entries.iter().find(|&&entry| entry >= count) {
                return Err(Error::invalid_argument(format!("entry {beyond} is outside the {count} entries")));
            }
            let mut sorted = entries.to_vec();
            if !entries.is_sorted() {
                sorted.sort_unstable();
            }
            sorted.dedup();
            let (near, most) = self.near_entries();
            let parts: Vec<RecordBatch> =
                parts(&sorted, near, most).map(|part| self.take_sorted(part, near)).collect::<Result<_>>()?;
            let batch = match parts.as_slice() {
                [batch] => batch.clone(),
                several => arrow_select::concat::concat_batches(&several[0].schema(), several)?,
            };
            if sorted == entries {
                return Ok(batch);
            }
            let place = |entry: &u64| sorted.partition_point(|other| other < entry) as u64;
            take_places(&batch, entries.iter().map(place).collect())
        };
        take().map_err(|e| self.context(e))
    }

    /// Reads ascending entries, together with nearby entries between them, which are dropped afterwards.
    fn take_sorted(&self, entries: &[u64], near: u64) -> Result<RecordBatch> {
        let runs = runs(entries, near);
        let batch = self.batch(&mut self.decoded(runs.iter().cloned().collect(), None))?;
        if batch.num_rows() == entries.len() {
            return Ok(batch);
        }
        let mut places = Vec::with_capacity(entries.len());
        let (mut run, mut begin) = (0, 0);
        for &entry in entries {
            while entry >= runs[run].end {
                begin += runs[run].end - runs[run].start;
                run += 1;
            }
            places.push(begin + entry - runs[run].start);
        }
        take_places(&batch, places)
    }

    /// The maximum distance of entries that are read in one range, and the number of entries that are decoded at once.
    fn near_entries(&self) -> (u64, u64) {
        let columns: usize = self.read_fields().into_iter().map(|field| plan::columns(field).len()).sum();
        // A damaged page list is reported when its entries are read.
        let bytes = self.bytes_per_entry().unwrap_or(f64::MAX).max(1.0);
        let near = (NEAR_BYTES.saturating_mul(columns as u64) as f64 / bytes) as u64;
        let near = near.max(NEAR_ENTRIES);
        (near, ((TAKEN_BYTES as f64 / bytes) as u64).max(near))
    }
}

/// Splits ascending entries into ranges of entries that are at most `near` apart.
fn runs(entries: &[u64], near: u64) -> Vec<Range<u64>> {
    entries.chunk_by(|a, b| b - a <= near).map(|run| run[0]..run[run.len() - 1] + 1).collect()
}

/// Splits ascending entries into parts that decode about `most` entries, including those in between; at least one part.
fn parts(entries: &[u64], near: u64, most: u64) -> impl Iterator<Item = &[u64]> {
    let mut decoded = 0;
    let mut is_same = move |a: &u64, b: &u64| {
        decoded += if b - a <= near { b - a } else { 1 };
        let is_same = decoded < most;
        decoded = if is_same { decoded } else { 0 };
        is_same
    };
    let mut rest = Some(entries);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let end = all.windows(2).position(|pair| !is_same(&pair[0], &pair[1])).map_or(all.len(), |last| last + 1);
        let (part, others) = all.split_at(end);
        rest = Some(others).filter(|others| !others.is_empty());
        Some(part)
    })
}

/// The entries at these places of a batch.
fn take_places(batch: &RecordBatch, places: Vec<u64>) -> Result<RecordBatch> {
    let places = UInt64Array::from(places);
    let columns = arrow_select::take::take_arrays(batch.columns(), &places, None)?;
    // The number of entries must be set for batches without columns.
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_entries_are_taken_together() {
        assert_eq!(runs(&[], 64), []);
        assert_eq!(runs(&[0, 1, 65, 200, 264, 1000], 64), [0..66, 200..265, 1000..1001]);
    }

    #[test]
    fn taken_entries_are_decoded_in_parts() {
        let parts = |entries, near, most| parts(entries, near, most).collect::<Vec<_>>();
        assert_eq!(parts(&[], 64, 100), [&[] as &[u64]]);
        assert_eq!(parts(&[0, 60, 90, 120, 300], 64, 100), [&[0, 60, 90][..], &[120, 300]]);
        assert_eq!(parts(&[0, 100, 200, 300], 64, 3), [&[0, 100, 200][..], &[300]]);
    }
}
