//! Bars between edges.

use super::{Letters, Space, grouped_edges, groups, label, limits, share};
use crate::table::{cut, pad, width};
use crate::text::{BOLD, CYAN, Text};

/// Width of the longest bar where nothing limits it, in characters.
const DEFAULT_BAR: usize = 50;
/// Maximum width of the name of a bin, in characters.
const MAX_NAME: usize = 40;
/// Eighths of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Significant digits of numbers.
const DIGITS: i32 = 5;
/// Digits that tell any two numbers apart.
const MAX_DIGITS: i32 = 17;

/// A number with few digits.
pub(in super::super::super) fn number(value: f64) -> String {
    with_digits(value, DIGITS)
}

/// Numbers in order, with as many digits as tell each from the next one.
pub(super) fn numbers(values: &[f64]) -> Vec<String> {
    let texts = |digits| -> Vec<String> { values.iter().map(|value| with_digits(*value, digits)).collect() };
    let differ = |texts: &Vec<String>| {
        let mut neighbours = values.windows(2).zip(texts.windows(2));
        neighbours.all(|(values, texts)| values[0] == values[1] || texts[0] != texts[1])
    };
    (DIGITS..MAX_DIGITS).map(texts).find(differ).unwrap_or_else(|| texts(MAX_DIGITS))
}

fn with_digits(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if !(-5..=9).contains(&magnitude) {
        return format!("{value:.*e}", digits as usize - 1);
    }
    let decimals = usize::try_from(digits - 1 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Values of bins of any width.
#[derive(Debug)]
pub(in super::super::super) struct Bars {
    /// One more than there are bins.
    edges: Vec<f64>,
    sums: Vec<f64>,
    /// What the sums are divided by, if the values are means.
    divisors: Option<Vec<f64>>,
    /// Names of the bins instead of edges; empty if they have none.
    names: Vec<String>,
}

impl Bars {
    pub(in super::super::super) fn new(edges: Vec<f64>, sums: Vec<f64>, divisors: Option<Vec<f64>>) -> Self {
        Self { edges, sums, divisors, names: Vec::new() }
    }

    /// The same with a name for each bin.
    pub(in super::super::super) fn with_names(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }

    pub(super) fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The values; means of nothing are not numbers.
    pub(super) fn values(&self) -> Vec<f64> {
        match &self.divisors {
            None => self.sums.clone(),
            Some(divisors) => self.sums.iter().zip(divisors).map(|(sum, divisor)| sum / divisor).collect(),
        }
    }

    /// The same with at most `most` bins, each of as many neighbours; with the number of these.
    pub(in super::super::super) fn combined(&self, most: usize) -> (Self, usize) {
        let groups = groups(self.sums.len(), most);
        let add = |values: &[f64]| groups.iter().map(|group| values[group.clone()].iter().sum()).collect::<Vec<f64>>();
        let size = groups.first().map_or(1, std::ops::Range::len);
        let edges = grouped_edges(&self.edges, &groups);
        let combined = Self::new(edges, add(&self.sums), self.divisors.as_deref().map(add));
        (if size == 1 { combined.with_names(self.names.clone()) } else { combined }, size)
    }

    /// The same for a drawing of this many lines: with a bin or several neighbours in each bar, and the number of these. Where bins
    /// have names, they stay as they are.
    pub(in super::super::super) fn fitting(&self, lines: usize) -> (Self, usize) {
        // The last line has the end of the last bin.
        let (bins, most) = (self.sums.len(), lines.saturating_sub(1).max(1));
        let is_even = |bars: &usize| bins.is_multiple_of(*bars);
        // A last bar of fewer bins would look as if there were fewer values.
        let even = (most.div_ceil(2)..=most.min(bins)).rev().find(is_even);
        self.combined(if self.names.is_empty() { even.unwrap_or(most) } else { bins })
    }

    /// One line for each bin: its name or lower limit, its value and a bar. Bins are combined where lines are few.
    pub(in super::super::super) fn add_to(&self, title: &str, log: bool, space: Space, text: &mut Text) {
        let (bars, size) = self.fitting(space.lines.unwrap_or(usize::MAX));
        let (values, letters) = (bars.values(), space.letters);
        let most = space.columns.map_or(MAX_NAME, |columns| MAX_NAME.min(columns / 2));
        let edges: Vec<String> = match bars.names.is_empty() {
            true => numbers(&bars.edges),
            false => bars.names.iter().map(|name| cut(name, most)).collect(),
        };
        let shown: Vec<String> =
            values.iter().map(|value| if value.is_nan() { "-".to_owned() } else { label(*value) }).collect();
        let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
        let (edge_width, value_width) = (widest(&edges), widest(&shown));
        let free = |all: usize| all.saturating_sub(edge_width + value_width + 5).max(10);
        let longest = space.columns.map_or(DEFAULT_BAR, free);
        let [low, high] = limits(values.iter().copied().chain([0.0]));
        let axis = letters.axis();
        text.styled(BOLD, title).add(if log { " (logarithmic)" } else { "" });
        if size > 1 {
            text.add(format!(" ({size} bins in each bar)"));
        }
        text.end_line();
        for ((edge, shown), value) in edges.iter().zip(&shown).zip(&values) {
            text.add(format!("{} {axis} {} ", pad(edge, edge_width, true), pad(shown, value_width, true)));
            text.styled(CYAN, line(*value, [low, high], log, longest, letters)).end_line();
        }
        if let Some(end) = edges.get(values.len()) {
            text.add(format!("{} {axis}", pad(end, edge_width, true))).end_line();
        }
    }
}

/// A bar that begins at zero.
fn line(value: f64, [low, high]: [f64; 2], log: bool, longest: usize, letters: Letters) -> String {
    if low >= 0.0 || log {
        return bar(share(value, high, log) * longest as f64, letters);
    }
    let length = |part: f64| (share(part, high - low, false) * longest as f64).round() as usize;
    let zero = length(-low);
    match value < 0.0 {
        true => {
            let part = length(-value).min(zero);
            " ".repeat(zero - part) + &bar(part as f64, letters)
        }
        false => " ".repeat(zero) + &bar(length(value) as f64, letters),
    }
}

/// A bar of this many characters.
fn bar(length: f64, letters: Letters) -> String {
    if letters == Letters::Ascii {
        return "#".repeat(length.round() as usize);
    }
    let eighths = (length * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-2.5, "-2.5"),
            (1.0 / 3.0, "0.33333"),
            (123_456.7, "123457"),
            (1e12, "1.0000e12"),
            (2e-9, "2.0000e-9"),
            (0.1 + 0.2, "0.3"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn neighbours_have_different_texts() {
        assert_eq!(numbers(&[0.0, 0.5, 1.0]), ["0", "0.5", "1"]);
        assert_eq!(numbers(&[4_999_999_999.5, 5_000_000_000.5]), ["4999999999.5", "5000000000.5"]);
        assert_eq!(numbers(&[1.76e18, 1.76e18 + 1024.0]), ["1.760000000000000e18", "1.760000000000001e18"]);
        assert_eq!(numbers(&[2.0, 2.0]), ["2", "2"]);
    }

    #[test]
    fn bars_have_eighths_of_characters() {
        let bar = |length| bar(length, Letters::Unicode);
        assert_eq!((bar(0.0), bar(2.5), bar(3.0)), (String::new(), "██▌".to_owned(), "███".to_owned()));
        assert_eq!(super::bar(2.6, Letters::Ascii), "###");
    }

    #[test]
    fn negative_bars_end_at_zero() {
        let line = |value| line(value, [-1.0, 3.0], false, 8, Letters::Unicode);
        assert_eq!((line(-1.0), line(3.0), line(0.0)), ("██".to_owned(), "  ██████".to_owned(), "  ".to_owned()));
    }

    #[test]
    fn means_of_combined_bins_are_weighted() {
        let bars = Bars::new(vec![0.0, 1.0, 2.0, 4.0], vec![2.0, 9.0, 5.0], Some(vec![1.0, 3.0, 0.0]));
        assert_eq!(bars.values()[..2], [2.0, 3.0]);
        let (few, size) = bars.combined(2);
        assert_eq!((few.edges(), few.values()[0], size), (&[0.0, 2.0, 4.0][..], 2.75, 2));
    }
}
