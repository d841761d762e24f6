//! `tupelo dump`: entries as text or in other columnar formats.

pub(super) mod object;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;

use tupelo::dataset::find;
use tupelo::ops::pipe;
use tupelo::reader::Read;
use tupelo::writer::EntrySink;

use crate::console::{Console, Output, Pending, Progress};
use crate::failure::Failure;
use crate::formats::Format;
use crate::formats::write::{ArrowSink, ParquetSink, TextSink, without_empty_records};
use crate::inputs::Inputs;

/// The output, in messages.
pub(super) const STDOUT: &str = "the output";

/// Write entries as JSON lines, CSV, Arrow or Parquet, or one object as JSON
///
/// In JSON, records are objects (base classes as ":_0"), pairs, tuples and collections are arrays, maps are arrays of
/// [key, value], bitsets are arrays of 0 and 1, and a missing optional or variant is null. Numbers are exact; numbers
/// that are not finite are "NaN", "Infinity" and "-Infinity".
///
/// An object that is neither an ntuple nor a tree, such as a histogram, is one JSON document with its class as
/// "_typename" and its members by name (see docs/guide/json.md); the options for entries are refused then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo dump events.root --fields MET_pt,'Muon_*' --entries :100
  tupelo dump \
                        events.root --fields 'Muon_*' --cut 'len(Muon_pt) >= 2 and max(Muon_pt) > 25'
  tupelo dump \
                        events.root:Events -o events.parquet
  tupelo dump 'run*.root:Events' --fields MET_pt -o \
                        met.csv
  tupelo dump plots.root:mass -o mass.json
  tupelo dump events.root --format arrow | python -c 'import pyarrow, sys; \
                        print(pyarrow.ipc.open_stream(sys.stdin.buffer).read_all())'")]
pub(crate) struct Args {
    #[command(flatten)]
    files: super::Files,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    condition: super::Condition,
    /// Output format [default: by the extension of OUT (.jsonl .ndjson .json, .csv, .arrow .arrows .feather .ipc,
    /// .parquet), otherwise jsonl]
    #[arg(long, value_parser = Format::written())]
    format: Option<Format>,
    /// Output file, replaced if it exists, or - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// With arrow and parquet: write strings as binary, for data that is not UTF-8
    #[arg(long)]
    binary_strings: bool,
    #[command(flatten)]
    skip: super::SkipUnreadable,
}

/// Fields and entries to read.
#[derive(Debug, clap::Args)]
struct Choice {
    #[command(flatten)]
    fields: super::Fields,
    #[command(flatten)]
    range: super::EntryRange,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.files.inputs, args.files.sources.reading.storage()?)?;
    let inputs = Inputs::of(&locations);
    let target = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    target.map_or(Ok(()), |path| inputs.check_output(path))?;
    let (format, container) = Format::choose(args.format, target)?;
    let to_terminal = target.is_none() && io::stdout().is_terminal();
    if to_terminal && matches!(format, Format::Arrow | Format::Parquet) {
        let refused = Failure::usage("refusing to write binary data to the terminal");
        return Err(refused.with_hint("write to a file with -o OUT, or to a pipe"));
    }
    let is_text = matches!(format, Format::Jsonl | Format::Csv);
    // As binary, strings that are not UTF-8 are not an error in text, but written as base64.
    let binary = is_text || args.binary_strings;
    let table = match args.files.sources.table(&locations, console) {
        Ok(table) => table,
        Err(failure) => match object::find(args, &locations)? {
            Some(found) => return object::dump(args, &found, (target, &inputs), format, console),
            None => return Err(failure),
        },
    };
    let Choice { fields, range } = &args.choice;
    let (read, mut skipped) = args.files.sources.read(&table, fields, &args.condition, (range, None), console)?;
    let read = read.with_binary_strings(binary);
    let count = read.count();
    let (output, pending) = Output::open(target, &inputs)?;
    // A progress bar and lines of text would overwrite each other.
    let mut progress = console.progress("dump", if to_terminal { 0 } else { count }, "entries");
    let taken = match format {
        Format::Jsonl | Format::Csv => {
            let sink = TextSink::new(format, read.schema_with_computed()?, output, console)?;
            fill(sink, read, &mut progress)
        }
        Format::Arrow => fill(ArrowSink::new(&read.arrow_schema(), container, output)?, read, &mut progress),
        Format::Parquet => {
            let (read, lists) = without_empty_records(read, console)?;
            skipped += lists;
            let sink = ParquetSink::new(&read, args.files.sources.reading.memory_budget.0, output)?;
            fill(sink, read, &mut progress)
        }
        Format::Npy | Format::Npz => Err(format.unwritten()),
    }?;
    pending.map_or(Ok(()), Pending::publish)?;
    args.condition.note_if_empty(count, taken, console);
    args.skip.check(skipped, &target.map_or(STDOUT.to_owned(), |path| path.display().to_string()))
}

/// Writes what is read; returns the number of entries.
fn fill<S: EntrySink<Error = Failure>>(mut sink: S, read: Read, progress: &mut Progress) -> Result<u64, Failure> {
    let mut report = |done| {
        progress.set(done);
        ControlFlow::Continue(())
    };
    pipe(read, Ok, &mut sink, &mut report)?;
    Ok(sink.finish()?.entries)
}
