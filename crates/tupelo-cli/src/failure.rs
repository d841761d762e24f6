//! Errors of the command, with hint and exit status.

use std::ffi::OsString;
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
    /// Whether a name was not found.
    pub(crate) is_not_found: bool,
}

impl Failure {
    /// An error of the operation.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: Some(message.to_string()), hint: None, status: FAILED, is_not_found: false }
    }

    /// An error in the arguments.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { status: USAGE, ..Self::new(message) }
    }

    /// An error that was already printed.
    pub(crate) fn reported() -> Self {
        Self { message: None, hint: None, status: FAILED, is_not_found: false }
    }

    /// Whether a signal ended the work.
    pub(crate) fn is_interrupt(&self) -> bool {
        self.status > USAGE
    }

    /// The same where the files are the reason, not the arguments.
    pub(crate) fn of_data(self) -> Self {
        Self { status: FAILED, ..self }
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

    /// The same without those parts of the hint, between semicolons, that name options which the subcommand of these arguments
    /// lacks. The text of another command is between backticks.
    pub(crate) fn fitting(mut self, command: &clap::Command, args: &[OsString]) -> Self {
        let is_known = |name: &str| {
            let subcommand = args.iter().skip(1).find_map(|arg| command.find_subcommand(arg));
            let all = subcommand.into_iter().chain([command]).flat_map(clap::Command::get_arguments);
            all.into_iter().any(|arg| arg.get_long() == Some(name))
        };
        if let Some(hint) = &mut self.hint {
            let parts: Vec<&str> = hint.split("; ").filter(|part| options(part).all(is_known)).collect();
            *hint = parts.join("; ");
        }
        self.hint = self.hint.filter(|hint| !hint.is_empty());
        self
    }

    /// The same with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The names of the long options in a text, outside backticks.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').step_by(2).flat_map(|part| part.split(|c: char| c.is_whitespace() || c == '='));
    let names = words.filter_map(|word| word.trim_start_matches(['(', '\'']).strip_prefix("--"));
    names.map(|name| name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())).filter(|name| !name.is_empty())
}

impl From<tupelo::Error> for Failure {
    fn from(error: tupelo::Error) -> Self {
        let file = error.file().unwrap_or("FILE");
        match (error.kind(), error.remedy()) {
            (_, Some(Remedy::UnionFields)) => Self::new(error).with_hint(UNION_HINT),
            (_, Some(Remedy::Unmatched)) => Self::new(error)
                .with_hint("--unmatched null keeps such entries, with nulls, and --unmatched drop leaves them out"),
            (_, Some(Remedy::Prefix)) => Self::usage(error).with_hint("--prefix TEXT renames the fields of an input"),
            (_, Some(Remedy::Recursive)) => Self::new(error).with_hint("-r removes directories with their contents"),
            (_, Some(Remedy::Replace)) => Self::usage(error).with_hint("--force replaces it"),
            (_, Some(Remedy::Recover)) => Self::new(error).with_hint("--recover reads the objects that it finds in it"),
            (_, Some(Remedy::RebuildZoneMaps)) => Self::new(error).with_hint("--rebuild makes all its zone maps again"),
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
            (kind, _) => Self { is_not_found: kind == tupelo::ErrorKind::NotFound, ..Self::new(error) },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_options_of_the_command() {
        let with = |option: &'static str| clap::Arg::new(option).long(option).global(false);
        let command = clap::Command::new("tupelo").arg(with("quiet").global(true));
        let command = command.subcommand(clap::Command::new("copy").args([with("force"), with("union")]));
        let command = command.subcommand(clap::Command::new("append").arg(with("fields")));
        let hint = |subcommand: &str, text: &str| {
            let args = ["tupelo", "--quiet", subcommand, "in.root"].map(OsString::from);
            Failure::new("").with_hint(text).fitting(&command, &args).hint.unwrap_or_default()
        };
        let other = "`tupelo append --fields x` adds some";
        for (text, in_copy, in_append) in [
            ("--force replaces it", "--force replaces it", ""),
            ("use --union, or select fields ('--fields x')", "", ""),
            (&format!("--union reads all; {other}"), &format!("--union reads all; {other}"), other),
            ("--quiet, or nothing", "--quiet, or nothing", "--quiet, or nothing"),
            ("a -- b", "a -- b", "a -- b"),
        ] {
            assert_eq!(
                (hint("copy", text), hint("append", text)),
                (in_copy.to_owned(), in_append.to_owned()),
                "{text}"
            );
        }
    }
}
