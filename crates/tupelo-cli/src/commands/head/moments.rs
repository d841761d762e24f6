//! Mean and standard deviation of numbers, without rounding errors for integers that no floating-point number represents.

use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, cast::AsArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};

/// The differences of smaller numbers do not overflow.
const FAR: f64 = 1e300;

/// A number as an unevaluated sum: the nearest floating-point number, and the rest.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Number {
    pub(in super::super) near: f64,
    pub(in super::super) rest: f64,
}

impl From<f64> for Number {
    fn from(near: f64) -> Self {
        Self { near, rest: 0.0 }
    }
}

impl From<i128> for Number {
    fn from(integer: i128) -> Self {
        let near = integer as f64;
        Self { near, rest: (integer - near as i128) as f64 }
    }
}

impl Number {
    /// Half of the difference from another number: the difference of two finite numbers may overflow.
    fn half_distance(self, other: Self) -> f64 {
        self.near / 2.0 - other.near / 2.0 + (self.rest - other.rest) / 2.0
    }
}

/// The valid numbers in an array of numbers or booleans.
pub(in super::super) fn each_number(array: &ArrayRef, visit: &mut dyn FnMut(Number)) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().iter().flatten().for_each(|value| visit(i128::from(value).into()));
        }
        other if other.is_integer() => {
            let integers = cast(array, &DataType::Int64)?;
            integers.as_primitive::<Int64Type>().iter().flatten().for_each(|value| visit(i128::from(value).into()));
        }
        _ => {
            let numbers = cast(array, &DataType::Float64)?;
            numbers.as_primitive::<Float64Type>().iter().flatten().for_each(|value| visit(value.into()));
        }
    }
    Ok(())
}

/// Number, mean and standard deviation of finite numbers.
#[derive(Debug)]
pub(in super::super) struct Moments {
    pub(in super::super) count: u64,
    /// The number from which distances are taken: the first one. Distances of numbers near to it have no rounding errors.
    origin: Number,
    /// The mean of the half distances.
    half_mean: f64,
    /// The sum of the squared differences from the mean.
    squares: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, origin: 0.0.into(), half_mean: 0.0, squares: 0.0 }
    }
}

impl Moments {
    /// Adds a number; one that is not finite is left out.
    pub(in super::super) fn add(&mut self, number: Number) {
        if !number.near.is_finite() {
            return;
        }
        if self.count == 0 && number.near.abs() < FAR {
            self.origin = number;
        }
        self.count += 1;
        // Welford's method.
        let half = number.half_distance(self.origin);
        let step = half - self.half_mean;
        self.half_mean += step / self.count as f64;
        self.squares += step * (half - self.half_mean) * 4.0;
    }

    pub(in super::super) fn mean(&self) -> f64 {
        self.origin.near + (self.origin.rest + 2.0 * self.half_mean)
    }

    pub(in super::super) fn deviation(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, UInt64Array};

    use super::*;

    fn moments(numbers: impl IntoIterator<Item = Number>) -> Moments {
        let mut moments = Moments::default();
        numbers.into_iter().for_each(|number| moments.add(number));
        moments
    }

    /// Defect: a large mean left nothing of the standard deviation.
    #[test]
    fn moments_do_not_cancel() {
        for (mean, spread) in [(1.76e9, 1.0), (1.76e18, 1e9), (5e9, 0.25), (-1e150, 1e145), (0.0, 3.0)] {
            let number = |number: i32| Number::from(mean + if number % 2 == 0 { spread } else { -spread });
            let moments = moments((0..1000).map(number));
            assert!((moments.mean() - mean).abs() <= mean.abs().max(spread) * 1e-15, "{}", moments.mean());
            assert!((moments.deviation() / spread - 1.0).abs() < 1e-6, "{mean}: {}", moments.deviation());
        }
        let times = moments((0..1000).map(|number| Number::from(1e15 + f64::from(number % 5))));
        assert!((times.deviation() - 2.0_f64.sqrt()).abs() < 1e-12, "{}", times.deviation());
        let extreme = moments([f64::MAX, f64::MIN, f64::MAX, f64::MIN, f64::NAN].map(Number::from));
        assert_eq!((extreme.count, extreme.mean()), (4, 0.0));
        let mixed = moments([1e18, 1.0, 2.0, 3.0].map(Number::from));
        assert!((mixed.mean() / 2.5e17 - 1.0).abs() < 1e-15, "{}", mixed.mean());
    }

    /// Defect: integers above 2^53 were rounded first.
    #[test]
    fn large_integers_are_exact() {
        let signed: ArrayRef = Arc::new(Int64Array::from_iter([Some(i64::MAX), None, Some(i64::MAX - 4)]));
        let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 2, u64::MAX - 1]));
        for (array, count, deviation) in [(signed, 2, 2.0), (unsigned, 3, (2.0_f64 / 3.0).sqrt())] {
            let mut moments = Moments::default();
            each_number(&array, &mut |number| moments.add(number)).expect("numbers");
            assert_eq!(moments.count, count);
            assert!((moments.deviation() - deviation).abs() < 1e-12, "{}", moments.deviation());
        }
        let even = moments((0..100_000_i128).map(|entry| ((1 << 60) + entry % 2).into()));
        assert!((even.deviation() - 0.5).abs() < 1e-9, "{}", even.deviation());
    }
}
