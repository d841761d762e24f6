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

/// Patterns for comments and string literals of Rust, such as messages and `--help`.
const RUST_IDIOMS: &[(&str, &str)] = &[
    (r"\b(is|are|was|were) no [a-z]+", "is not a …, lacks …"),
    (r"\b(has|have|had) not( (a|an|the|its|their|any|as|so|enough|all|only|one)\b|[.,;:])", "lacks …, without …"),
    (r"\bof which\b", "whose …, a sentence of its own"),
];

/// Ends of the text before a phrase with which it is plain English: "there is no file", "the first of which".
const PLAIN_BEFORE: &[&str] = &["there ", "all ", "each ", "first ", "last ", "most ", "none ", "one ", "some "];

/// Ends of a phrase with which it is plain English: "is no longer".
const PLAIN_ENDS: &[&str] = &["no fewer", "no larger", "no less", "no longer", "no more", "no older", "no smaller"];

type Patterns = Vec<(Regex, &'static str)>;

fn compiled(idioms: &[(&str, &'static str)]) -> Patterns {
    let compile = |pattern| Regex::new(&format!("(?i){pattern}")).expect("the patterns of the list are valid");
    idioms.iter().map(|(pattern, instead)| (compile(pattern), *instead)).collect()
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| compiled(IDIOMS));
static RUST_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| compiled(RUST_IDIOMS));

/// Reports the phrases in a text.
pub(super) fn check(path: &str, text: &str, report: &mut Report) {
    check_patterns(path, text, &PATTERNS, report);
}

/// Reports the phrases in comments or string literals of Rust.
pub(super) fn check_rust(path: &str, text: &str, report: &mut Report) {
    check_patterns(path, text, &PATTERNS, report);
    check_patterns(path, text, &RUST_PATTERNS, report);
}

fn check_patterns(path: &str, text: &str, patterns: &Patterns, report: &mut Report) {
    if path == LIST {
        return;
    }
    let paragraphs = Paragraphs::of(text);
    for (pattern, instead) in patterns {
        for found in pattern.find_iter(&paragraphs.text) {
            let before = paragraphs.text[..found.start()].to_lowercase();
            let phrase = found.as_str().to_lowercase();
            let is_plain = PLAIN_BEFORE.iter().any(|end| before.ends_with(end));
            if is_plain || PLAIN_ENDS.iter().any(|end| phrase.ends_with(end)) {
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

    #[test]
    fn rust_has_more_phrases() {
        let faults = |text: &str| {
            let mut report = Report::default();
            check_rust("xtask/a.rs", text, &mut report);
            report.faults.len()
        };
        for text in ["a counter that is no number", "it has not the fields", "a size that it has not.", "x, of which y"]
        {
            assert_eq!(faults(text), 1, "{text}");
        }
        for text in ["there is no field", "it is no longer open", "it has not finished", "pages, some of which overlap"]
        {
            assert_eq!(faults(text), 0, "{text}");
        }
        assert!(self::faults("xtask/a.md", "x, of which y").is_empty());
    }
}
