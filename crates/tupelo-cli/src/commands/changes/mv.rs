//! `tupelo mv`: gives objects of a ROOT file other paths.

use tupelo::ops::objects::rename;
use tupelo::reader::Location;

use super::update;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::things;

/// Rename an object in a ROOT file, or move it to another directory of the file
///
/// All cycles of OLD get the new path, or one as OLD;CYCLE. NEW may be a directory, or end with a slash: the object
/// then keeps its name. Pages of ntuples and baskets of trees stay where they are, so that it takes little time.
/// Objects that have a name of their own (TNamed), such as histograms, get the new one. Directories cannot be moved,
/// but what is in them can. A killed command leaves the file as it was, or with the new path.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo mv events.root:Events events.root:AllEvents
  tupelo mv events.root:h_pt events.root:histograms/
  tupelo mv --force events.root:new events.root:old")]
pub(crate) struct Args {
    /// The object, as FILE:NAME
    #[arg(value_name = "FILE:OLD")]
    from: String,
    /// Its new path in the same file
    #[arg(value_name = "FILE:NEW")]
    to: String,
    /// Replace an object at the new path
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (from, to) = (Location::parse(&args.from), Location::parse(&args.to));
    let (Some(old), Some(new)) = (&from.object, &to.object) else {
        let found = if from.object.is_none() { &args.from } else { &args.to };
        let unnamed = Failure::usage(format_args!("expected FILE:NAME, found {found}"));
        return Err(unnamed.with_hint("`mv` of the shell moves files"));
    };
    let file = Location { object: None, ..from.clone() };
    if from.file != to.file && !Inputs::of(std::slice::from_ref(&from)).contain(&to) {
        let other = Failure::usage(format_args!("{to} is in another file than {from}"));
        return Err(other.with_hint(format!("`tupelo copy {from} {to} --append` and then `tupelo rm {from}`")));
    }
    let renamed = update(&file, |writer| Ok(rename(writer, old, new, args.force)?))?;
    renamed.notes.iter().for_each(|note| console.warn(&format!("{file}: {note}")));
    if let Some(kept) = &renamed.kept {
        console.warn(&format!("{file}: the old envelopes of '{}' may stay in use: {kept}", renamed.path));
    }
    console.note(&format!("{file}: {} moved to '{}'", things(renamed.cycles, "cycle"), renamed.path));
    Ok(())
}
