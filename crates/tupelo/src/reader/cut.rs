//! Entries to keep, decided by some fields before the others are read.

use std::fmt;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_select::filter::{filter, filter_record_batch};

use super::Read;
use crate::schema::Field;
use crate::source::Segment;
use crate::{Error, Result, plan};

/// Entries to keep that are no further apart are read together with those between them: most pages hold more, and are
/// decoded whole.
const GAP_ENTRIES: usize = 1024;

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
        let runs = runs(&kept);
        let parts = plan::parts(segments, &runs);
        let mut wanted = BooleanBufferBuilder::new(runs.iter().map(|(start, end)| end - start).sum());
        let bits = kept.values();
        runs.iter().for_each(|&(start, end)| wanted.append_buffer(&bits.slice(start, end - start)));
        let wanted = BooleanArray::new(wanted.finish(), None);
        if !read.reads_as(&self.fields) {
            return Ok(filter_record_batch(&read.decode_segments(&parts, strict)?, &wanted)?);
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
            arrays.push(match seen {
                Some(seen) => filter(seen, &kept)?,
                None => filter(&others.next().ok_or_else(|| Error::corrupt("a field is missing"))?, &wanted)?,
            });
        }
        read.batch(arrays, kept.true_count())
    }
}

/// Where entries to keep begin and end, those together that are near to each other.
fn runs(kept: &BooleanArray) -> Vec<(usize, usize)> {
    let bits = kept.values();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (start, end) in BitSliceIterator::new(bits.values(), bits.offset(), bits.len()) {
        match runs.last_mut() {
            Some((_, last)) if start - *last <= GAP_ENTRIES => *last = end,
            _ => runs.push((start, end)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_read_together() {
        let mut kept = vec![false; 4 * GAP_ENTRIES];
        assert_eq!(runs(&kept.clone().into()), []);
        for at in [3, 4, 9, 9 + GAP_ENTRIES + 1, 9 + 2 * GAP_ENTRIES + 3, 4 * GAP_ENTRIES - 1] {
            kept[at] = true;
        }
        let alone = [9 + 2 * GAP_ENTRIES + 3, 4 * GAP_ENTRIES - 1].map(|at| (at, at + 1));
        assert_eq!(runs(&kept.into()), [(3, 9 + GAP_ENTRIES + 2), alone[0], alone[1]]);
    }
}
