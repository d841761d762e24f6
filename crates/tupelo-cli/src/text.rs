//! Text for terminals: text from files is escaped, and only this crate adds styles.

use std::borrow::Cow;
use std::ops::Range;

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
    /// Parts of the buffer with styles, in order; each is in one line.
    styles: Vec<(Range<usize>, Style)>,
    color: bool,
}

impl Text {
    /// An empty text, with styles or without.
    pub(crate) fn new(color: bool) -> Self {
        Self { buffer: String::new(), styles: Vec::new(), color }
    }

    /// Adds to the line.
    pub(crate) fn add(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.buffer += &printable(text.as_ref());
        self
    }

    /// Adds to the line with a style.
    pub(crate) fn styled(&mut self, style: Style, text: impl AsRef<str>) -> &mut Self {
        let start = self.buffer.len();
        self.add(text);
        if self.color && style != Style::new() {
            self.styles.push((start..self.buffer.len(), style));
        }
        self
    }

    /// Adds lines of at most `width` characters that end between words, or within words that are longer. All but the first begin
    /// with as many spaces as the line has characters.
    pub(crate) fn wrap(&mut self, text: impl AsRef<str>, width: usize) -> &mut Self {
        self.wrap_styled(Style::new(), text, width)
    }

    /// The same with a style.
    pub(crate) fn wrap_styled(&mut self, style: Style, text: impl AsRef<str>, width: usize) -> &mut Self {
        let start = self.buffer.rfind('\n').map_or(0, |end| end + 1);
        let indent = self.buffer[start..].chars().count();
        let width = width.saturating_sub(indent).max(1);
        let mut is_first = true;
        for line in wrapped(&printable(text.as_ref()), width) {
            let letters: Vec<char> = line.chars().collect();
            for part in letters.chunks(width) {
                if !std::mem::take(&mut is_first) {
                    self.end_line().add(" ".repeat(indent));
                }
                self.styled(style, part.iter().collect::<String>());
            }
        }
        self.end_line()
    }

    /// Ends the line, without spaces at its end.
    pub(crate) fn end_line(&mut self) -> &mut Self {
        let end = self.buffer.trim_end_matches(' ').len();
        self.buffer.truncate(end);
        if let Some((last, _)) = self.styles.last_mut() {
            *last = last.start.min(end)..last.end.min(end);
        }
        self.buffer.push('\n');
        self
    }

    /// The escaped text with its styles as escape sequences.
    pub(crate) fn to_ansi(&self) -> Cow<'_, str> {
        if self.styles.is_empty() {
            return Cow::Borrowed(&self.buffer);
        }
        Cow::Owned(self.parts().map(|(style, part)| format!("{style}{part}{style:#}")).collect())
    }

    /// Number of lines.
    pub(crate) fn height(&self) -> usize {
        self.buffer.matches('\n').count()
    }

    /// The lines, as parts with their styles.
    pub(crate) fn lines(&self) -> Vec<Vec<(Style, &str)>> {
        let mut lines = vec![Vec::new()];
        for (style, part) in self.parts() {
            for (number, part) in part.split('\n').enumerate() {
                if number > 0 {
                    lines.push(Vec::new());
                }
                if let (Some(line), false) = (lines.last_mut(), part.is_empty()) {
                    line.push((style, part));
                }
            }
        }
        // Each line ends with a line break.
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    /// All of the text, the parts without a style too.
    fn parts(&self) -> impl Iterator<Item = (Style, &str)> {
        let mut end = 0;
        let styled = self.styles.iter().flat_map(move |(range, style)| {
            let before = std::mem::replace(&mut end, range.end)..range.start;
            [(before, Style::new()), (range.clone(), *style)]
        });
        let last = self.styles.last().map_or(0, |(range, _)| range.end)..self.buffer.len();
        let parts = styled.chain([(last, Style::new())]);
        parts.map(|(range, style)| (style, &self.buffer[range])).filter(|(_, part)| !part.is_empty())
    }
}

/// A text in lines of at most `width` characters, as far as its words are shorter.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_files_are_escaped() {
        let mut text = Text::new(true);
        text.add("a\x1b[2J ").styled(BOLD, "b\u{202e}\n").add("  ").end_line().add("c").end_line();
        assert_eq!(text.to_ansi(), "a\\u{1b}[2J \x1b[1mb\\u{202e}\\n\x1b[0m\nc\n");
    }

    #[test]
    fn lines_have_the_styles_of_their_parts() {
        let mut text = Text::new(true);
        text.styled(BOLD, "a").add("b").end_line().end_line().add("c").styled(RED, "d  ").end_line();
        let plain = Style::new();
        assert_eq!(text.lines(), [vec![(BOLD, "a"), (plain, "b")], vec![], vec![(plain, "c"), (RED, "d")]]);
        assert_eq!(text.to_ansi(), format!("{BOLD}a{BOLD:#}b\n\nc{RED}d{RED:#}\n"));
        let mut text = Text::new(false);
        text.styled(BOLD, "a").end_line();
        assert_eq!((text.lines(), text.to_ansi().as_ref()), (vec![vec![(plain, "a")]], "a\n"));
        assert!(Text::new(true).lines().is_empty());
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("enormous", 3), ["enormous"]);
        assert!(wrapped("", 3).is_empty());
        let mut text = Text::new(false);
        text.add("x").end_line().add("- ").wrap("one two three", 9).add("y");
        assert_eq!(text.to_ansi(), "x\n- one two\n  three\ny");
        let mut text = Text::new(false);
        text.wrap("enormous\x1b word", 4);
        assert_eq!(text.to_ansi(), "enor\nmous\n\\u{1\nb}\nword\n");
    }
}
