//! Entries as lines of text: JSON lines and CSV.

use std::io::Write;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc;

use arrow_array::RecordBatch;
use tupelo::schema::Schema;

use super::Format;
use crate::console::{Console, Output, Progress};
use crate::failure::Failure;
use crate::json::{Entries as JsonEntries, Text};

/// Size of decoded batches, in bytes.
pub(crate) const BATCH_BYTES: u64 = 8 << 20;
/// Maximum number of threads that format entries.
const MAX_THREADS: usize = 8;
/// Minimum number of entries for a thread.
const MIN_SHARE_ENTRIES: usize = 256;

/// Writes JSON lines or CSV of batches whose strings are binary. With several threads, the next batch is decoded while
/// the current one is formatted.
pub(crate) fn text(
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
    let (mut odd_strings, mut done) = (0, 0);
    let mut put = |batch: RecordBatch| -> Result<(), Failure> {
        for text in format_lines(format, &JsonEntries::new(schema, &batch)?, batch.num_rows()) {
            odd_strings += text.odd_strings;
            output.write_all(&text.bytes)?;
        }
        done += batch.num_rows() as u64;
        progress.set(done);
        Ok(())
    };
    match tupelo::threads() {
        1 => batches.into_iter().try_for_each(|batch| put(batch?))?,
        _ => with_prefetch(batches, |batch| put(batch?))?,
    }
    output.flush()?;
    if odd_strings > 0 {
        console.warn(&format!("{odd_strings} strings are not UTF-8 and were written as {{\"base64\": …}}"));
    }
    Ok(())
}

/// Passes all batches to `put`, while another thread decodes the next one.
fn with_prefetch(
    batches: impl Iterator<Item = tupelo::Result<RecordBatch>> + Send,
    put: impl FnMut(tupelo::Result<RecordBatch>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(1);
        scope.spawn(move || {
            for batch in batches {
                // The receiver is dropped when writing fails.
                if sender.send(batch).is_err() {
                    break;
                }
            }
        });
        receiver.into_iter().try_for_each(put)
    })
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
