//! Why the command ends early, and with which exit status.

use std::fmt;
use std::path::Path;

use tupelo::Remedy;

/// Exit status of a failure, or of damage that `verify` found.
pub(crate) const FAILED: u8 = 1;
/// Exit status where the command line makes no sense.
pub(crate) const USAGE: u8 = 2;

/// What `tupelo verify` does about damage.
const VERIFY_HINT: &str = "lists everything that is damaged";

/// What to say and which status to leave behind.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What went wrong, with its full context; none where all was said already.
    pub(crate) message: Option<String>,
    /// What the user could do about it.
    pub(crate) hint: Option<String>,
    /// [`FAILED`], [`USAGE`], or that of a signal.
    pub(crate) status: u8,
}

impl Failure {
    /// Something did not work out.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: Some(message.to_string()), hint: None, status: FAILED }
    }

    /// The user asked for something that makes no sense.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { status: USAGE, ..Self::new(message) }
    }

    /// All was said already.
    pub(crate) fn told() -> Self {
        Self { message: None, hint: None, status: FAILED }
    }

    /// The same without the advice to verify the file, for the command that does that.
    pub(crate) fn without_verify(mut self) -> Self {
        self.hint = self.hint.filter(|hint| !hint.ends_with(VERIFY_HINT));
        self
    }

    /// The same with an advice.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The failure of a damaged file. One that is no ROOT file is not damaged, and there is nothing to be verified of it.
fn damaged(error: &tupelo::Error) -> Failure {
    let failure = Failure::new(error);
    if error.to_string().contains("not a ROOT file") {
        return failure;
    }
    // Errors begin with the file, but where something else is around it.
    let file = error.contexts().find(|name| Path::new(name).is_file()).unwrap_or("FILE");
    failure.with_hint(format!("`tupelo verify {file}` {VERIFY_HINT}"))
}

impl From<tupelo::Error> for Failure {
    fn from(error: tupelo::Error) -> Self {
        match (error.kind(), error.remedy()) {
            (tupelo::ErrorKind::InvalidArgument, _) => Self::usage(error),
            (tupelo::ErrorKind::Corrupt, _) => damaged(&error),
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

impl From<crate::json::Misfit> for Failure {
    fn from(misfit: crate::json::Misfit) -> Self {
        Self::new(misfit)
    }
}
