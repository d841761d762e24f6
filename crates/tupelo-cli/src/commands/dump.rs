//! `tupelo dump`: entries as text or in other columnar formats.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::console::{Console, Output, Pending};
use crate::export::{self, Format};
use crate::failure::Failure;
use crate::inputs::{Inputs, one};

/// Write entries as JSON lines, CSV, Arrow or Parquet
///
/// In JSON, records are objects (base classes as ":_0"), pairs, tuples and collections are arrays, maps are arrays of
/// [key, value], bitsets are arrays of 0 and 1, and a missing optional or variant is null. Numbers are exact; numbers
/// that are not finite are "NaN", "Infinity" and "-Infinity".
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo dump events.root --fields MET_pt,'Muon_*' --entries :100
  tupelo dump events.root --fields 'Muon_*' --cut 'len(Muon_pt) >= 2 and max(Muon_pt) > 25'
  tupelo dump events.root:Events -o events.parquet
  tupelo dump events.root --format arrow | python -c 'import pyarrow, sys; print(pyarrow.ipc.open_stream(sys.stdin.buffer).read_all())'")]
pub(crate) struct Args {
    /// The ntuple, as FILE or FILE:NAME
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    condition: super::Condition,
    /// Output format [default: by the extension of OUT (.jsonl .ndjson .json, .csv, .arrow .arrows .feather .ipc,
    /// .parquet), otherwise jsonl]
    #[arg(long)]
    format: Option<Format>,
    /// Output file, which is replaced if it exists, or - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// With arrow and parquet: write strings as binary, for data that are not UTF-8
    #[arg(long)]
    binary_strings: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// Fields and entries to read.
#[derive(Debug, clap::Args)]
struct Choice {
    #[command(flatten)]
    fields: super::Fields,
    #[command(flatten)]
    range: super::EntryRange,
    /// Read the attribute set of this name that is linked to the ntuple
    #[arg(long, value_name = "SET")]
    attributes: Option<String>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let location = one(&args.input)?;
    let inputs = Inputs::of(std::slice::from_ref(&location));
    let target = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    target.map_or(Ok(()), |path| inputs.check_output(path))?;
    let (format, container) = Format::choose(args.format, target)?;
    let to_terminal = target.is_none() && io::stdout().is_terminal();
    if to_terminal && matches!(format, Format::Arrow | Format::Parquet) {
        let refused = Failure::usage("refusing to write binary data to the terminal");
        return Err(refused.with_hint("write to a file with -o OUT, or to a pipe"));
    }
    let ntuple = args.reading.open_ntuple(&location, args.choice.attributes.as_deref(), console)?;
    let entries = args.choice.range.of(ntuple.entries());
    let chosen = args.choice.fields.read(&ntuple, Some(&args.condition))?.entries(entries);
    let count = chosen.count();
    let read = args.condition.apply(chosen)?;
    let (output, pending) = Output::open(target, &inputs)?;
    // A progress bar and lines of text would overwrite each other. With a cut, the total is unknown.
    let shown = !to_terminal && !args.condition.has_cut();
    let mut progress = console.progress("dump", if shown { read.count() } else { 0 }, "entries");
    let binary = args.binary_strings;
    match (format, container) {
        (Format::Jsonl | Format::Csv, _) => {
            let schema = read.schema_with_computed()?;
            // As binary, strings that are not UTF-8 are no error, but written as base64.
            let batches = read.with_binary_strings(true).batches_of_bytes(export::BATCH_BYTES)?;
            export::text(format, &schema, batches, output, console, &mut progress)
        }
        (Format::Arrow, container) => export::arrow(read.with_binary_strings(binary), container, output, &mut progress),
        (Format::Parquet, _) => {
            let budget = args.reading.memory_budget.0;
            export::parquet(read.with_binary_strings(binary), budget, output, console, &mut progress)
        }
    }?;
    pending.map_or(Ok(()), Pending::publish)?;
    args.condition.note_if_empty(count, progress.done(), console);
    Ok(())
}
