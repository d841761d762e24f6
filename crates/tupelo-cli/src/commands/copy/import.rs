//! `tupelo import`: trees and files of other formats as ntuples.

mod foreign;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::import::{Import, ImportOptions, Validation};
use tupelo::reader::{Location, Skipped};
use tupelo::storage::display_name;
use tupelo::writer::WriteProgress;
use tupelo::{File, FileWriter, OpenOptions};

use super::super::fields::skipped_to_json;
use super::super::{Selecting, SkipUnreadable, policy, warn_of_repeated};
use super::choices::{Carrying, Renaming};
use super::jobs::{Job, JobSearch};
use super::join::tell_friends;
use super::operands::{Operands, Skipping, check_report};
use super::target::{Destination, NtupleOptions, Target, summarise};
use crate::console::{Console, Output, Pending, Progress};
use crate::failure::Failure;
use crate::formats::Format;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::parse::Patterns;
use crate::table::things;

/// Number of entries compared by default, half of them at the beginning and half at the end.
const SAMPLE_ENTRIES: u64 = 1000;

/// Import TTrees and files of other formats as ntuples, and compare the result
///
/// Without TREE, every tree of IN is imported. Trees with the same name in several IN are concatenated. Branches become
/// fields of the same C++ types. Objects become records with the names of their classes, except where ROOT stores objects
/// of the class differently: see --no-class-names. As in ROOT's importer, arrays with a common counter become one collection and appear under their own names
/// as projected fields; the counters of selected arrays are included. OUT appears when it is complete; it is then read
/// again and compared with the trees, and the exit status is 1 if they differ. Branches that cannot be read or stored
/// in an ntuple are left out with a warning, and the exit status is 1 unless --skip-unreadable or --exclude is given.
///
/// IN may also be local files of another format, by their extensions or --format: Parquet, Arrow (files, streams,
/// Feather), CSV with the names of the columns in the first line, JSON lines, and NumPy (.npy, .npz). Several IN of the
/// same columns are concatenated. The ntuple has the name of the first file without its extension. Columns with missing
/// values become optional fields. What has no type there, such as times and decimal numbers, is refused: see
/// --allow-loss.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo import [OPTIONS] <IN[:TREE]>... <OUT[:NAME]>")]
#[command(after_help = "Examples:
  tupelo import nano.root:Events events.root
  tupelo import 'nano*.root:Events' all.root:Events --compression zstd:5
  tupelo import lhcb.root:DecayTree b2hhh.root --fields 'B_*,H1_*' --rename B_VertexChi2=B_chi2
  tupelo import daod.root:CollectionTree daod-ntuple.root:EventData --validate full --report report.json
  tupelo import events.parquet events.root:Events
  tupelo import 'run*.csv' -o runs.root --as Runs --allow-loss started")]
pub(crate) struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    fields: super::super::Fields,
    #[command(flatten)]
    range: super::super::EntryRange,
    #[command(flatten)]
    renaming: Renaming,
    /// Character that replaces dots in names, which an ntuple does not allow; names of ATLAS auxiliary stores always
    /// get colons [default: _]
    #[arg(long, value_name = "CHARACTER", default_value = "_", hide_default_value = true)]
    dots: char,
    /// Format of the files, if they are not ROOT files [default: by the extension of IN (.parquet, .arrow .arrows
    /// .feather .ipc, .csv .tsv, .jsonl .ndjson .json, .npy, .npz)]
    #[arg(long)]
    format: Option<Format>,
    /// Columns of other formats that may be stored with loss: times and durations as integers in their unit, dates in
    /// days or milliseconds, decimal numbers as double; the description of the field says so
    #[arg(long, value_name = "FIELDS")]
    allow_loss: Vec<Patterns>,
    /// Of CSV, the character between the values of a line, such as ';' or '\t' [default: ',', and a tab in .tsv]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Of CSV and JSON lines, infer the types from the first N entries [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    infer_rows: Option<u64>,
    /// Store each array with a counter as a separate list
    #[arg(long)]
    no_collections: bool,
    /// Leave out the names of classes, for readers that must make all fields by the names of their types, and have no
    /// dictionaries of the classes
    #[arg(long)]
    no_class_names: bool,
    /// Compare the ntuple with the trees, entry by entry: a sample of 1000 entries of each tree of each file, half from
    /// its beginning and half from its end; all entries (full); or none [default: sample]
    #[arg(long, value_name = "EXTENT", default_value = "sample", hide_default_value = true, value_parser = extent)]
    validate: u64,
    /// Write the results of the comparison to a JSON file, with a histogram of each numeric field
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    carrying: Carrying,
    #[command(flatten)]
    skip: SkipUnreadable,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::super::Reading,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(byte),
        _ => Err("expected one character, such as ';', or \\t for a tab".to_owned()),
    }
}

fn extent(text: &str) -> Result<u64, String> {
    match text {
        "sample" => Ok(SAMPLE_ENTRIES),
        "full" => Ok(u64::MAX),
        "none" => Ok(0),
        _ => Err("expected sample, full or none".to_owned()),
    }
}

/// An ntuple to write.
struct Imported {
    name: String,
    import: Import,
    /// The branches that are left out.
    skipped: Vec<Skipped>,
}

impl Imported {
    /// The number of things that are left out.
    fn left_out(&self) -> usize {
        self.skipped.len() + self.import.not_kept().len()
    }
}

/// The import of a job.
fn planned(args: &Args, job: Job, console: &Console) -> Result<Imported, Failure> {
    let (table, place) = (&job.table, format!("{}: '{}'", job.table.file_name(), job.table.path()));
    if table.ntuple().is_ok() {
        return Err(Failure::usage(format_args!("{place} is an ntuple")).with_hint("`tupelo copy` copies ntuples"));
    }
    let options = ImportOptions::default()
        .with_renames(args.renaming.pairs())
        .with_dots(args.dots)
        .with_collections(!args.no_collections)
        .with_class_names(!args.no_class_names);
    // The plan determines what can be decoded.
    let selecting = Selecting { with_counters: true, ..Selecting::default() };
    let mut chosen = args.fields.select(table, None, &selecting)?;
    chosen.check_missing(table, "--exclude FIELDS leaves them out; or import the files one by one with --append")?;
    let import = Import::new(chosen.read.clone().entries(args.range.of(table.entries(), console)), &options)?;
    chosen.skipped.extend_from_slice(import.skipped());
    chosen.tell(table, console);
    import.not_kept().iter().for_each(|what| console.warn(&format!("{place}: {what} is left out: ntuples have none")));
    tell_friends(table, console);
    tell_renamed(&place, import.renamed(), console);
    Ok(Imported { name: job.name, import, skipped: chosen.skipped })
}

/// Names the classes that an ntuple stores as others.
fn tell_renamed(place: &str, renamed: &BTreeMap<String, String>, console: &Console) {
    let (unnamed, others): (Vec<_>, Vec<_>) = renamed.iter().partition(|(_, stored)| stored.is_empty());
    if !unnamed.is_empty() {
        let names: Vec<&str> = unnamed.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        console.warn(&format!("{place}: without class names, as ROOT does not store such objects in ntuples: {names}"));
    }
    others.iter().for_each(|(name, stored)| console.warn(&format!("{place}: {name} is stored as {stored}")));
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (inputs, output) = args.operands.split("import")?;
    let storage = args.reading.storage()?;
    let locations = find(inputs, storage)?;
    let to = args.target.locate(output, None)?;
    args.ntuple.check_checkpoint(&to)?;
    warn_of_repeated(&locations, "imported", console);
    let inputs = Inputs::of(&locations);
    args.operands.check(&to, &inputs, &args.target)?;
    args.report.as_deref().map_or(Ok(()), |report| check_report(report, &to, &inputs))?;
    if let Some(format) = foreign::format(args, &locations)? {
        return foreign::run(args, format, &locations, &to, console);
    }
    let (imports, left_out) = imports(args, &locations, to.ntuple_name(), console)?;
    let mut summaries = Vec::with_capacity(imports.len());
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        args.carrying.carry((&args.reading, &args.skipping), &locations, &args.ntuple, writer, console)?;
        for imported in &imports {
            check_new(args, writer, &imported.name)?;
        }
        for imported in &imports {
            let Some(written) = write(imported, args, writer, interrupt, console)? else {
                return Ok(ControlFlow::Break(()));
            };
            summaries.push((&imported.name, written));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    summaries.iter().for_each(|(name, written)| summarise(name, written, console));
    compare(args, &to, &inputs, &imports, console)?;
    let skipped: usize = imports.iter().map(Imported::left_out).sum();
    args.skip.check(left_out + skipped, &to.to_string())
}

/// The ntuples to write, and the number of branches of trees that are left out.
fn imports(
    args: &Args,
    locations: &[Location],
    name: Option<&str>,
    console: &Console,
) -> Result<(Vec<Imported>, usize), Failure> {
    let finding = JobSearch { reading: &args.reading, skipping: &args.skipping, policy: policy(false), name, console };
    let jobs = finding.jobs(locations, |location| names(args, location))?;
    let is_one = jobs.len() == 1;
    let (mut imports, mut left_out) = (Vec::new(), 0);
    for job in jobs {
        let imported = planned(args, job, console)?;
        match imported.import.check() {
            Ok(()) => imports.push(imported),
            Err(error) if is_one => return Err(error.into()),
            Err(_) => {
                let name = &imported.name;
                console.warn(&format!("tree '{name}' is left out: none of its branches can be imported"));
                left_out += imported.skipped.len();
            }
        }
    }
    match imports.is_empty() {
        true => Err(Failure::new("none of the trees has a branch that can be imported")),
        false => Ok((imports, left_out)),
    }
}

/// Refuses to extend an ntuple.
fn check_new(args: &Args, writer: &FileWriter, name: &str) -> Result<(), Failure> {
    match args.target.destination(writer, name)? {
        Destination::New => Ok(()),
        Destination::Existing => Err(Failure::usage("`tupelo import` cannot extend an ntuple")
            .with_hint("--as NAME uses another name; `tupelo append` adds the entries of a new one")),
    }
}

/// The names of the trees at a location.
fn names(args: &Args, location: &Location) -> Result<Vec<String>, Failure> {
    let file = args.reading.open_uncounted(location)?;
    let names = file.tree_names()?;
    if names.is_empty() {
        file.check_saved()?;
        return Err(Failure::new(format_args!("{} contains no tree", display_name(&location.file))));
    }
    Ok(names)
}

fn write(
    Imported { name, import, .. }: &Imported,
    args: &Args,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let mut progress: Progress = console.progress(name, import.count(), "entries");
    let mut report = progress.until(interrupt);
    Ok(import.write(file, name, args.ntuple.options(), &mut report)?)
}

/// Compares the ntuples with their trees, and reports.
fn compare(
    args: &Args,
    to: &Location,
    inputs: &Inputs,
    imports: &[Imported],
    console: &Console,
) -> Result<(), Failure> {
    if args.validate == 0 && args.report.is_none() {
        return Ok(());
    }
    let file = written(args, to)?;
    let mut validations = Vec::new();
    for Imported { name, import, .. } in imports {
        validations.push(import.validate(&file.ntuple(Some(name))?, args.validate)?);
    }
    let compared = imports.iter().zip(&validations).map(|(imported, validation)| Compared {
        name: &imported.name,
        skipped: &imported.skipped,
        not_kept: imported.import.not_kept(),
        renamed: Some(imported.import.renamed()),
        validation,
    });
    report(args, to, inputs, compared, console)
}

/// The file that was written.
fn written(args: &Args, to: &Location) -> Result<File, Failure> {
    let options = OpenOptions::at(Location { file: to.file.clone(), object: None });
    Ok(options.with_storage(args.reading.storage()?.clone()).open_file()?)
}

/// An ntuple that was compared with what it was made from.
struct Compared<'v> {
    name: &'v str,
    /// What is left out.
    skipped: &'v [Skipped],
    /// What trees have besides branches.
    not_kept: &'v [String],
    /// Classes that are stored as others, of trees.
    renamed: Option<&'v BTreeMap<String, String>>,
    validation: &'v Validation,
}

/// Reports how ntuples compare with what they were made from.
fn report<'v>(
    args: &Args,
    to: &Location,
    inputs: &Inputs,
    compared: impl Iterator<Item = Compared<'v>>,
    console: &Console,
) -> Result<(), Failure> {
    let mut reports = Vec::new();
    let mut different = None;
    for one in compared {
        let Compared { name, validation, .. } = one;
        let (fields, values) = (validation.fields.len() as u64, validation.fields.iter().map(|it| it.values).sum());
        console.note(&format!(
            "{name}: compared {} of {} in {}: {}",
            things(values, "value"),
            things(fields, "field"),
            things(validation.entries, "entry"),
            if validation.is_equal() { "equal" } else { "different" }
        ));
        if let Some(field) = validation.fields.iter().find(|field| !field.is_equal()) {
            let entry = field.first_difference.unwrap_or(0);
            let what =
                format!("{name}: field '{}' differs from branch '{}' in entry {entry}", field.field, field.branch);
            different.get_or_insert(what);
        }
        // With histograms of each field, it takes much memory.
        if args.report.is_some() {
            reports.push(to_json(&one));
        }
    }
    if let Some(path) = &args.report {
        let text = serde_json::to_string_pretty(&Value::from(reports)).map_err(Failure::new)?;
        let (mut output, pending) = Output::open(Some(path), inputs)?;
        output.write_all((text + "\n").as_bytes()).and_then(|()| output.flush())?;
        pending.map_or(Ok(()), Pending::publish)?;
    }
    match different {
        None => Ok(()),
        Some(what) => Err(Failure::new(what).with_hint(format!("{to} was written; do not use it"))),
    }
}

fn to_json(Compared { name, skipped, not_kept, renamed, validation }: &Compared<'_>) -> Value {
    let fields = validation.fields.iter().map(|field| {
        let mut value = json!({
            "branch": field.branch,
            "field": field.field,
            "values": field.values,
            "equal": field.is_equal(),
            "first_difference": field.first_difference,
        });
        if let Some(histogram) = &field.histogram {
            let (low, high) = histogram.range;
            value["histogram"] =
                json!({ "low": low, "high": high, "tree": histogram.counts[0], "ntuple": histogram.counts[1] });
        }
        value
    });
    let mut report = json!({
        "ntuple": name,
        "entries": validation.entries,
        "equal": validation.is_equal(),
        "skipped": skipped_to_json(skipped),
        "fields": fields.collect::<Vec<_>>(),
    });
    if let Some(renamed) = renamed {
        report["renamed"] = json!(renamed);
        report["not_kept"] = json!(not_kept);
    }
    report
}
