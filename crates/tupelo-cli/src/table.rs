//! Tables, sizes and counts.

use anstyle::Style;
use tupelo::printable;

use crate::text::{BOLD, Text};

/// Maximum width of a column, in characters. A longer cell only shifts the rest of the line; otherwise a name of
/// 64 KiB would widen every line.
const MAX_ALIGNED: usize = 120;

/// Escaped text with an optional style.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    /// A cell with a style.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self { style: Some(style), ..Self::from(text) }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: printable(text).into_owned(), style: None }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// A table with aligned columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    right: Vec<bool>,
    lines: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column heads. Columns whose head starts with `>` are aligned to the right.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        Self { heads: heads.iter().map(|head| head.trim_start_matches('>')).collect(), right, lines: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.lines.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there is any line.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds an empty line and the table to a text, unless the table is empty.
    pub(crate) fn add_below(&self, text: &mut Text) {
        if !self.is_empty() {
            self.add_to(text.end_line());
        }
    }

    /// Adds the table to a text, with bold heads.
    pub(crate) fn add_to(&self, text: &mut Text) {
        let column_width = |(column, head): (usize, &&str)| {
            let cells = self.lines.iter().filter_map(|line| line.get(column)).map(|cell| width(&cell.text));
            cells.filter(|&cell| cell <= MAX_ALIGNED).max().unwrap_or(0).max(width(head))
        };
        let widths: Vec<usize> = self.heads.iter().enumerate().map(column_width).collect();
        let mut add_line = |cells: &[Cell]| {
            for (column, cell) in cells.iter().enumerate() {
                let to = widths.get(column).copied().unwrap_or(0);
                let spaces = " ".repeat(to.saturating_sub(width(&cell.text)));
                let (before, after) =
                    if self.right.get(column) == Some(&true) { (&spaces[..], "") } else { ("", &spaces[..]) };
                text.add(if column > 0 { "  " } else { "" }).add(before);
                match cell.style {
                    Some(style) => text.styled(style, &cell.text),
                    None => text.add(&cell.text),
                };
                text.add(after);
            }
            text.end_line();
        };
        add_line(&self.heads.iter().map(|head| Cell::styled(BOLD, head)).collect::<Vec<_>>());
        self.lines.iter().for_each(|line| add_line(line));
    }
}

/// Width of a text; every character counts as one.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Text padded to a width with spaces.
pub(crate) fn pad(text: &str, to: usize, right: bool) -> String {
    let spaces = " ".repeat(to.saturating_sub(width(text)));
    if right { spaces + text } else { text.to_owned() + &spaces }
}

/// Escaped text, shortened to a width.
pub(crate) fn cut(text: &str, to: usize) -> String {
    // Escape only the part that may be shown; the text may be megabytes long.
    let end = text.char_indices().nth(to.saturating_add(1)).map_or(text.len(), |(end, _)| end);
    let text = printable(&text[..end]);
    match width(&text) > to {
        true => text.chars().take(to.saturating_sub(1)).chain(['…']).collect(),
        false => text.into_owned(),
    }
}

/// Escaped text, shortened to a width by letters in its middle: of long names, the ends often differ.
pub(crate) fn cut_middle(text: &str, to: usize) -> String {
    let text = printable(text);
    let all = width(&text);
    if all <= to {
        return text.into_owned();
    }
    let kept = to.saturating_sub(1);
    let start = kept / 3;
    let end = text.chars().skip(all - (kept - start));
    text.chars().take(start).chain(['…'].into_iter().take(to)).chain(end).collect()
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

/// A quotient of sizes with two digits: `3.80`.
pub(crate) fn ratio(unpacked: u64, stored: u64) -> String {
    let ratio = if unpacked == 0 && stored == 0 { 1.0 } else { unpacked as f64 / stored.max(1) as f64 };
    format!("{ratio:.2}")
}

/// A part as a percentage: `8.9%`.
pub(crate) fn share(part: u64, of: u64) -> String {
    format!("{:.1}%", part as f64 * 100.0 / of.max(1) as f64)
}

/// A number with spaces between thousands: `1 234 567`.
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

/// A count with its noun: `1 page`, `2 pages`.
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

    fn render(table: &Table, color: bool) -> String {
        let mut text = Text::new(color);
        table.add_to(&mut text);
        text.to_ansi().into_owned()
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["NAME", ">SIZE"]);
        table.line(["a", "10"]);
        table.line(["longer", "7"]);
        assert_eq!(render(&table, false), "NAME    SIZE\na         10\nlonger     7\n");
        let mut table = Table::new(&[">N", "X"]);
        table.line([Cell::styled(crate::text::RED, "7"), "\x1b[1m".into()]);
        table.line(["10", &"x".repeat(MAX_ALIGNED + 1)]);
        let expected = format!(
            " \x1b[1mN\x1b[0m  \x1b[1mX\x1b[0m\n \x1b[1m\x1b[31m7\x1b[0m  \\u{{1b}}[1m\n10  {}\n",
            "x".repeat(MAX_ALIGNED + 1)
        );
        assert_eq!(render(&table, true), expected);
    }

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(
            [0, 999, 1000, 1536, 10_239, 1_047_552, 1 << 40].map(bytes),
            ["0 B", "999 B", "0.98 KiB", "1.50 KiB", "10.0 KiB", "1.00 MiB", "1.00 TiB"]
        );
        assert_eq!([0, 12, 123, 1234, 1_234_567].map(count), ["0", "12", "123", "1 234", "1 234 567"]);
        assert_eq!([cut("a\nbcdef", 5), cut("a\nb", 4)], ["a\\nb…", "a\\nb"]);
        let middle = |to| cut_middle("JetsAuxDyn:pt\n", to);
        assert_eq!([middle(15), middle(10), middle(1), middle(0)], ["JetsAuxDyn:pt\\n", "Jet…n:pt\\n", "…", ""]);
        assert_eq!([things(1, "entry"), things(2, "entry"), things(0, "page")], ["1 entry", "2 entries", "0 pages"]);
    }
}
