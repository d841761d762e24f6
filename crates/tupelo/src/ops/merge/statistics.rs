//! The statistics of histograms, as by `TH1::GetStats` and those of the classes derived from it.

use std::ops::RangeInclusive;

use tupelo_format::object::{Object, Value};

use super::arrays::{floats, numbers};

/// The members in which a histogram stores its statistics: sums of weights, their squares, and of both times coordinates.
const SUMS: [&[&str]; 3] =
    [&["fTsumwx", "fTsumwx2"], &["fTsumwy", "fTsumwy2", "fTsumwxy"], &["fTsumwz", "fTsumwz2", "fTsumwxz", "fTsumwyz"]];
pub(super) const AXES: [&str; 3] = ["fXaxis", "fYaxis", "fZaxis"];
/// What two axes have in common if bins of the same number are the same.
const AXIS: [&str; 5] = ["fNbins", "fXmin", "fXmax", "fXbins", "fLabels"];
/// `TAxis::kAxisRange`, a bit of an axis that shows only some bins.
pub(super) const HAS_RANGE: u64 = 1 << 11;
/// `TAxis::kAlphanumeric` and `TAxis::kCanExtend`, two of the other bits of an axis.
pub(super) const IS_ALPHANUMERIC: u64 = 1;
pub(super) const CAN_EXTEND: u64 = 1 << 1;
/// `TH1::EStatOverflows::kConsider`.
const COUNTS_OVERFLOWS: i64 = 1;

/// Sums by the names of their members.
pub(super) type Statistics = Vec<(&'static str, f64)>;

/// The statistics of a histogram: those that are stored, or those of its bins where ROOT takes these, since bins were set
/// without filling or an axis has a range.
pub(super) fn statistics(histogram: &Object) -> Statistics {
    let class_name = histogram.class_name();
    let dimensions = dimensions(class_name);
    let profiled: &[&'static str] = match class_name {
        "TProfile" => &["fTsumwy", "fTsumwy2"],
        "TProfile2D" => &["fTsumwz", "fTsumwz2"],
        "TProfile3D" => &["fTsumwt", "fTsumwt2"],
        _ => &[],
    };
    let names = || {
        let coordinates = SUMS.iter().take(dimensions).copied().flatten();
        ["fTsumw", "fTsumw2"].iter().chain(coordinates).chain(profiled).copied()
    };
    let is_unset = number(histogram, "fTsumw") == 0.0 && (!profiled.is_empty() || number(histogram, "fEntries") > 0.0);
    let axes: Option<Vec<Axis<'_>>> = AXES.iter().take(dimensions).map(|name| Axis::of(histogram, name)).collect();
    let computed = axes
        .filter(|axes| is_unset || axes.iter().any(|axis| axis.has_range))
        .and_then(|axes| of_bins(histogram, &axes, !profiled.is_empty()));
    match computed {
        Some(sums) => names().zip(sums).collect(),
        None => names().map(|name| (name, number(histogram, name))).collect(),
    }
}

/// The number of axes of a histogram, by its class.
pub(super) fn dimensions(class_name: &str) -> usize {
    match class_name {
        "TProfile" => 1,
        "TProfile2D" => 2,
        "TProfile3D" => 3,
        _ => class_name.get(2..3).and_then(|digit| digit.parse().ok()).unwrap_or(1),
    }
}

pub(super) fn number(object: &Object, name: &str) -> f64 {
    match object.get(name) {
        Some(&Value::Float(number)) => number,
        Some(&Value::Int(number)) => number as f64,
        Some(&Value::UInt(number)) => number as f64,
        _ => 0.0,
    }
}

/// An axis of a histogram.
pub(super) struct Axis<'h> {
    pub(super) axis: &'h Object,
    pub(super) bins: usize,
    /// Whether it gets more bins where they are filled.
    pub(super) can_extend: bool,
    has_range: bool,
    /// The bins that count.
    counting: RangeInclusive<usize>,
}

impl<'h> Axis<'h> {
    pub(super) fn of(histogram: &'h Object, name: &str) -> Option<Self> {
        let axis = histogram.get(name)?.as_object()?;
        let count = |name: &str| match axis.get(name) {
            Some(&Value::Int(number)) => usize::try_from(number).ok(),
            _ => None,
        };
        let bits = |name: &str| match axis.get(name) {
            Some(&Value::UInt(bits)) => bits,
            Some(&Value::Int(bits)) => u64::try_from(bits).unwrap_or(0),
            _ => 0,
        };
        let bins = count("fNbins")?;
        let has_range = bits("fBits") & HAS_RANGE != 0;
        let counts_overflows = matches!(histogram.get("fStatOverflows"), Some(&Value::Int(COUNTS_OVERFLOWS)));
        let counting = match has_range {
            true => count("fFirst")?..=count("fLast")?.min(bins + 1),
            false if counts_overflows => 0..=bins + 1,
            false => 1..=bins,
        };
        let can_extend = bits("fBits2") & CAN_EXTEND != 0;
        Some(Self { axis, bins, can_extend, has_range, counting })
    }

    /// Its list of labels.
    pub(super) fn labels(&self) -> Option<&'h Object> {
        self.axis.get("fLabels").and_then(Value::as_object)
    }

    /// The lower limit of its first bin and the upper one of its last.
    pub(super) fn limits(&self) -> [f64; 2] {
        [number(self.axis, "fXmin"), number(self.axis, "fXmax")]
    }

    /// The mean width of its bins.
    pub(super) fn width(&self) -> f64 {
        let [low, high] = self.limits();
        (high - low) / self.bins as f64
    }

    /// Whether its bins have the same width.
    pub(super) fn is_equidistant(&self) -> bool {
        let edges = self.edges();
        let mut widths = edges.windows(2).map(|edges| edges[1] - edges[0]);
        let first = widths.next().unwrap_or(0.0);
        widths.all(|width| (width - first).abs() <= 1e-10 * first.abs().max(width.abs()))
    }

    /// The centre of a bin, as by `TAxis::GetBinCenter`.
    pub(super) fn centre(&self, bin: usize, edges: &[f64]) -> f64 {
        let inner = bin.checked_sub(1).and_then(|first| edges.get(first).zip(edges.get(bin)));
        match inner {
            // It grows with labels: its coordinates mean nothing.
            _ if self.can_extend && self.labels().is_some() => 0.0,
            Some((low, high)) => 0.5 * (low + high),
            None => {
                let [low, _] = self.limits();
                low + (bin as f64 - 0.5) * self.width()
            }
        }
    }

    /// The limits of its bins, if they were given one by one.
    pub(super) fn edges(&self) -> Vec<f64> {
        numbers(self.axis, "fXbins").map(floats).unwrap_or_default()
    }
}

/// The name of a part of two axes that differs, so that bins of the same number are not the same.
pub(super) fn differing_part(axes: [Option<&Object>; 2]) -> Option<&'static str> {
    let part = |axis: Option<&Object>, name: &str| axis.and_then(|axis| axis.get(name).cloned());
    AXIS.into_iter().find(|name| part(axes[0], name) != part(axes[1], name))
}

/// The sums over the bins that count; `None` if the histogram has another number of bins.
fn of_bins(histogram: &Object, axes: &[Axis<'_>], is_profile: bool) -> Option<Vec<f64>> {
    let array = |name: &str| numbers(histogram, name).map(floats).unwrap_or_default();
    let (contents, squares) = (array("fArray"), array("fSumw2"));
    let (entries, entry_squares) = match is_profile {
        true => (array("fBinEntries"), array("fBinSumw2")),
        false => (contents.clone(), squares.clone()),
    };
    let cells = axes.iter().try_fold(1_usize, |cells, axis| cells.checked_mul(axis.bins.checked_add(2)?))?;
    if entries.len() != cells || contents.len() != cells {
        return None;
    }
    let edges: Vec<Vec<f64>> = axes.iter().map(Axis::edges).collect();
    let products: usize = SUMS.iter().take(axes.len()).map(|names| names.len()).sum();
    let mut sums = vec![0.0; 2 + products + if is_profile { 2 } else { 0 }];
    for cell in 0..cells {
        let mut rest = cell;
        let bins: Vec<usize> = axes
            .iter()
            .map(|axis| {
                let bin = rest % (axis.bins + 2);
                rest /= axis.bins + 2;
                bin
            })
            .collect();
        if bins.iter().zip(axes).any(|(bin, axis)| !axis.counting.contains(bin)) {
            continue;
        }
        let places = bins.iter().zip(axes).zip(&edges);
        let centres: Vec<f64> = places.map(|((&bin, axis), edges)| axis.centre(bin, edges)).collect();
        let weight = entries.get(cell).copied().unwrap_or_default();
        let square = entry_squares.get(cell).copied().unwrap_or(weight.abs());
        let mut values = vec![weight, square];
        for (number, own) in centres.iter().enumerate() {
            values.extend([weight * own, weight * own * own]);
            values.extend(centres.iter().take(number).map(|other| weight * other * own));
        }
        if is_profile {
            values.extend([&contents, &squares].map(|array| array.get(cell).copied().unwrap_or_default()));
        }
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    Some(sums)
}
