//! `tupelo import`: trees as ntuples.

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::import::{Import, ImportOptions, ImportPlan, Validation, copy_objects};
use tupelo::reader::{Location, Skipped};
use tupelo::storage::display_name;
use tupelo::writer::WriteProgress;
use tupelo::{FileWriter, OpenOptions, Table, Tree};

use super::super::fields::{Chosen, skipped_to_json};
use super::super::{Selecting, SkipUnreadable};
use super::operands::{Operands, Skipping, check_report};
use super::target::{Destination, NtupleOptions, Target, summarise};
use crate::console::{Console, Output, Pending, Progress};
use crate::failure::Failure;
use crate::inputs::{Inputs, repeated};
use crate::interrupt::Interrupt;
use crate::parse::{Patterns, patterns};
use crate::table::things;

/// Number of entries compared by default, half of them at the beginning and half at the end.
const SAMPLE_ENTRIES: u64 = 1000;

/// Import TTrees as ntuples, and compare the result
///
/// Without TREE, every tree of IN is imported. Trees with the same name in several IN are concatenated. Branches become
/// fields of the same C++ types; split objects become records without a class name, so that every program can read the
/// ntuple. As in ROOT's importer, arrays with a common counter become one collection and appear under their own names
/// as projected fields; the counters of selected arrays are included. OUT appears when it is complete; it is then read
/// again and compared with the trees, and the exit status is 1 if they differ. Branches that cannot be read or stored
/// in an ntuple are left out with a warning, and the exit status is 1 unless --skip-unreadable or --exclude is given.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo import [OPTIONS] <IN[:TREE]>... <OUT[:NAME]>")]
#[command(after_help = "Examples:
  tupelo import nano.root:Events events.root
  tupelo import 'run*.root:Events' all.root:Events --compression zstd:5
  tupelo import lhcb.root:DecayTree b2hhh.root --fields 'B_*,H1_*' --rename B_PX=B_px
  tupelo import daod.root:CollectionTree daod-ntuple.root:EventData --validate full --report report.json")]
pub(crate) struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    fields: super::super::Fields,
    #[command(flatten)]
    range: super::super::EntryRange,
    /// Rename a top-level field; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = rename)]
    rename: Vec<(String, String)>,
    /// Character that replaces dots in names, which an ntuple does not allow; names of ATLAS auxiliary stores always
    /// get colons [default: _]
    #[arg(long, value_name = "CHARACTER", default_value = "_", hide_default_value = true)]
    dots: char,
    /// Store each array with a counter as a separate list
    #[arg(long)]
    no_collections: bool,
    /// Compare the ntuple with the trees, entry by entry: a sample of 1000 entries of each tree of each file, half from
    /// its beginning and half from its end; all entries (full); or none [default: sample]
    #[arg(long, value_name = "EXTENT", default_value = "sample", hide_default_value = true, value_parser = extent)]
    validate: u64,
    /// Write the results of the comparison to a JSON file, with a histogram of each numeric field
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Copy objects other than trees and ntuples, such as histograms, under the same paths: all, or those whose path
    /// matches; may be repeated
    #[arg(long, value_name = "PATTERNS", num_args = 0..=1, require_equals = true, default_missing_value = "**")]
    objects: Vec<Patterns>,
    #[command(flatten)]
    skip: SkipUnreadable,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::super::Reading,
}

fn rename(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.to_owned(), new.to_owned())),
        _ => Err("expected OLD=NEW".to_owned()),
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
struct Job {
    name: String,
    import: Import,
    /// Where its trees are.
    trees: Vec<Location>,
    /// The branches left out of them.
    skipped: Vec<Skipped>,
}

impl Job {
    /// The plan for a tree, which is opened again.
    fn open(&self, index: usize, args: &Args, console: &Console) -> Result<(Tree, ImportPlan), Failure> {
        let table = args.reading.open_silently(&self.trees[index], None, console)?;
        let (tree, plan, _) = plan(args, &table)?;
        Ok((tree, plan))
    }
}

/// The plan for a single tree, and the fields chosen from it.
fn plan(args: &Args, table: &Table) -> Result<(Tree, ImportPlan, Chosen), Failure> {
    let Some(tree) = table.tree().cloned() else {
        let wrong = format_args!("{}: '{}' is an ntuple", table.file_name(), table.path());
        return Err(Failure::usage(wrong).with_hint("`tupelo copy` copies ntuples"));
    };
    let options = ImportOptions::default()
        .with_renames(args.rename.iter().cloned())
        .with_dots(args.dots)
        .with_collections(!args.no_collections);
    // The plan determines what can be decoded.
    let selecting = Selecting { with_counters: true, ..Selecting::default() };
    let mut chosen = args.fields.select(table, None, &selecting)?;
    let entries = args.range.of(tree.entries());
    let plan = ImportPlan::new(&tree, chosen.read.clone().entries(entries), &options)?;
    chosen.skipped.extend_from_slice(plan.skipped());
    Ok((tree, plan, chosen))
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (inputs, output) = args.operands.split("import")?;
    let storage = args.reading.storage()?;
    let locations = find(inputs, storage)?;
    let to = args.target.locate(output, None)?;
    args.ntuple.check_checkpoint(&to)?;
    if let Some(repeated) = repeated(&locations) {
        console.warn(&format!("{repeated} occurs more than once; its entries are imported each time"));
    }
    let inputs = Inputs::of(&locations);
    args.operands.check(&to, &inputs, &args.target)?;
    args.report.as_deref().map_or(Ok(()), |report| check_report(report, &to, &inputs))?;
    let (jobs, left_out) = jobs(args, &locations, to.ntuple_name(), console)?;
    let mut summaries = Vec::with_capacity(jobs.len());
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        carry_objects(args, &locations, writer, console)?;
        for job in &jobs {
            if args.target.destination(writer, &job.name)? == Destination::Existing {
                return Err(
                    Failure::usage("`tupelo import` cannot extend an ntuple").with_hint("--as NAME uses another name")
                );
            }
        }
        for job in &jobs {
            let Some(written) = import(job, args, writer, interrupt, console)? else {
                return Ok(ControlFlow::Break(()));
            };
            summaries.push((&job.name, written));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    summaries.iter().for_each(|(name, written)| summarise(name, written, console));
    compare(args, &to, &inputs, &jobs, console)?;
    let skipped: usize = jobs.iter().map(|job| job.skipped.len()).sum();
    args.skip.check(left_out + skipped, &to.to_string())
}

/// The ntuples to write, with the trees that become one, and the number of branches of trees that are left out.
fn jobs(
    args: &Args,
    locations: &[Location],
    name: Option<&str>,
    console: &Console,
) -> Result<(Vec<Job>, usize), Failure> {
    let (mut jobs, mut left_out): (Vec<Job>, usize) = (Vec::new(), 0);
    for location in locations {
        let opened = open_trees(args, location, name, console);
        let Some(trees) = args.skipping.note(location, locations.len(), opened)? else { continue };
        let is_one = trees.len() == 1;
        for (object, table) in trees {
            let (tree, plan, chosen) = plan(args, &table)?;
            chosen.tell(&table, console);
            let skipped = chosen.skipped;
            if plan.schema().fields.is_empty() && !is_one {
                console.warn(&format!("tree '{}' is left out: none of its branches can be imported", tree.path()));
                left_out += skipped.len();
                continue;
            }
            let location = Location { file: location.file.clone(), object: Some(object) };
            let target =
                name.map_or_else(|| tree.path().split(';').next().unwrap_or_default().to_owned(), str::to_owned);
            match jobs.iter_mut().find(|job| job.name == target) {
                Some(job) => {
                    job.import.add(&tree, plan)?;
                    job.trees.push(location);
                    let is_new = |it: &Skipped| !job.skipped.contains(it);
                    let new: Vec<Skipped> = skipped.into_iter().filter(is_new).collect();
                    job.skipped.extend(new);
                }
                None => {
                    let import = Import::new(tree, plan)?;
                    jobs.push(Job { name: target, import, trees: vec![location], skipped });
                }
            }
        }
    }
    args.skipping.finish(locations.len(), console)?;
    match jobs.is_empty() {
        true => Err(Failure::new("none of the trees has a branch that can be imported")),
        false => Ok((jobs, left_out)),
    }
}

/// Opens the trees at a location, with their names.
fn open_trees(
    args: &Args,
    location: &Location,
    name: Option<&str>,
    console: &Console,
) -> Result<Vec<(String, Table)>, Failure> {
    let file = args.reading.open_file(location, console)?;
    let names = match &location.object {
        Some(name) => vec![name.clone()],
        None => file.tree_names()?,
    };
    if names.is_empty() {
        return Err(Failure::usage(format_args!("{} contains no tree", display_name(&location.file))));
    }
    if let (Some(name), 2..) = (name, names.len()) {
        let several = Failure::usage(format_args!("{} trees cannot have the same name '{name}'", names.len()));
        return Err(several.with_hint("select one tree as IN:TREE, or omit the name of the output"));
    }
    let open = |object: String| {
        let table = file.table(Some(&object)).map_err(|error| super::super::no_ntuple(error, location))?;
        Ok((object, table))
    };
    names.into_iter().map(open).collect()
}

/// Copies the chosen objects, before the ntuples.
fn carry_objects(args: &Args, locations: &[Location], writer: &FileWriter, console: &Console) -> Result<(), Failure> {
    let (patterns, compression) = (patterns(&args.objects), args.ntuple.options().compression());
    let (mut known, mut read) = (HashSet::new(), HashSet::new());
    read.extend(args.skipping.left_out().into_iter().map(|(location, _)| location.file));
    for location in locations.iter().filter(|location| !patterns.is_empty() && read.insert(location.file.clone())) {
        let file = args.reading.open_file(location, console)?;
        for path in copy_objects(&file, writer, &patterns, compression, &mut known)? {
            let left_out = format!("{}: '{path}' is not copied: another input contains it", file.name());
            console.warn(&left_out);
        }
    }
    Ok(())
}

fn import(
    job: &Job,
    args: &Args,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let mut progress: Progress = console.progress(&job.name, job.import.count(), "entries");
    let mut report = |done| {
        progress.set(done);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let open = |index| job.open(index, args, console);
    job.import.write(file, &job.name, args.ntuple.options(), open, &mut report)
}

/// Compares the ntuples with their trees, and reports.
fn compare(args: &Args, to: &Location, inputs: &Inputs, jobs: &[Job], console: &Console) -> Result<(), Failure> {
    if args.validate == 0 && args.report.is_none() {
        return Ok(());
    }
    let options = OpenOptions::at(Location { file: to.file.clone(), object: None });
    let file = options.with_storage(args.reading.storage()?.clone()).open_file()?;
    let mut reports = Vec::new();
    let mut different = None;
    for job in jobs {
        let open = |index| job.open(index, args, console);
        let validation = job.import.validate(&file.ntuple(Some(&job.name))?, args.validate, open)?;
        let (fields, values) = (validation.fields.len() as u64, validation.fields.iter().map(|it| it.values).sum());
        console.note(&format!(
            "{}: compared {} of {} in {}: {}",
            job.name,
            things(values, "value"),
            things(fields, "field"),
            things(validation.entries, "entry"),
            if validation.is_equal() { "equal" } else { "different" }
        ));
        if let Some(field) = validation.fields.iter().find(|field| !field.is_equal()) {
            let entry = field.first_difference.unwrap_or(0);
            let what = format!(
                "{}: field '{}' differs from branch '{}' in entry {entry}",
                job.name, field.field, field.branch
            );
            different.get_or_insert(what);
        }
        reports.push(to_json(job, &validation));
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

fn to_json(job: &Job, validation: &Validation) -> Value {
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
    json!({
        "ntuple": job.name,
        "entries": validation.entries,
        "equal": validation.is_equal(),
        "skipped": skipped_to_json(&job.skipped),
        "fields": fields.collect::<Vec<_>>(),
    })
}
