//! The proof that an ntuple equals the trees it was made from.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::filter::filter;
use tupelo_schema::schema::escaped;

use super::super::diff::{Tolerance, first_difference};
use super::{Import, in_bases, relabelled};
use crate::reader::Ntuple;
use crate::writer::{EntrySink, NtupleWriter};
use crate::{Error, Result};

/// Bins of the histograms with which two fields are compared.
const BINS: usize = 64;
/// Numbers that are taken as doubles at a time.
const SHOWN: usize = 1 << 13;

/// The result of comparing a tree with an ntuple.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Validation {
    /// Entries that were compared.
    pub entries: u64,
    /// The comparison of each field.
    pub fields: Vec<FieldValidation>,
    /// Their places by the names in the source.
    places: HashMap<String, usize>,
}

/// The comparison of a field.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FieldValidation {
    /// Its name in the tree.
    pub branch: String,
    /// Its name in the ntuple.
    pub field: String,
    /// Numbers and texts that were compared.
    pub values: u64,
    /// The first entry in which it differs.
    pub first_difference: Option<u64>,
    /// Histograms of its numbers, those of each member of it together.
    pub histogram: Option<Comparison>,
}

/// Two histograms with the same bins.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// Lower and upper bound. Values outside are counted in the first and last bin.
    pub range: (f64, f64),
    /// Counts of the tree and of the ntuple. The last bin counts numbers that are not finite.
    pub counts: [Vec<u64>; 2],
}

impl Validation {
    /// Whether all values, and all histograms, are equal.
    pub fn is_equal(&self) -> bool {
        self.fields.iter().all(FieldValidation::is_equal)
    }

    /// Compares values of the source, bit by bit, with those of a field of the ntuple, from entry `next` on. Those of
    /// another type are different.
    ///
    /// # Errors
    /// Those of reading values as numbers.
    pub fn compare(&mut self, branch: &str, field: &str, theirs: &ArrayRef, ours: &ArrayRef, next: u64) -> Result<()> {
        let place = *self.places.entry(branch.to_owned()).or_insert(self.fields.len());
        if place == self.fields.len() {
            let (branch, field) = (branch.to_owned(), field.to_owned());
            self.fields.push(FieldValidation { branch, field, values: 0, first_difference: None, histogram: None });
        }
        let Some(compared) = self.fields.get_mut(place) else { return Ok(()) };
        let theirs = &in_bases(theirs, ours.data_type())?;
        let ours = relabelled(ours, theirs.data_type()).unwrap_or(Arc::clone(ours));
        if compared.first_difference.is_none() {
            let is_comparable = ours.data_type() == theirs.data_type() && ours.len() == theirs.len();
            let found = match is_comparable {
                true => first_difference(theirs, &ours, Tolerance::default()),
                false => Some(0),
            };
            compared.first_difference = found.map(|entry| next + entry as u64);
        }
        if compared.histogram.is_none() {
            let mut range = None;
            leaves(theirs, &mut |numbers| widen(&mut range, numbers))?;
            compared.histogram = range.map(Comparison::new);
        }
        compared.values +=
            leaves(theirs, &mut |numbers| compared.histogram.iter_mut().for_each(|it| it.count(0, numbers)))?;
        leaves(&ours, &mut |numbers| compared.histogram.iter_mut().for_each(|it| it.count(1, numbers)))?;
        Ok(())
    }
}

/// The entries of a source of `all` entries that a comparison of at most `most` takes: half of them from its begin and
/// half from its end.
pub fn samples(all: u64, most: u64) -> Vec<Range<u64>> {
    let samples = match most < all {
        true => [0..most.div_ceil(2), all - most / 2..all],
        false => [0..all, all..all],
    };
    samples.into_iter().filter(|sample| !sample.is_empty()).collect()
}

impl FieldValidation {
    /// Whether all values and the histograms are equal.
    pub fn is_equal(&self) -> bool {
        let same = |histogram: &Comparison| histogram.counts[0] == histogram.counts[1];
        self.first_difference.is_none() && self.histogram.as_ref().is_none_or(same)
    }
}

impl Import {
    /// Compares the entries of the trees with those of the ntuple, entry by entry and bit by bit. Of each range of each tree
    /// at most `most` entries are compared, half of them from its begin and half from its end.
    ///
    /// # Errors
    /// Not found if the ntuple lacks a field; those of reading.
    pub fn validate(&self, ntuple: &Ntuple, most: u64) -> Result<Validation> {
        let mut found = Validation::default();
        let (mut before, trees) = (0, self.read.source().parts());
        for range in &self.ranges {
            for tree in &trees {
                let (start, end) = (range.start.max(tree.start), range.end.min(tree.end));
                let all = end.saturating_sub(start);
                for sample in samples(all, most) {
                    compare(self, ntuple, start + sample.start..start + sample.end, before + sample.start, &mut found)?;
                }
                before += all;
            }
        }
        Ok(found)
    }
}

/// Compares entries with those of the ntuple from `next` on.
fn compare(plan: &Import, ntuple: &Ntuple, entries: Range<u64>, mut next: u64, found: &mut Validation) -> Result<()> {
    let names: Vec<String> = plan.compared.iter().map(|(_, name)| escaped(name)).collect();
    let imported = ntuple.read(&names)?.with_binary_strings(true);
    let order: HashMap<String, usize> =
        imported.arrow_schema().fields().iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect();
    let tree = plan.read.clone().entries(entries).with_binary_strings(true);
    let mut batches = tree.batches_of_bytes(NtupleWriter::BATCH_BYTES)?;
    for batch in &mut batches {
        let batch = batch?;
        let count = batch.num_rows() as u64;
        let other = imported.clone().entries(next..next + count).to_batch()?;
        for (index, (branch, name)) in plan.compared.iter().enumerate() {
            let place = order.get(name).copied();
            let ours = place.and_then(|place| other.columns().get(place));
            let ours = ours.ok_or_else(|| Error::not_found(format!("field '{name}' is missing in the ntuple")))?;
            let (Some(theirs), ours) = (batch.columns().get(index), counted(ours, batch.column(index))?) else {
                continue;
            };
            found.compare(branch, name, theirs, &ours, next)?;
        }
        next += count;
        found.entries += count;
    }
    Ok(())
}

/// The number of items of a collection in the type of the counter.
fn counted(ours: &ArrayRef, theirs: &ArrayRef) -> Result<ArrayRef> {
    let is_number = |array: &ArrayRef| array.data_type().is_integer();
    match is_number(ours) && is_number(theirs) && ours.data_type() != theirs.data_type() {
        true => Ok(cast(ours, theirs.data_type())?),
        false => Ok(Arc::clone(ours)),
    }
}

/// Shows the numbers in an array, some at a time; returns how many numbers and texts it has. Nothing counts below a null.
fn leaves(array: &ArrayRef, see: &mut dyn FnMut(&[f64])) -> Result<u64> {
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        let present = filter(array, &BooleanArray::new(nulls.inner().clone(), None))?;
        return leaves(&present, see);
    }
    Ok(match array.data_type() {
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (start, end) = (list.offsets().first().copied(), list.offsets().last().copied());
            let (start, end) = (start.unwrap_or(0) as usize, end.unwrap_or(0) as usize);
            leaves(&list.values().slice(start, end - start), see)?
        }
        DataType::FixedSizeList(..) => leaves(array.as_fixed_size_list().values(), see)?,
        DataType::Struct(_) => {
            let mut sum = 0;
            for column in array.as_struct().columns() {
                sum += leaves(column, see)?;
            }
            sum
        }
        other if other.is_numeric() || *other == DataType::Boolean => {
            // As doubles, small numbers would take eight times their memory.
            for start in (0..array.len()).step_by(SHOWN) {
                let some = array.slice(start, SHOWN.min(array.len() - start));
                see(cast(&some, &DataType::Float64)?.as_primitive::<Float64Type>().values());
            }
            array.len() as u64
        }
        _ => array.len() as u64,
    })
}

/// Widens a range to the finite ones of some numbers.
fn widen(range: &mut Option<(f64, f64)>, numbers: &[f64]) {
    let (low, high) = range.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
    let finite = || numbers.iter().copied().filter(|value| value.is_finite());
    *range = Some((finite().fold(low, f64::min), finite().fold(high, f64::max)));
}

impl Comparison {
    /// Empty histograms for numbers in this range, which is empty if all of them are not finite.
    fn new((low, high): (f64, f64)) -> Self {
        let range = if low < high { (low, high) } else { (low.min(0.0), low.min(0.0) + 1.0) };
        Self { range, counts: [vec![0; BINS + 1], vec![0; BINS + 1]] }
    }

    fn count(&mut self, histogram: usize, numbers: &[f64]) {
        let (low, high) = self.range;
        let Some(counts) = self.counts.get_mut(histogram) else { return };
        for value in numbers {
            let bin = match value.is_finite() {
                true => (((value - low) / (high - low) * BINS as f64).max(0.0) as usize).min(BINS - 1),
                false => BINS,
            };
            counts[bin] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int8Array, ListArray};

    use super::*;

    /// Defect: they took sixteen times their memory.
    #[test]
    fn numbers_are_taken_some_at_a_time() {
        let lists = ListArray::from_iter_primitive::<arrow_array::types::Int8Type, _, _>([
            Some(vec![Some(-3), None, Some(100)]),
            None,
        ]);
        let lists = cast(&lists, &DataType::new_large_list(DataType::Int8, true)).expect("lists");
        let numbers: ArrayRef =
            Arc::new(Int8Array::from_iter_values((0..SHOWN * 3 + 1).map(|number| (number % 50) as i8)));
        for (array, count) in [(numbers, SHOWN * 3 + 1), (lists, 2)] {
            let (mut most, mut all) = (0, 0);
            let mut see = |numbers: &[f64]| (most, all) = (most.max(numbers.len()), all + numbers.len());
            assert_eq!(leaves(&array, &mut see).expect("numbers"), count as u64);
            assert_eq!((most, all), (SHOWN.min(count), count));
            let mut validation = Validation::default();
            for _ in 0..2 {
                validation.compare("x", "x", &array, &array, 0).expect("a comparison");
            }
            assert!(validation.is_equal());
            let histogram = validation.fields[0].histogram.as_ref().expect("a histogram");
            assert_eq!(histogram.counts[0].iter().sum::<u64>(), 2 * count as u64);
            assert_eq!(histogram.range, if count == 2 { (-3.0, 100.0) } else { (0.0, 49.0) });
        }
    }
}
