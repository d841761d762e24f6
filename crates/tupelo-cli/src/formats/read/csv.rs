//! Comma-separated values (RFC 4180).
//!
//! The crate `arrow-csv` is not used: it cannot tell a missing value from an empty string in quotes, counts entries
//! instead of lines in its errors, and takes any memory for a line.

// FS: a file of another format; the storage of the engine is for ROOT files.
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::lines::{Kinds, MAX_LINE_BYTES, Scalar, Values, batches};
use super::{BATCH_BYTES, Batches, ForeignFile, Limits, Place, in_range, refused};
use crate::failure::Failure;

/// The largest number of entries in a batch.
const MAX_ENTRIES: usize = 1 << 16;
/// Characters of a value in a message.
const MAX_SHOWN: usize = 40;
/// Characters that separate the values of other files, and how they are given.
const OTHER_DELIMITERS: [(char, &str); 3] = [(';', ";"), ('\t', "\\t"), ('|', "|")];
/// The byte order mark that some programs write first.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A CSV file.
pub(super) struct CsvFile {
    place: Place,
    schema: SchemaRef,
    inferred: usize,
    delimiter: u8,
}

impl CsvFile {
    pub(super) fn open(place: Place, limits: Limits, like: Option<&SchemaRef>) -> Result<Self, Failure> {
        let delimiter = limits.delimiter.unwrap_or(b',');
        let mut rows = Rows::new(&place, delimiter)?;
        let mut row = Row::default();
        if !rows.next(&mut row)? {
            return Err(place.failure("expected a first line with the names of the columns, but the file is empty"));
        }
        let names = names(&row, &place)?;
        if let ([name], None) = (names.as_slice(), limits.delimiter)
            && let Some((_, shown)) = OTHER_DELIMITERS.iter().find(|(other, _)| name.contains(*other))
        {
            let what = format!("the first line has no comma: '{}'", name.escape_debug());
            let hint = format!("--delimiter '{shown}' separates the columns by it; --delimiter ',' imports one column");
            return Err(place.failure(what).with_hint(hint));
        }
        rows.columns = names.len();
        if let Some(schema) = like {
            return match names.iter().eq(schema.fields().iter().map(|field| field.name())) {
                true => Ok(Self { schema: schema.clone(), place, inferred: limits.inferred, delimiter }),
                false => Err(Failure::new(format_args!(
                    "{}: the columns are not those of the first file: found {}",
                    place.name,
                    names.join(",").escape_debug()
                ))
                .with_hint("import the files one by one with --append --as NAME")),
            };
        }
        let mut kinds = vec![Kinds::default(); names.len()];
        for _ in 0..limits.inferred {
            if !rows.next(&mut row)? {
                break;
            }
            for (kinds, cell) in kinds.iter_mut().zip(row.cells()) {
                kinds.add(kind(&cell));
            }
        }
        let field = |(name, kinds): (&String, &Kinds)| match kinds.data_type() {
            Some(data_type) => Field::new(name, data_type, true),
            None if kinds.is_empty() => {
                let lines = limits.inferred;
                refused(name, &format!("it has no value in the first {lines} lines, so that its type is unknown"))
            }
            None => Field::new(name, DataType::LargeUtf8, true),
        };
        let fields: Vec<Field> = names.iter().zip(&kinds).map(field).collect();
        Ok(Self { place, schema: Arc::new(Schema::new(fields)), inferred: limits.inferred, delimiter })
    }
}

/// The names in the first line. One without a name is called by its number, as the index of pandas is.
fn names(row: &Row, place: &Place) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::with_capacity(row.ends.len());
    for (number, cell) in row.cells().enumerate() {
        let text = std::str::from_utf8(cell.bytes).map_err(|_| not_utf8(place, row.line))?;
        let name = if text.is_empty() { format!("column{}", number + 1) } else { text.to_owned() };
        names.push(name);
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
        Some(twice) => {
            let what = format!("two columns are called '{}'; rename one in the first line", twice.escape_debug());
            Err(place.failure(what))
        }
        None => Ok(names),
    }
}

fn not_utf8(place: &Place, line: u64) -> Failure {
    let what = format_args!("line {line}: expected text in UTF-8");
    place.failure(what).with_hint("`iconv -f latin1 -t utf-8 IN > OUT` converts a file from Latin-1")
}

/// A cell of a line.
#[derive(Debug, Clone, Copy)]
struct Cell<'r> {
    bytes: &'r [u8],
    is_quoted: bool,
}

impl Cell<'_> {
    /// Whether the value is missing: an empty string has quotes.
    fn is_missing(&self) -> bool {
        self.bytes.is_empty() && !self.is_quoted
    }

    fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes).ok()
    }

    fn boolean(&self) -> Option<bool> {
        match self.bytes {
            text if text.eq_ignore_ascii_case(b"true") => Some(true),
            text if text.eq_ignore_ascii_case(b"false") => Some(false),
            _ => None,
        }
    }

    /// A number, if it loses nothing: neither zeros in front, which codes have, nor digits of integers.
    fn number(&self) -> Option<Scalar<'static>> {
        let text = self.text()?;
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_code = digits.len() > 1 && digits.starts_with('0');
            let signed = text.parse().ok().map(Scalar::Int);
            return signed.or_else(|| text.parse().ok().map(Scalar::Uint)).filter(|_| !is_code);
        }
        // A number beyond the range of doubles stays a text, and does not fit into a column of numbers.
        let is_finite = |real: &f64| real.is_finite() || !text.contains(|digit: char| digit.is_ascii_digit());
        text.parse().ok().filter(is_finite).map(Scalar::Real)
    }
}

fn kind(cell: &Cell<'_>) -> Kinds {
    match cell.number() {
        _ if cell.is_missing() => Kinds::default(),
        Some(Scalar::Int(value)) => Kinds::of_integer(value.into()),
        Some(Scalar::Uint(value)) => Kinds::of_integer(value.into()),
        Some(_) => Kinds::REAL,
        None if cell.boolean().is_some() => Kinds::BOOL,
        None => Kinds::TEXT,
    }
}

/// A line, which may have line breaks in quotes.
#[derive(Debug, Default)]
struct Row {
    /// The bytes of all cells, one after the other, without quotes.
    bytes: Vec<u8>,
    /// The end of each cell, and whether it has quotes.
    ends: Vec<(usize, bool)>,
    /// The number of its first line, from 1.
    line: u64,
}

impl Row {
    fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, is_quoted)| {
            let bytes = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            Cell { bytes, is_quoted }
        })
    }

    fn end_cell(&mut self, is_quoted: bool) {
        self.ends.push((self.bytes.len(), is_quoted));
    }
}

/// Where in a line the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the begin of a cell.
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes: the end, or half of a pair.
    Quote,
}

/// The lines of a file.
struct Rows<'f> {
    place: &'f Place,
    input: BufReader<File>,
    /// The number of the next line.
    line: u64,
    /// Number of cells that lines must have; 0 if any.
    columns: usize,
    is_first: bool,
    delimiter: u8,
}

impl<'f> Rows<'f> {
    fn new(place: &'f Place, delimiter: u8) -> Result<Self, Failure> {
        let input = BufReader::with_capacity(1 << 18, place.rewound()?);
        Ok(Self { place, input, line: 1, columns: 0, is_first: true, delimiter })
    }

    /// Reads the next line; false at the end of the file. Empty lines are skipped, except where a single value is
    /// missing.
    fn next(&mut self, row: &mut Row) -> Result<bool, Failure> {
        loop {
            row.bytes.clear();
            row.ends.clear();
            row.line = self.line;
            if !self.read(row)? {
                return Ok(false);
            }
            let is_empty = matches!(row.ends.as_slice(), [(0, false)]);
            if !is_empty || self.columns == 1 {
                break;
            }
        }
        match row.ends.len() {
            found if self.columns != 0 && found != self.columns => {
                let what = format!("line {}: expected {} cells, found {found}", row.line, self.columns);
                Err(self.place.failure(what))
            }
            _ => Ok(true),
        }
    }

    /// Reads a line; false at the end of the file.
    fn read(&mut self, row: &mut Row) -> Result<bool, Failure> {
        let (mut state, mut is_quoted, mut has_any) = (State::Start, false, false);
        loop {
            let failed = |error| self.place.failure(format_args!("cannot be read: {error}"));
            let bytes = self.input.fill_buf().map_err(failed)?;
            if bytes.is_empty() {
                if state == State::Quoted {
                    let what = format!("line {}: a quote has no end", row.line);
                    return Err(self.place.failure(what));
                }
                if has_any {
                    row.end_cell(is_quoted);
                }
                return Ok(has_any);
            }
            let mut used = 0;
            if std::mem::take(&mut self.is_first) && bytes.starts_with(MARK) {
                used = MARK.len();
            }
            let mut is_over = false;
            for &byte in bytes.get(used..).unwrap_or_default() {
                used += 1;
                has_any = true;
                state = match (state, byte) {
                    (State::Start, b'"') => {
                        is_quoted = true;
                        State::Quoted
                    }
                    (State::Quoted, b'"') => State::Quote,
                    (State::Quoted, _) => {
                        self.line += u64::from(byte == b'\n');
                        row.bytes.push(byte);
                        State::Quoted
                    }
                    (State::Quote, b'"') => {
                        row.bytes.push(byte);
                        State::Quoted
                    }
                    (_, byte) if byte == self.delimiter => {
                        row.end_cell(is_quoted);
                        is_quoted = false;
                        State::Start
                    }
                    (_, b'\n') => {
                        is_over = true;
                        break;
                    }
                    // Before a line break; anywhere else it belongs to the value.
                    (_, _) => {
                        row.bytes.push(byte);
                        State::Plain
                    }
                };
            }
            self.input.consume(used);
            if row.bytes.len() + row.ends.len() * size_of::<(usize, bool)>() > MAX_LINE_BYTES {
                let most = MAX_LINE_BYTES >> 20;
                return Err(self.place.failure(format_args!("line {}: it has more than {most} MiB", row.line)));
            }
            if is_over {
                self.line += 1;
                let start = row.ends.last().map_or(0, |&(end, _)| end);
                if row.bytes.len() > start && row.bytes.last() == Some(&b'\r') {
                    row.bytes.pop();
                }
                row.end_cell(is_quoted);
                return Ok(true);
            }
        }
    }
}

impl ForeignFile for CsvFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        let mut rows = Rows::new(&self.place, self.delimiter)?;
        let mut row = Row::default();
        rows.next(&mut row)?;
        rows.columns = self.schema.fields().len();
        let schema = Arc::new(self.schema.project(columns).map_err(|error| self.place.failure(error))?);
        // Which of the cells are wanted.
        let mut wanted = vec![false; self.schema.fields().len()];
        for &column in columns {
            wanted.get_mut(column).into_iter().for_each(|wanted| *wanted = true);
        }
        let own = Arc::clone(&schema);
        let batches =
            batches(&self.place, schema, move |columns| self.fill(&mut rows, &mut row, &own, &wanted, columns));
        Ok(in_range(batches, 0, range))
    }
}

impl CsvFile {
    /// Adds the entries of a batch; returns their number.
    fn fill(
        &self,
        rows: &mut Rows<'_>,
        row: &mut Row,
        schema: &Schema,
        wanted: &[bool],
        columns: &mut [Values],
    ) -> Result<usize, Failure> {
        let (mut count, mut bytes) = (0, 0u64);
        while count < MAX_ENTRIES && bytes < BATCH_BYTES && rows.next(row)? {
            (count, bytes) = (count + 1, bytes + row.bytes.len() as u64);
            let cells = row.cells().zip(wanted).filter(|(_, wanted)| **wanted);
            for ((cell, _), (values, field)) in cells.zip(columns.iter_mut().zip(schema.fields())) {
                if !push(values, &cell) {
                    return Err(self.wrong(row.line, field.name(), values, &cell));
                }
            }
        }
        Ok(count)
    }

    fn wrong(&self, line: u64, column: &str, values: &Values, cell: &Cell<'_>) -> Failure {
        let Some(text) = cell.text() else { return not_utf8(&self.place, line) };
        let shown: String = text.chars().take(MAX_SHOWN).collect();
        let (column, shown) = (column.escape_debug(), shown.escape_debug());
        let what = format_args!("line {line}, column '{column}': expected {}, found '{shown}'", values.kind());
        let hint = format!(
            "the types are those of the first {} entries; --infer-rows N looks at more, --exclude '{column}' leaves \
             the column out",
            self.inferred
        );
        self.place.failure(what).with_hint(hint)
    }
}

/// Adds a cell to a column; false if it does not fit.
fn push(values: &mut Values, cell: &Cell<'_>) -> bool {
    if cell.is_missing() || cell.bytes.is_empty() && !matches!(values, Values::Text(_)) {
        values.push_null();
        return true;
    }
    let value = match values {
        Values::Text(_) => cell.text().map(Scalar::Text),
        Values::Bool(_) => cell.boolean().map(Scalar::Bool),
        _ => cell.number(),
    };
    value.is_some_and(|value| values.push(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> Cell<'_> {
        Cell { bytes: text.as_bytes(), is_quoted: false }
    }

    #[test]
    fn types_lose_nothing() {
        let of = |cells: &[&str]| {
            let mut kinds = Kinds::default();
            cells.iter().for_each(|text| kinds.add(kind(&cell(text))));
            kinds.data_type()
        };
        assert_eq!(of(&["1", "-2", ""]), Some(DataType::Int64));
        assert_eq!(of(&["1", "18446744073709551615"]), Some(DataType::UInt64));
        assert_eq!(of(&["-1", "18446744073709551615"]), None);
        assert_eq!(of(&["1", "2.5", "NaN", "-Infinity"]), Some(DataType::Float64));
        assert_eq!(of(&["true", "FALSE"]), Some(DataType::Boolean));
        assert_eq!(of(&["007"]), Some(DataType::LargeUtf8));
        assert_eq!(of(&["2024-05-01"]), Some(DataType::LargeUtf8));
        assert_eq!(of(&["18446744073709551616"]), Some(DataType::LargeUtf8));
        assert_eq!(of(&["9007199254740993", "0.5"]), None);
        assert_eq!(of(&["", ""]), None);
    }
}
