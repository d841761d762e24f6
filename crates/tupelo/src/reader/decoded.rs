//! The decoded fields of a set of entries. Each field is decoded once.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_schema::{Field as ArrowField, Fields, Schema as ArrowSchema};
use arrow_select::filter::{FilterBuilder, filter};
use arrow_select::take::take;
use tupelo_core::pool;
use tupelo_format::descriptor::FieldId;
use tupelo_pages::plan::EntrySet;
use tupelo_pages::source::Keep;
use tupelo_schema::evolution::Selection;
use tupelo_schema::schema::{Field, Kind};

use super::sources::{DecodeOptions, EntrySource};
use crate::Result;

/// Selected entries at most this far apart are read together with the entries between them, because most pages hold
/// more entries and are decoded whole.
const GAP_ENTRIES: usize = 1024;
/// Many entries begin and end at multiples of [`ALIGNED_ENTRIES`], so that values lie in memory as in their pages, in
/// whole lines of caches. Of few the next page would not be worth it.
const MANY_ENTRIES: usize = 1 << 16;
const ALIGNED_ENTRIES: usize = 64;

/// Values of the entries of one request.
pub(super) struct DecodedFields<'n> {
    source: &'n dyn EntrySource,
    entries: EntrySet,
    /// Which of the entries are wanted, where these are not all.
    wanted: Option<BooleanArray>,
    /// Values must stay within one of this many shares of the memory budget.
    shares: Option<u64>,
    /// Which decompressed pages are kept for later requests.
    keep: &'n Keep,
    /// Whether fields may be requested several times.
    is_shared: bool,
    /// Top-level fields, whether their strings are bytes, and their values.
    fields: HashMap<Option<FieldId>, Vec<(Field, bool, ArrayRef)>>,
    /// The values of aliases, by name.
    pub(super) aliases: HashMap<String, ArrayRef>,
}

/// What is needed of the entries that a cut keeps.
#[derive(Default)]
pub(super) struct Needed<'r> {
    pub(super) fields: HashSet<Option<FieldId>>,
    pub(super) aliases: HashSet<&'r str>,
}

impl<'n> DecodedFields<'n> {
    pub(super) fn new(source: &'n dyn EntrySource, entries: EntrySet, shares: Option<u64>, is_shared: bool) -> Self {
        let (fields, aliases) = (HashMap::new(), HashMap::new());
        Self { source, entries, wanted: None, shares, keep: &Keep::Nothing, is_shared, fields, aliases }
    }

    /// Sets which decompressed pages are kept for later requests.
    pub(super) fn keeping(self, keep: &'n Keep) -> Self {
        Self { keep, ..self }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        match &self.wanted {
            None => self.entries.len() as usize,
            Some(wanted) => wanted.true_count(),
        }
    }

    /// The types and values of a selection of fields.
    pub(super) fn columns(
        &mut self,
        selection: &Selection,
        binary_strings: bool,
    ) -> Result<(Vec<ArrowField>, Vec<ArrayRef>)> {
        let stored = self.fields(selection.stored_fields(), binary_strings)?;
        let schema = self.source.schema();
        let arrays = schema.evolve(selection, stored, binary_strings, |entry| self.number(entry))?;
        let of_array = |(field, array): (&Arc<ArrowField>, &ArrayRef)| {
            field.as_ref().clone().with_data_type(array.data_type().clone())
        };
        let fields = schema.to_arrow(&selection.schema).fields().iter().zip(&arrays).map(of_array).collect();
        Ok((fields, arrays))
    }

    /// A batch of columns of these entries, with the metadata of the source.
    pub(super) fn batch<F: Into<Arc<ArrowField>>>(&self, fields: Vec<F>, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
        let metadata = self.source.schema().metadata().clone();
        let fields: Fields = fields.into_iter().map(Into::into).collect();
        // The number of entries must be set for batches without columns.
        let options = RecordBatchOptions::new().with_row_count(Some(self.len()));
        let schema = Arc::new(ArrowSchema::new(fields).with_metadata(metadata));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// Values of top-level fields as they are stored.
    fn fields(&mut self, fields: &[Field], binary_strings: bool) -> Result<Vec<ArrayRef>> {
        if !self.is_shared {
            return self.decode(fields, binary_strings);
        }
        let as_bytes = |field: &Field| binary_strings && holds_strings(field);
        let new: Vec<Field> =
            fields.iter().filter(|field| self.known(field, as_bytes(field)).is_none()).cloned().collect();
        let arrays = self.decode(&new, binary_strings)?;
        for (field, array) in new.into_iter().zip(arrays) {
            self.fields.entry(field.id).or_default().push((field.clone(), as_bytes(&field), array));
        }
        Ok(fields.iter().filter_map(|field| self.known(field, as_bytes(field))).collect())
    }

    fn known(&self, field: &Field, as_bytes: bool) -> Option<ArrayRef> {
        let mut alike = self.fields.get(&field.id)?.iter();
        alike.find(|(other, bytes, _)| *bytes == as_bytes && other == field).map(|(_, _, array)| Arc::clone(array))
    }

    fn decode(&self, fields: &[Field], binary_strings: bool) -> Result<Vec<ArrayRef>> {
        let options = DecodeOptions { binary_strings, shares: self.shares, keep: self.keep };
        let arrays = self.source.decode(fields, &self.entries, options)?;
        match &self.wanted {
            None => Ok(arrays),
            Some(wanted) => filtered(arrays, wanted),
        }
    }

    /// From now on only the entries where the mask is true, and of the values so far only those that are still needed:
    /// the memory of the others is free for what is read next.
    pub(super) fn keep(&mut self, kept: &BooleanArray, needed: &Needed<'_>) -> Result<()> {
        self.fields.retain(|id, _| needed.fields.contains(id));
        self.aliases.retain(|name, _| needed.aliases.contains(name.as_str()));
        let fields = self.fields.values_mut().flatten().map(|(_, _, array)| array);
        let arrays: Vec<&mut ArrayRef> = fields.chain(self.aliases.values_mut()).collect();
        let fewer = filtered(arrays.iter().map(|array| Arc::clone(array)).collect(), kept)?;
        arrays.into_iter().zip(fewer).for_each(|(array, fewer)| *array = fewer);
        let runs = runs(kept);
        self.entries = self.entries.at(runs.iter().map(|run| run.start as u64..run.end as u64));
        let mut wanted = BooleanBufferBuilder::new(runs.iter().map(Range::len).sum());
        let bits = kept.values();
        runs.iter().for_each(|run| wanted.append_buffer(&bits.slice(run.start, run.len())));
        self.wanted = Some(BooleanArray::new(wanted.finish(), None));
        Ok(())
    }

    /// The number in the ntuple of each entry.
    pub(super) fn numbers(&self) -> Result<ArrayRef> {
        let all = UInt64Array::from_iter_values(self.entries.iter());
        match &self.wanted {
            None => Ok(Arc::new(all)),
            Some(wanted) => Ok(filter(&all, wanted)?),
        }
    }

    /// Of values for all entries of the ntuple those of these entries.
    pub(super) fn of_all(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match (&self.wanted, self.entries.as_range()) {
            (None, Some(range)) => Ok(values.slice(range.start as usize, (range.end - range.start) as usize)),
            _ => Ok(take(values, &self.numbers()?, None)?),
        }
    }

    /// The number in the ntuple of one entry.
    fn number(&self, index: usize) -> u64 {
        let index = match &self.wanted {
            None => index,
            Some(wanted) => wanted.values().set_indices().nth(index).unwrap_or(index),
        };
        self.entries.get(index as u64)
    }
}

/// Only the values where the mask is true.
fn filtered(arrays: Vec<ArrayRef>, kept: &BooleanArray) -> Result<Vec<ArrayRef>> {
    let filter = FilterBuilder::new(kept).optimize().build();
    let bytes = arrays.iter().map(|array| array.get_array_memory_size() as u64).sum();
    pool::map(arrays, bytes, |array| Ok(filter.filter(&array)?))
}

fn holds_strings(field: &Field) -> bool {
    matches!(field.kind, Kind::String) || field.children().iter().any(holds_strings)
}

/// Where entries to keep begin and end, those together that are near to each other.
fn runs(kept: &BooleanArray) -> Vec<Range<usize>> {
    let bits = kept.values();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (start, end) in BitSliceIterator::new(bits.values(), bits.offset(), bits.len()) {
        match runs.last_mut() {
            Some(last) if start - last.end <= GAP_ENTRIES => last.end = end,
            _ => runs.push(start..end),
        }
    }
    for run in runs.iter_mut().filter(|run| run.len() >= MANY_ENTRIES) {
        run.start = run.start / ALIGNED_ENTRIES * ALIGNED_ENTRIES;
        run.end = run.end.next_multiple_of(ALIGNED_ENTRIES).min(bits.len());
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_read_together() {
        let count = 4 * MANY_ENTRIES + 7;
        let of = |kept: &[usize]| {
            let mut mask = vec![false; count];
            kept.iter().for_each(|&at| mask[at] = true);
            runs(&mask.into())
        };
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[3, 4, 9]), std::slice::from_ref(&(3..10)));
        assert_eq!(
            of(&[3, 4 + GAP_ENTRIES, 6 + 2 * GAP_ENTRIES]),
            [3..5 + GAP_ENTRIES, 6 + 2 * GAP_ENTRIES..7 + 2 * GAP_ENTRIES]
        );
        let many: Vec<usize> = (100..=100 + MANY_ENTRIES).collect();
        assert_eq!(of(&many), std::slice::from_ref(&(64..MANY_ENTRIES + 128)));
        assert_eq!(
            of(&(count - 1 - MANY_ENTRIES..count).collect::<Vec<_>>()),
            std::slice::from_ref(&(3 * MANY_ENTRIES..count))
        );
        assert_eq!(of(&[many, vec![count - 1]].concat()), [64..MANY_ENTRIES + 128, count - 1..count]);
    }
}
