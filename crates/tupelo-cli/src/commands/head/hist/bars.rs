//! Histograms as bars of text.

use super::Histogram;
use crate::console::terminal_width;
use crate::table::{count, pad, width};
use crate::text::{BOLD, CYAN, Text};

/// Width of the longest bar if stdout is not a terminal, in characters.
const DEFAULT_BAR: usize = 50;
/// Eighths of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Significant digits of numbers.
const DIGITS: i32 = 5;

/// A number with few digits.
pub(super) fn number(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if !(-5..=9).contains(&magnitude) {
        return format!("{value:.*e}", DIGITS as usize - 1);
    }
    let decimals = usize::try_from(DIGITS - 1 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The part of the longest bar that a count takes.
pub(super) fn share(counted: u64, most: u64, log: bool) -> f64 {
    let scaled = |count: u64| if log { (count as f64 + 1.0).ln() } else { count as f64 };
    scaled(counted) / scaled(most.max(1))
}

/// A bar of this many characters.
fn bar(length: f64) -> String {
    let eighths = (length * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// One line for each bin: its lower limit, its count and a bar.
pub(super) fn draw(histogram: &Histogram, title: &str, log: bool, text: &mut Text) {
    let bins = histogram.counts.len();
    let edges: Vec<String> = (0..bins).map(|bin| number(histogram.edge(bin))).collect();
    let counts: Vec<String> = histogram.counts.iter().map(|counted| count(*counted)).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let (edge_width, count_width) = (widest(&edges), widest(&counts));
    let most = histogram.counts.iter().copied().max().unwrap_or(0);
    let longest = terminal_width().map_or(DEFAULT_BAR, |all| all.saturating_sub(edge_width + count_width + 5).max(10));
    text.styled(BOLD, title).add(if log { " (logarithmic)" } else { "" }).end_line();
    for ((edge, shown), counted) in edges.iter().zip(&counts).zip(&histogram.counts) {
        text.add(format!("{} │ {} ", pad(edge, edge_width, true), pad(shown, count_width, true)));
        text.styled(CYAN, bar(share(*counted, most, log) * longest as f64)).end_line();
    }
    text.add(format!("{} │", pad(&number(histogram.high), edge_width, true))).end_line();
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
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn bars_have_eighths_of_characters() {
        assert_eq!((bar(0.0), bar(2.5), bar(3.0)), (String::new(), "██▌".to_owned(), "███".to_owned()));
        assert_eq!((share(5, 10, false), share(0, 0, true)), (0.5, 0.0));
    }
}
