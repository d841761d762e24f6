//! `tupelo merge`: many files as one.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use clap::ValueEnum;
use tupelo::MoveOptions;
use tupelo::dataset::{FieldPolicy, find};
use tupelo::ops::merge::{MissingBranches, merge_objects};
use tupelo::ops::{directories, other_objects};
use tupelo::reader::Location;

use super::super::fields::Chosen;
use super::super::{Condition, EntryRange, Fields, Selecting, warn_of_repeated};
use super::check_any;
use super::jobs::{Job, JobSearch, check_single};
use super::operands::Skipping;
use super::target::{NtupleOptions, Operand, Target, summarise};
use super::trees::{Baskets, TreeHow, TreeJobs};
use super::write;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::things;

/// Merge the ntuples and objects of many files into one file, without decompressing
///
/// The newest cycles of ntuples with the same path become one ntuple, in the order of the files. Pages are copied as they
/// are stored, in their codec and encoding, and their checksums are compared; what cannot stay as it is, such as numbers of
/// other types, is decoded. Attribute sets and metadata are kept. The baskets of trees
/// are copied as they are stored, too; they have no checksums of their own to compare, so that damage stays, which `tupelo
/// verify` finds. Histograms and profiles with the same path, axes and labels, efficiencies, graphs and TParameter are added up
/// as by hadd; of other objects, the first of each path is copied. Warnings name everything that OUT lacks, and the exit status
/// is then 1, except with --skip-unmergeable. OUT appears when it is complete.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo merge [OPTIONS] <OUT> <IN[:NAME]>...")]
#[command(after_help = "Examples:
  tupelo merge all.root run*.root
  tupelo merge all.root 'run*.root:Events' --mode union
  tupelo merge all.root run*.root --compression lzma:7 --cluster-bytes 50MiB")]
pub(crate) struct Args {
    /// Output
    #[arg(value_name = "OUT")]
    output: String,
    /// Inputs, as FILE or FILE:NAME; wildcards match files
    #[arg(value_name = "IN[:NAME]", required = true)]
    inputs: Vec<String>,
    /// What to do if ntuples have different fields, or trees different branches [default: strict]
    #[arg(long, value_enum, value_name = "MODE", default_value = "strict", hide_default_value = true)]
    mode: Mode,
    /// Exit with status 0 even if objects are left out because they cannot be merged, such as different texts with the same
    /// path; warnings name them
    #[arg(long)]
    skip_unmergeable: bool,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::super::Reading,
}

/// What is done with fields that some files lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Refuse them
    Strict,
    /// Keep the fields of all files, with zeros, empty texts and empty lists for the entries of files that lack them;
    /// arrays whose counter a tree uses have as many zeros as it says; numbers of different width get the wider type; trees
    /// are decoded for that
    Union,
    /// Keep the fields that all files have, numbers as with union
    Intersect,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.reading.storage()?;
    let locations = find(&args.inputs, storage)?;
    let to = args.target.locate(&args.output, None)?;
    args.ntuple.check_checkpoint(&to)?;
    warn_of_repeated(&locations, "copied", console);
    let inputs = Inputs::of(&locations);
    let is_own_target = inputs.contain(&to);
    // All inputs are checked before anything is written.
    let mut listed = Listed::default();
    let jobs = jobs(args, &locations, &to, &mut listed, console)?;
    if jobs.is_empty() && listed.with_objects.is_empty() && listed.trees.is_empty() {
        return Err(Failure::new("the files contain no ntuples and no other objects that can be merged"));
    }
    if !listed.trees.is_empty() && args.ntuple.has_sizes() {
        let what = "sizes of pages and clusters are for ntuples, but the files contain trees";
        return Err(Failure::usage(what).with_hint("select the ntuples as IN:NAME"));
    }
    let chosen = jobs.iter().map(|job| chosen(args, job, console)).collect::<Result<Vec<Chosen>, Failure>>()?;
    let skipped: usize = chosen.iter().map(|it| it.skipped.len()).sum();
    let mut left_out: Vec<String> = Vec::new();
    let mut summaries = Vec::new();
    args.target.operand(Operand::First).write(&to, &inputs, storage, |writer, interrupt| {
        // Their keys must be in the first 2 GiB.
        let files = &listed.with_objects;
        let mut has_objects = false;
        if !files.is_empty() {
            let open = |number: usize| args.reading.open_uncounted(&files[number]);
            args.target.check_objects(writer, &listed.objects)?;
            let merged = merge_objects(files.len(), open, writer, args.ntuple.compression())?;
            left_out.extend(merged.left_out.iter().map(|it| format!("'{}': {}", it.name, it.reason)));
            has_objects = merged.written > 0;
            if has_objects {
                let (objects, sums) = (things(merged.written, "object"), things(merged.sums, "sum"));
                console.note(&format!("{objects} besides ntuples and trees; {sums} of several files"));
            }
        }
        let places = (&args.reading, &args.target);
        let how = TreeHow {
            moving: MoveOptions::default().with_compression(args.ntuple.given_compression()),
            missing: args.mode.into(),
            baskets: &Baskets::default(),
            compression: args.ntuple.given_compression(),
            skipping: &args.skipping,
            range: &EntryRange::default(),
            condition: &Condition::default(),
            fields: &Fields::default(),
        };
        let Some(trees) = listed.trees.write(places, &how, writer, interrupt, console)? else {
            return Ok(ControlFlow::Break(()));
        };
        left_out.extend(trees.left_out);
        summaries.extend(trees.written);
        let names = jobs.iter().map(|job| job.name.as_str());
        let destinations = args.target.destinations(writer, names, (&to, is_own_target))?;
        for ((job, chosen), destination) in jobs.iter().zip(&chosen).zip(destinations) {
            let what = (job.name.as_str(), &chosen.read);
            let how = args.ntuple.pages().into();
            let Some(written) = write(what, how, destination, &args.ntuple, writer, interrupt, console)? else {
                return Ok(ControlFlow::Break(()));
            };
            left_out.extend(written.lost);
            summaries.push((job.name.clone(), written.progress));
        }
        check_any(!summaries.is_empty() || has_objects, &left_out)?;
        Ok(ControlFlow::Continue(()))
    })?;
    summaries.iter().for_each(|(name, written)| summarise(name, written, console));
    if left_out.is_empty() && skipped == 0 {
        return Ok(());
    }
    left_out.iter().for_each(|what| console.warn(&format!("not merged: {what}")));
    if args.skip_unmergeable {
        return Ok(());
    }
    let what = format_args!("{to} was written without what the warnings name");
    Err(Failure::new(what).with_hint(
        "use --skip-unmergeable to accept that, merge the ntuples alone as IN:NAME, or remove the other objects",
    ))
}

/// What files have besides ntuples.
#[derive(Default)]
struct Listed {
    trees: TreeJobs,
    /// The files with other objects or directories.
    with_objects: Vec<Location>,
    /// The paths of these.
    objects: BTreeSet<String>,
}

/// The ntuples to write.
fn jobs(
    args: &Args,
    locations: &[Location],
    to: &Location,
    listed: &mut Listed,
    console: &Console,
) -> Result<Vec<Job>, Failure> {
    let policy = if args.mode == Mode::Union { FieldPolicy::Defaults } else { FieldPolicy::Common };
    let finding =
        JobSearch { reading: &args.reading, skipping: &args.skipping, policy, name: to.ntuple_name(), console };
    let mut ntuples = Vec::new();
    listed.trees.take_named(&args.reading, locations, to.ntuple_name(), |location, _| {
        ntuples.push(location.clone());
        Ok(())
    })?;
    let jobs = finding.jobs(&ntuples, |location| {
        let file = args.reading.open_uncounted(location)?;
        let (trees, ntuples, others) = (file.tree_names()?, file.ntuple_names()?, other_objects(&file)?);
        let directories = directories(&file)?;
        if trees.is_empty() && ntuples.is_empty() && others.is_empty() && directories.is_empty() {
            file.check_saved()?;
            console.warn(&format!("{} contains nothing to merge", file.name()));
        }
        listed.trees.add_all(&trees, location);
        if !others.is_empty() || !directories.is_empty() {
            listed.with_objects.push(location.clone());
        }
        listed.objects.extend(others.into_iter().map(|object| object.path));
        Ok(ntuples)
    });
    let jobs = jobs.map_err(|failure| failure.with_union_hint("--mode union keeps the fields of all files"))?;
    check_single(&jobs, to)?;
    if let Some(job) = jobs.iter().find(|job| listed.trees.contains(&job.name)) {
        let what = format_args!("'{}' is a tree in some of the files, and an ntuple in others", job.name);
        return Err(Failure::new(what).with_hint("`tupelo import` makes ntuples of trees"));
    }
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).chain(listed.trees.names()).collect();
    if let Some(name) = names.into_iter().find(|name| listed.objects.contains(*name)) {
        let what = format_args!("'{name}' is an ntuple or a tree in some of the files, and another object in others");
        return Err(Failure::new(what).with_hint("select the ntuples or trees alone as IN:NAME"));
    }
    listed.trees.name(to.ntuple_name(), jobs.len())?;
    Ok(jobs)
}

impl From<Mode> for MissingBranches {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Strict => Self::Refuse,
            Mode::Union => Self::Fill,
            Mode::Intersect => Self::Drop,
        }
    }
}

/// All entries of an ntuple, with the fields that the mode keeps.
fn chosen(args: &Args, job: &Job, console: &Console) -> Result<Chosen, Failure> {
    let fields = Fields::default();
    let mut chosen = fields.select(&job.table, None, &Selecting { with_counters: true, ..Selecting::default() })?;
    if args.mode == Mode::Strict {
        let hint = match chosen.lacks_members() {
            true => "--mode intersect drops them; --mode union adds fields, but not members",
            false => "--mode union keeps them, with zeros for the other files; --mode intersect drops them",
        };
        chosen.check_missing(&job.table, hint)?;
        chosen.check_types(&job.table, "--mode union writes them in the type that holds all values")?;
    }
    for promoted in job.table.files().map(|files| files.promoted()).unwrap_or_default() {
        console.note(&format!("{}: {promoted}; written in the wider type", job.name));
    }
    if let Some(missing) = chosen.missing.take() {
        console.warn(&format!("{}: dropped the fields missing in some files: {missing}", job.name));
    }
    chosen.tell(&job.table, console);
    Ok(chosen)
}
