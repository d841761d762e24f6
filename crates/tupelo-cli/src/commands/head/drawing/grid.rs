//! Values in two dimensions, as shades.

use super::{Letters, Space, grouped_edges, groups, label, limits, number, numbers, share};
use crate::table::{pad, width};
use crate::text::{BOLD, CYAN, Text};

/// Most lines.
const MAX_LINES: usize = 40;
/// Most columns where nothing limits them.
const DEFAULT_COLUMNS: usize = 80;
/// Shades from the lowest to the highest value.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];
const ASCII_SHADES: [&str; 10] = [" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"];

/// Values of bins on two axes.
#[derive(Debug)]
pub(in super::super::super) struct Grid {
    /// Edges of the bins of both axes.
    edges: [Vec<f64>; 2],
    /// Line by line, from the lowest y on.
    sums: Vec<f64>,
    /// What the sums are divided by, if the values are means.
    divisors: Option<Vec<f64>>,
}

impl Grid {
    pub(in super::super) fn new(edges: [Vec<f64>; 2], sums: Vec<f64>, divisors: Option<Vec<f64>>) -> Self {
        Self { edges, sums, divisors }
    }

    pub(super) fn edges(&self) -> &[Vec<f64>; 2] {
        &self.edges
    }

    fn columns(&self) -> usize {
        self.edges[0].len().saturating_sub(1)
    }

    /// Lines of values from the lowest y on; means of nothing are not numbers.
    pub(super) fn lines(&self) -> Vec<Vec<f64>> {
        let divisor = |place: usize| self.divisors.as_ref().map_or(1.0, |all| all.get(place).copied().unwrap_or(0.0));
        let values: Vec<f64> = self.sums.iter().enumerate().map(|(place, sum)| sum / divisor(place)).collect();
        values.chunks(self.columns().max(1)).map(<[f64]>::to_vec).collect()
    }

    /// The same with at most these numbers of columns and lines, of neighbouring bins.
    pub(super) fn combined(&self, most: [usize; 2]) -> Self {
        let columns = self.columns().max(1);
        let [across, up] = [0, 1].map(|axis| groups(self.edges[axis].len().saturating_sub(1), most[axis]));
        let add = |values: &[f64]| {
            let lines: Vec<&[f64]> = values.chunks(columns).collect();
            let mut sums = Vec::with_capacity(across.len() * up.len());
            for lines in up.iter().filter_map(|group| lines.get(group.clone())) {
                let sum = |group: &std::ops::Range<usize>| -> f64 {
                    lines.iter().filter_map(|line| line.get(group.clone())).flatten().sum()
                };
                sums.extend(across.iter().map(sum));
            }
            sums
        };
        let edges = [grouped_edges(&self.edges[0], &across), grouped_edges(&self.edges[1], &up)];
        Self { edges, sums: add(&self.sums), divisors: self.divisors.as_deref().map(add) }
    }

    /// One line for each bin in y, the highest first, with its lower limit.
    pub(super) fn add_to(&self, title: &str, log: bool, space: Space, text: &mut Text) {
        let letters = space.letters;
        let lower = |grid: &Self| numbers(&grid.edges[1]);
        let widest = |labels: &[String]| labels.iter().map(|label| width(label)).max().unwrap_or(0);
        let free = space.columns.unwrap_or(DEFAULT_COLUMNS).saturating_sub(widest(&lower(self)) + 3).max(10);
        // The last line has the limits of x.
        let most = space.lines.map_or(MAX_LINES, |lines| lines.saturating_sub(1).min(MAX_LINES));
        let grid = self.combined([free, most]);
        let (labels, lines) = (lower(&grid), grid.lines());
        let label_width = widest(&labels);
        let [low, high] = limits(lines.iter().flatten().copied());
        let low = low.min(0.0);
        // Letters are twice as high as wide.
        let times = if grid.columns() * 2 <= free { 2 } else { 1 };
        let axis = letters.axis();
        text.styled(BOLD, title);
        let darkest = format!(" ({}darkest {})", if log { "logarithmic, " } else { "" }, label(high));
        text.add(darkest).end_line();
        for (line, lower) in lines.iter().zip(&labels).rev() {
            let shades: String =
                line.iter().map(|value| shade(share(value - low, high - low, log), letters).repeat(times)).collect();
            text.add(format!("{} {axis} ", pad(lower, label_width, true)));
            text.styled(CYAN, shades).end_line();
        }
        let [first, last] =
            [grid.edges[0].first(), grid.edges[0].last()].map(|it| it.map_or_else(String::new, |it| number(*it)));
        let gap = (grid.columns() * times).saturating_sub(width(&first));
        text.add(format!("{}   {first}{}", " ".repeat(label_width), pad(&last, gap, true))).end_line();
    }
}

/// The shade of a part of the highest value; the least is visible.
fn shade(part: f64, letters: Letters) -> &'static str {
    let shades: &[&str] = if letters == Letters::Unicode { &SHADES } else { &ASCII_SHADES };
    let place = (part * (shades.len() - 1) as f64).ceil() as usize;
    shades.get(place).copied().unwrap_or(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_added() {
        let grid = Grid::new([vec![0.0, 1.0, 2.0, 5.0], vec![0.0, 1.0, 2.0]], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None);
        let few = grid.combined([2, 1]);
        assert_eq!(few.edges, [vec![0.0, 2.0, 5.0], vec![0.0, 2.0]]);
        assert_eq!(few.lines(), [[12.0, 9.0]]);
    }

    #[test]
    fn the_least_value_has_a_shade() {
        assert_eq!([0.0, 1e-9, 0.5, 1.0].map(|part| shade(part, Letters::Unicode)), [" ", "░", "▒", "█"]);
        assert_eq!([0.0, 1e-9, 1.0].map(|part| shade(part, Letters::Ascii)), [" ", ".", "@"]);
    }
}
