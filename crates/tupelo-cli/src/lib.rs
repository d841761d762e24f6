//! The `tupelo` command: lists, shows, verifies and copies RNTuples in ROOT files.
//!
//! It is a library that several programs use: `tupelo`, the Python package, whose wheel installs the command, and
//! `tupelo-generate`, which writes simulated events.
//!
//! Data go to stdout, messages to stderr. Exit status: 0 success, 1 failure or damage found, 2 invalid command line,
//! 130, 143 or 129 interrupted by SIGINT, SIGTERM or SIGHUP.
//!
//! | room | what it is |
//! |---|---|
//! | `json` | entries as JSON |
//! | `failure` | errors with hint and exit status |
//! | `interrupt` | SIGINT, SIGTERM and SIGHUP |
//! | `text` | escaped and styled text |
//! | `table` | tables, sizes and counts |
//! | `inputs` | input files and wildcards |
//! | `console` | stdout, stderr, colours, progress bars |
//! | `parse` | sizes, entry ranges, field lists |
//! | `formats` | files of other formats, written and read |
//! | `help` | the list of subcommands, completions, manual pages |
//! | `commands` | the subcommands, one file each |

mod commands;
mod console;
mod failure;
mod formats;
mod help;
mod inputs;
mod interrupt;
mod json;
mod parse;
mod table;
mod text;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

pub use commands::{Events, OutputOptions};
use console::Console;
use failure::Failure;

/// Read, verify and copy RNTuples, CERN's columnar event format, and TTrees, without ROOT.
///
/// FILE is a ROOT file, FILE:NAME an ntuple or tree in it; the name is optional if the file has only one.
/// *, ?, […], {…,…} and ** in FILE are wildcards.
/// Data go to stdout, warnings and progress to stderr.
/// Exit status: 0 success, 1 failure or damage found, 2 invalid command line, 130, 143 or 129 interrupted by a
/// signal.
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
    #[command(flatten)]
    common: commands::Common,
    /// Print read statistics to stderr: requests, bytes, and time to read, decompress and decode
    #[arg(long, global = true, display_order = 103)]
    metrics: bool,
    #[command(subcommand)]
    command: commands::Command,
}

/// Runs the command `tupelo` on its arguments, beginning with the name of the program, and returns the exit status.
///
/// It sets the number of threads and the signal handlers of the whole process.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let command = help::by_task(Cli::command());
    let run = |cli: Cli, console: &Console| cli.command.run(Cli::command, console);
    start(args, command, |cli: &Cli| (&cli.common, cli.metrics), run)
}

/// Runs a program that writes [`Events`], as [`run`] does.
pub fn write<P: Parser + Events>(args: impl IntoIterator<Item = OsString>) -> u8 {
    let run = |program, console: &Console| commands::write(&program, console);
    start(args, P::command(), |program: &P| (&program.output().common, false), run)
}

fn start<P: Parser>(
    args: impl IntoIterator<Item = OsString>,
    command: clap::Command,
    options: impl FnOnce(&P) -> (&commands::Common, bool),
    run: impl FnOnce(P, &Console) -> Result<(), Failure>,
) -> u8 {
    interrupt::handle_size_limits();
    let args: Vec<OsString> = args.into_iter().collect();
    let mut command = command;
    let parsed = command.try_get_matches_from_mut(&args).and_then(|matches| P::from_arg_matches(&matches));
    let program = match parsed.map_err(|error| error.format(&mut command)) {
        Ok(program) => program,
        Err(answer) => {
            let answer = with_tip(answer, &args);
            // Help and version go to stdout. If the streams are closed, no error can be reported.
            drop(answer.print());
            drop(std::io::stdout().flush());
            return u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE);
        }
    };
    let (common, metrics) = options(&program);
    let console = Console::new(common.quiet, common.color, metrics);
    let outcome = threads(common.threads).and_then(|threads| {
        tupelo::set_threads(threads);
        run(program, &console)
    });
    console.print_late_warnings();
    console.print_metrics();
    match outcome {
        Ok(()) => 0,
        // A closed pipe is not an error, as in `tupelo dump … | head`.
        Err(_) if console::pipe_is_closed() => 0,
        Err(failure) => {
            let failure = failure.fitting(&command, &args);
            console.fail(&failure);
            failure.status
        }
    }
}

/// The number of threads of the option, or else of the environment. An empty variable counts as unset.
fn threads(given: Option<usize>) -> Result<usize, Failure> {
    let variable = std::env::var_os(tupelo::THREADS_VARIABLE).unwrap_or_default();
    let variable = variable.to_string_lossy();
    match (given, variable.trim()) {
        (Some(threads), _) => Ok(threads),
        (None, "") => Ok(0),
        (None, text) => text.parse().map_err(|_| {
            let name = tupelo::THREADS_VARIABLE;
            let wrong = Failure::usage(format_args!("the variable {name} must be a number of threads, found '{text}'"));
            wrong.with_hint(format!("unset {name}, or set it to a number; 0 means one thread per core"))
        }),
    }
}

/// Adds a suggestion to the error of an invalid command line, if there is one.
fn with_tip(mut wrong: clap::Error, args: &[OsString]) -> clap::Error {
    let context = |kind| match wrong.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let tip = match wrong.kind() {
        ErrorKind::UnknownArgument => {
            let invalid = context(ContextKind::InvalidArg);
            number_of_entries(invalid, args).or_else(|| other_option(invalid))
        }
        ErrorKind::InvalidSubcommand => file_without_command(context(ContextKind::InvalidSubcommand)),
        _ => None,
    };
    match tip {
        Some(tip) => wrong.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()])),
        // That of clap is to pass the option as a value, which no argument is.
        None if wrong.kind() == ErrorKind::UnknownArgument => wrong.remove(ContextKind::Suggested),
        None => None,
    };
    wrong
}

/// For `head -5`, where clap reports the first digit.
fn number_of_entries(invalid: &str, args: &[OsString]) -> Option<String> {
    let mut numbers = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix('-')?.parse::<u64>().ok());
    let number = numbers.find(|number| format!("-{number}").starts_with(invalid))?;
    args.iter().any(|arg| arg == "head").then(|| format!("'-n {number}' shows the first {number} entries"))
}

/// For options that have another name here than in related programs.
fn other_option(invalid: &str) -> Option<String> {
    let option = match invalid {
        "--branch" | "--branches" | "--column" | "--columns" | "--field" | "--filter-name" | "--select" => "--fields",
        "--filter" | "--query" | "--selection" => "--cut",
        "--alias" | "--aliases" => "--define",
        "--codec" | "--recompress" => "--compression",
        _ => return None,
    };
    Some(format!("the option is '{option}'"))
}

/// For `tupelo events.root`.
fn file_without_command(invalid: &str) -> Option<String> {
    let is_file = invalid.contains(['.', '/', ':']) || Path::new(invalid).exists();
    is_file.then(|| format!("'tupelo ls {invalid}' lists the contents of a file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn each_subcommand_has_a_task() {
        let mut command = Cli::command();
        command.build();
        let known: Vec<&str> = help::names_by_task().collect();
        for subcommand in command.get_subcommands() {
            assert_eq!(
                known.iter().filter(|name| **name == subcommand.get_name()).count(),
                1,
                "{}",
                subcommand.get_name()
            );
        }
        assert_eq!(known.len(), command.get_subcommands().count());
    }
}
