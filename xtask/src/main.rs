//! The project's own checks, run by `cargo xtask NAME` and by `make test`.
//!
//! - `layers`: crates depend, and rooms use one another, only upwards in the lists of [`layers`].
//! - `tidy`: the house rules that no compiler knows, listed in [`tidy`].
//!
//! Nothing here depends on anything but the standard library, so that the checks run before all else is built.

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

  layers   crates and rooms use only what stands above them in their list
  tidy     file lengths, unsafe sites, forbidden words, doors, links, decisions
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

/// The workspace: the folder above this package. Cargo tells where it is now, which need not be where it was built.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map(PathBuf::from).unwrap_or_default()
}
