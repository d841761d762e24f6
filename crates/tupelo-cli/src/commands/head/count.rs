//! `tupelo count`: the number of entries, or of those that a cut keeps.

use tupelo::dataset::find;
use tupelo::reader::DEFAULT_BATCH_BYTES;

use crate::console::Console;
use crate::failure::Failure;

/// Count the entries, or the entries that a cut keeps
///
/// Prints the number to stdout. Without --cut, no entry is read; with it, only the fields that it names. The entries of
/// several files are added up.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo count events.root
  tupelo count 'run*.root:Events' --cut 'len(Muon_pt) == 2 and sum(Muon_charge) == 0'
  tupelo count events.root --define 'ht=sum(Jet_pt)' --cut 'ht > 500' --entries :10000")]
pub(crate) struct Args {
    #[command(flatten)]
    files: super::super::Files,
    #[command(flatten)]
    range: super::super::EntryRange,
    #[command(flatten)]
    condition: super::super::Condition,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.files.inputs, args.files.sources.reading.storage()?)?;
    let table = args.files.sources.table(&locations, console)?;
    console.warn_of(&table);
    let read = args.condition.apply(table.read_all().without_fields())?.with_entry_numbers("entry");
    let read = read.entries(args.range.of(table.entries(), console));
    let mut kept = read.count();
    if args.condition.has_cut() {
        let mut progress = console.progress("count", kept, "entries");
        kept = 0;
        let first = read.range().start;
        let mut batches = read.batches_of_bytes(DEFAULT_BATCH_BYTES)?;
        while let Some(batch) = batches.next() {
            kept += batch?.num_rows() as u64;
            progress.set(batches.position() - first);
        }
    }
    console.print_data(&format!("{kept}\n"))
}
