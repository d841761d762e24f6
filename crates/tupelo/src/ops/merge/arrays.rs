//! Numbers of objects, and their sums.

use std::collections::HashMap;

use tupelo_format::object::{Numbers, Object, Value};
use tupelo_format::streamer::StreamerInfos;

/// Arrays of histograms that are added; the first one is that of a base class.
pub(super) const ARRAYS: [&str; 4] = ["fArray", "fSumw2", "fBinEntries", "fBinSumw2"];

/// Replaces the floating-point members that both objects have by their sums.
pub(super) fn add_floats(sum: &mut Object, other: &Object, names: &[&str]) {
    for name in names {
        if let (Some(Value::Float(own)), Some(Value::Float(other))) = (sum.get(name), other.get(name)) {
            let added = own + other;
            sum.set(name, Value::Float(added));
        }
    }
}

/// The numbers of an array, which is a member or a base.
pub(super) fn numbers<'h>(histogram: &'h Object, name: &str) -> Option<&'h Numbers> {
    match histogram.get(name)? {
        Value::Numbers(numbers) => Some(numbers),
        Value::Object(array) => match array.get("fArray")? {
            Value::Numbers(numbers) => Some(numbers),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces the numbers of an array, which is a member or a base.
pub(super) fn set_numbers(object: &mut Object, name: &str, numbers: Numbers) -> Result<(), String> {
    let value = match object.get(name) {
        Some(Value::Object(array)) => {
            let members = HashMap::from([("fArray".to_owned(), Value::Numbers(numbers))]);
            let array = Object::new(array.class_name(), members, &StreamerInfos::default());
            Value::Object(array.map_err(|error| error.to_string())?.into())
        }
        _ => Value::Numbers(numbers),
    };
    object.set(name, value);
    Ok(())
}

/// Numbers as floating-point ones.
pub(super) fn floats(numbers: &Numbers) -> Vec<f64> {
    match numbers {
        Numbers::I8(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I16(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I32(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::I64(values) => values.iter().map(|&value| value as f64).collect(),
        Numbers::F32(values) => values.iter().copied().map(f64::from).collect(),
        Numbers::F64(values) => values.clone(),
        _ => Vec::new(),
    }
}

/// The sums of two arrays of the same length and type. Integers stay between the largest number of their type and its
/// negative, as in `TH1I::AddBinContent`.
pub(super) fn added_up(own: &Numbers, other: &Numbers) -> Option<Numbers> {
    fn each<T: Copy>(own: &[T], other: &[T], sum: impl Fn(T, T) -> T) -> Option<Vec<T>> {
        (own.len() == other.len()).then(|| own.iter().zip(other).map(|(&own, &other)| sum(own, other)).collect())
    }
    macro_rules! limited {
        ($variant:ident, $type:ty, $own:ident, $other:ident) => {
            Numbers::$variant(each($own, $other, |own, other| own.saturating_add(other).max(-<$type>::MAX))?)
        };
    }
    Some(match (own, other) {
        (Numbers::I8(own), Numbers::I8(other)) => limited!(I8, i8, own, other),
        (Numbers::I16(own), Numbers::I16(other)) => limited!(I16, i16, own, other),
        (Numbers::I32(own), Numbers::I32(other)) => limited!(I32, i32, own, other),
        (Numbers::I64(own), Numbers::I64(other)) => limited!(I64, i64, own, other),
        (Numbers::F32(own), Numbers::F32(other)) => Numbers::F32(each(own, other, |own, other| own + other)?),
        (Numbers::F64(own), Numbers::F64(other)) => Numbers::F64(each(own, other, |own, other| own + other)?),
        _ => return None,
    })
}
