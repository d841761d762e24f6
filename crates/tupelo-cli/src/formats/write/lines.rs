//! Entries as lines of text: JSON lines and CSV.

use std::io::Write;
use std::ops::Range;
use std::panic::resume_unwind;

use arrow_array::RecordBatch;
use tupelo::schema::Schema;
use tupelo::writer::{EntrySink, WriteProgress};

use super::Format;
use crate::console::{Console, Output};
use crate::failure::Failure;
use crate::json::{Entries as JsonEntries, Text};

/// Maximum number of threads that format entries.
const MAX_THREADS: usize = 8;
/// Minimum number of entries for a thread.
const MIN_SHARE_ENTRIES: usize = 256;

/// JSON lines or CSV of batches whose strings are binary.
pub(crate) struct TextSink<'c> {
    format: Format,
    schema: Schema,
    output: Output,
    console: &'c Console,
    entries: u64,
    /// Number of strings that are not UTF-8.
    odd_strings: u64,
}

impl<'c> TextSink<'c> {
    pub(crate) fn new(
        format: Format,
        schema: Schema,
        mut output: Output,
        console: &'c Console,
    ) -> Result<Self, Failure> {
        if format == Format::Csv {
            output.write_all(&csv_head(&schema).bytes)?;
        }
        Ok(Self { format, schema, output, console, entries: 0, odd_strings: 0 })
    }
}

impl EntrySink for TextSink<'_> {
    type Error = Failure;

    const BATCH_BYTES: u64 = 8 << 20;

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        for text in format_lines(self.format, &JsonEntries::new(&self.schema, batch)?, batch.num_rows()) {
            self.odd_strings += text.odd_strings;
            self.output.write_all(&text.bytes)?;
        }
        self.entries += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<WriteProgress, Failure> {
        self.output.flush()?;
        if self.odd_strings > 0 {
            let what = format!("{} strings are not UTF-8 and were written as {{\"base64\": …}}", self.odd_strings);
            self.console.warn(&what);
        }
        Ok(WriteProgress { entries: self.entries, ..WriteProgress::default() })
    }
}

/// The lines of all entries, in one or several texts.
fn format_lines(format: Format, entries: &JsonEntries<'_>, count: usize) -> Vec<Text> {
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
    let threads = tupelo::threads().min(MAX_THREADS);
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
            // An empty string has quotes, unlike a missing value.
            text.bytes.extend_from_slice(b"\"\"");
        }
    }
    text.bytes.push(b'\n');
}

/// Quotes the cell that starts at `start` if necessary (RFC 4180).
///
/// The crate `csv` is not used: it quotes either all empty cells or none, so a missing value and an empty string would
/// be the same, and it would copy every cell once more.
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
