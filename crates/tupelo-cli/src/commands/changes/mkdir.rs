//! `tupelo mkdir`: makes directories in ROOT files.

use tupelo::FileWriter;
use tupelo::reader::Location;

use super::{Named, by_file, update};
use crate::console::Console;
use crate::failure::Failure;

/// Make directories in ROOT files
///
/// Missing directories above DIR are made, too. The file must exist.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo mkdir events.root:histograms/2026
  tupelo mkdir events.root:raw events.root:calibrated")]
pub(crate) struct Args {
    /// Directories, as FILE:DIR or FILE:DIR/DIR
    #[arg(value_name = "FILE:DIR", required = true)]
    directories: Vec<String>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = args.directories.iter().map(|argument| Location::parse(argument));
    let files = by_file(locations, "`mkdir` of the shell makes directories of the system")?;
    console.for_each(&files, None, |Named { file, names }| {
        update(file, |writer| names.iter().try_for_each(|name| make(writer, file, name.trim_matches('/'), console)))
    })
}

fn make(writer: &FileWriter, file: &Location, name: &str, console: &Console) -> Result<(), Failure> {
    let is_directory = |class_name: &str| class_name.starts_with(super::super::ls::DIRECTORY_CLASS);
    if writer.objects()?.iter().any(|object| object.path == name && is_directory(&object.class_name)) {
        console.note(&format!("{file}: directory '{name}' exists"));
    }
    Ok(writer.make_directory(name)?)
}
