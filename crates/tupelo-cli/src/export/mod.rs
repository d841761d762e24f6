//! Export of entries as text, Arrow and Parquet.

mod lines;
mod parquet;

use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::Schema;
use tupelo::writer::{EntrySink, WriteProgress};

pub(crate) use self::lines::TextSink;
pub(crate) use self::parquet::{ParquetSink, without_empty_records};
use crate::console::Output;
use crate::failure::Failure;

/// Size of record batches in Arrow and of decoded batches for Parquet, in bytes.
const COLUMNAR_BATCH_BYTES: u64 = 64 << 20;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values under a line of field names; nested values as JSON
    Csv,
    /// Arrow IPC: a file (Feather V2) by the extension of OUT, otherwise a stream
    Arrow,
    /// Apache Parquet file
    Parquet,
}

/// The two formats of Arrow IPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// Sequential access.
    Stream,
    /// Random access.
    File,
}

/// Formats by file extension in lower case.
const EXTENSIONS: [(&str, Format, Container); 11] = [
    ("jsonl", Format::Jsonl, Container::Stream),
    ("ndjson", Format::Jsonl, Container::Stream),
    ("json", Format::Jsonl, Container::Stream),
    ("csv", Format::Csv, Container::Stream),
    ("arrows", Format::Arrow, Container::Stream),
    ("arrow", Format::Arrow, Container::File),
    ("feather", Format::Arrow, Container::File),
    ("ipc", Format::Arrow, Container::File),
    ("parquet", Format::Parquet, Container::File),
    ("parq", Format::Parquet, Container::File),
    ("pq", Format::Parquet, Container::File),
];

/// Extensions of formats that cannot be written, with hints.
const OTHERS: [(&str, &str); 6] = [
    ("gz", "the output is not compressed; use a pipe: `tupelo dump FILE | gzip > OUT`"),
    ("zst", "the output is not compressed; use a pipe: `tupelo dump FILE | zstd > OUT`"),
    ("xz", "the output is not compressed; use a pipe: `tupelo dump FILE | xz > OUT`"),
    ("bz2", "the output is not compressed; use a pipe: `tupelo dump FILE | bzip2 > OUT`"),
    ("root", "`tupelo copy` writes ROOT files"),
    ("tsv", "tab-separated values are not supported; use --format csv for comma-separated values"),
];

/// The extension of a file in lower case, empty without one.
fn extension_of(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

impl Format {
    /// The format of a file extension.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let extension = extension_of(path);
        EXTENSIONS.iter().find(|(known, ..)| *known == extension).map(|(_, format, _)| *format)
    }

    /// The given format, or else that of the output's extension, or JSON lines without one; for Arrow also whether it
    /// is a file or a stream.
    pub(crate) fn choose(given: Option<Self>, output: Option<&Path>) -> Result<(Self, Container), Failure> {
        let extension = output.map(extension_of).unwrap_or_default();
        let name = || output.unwrap_or(Path::new("-")).display();
        if let Some((_, hint)) = OTHERS.iter().find(|(other, _)| *other == extension) {
            let refused = Failure::usage(format_args!("{}: entries cannot be written as .{extension}", name()));
            return Err(refused.with_hint(*hint));
        }
        let known = EXTENSIONS.iter().find(|(known, ..)| *known == extension);
        match (given, known) {
            (Some(format), Some((_, known, _))) if format != *known => {
                let refused = Failure::usage(format_args!("--format {} contradicts {}", format.name(), name()));
                Err(refused.with_hint(format!("omit --format to write {}, or use another file name", known.name())))
            }
            (_, Some((_, format, container))) => Ok((*format, *container)),
            (Some(format), None) => Ok((format, Container::Stream)),
            (None, None) if extension.is_empty() => Ok((Self::Jsonl, Container::Stream)),
            (None, None) => {
                let known: Vec<_> = EXTENSIONS.iter().map(|(known, ..)| format!(".{known}")).collect();
                let refused = Failure::usage(format_args!("{}: unknown extension .{extension}", name()));
                Err(refused.with_hint(format!(
                    "use --format (jsonl, csv, arrow, parquet), or one of the extensions {}",
                    known.join(" ")
                )))
            }
        }
    }

    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }
}

/// An Arrow IPC stream or file.
pub(crate) struct ArrowSink {
    writer: ArrowWriter,
    entries: u64,
}

enum ArrowWriter {
    Stream(StreamWriter<BufWriter<Output>>),
    File(FileWriter<BufWriter<Output>>),
}

impl ArrowSink {
    pub(crate) fn new(schema: &Schema, container: Container, output: Output) -> Result<Self, Failure> {
        let output = BufWriter::new(output);
        let writer = match container {
            Container::Stream => StreamWriter::try_new(output, schema).map(ArrowWriter::Stream),
            Container::File => FileWriter::try_new(output, schema).map(ArrowWriter::File),
        };
        Ok(Self { writer: writer.map_err(Failure::new)?, entries: 0 })
    }
}

impl EntrySink for ArrowSink {
    type Error = Failure;

    const BATCH_BYTES: u64 = COLUMNAR_BATCH_BYTES;

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.entries += batch.num_rows() as u64;
        let written = match &mut self.writer {
            ArrowWriter::Stream(writer) => writer.write(batch),
            ArrowWriter::File(writer) => writer.write(batch),
        };
        written.map_err(Failure::new)
    }

    fn finish(&mut self) -> Result<WriteProgress, Failure> {
        let (ended, output) = match &mut self.writer {
            ArrowWriter::Stream(writer) => (writer.finish(), writer.get_mut()),
            ArrowWriter::File(writer) => (writer.finish(), writer.get_mut()),
        };
        ended.map_err(Failure::new)?;
        output.flush()?;
        Ok(WriteProgress { entries: self.entries, ..WriteProgress::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_chosen_by_option_or_extension() {
        let choose = |given, path: &str| Format::choose(given, Some(Path::new(path))).map_err(|f| f.message.unwrap());
        assert_eq!(choose(None, "a.parquet"), Ok((Format::Parquet, Container::File)));
        assert_eq!(choose(None, "x.d/a.CSV"), Ok((Format::Csv, Container::Stream)));
        assert_eq!(choose(None, "a.feather"), Ok((Format::Arrow, Container::File)));
        assert_eq!(choose(Some(Format::Arrow), "a.arrows"), Ok((Format::Arrow, Container::Stream)));
        assert_eq!(choose(Some(Format::Csv), "a.txt"), Ok((Format::Csv, Container::Stream)));
        for unknown in ["a.txt", "a.h5", "a.2024-05"] {
            assert!(choose(None, unknown).unwrap_err().contains("unknown extension ."), "{unknown}");
        }
        for without in ["/dev/null", "x.d/a", "a.", ".a"] {
            assert_eq!(choose(None, without), Ok((Format::Jsonl, Container::Stream)), "{without}");
        }
        assert_eq!(choose(Some(Format::Csv), "a.parquet"), Err("--format csv contradicts a.parquet".to_owned()));
        for refused in ["a.csv.gz", "a.root", "a.tsv"] {
            assert!(choose(None, refused).unwrap_err().contains("cannot be written as"), "{refused}");
        }
        assert_eq!(Format::choose(None, None).unwrap(), (Format::Jsonl, Container::Stream));
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        use clap::ValueEnum;
        for format in Format::value_variants() {
            assert_eq!(format.to_possible_value().unwrap().get_name(), format.name());
        }
    }
}
