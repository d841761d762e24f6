//! What ROOT adds up where it merges objects of the same path: `Merge` of their classes.

use tupelo_format::object::{Numbers, Object, Value};

use super::{histogram, many_axes};

/// Adds an object to another one, which gives everything else; the reason if that cannot be done.
pub(super) type Add = fn(&Object, &Object) -> Result<Object, String>;

/// Graphs, each with the arrays that have a number for each point.
const GRAPHS: [(&str, &[&str]); 4] = [
    ("TGraph", &["fX", "fY"]),
    ("TGraphErrors", &["fX", "fY", "fEX", "fEY"]),
    ("TGraphAsymmErrors", &["fX", "fY", "fEXlow", "fEXhigh", "fEYlow", "fEYhigh"]),
    (
        "TGraphBentErrors",
        &["fX", "fY", "fEXlow", "fEXhigh", "fEYlow", "fEYhigh", "fEXlowd", "fEXhighd", "fEYlowd", "fEYhighd"],
    ),
];
/// The bit of graphs whose histogram, the frame that was drawn for other points, is made again: `TGraph::kResetHisto`.
const RESET_HISTOGRAM: u64 = 1 << 17;

/// Further classes of ROOT that have `Merge`, and names with which those of templates begin.
const OTHERS: [&str; 26] = [
    "TBtree",
    "TClonesArray",
    "TCutG",
    "TEntryList",
    "TEntryListArray",
    "TEntryListFromFile",
    "TEventList",
    "TFileCollection",
    "TGraphMultiErrors",
    "TGraphPolar",
    "TGraphQQ",
    "TH1K",
    "TH2Poly",
    "THStack",
    "THashList",
    "TList",
    "TObjArray",
    "TOrdCollection",
    "TPolyLine",
    "TPolyMarker",
    "TProfile2Poly",
    "TRefArray",
    "TSelectorList",
    "TSelectorScalar",
    "TSortedList",
    "TStatistic",
];
const OTHER_TEMPLATES: [&str; 2] = ["THn", "TParameter<"];

/// How objects of a class are added up.
pub(super) fn addition(class_name: &str) -> Option<Add> {
    let is_graph = || GRAPHS.iter().any(|(name, _)| *name == class_name);
    match class_name {
        _ if histogram::is_histogram(class_name) => Some(histogram::sum),
        _ if class_name.starts_with("TParameter<") => Some(parameter),
        _ if is_graph() => Some(graph),
        _ if many_axes::is_histogram(class_name) => Some(many_axes::sum),
        "TEfficiency" => Some(efficiency),
        _ => None,
    }
}

/// Whether ROOT adds up objects of a class. One of several equal ones is then not what all are together.
pub(super) fn is_merged_by_root(class_name: &str) -> bool {
    addition(class_name).is_some()
        || OTHERS.contains(&class_name)
        || OTHER_TEMPLATES.iter().any(|prefix| class_name.starts_with(prefix))
}

/// A number with a name, by the bits that say what becomes of it (`core/cont/inc/TParameter.h`).
fn parameter(first: &Object, other: &Object) -> Result<Object, String> {
    const MULTIPLY: u64 = 1 << 16;
    const MAX: u64 = 1 << 17;
    const MIN: u64 = 1 << 18;
    const FIRST: u64 = 1 << 19;
    const LAST: u64 = 1 << 20;
    const IS_CONST: u64 = 1 << 21;
    let Some(Value::UInt(bits)) = first.get("fBits") else { return Err("it has no bits".to_owned()) };
    let rule = [MULTIPLY, MAX, MIN, FIRST, LAST].into_iter().find(|bit| bits & bit != 0).unwrap_or(0);
    let (Some(own), Some(added)) = (first.get("fVal"), other.get("fVal")) else {
        return Err("it has no value".to_owned());
    };
    let value = match (own, added, rule) {
        (_, _, FIRST) => own.clone(),
        (_, _, LAST) => added.clone(),
        (Value::Bool(own), Value::Bool(added), MULTIPLY | MIN) => Value::Bool(*own && *added),
        (Value::Bool(own), Value::Bool(added), _) => Value::Bool(*own || *added),
        (Value::Int(own), Value::Int(added), MULTIPLY) => Value::Int(own.wrapping_mul(*added)),
        (Value::Int(own), Value::Int(added), MAX) => Value::Int(*own.max(added)),
        (Value::Int(own), Value::Int(added), MIN) => Value::Int(*own.min(added)),
        (Value::Int(own), Value::Int(added), _) => Value::Int(own.wrapping_add(*added)),
        (Value::Float(own), Value::Float(added), MULTIPLY) => Value::Float(own * added),
        (Value::Float(own), Value::Float(added), MAX) => Value::Float(if added > own { *added } else { *own }),
        (Value::Float(own), Value::Float(added), MIN) => Value::Float(if added < own { *added } else { *own }),
        (Value::Float(own), Value::Float(added), _) => Value::Float(own + added),
        _ => return Err("its value is of another type".to_owned()),
    };
    // ROOT keeps the result of every file in the type of the value.
    let value = match (value, first.class_name()) {
        (Value::Float(value), "TParameter<float>") => Value::Float(f64::from(value as f32)),
        (Value::Int(value), "TParameter<int>") => Value::Int(i64::from(value as i32)),
        (value, _) => value,
    };
    let mut sum = first.clone();
    if own != added {
        sum.set("fBits", Value::UInt(bits & !IS_CONST));
    }
    sum.set("fVal", value);
    Ok(sum)
}

/// The points of both graphs.
fn graph(first: &Object, other: &Object) -> Result<Object, String> {
    let arrays = GRAPHS.iter().find(|(name, _)| *name == first.class_name()).map_or(&[][..], |(_, arrays)| arrays);
    let mut sum = first.clone();
    let mut points = 0;
    for name in arrays {
        let array = |graph: &Object| match graph.get(name) {
            Some(Value::Numbers(Numbers::F64(values))) => Some(values.clone()),
            // Without points.
            Some(Value::Null) | None => Some(Vec::new()),
            _ => None,
        };
        let (Some(mut all), Some(more)) = (array(first), array(other)) else {
            return Err(format!("its {name} are not numbers"));
        };
        all.extend(more);
        points = all.len();
        sum.set(name, Value::Numbers(Numbers::F64(all)));
    }
    sum.set("fNpoints", Value::Int(i64::try_from(points).map_err(|_| "it has too many points".to_owned())?));
    if let (Some(Value::Object(_)), Some(Value::UInt(bits))) = (first.get("fHistogram"), first.get("fBits")) {
        sum.set("fBits", Value::UInt(bits | RESET_HISTOGRAM));
    }
    Ok(sum)
}

/// The sums of both histograms of efficiencies (`TEfficiency::operator+=`).
fn efficiency(first: &Object, other: &Object) -> Result<Object, String> {
    let mut sum = first.clone();
    for name in ["fPassedHistogram", "fTotalHistogram"] {
        let histograms = [first, other].map(|one| one.get(name).and_then(Value::as_object));
        let [Some(own), Some(added)] = histograms else { return Err(format!("it lacks its {name}")) };
        let added = histogram::sum(own, added).map_err(|why| format!("{name}: {why}"))?;
        sum.set(name, Value::Object(added.into()));
    }
    if let (Some(Value::Float(own)), Some(Value::Float(other))) = (first.get("fWeight"), other.get("fWeight")) {
        sum.set("fWeight", Value::Float(own * other / (own + other)));
    }
    Ok(sum)
}
