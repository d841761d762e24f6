//! The `tupelo` command: lists, shows, checks, copies and makes RNTuples in ROOT files.
//!
//! A library, because two programs run it: `src/bin/tupelo.rs`, and the Python package, whose wheel installs the command.
//!
//! Data go to standard output, talk to standard error. Exit status: 0 done, 1 failed or damaged, 2 wrong command line,
//! 130 or 143 stopped by SIGINT or SIGTERM.
//!
//! | room | what it is |
//! |---|---|
//! | `json` | entries as JSON |
//! | `failure` | why the command ends early |
//! | `interrupt` | being asked to stop |
//! | `text` | text for people, escaped |
//! | `inputs` | files that are read |
//! | `console` | the two streams, colours, progress bars |
//! | `parse` | sizes, entry ranges, field lists |
//! | `table` | tables and numbers for people |
//! | `export` | entries in other formats |
//! | `generate` | events to write |
//! | `commands` | one file each |

mod commands;
mod console;
mod export;
mod failure;
mod generate;
mod inputs;
mod interrupt;
mod json;
mod parse;
mod table;
mod text;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use console::{Color, Console};
use failure::Failure;

/// Read, check, copy and make RNTuples, CERN's columnar event format, without ROOT.
///
/// FILE is a ROOT file, FILE:NAME an ntuple in it; the name may be left out where the file holds only one.
/// *, ?, […] and ** in FILE are wildcards.
/// Data go to standard output, warnings and progress to standard error.
/// Exit status: 0 done, 1 failed (or damage found), 2 wrong command line, 130 or 143 stopped by a signal.
#[derive(Debug, Parser)]
#[command(
    name = "tupelo",
    version,
    after_help = "Examples:
  tupelo ls events.root
  tupelo schema events.root:Events --fields 'Muon_*'
  tupelo dump events.root --fields MET_pt,Muon_pt --entries :100 --format csv
  tupelo copy events.root small.root --fields 'Muon_*' --compression zstd:5
  tupelo verify events.root && echo intact"
)]
struct Cli {
    /// Print only errors to standard error: no warnings, summaries or progress
    #[arg(short, long, global = true, display_order = 100)]
    quiet: bool,
    /// Number of threads that decode and encode; 0 means one per core [default: the variable TUPELO_THREADS, or 0]
    // Not by clap's `env`: the usage lines of errors would show the option as required where the variable is set.
    #[arg(long, global = true, value_name = "N", display_order = 102)]
    threads: Option<usize>,
    /// Print the cost of reading to standard error: requests, bytes, and time to read, decompress and decode
    #[arg(long, global = true, display_order = 103)]
    metrics: bool,
    /// When to use colours; `auto` means on terminals, following NO_COLOR and CLICOLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 101)]
    color: Color,
    #[command(subcommand)]
    command: commands::Command,
}

/// Runs the command on its arguments, of which the first is the name of the program, and returns the exit status.
///
/// It sets the number of threads and the signal handlers of the whole process.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    interrupt::survive_size_limits();
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(answer) => {
            let answer = with_tip(answer, &args);
            // Help and version go to standard output. Where the streams are closed there is nobody to tell.
            drop(answer.print());
            drop(std::io::stdout().flush());
            return u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE);
        }
    };
    let console = Console::new(cli.quiet, cli.color, cli.metrics);
    let outcome = threads(cli.threads).and_then(|threads| {
        tupelo::set_threads(threads);
        cli.command.run(&console)
    });
    console.tell_metrics();
    match outcome {
        Ok(()) => 0,
        // `tupelo dump … | head` has what it wants.
        Err(_) if console::reader_is_gone() => 0,
        Err(failure) => {
            console.fail(&failure);
            failure.status
        }
    }
}

/// The number of threads that the option asks for, or else the environment. A variable without a value asks for nothing.
fn threads(given: Option<usize>) -> Result<usize, Failure> {
    let variable = std::env::var_os(tupelo::THREADS_VARIABLE).unwrap_or_default();
    let variable = variable.to_string_lossy();
    match (given, variable.trim()) {
        (Some(threads), _) => Ok(threads),
        (None, "") => Ok(0),
        (None, text) => text.parse().map_err(|_| {
            let name = tupelo::THREADS_VARIABLE;
            let wrong =
                Failure::usage(format_args!("the variable {name} is '{text}', which is not a number of threads"));
            wrong.with_hint(format!("unset {name}, or set it to a number; 0 means one thread per core"))
        }),
    }
}

/// The error with what to write instead, where that can be guessed of a wrong command line.
fn with_tip(mut wrong: clap::Error, args: &[OsString]) -> clap::Error {
    let context = |kind| match wrong.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let tip = match wrong.kind() {
        ErrorKind::UnknownArgument => number_of_entries(context(ContextKind::InvalidArg), args),
        ErrorKind::InvalidSubcommand => file_without_command(context(ContextKind::InvalidSubcommand)),
        _ => None,
    };
    if let Some(tip) = tip {
        wrong.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    wrong
}

/// For `head -5`, of which clap names the first digit.
fn number_of_entries(invalid: &str, args: &[OsString]) -> Option<String> {
    let mut numbers = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix('-')?.parse::<u64>().ok());
    let number = numbers.find(|number| format!("-{number}").starts_with(invalid))?;
    args.iter().any(|arg| arg == "head").then(|| format!("the first {number} entries are shown by '-n {number}'"))
}

/// For `tupelo events.root`.
fn file_without_command(invalid: &str) -> Option<String> {
    let is_file = invalid.contains(['.', '/', ':']) || Path::new(invalid).exists();
    is_file.then(|| format!("what a file holds is listed by 'tupelo ls {invalid}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
