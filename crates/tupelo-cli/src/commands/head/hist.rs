//! `tupelo hist`: a histogram of an expression, as bars of text or as a picture.

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::DataType;
use tupelo::Expression;
use tupelo::dataset::find;
use tupelo::reader::{DEFAULT_BATCH_BYTES, Read};

use super::drawing::{Bars, Labels, Picture, Plot, number};
use super::moments::{Moments, Number, each_number};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;

/// Default numbers of bins: in the terminal, one per line, and in a picture.
const DEFAULT_BINS: [usize; 2] = [30, 100];
/// Maximum number of bins.
const MAX_BINS: usize = 10_000;
/// All integers below it are different floating-point numbers.
const EXACT_INTEGERS: f64 = (1_u64 << 53) as f64;

/// Show the distribution of a field or an expression
///
/// Every item of a list counts as one value; missing and non-finite values are not counted. Without --range, the limits
/// are the smallest and the largest value, and the entries are read twice. Integers get one bin each if there are
/// enough bins.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo hist events.root MET_pt
  tupelo hist events.root 'Muon_pt[abs(Muon_eta) < 1]' --bins 50 --range 0:100
  tupelo hist events.root 'sum(Jet_pt)' --cut 'len(Jet_pt) >= 2' -o ht.png
  tupelo hist 'run*.root:Events' 'len(Muon_pt)' --log -o muons.svg")]
pub(crate) struct Args {
    /// The ntuple or tree, as FILE or FILE:NAME; wildcards match files ('run*.root:Events'), whose entries are read as
    /// one sequence
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    /// Expression to fill, such as 'Muon_pt' or 'sum(Jet_pt) / 2', in the syntax of --cut
    #[arg(value_name = "EXPRESSION")]
    what: Expression,
    /// Number of bins [default: 30 in the terminal, 100 in a picture]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_BINS as u64))]
    bins: Option<u64>,
    /// Limits of the bins, as LOW:HIGH; HIGH is excluded [default: the smallest and largest value]
    #[arg(long, value_name = "LOW:HIGH", value_parser = limits, allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// Use a logarithmic scale for the counts
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    entries: super::super::EntryRange,
    #[command(flatten)]
    condition: super::super::Condition,
    #[command(flatten)]
    sources: super::super::Sources,
}

fn limits(text: &str) -> Result<(f64, f64), String> {
    let parse = |text: &str| text.trim().parse::<f64>().ok().filter(|limit| limit.is_finite());
    match text.split_once(':').map(|(low, high)| (parse(low), parse(high))) {
        Some((Some(low), Some(high))) if low < high => Ok((low, high)),
        _ => Err("expected LOW:HIGH, two numbers in ascending order, such as 0:100".to_owned()),
    }
}

/// Counts of values in bins of equal width.
#[derive(Debug)]
pub(in super::super) struct Histogram {
    low: f64,
    high: f64,
    /// A factor of the limits and the values, without which their differences would overflow.
    scale: f64,
    counts: Vec<u64>,
    /// Values below the first bin, and from the end of the last bin on.
    outside: [u64; 2],
    /// Values that are not finite.
    not_finite: u64,
    /// Whether the highest value belongs to the last bin.
    has_end: bool,
}

impl Histogram {
    pub(in super::super) fn new(bins: usize, (low, high): (f64, f64), has_end: bool) -> Self {
        let scale = if ((high - low) * bins as f64).is_finite() { 1.0 } else { 0.5_f64.powi(20) };
        let (low, high, counts) = (low * scale, high * scale, vec![0; bins]);
        Self { low, high, scale, counts, outside: [0; 2], not_finite: 0, has_end }
    }

    pub(in super::super) fn fill(&mut self, number: Number) {
        if !number.near.is_finite() {
            self.not_finite += 1;
            return;
        }
        let (bins, scaled, rest) = (self.counts.len(), number.near * self.scale, number.rest * self.scale);
        let is_below = scaled < self.low || scaled == self.low && rest < 0.0;
        let is_at_high = scaled == self.high && rest == 0.0;
        let is_above = scaled > self.high || scaled == self.high && rest > 0.0;
        if is_below {
            self.outside[0] += 1;
        } else if is_above || is_at_high && !self.has_end {
            self.outside[1] += 1;
        } else {
            let place = (scaled - self.low + rest) / (self.high - self.low) * bins as f64;
            self.counts[(place as usize).min(bins - 1)] += 1;
        }
    }

    fn edge(&self, bin: usize) -> f64 {
        (self.low + (self.high - self.low) * bin as f64 / self.counts.len() as f64) / self.scale
    }

    pub(in super::super) fn bars(&self) -> Bars {
        let edges = (0..=self.counts.len()).map(|bin| self.edge(bin));
        Bars::new(edges.collect(), self.counts.iter().map(|count| *count as f64).collect(), None)
    }

    /// A line with the statistics of its values.
    pub(in super::super) fn summary(&self, moments: &Moments) -> String {
        let mut text = match moments.count {
            0 => "no values".to_owned(),
            values => {
                let [mean, deviation] = [moments.mean(), moments.deviation()].map(number);
                format!("{}, mean {mean}, standard deviation {deviation}", crate::table::things(values, "value"))
            }
        };
        for (count, place) in self.outside.iter().zip(["below", "above"]) {
            if *count > 0 {
                text += &format!(", {} {place}", crate::table::count(*count));
            }
        }
        if self.not_finite > 0 {
            text += &format!(", {} not finite", crate::table::count(self.not_finite));
        }
        text
    }
}

/// The smallest and largest finite value, and whether all are integers.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Measured {
    pub(in super::super) low: f64,
    pub(in super::super) high: f64,
    pub(in super::super) is_integer: bool,
}

impl Measured {
    /// Before the first value.
    pub(in super::super) const NOTHING: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY, is_integer: true };

    /// Adds a value, and whether its type is an integer or a boolean.
    pub(in super::super) fn add(&mut self, value: f64, is_integer: bool) {
        if value.is_finite() {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
            self.is_integer &= is_integer;
        }
    }

    /// Whether each value is an integer, and the next one differs from it.
    pub(in super::super) fn are_counted(&self) -> bool {
        self.is_integer && self.low.abs().max(self.high.abs()) < EXACT_INTEGERS
    }

    /// Number of bins, their limits, and whether the last bin includes its end.
    pub(in super::super) fn bins(&self, wanted: usize) -> (usize, (f64, f64), bool) {
        let Self { low, high, .. } = *self;
        if low > high {
            return (wanted, (0.0, 1.0), false);
        }
        let integers = high - low + 1.0;
        if self.are_counted() && integers <= wanted as f64 {
            return (integers as usize, (low - 0.5, high + 0.5), false);
        }
        if low == high {
            let half = (low.abs() * f64::EPSILON * 1024.0).max(0.5);
            return (wanted, ((low - half).max(f64::MIN), (high + half).min(f64::MAX)), high == f64::MAX);
        }
        (wanted, (low, high), true)
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find([&args.input], args.sources.reading.storage()?)?;
    let inputs = Inputs::of(&locations);
    args.picture.check(&inputs)?;
    let table = args.sources.table(&locations, console)?;
    console.warn_of(&table);
    let read = args.condition.apply(table.read_all().without_fields())?;
    // The last column.
    let read = read.with_computed("value", &args.what)?.entries(args.entries.of(table.entries(), console));
    let wanted = args.bins.map_or(DEFAULT_BINS[usize::from(args.picture.is_wanted())], |bins| bins as usize);
    let (bins, limits, has_end) = match args.range {
        Some(limits) => (wanted, limits, false),
        None => measure(&read, console)?.bins(wanted),
    };
    let mut histogram = Histogram::new(bins, limits, has_end);
    let mut moments = Moments::default();
    each_value(&read, console, &mut |value, _| {
        histogram.fill(value);
        moments.add(value);
    })?;
    let labels = Labels { title: args.what.to_string(), summary: histogram.summary(&moments), ..Labels::default() };
    args.picture.draw(&Plot::Bars(histogram.bars()), &labels, args.log, &inputs, console)
}

fn measure(read: &Read, console: &Console) -> Result<Measured, Failure> {
    let mut measured = Measured::NOTHING;
    each_value(read, console, &mut |value, is_integer| measured.add(value.near, is_integer))?;
    Ok(measured)
}

/// Visits every value, with whether its type is an integer or a boolean.
fn each_value(read: &Read, console: &Console, visit: &mut dyn FnMut(Number, bool)) -> Result<(), Failure> {
    let mut progress = console.progress("hist", read.count(), "entries");
    let first = read.range().start;
    let mut batches = read.clone().batches_of_bytes(DEFAULT_BATCH_BYTES)?;
    while let Some(batch) = batches.next() {
        let batch = batch?;
        visit_all(batch.column(batch.num_columns() - 1), visit)?;
        progress.set(batches.position() - first);
    }
    Ok(())
}

/// Visits the numbers in an array and in its lists.
fn visit_all(array: &ArrayRef, visit: &mut dyn FnMut(Number, bool)) -> Result<(), Failure> {
    match array.data_type() {
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            (0..lists.len())
                .filter(|&entry| lists.is_valid(entry))
                .try_for_each(|entry| visit_all(&lists.value(entry), visit))
        }
        DataType::FixedSizeList(..) => {
            let lists = array.as_fixed_size_list();
            (0..lists.len())
                .filter(|&entry| lists.is_valid(entry))
                .try_for_each(|entry| visit_all(&lists.value(entry), visit))
        }
        data_type if data_type.is_numeric() || *data_type == DataType::Boolean => {
            let is_integer = !data_type.is_floating();
            each_number(array, &mut |number| visit(number, is_integer)).map_err(Failure::new)
        }
        DataType::Null => Ok(()),
        _ => {
            let refused = Failure::usage("the values of the expression are not numeric");
            Err(refused.with_hint("`tupelo head FILE --define 'x=EXPRESSION' --fields x` shows its values"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_bins() {
        let (mut histogram, mut moments) = (Histogram::new(4, (0.0, 2.0), false), Moments::default());
        for value in [-0.1, 0.0, 0.49, 0.5, 1.99, 2.0, f64::NAN, f64::INFINITY] {
            histogram.fill(value.into());
            moments.add(value.into());
        }
        assert_eq!((&histogram.counts[..], histogram.outside, histogram.not_finite), (&[2, 1, 0, 1][..], [1, 1], 2));
        assert_eq!((moments.count, histogram.edge(3)), (6, 1.5));
        let mut closed = Histogram::new(4, (0.0, 2.0), true);
        closed.fill(2.0.into());
        assert_eq!((closed.counts[3], closed.outside), (1, [0, 0]));
        // Defect: integers above 2^53 were rounded first.
        let large = 1_i128 << 60;
        let mut exact = Histogram::new(2, (large as f64, (large + 1024) as f64), false);
        [-1, 0, 511, 512, 1023, 1024].into_iter().for_each(|step| exact.fill((large + step).into()));
        assert_eq!((&exact.counts[..], exact.outside), (&[2, 2][..], [1, 1]));
    }

    #[test]
    fn the_largest_numbers_are_counted() {
        let mut extreme = Histogram::new(2, (f64::MIN, f64::MAX), true);
        [f64::MAX, f64::MIN, f64::MAX, f64::MIN].into_iter().for_each(|value| extreme.fill(value.into()));
        assert_eq!((&extreme.counts[..], extreme.edge(1)), (&[2, 2][..], 0.0));
    }

    /// Defect: limits that rounded to a value left it out.
    #[test]
    fn all_values_are_within_the_limits() {
        let large = (1_u64 << 53) as f64;
        let sets = [
            vec![1.760_000_000_123_456_8e18; 3],
            vec![large, large + 2.0, large + 4.0],
            vec![f64::MAX; 2],
            vec![f64::MIN; 2],
            vec![f64::MIN, 0.0, 6.0],
            vec![-1.7e308, 1.7e308],
            vec![5e-324, 1e-323],
        ];
        for values in sets {
            for is_integer in [true, false] {
                let mut measured = Measured::NOTHING;
                values.iter().for_each(|value| measured.add(*value, is_integer));
                let (bins, limits, has_end) = measured.bins(6);
                let mut histogram = Histogram::new(bins, limits, has_end);
                values.iter().for_each(|value| histogram.fill((*value).into()));
                assert_eq!(histogram.outside, [0, 0], "{values:?}");
                let edges: Vec<f64> = (0..=bins).map(|bin| histogram.edge(bin)).collect();
                assert!(edges.is_sorted() && edges.iter().all(|edge| edge.is_finite()), "{edges:?}");
            }
        }
        let mut partly = Histogram::new(4, (-1e308, 1e308), false);
        [-1.7e308, 0.0, 1.7e308].into_iter().for_each(|value| partly.fill(value.into()));
        assert_eq!((&partly.counts[..], partly.outside), (&[0, 0, 1, 0][..], [1, 1]));
    }

    #[test]
    fn limits_follow_the_values() {
        let bins = |low, high, is_integer| Measured { low, high, is_integer }.bins(30);
        assert_eq!(bins(0.0, 4.0, true), (5, (-0.5, 4.5), false));
        assert_eq!(bins(0.0, 400.0, true), (30, (0.0, 400.0), true));
        assert_eq!(bins(0.5, 4.0, false), (30, (0.5, 4.0), true));
        assert_eq!(bins(3.0, 3.0, false), (30, (2.5, 3.5), false));
        assert_eq!(bins(f64::INFINITY, f64::NEG_INFINITY, true), (30, (0.0, 1.0), false));
    }

    #[test]
    fn limits_are_two_numbers() {
        assert_eq!(limits("-1:2.5"), Ok((-1.0, 2.5)));
        for wrong in ["1", "2:1", "1:1", "a:b", "0:inf", ":"] {
            assert!(limits(wrong).is_err(), "{wrong}");
        }
    }
}
