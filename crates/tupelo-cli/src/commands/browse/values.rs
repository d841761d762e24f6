//! The values of a field, and what is drawn of them.

mod sample;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use tupelo::Table;
use tupelo::schema::{Field, Kind, Primitive};

use self::sample::Sample;
use super::super::head::drawing::{Bars, Labels, Plot, named_bars};
use super::super::head::hist::{Histogram, Measured};
use crate::failure::Failure;
use crate::table::{count, things};

/// Most entries whose values are read.
const MAX_ENTRIES: u64 = 100_000;
/// About the most memory of these entries, in bytes.
const MAX_BYTES: u64 = 32 << 20;
/// Entries are read in batches of about this many bytes in memory.
const BATCH_BYTES: u64 = 1 << 20;
/// Bins of a histogram: many numbers divide it, so that bars have the same number of bins.
const BINS: usize = 120;
/// Of more integers, the number of bins is a multiple of the second number.
const MAX_SINGLE: usize = 24;
const BIN_STEP: usize = 12;
/// Most texts that are drawn.
const MAX_TEXTS: usize = 20;
/// Values that are looked at for the limits of a histogram.
const MAX_LOOKED_AT: usize = 100_000;
/// A histogram of at least so many values leaves out those that are far away.
const MIN_VALUES: usize = 100;
/// Far away: the range of all values is more than this many times that of 98 % of them.
const FAR: f64 = 10.0;

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Numbers,
    /// Texts and truth values.
    Texts,
    /// Of a collection of records, their numbers.
    Sizes,
    /// Objects as ROOT streamed them, by their lengths.
    Bytes,
    Alternatives,
    /// Those of a record are the values of its members.
    Members,
}

impl Values {
    pub(super) fn of(field: &Field) -> Self {
        let (mut inner, mut is_collection) = (field, false);
        while let Some(next) = item(inner) {
            is_collection |= matches!(inner.kind, Kind::Array { .. } | Kind::Collection(_) | Kind::Map(_));
            inner = next;
        }
        match &inner.kind {
            Kind::Primitive(Primitive::Bool) | Kind::Bitset { .. } | Kind::String => Self::Texts,
            Kind::Streamer => Self::Bytes,
            Kind::Variant(_) => Self::Alternatives,
            Kind::Record(_) | Kind::Tuple(_) if is_collection => Self::Sizes,
            Kind::Record(_) | Kind::Tuple(_) => Self::Members,
            _ => Self::Numbers,
        }
    }

    /// What a plot shows.
    fn title(self) -> &'static str {
        match self {
            Self::Numbers => "Values",
            Self::Texts => "Most frequent values",
            Self::Sizes => "Sizes of the collections",
            Self::Bytes => "Bytes of the objects",
            Self::Alternatives => "Alternatives",
            Self::Members => "Members",
        }
    }
}

/// The items of a field that have no name in dotted paths.
pub(super) fn item(field: &Field) -> Option<&Field> {
    match &field.kind {
        Kind::Array { item, .. }
        | Kind::Wrapper(item)
        | Kind::Collection(item)
        | Kind::Map(item)
        | Kind::Optional(item) => Some(item),
        _ => None,
    }
}

/// Values to read.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) table: Table,
    pub(super) values: Values,
    /// Dotted paths; the first readable one is read: that of the field, or those of the smallest fields in a collection.
    pub(super) paths: Vec<String>,
    /// The names on the way to the field, from that of the top-level field on.
    pub(super) steps: Vec<String>,
}

/// Reads the values in the first entries and counts them. `progress` gets the number of entries that are read, of how many.
pub(super) fn plot(wanted: &Wanted, mut progress: impl FnMut(u64, u64)) -> Result<(Plot, Labels), Failure> {
    let mut failed = None;
    for path in &wanted.paths {
        match plot_one(wanted, path, &mut progress) {
            Ok(plot) => return Ok(plot),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    Err(failed.unwrap_or_else(|| Failure::new("it has no field that can be read")))
}

fn plot_one(wanted: &Wanted, path: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<(Plot, Labels), Failure> {
    let all = wanted.table.entries();
    // Texts need not be UTF-8.
    let read = wanted.table.read([path])?.with_binary_strings(true);
    let in_bytes = (MAX_BYTES as f64 / read.bytes_per_entry()?.max(1.0)) as u64;
    let read = read.entries(..all.min(MAX_ENTRIES).min(in_bytes.max(1)));
    let (schema, entries) = (read.schema().clone(), read.count());
    let mut sample = Sample::default();
    let mut batches = read.batches_of_bytes(BATCH_BYTES)?;
    progress(0, entries);
    // The first entries may have been smaller than the others.
    while batches.position() < entries && sample.bytes() < MAX_BYTES {
        let Some(batch) = batches.next() else { break };
        let batch = batch?;
        if let (Some(field), Some(values)) = (schema.fields.first(), batch.columns().first()) {
            let steps = wanted.steps.get(1..).unwrap_or_default();
            sample.add(field, values, steps, wanted.values == Values::Sizes)?;
        }
        progress(batches.position(), entries);
    }
    let read = batches.position();
    let entries = match read == all {
        true if all == 1 => "1 entry".to_owned(),
        true => format!("all {}", things(all, "entry")),
        false => format!("the first {} of {}", count(read), things(all, "entry")),
    };
    let (plot, summary) = draw(sample);
    let title = format!("{} in {entries}", wanted.values.title());
    Ok((plot, Labels { title, summary, ..Labels::default() }))
}

/// The plot of values with a line of statistics.
fn draw(sample: Sample) -> (Plot, String) {
    let (plot, mut summary) = match (sample.numbers.is_empty(), sample.texts.is_empty()) {
        (true, true) => (Plot::Bars(Bars::new(Vec::new(), Vec::new(), None)), "no values".to_owned()),
        (true, false) => most_frequent(sample.texts),
        (false, _) => {
            let (bins, limits, has_end) = limits(&sample.numbers, sample.is_integer);
            let mut histogram = Histogram::new(bins, limits, has_end);
            sample.numbers.iter().for_each(|value| histogram.fill((*value).into()));
            (Plot::Bars(histogram.bars()), histogram.summary(&sample.moments))
        }
    };
    if sample.missing > 0 {
        summary += &format!(", {} missing", count(sample.missing));
    }
    (plot, summary)
}

/// The number of bins for values, their limits, and whether the last bin has its end. All bins have the same number of integers.
/// The values that are far away from all others, such as -999 for "none", are outside.
fn limits(values: &[f64], is_integer: bool) -> (usize, (f64, f64), bool) {
    let mut all = Measured::NOTHING;
    values.iter().for_each(|value| all.add(*value, is_integer));
    let step = values.len().div_ceil(MAX_LOOKED_AT).max(1);
    let mut some: Vec<f64> = values.iter().copied().step_by(step).filter(|value| value.is_finite()).collect();
    if some.len() >= MIN_VALUES {
        some.sort_unstable_by(f64::total_cmp);
        let (low, high) = (some[some.len() / 100], some[some.len() - 1 - some.len() / 100]);
        let width = high - low;
        if width > 0.0 && all.high - all.low > FAR * width {
            (all.low, all.high) = (all.low.max(low - width), all.high.min(high + width));
        }
    }
    if all.are_counted() && all.low < all.high {
        // A bin begins at its first integer.
        let integers = all.high - all.low + 1.0;
        let width = (integers / BINS as f64).ceil();
        let bins = (integers / width).ceil() as usize;
        // Empty bins, so that bars have the same number of bins.
        let bins = if bins > MAX_SINGLE { bins.next_multiple_of(BIN_STEP) } else { bins };
        return (bins, (all.low, all.low + bins as f64 * width), false);
    }
    match all.low == all.high {
        true if all.are_counted() => (1, (all.low, all.low + 1.0), false),
        true => all.bins(1),
        false => all.bins(BINS),
    }
}

/// The most frequent texts, with how many there are.
fn most_frequent(texts: HashMap<String, u64>) -> (Plot, String) {
    let (values, different) = (texts.values().sum(), texts.len());
    let mut texts: Vec<(String, u64)> = texts.into_iter().collect();
    texts.sort_unstable_by(|(text, count), (other, more)| more.cmp(count).then_with(|| text.cmp(other)));
    texts.truncate(MAX_TEXTS);
    let mut summary = format!("{}, {} different", things(values, "value"), count(different as u64));
    if different > texts.len() {
        summary += &format!("; the {} most frequent are shown", texts.len());
    }
    let counts = texts.iter().map(|(_, count)| *count as f64).collect();
    let name = |(text, _): (String, u64)| if text.is_empty() { "(empty)".to_owned() } else { text };
    (Plot::Bars(named_bars(texts.into_iter().map(name).collect(), counts)), summary)
}
