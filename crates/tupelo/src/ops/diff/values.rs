//! The first difference between two arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;

/// How far numbers may be apart that count as equal: by `absolute + relative * |b|`, as `numpy.isclose`. By default nothing:
/// then all bits are compared, and a NaN equals only itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tolerance {
    /// The absolute part.
    pub absolute: f64,
    /// The part of the size of the second number.
    pub relative: f64,
}

impl Tolerance {
    fn is_exact(self) -> bool {
        self.absolute == 0.0 && self.relative == 0.0
    }

    /// All NaN are equal. An infinite number is close only to itself.
    fn is_close(self, own: f64, other: f64) -> bool {
        own == other
            || own.is_nan() && other.is_nan()
            || other.is_finite() && (own - other).abs() <= self.absolute + self.relative * other.abs()
    }
}

/// The index of the first elements in which two arrays of the same length and type differ.
pub(in crate::ops) fn first_difference(own: &ArrayRef, other: &ArrayRef, tolerance: Tolerance) -> Option<usize> {
    if tolerance.is_exact() && own.to_data() == other.to_data() {
        return None;
    }
    let validity = (0..own.len()).find(|&index| own.is_null(index) != other.is_null(index));
    let values = match own.data_type() {
        DataType::Float16 if !tolerance.is_exact() => floats::<Float16Type>(own, other, tolerance),
        DataType::Float32 if !tolerance.is_exact() => floats::<Float32Type>(own, other, tolerance),
        DataType::Float64 if !tolerance.is_exact() => floats::<Float64Type>(own, other, tolerance),
        DataType::LargeList(_) => {
            let (own, other) = (own.as_list::<i64>(), other.as_list::<i64>());
            let lengths = (0..own.len()).find(|&index| own.value_length(index) != other.value_length(index));
            // Items of lists before the first one of another length are comparable.
            let same = lengths.unwrap_or(own.len());
            let items = |list: &arrow_array::LargeListArray| {
                let (start, end) = (list.value_offsets()[0], list.value_offsets()[same]);
                list.values().slice(start as usize, (end - start) as usize)
            };
            let item = first_difference(&items(own), &items(other), tolerance).map(|item| {
                let item = own.value_offsets()[0] + item as i64;
                own.value_offsets().partition_point(|&offset| offset <= item) - 1
            });
            item.or(lengths)
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0).max(1);
            let items = |array: &ArrayRef| {
                let list = array.as_fixed_size_list();
                list.values().slice(list.value_offset(0) as usize, list.len() * size)
            };
            match own.len() {
                0 => None,
                _ => first_difference(&items(own), &items(other), tolerance).map(|item| item / size),
            }
        }
        DataType::Struct(_) => {
            let columns = own.as_struct().columns().iter().zip(other.as_struct().columns());
            columns.filter_map(|(own, other)| first_difference(own, other, tolerance)).min()
        }
        _ => exact(own, other),
    };
    validity.into_iter().chain(values).min()
}

fn floats<T: ArrowPrimitiveType>(own: &ArrayRef, other: &ArrayRef, tolerance: Tolerance) -> Option<usize>
where
    T::Native: Into<f64>,
{
    let (own, other) = (own.as_primitive::<T>(), other.as_primitive::<T>());
    let is_close = |index: usize| tolerance.is_close(own.value(index).into(), other.value(index).into());
    (0..own.len()).find(|&index| own.is_valid(index) && other.is_valid(index) && !is_close(index))
}

/// The first elements that differ in any bit, found by halves.
fn exact(own: &ArrayRef, other: &ArrayRef) -> Option<usize> {
    let is_same =
        |start: usize, length: usize| own.slice(start, length).to_data() == other.slice(start, length).to_data();
    let (mut start, mut length) = (0, own.len());
    if is_same(start, length) {
        return None;
    }
    while length > 1 {
        let half = length / 2;
        match is_same(start, half) {
            true => (start, length) = (start + half, length - half),
            false => length = half,
        }
    }
    Some(start)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Float64Builder, LargeListBuilder};
    use arrow_array::{Float64Array, Int32Array, StringArray, StructArray};

    use super::*;

    fn lists(lists: &[&[f64]]) -> ArrayRef {
        let mut builder = LargeListBuilder::new(Float64Builder::new());
        for list in lists {
            list.iter().for_each(|&value| builder.values().append_value(value));
            builder.append(true);
        }
        Arc::new(builder.finish())
    }

    #[test]
    fn the_first_difference_is_found_at_any_depth() {
        let exact = Tolerance::default();
        let numbers = |values: &[i32]| -> ArrayRef { Arc::new(Int32Array::from(values.to_vec())) };
        assert_eq!(first_difference(&numbers(&[1, 2, 3]), &numbers(&[1, 2, 3]), exact), None);
        assert_eq!(first_difference(&numbers(&[1, 2, 3, 4, 5]), &numbers(&[1, 2, 9, 4, 9]), exact), Some(2));
        let one = lists(&[&[1.0], &[], &[2.0, 3.0], &[4.0]]);
        assert_eq!(first_difference(&one, &lists(&[&[1.0], &[], &[2.0, 9.0], &[4.0]]), exact), Some(2));
        assert_eq!(first_difference(&one, &lists(&[&[1.0], &[5.0], &[2.0, 3.0], &[9.0]]), exact), Some(1));
        // A slice has offsets that do not begin with 0.
        assert_eq!(first_difference(&one.slice(2, 2), &lists(&[&[2.0, 3.0], &[5.0]]), exact), Some(1));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let record = |numbers: ArrayRef| -> ArrayRef {
            Arc::new(StructArray::try_from(vec![("n", numbers), ("t", Arc::clone(&texts))]).unwrap())
        };
        assert_eq!(first_difference(&record(numbers(&[1, 2])), &record(numbers(&[1, 3])), exact), Some(1));
        let nulls = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        assert_eq!(first_difference(&nulls(vec![Some(1.0), None]), &nulls(vec![Some(1.0), Some(0.0)]), exact), Some(1));
    }

    #[test]
    fn close_numbers_are_equal() {
        let numbers = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
        let (own, other) = (numbers(&[1.0, f64::NAN, 100.0]), numbers(&[1.0 + 1e-9, f64::NAN, 101.0]));
        let tolerance = |absolute, relative| Tolerance { absolute, relative };
        assert_eq!(first_difference(&own, &other, Tolerance::default()), Some(0));
        assert_eq!(first_difference(&own, &other, tolerance(1e-6, 0.0)), Some(2));
        assert_eq!(first_difference(&own, &other, tolerance(1e-6, 0.01)), None);
        assert_eq!(
            first_difference(&lists(&[&[1.0], &[2.0]]), &lists(&[&[1.0], &[2.5]]), tolerance(0.1, 0.0)),
            Some(1)
        );
    }

    /// Defect: any number was close to an infinite one.
    #[test]
    fn infinite_numbers_are_close_to_themselves_only() {
        let numbers = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
        let tolerance = Tolerance { absolute: 1.0, relative: 1.0 };
        for (own, other, is_close) in [
            (f64::INFINITY, f64::INFINITY, true),
            (1.0, f64::INFINITY, false),
            (f64::INFINITY, 1.0, false),
            (f64::NEG_INFINITY, f64::INFINITY, false),
        ] {
            assert_eq!(
                first_difference(&numbers(own), &numbers(other), tolerance).is_none(),
                is_close,
                "{own} {other}"
            );
        }
    }
}
