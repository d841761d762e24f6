//! Plots of the objects that ROOT stores (`hist/hist/inc/TH1.h`, `TGraph.h`, `TEfficiency.h`).

use tupelo::object::{Numbers, Object, Value};

use super::super::drawing::{Bars, Grid, Labels, Plot, Points, number};
use crate::table::{count, things};

/// Graphs, with the members that have the errors of x and y, below and above.
const GRAPHS: [(&str, Option<[[&str; 2]; 2]>); 3] = [
    ("TGraph", None),
    ("TGraphErrors", Some([["fEX", "fEX"], ["fEY", "fEY"]])),
    ("TGraphAsymmErrors", Some([["fEXlow", "fEXhigh"], ["fEYlow", "fEYhigh"]])),
];
const EFFICIENCY: &str = "TEfficiency";
/// Above this, doubles are not exact.
const MAX_EXACT: f64 = 9e15;

/// Number of axes of a histogram or profile; `None` for other classes.
fn dimensions(class: &str) -> Option<usize> {
    let is_bin = |rest: &str| matches!(rest, "C" | "S" | "I" | "L" | "F" | "D");
    match class {
        "TProfile" => Some(1),
        "TProfile2D" => Some(2),
        _ if class.strip_prefix("TH1").is_some_and(is_bin) => Some(1),
        _ if class.strip_prefix("TH2").is_some_and(is_bin) => Some(2),
        _ => None,
    }
}

/// Whether objects of a class are drawn.
pub(in super::super::super) fn is_drawable(class: &str) -> bool {
    dimensions(class).is_some() || class == EFFICIENCY || GRAPHS.iter().any(|(graph, _)| *graph == class)
}

/// What to draw of an object, and its texts; or what is wrong with it.
pub(super) fn plot(object: &Object) -> Result<(Plot, Labels), String> {
    let class = object.class_name();
    let (plot, axes, summary) = if let Some((_, errors)) = GRAPHS.iter().find(|(graph, _)| *graph == class) {
        let points = points(object, *errors)?;
        let summary = summary_of_points(&points);
        (Plot::Points(points), axis_titles(object.get("fHistogram").and_then(Value::as_object)), summary)
    } else if class == EFFICIENCY {
        efficiency(object)?
    } else {
        let bins = Bins::of(object)?;
        let summary = bins.summary(object);
        (bins.into_plot(), axis_titles(Some(object)), summary)
    };
    let [name, title] = ["fName", "fTitle"].map(|member| text(object, member));
    let title = match (name.is_empty(), title.is_empty() || title == name) {
        (true, _) => title,
        (false, true) => name,
        (false, false) => format!("{name}: {title}"),
    };
    Ok((plot, Labels { title, axes, summary }))
}

fn text(object: &Object, member: &str) -> String {
    match object.get(member) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn float(object: &Object, member: &str) -> Option<f64> {
    match object.get(member)? {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::UInt(value) => Some(*value as f64),
        _ => None,
    }
}

fn length(object: &Object, member: &str) -> Result<usize, String> {
    let number = match object.get(member) {
        Some(Value::Int(number)) => usize::try_from(*number).ok(),
        Some(Value::UInt(number)) => usize::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| format!("{member} is missing or negative"))
}

/// The numbers of an array, which is a member or a base; empty if there are none.
fn floats(object: &Object, member: &str) -> Vec<f64> {
    let numbers = match object.get(member) {
        Some(Value::Numbers(numbers)) => numbers,
        Some(Value::Object(array)) => match array.get("fArray") {
            Some(Value::Numbers(numbers)) => numbers,
            _ => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    match numbers {
        Numbers::Bool(values) => values.iter().map(|value| f64::from(u8::from(*value))).collect(),
        Numbers::I8(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::U8(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I16(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::U16(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I32(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::U32(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I64(values) => values.iter().map(|&value| value as f64).collect(),
        Numbers::U64(values) => values.iter().map(|&value| value as f64).collect(),
        Numbers::F32(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::F64(values) => values.clone(),
    }
}

/// An array of a known length.
fn exactly(object: &Object, member: &str, expected: usize) -> Result<Vec<f64>, String> {
    let values = floats(object, member);
    match values.len() == expected {
        true => Ok(values),
        false => Err(format!("{member} has {} numbers, expected {expected}", values.len())),
    }
}

fn axis_titles(histogram: Option<&Object>) -> [String; 2] {
    ["fXaxis", "fYaxis"].map(|axis| {
        let axis = histogram.and_then(|histogram| histogram.get(axis)?.as_object());
        axis.map_or_else(String::new, |axis| text(axis, "fTitle"))
    })
}

/// The edges of an axis, in ascending order.
fn edges(histogram: &Object, name: &str) -> Result<Vec<f64>, String> {
    let axis = histogram.get(name).and_then(Value::as_object).ok_or_else(|| format!("{name} is missing"))?;
    let bins = length(axis, "fNbins")?;
    let given = floats(axis, "fXbins");
    let edges = match given.is_empty() {
        true => {
            let [low, high] = ["fXmin", "fXmax"].map(|limit| float(axis, limit).unwrap_or(f64::NAN));
            // The contents have a number for each bin, so that their number is plausible.
            let cells = floats(histogram, "fArray").len();
            if bins > cells {
                return Err(format!("{name} has {bins} bins, but there are {cells} values"));
            }
            (0..=bins).map(|bin| low + (high - low) * (bin as f64 / bins as f64)).collect()
        }
        false => given,
    };
    let is_ascending = edges.windows(2).all(|pair| matches!(pair, [low, high] if low < high));
    match bins > 0 && edges.len() == bins + 1 && is_ascending && edges.iter().all(|edge| edge.is_finite()) {
        true => Ok(edges),
        false => Err(format!("the {} edges of {name} are not those of {bins} bins", edges.len())),
    }
}

/// The names of the bins of an axis (`TAxis::SetBinLabel`); empty if a bin has none.
fn names(histogram: &Object, axis: &str, bins: usize) -> Vec<String> {
    let labels = histogram.get(axis).and_then(|axis| axis.as_object()?.get("fLabels")?.as_object()?.get("fObjects"));
    let Some(Value::List(labels)) = labels else { return Vec::new() };
    let mut names = vec![None; bins];
    for label in labels.iter().filter_map(Value::as_object) {
        // Bins are numbered from 1.
        let place = length(label, "fUniqueID").ok().and_then(|bin| bin.checked_sub(1));
        if let Some(name) = place.and_then(|place| names.get_mut(place)) {
            *name = Some(text(label, "fString"));
        }
    }
    names.into_iter().collect::<Option<_>>().unwrap_or_default()
}

/// The values of a histogram or profile without underflow and overflow.
struct Bins {
    edges: Vec<Vec<f64>>,
    sums: Vec<f64>,
    divisors: Option<Vec<f64>>,
    /// Names of the bins of the first axis, if it is the only one.
    names: Vec<String>,
    /// Below and above the first axis; of two axes, both in the first.
    outside: [f64; 2],
}

impl Bins {
    fn of(histogram: &Object) -> Result<Self, String> {
        let class = histogram.class_name();
        let count = dimensions(class).ok_or_else(|| format!("{class} is not a histogram of one or two dimensions"))?;
        // The number of values comes first; it is negative if the bins have them too (`TH1::BufferEmpty`).
        if floats(histogram, "fBuffer").first().is_some_and(|values| *values > 0.0) {
            return Err("its values are in a buffer, not in bins yet; ROOT's BufferEmpty() fills the bins".to_owned());
        }
        let edges = ["fXaxis", "fYaxis"].iter().take(count).map(|axis| edges(histogram, axis));
        let edges = edges.collect::<Result<Vec<_>, _>>()?;
        // Each axis has two more bins, for underflow and overflow.
        let lengths: Vec<usize> = edges.iter().map(|edges| edges.len() + 1).collect();
        let cells = lengths.iter().try_fold(1_usize, |cells, length| cells.checked_mul(*length));
        let cells = cells.ok_or("the axes have too many bins")?;
        let divisors = match class.starts_with("TProfile") {
            true => Some(exactly(histogram, "fBinEntries", cells)?),
            false => None,
        };
        let contents = exactly(histogram, "fArray", cells)?;
        let width = lengths.first().copied().unwrap_or(cells);
        let lines: Vec<&[f64]> = contents.chunks(width).collect();
        let inner = |values: &[f64]| -> Vec<f64> {
            let lines = values.chunks(width);
            let skipped = usize::from(count == 2);
            let lines = lines.skip(skipped).take(lengths.get(1).map_or(1, |length| length - 2));
            lines.filter_map(|line| line.get(1..line.len() - 1)).flatten().copied().collect()
        };
        let counted = divisors.as_deref().unwrap_or(&contents);
        let outside = match count {
            1 => [counted.first().copied().unwrap_or(0.0), counted.last().copied().unwrap_or(0.0)],
            _ => {
                let is_edge = |place: usize, length: usize| place == 0 || place + 1 == length;
                let sum = counted
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| is_edge(place % width, width) || is_edge(place / width, lines.len()));
                [sum.map(|(_, value)| value).sum(), 0.0]
            }
        };
        let names = if count == 1 { names(histogram, "fXaxis", width - 2) } else { Vec::new() };
        Ok(Self { sums: inner(&contents), divisors: divisors.as_deref().map(inner), edges, names, outside })
    }

    fn into_plot(self) -> Plot {
        let Self { mut edges, sums, divisors, names, .. } = self;
        match (edges.pop(), edges.pop()) {
            (Some(y), Some(x)) => Plot::Grid(Grid::new([x, y], sums, divisors)),
            (x, _) => Plot::Bars(Bars::new(x.unwrap_or_default(), sums, divisors).with_names(names)),
        }
    }

    /// Means and standard deviations on each axis: as they were filled, or else of the centres of bins, as in ROOT.
    fn moments(&self, histogram: &Object) -> Vec<[f64; 2]> {
        let weights = float(histogram, "fTsumw").filter(|sum| *sum != 0.0);
        let stored = |axis: usize| {
            let [sum, squares] = [["fTsumwx", "fTsumwx2"], ["fTsumwy", "fTsumwy2"]][axis];
            let (weights, sum, squares) = (weights?, float(histogram, sum)?, float(histogram, squares)?);
            Some(moments(weights, sum, squares))
        };
        let counted = self.divisors.as_ref().unwrap_or(&self.sums);
        let across = self.edges.first().map_or(1, |edges| edges.len() - 1).max(1);
        let of_centres = |axis: usize| {
            let mut sums = [0.0; 3];
            for (place, weight) in counted.iter().enumerate() {
                let bin = if axis == 0 { place % across } else { place / across };
                let edges = self.edges.get(axis).and_then(|edges| edges.get(bin..bin + 2));
                let centre = edges.map_or(0.0, |edges| edges.iter().sum::<f64>() / 2.0);
                sums = [sums[0] + weight, sums[1] + weight * centre, sums[2] + weight * centre * centre];
            }
            moments(sums[0], sums[1], sums[2])
        };
        (0..self.edges.len()).map(|axis| stored(axis).unwrap_or_else(|| of_centres(axis))).collect()
    }

    fn summary(&self, histogram: &Object) -> String {
        let mut text = described(float(histogram, "fEntries").unwrap_or(0.0), "entry", &self.moments(histogram));
        let places: [&str; 2] = if self.edges.len() == 1 { ["below", "above"] } else { ["outside", ""] };
        for (value, place) in self.outside.iter().zip(places) {
            if *value != 0.0 {
                text += &format!(", {} {place}", amount(*value));
            }
        }
        text
    }
}

/// Mean and standard deviation.
fn moments(weights: f64, sum: f64, squares: f64) -> [f64; 2] {
    if weights == 0.0 {
        return [0.0; 2];
    }
    let mean = sum / weights;
    [mean, (squares / weights - mean * mean).abs().sqrt()]
}

fn amount(value: f64) -> String {
    let is_count = value.fract() == 0.0 && (0.0..MAX_EXACT).contains(&value);
    if is_count { count(value as u64) } else { number(value) }
}

/// A number of things, with means and standard deviations on each axis.
fn described(value: f64, one: &str, moments: &[[f64; 2]]) -> String {
    let number_of = match value.fract() == 0.0 && (0.0..MAX_EXACT).contains(&value) {
        true => things(value as u64, one),
        false => format!("{} {}", number(value), things(2, one).trim_start_matches("2 ")),
    };
    let of_axes = |part: usize| {
        let parts: Vec<String> = moments.iter().map(|moments| number(moments[part])).collect();
        if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(", ")) }
    };
    format!("{number_of}, mean {}, standard deviation {}", of_axes(0), of_axes(1))
}

fn points(graph: &Object, errors: Option<[[&str; 2]; 2]>) -> Result<Points, String> {
    let count = length(graph, "fNpoints")?;
    let [x, y] = ["fX", "fY"].map(|member| exactly(graph, member, count));
    let error = |[low, high]: [&str; 2]| Ok::<_, String>([exactly(graph, low, count)?, exactly(graph, high, count)?]);
    let errors = match errors {
        None => [None, None],
        Some([x, y]) => [Some(error(x)?), Some(error(y)?)],
    };
    Ok(Points { places: [x?, y?], errors })
}

fn summary_of_points(points: &Points) -> String {
    let all = points.places.iter().map(|places| {
        let sums = places.iter().fold([0.0; 2], |[sum, squares], place| [sum + place, squares + place * place]);
        moments(places.len() as f64, sums[0], sums[1])
    });
    described(points.places[0].len() as f64, "point", &all.collect::<Vec<_>>())
}

fn efficiency(object: &Object) -> Result<(Plot, [String; 2], String), String> {
    let histogram =
        |member: &str| object.get(member).and_then(Value::as_object).ok_or_else(|| format!("{member} is missing"));
    let (passed, total) = (histogram("fPassedHistogram")?, histogram("fTotalHistogram")?);
    let [mut bins, all] = [Bins::of(passed)?, Bins::of(total)?];
    if bins.edges != all.edges {
        return Err("fPassedHistogram and fTotalHistogram have other bins".to_owned());
    }
    let [some, every] = [&bins.sums, &all.sums].map(|sums| sums.iter().sum::<f64>());
    let summary = format!("{} of {} entries passed: {}", amount(some), amount(every), number(some / every));
    bins.divisors = Some(all.sums);
    Ok((bins.into_plot(), axis_titles(Some(total)), summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known() {
        for class in ["TH1F", "TH2D", "TProfile", "TGraphErrors", "TEfficiency"] {
            assert!(is_drawable(class), "{class}");
        }
        for class in ["TH1", "TH3F", "TH1FX", "TList", "TGraph2D", "TH2Poly"] {
            assert!(!is_drawable(class), "{class}");
        }
    }

    #[test]
    fn statistics_are_described() {
        assert_eq!(described(2.0, "point", &[[1.0, 0.5]]), "2 points, mean 1, standard deviation 0.5");
        let two = described(1.5, "entry", &[[1.0, 0.5], [2.0, 3.0]]);
        assert_eq!(two, "1.5 entries, mean (1, 2), standard deviation (0.5, 3)");
        assert_eq!(moments(2.0, 4.0, 10.0), [2.0, 1.0]);
    }
}
