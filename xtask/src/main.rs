//! The project's own checks, run by `cargo xtask NAME` and by `make test`.
//!
//! - `layers`: dependencies between crates and between modules, see [`layers`].
//! - `tidy`: rules that compilers and linters do not check, see [`tidy`].
//!
//! Its few dependencies are small, so that the checks run before the product is built.

mod layers;
mod report;
mod rust;
mod tidy;
mod tree;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
The project's own checks.

Usage: cargo xtask <layers|tidy>

  layers   check dependencies between crates, rooms and modules
  tidy     check file lengths, unsafe code, restricted modules, wording, links and decisions
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match names[..] {
        ["layers"] => layers::check(&root()),
        ["tidy"] => tidy::check(&root()),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match report {
        Ok(report) => report.print(names[0]),
        Err(error) => {
            eprintln!("{}: {error}", names[0]);
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace. Cargo sets the variable to the current place, which may differ from that of the build.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map(PathBuf::from).unwrap_or_default()
}
