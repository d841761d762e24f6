//! The engine and the bare codecs, timed without Python around them: `tupelo-bench MODE ARGUMENTS`.
//!
//! Each mode does its work once to warm up and then `REPEAT` times. It prints seconds, bytes read and a digest of the
//! answer as JSON for `bench/rivals/contestants.py`, and a line for humans to standard error. `tupelo-bench` alone lists the
//! modes. The number of threads is that of the environment variable `TUPELO_THREADS`.

mod analysis;
mod choose;
mod codec;
mod digest;
mod timing;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use arrow_array::RecordBatch;
use timing::Report;
use tupelo::schema::Schema;
use tupelo::{FileWriter, NtupleWriter, WriteOptions};

/// As the command and the Python package have it. Keeps what was freed for a moment: the memory of pages is used again, and need not be cleared by the system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;
type Mode = fn(&[&str], usize) -> Result<Report>;

/// Name, arguments and function of each mode; all have REPEAT as their last argument. `*` as COLUMNS are all of them.
const MODES: &[(&str, &str, Mode)] = &[
    ("read", "FILE NTUPLE COLUMNS", read),
    ("write", "FILE NTUPLE COLUMNS CODEC TARGET", write),
    ("dry-run", "FILE NTUPLE COLUMNS CODEC", dry_run),
    ("analysis", "FILE NTUPLE", analysis::run),
    ("mask", "FILE NTUPLE COLUMNS COLUMN VALUE", choose::mask),
    ("cut", "FILE NTUPLE COLUMNS COLUMN VALUE", choose::cut),
    ("random", "FILE NTUPLE COLUMN ENTRIES", choose::random),
    ("decompress", "FILE PAGES CODEC", codec::decompress),
    ("compress", "FILE PAGES CODEC LEVEL", codec::compress),
];

fn open(file: &str, ntuple: &str) -> Result<tupelo::Ntuple> {
    Ok(tupelo::open(&format!("{file}:{ntuple}")).open()?)
}

fn read(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, ntuple, columns] = arguments else { return Err("read wants three arguments".into()) };
    let names: Vec<&str> = columns.split(',').collect();
    let (report, batch) = timing::measure(repeat, || {
        let ntuple = open(file, ntuple)?;
        let read = if columns == "*" { ntuple.read_all() } else { ntuple.read(&names)? };
        Ok(read.to_batch()?)
    })?;
    report.with_batch(&batch)
}

fn columns_of(file: &str, name: &str, columns: &str) -> Result<(Schema, RecordBatch)> {
    let ntuple = open(file, name)?;
    let read = if columns == "*" { ntuple.read_all() } else { ntuple.read(columns.split(',').collect::<Vec<_>>())? };
    Ok((read.schema().clone(), read.to_batch()?))
}

/// Encodes and compresses the columns without storing them.
fn dry_run(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, name, columns, codec] = arguments else { return Err("dry-run takes four arguments".into()) };
    let (schema, batch) = columns_of(file, name, columns)?;
    let options = WriteOptions::default().with_compression(codec.parse()?);
    let (report, ()) = timing::measure(repeat, || {
        let mut ntuple = NtupleWriter::dry_run(name, &schema, options.clone())?;
        ntuple.write(&batch)?;
        ntuple.finish()?;
        Ok(())
    })?;
    report.with_batch(&batch)
}

/// Writes the columns into a new file, which is removed.
fn write(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, name, columns, codec, target] = arguments else { return Err("write wants five arguments".into()) };
    let (schema, batch) = columns_of(file, name, columns)?;
    let options = WriteOptions::default().with_compression(codec.parse()?);
    let (report, ()) = timing::measure(repeat, || {
        let file = FileWriter::create(target)?;
        let mut ntuple = file.ntuple(name, &schema, options.clone())?;
        ntuple.write(&batch)?;
        ntuple.finish()?;
        Ok(file.finish()?)
    })?;
    fs::remove_file(target)?;
    report.with_batch(&batch)
}

fn run(arguments: &[&str]) -> Result<()> {
    let Some((&name, arguments)) = arguments.split_first() else {
        for (name, arguments, _) in MODES {
            println!("{name} {arguments} REPEAT");
        }
        return Ok(());
    };
    let Some((_, wanted, mode)) = MODES.iter().find(|(mode, ..)| *mode == name) else {
        return Err(format!("no mode is called \"{name}\"").into());
    };
    let usage = || format!("tupelo-bench {name} {wanted} REPEAT");
    let (repeat, arguments) = arguments.split_last().ok_or_else(usage)?;
    if arguments.len() != wanted.split(' ').count() {
        return Err(usage().into());
    }
    let report = mode(arguments, repeat.parse().map_err(|_| usage())?)?;
    eprintln!("{report}");
    println!("{}", report.to_json());
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
