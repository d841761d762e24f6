//! What a check found, each finding at its place.

use std::process::ExitCode;

/// Findings of one check.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What must be repaired.
    pub(crate) faults: Vec<Finding>,
    /// What should be thought about; it does not fail the check.
    pub(crate) warnings: Vec<Finding>,
    /// Files looked at.
    pub(crate) files: usize,
}

/// One sentence about one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// From the root, with `/`.
    pub(crate) path: String,
    /// From 1; 0 means the file as a whole.
    pub(crate) line: usize,
    /// What is wrong and what would be right.
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

    /// Prints all findings in order of place and turns them into an exit status.
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
