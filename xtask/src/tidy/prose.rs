//! Phrases that are hard to understand, and the plain words for them.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::report::Report;

/// The phrases themselves are here.
const LIST: &str = "xtask/src/tidy/prose.rs";

/// Patterns that do not depend on case, and what to write instead.
const IDIOMS: &[(&str, &str)] = &[
    (r"\b(is|are|was|were) no [a-z]+ (of|that|which)\b", "is not a …"),
    (r"\bhas not [0-9]+\b", "expected …, found …"),
    (r"\bwants? no more\b", "is cancelled"),
    (r"\b(is|are|was|were|be|been|has|have) told\b", "is passed, reports, prints, distinguishes"),
    (r"\btells? (of|on)\b", "reports, describes"),
    (r"\bstands? (above|behind|below|beside|for itself|there)\b", "precedes, follows, is"),
    (r"\bcomes? to stand\b", "is moved to"),
    (r"\bthere twice\b", "duplicates"),
    (r"\bsaid of\b", "attributes of, metadata of"),
    (r"\b(who asks|who wants|whoever|nobody|for everyone else)\b", "the caller, the reader, other libraries"),
    (r"\b(is|are) asked (for|of|once)\b", "is requested, is checked"),
    (r"\bbehind (an?|its|that|the|their) (end|last|entry|byte)\b", "past the end, after"),
    (r"\bin one go\b", "at once"),
    (r"\bfor ever\b", "forever, indefinitely"),
    (r"\bby whatever means\b", "(delete)"),
    (r"\bas it should\b", "correctly"),
    (r"\bsees? to (it|that)\b", "ensures, checks"),
    (r"\binto words\b", "formats"),
    (
        r"\b(about|above|after|at most|below|from|has|have|over|takes?|than|with) so (many|much)\b",
        "the name of the number",
    ),
    (r"\bno or one\b", "at most one"),
    (r"\banew\b", "again"),
    (r"\bis given up\b", "is aborted"),
    (r"\bis at work\b", "is running"),
    (r"\bunder way\b", "in progress, running"),
    (r"\bhouse rules?\b|\brules of the house\b|\bout of the house\b", "project rules"),
    (r"\ball that is different\b", "differences"),
    (r"\bwhat (reading|it) costs?\b", "read statistics"),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compile = |pattern| Regex::new(&format!("(?i){pattern}")).expect("the patterns of the list are valid");
    IDIOMS.iter().map(|(pattern, instead)| (compile(pattern), *instead)).collect()
});

/// Reports the phrases in a text.
pub(super) fn check(path: &str, text: &str, report: &mut Report) {
    if path == LIST {
        return;
    }
    let paragraphs = Paragraphs::of(text);
    for (pattern, instead) in PATTERNS.iter() {
        for found in pattern.find_iter(&paragraphs.text) {
            // "There is no file of that name" is plain English.
            if paragraphs.text[..found.start()].to_lowercase().ends_with("there ") {
                continue;
            }
            let what = format!("\"{}\": write plainly, for example: {instead}", found.as_str());
            report.fault(path, paragraphs.line(found.start()), what);
        }
    }
}

/// Text without line breaks inside paragraphs, so that phrases are found across lines.
struct Paragraphs {
    text: String,
    /// For each line its offset in the text.
    lines: Vec<usize>,
}

impl Paragraphs {
    fn of(text: &str) -> Self {
        let (mut joined, mut lines) = (String::new(), Vec::new());
        for line in text.lines() {
            lines.push(joined.len());
            let words = line.trim().trim_start_matches(['/', '!', '#', '*', '>']).trim();
            joined += words;
            joined.push(if words.is_empty() { '\n' } else { ' ' });
        }
        Self { text: joined, lines }
    }

    /// The line of an offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let mut report = Report::default();
        check(path, text, &mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn phrases_are_found_across_lines() {
        let found = faults("xtask/a.rs", "\n/// It is\n/// told.\n");
        let expected =
            "xtask/a.rs:2: \"is told\": write plainly, for example: is passed, reports, prints, distinguishes";
        assert_eq!(found, [expected]);
        assert_eq!(faults("xtask/a.md", "a\n\nThis is no\nlist of x.\n").len(), 1);
        assert!(faults("xtask/a.md", "This is no\n\nlist of x.\n").is_empty());
        assert!(faults("xtask/a.md", "There is no list of x.\n").is_empty());
    }
}
