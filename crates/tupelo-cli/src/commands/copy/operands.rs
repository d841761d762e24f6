//! The files that a command reads and the one that it writes, and what to do about those that cannot be opened.

use std::collections::HashSet;
use std::path::{Path, absolute};
use std::sync::{Arc, Mutex, PoisonError};

use tupelo::reader::Location;
use tupelo::storage::display_name;

use super::target::Target;
use crate::console::{Console, pipe_is_closed};
use crate::failure::{FAILED, Failure};
use crate::formats::Format;
use crate::inputs::Inputs;
use crate::table::{count, things};

/// Inputs and output of a command that writes a ROOT file.
#[derive(Debug, clap::Args)]
pub(crate) struct Operands {
    /// Inputs and, without --output, the output last, each as FILE or FILE:NAME. FILE of an input may contain
    /// wildcards; without NAME in the output, the written ntuple or tree keeps its name
    // Not two arguments, since options could then not stand between them.
    #[arg(value_name = "FILE[:NAME]", required = true)]
    files: Vec<String>,
    /// Output; all FILE are then inputs. --force replaces an existing local file only if this option names it, so that
    /// a forgotten output never replaces the last input. With several inputs, --append needs it too
    #[arg(short, long, value_name = "OUT[:NAME]")]
    output: Option<String>,
}

impl Operands {
    /// The inputs and the output.
    pub(crate) fn split(&self, command: &str) -> Result<(&[String], &str), Failure> {
        match (&self.output, self.files.as_slice()) {
            (Some(output), inputs) => Ok((inputs, output)),
            (None, [inputs @ .., output]) if !inputs.is_empty() => Ok((inputs, output)),
            (None, files) => {
                let only = files.first().map_or("", String::as_str);
                let missing = Failure::usage(format_args!("{command} needs an input and an output, found only {only}"));
                Err(missing.with_hint(format!("tupelo {command} IN... -o OUT")))
            }
        }
    }

    /// Whether the output is given by its own option.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// Refuses to change an existing file that may be an input: the last file of `copy --force *.root`. Of two files,
    /// the second may come from wildcards too; but the shell expands them to local files only, and adding loses nothing.
    pub(crate) fn check(&self, to: &Location, inputs: &Inputs, target: &Target) -> Result<(), Failure> {
        let may_be_input = match to.local_path() {
            Some(path) => path.exists() && (self.files.len() > 2 || !target.can_append()),
            None => self.files.len() > 2,
        };
        // An output that is also an input gives another error.
        let is_refused_anyway = inputs.contain(to) && !target.can_append();
        if self.output.is_some() || !target.changes_existing() || !may_be_input || is_refused_anyway {
            return Ok(());
        }
        let name = display_name(&to.file);
        let what = format_args!("{name} is the last of {} files and might be an input", self.files.len());
        Err(Failure::usage(what).with_hint(format!("use -o {name} if it is the output")))
    }
}

/// Refuses a report that would replace the output or an input.
pub(crate) fn check_report(path: &Path, to: &Location, inputs: &Inputs) -> Result<(), Failure> {
    inputs.check_output(path)?;
    Inputs::of(std::slice::from_ref(to)).check_output(path)?;
    let same = to.local_path().and_then(|to| Some(absolute(to).ok()? == absolute(path).ok()?));
    match same {
        Some(true) => Err(Failure::usage(format_args!("{} is both the output and the report", path.display()))),
        _ => Ok(()),
    }
}

/// What to do about files that cannot be opened. They are all tried before the command fails.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Skipping {
    /// Skip files that cannot be opened, with a warning for each; without this option, an error lists all of them.
    /// Damage in a file that can be opened is still an error
    #[arg(long)]
    skip_errors: bool,
    #[arg(skip)]
    found: Arc<Mutex<Vec<(Location, Failure)>>>,
}

impl Skipping {
    /// Whether the option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.skip_errors
    }

    /// What was opened of one of several files; `None` if that failed.
    pub(crate) fn note<T>(
        &self,
        location: &Location,
        count: usize,
        opened: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            // Mistakes of the command line and signals concern all files.
            Err(failure) if count < 2 || failure.status != FAILED || pipe_is_closed() => Err(failure),
            Err(failure) => {
                self.lock().push((location.clone(), failure));
                Ok(None)
            }
        }
    }

    /// After all files were tried: an error that lists those that failed, or a warning for each.
    pub(crate) fn finish(&self, all: usize, console: &Console) -> Result<(), Failure> {
        let found = self.lock();
        // Of a file with several ntuples, each is noted.
        let failed = found.iter().map(|(location, _)| &location.file).collect::<HashSet<_>>().len();
        if failed == 0 {
            return Ok(());
        }
        let is_error = !self.skip_errors || failed == all;
        for (_, failure) in found.iter() {
            match (is_error, &failure.message) {
                (false, Some(message)) => console.warn(&format!("left out: {message}")),
                _ => console.fail(failure),
            }
        }
        if !is_error {
            return Ok(());
        }
        let files = things(all as u64, "file");
        let failure = Failure::new(format_args!("{} of {files} cannot be opened", count(failed as u64)));
        let is_output = |file: &&str| Format::of(Path::new(file)).is_some() && !Path::new(file).exists();
        let output = found.iter().map(|(location, _)| location.file.as_str()).find(is_output);
        Err(match output {
            Some(output) => failure.with_hint(format!("use -o {} to make it the output", display_name(output))),
            None if self.skip_errors || failed == all => failure,
            None => failure.with_hint("--skip-errors leaves them out"),
        })
    }

    /// The files that are left out as a whole or in part, each with the error.
    pub(crate) fn left_out(&self) -> Vec<(Location, String)> {
        let found = self.lock();
        let left_out =
            |(location, failure): &(Location, Failure)| (location.clone(), failure.message.clone().unwrap_or_default());
        found.iter().map(left_out).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Location, Failure)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
