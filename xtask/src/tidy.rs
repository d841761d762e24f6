//! Project rules that compilers and linters do not check.
//!
//! | rule | for |
//! |---|---|
//! | at most [`MAX_LINES`] lines, a warning from [`MANY_LINES`] | product files in Rust and Python |
//! | no tab, no trailing blank, one line break at the end | every text file |
//! | forbidden macros, restricted modules, unsafe sites: see [`code`] | Rust |
//! | plain language: see [`prose`] | Rust, Python, Markdown |
//! | at most [`MAX_ARCHITECTURE_LINES`] lines, every crate named | ARCHITECTURE.md |
//! | the sections of [`DECISION_SECTIONS`], a unique number | docs/decisions |
//! | relative links have a target | every Markdown file |
//! | the oldest versions agree: see [`versions`] | Cargo.toml, README.md, CONTRIBUTING.md, docs/guide/install.md |

mod code;
mod prose;
mod versions;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::report::Report;
use crate::rust::Source;
use crate::tree;

/// Maximum lines of a product file, without inline tests.
const MAX_LINES: usize = 1000;
/// Lines from which a product file gets a warning.
const MANY_LINES: usize = 600;
/// Maximum lines of ARCHITECTURE.md.
const MAX_ARCHITECTURE_LINES: usize = 150;
/// Sections of every decision, in this order.
const DECISION_SECTIONS: &[&str] = &["## What", "## Why", "## Cost"];
/// Words that mark unfinished work.
const UNFINISHED: &[&str] = &["FIXME", "XXX"];
/// Generated files have this word in their first lines, and may be long.
const GENERATED: &str = "@generated";
/// Extensions of text files.
const TEXT: &[&str] = &[
    "rs", "py", "pyi", "toml", "md", "sh", "txt", "yml", "yaml", "C", "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx",
];

/// Checks every file of the project.
pub(crate) fn check(root: &Path) -> io::Result<Report> {
    let mut report = Report::default();
    let files = tree::files(root)?;
    let least_versions = tree::read(root, versions::SOURCE)?;
    for path in files.iter().filter(|path| is_text(path)) {
        report.files += 1;
        let text = tree::read(root, path)?;
        blanks(path, &text, &mut report);
        match extension(path) {
            "rs" => rust(path, &text, &mut report),
            "py" | "pyi" => {
                length(path, &text, text.lines().count(), &mut report);
                unfinished(path, &text, &mut report);
                prose::check(path, &text, &mut report);
            }
            "md" => {
                links(path, &text, &files, &mut report);
                prose::check(path, &text, &mut report);
            }
            _ => {}
        }
        versions::check(path, &text, &least_versions, &mut report);
        if path == "ARCHITECTURE.md" {
            architecture(path, &text, &files, &mut report);
        }
        if path.starts_with("docs/decisions/") && !path.ends_with("README.md") {
            decision(path, &text, &mut report);
        }
    }
    code::lists(&files, &mut report);
    decision_numbers(&files, &mut report);
    Ok(report)
}

fn rust(path: &str, text: &str, report: &mut Report) {
    let source = match Source::parse(text) {
        Ok(source) => source,
        Err(error) => return report.fault(path, error.span().start().line, format!("cannot parse: {error}")),
    };
    code::check(path, text, &source, report);
    length(path, text, text.lines().count() - source.test_lines, report);
    unfinished(path, &source.comments, report);
    prose::check_rust(path, &source.comments, report);
    prose::check_rust(path, &source.strings, report);
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn is_text(path: &str) -> bool {
    TEXT.contains(&extension(path)) || path == "Makefile" || path.starts_with(".ci/")
}

fn blanks(path: &str, text: &str, report: &mut Report) {
    for (index, line) in text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            report.fault(path, index + 1, "blank at the end of the line");
        }
        if line.contains('\t') && path != "Makefile" && !path.ends_with(".txt") {
            report.fault(path, index + 1, "tab: indent with spaces");
        }
    }
    let lines = text.split('\n').count();
    if !text.is_empty() && !text.ends_with('\n') {
        report.fault(path, lines, "no line break at the end of the file");
    } else if text.ends_with("\n\n") {
        report.fault(path, lines - 1, "empty line at the end of the file");
    }
}

fn length(path: &str, text: &str, lines: usize, report: &mut Report) {
    let generated = text.lines().take(3).any(|line| line.contains(GENERATED));
    if tree::is_test(path) || generated {
        return;
    }
    if lines > MAX_LINES {
        report.fault(path, 0, format!("{lines} lines without tests; the maximum is {MAX_LINES}: split the file"));
    } else if lines >= MANY_LINES {
        report.warn(path, 0, format!("{lines} lines without tests: consider splitting the file; aim for 300"));
    }
}

fn unfinished(path: &str, text: &str, report: &mut Report) {
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(word) = words.find(|word| UNFINISHED.contains(word)) {
            report.fault(
                path,
                index + 1,
                format!("{word}: finish it, or open an issue and cite it in a plain comment"),
            );
        }
    }
}

fn architecture(path: &str, text: &str, files: &[String], report: &mut Report) {
    let lines = text.lines().count();
    if lines > MAX_ARCHITECTURE_LINES {
        report.fault(path, 0, format!("{lines} lines; the maximum is {MAX_ARCHITECTURE_LINES}"));
    }
    for manifest in files.iter().filter(|file| file.starts_with("crates/") && file.ends_with("/Cargo.toml")) {
        let name = manifest.split('/').nth(1).unwrap_or_default();
        if !text.contains(name) {
            report.fault(path, 0, format!("does not mention the crate {name}"));
        }
    }
}

fn decision(path: &str, text: &str, report: &mut Report) {
    let sections: Vec<&str> = text.lines().filter(|line| DECISION_SECTIONS.contains(line)).collect();
    if sections != DECISION_SECTIONS {
        report.fault(path, 0, format!("a decision has the sections {}, in this order", DECISION_SECTIONS.join(", ")));
    }
}

fn decision_numbers(files: &[String], report: &mut Report) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for path in files {
        let Some(name) = path.strip_prefix("docs/decisions/").filter(|name| *name != "README.md") else { continue };
        match name.split_once('-') {
            Some((number, _)) if number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                if let Some(other) = seen.insert(number, name) {
                    report.fault(path, 0, format!("has the same number as {other}"));
                }
            }
            _ => report.fault(path, 0, "decisions are named NNNN-words.md"),
        }
    }
}

/// The target of a relative link must exist in the project. Code is skipped.
fn links(path: &str, text: &str, files: &[String], report: &mut Report) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let target_path = resolve(folder, target);
            let in_folder = format!("{target_path}/");
            if !files.iter().any(|file| *file == target_path || file.starts_with(&in_folder)) {
                report.fault(path, index + 1, format!("broken link to {target}"));
            }
        }
    }
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: impl FnOnce(&mut Report)) -> Vec<String> {
        let mut report = Report::default();
        rule(&mut report);
        report.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn blanks_are_found() {
        assert!(found(|report| blanks("a.rs", "a\n\nb\n", report)).is_empty());
        assert!(found(|report| blanks("Makefile", "a:\n\tb\n", report)).is_empty());
        assert_eq!(found(|report| blanks("a.rs", "a \n\tb\n", report)).len(), 2);
        assert_eq!(found(|report| blanks("a.rs", "a\nb", report)), ["a.rs:2: no line break at the end of the file"]);
        assert_eq!(found(|report| blanks("a.rs", "a\n\n", report)), ["a.rs:2: empty line at the end of the file"]);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(found(|report| length("a.rs", "", MAX_LINES + 1, report)).len(), 1);
        assert!(found(|report| length("a.rs", "", MAX_LINES, report)).is_empty());
        assert!(found(|report| length("a/tests.rs", "", 5000, report)).is_empty());
        assert!(found(|report| length("a.rs", "// @generated by xtask\n", 5000, report)).is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        let fixme = ["FIX", "ME"].concat();
        assert_eq!(found(|report| unfinished("a.py", &format!("a\n# {fixme}: b\n"), report)).len(), 1);
        assert!(found(|report| unfinished("a.py", "XXH3 PREFIXME\n", report)).is_empty());
    }

    #[test]
    fn decisions_have_all_sections() {
        let whole = "# 1. A\n\n## What\na\n## Why\nb\n## Cost\nc\n";
        assert!(found(|report| decision("d.md", whole, report)).is_empty());
        assert_eq!(found(|report| decision("d.md", "## Why\n## What\n## Cost\n", report)).len(), 1);
        let names = ["docs/decisions/0001-a.md", "docs/decisions/0001-b.md", "docs/decisions/c.md"];
        assert_eq!(found(|report| decision_numbers(&names.map(str::to_owned), report)).len(), 2);
    }

    #[test]
    fn broken_links_are_found() {
        let files = ["docs/guide/a.md".to_owned(), "README.md".to_owned()];
        let good = "[a](../guide/a.md#part) [r](../../README.md) [f](.) [w](https://x.y/z) `[c](d)`\n";
        assert!(found(|report| links("docs/guide/b.md", good, &files, report)).is_empty());
        let bad = "[a](b.md)\n";
        assert_eq!(found(|report| links("README.md", bad, &files, report)), ["README.md:1: broken link to b.md"]);
    }

    #[test]
    fn architecture_mentions_every_crate() {
        let files = ["crates/a-b/Cargo.toml".to_owned()];
        assert!(found(|report| architecture("ARCHITECTURE.md", "a-b\n", &files, report)).is_empty());
        let long = "x\n".repeat(MAX_ARCHITECTURE_LINES + 1);
        assert_eq!(found(|report| architecture("ARCHITECTURE.md", &long, &files, report)).len(), 2);
    }
}
