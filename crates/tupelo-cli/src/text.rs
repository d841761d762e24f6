//! Text for people: text from a file is escaped, and only this crate adds styles.

use tupelo::printable;

use crate::console::Style;

/// Lines for a person. Everything that is added is escaped ([`printable`]), so names, types and descriptions from a file
/// cannot control the terminal, whichever command prints them.
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

    /// Adds to the line, set off.
    pub(crate) fn styled(&mut self, style: Style, text: impl AsRef<str>) -> &mut Self {
        self.buffer += &style.paint(&printable(text.as_ref()), self.color);
        self
    }

    /// Ends the line, without spaces at its end.
    pub(crate) fn end_line(&mut self) -> &mut Self {
        self.buffer.truncate(self.buffer.trim_end_matches(' ').len());
        self.buffer.push('\n');
        self
    }

    /// What is to be written to the terminal.
    pub(crate) fn as_str(&self) -> &str {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_escapes_reach_the_terminal() {
        let mut text = Text::new(true);
        text.add("a\x1b[2J ").styled(Style::Bold, "b\u{202e}\n").add("  ").end_line().add("c").end_line();
        assert_eq!(text.as_str(), "a\\u{1b}[2J \x1b[1mb\\u{202e}\\n\x1b[0m\nc\n");
    }
}
