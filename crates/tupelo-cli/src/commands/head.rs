//! `tupelo head`: the first entries as a table.

pub(super) mod count;
pub(super) mod drawing;
pub(super) mod hist;
pub(super) mod moments;
pub(super) mod show;
pub(super) mod sql;

use std::cell::Cell;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use tupelo::dataset::find;
use tupelo::ops::pipe;
use tupelo::reader::{DEFAULT_BATCH_BYTES, Read};
use tupelo::schema::Schema;
use tupelo::writer::EntrySink;

use super::dump::STDOUT;
use crate::console::{Console, Output, terminal_width};
use crate::failure::Failure;
use crate::formats::Format;
use crate::formats::write::TextSink;
use crate::json::{Entries as JsonEntries, Text};
use crate::table::{cut, pad, things, width};
use crate::text::BOLD;

/// Default number of entries.
const DEFAULT_NUMBER: u64 = 10;
/// The table is made in memory, and has fewer entries.
const MAX_LINES: u64 = 10_000_000;
/// Maximum width of a column, in characters.
const MAX_CELL: usize = 40;
/// Characters between two columns.
const GAP: usize = 2;

/// Show the first entries as a table
///
/// Nested values are shown as JSON, and long values are shortened. Fields that do not fit the terminal are omitted; in
/// a pipe or file all fields are written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo head -n 5 events.root --fields MET_pt,Muon_pt
  tupelo head events.root --cut 'any(Muon_pt > 100)'
  tupelo head run1.root run2.root --fields MET_pt --entries -5:")]
pub(crate) struct Args {
    #[command(flatten)]
    files: super::Files,
    /// Number of entries [default: 10, or all of --entries]
    #[arg(short = 'n', long, value_name = "N")]
    number: Option<u64>,
    #[command(flatten)]
    fields: super::Fields,
    #[command(flatten)]
    range: super::EntryRange,
    #[command(flatten)]
    condition: super::Condition,
    /// Write complete values as JSON lines or CSV instead of the table
    #[arg(long, value_parser = text_format)]
    format: Option<Format>,
    #[command(flatten)]
    skip: super::SkipUnreadable,
}

fn text_format(name: &str) -> Result<Format, String> {
    match name {
        "jsonl" => Ok(Format::Jsonl),
        "csv" => Ok(Format::Csv),
        _ => Err("expected jsonl or csv; `tupelo dump` supports more formats".to_owned()),
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.files.inputs, args.files.sources.reading.storage()?)?;
    let count = args.number.unwrap_or(if args.range.entries.is_some() { u64::MAX } else { DEFAULT_NUMBER });
    // A cut may keep the last entries only.
    let most = (!args.condition.has_cut()).then_some(count);
    let stored = args.files.sources.table(&locations, console)?;
    let (read, skipped) =
        args.files.sources.read(&stored, &args.fields, &args.condition, (&args.range, most), console)?;
    let read = read.with_binary_strings(true);
    let schema = read.schema_with_computed()?;
    if let Some(format) = args.format {
        let left = Cell::new(count);
        let first = |batch: RecordBatch| {
            let wanted = usize::try_from(left.get()).unwrap_or(usize::MAX);
            let first = batch.slice(0, batch.num_rows().min(wanted));
            left.set(left.get() - first.num_rows() as u64);
            Ok(first)
        };
        let mut is_enough = |_| if left.get() == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let mut sink = TextSink::new(format, schema, Output::stdout(), console)?;
        pipe(read, first, &mut sink, &mut is_enough)?;
        args.condition.note_if_empty(count, sink.finish()?.entries, console);
        return args.skip.check(skipped, STDOUT);
    }
    if let (false, MAX_LINES..) = (args.condition.has_cut(), read.count()) {
        let many = Failure::usage(format_args!("the table would have {}", things(read.count(), "entry")));
        return Err(many.with_hint("use --number N to show fewer entries, or --format jsonl to write all"));
    }
    let (numbers, batch) = match args.condition.has_cut() {
        true => {
            let numbers = kept(read.clone(), count)?;
            let batch = read.take(&numbers)?;
            (numbers, batch)
        }
        // A file may say any number.
        false => (read.range().collect(), read.to_batch()?),
    };
    table(&schema, &batch, &numbers, stored.entries(), console)?;
    args.condition.note_if_empty(count, numbers.len() as u64, console);
    args.skip.check(skipped, STDOUT)
}

/// The numbers of the first entries that the cut keeps.
fn kept(read: Read, count: u64) -> Result<Vec<u64>, Failure> {
    let mut numbers: Vec<u64> = Vec::new();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    for batch in read.without_fields().with_entry_numbers("entry").batches_of_bytes(DEFAULT_BATCH_BYTES)? {
        let batch = batch?;
        // After the computed columns.
        let found = batch.column(batch.num_columns() - 1).as_primitive::<UInt64Type>().values();
        numbers.extend(found.iter().take(count - numbers.len()));
        if numbers.len() == count {
            break;
        }
    }
    Ok(numbers)
}

fn table(schema: &Schema, batch: &RecordBatch, entries: &[u64], all: u64, console: &Console) -> Result<(), Failure> {
    let terminal = terminal_width();
    let values = JsonEntries::new(schema, batch)?;
    let numbers = entries.last().unwrap_or(&0).to_string().len();
    let mut lines: Vec<String> = std::iter::once(String::new())
        .chain(entries.iter().map(u64::to_string))
        .map(|number| pad(&number, numbers, true))
        .collect();
    let mut used = numbers;
    let mut left_out = 0;
    for (field, values) in schema.fields.iter().zip(values.columns()) {
        let cell = |entry: usize| {
            let mut text = Text::default();
            match values.is_null(entry) {
                true => return "null".to_owned(),
                false => values.write_plain(entry, &mut text),
            }
            cut(&String::from_utf8_lossy(&text.bytes), MAX_CELL)
        };
        let cells: Vec<String> = (0..batch.num_rows()).map(cell).collect();
        let name = cut(&field.name, MAX_CELL);
        let wide = cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(width(&name));
        if left_out > 0 || terminal.is_some_and(|terminal| used > numbers && used + GAP + wide > terminal) {
            left_out += 1;
            continue;
        }
        used += GAP + wide;
        let right = values.is_number();
        for (line, cell) in lines.iter_mut().zip(std::iter::once(&name).chain(&cells)) {
            *line += &" ".repeat(GAP);
            *line += &pad(cell, wide, right);
        }
    }
    let mut text = console.text();
    for (index, line) in lines.iter().enumerate() {
        match index {
            0 => text.styled(BOLD, line.trim_end()),
            _ => text.add(line),
        };
        text.end_line();
    }
    console.print(&text)?;
    if left_out > 0 {
        console.note(&format!("{left_out} more fields do not fit; select fields with --fields or use --format jsonl"));
    }
    if entries.len() as u64 == all {
        console.note(&format!("showing all entries: {}", things(all, "entry")));
    }
    Ok(())
}
