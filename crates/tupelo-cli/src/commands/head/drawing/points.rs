//! Points in a plane.

use super::{Letters, Space, number, range};
use crate::table::{pad, width};
use crate::text::{BOLD, CYAN, Text};

/// Most lines of text.
const LINES: usize = 20;
/// Columns where nothing limits them, and the most.
const COLUMNS: [usize; 2] = [60, 100];
/// Bits of the dots of a letter of Braille, by line and column (Unicode, U+2800).
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
const BRAILLE: u32 = 0x2800;

/// Points with errors.
#[derive(Debug, Default)]
pub(in super::super::super) struct Points {
    /// Coordinates on both axes.
    pub(in super::super::super) places: [Vec<f64>; 2],
    /// Of both axes, the errors below and above, if there are any.
    pub(in super::super::super) errors: [Option<[Vec<f64>; 2]>; 2],
}

impl Points {
    /// Those with finite coordinates.
    pub(super) fn finite(&self) -> impl Iterator<Item = [f64; 2]> {
        let [x, y] = &self.places;
        x.iter().zip(y).map(|(x, y)| [*x, *y]).filter(|point| point.iter().all(|it| it.is_finite()))
    }

    /// The ends of the error of a point on an axis.
    pub(super) fn bounds(&self, axis: usize, point: usize) -> Option<[f64; 2]> {
        let [low, high] = self.errors.get(axis)?.as_ref()?;
        let place = self.places.get(axis)?.get(point)?;
        let [low, high] = [place - low.get(point)?, place + high.get(point)?];
        (low.is_finite() && high.is_finite()).then_some([low, high])
    }

    /// The range of the points on an axis, with their errors.
    pub(super) fn range(&self, axis: usize) -> [f64; 2] {
        let count = self.places.get(axis).map_or(0, Vec::len);
        let bounds = (0..count).filter_map(|point| self.bounds(axis, point)).flatten();
        range(self.finite().filter_map(|point| point.get(axis).copied()).chain(bounds))
    }

    /// The points as dots.
    pub(super) fn add_to(&self, title: &str, space: Space, text: &mut Text) {
        let letters = space.letters;
        // The last line has the limits of x.
        let all = space.lines.map_or(LINES, |lines| lines.saturating_sub(1).clamp(2, LINES));
        let ranges = [0, 1].map(|axis| range(self.finite().filter_map(|point| point.get(axis).copied())));
        let [left, right] = ranges[0].map(number);
        let [bottom, top] = ranges[1].map(number);
        let label_width = width(&bottom).max(width(&top));
        let free = |all: usize| all.saturating_sub(label_width + 3).clamp(10, COLUMNS[1]);
        let columns = space.columns.map_or(COLUMNS[0], free);
        let cell = if letters == Letters::Unicode { [2, 4] } else { [1, 1] };
        let size = [columns * cell[0], all * cell[1]];
        let mut dots = vec![vec![0_u8; columns]; all];
        for point in self.finite() {
            let [x, y] = [0, 1].map(|axis| {
                let [low, high] = ranges[axis];
                let part = ((point[axis] - low) / (high - low)).clamp(0.0, 1.0);
                (part * (size[axis] - 1) as f64).round() as usize
            });
            let (line, column) = (size[1] - 1 - y, x);
            if let Some(dot) = dots.get_mut(line / cell[1]).and_then(|dots| dots.get_mut(column / cell[0])) {
                *dot |= DOTS[line % cell[1]][column % cell[0]];
            }
        }
        let letter = |dots: &u8| match (dots, letters) {
            (0, _) => ' ',
            (_, Letters::Ascii) => '*',
            (dots, Letters::Unicode) => char::from_u32(BRAILLE + u32::from(*dots)).unwrap_or(' '),
        };
        let axis = letters.axis();
        text.styled(BOLD, title).end_line();
        for (line, dots) in dots.iter().enumerate() {
            let label = match line {
                0 => &top,
                _ if line == all - 1 => &bottom,
                _ => "",
            };
            text.add(format!("{} {axis} ", pad(label, label_width, true)));
            text.styled(CYAN, dots.iter().map(letter).collect::<String>()).end_line();
        }
        let gap = columns.saturating_sub(width(&left));
        text.add(format!("{}   {left}{}", " ".repeat(label_width), pad(&right, gap, true))).end_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(letters: Letters) -> Space {
        Space { letters, columns: None, lines: None }
    }

    #[test]
    fn corners_are_drawn() {
        let points = Points { places: [vec![0.0, 1.0, f64::NAN], vec![0.0, 1.0, 0.5]], ..Points::default() };
        let mut text = Text::new(false);
        points.add_to("p", space(Letters::Unicode), &mut text);
        let drawn = text.to_ansi();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), LINES + 2);
        assert!(lines[1].starts_with("1 │ ") && lines[1].ends_with('⠈'), "{}", lines[1]);
        assert_eq!(lines[LINES], "0 │ ⡀");
        let mut text = Text::new(false);
        points.add_to("p", space(Letters::Ascii), &mut text);
        assert_eq!(text.to_ansi().matches('*').count(), 2);
        let mut text = Text::new(false);
        points.add_to("p", Space { columns: Some(30), lines: Some(6), ..space(Letters::Ascii) }, &mut text);
        let drawn = text.to_ansi();
        assert_eq!((drawn.lines().count(), drawn.lines().map(str::len).max()), (7, Some(30)));
    }

    #[test]
    fn ranges_include_errors() {
        let errors = [None, Some([vec![1.0, 1.0], vec![2.0, f64::INFINITY]])];
        let points = Points { places: [vec![0.0, 1.0], vec![5.0, 6.0]], errors };
        assert_eq!((points.range(0), points.range(1)), ([0.0, 1.0], [4.0, 7.0]));
    }
}
