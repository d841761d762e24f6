//! The subcommands.

mod copy;
mod dump;
mod generate;
mod head;
mod layout;
mod ls;
mod schema;
mod verify;

use clap::Subcommand;
use tupelo::Ntuple;

use crate::console::Console;
use crate::failure::Failure;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Schema(schema::Args),
    Head(head::Args),
    Dump(dump::Args),
    Layout(layout::Args),
    Verify(verify::Args),
    Copy(copy::Args),
    Generate(generate::Args),
}

impl Command {
    pub(crate) fn run(self, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Ls(args) => ls::run(&args, console),
            Self::Schema(args) => schema::run(&args, console),
            Self::Head(args) => head::run(&args, console),
            Self::Dump(args) => dump::run(&args, console),
            Self::Layout(args) => layout::run(&args, console),
            Self::Verify(args) => verify::run(&args, console),
            Self::Copy(args) => copy::run(&args, console),
            Self::Generate(args) => generate::run(&args, console),
        }
    }
}

/// Opens `FILE[:NAME]`, or one of its attribute sets, and passes on its warnings.
fn open(location: &str, attributes: Option<&str>, console: &Console) -> Result<Ntuple, Failure> {
    let ntuple = tupelo::open(location).open()?;
    let ntuple = match attributes {
        Some(set) => ntuple.attribute_set(set)?,
        None => ntuple,
    };
    warn(&ntuple, console);
    Ok(ntuple)
}

/// Passes on what the engine cannot read of an ntuple.
fn warn(ntuple: &Ntuple, console: &Console) {
    for warning in ntuple.warnings() {
        console.warn(&format!("{}: ntuple '{}': {warning}", ntuple.file_name(), ntuple.path()));
    }
}
