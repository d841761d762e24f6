//! Tables and numbers for people.

use crate::console::{Console, Style};

/// Aligned columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    right: Vec<bool>,
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads; those that begin with `>` are aligned to the right.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        Self { heads: heads.iter().map(|head| head.trim_start_matches('>')).collect(), right, lines: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    /// Whether there is any line.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The text, heads set off.
    pub(crate) fn render(&self, console: &Console) -> String {
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|column| {
                let cells = self.lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell));
                cells.max().unwrap_or(0).max(width(self.heads[column]))
            })
            .collect();
        let line = |cells: &[String]| {
            let cell = |(column, cell): (usize, &String)| {
                pad(cell, widths.get(column).copied().unwrap_or(0), self.right.get(column) == Some(&true))
            };
            cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let heads: Vec<String> = self.heads.iter().map(|&head| head.to_owned()).collect();
        let mut text = console.paint(Style::Bold, &line(&heads)) + "\n";
        for cells in &self.lines {
            text += &line(cells);
            text.push('\n');
        }
        text
    }
}

/// Columns that text takes, every character being taken as one wide.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Text brought to a width by spaces.
pub(crate) fn pad(text: &str, to: usize, right: bool) -> String {
    let spaces = " ".repeat(to.saturating_sub(width(text)));
    if right { spaces + text } else { text.to_owned() + &spaces }
}

/// Text cut to a width, and without what would disturb a line.
pub(crate) fn cut(text: &str, to: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match width(&text) > to {
        true => text.chars().take(to.saturating_sub(1)).chain(['…']).collect(),
        false => text,
    }
}

/// Bytes with three digits and a unit: `17 B`, `1.46 KiB`, `128 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 999.5 || unit == "PiB" {
            let digits = match value {
                _ if unit == "B" || value >= 99.95 => 0,
                _ if value >= 9.995 => 1,
                _ => 2,
            };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    String::new()
}

/// A number with its thousands apart: `1 234 567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for chunk in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(chunk.iter().map(|&digit| char::from(digit)));
    }
    text
}

/// A number of things: `1 page`, `2 pages`.
pub(crate) fn things(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number if one.ends_with('y') => format!("{} {}ies", count(number), one.trim_end_matches('y')),
        number => format!("{} {one}s", count(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Color;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["NAME", ">SIZE"]);
        table.line(vec!["a".into(), "10".into()]);
        table.line(vec!["longer".into(), "7".into()]);
        let console = Console::new(false, Color::Never, false);
        assert_eq!(table.render(&console), "NAME    SIZE\na         10\nlonger     7\n");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 1536, 10_239, 1_047_552, 1 << 40].map(bytes),
            ["0 B", "999 B", "0.98 KiB", "1.50 KiB", "10.0 KiB", "1.00 MiB", "1.00 TiB"]
        );
        assert_eq!([0, 12, 123, 1234, 1_234_567].map(count), ["0", "12", "123", "1 234", "1 234 567"]);
        assert_eq!(cut("a\nbcdef", 4), "a b…");
        assert_eq!([things(1, "entry"), things(2, "entry"), things(0, "page")], ["1 entry", "2 entries", "0 pages"]);
    }
}
