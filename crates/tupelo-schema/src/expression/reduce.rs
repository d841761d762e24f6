//! Reductions of lists of numbers: sums, extremes, means and positions.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;

use super::functions::{Number, NumberType, in_lane};
use super::syntax::Binary;
use super::value::{Lists, with_nulls};
use crate::{Error, Result};

/// The reduction of one list of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Product,
    Min,
    Max,
    Mean,
    ArgMin,
    ArgMax,
}

/// A number for each list that is not missing; what is missing in it does not count.
pub(super) fn reduce(reduction: Reduction, lane: NumberType, lists: &Lists, leaf: &ArrayRef) -> Result<ArrayRef> {
    fn best<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, from: usize, to: usize, is_max: bool) -> Option<usize>
    where
        T::Native: Number,
    {
        let mut best: Option<usize> = None;
        for index in (from..to).filter(|&index| !array.is_null(index)) {
            let value = array.value(index);
            let is_better = best.is_none_or(|best| {
                let best = array.value(best);
                // NaN goes through, as in NumPy: it is unequal to itself.
                #[expect(clippy::eq_op, reason = "only NaN is unequal to itself")]
                let (is_nan, was_nan) = (value != value, best != best);
                !was_nan && (is_nan || if is_max { value > best } else { value < best })
            });
            if is_better {
                best = Some(index);
            }
        }
        best
    }
    fn run<T: ArrowPrimitiveType>(reduction: Reduction, lists: &Lists, leaf: &ArrayRef) -> Result<ArrayRef>
    where
        T::Native: Number,
    {
        let array = NumberType::cast::<T>(leaf)?;
        let windows = || lists.bounds().map(|(from, to)| (from as usize, to as usize));
        let is_max = matches!(reduction, Reduction::Max | Reduction::ArgMax);
        if let Reduction::ArgMin | Reduction::ArgMax = reduction {
            let places = windows().map(|(from, to)| best(&array, from, to, is_max).map(|at| (at - from) as i64));
            return Ok(Arc::new(places.collect::<PrimitiveArray<Int64Type>>()));
        }
        if let Reduction::Min | Reduction::Max = reduction {
            let extremes = windows().map(|(from, to)| best(&array, from, to, is_max).map(|at| array.value(at)));
            return Ok(Arc::new(extremes.collect::<PrimitiveArray<T>>()));
        }
        let there = |from: usize, to: usize| (from..to).filter(|&at| !array.is_null(at)).map(|at| array.value(at));
        if T::DATA_TYPE == DataType::Int64 && reduction != Reduction::Mean {
            let operator = if reduction == Reduction::Sum { Binary::Add } else { Binary::Multiply };
            let start = T::Native::from_f64(if reduction == Reduction::Sum { 0.0 } else { 1.0 });
            let all = windows().map(|(from, to)| {
                there(from, to).try_fold(start, |sum, value| Number::arithmetic(operator, sum, value))
            });
            let all: Option<Vec<T::Native>> = all.collect();
            let all = all.ok_or_else(|| Error::invalid_argument("a sum or product overflows a 64-bit integer"))?;
            return Ok(Arc::new(PrimitiveArray::<T>::new(all.into(), None)));
        }
        // In double precision whatever the lane is.
        let all = windows().map(|(from, to)| {
            let count = there(from, to).count();
            let numbers = there(from, to).map(Number::to_f64);
            match reduction {
                Reduction::Sum => Some(T::Native::from_f64(numbers.fold(0.0, |sum, number| sum + number))),
                Reduction::Product => Some(T::Native::from_f64(numbers.product())),
                _ => (count > 0)
                    .then(|| T::Native::from_f64(numbers.fold(0.0, |sum, number| sum + number) / count as f64)),
            }
        });
        Ok(Arc::new(all.collect::<PrimitiveArray<T>>()))
    }
    let reduced = in_lane!(lane, run(reduction, lists, leaf))?;
    with_nulls(&reduced, lists.nulls.as_ref())
}
