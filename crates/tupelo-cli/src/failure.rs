//! Errors of the command, with hint and exit status.

use std::fmt;

use tupelo::Remedy;

/// Exit status of an error, or of damage found by `verify`.
pub(crate) const FAILED: u8 = 1;
/// Exit status of an invalid command line.
pub(crate) const USAGE: u8 = 2;

/// How the fields of all of several files are read.
const UNION_HINT: &str = "--union reads the fields of all files";
/// End of the hint to use `tupelo verify`.
const VERIFY_HINT: &str = "lists everything that is damaged";

/// An error with its exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The message with its full context; `None` if it was already printed.
    pub(crate) message: Option<String>,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// [`FAILED`], [`USAGE`], or the status for a signal.
    pub(crate) status: u8,
}

impl Failure {
    /// An error of the operation.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: Some(message.to_string()), hint: None, status: FAILED }
    }

    /// An error in the arguments.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { status: USAGE, ..Self::new(message) }
    }

    /// An error that was already printed.
    pub(crate) fn reported() -> Self {
        Self { message: None, hint: None, status: FAILED }
    }

    /// The same without the hint to use `tupelo verify`, for that command itself.
    pub(crate) fn without_verify(mut self) -> Self {
        self.hint = self.hint.filter(|hint| !hint.ends_with(VERIFY_HINT));
        self
    }

    /// The same where another option keeps the fields of all files.
    pub(crate) fn with_union_hint(mut self, hint: &str) -> Self {
        self.hint = self.hint.map(|own| if own == UNION_HINT { hint.to_owned() } else { own });
        self
    }

    /// The same with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<tupelo::Error> for Failure {
    fn from(error: tupelo::Error) -> Self {
        let file = error.file().unwrap_or("FILE");
        match (error.kind(), error.remedy()) {
            (_, Some(Remedy::UnionFields)) => Self::usage(error).with_hint(UNION_HINT),
            (_, Some(Remedy::Prefix)) => Self::usage(error).with_hint("--prefix TEXT renames the fields of an input"),
            (_, Some(Remedy::Recursive)) => Self::usage(error).with_hint("-r removes directories with their contents"),
            (_, Some(Remedy::Replace)) => Self::usage(error).with_hint("--force replaces it"),
            (tupelo::ErrorKind::InvalidArgument, _) => Self::usage(error),
            (tupelo::ErrorKind::Corrupt, _) => {
                let hint = format!("`tupelo verify {file}` {VERIFY_HINT}");
                Self::new(error).with_hint(hint)
            }
            // Verifying it would say the same again.
            (tupelo::ErrorKind::CutOff, _) => {
                let repair = format!("`tupelo verify --repair {file}` restores its complete entries, if any");
                Self::new(error).with_hint(format!("copy the file from its source again; {repair}"))
            }
            (_, Some(Remedy::MemoryBudget | Remedy::FewerEntries)) => {
                Self::new(error).with_hint("--memory-budget SIZE allows more, for example 4GiB")
            }
            (_, Some(Remedy::BinaryStrings)) => {
                Self::new(error).with_hint("--binary-strings writes strings as bytes (Arrow and Parquet)")
            }
            _ => Self::new(error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(format_args!("cannot write the output: {error}"))
    }
}

impl From<crate::json::UnexpectedType> for Failure {
    fn from(unexpected: crate::json::UnexpectedType) -> Self {
        Self::new(unexpected)
    }
}
