//! Text from a file, made safe to show.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// A text with all non-printing characters escaped: control characters, line breaks, and the invisible characters that
/// change the direction of text or hide it. `\n`, `\t` and `\r` become these two characters,
/// others `\u{1b}`.
///
/// Names, types and descriptions in a file are chosen by its writer; unescaped, they could move the cursor of a
/// terminal, colour it, set its title or reverse text. An escaped text stays as it is.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    // Writing to a string cannot fail.
    let _ = escape(text, &mut escaped);
    Cow::Owned(escaped)
}

/// Passes on what is written to it, escaped as by [`printable`].
pub(super) struct Printable<'w, W>(pub(super) &'w mut W);

impl<W: Write> Write for Printable<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0)
    }
}

fn escape(text: &str, out: &mut impl Write) -> fmt::Result {
    let mut rest = text;
    while let Some(position) = rest.find(|c| !is_printable(c)) {
        let (plain, from) = rest.split_at(position);
        out.write_str(plain)?;
        let mut chars = from.chars();
        if let Some(c) = chars.next() {
            write!(out, "{}", c.escape_debug())?;
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

/// Whether a terminal shows a character and does nothing else with it.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // The standard library knows what Unicode calls printable, but only within a string it lets combining marks pass.
    let mut buffer = [b'a'; 5];
    let len = c.encode_utf8(&mut buffer[1..]).len();
    let after_a_letter = std::str::from_utf8(&buffer[..=len]).unwrap_or_default();
    after_a_letter.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        let cases = [
            ("\x1b[31mred\x1b[0m", r"\u{1b}[31mred\u{1b}[0m"),
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{9b}2J\u{7f}\0", r"\u{9b}2J\u{7f}\0"),
            ("\u{202e}gnp.exe\u{202c}\u{2066}\u{200f}\u{61c}", r"\u{202e}gnp.exe\u{202c}\u{2066}\u{200f}\u{61c}"),
            ("\u{2028}\u{200b}\u{feff}\u{ad}\u{e0041}", r"\u{2028}\u{200b}\u{feff}\u{ad}\u{e0041}"),
        ];
        for (text, escaped) in cases {
            assert_eq!(printable(text), escaped);
            assert_eq!(printable(escaped), escaped, "an escaped text stays");
        }
    }

    #[test]
    fn what_is_read_stays() {
        for text in ["", "jets.pt", r#"std::vector<"a\b'>"#, "Größe Δφ 質量 e\u{301} 😀", "a\u{fe0f}"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
