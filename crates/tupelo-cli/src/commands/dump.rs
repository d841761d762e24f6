//! `tupelo dump`: entries as text or in other columnar formats.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field as ArrowField};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tupelo::reader::Read;
use tupelo::schema::Schema;

use crate::console::{Console, Output, Pending, Progress};
use crate::failure::Failure;
use crate::json::{Entries as JsonEntries, Text};
use crate::parse::{Entries, Patterns, patterns};

/// Batches that are decoded at once, in bytes of memory.
pub(super) const BATCH_BYTES: u64 = 8 << 20;
/// Record batches of Arrow and row groups of Parquet hold about so many bytes.
const COLUMNAR_BATCH_BYTES: u64 = 64 << 20;
/// Threads that put entries into words.
const MAX_THREADS: usize = 8;
/// Fewer entries are not worth a thread.
const MIN_SHARE_ENTRIES: usize = 256;

/// How to write entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values under a line of field names; nested values as JSON
    Csv,
    /// Arrow IPC stream
    Arrow,
    /// Apache Parquet file
    Parquet,
}

/// Write entries as JSON lines, CSV, Arrow or Parquet
///
/// In JSON a record is an object (bases as ":_0"), a pair, tuple or collection an array, a map an array of
/// [key, value], a bitset an array of 0 and 1, a missing optional or variant null; numbers are exact, those that are
/// not finite are "NaN", "Infinity" and "-Infinity".
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo dump events.root --fields MET_pt,'Muon_*' --entries :100
  tupelo dump events.root --fields 'Muon_*' --where 'nMuon >= 2 and max(Muon_pt) > 25'
  tupelo dump events.root:Events --format parquet -o events.parquet
  tupelo dump events.root --format arrow | python -c 'import pyarrow, sys; print(pyarrow.ipc.open_stream(sys.stdin.buffer).read_all())'")]
pub(crate) struct Args {
    /// The ntuple, as FILE or FILE:NAME
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    condition: super::Condition,
    /// How to write them
    #[arg(long, default_value = "jsonl")]
    format: Format,
    /// Write to this file, replacing it, instead of to standard output (-)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// With arrow and parquet: strings as bytes, for data that are not UTF-8
    #[arg(long)]
    binary_strings: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// Which fields and entries.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// Fields, by dotted paths and globs between commas: MET_pt,jets.pt,'Muon_*' [default: all]
    #[arg(long, value_name = "FIELDS")]
    pub(crate) fields: Vec<Patterns>,
    /// Entries, as in Python: 10:20, :100, -10: or 5 [default: all]
    #[arg(long, value_name = "START:STOP", allow_hyphen_values = true, default_value = ":", hide_default_value = true)]
    pub(crate) entries: Entries,
    /// Read the attribute set of this name that is linked to the ntuple
    #[arg(long, value_name = "SET")]
    pub(crate) attributes: Option<String>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let is_binary = matches!(args.format, Format::Arrow | Format::Parquet);
    if is_binary && args.output.is_none() && io::stdout().is_terminal() {
        let refused = Failure::usage("binary data would garble the terminal");
        return Err(refused.with_hint("name a file with -o OUT, or send the output into a pipe"));
    }
    let ntuple = args.reading.open(&args.input, args.choice.attributes.as_deref(), console)?;
    let entries = args.choice.entries.of(ntuple.entries());
    let read = args.condition.apply(ntuple.read(patterns(&args.choice.fields))?.entries(entries))?;
    let (output, pending) = match &args.output {
        Some(path) if path.as_os_str() == "-" => (Output::stdout(), None),
        Some(path) if is_same_file(path, &ntuple.file_name()) => {
            let refused = Failure::usage(format_args!("{} is the file that is read", path.display()));
            return Err(refused.with_hint("name another file with -o OUT"));
        }
        Some(path) => Output::file(path)?,
        None => (Output::stdout(), None),
    };
    // A bar and lines of text would overwrite each other.
    // How many a cut leaves is not known before.
    let shown = (args.output.is_some() || !io::stdout().is_terminal()) && !args.condition.is_there();
    let mut progress = console.progress("dump", if shown { read.count() } else { 0 }, "entries");
    match args.format {
        Format::Jsonl | Format::Csv => {
            let schema = read.schema_with_computed()?;
            // Strings as bytes: whether they are UTF-8 is asked of each one, and those that are not are not lost.
            let batches = read.with_binary_strings(true).batches_of_bytes(BATCH_BYTES)?;
            text(args.format, &schema, batches, output, console, &mut progress)
        }
        Format::Arrow => arrow(read.with_binary_strings(args.binary_strings), output, &mut progress),
        Format::Parquet => parquet(read.with_binary_strings(args.binary_strings), output, &mut progress),
    }?;
    pending.map_or(Ok(()), Pending::publish)
}

fn is_same_file(one: &Path, other: &str) -> bool {
    matches!((one.canonicalize(), Path::new(other).canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// JSON lines or CSV, of batches whose strings are bytes. While one batch is put into words, by several threads, the next
/// one is decoded.
pub(super) fn text(
    format: Format,
    schema: &Schema,
    batches: impl Iterator<Item = tupelo::Result<RecordBatch>> + Send,
    mut output: Output,
    console: &Console,
    progress: &mut Progress,
) -> Result<(), Failure> {
    if format == Format::Csv {
        output.write_all(&csv_head(schema).bytes)?;
    }
    let mut odd_strings = 0;
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(1);
        scope.spawn(move || {
            for batch in batches {
                // Nobody listens any more where writing failed.
                if sender.send(batch).is_err() {
                    break;
                }
            }
        });
        let mut done = 0;
        for batch in receiver {
            let batch = batch?;
            for text in in_words(format, &JsonEntries::new(schema, &batch)?, batch.num_rows()) {
                odd_strings += text.odd_strings;
                output.write_all(&text.bytes)?;
            }
            done += batch.num_rows() as u64;
            progress.set(done);
        }
        Ok::<_, Failure>(())
    })?;
    output.flush()?;
    if odd_strings > 0 {
        console.warn(&format!("{odd_strings} strings are not UTF-8; they stand there as {{\"base64\": …}}"));
    }
    Ok(())
}

/// Lines of all entries, in one or several pieces.
fn in_words(format: Format, entries: &JsonEntries<'_>, count: usize) -> Vec<Text> {
    let lines = |range: Range<usize>| {
        let mut text = Text::default();
        for entry in range {
            match format {
                Format::Csv => csv_line(entries, entry, &mut text),
                _ => {
                    entries.write(entry, &mut text);
                    text.bytes.push(b'\n');
                }
            }
        }
        text
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = count.div_ceil(threads).max(MIN_SHARE_ENTRIES);
    let shares: Vec<_> = (0..count).step_by(share).map(|start| start..count.min(start + share)).collect();
    match <[Range<usize>; 1]>::try_from(shares) {
        Ok([all]) => vec![lines(all)],
        Err(shares) => std::thread::scope(|scope| {
            let lines = &lines;
            let workers: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || lines(share))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        }),
    }
}

fn csv_head(schema: &Schema) -> Text {
    let mut text = Text::default();
    for (index, field) in schema.fields.iter().enumerate() {
        if index > 0 {
            text.bytes.push(b',');
        }
        let start = text.bytes.len();
        text.bytes.extend_from_slice(field.name.as_bytes());
        quote(&mut text, start);
    }
    text.bytes.push(b'\n');
    text
}

fn csv_line(entries: &JsonEntries<'_>, entry: usize, text: &mut Text) {
    for (index, values) in entries.columns().iter().enumerate() {
        if index > 0 {
            text.bytes.push(b',');
        }
        let start = text.bytes.len();
        values.write_plain(entry, text);
        if text.bytes.len() > start {
            quote(text, start);
        } else if !values.is_null(entry) {
            // An empty string is there, unlike a missing one.
            text.bytes.extend_from_slice(b"\"\"");
        }
    }
    text.bytes.push(b'\n');
}

/// Puts quotes around the cell that begins at `start` if it needs them (RFC 4180).
fn quote(text: &mut Text, start: usize) {
    if !text.bytes[start..].iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return;
    }
    let cell = text.bytes.split_off(start);
    text.bytes.push(b'"');
    for byte in cell {
        if byte == b'"' {
            text.bytes.push(b'"');
        }
        text.bytes.push(byte);
    }
    text.bytes.push(b'"');
}

fn arrow(read: Read, output: Output, progress: &mut Progress) -> Result<(), Failure> {
    let schema = read.arrow_schema();
    let mut writer = StreamWriter::try_new(BufWriter::new(output), &schema).map_err(Failure::new)?;
    let mut done = 0;
    for batch in read.batches_of_bytes(COLUMNAR_BATCH_BYTES)? {
        let batch = batch.map_err(not_utf8)?;
        writer.write(&batch).map_err(Failure::new)?;
        done += batch.num_rows() as u64;
        progress.set(done);
    }
    writer.finish().map_err(Failure::new)?;
    Ok(writer.get_mut().flush()?)
}

fn parquet(read: Read, output: Output, progress: &mut Progress) -> Result<(), Failure> {
    let schema = read.arrow_schema();
    for field in schema.fields() {
        if let Some((path, why)) = not_in_parquet(field) {
            let refused = Failure::usage(format_args!("Parquet has no {why}, which field '{path}' needs"));
            return Err(refused.with_hint("choose other fields with --fields, or use --format arrow"));
        }
    }
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(output, schema, Some(properties)).map_err(Failure::new)?;
    let mut done = 0;
    for batch in read.batches_of_bytes(COLUMNAR_BATCH_BYTES)? {
        let batch = batch.map_err(not_utf8)?;
        writer.write(&batch).map_err(Failure::new)?;
        done += batch.num_rows() as u64;
        progress.set(done);
    }
    writer.close().map(drop).map_err(Failure::new)
}

/// The path of a field that Parquet cannot store, and what Parquet lacks.
fn not_in_parquet(field: &ArrowField) -> Option<(String, &'static str)> {
    let own = |why| Some((field.name().clone(), why));
    let below = match field.data_type() {
        DataType::Union(..) => return own("variants"),
        DataType::Struct(members) if members.is_empty() => return own("records without members"),
        DataType::Struct(members) => members.iter().find_map(|member| not_in_parquet(member)),
        // The items of lists have no name of their own.
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let (path, why) = not_in_parquet(item)?;
            let below = path.split_once('.').map_or(String::new(), |(_, below)| format!(".{below}"));
            return own(why).map(|(name, why)| (name + &below, why));
        }
        _ => None,
    };
    below.map(|(path, why)| (format!("{}.{path}", field.name()), why))
}

fn not_utf8(error: tupelo::Error) -> Failure {
    let is_utf8 = error.kind() == tupelo::ErrorKind::Unsupported && error.to_string().contains("UTF-8");
    let failure = Failure::from(error);
    if is_utf8 { failure.with_hint("--binary-strings writes strings as bytes") } else { failure }
}
