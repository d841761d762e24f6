//! Text for terminals: text from files is escaped, and only this crate adds styles.

use anstyle::{AnsiColor, Style};
use tupelo::printable;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Lines of text. Everything that is added is escaped ([`printable`]), so names, types and descriptions from a
/// file cannot control the terminal, whichever command prints them.
#[derive(Debug)]
pub(crate) struct Text {
    buffer: String,
    color: bool,
}

impl Text {
    /// An empty text, with styles or without.
    pub(crate) fn new(color: bool) -> Self {
        Self { buffer: String::new(), color }
    }

    /// Adds to the line.
    pub(crate) fn add(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.buffer += &printable(text.as_ref());
        self
    }

    /// Adds to the line with a style.
    pub(crate) fn styled(&mut self, style: Style, text: impl AsRef<str>) -> &mut Self {
        let style = if self.color { style } else { Style::new() };
        self.buffer += &format!("{style}{}{style:#}", printable(text.as_ref()));
        self
    }

    /// Ends the line, without spaces at its end.
    pub(crate) fn end_line(&mut self) -> &mut Self {
        self.buffer.truncate(self.buffer.trim_end_matches(' ').len());
        self.buffer.push('\n');
        self
    }

    /// The escaped text with its styles.
    pub(crate) fn as_str(&self) -> &str {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_files_are_escaped() {
        let mut text = Text::new(true);
        text.add("a\x1b[2J ").styled(BOLD, "b\u{202e}\n").add("  ").end_line().add("c").end_line();
        assert_eq!(text.as_str(), "a\\u{1b}[2J \x1b[1mb\\u{202e}\\n\x1b[0m\nc\n");
    }
}
