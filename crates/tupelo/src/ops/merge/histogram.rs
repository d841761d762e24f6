//! Sums of histograms, by the members that ROOT stores (`hist/hist/inc/TH1.h` and the classes derived from it).

use tupelo_format::object::{Numbers, Object, Value};

use super::arrays::{ARRAYS, add_floats, added_up, floats, numbers, set_numbers};
use super::bins;
use super::statistics::statistics;

const PROFILES: [&str; 3] = ["TProfile", "TProfile2D", "TProfile3D"];
/// The bit of histograms whose bins are averaged, `TH1::kIsAverage`.
const IS_AVERAGE: u64 = 1 << 18;

/// Whether objects of a class can be summed.
pub(super) fn is_histogram(class_name: &str) -> bool {
    let is_binned = |rest: &str| {
        let (dimensions, bins) = rest.split_at_checked(1).unwrap_or_default();
        ["1", "2", "3"].contains(&dimensions) && ["C", "S", "I", "L", "F", "D"].contains(&bins)
    };
    class_name.strip_prefix("TH").is_some_and(is_binned) || PROFILES.contains(&class_name)
}

/// The sum of two histograms, which is the first one otherwise; the reason if there is none.
pub(super) fn sum(first: &Object, other: &Object) -> Result<Object, String> {
    for histogram in [first, other] {
        if matches!(histogram.get("fBits"), Some(Value::UInt(bits)) if bits & IS_AVERAGE != 0) {
            return Err("averages cannot be summed".to_owned());
        }
        if !matches!(histogram.get("fBufferSize"), Some(Value::Int(0)) | None) {
            return Err("its fill buffer was not flushed into bins".to_owned());
        }
    }
    // As filled, not as the bins of the sum say.
    let (own_statistics, added_statistics) = (statistics(first), statistics(other));
    let aligned = bins::aligned(first, other, PROFILES.contains(&first.class_name()))?;
    let [first, other] = aligned.as_ref().map_or([first, other], |[first, other]| [first, other]);
    let mut sum = first.clone();
    add_floats(&mut sum, other, &["fEntries"]);
    for ((name, own), (_, added)) in own_statistics.into_iter().zip(added_statistics) {
        sum.set(name, Value::Float(own + added));
    }
    for name in ARRAYS {
        let (Some(own), Some(added)) = (numbers(first, name), numbers(other, name)) else { continue };
        let added = match (own.len(), added.len()) {
            (0, 0) => continue,
            // Without weights, the sums of their squares are those of the weights.
            (0, _) => weights(first, name).and_then(|own| added_up(&own, added)),
            (_, 0) => weights(other, name).and_then(|added| added_up(own, &added)),
            _ => added_up(own, added),
        };
        let Some(added) = added else { return Err(format!("its {name} has another length or type")) };
        set_numbers(&mut sum, name, added)?;
    }
    Ok(sum)
}

/// The sums of weights of each bin, in place of an array of the sums of their squares that is missing, as by
/// `TProfile::Sumw2`; `None` for others. ROOT's own merger takes the contents of profiles.
fn weights(histogram: &Object, squares: &str) -> Option<Numbers> {
    let name = match squares {
        "fSumw2" => "fArray",
        "fBinSumw2" => "fBinEntries",
        _ => return None,
    };
    numbers(histogram, name).map(floats).map(Numbers::F64)
}
