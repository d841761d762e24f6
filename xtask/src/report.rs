//! Findings of a check.

use std::process::ExitCode;

/// Findings of one check.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Findings that fail the check.
    pub(crate) faults: Vec<Finding>,
    /// Findings that do not fail the check.
    pub(crate) warnings: Vec<Finding>,
    /// Number of files checked.
    pub(crate) files: usize,
}

/// A finding in one line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path of the file from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// From 1; 0 means the whole file.
    pub(crate) line: usize,
    /// What is wrong, and what to do.
    pub(crate) what: String,
}

impl Report {
    /// Records a fault.
    pub(crate) fn fault(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.faults.push(Finding { path: path.into(), line, what: what.into() });
    }

    /// Records a warning.
    pub(crate) fn warn(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.warnings.push(Finding { path: path.into(), line, what: what.into() });
    }

    /// Prints all findings in the order of files and lines, and returns the exit status.
    pub(crate) fn print(mut self, name: &str) -> ExitCode {
        self.faults.sort();
        self.faults.dedup();
        self.warnings.sort();
        for finding in &self.warnings {
            eprintln!("warning: {finding}");
        }
        for finding in &self.faults {
            eprintln!("{finding}");
        }
        let (faults, warnings) = (self.faults.len(), self.warnings.len());
        eprintln!("{name}: {} files, {faults} faults, {warnings} warnings", self.files);
        if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}
