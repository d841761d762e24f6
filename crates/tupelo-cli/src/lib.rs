//! The `tupelo` command: lists, shows, checks, copies and makes RNTuples in ROOT files.
//!
//! A library, because two programs run it: `src/bin/tupelo.rs`, and the Python package, whose wheel installs the command.
//!
//! Data go to standard output, talk to standard error. Exit status: 0 done, 1 failed or damaged, 2 wrong command line,
//! 130 or 143 stopped by SIGINT or SIGTERM.
//!
//! | room | what it is |
//! |---|---|
//! | `failure` | why the command ends early |
//! | `interrupt` | being asked to stop |
//! | `console` | the two streams, colours, progress bars |
//! | `parse` | sizes, entry ranges, field lists |
//! | `table` | tables and numbers for people |
//! | `json` | entries as JSON |
//! | `generate` | events to write |
//! | `commands` | one file each |

mod commands;
mod console;
mod failure;
mod generate;
mod interrupt;
mod json;
mod parse;
mod table;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use console::{Color, Console};

/// Read, check, copy and make RNTuples, CERN's columnar event format, without ROOT.
///
/// FILE is a ROOT file, FILE:NAME an ntuple in it; the name may be left out where the file holds only one.
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
    /// Say nothing on standard error but errors: no warnings, summaries or progress
    #[arg(short, long, global = true, display_order = 100)]
    quiet: bool,
    /// Decode and encode with this many threads; 0 stands for as many as there are cores
    #[arg(long, global = true, value_name = "N", env = tupelo::THREADS_VARIABLE, hide_env_values = true, default_value_t = 0, display_order = 102)]
    threads: usize,
    /// Tell on standard error what reading cost: requests, bytes, and time to read, decompress and decode
    #[arg(long, global = true, display_order = 103)]
    metrics: bool,
    /// When to use colours; `auto` is on terminals, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 101)]
    color: Color,
    #[command(subcommand)]
    command: commands::Command,
}

/// Runs the command on its arguments, of which the first is the name of the program, and returns the exit status.
///
/// It sets the number of threads and the signal handlers of the whole process.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(answer) => {
            // Help and version go to standard output. Where the streams are closed there is nobody to tell.
            drop(answer.print());
            drop(std::io::stdout().flush());
            return u8::try_from(answer.exit_code()).unwrap_or(failure::USAGE);
        }
    };
    let console = Console::new(cli.quiet, cli.color, cli.metrics);
    tupelo::set_threads(cli.threads);
    let outcome = cli.command.run(&console);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
