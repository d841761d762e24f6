//! The oldest versions of Python, pip and Rust stand in `.ci/tools`; what else names them must agree.

use crate::report::Report;

/// Where the versions stand, as `least_NAME=VERSION`.
pub(super) const SOURCE: &str = ".ci/tools";

/// Files that name a version: the file, the program, and the words before its version.
const NAMED: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "rust", "rust-version = \""),
    ("README.md", "rust", "Rust "),
    ("README.md", "python", "Python "),
    ("CONTRIBUTING.md", "rust", "Rust "),
    ("CONTRIBUTING.md", "python", "Python "),
    ("docs/guide/install.md", "rust", "Rust "),
    ("docs/guide/install.md", "python", "Python "),
    ("docs/guide/install.md", "pip", "pip "),
];

/// Compares the file with the versions in the text of [`SOURCE`].
pub(super) fn check(path: &str, text: &str, source: &str, report: &mut Report) {
    for (_, program, before) in NAMED.iter().filter(|named| named.0 == path) {
        let definition = format!("least_{program}=");
        let Some(version) = source.lines().find_map(|line| line.strip_prefix(&definition)) else {
            report.fault(SOURCE, 0, format!("does not define {definition}"));
            continue;
        };
        let named = format!("{before}{version}");
        if !text.contains(&named) {
            report.fault(path, 0, format!("does not contain '{named}', the oldest version in {SOURCE}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_names_another_version_is_found() {
        let source = "least_rust=1.89\nleast_python=3.11\n";
        let faults = |text: &str| {
            let mut report = Report::default();
            check("README.md", text, source, &mut report);
            report.faults.len()
        };
        assert_eq!(faults("You need Rust 1.89 and Python 3.11."), 0);
        assert_eq!(faults("You need Rust 1.88 and Python 3.11."), 1);
    }
}
