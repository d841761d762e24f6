//! Files of other formats: what `tupelo dump` writes and `tupelo import` reads.

pub(crate) mod read;
pub(crate) mod write;

use std::path::Path;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::failure::Failure;

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values under a line of field names; nested values are written as JSON
    Csv,
    /// Arrow IPC, a file (Feather V2) or a stream; written as a stream except by the extension of OUT
    Arrow,
    /// Apache Parquet file
    Parquet,
    /// NumPy array: a structured one, or any other as the column `data`
    Npy,
    /// Several NumPy arrays, one for each column
    Npz,
}

/// The formats that are written.
const WRITTEN: [Format; 4] = [Format::Jsonl, Format::Csv, Format::Arrow, Format::Parquet];

/// The two formats of Arrow IPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// Sequential access.
    Stream,
    /// Random access.
    File,
}

/// Formats by file extension in lower case.
const EXTENSIONS: [(&str, Format, Container); 13] = [
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
    ("npy", Format::Npy, Container::File),
    ("npz", Format::Npz, Container::File),
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
pub(crate) fn extension_of(path: &Path) -> String {
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
            (_, Some((_, format, _))) if !format.is_written() => Err(format.unwritten()),
            (_, Some((_, format, container))) => Ok((*format, *container)),
            (Some(format), None) => Ok((format, Container::Stream)),
            (None, None) if extension.is_empty() => Ok((Self::Jsonl, Container::Stream)),
            (None, None) => {
                let known = EXTENSIONS.iter().filter(|(_, format, _)| format.is_written());
                let known: Vec<_> = known.map(|(known, ..)| format!(".{known}")).collect();
                let refused = Failure::usage(format_args!("{}: unknown extension .{extension}", name()));
                Err(refused.with_hint(format!(
                    "use --format (jsonl, csv, arrow, parquet), or one of the extensions {}",
                    known.join(" ")
                )))
            }
        }
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Npy => "npy",
            Self::Npz => "npz",
        }
    }

    /// Whether entries are written in it.
    pub(crate) fn is_written(self) -> bool {
        WRITTEN.contains(&self)
    }

    /// The failure to write it.
    pub(crate) fn unwritten(self) -> Failure {
        let refused = Failure::usage(format_args!("entries cannot be written as {}", self.name()));
        refused.with_hint("use another format; in Python, arrays(library=\"np\") returns NumPy arrays to save")
    }

    /// Parses those that are written.
    pub(crate) fn written() -> impl TypedValueParser<Value = Self> {
        let names = PossibleValuesParser::new(WRITTEN.iter().filter_map(Self::to_possible_value));
        names.try_map(|name| Self::from_str(&name, false))
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
        for refused in ["a.csv.gz", "a.root", "a.tsv", "a.npy", "a.npz"] {
            assert!(choose(None, refused).unwrap_err().contains("cannot be written as"), "{refused}");
        }
        assert_eq!(Format::choose(None, None).unwrap(), (Format::Jsonl, Container::Stream));
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for format in Format::value_variants() {
            assert_eq!(format.to_possible_value().unwrap().get_name(), format.name());
        }
    }
}
