//! `tupelo sql`: statements of DuckDB, which the Python package runs.

use std::env;
use std::io::ErrorKind;
use std::process::Command;

use clap::builder::PossibleValuesParser;

use crate::console::Console;
use crate::failure::{FAILED, Failure};

/// The variable with the program of Python; the installed package sets it to its own.
const PYTHON: &str = "TUPELO_PYTHON";
const DEFAULT_PYTHON: &str = "python3";
const FORMATS: [&str; 6] = ["table", "csv", "jsonl", "json", "arrow", "parquet"];
/// The status of the program below where Python lacks the package.
const NO_PACKAGE: i32 = 77;
const PROGRAM: &str = "
import sys
# Not a folder with the name of the package where the command runs.
sys.path[:] = [folder for folder in sys.path if folder]
try:
    from tupelo._sql.command import run
except ModuleNotFoundError as error:
    if (error.name or '').partition('.')[0] != 'tupelo':
        raise
    sys.exit(77)
sys.exit(run(sys.argv[1:]))
";

/// Run a statement of DuckDB over ntuples and trees
///
/// A table is 'FILE:NAME' in quotes. FILE may be a URL or have wildcards; NAME is optional if the file has only one ntuple or
/// tree. Only the columns that the statement uses are read. DuckDB reads other files itself: 'weights.parquet'.
///
/// The Python package runs the statement, with the packages duckdb and tupelo of the python3 in PATH, or of the program in
/// the variable TUPELO_PYTHON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo sql \"select avg(MET_pt) from 'events.root:Events'\"
  tupelo sql \"select run, count(*) as n from 'run*.root:Events' group by run\" -o runs.csv")]
pub(crate) struct Args {
    /// Statement, in the SQL of DuckDB
    query: String,
    /// Output format: a table of the first and last rows, or all rows in another format; json is jsonl [default: by the
    /// extension of OUT, otherwise table]
    #[arg(long, value_parser = PossibleValuesParser::new(FORMATS))]
    format: Option<String>,
    /// Output file, replaced if it exists, or - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<String>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let python = env::var(PYTHON).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| DEFAULT_PYTHON.to_owned());
    if console.has_metrics() {
        return Err(Failure::usage("sql has no --metrics: DuckDB reads the files"));
    }
    let mut command = Command::new(&python);
    command.env(tupelo::THREADS_VARIABLE, tupelo::threads().to_string());
    command.args(["-c", PROGRAM]);
    command.args(args.format.iter().map(|format| format!("--format={format}")));
    command.args(args.output.iter().map(|output| format!("--output={output}")));
    command.args(console.is_quiet().then_some("--quiet")).args(["--", &args.query]);
    let hint =
        || format!("install the packages tupelo and duckdb for {python}, or set {PYTHON} to a Python that has them");
    let status = match command.status() {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failure::new(format_args!("sql needs Python, and {python} was not found")).with_hint(hint()));
        }
        Err(error) => return Err(Failure::new(format_args!("cannot run {python}: {error}"))),
    };
    match status.code() {
        Some(0) => Ok(()),
        Some(NO_PACKAGE) => {
            Err(Failure::new(format_args!("sql needs the Python package tupelo, which {python} lacks"))
                .with_hint(hint()))
        }
        // The package reported the error.
        code => {
            Err(Failure { status: code.and_then(|it| u8::try_from(it).ok()).unwrap_or(FAILED), ..Failure::reported() })
        }
    }
}
