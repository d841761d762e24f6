//! Filling of histograms with axes of equal bins.
//!
//! Bins are found, and weights are added, in the arithmetic and order of boost-histogram 1.5 (`axis/regular.hpp`,
//! `storage_adaptor.hpp`), so that its results are repeated to the last bit.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

/// Values whose bins are found together.
const CHUNK: usize = 1024;
/// Most bins that are counted in several places, so that equal values need not wait for each other.
const MAX_LANE_BINS: usize = 1 << 12;
const LANES: usize = 4;

/// An axis of equal bins, with one for values below it and one for others outside.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct RegularAxis(f64, f64, u32, bool);

impl RegularAxis {
    /// Adds the place of each value, times the stride, to `places`, in steps that processors do for several values together.
    fn add_places(self, values: impl Iterator<Item = f64>, stride: u32, places: &mut [u32]) {
        let Self(low, high, bins, is_closed) = self;
        let (width, above) = (high - low, f64::from(bins));
        let at_high = f64::from(bins.saturating_sub(is_closed.into()));
        let mut buffer = [0.0; CHUNK];
        for (own, value) in buffer.iter_mut().zip(values) {
            let relative = (value - low) / width;
            let inside = relative * above;
            // Not so for NaN.
            let place = if inside < above { inside } else { above };
            let place = if relative < 0.0 { -1.0 } else { place };
            *own = if value == high { at_high } else { place };
        }
        for (place, own) in places.iter_mut().zip(&buffer) {
            let own = (*own as i32).wrapping_add(1).cast_unsigned();
            *place = place.wrapping_add(own.wrapping_mul(stride));
        }
    }

    fn add(self, values: &dyn Array, from: usize, stride: u32, places: &mut [u32]) {
        macro_rules! add {
            ($($variant:ident => $arrow:ty),*) => {
                match values.data_type() {
                    $(DataType::$variant => {
                        let values = &values.as_primitive::<$arrow>().values()[from..];
                        self.add_places(values.iter().map(|value| *value as f64), stride, places);
                    })*
                    _ => {}
                }
            };
        }
        add!(
            Float64 => Float64Type, Float32 => Float32Type, Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type,
            Int64 => Int64Type, UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
        );
    }

    /// Number of bins, with those outside.
    fn extent(self) -> usize {
        self.2 as usize + 2
    }
}

/// Passes the places of all values, some at a time, with the number of the first one.
fn each_chunk(axes: &[(RegularAxis, ArrayRef)], mut visit: impl FnMut(usize, &[u32])) {
    let len = axes.first().map_or(0, |(_, values)| values.len());
    let mut buffer = [0; CHUNK];
    for from in (0..len).step_by(CHUNK) {
        let places = &mut buffer[..CHUNK.min(len - from)];
        places.fill(0);
        let mut stride = 1;
        for (axis, values) in axes {
            axis.add(values, from, stride, places);
            stride *= axis.extent() as u32;
        }
        visit(from, places);
    }
}

fn count(axes: &[(RegularAxis, ArrayRef)], sums: &mut [f64]) {
    let lanes = if sums.len() <= MAX_LANE_BINS { LANES } else { 1 };
    // Memory cannot hold an array whose length overflows a count.
    let mut counts = vec![0u64; sums.len() * lanes];
    each_chunk(axes, |_, places| match lanes {
        1 => places.iter().for_each(|&place| counts[place as usize] += 1),
        _ => {
            let groups = places.chunks_exact(LANES);
            groups.remainder().iter().for_each(|&place| counts[place as usize * LANES] += 1);
            for group in groups {
                for (lane, &place) in group.iter().enumerate() {
                    counts[place as usize * LANES + lane] += 1;
                }
            }
        }
    });
    for (sum, counts) in sums.iter_mut().zip(counts.chunks_exact(lanes)) {
        *sum += counts.iter().sum::<u64>() as f64;
    }
}

/// Fills values into sums that have one more dimension of the sum of weights and that of their squares.
fn weigh(axes: &[(RegularAxis, ArrayRef)], weights: &Float64Array, sums: &mut [f64]) {
    let weights = weights.values();
    each_chunk(axes, |from, places| {
        for (&place, &weight) in places.iter().zip(&weights[from..]) {
            let place = 2 * place as usize;
            sums[place] += weight;
            sums[place + 1] += weight * weight;
        }
    });
}

/// The sums of a histogram with equal bins, in which the first axis comes first in memory, after values were added. With
/// weights, each bin has their sum and that of their squares. An axis is its limits, number of bins, and whether its last
/// bin includes the upper limit.
#[pyfunction]
pub(crate) fn fill_regular(
    py: Python<'_>,
    sums: PyArray,
    axes: Vec<(RegularAxis, PyArray)>,
    weights: Option<PyArray>,
) -> PyResult<Bound<'_, PyAny>> {
    let axes: Vec<(RegularAxis, ArrayRef)> =
        axes.into_iter().map(|(axis, values)| (axis, values.into_inner().0)).collect();
    let (sums, weights) = (sums.into_inner().0, weights.map(|weights| weights.into_inner().0));
    let bins = axes.iter().try_fold(1usize, |bins, (axis, _)| bins.checked_mul(axis.extent()));
    let bins = bins.filter(|bins| i32::try_from(*bins).is_ok()).unwrap_or(0);
    let expected = if weights.is_some() { 2 * bins } else { bins };
    let (Some(sums), true) = (sums.as_primitive_opt::<Float64Type>(), sums.len() == expected && bins > 0) else {
        return Err(PyTypeError::new_err(format!("expected {expected} sums as float64")));
    };
    let len = axes.first().map_or(0, |(_, values)| values.len());
    let is_usable = |values: &ArrayRef| {
        let is_number =
            values.data_type().is_integer() || matches!(values.data_type(), DataType::Float32 | DataType::Float64);
        is_number && values.len() == len && values.null_count() == 0
    };
    let weights = weights.map(|weights| weights.as_primitive_opt::<Float64Type>().cloned());
    let has_weights = weights.as_ref().is_none_or(|weights| weights.as_ref().is_some_and(|own| own.len() == len));
    if !axes.iter().all(|(_, values)| is_usable(values)) || !has_weights {
        return Err(PyTypeError::new_err("expected numbers of equal length without nulls"));
    }
    let mut filled = sums.values().to_vec();
    py.detach(|| match weights.flatten() {
        Some(weights) => weigh(&axes, &weights, &mut filled),
        None => count(&axes, &mut filled),
    });
    Ok(Bound::new(py, PyArray::from_array_ref(Arc::new(Float64Array::from(filled))))?.into_any())
}
