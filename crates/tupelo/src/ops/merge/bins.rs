//! Common bins of histograms with different axes, as ROOT's merger makes them: bins with equal labels are one bin, and limits
//! become those of both where the bins of one fit those of the other (`TH1Merger`, `TH1::RecomputeAxisLimits`,
//! `TAxis::FindBin`).

use std::collections::HashMap;
use std::sync::Arc;

use tupelo_format::object::{Numbers, Object, Value};

use super::arrays::{ARRAYS, floats, numbers, set_numbers};
use super::statistics::{AXES, Axis, CAN_EXTEND, HAS_RANGE, IS_ALPHANUMERIC, differing_part, dimensions, number};

/// The most bins of a sum, if the histograms do not have more: files may have any limits.
const MAX_CELLS: usize = 1 << 22;
/// The bit of histograms whose bins have widths of powers of two, `TH1::kAutoBinPTwo`.
const POWERS_OF_TWO: u64 = 1 << 20;

/// Why axes cannot be made one, beside what differs.
const OUTSIDE: &str = ", and there are entries outside of the bins";

/// Two histograms with common bins; `None` where they have them already.
pub(super) fn aligned(first: &Object, other: &Object, is_profile: bool) -> Result<Option<[Object; 2]>, String> {
    let names = &AXES[..dimensions(first.class_name())];
    let axes = |histogram| {
        let axes: Option<Vec<Axis<'_>>> = names.iter().map(|name| Axis::of(histogram, name)).collect();
        axes.ok_or_else(|| "it lacks an axis".to_owned())
    };
    let (own, added) = (axes(first)?, axes(other)?);
    let mut pairs = names.iter().zip(own.iter().zip(&added));
    let Some((name, part)) = pairs.find_map(|(name, (own, added))| Some((name, differing(own, added)?))) else {
        return Ok(None);
    };
    let (cells, added_cells) = (Cells::of(first, &own)?, Cells::of(other, &added)?);
    let labelled = |axes: &[Axis<'_>], cells: &Cells| axes[0].labels().is_some() || cells.is_empty;
    let has_labels = || own.iter().chain(&added).any(|axis| axis.labels().is_some());
    let extends = own.iter().all(|axis| axis.can_extend) || cells.is_empty;
    let is_by_label =
        !is_profile && has_labels() && extends && labelled(&own, &cells) && labelled(&added, &added_cells);
    let is_binned_by_itself = matches!(first.get("fBits"), Some(Value::UInt(bits)) if bits & POWERS_OF_TWO != 0);
    if !is_by_label && (has_labels() || is_binned_by_itself) {
        return Err(format!("its {name} has another {part}"));
    }
    let pairs = names.iter().zip(own.iter().zip(&added)).enumerate();
    let common = pairs.map(|(place, (name, (own, added)))| {
        let pair = Pair { name, own, added, own_used: cells.used(place), added_used: added_cells.used(place) };
        if is_by_label { pair.by_label() } else { pair.by_limits(is_profile) }
    });
    let common: Vec<Common> = common.collect::<Result<_, _>>()?;
    let count = common.iter().try_fold(1_usize, |cells, axis| cells.checked_mul(axis.bins.checked_add(2)?));
    let most = MAX_CELLS.max(cells.has_contents.len() + added_cells.has_contents.len());
    let Some(count) = count.filter(|count| *count <= most) else {
        return Err("its limits differ so much that the sum would have too many bins".to_owned());
    };
    let own = moved(first, names, &common, count, &cells, |common| &common.own)?;
    Ok(Some([own, moved(other, names, &common, count, &added_cells, |common| &common.added)?]))
}

/// The part of two axes that makes bins of the same number differ: limits that agree to rounding do not.
fn differing(own: &Axis<'_>, added: &Axis<'_>) -> Option<&'static str> {
    let tolerance = own.width() * 1e-10;
    let is_close = |name| {
        let distance = (number(own.axis, name) - number(added.axis, name)).abs();
        distance <= tolerance && tolerance.is_finite()
    };
    differing_part([Some(own.axis), Some(added.axis)]).filter(|part| {
        let is_limit = ["fXmin", "fXmax"].contains(part);
        !is_limit || !is_close("fXmin") || !is_close("fXmax") || own.axis.get("fLabels") != added.axis.get("fLabels")
    })
}

/// An axis of the sum, and what the bins of both axes become, by their numbers, underflow and overflow too.
struct Common {
    axis: Object,
    bins: usize,
    own: Vec<usize>,
    added: Vec<usize>,
}

/// An axis of both histograms, and its bins that have contents in each of them.
struct Pair<'a> {
    name: &'a str,
    own: &'a Axis<'a>,
    added: &'a Axis<'a>,
    own_used: Vec<usize>,
    added_used: Vec<usize>,
}

impl Pair<'_> {
    /// Bins with the labels of both axes.
    fn by_label(&self) -> Result<Common, String> {
        let Self { own, added, .. } = self;
        let (Some(list), Some(names)) = (own.labels().or(added.labels()), added.labels()) else {
            // Without labels in the second one, no bin of it has contents, or it is another axis than that with labels.
            return match (differing(own, added).is_none(), self.added_used.is_empty()) {
                (true, _) => Ok(self.unchanged(unmoved(own))),
                (false, true) => Ok(self.unchanged(vec![0; added.bins + 2])),
                (false, false) => Err("its axes have other labels or limits".to_owned()),
            };
        };
        let mut items = own.labels().map_or_else(|| Ok(Vec::new()), label_items)?;
        let mut known: HashMap<String, usize> = HashMap::new();
        for item in &items {
            let (name, bin) = label(item)?;
            known.entry(name).or_insert(bin);
        }
        let is_unlabelled = self.own_used.iter().any(|bin| (items.len() + 1..=own.bins).contains(bin));
        let is_odd = known.values().any(|&bin| bin == 0 || bin > items.len()) || known.len() < items.len();
        if is_odd || is_unlabelled {
            return Err("some of its bins have no labels, or several have one".to_owned());
        }
        let added_items = label_items(names)?;
        let mut added_names: HashMap<usize, (String, &Value)> = HashMap::new();
        for item in &added_items {
            let (name, bin) = label(item)?;
            added_names.entry(bin).or_insert((name, item));
        }
        let (mut bins, mut places) = (own.bins, vec![0; added.bins + 2]);
        for &bin in self.added_used.iter().filter(|bin| (1..=added.bins).contains(bin)) {
            let Some((name, item)) = added_names.get(&bin) else {
                return Err(format!("its bin {bin} has contents and no label"));
            };
            let next = items.len() + 1;
            places[bin] = *known.entry(name.clone()).or_insert(next);
            if places[bin] == next {
                if next > bins {
                    // As by `TH1::LabelsInflate`.
                    bins = bins.checked_mul(2).filter(|bins| *bins > 0).ok_or("it would have too many bins")?;
                }
                items.push(numbered(item, next));
            }
        }
        places[added.bins + 1] = bins + 1;
        let [low, high] = own.limits();
        let mut axis = match bins > own.bins {
            true if self.own_used.iter().any(|bin| !(1..=own.bins).contains(bin)) => return Err(self.refused(OUTSIDE)),
            true => with_limits(own, bins, low, low + (high - low) * (bins / own.bins) as f64)?,
            false => own.axis.clone(),
        };
        let mut list = list.clone();
        list.set("fObjects", Value::List(items));
        axis.set("fLabels", Value::Object(Arc::new(list)));
        let bits = axis.get("fBits2").cloned();
        match bits {
            Some(Value::UInt(bits)) => axis.set("fBits2", Value::UInt(bits | IS_ALPHANUMERIC | CAN_EXTEND)),
            Some(Value::Int(bits)) => axis.set("fBits2", Value::Int(bits | (IS_ALPHANUMERIC | CAN_EXTEND) as i64)),
            _ => false,
        };
        let mut own_places = unmoved(own);
        own_places[own.bins + 1] = bins + 1;
        Ok(Common { axis, bins, own: own_places, added: places })
    }

    /// Limits of both, if the widths of bins are multiples of each other, and so are the distances of the limits.
    fn by_limits(&self, is_profile: bool) -> Result<Common, String> {
        let Self { own, added, .. } = self;
        if differing(own, added).is_none() {
            return Ok(self.unchanged(unmoved(own)));
        }
        if !own.is_equidistant() || !added.is_equidistant() {
            return Err(self.refused(""));
        }
        let ([own_low, own_high], [added_low, added_high]) = (own.limits(), added.limits());
        let (own_width, added_width) = (own.width(), added.width());
        let width = own_width.max(added_width);
        let (mut low, mut high) = (own_low.min(added_low), own_high.max(added_high));
        let is_multiple =
            own_width > 0.0 && added_width > 0.0 && is_whole(width / own_width) && is_whole(width / added_width);
        if !is_multiple {
            return Err(self.refused(""));
        }
        let missing = |distance: f64| if is_whole(distance) { 0.0 } else { distance.ceil() - distance };
        low -= missing((own_low - low) / own_width) * own_width;
        low -= missing((added_low - low) / added_width) * added_width;
        high += missing((high - own_high) / own_width) * own_width;
        high += missing((high - added_high) / added_width) * added_width;
        let bins = ((high - low) / width).round_ties_even();
        let fits = is_whole((own_low - low) / own_width) && is_whole((high - own_high) / own_width);
        // A file may have any limits; the bins of the sum are checked with those of the other axes.
        if !fits || !(1.0..1e9).contains(&bins) {
            return Err(self.refused(""));
        }
        let bins = bins as usize;
        // Where entries outside of the bins would be inside of those of the sum, their bins are not known.
        let is_outside = |axis: &Axis<'_>, bin: usize| {
            let centre = axis.centre(bin, &[]);
            let is_inside = is_profile || own.can_extend || low < centre && centre < high;
            !(1..=axis.bins).contains(&bin) && is_inside
        };
        let mut used = [(own, &self.own_used), (added, &self.added_used)].into_iter();
        if used.any(|(axis, used)| used.iter().any(|&bin| is_outside(axis, bin))) {
            return Err(self.refused(OUTSIDE));
        }
        let [own_bins, added_bins] = [own, added].map(|axis| {
            let edges = axis.edges();
            (0..axis.bins + 2).map(|bin| find(axis.centre(bin, &edges), bins, [low, high])).collect()
        });
        Ok(Common { axis: with_limits(own, bins, low, high)?, bins, own: own_bins, added: added_bins })
    }

    /// The axis of the first histogram.
    fn unchanged(&self, added: Vec<usize>) -> Common {
        Common { axis: self.own.axis.clone(), bins: self.own.bins, own: unmoved(self.own), added }
    }

    /// Why there is no common axis.
    fn refused(&self, rest: &str) -> String {
        format!("its {} has another {}{rest}", self.name, differing(self.own, self.added).unwrap_or("axis"))
    }
}

/// The bins of an axis, as what they become where they stay.
fn unmoved(axis: &Axis<'_>) -> Vec<usize> {
    (0..axis.bins + 2).collect()
}

/// An axis with other limits.
fn with_limits(axis: &Axis<'_>, bins: usize, low: f64, high: f64) -> Result<Object, String> {
    let mut with = axis.axis.clone();
    with.set("fNbins", Value::Int(i64::try_from(bins).map_err(|_| "it would have too many bins".to_owned())?));
    with.set("fXmin", Value::Float(low));
    with.set("fXmax", Value::Float(high));
    with.set("fFirst", Value::Int(0));
    with.set("fLast", Value::Int(0));
    if let Some(&Value::UInt(bits)) = with.get("fBits") {
        with.set("fBits", Value::UInt(bits & !HAS_RANGE));
    }
    set_numbers(&mut with, "fXbins", Numbers::F64(Vec::new()))?;
    Ok(with)
}

fn label_items(labels: &Object) -> Result<Vec<Value>, String> {
    match labels.get("fObjects") {
        Some(Value::List(items)) => Ok(items.clone()),
        _ => Err("its labels are not a list".to_owned()),
    }
}

/// The text of a label, and its bin.
fn label(item: &Value) -> Result<(String, usize), String> {
    let object = item.as_object();
    let bin = match object.and_then(|object| object.get("fUniqueID")) {
        Some(&Value::UInt(bin)) => usize::try_from(bin).ok(),
        _ => None,
    };
    match (object.and_then(|object| object.get("fString")), bin) {
        (Some(Value::Text(text)), Some(bin)) => Ok((text.clone(), bin)),
        _ => Err("its labels are not texts".to_owned()),
    }
}

/// The label for another bin.
fn numbered(item: &Value, bin: usize) -> Value {
    match item.as_object() {
        Some(object) => {
            let mut object = object.clone();
            object.set("fUniqueID", Value::UInt(bin as u64));
            Value::Object(Arc::new(object))
        }
        None => item.clone(),
    }
}

/// Whether a number is whole to rounding.
fn is_whole(number: f64) -> bool {
    let rest = number - number.floor();
    rest < 1e-8 || 1.0 - rest < 1e-8
}

/// The bin of a value, as by `TAxis::FindFixBin`.
fn find(x: f64, bins: usize, [low, high]: [f64; 2]) -> usize {
    match x {
        x if x < low => 0,
        x if x < high => 1 + (bins as f64 * (x - low) / (high - low)) as usize,
        _ => bins + 1,
    }
}

/// The bins of a histogram.
struct Cells {
    /// Number of bins of each axis, with underflow and overflow.
    widths: Vec<usize>,
    /// Whether a bin has contents or an error.
    has_contents: Vec<bool>,
    is_empty: bool,
}

impl Cells {
    fn of(histogram: &Object, axes: &[Axis<'_>]) -> Result<Self, String> {
        let array = |name: &str| numbers(histogram, name).map(floats).unwrap_or_default();
        let (contents, squares) = (array("fArray"), array("fSumw2"));
        let widths: Vec<usize> = axes.iter().map(|axis| axis.bins.saturating_add(2)).collect();
        let cells = widths.iter().try_fold(1_usize, |cells, width| cells.checked_mul(*width));
        if cells != Some(contents.len()) {
            return Err("its axes have another number of bins than its contents".to_owned());
        }
        let square = |cell: usize| squares.get(cell).copied().unwrap_or(0.0);
        let has_contents: Vec<bool> =
            contents.iter().enumerate().map(|(cell, content)| *content != 0.0 || square(cell) != 0.0).collect();
        let is_empty = number(histogram, "fTsumw") == 0.0 && number(histogram, "fEntries") == 0.0;
        let is_empty = is_empty && contents.iter().sum::<f64>() == 0.0;
        Ok(Self { widths, has_contents, is_empty })
    }

    /// The number of the bin of a cell on each axis.
    fn bins(&self, cell: usize) -> impl Iterator<Item = usize> + '_ {
        let mut rest = cell;
        self.widths.iter().map(move |width| {
            let bin = rest % width;
            rest /= width;
            bin
        })
    }

    /// The bins of an axis that have contents, in the order of the cells.
    fn used(&self, axis: usize) -> Vec<usize> {
        let mut is_known = vec![false; self.widths[axis]];
        let with = self.has_contents.iter().enumerate().filter(|(_, has_contents)| **has_contents);
        let bins = with.filter_map(|(cell, _)| self.bins(cell).nth(axis));
        bins.filter(|&bin| !std::mem::replace(&mut is_known[bin], true)).collect()
    }
}

/// A histogram with other axes.
fn moved(
    histogram: &Object,
    names: &[&str],
    axes: &[Common],
    count: usize,
    cells: &Cells,
    places: fn(&Common) -> &[usize],
) -> Result<Object, String> {
    let place = |cell: usize| {
        let bins = cells.bins(cell).zip(axes);
        bins.fold((0, 1), |(place, stride), (bin, axis)| (place + places(axis)[bin] * stride, stride * (axis.bins + 2)))
            .0
    };
    let new_cells: Vec<usize> = (0..cells.has_contents.len()).map(place).collect();
    let mut with = histogram.clone();
    for name in ARRAYS {
        let Some(values) = numbers(histogram, name).filter(|values| values.len() == new_cells.len()) else { continue };
        let values = values_at(values, &new_cells, count).ok_or_else(|| format!("its {name} has another type"))?;
        set_numbers(&mut with, name, values)?;
    }
    for (name, axis) in names.iter().zip(axes) {
        with.set(name, Value::Object(Arc::new(axis.axis.clone())));
    }
    with.set("fNcells", Value::Int(i64::try_from(count).map_err(|_| "it would have too many bins".to_owned())?));
    Ok(with)
}

/// The sums of the values that have the same place.
fn values_at(values: &Numbers, places: &[usize], count: usize) -> Option<Numbers> {
    fn each<T: Copy + Default>(values: &[T], places: &[usize], count: usize, sum: fn(T, T) -> T) -> Vec<T> {
        let mut all = vec![T::default(); count];
        values.iter().zip(places).for_each(|(&value, &place)| all[place] = sum(all[place], value));
        all
    }
    Some(match values {
        Numbers::I8(values) => Numbers::I8(each(values, places, count, i8::saturating_add)),
        Numbers::I16(values) => Numbers::I16(each(values, places, count, i16::saturating_add)),
        Numbers::I32(values) => Numbers::I32(each(values, places, count, i32::saturating_add)),
        Numbers::I64(values) => Numbers::I64(each(values, places, count, i64::saturating_add)),
        Numbers::F32(values) => Numbers::F32(each(values, places, count, |sum, value| sum + value)),
        Numbers::F64(values) => Numbers::F64(each(values, places, count, |sum, value| sum + value)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tupelo_format::streamer::StreamerInfos;

    use super::*;
    use crate::ops::merge::histogram::sum;

    fn made(class: &str, members: &[(&str, Value)]) -> Object {
        let members = members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Object::new(class, members, &StreamerInfos::histograms()).expect("an object")
    }

    fn histogram(bins: i64, low: f64, high: f64, contents: Vec<f64>) -> Object {
        let limits = [("fNbins", Value::Int(bins)), ("fXmin", Value::Float(low)), ("fXmax", Value::Float(high))];
        let axis = Value::Object(Arc::new(made("TAxis", &limits)));
        made("TH1D", &[("fXaxis", axis), ("fArray", Value::Numbers(Numbers::F64(contents)))])
    }

    fn contents(histogram: &Object) -> Vec<f64> {
        numbers(histogram, "fArray").map(floats).expect("contents")
    }

    #[test]
    fn limits_become_those_of_both() {
        let wide = histogram(2, -2.0, 2.0, vec![0.0, 5.0, 7.0, 0.0]);
        let narrow = histogram(3, 0.0, 3.0, vec![0.0, 1.0, 2.0, 3.0, 0.0]);
        for both in [sum(&wide, &narrow), sum(&narrow, &wide)] {
            let both = both.expect("a sum");
            assert_eq!(contents(&both), [0.0, 5.0, 10.0, 3.0, 0.0]);
            assert_eq!(
                (both.get("fNcells"), number(both.get("fXaxis").and_then(Value::as_object).expect("an axis"), "fXmax")),
                (Some(&Value::Int(5)), 4.0)
            );
        }
        let outside = histogram(3, 0.0, 3.0, vec![1.0, 1.0, 2.0, 3.0, 0.0]);
        let error = sum(&wide, &outside).expect_err("an underflow");
        assert!(error.contains("entries outside of the bins"), "{error}");
    }

    /// Files may have any limits, numbers of bins and labels.
    #[test]
    fn hostile_axes_are_refused() {
        let one = histogram(1, 0.0, 1.0, vec![0.0, 1.0, 0.0]);
        let others = [
            (1, 1e8, 1e8 + 1.0, 3),
            (1, f64::NAN, 1.0, 3),
            (1, 1.0, 0.0, 3),
            (1, 0.0, f64::INFINITY, 3),
            (0, 0.0, 2.0, 2),
            (i64::MAX, 0.0, 2.0, 3),
            (-1, 0.0, 2.0, 3),
            (5, 0.0, 2.0, 3),
        ];
        for (bins, low, high, cells) in others {
            let other = histogram(bins, low, high, vec![0.0; cells]);
            for (first, second) in [(&one, &other), (&other, &one)] {
                assert!(sum(first, second).is_err(), "{bins} bins from {low} to {high}");
            }
        }
    }
}
