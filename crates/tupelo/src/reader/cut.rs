//! Entries to keep, decided by some fields before the others are read.

use std::fmt;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_select::filter::filter;

use super::Read;
use crate::schema::Field;
use crate::source::Segment;
use crate::{Error, Result, plan};

/// Runs of entries to keep are read one by one if there is at most one for as many entries as this; where there are
/// more, all are decoded and then filtered, which costs less than to find so many.
const SPARSE_ENTRIES: usize = 32;

/// Which entries of a batch to keep.
type Keep = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

/// The fields that a cut looks at, and what it makes of them.
pub(super) struct Cut {
    fields: Read,
    keep: Box<Keep>,
}

impl fmt::Debug for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cut").field("fields", self.fields.schema()).finish_non_exhaustive()
    }
}

impl Cut {
    pub(super) fn new(
        fields: Read,
        keep: impl Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'static,
    ) -> Self {
        Self { fields, keep: Box::new(keep) }
    }

    /// What the cut keeps of the segments.
    pub(super) fn decode(&self, read: &Read, segments: &[Segment], strict: bool) -> Result<RecordBatch> {
        let seen = self.fields.decode_segments(segments, strict)?;
        let kept = (self.keep)(&seen)?;
        if kept.len() != seen.num_rows() {
            let (answers, entries) = (kept.len(), seen.num_rows());
            return Err(Error::invalid_argument(format!("a cut gave {answers} answers for {entries} entries")));
        }
        let kept = match kept.nulls() {
            Some(nulls) => BooleanArray::new(kept.values() & nulls.inner(), None),
            None => kept,
        };
        let bits = kept.values();
        let runs: Vec<(usize, usize)> = BitSliceIterator::new(bits.values(), bits.offset(), bits.len()).collect();
        let is_sparse = runs.len() * SPARSE_ENTRIES <= kept.len();
        let parts = if is_sparse { plan::parts(segments, &runs) } else { segments.to_vec() };
        if !read.reads_as(&self.fields) {
            let batch = read.decode_segments(&parts, strict)?;
            return if is_sparse { Ok(batch) } else { Ok(arrow_select::filter::filter_record_batch(&batch, &kept)?) };
        }
        // What the cut has seen is not read again.
        let index = |field: &Field| self.fields.schema().fields.iter().position(|other| other == field);
        let seen: Vec<Option<&ArrayRef>> =
            read.schema().fields.iter().map(|field| index(field).and_then(|index| seen.columns().get(index))).collect();
        let others = read.schema().fields.iter().zip(&seen).filter(|(_, seen)| seen.is_none());
        let others: Vec<Field> = others.map(|(field, _)| field.clone()).collect();
        let mut others = read.decode_fields(&others, &parts, strict)?.into_iter();
        let mut arrays = Vec::with_capacity(seen.len());
        for seen in seen {
            let other = if seen.is_none() { others.next() } else { None };
            arrays.push(match (seen, other) {
                (None, Some(other)) if is_sparse => other,
                (None, Some(other)) => filter(&other, &kept)?,
                (Some(seen), _) => filter(seen, &kept)?,
                (None, None) => return Err(Error::corrupt("a field is missing")),
            });
        }
        read.batch(arrays, kept.true_count())
    }
}
