//! `tupelo copy`: decodes ntuples and writes them again.

pub(super) mod append;
mod choices;
pub(super) mod diff;
pub(super) mod export;
pub(super) mod import;
mod jobs;
pub(super) mod join;
pub(super) mod merge;
pub(super) mod operands;
mod raw;
mod split;
pub(super) mod target;
mod trees;

use std::collections::HashSet;
use std::ops::ControlFlow;

use tupelo::dataset::find;
use tupelo::ops::copy::{Copied, CopyOptions, copy, extend};
use tupelo::ops::merge::MissingBranches;
use tupelo::ops::{comes_with_trees, inspect};
use tupelo::reader::{Location, Object, Read, TREE_CLASSES};
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::WriteProgress;
use tupelo::{ErrorKind, File, FileWriter, MoveOptions, Remedy};

use self::choices::{Carrying, Renaming, SingleObjects};
use self::jobs::{Job, JobSearch, check_single};
use self::operands::{Operands, Skipping};
use self::split::{Split, Splitting};
use self::target::{Destination, NtupleOptions, Target, summarise};
use self::trees::{Baskets, TreeHow, TreeJobs};
use super::dump::object::has_no_entries;
use super::ls::{DIRECTORY_CLASS, NTUPLE_CLASS};
use super::{EntryRange, Selecting, SkipUnreadable, policy, warn_of_repeated};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::table::cut;

/// Maximum number of names in the warning about objects that are not copied.
const MAX_LISTED: usize = 5;
/// Maximum length of names and classes in it, in characters.
const MAX_NAME: usize = 60;

/// Copy ntuples and trees, with other fields, entries, columns, codec, page or cluster sizes
///
/// Without NAME, the newest cycle of every ntuple and tree in IN is copied; a warning lists objects that are not copied
/// (older cycles, and histograms without --objects). With several IN, ntuples or trees with the same name are
/// concatenated; their fields must be the same, except with --union. C++ types, descriptions, column encodings, attribute
/// sets and metadata are kept; with --entries or --cut, the entry ranges of attributes are adjusted. OUT appears when it
/// is complete. It cannot be one of the inputs, except with --append under another name.
///
/// A tree stays a tree: its baskets are copied as they are stored, or compressed again with --compression, and classes,
/// titles and user information are kept. --fields and --exclude choose branches, --inherits those of some classes.
/// Options that need its entries decoded are refused: `tupelo import` makes an ntuple of them.
///
/// IN:NAME may be another object, too, such as a histogram, which is copied as it is. A single one may have another name
/// in OUT.
///
/// Pages of whole clusters are copied as they are stored, without decompressing them, unless an option says how to
/// store them or a cut selects entries. IN and OUT may be in object stores (ntpl+s3://BUCKET/PREFIX,
/// ntpl+file:///DIRECTORY/NAME, daos://POOL/CONTAINER:NAME, ntpl+mirror:URI,URI).
///
/// --split-entries and --split-bytes write an ntuple as several files with numbers in their names. Each is complete when
/// it appears; after an interruption, the complete ones are kept. The objects of --objects are in the first one.
///
/// With --raw, IN is any one file, which is copied byte by byte between any two locations. A copy to a local file that
/// was interrupted is kept as OUT.part; the same command continues it if IN is the same version.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo copy [OPTIONS] <IN[:NAME]>... <OUT[:NAME]>")]
#[command(after_help = "Examples:
  tupelo copy events.root small.root --fields 'Muon_*' --entries :100000
  tupelo copy events.root dimuons.root --cut 'len(Muon_pt) == 2 and sum(Muon_charge) == 0'
  tupelo copy events.root with_ht.root --define 'ht=sum(Jet_pt)' --cut 'ht > 500'
  tupelo copy events.root renamed.root --rename MET_pt=met --objects
  tupelo copy plots.root:dir/mass mass.root:higgs
  tupelo copy events.root part.root --split-bytes 2GiB    # part_0001.root, part_0002.root, ...
  tupelo copy 'run*.root' all.root
  tupelo copy run*.root -o union.root --force --union --skip-errors
  tupelo copy events.root:Events all.root:run1/Events --append --compression lzma:7
  tupelo copy more.root all.root --append --extend
  tupelo copy daod.root:CollectionTree variant.root --auto-flush 100 --basket-bytes 64KiB --compression lzma:1
  tupelo copy events.root ntpl+file:events --mapping cage:1MiB
  tupelo copy ntpl+file:events again.root
  tupelo copy --raw events.root backup.root")]
pub(crate) struct Args {
    #[command(flatten)]
    operands: Operands,
    /// Copy the bytes of one file, of any format, without decoding them
    #[arg(long, conflicts_with_all = DECODING)]
    raw: bool,
    /// With several inputs: also copy the fields that are missing in some of them, as optional values, which are null
    /// for their entries. The fields of --cut and --define must exist in every file
    #[arg(long, conflicts_with = "extend")]
    union: bool,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    fields: super::Fields,
    /// Of trees, only the branches whose class is CLASS or inherits from it, and those of --fields
    #[arg(long, value_name = "CLASS")]
    inherits: Vec<String>,
    #[command(flatten)]
    baskets: Baskets,
    #[command(flatten)]
    renaming: Renaming,
    #[command(flatten)]
    range: EntryRange,
    #[command(flatten)]
    condition: super::Condition,
    #[command(flatten)]
    carrying: Carrying,
    #[command(flatten)]
    splitting: Splitting,
    #[command(flatten)]
    skip: super::SkipUnreadable,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::Reading,
}

/// The options that conflict with `--raw`.
const DECODING: [&str; 27] = [
    "union",
    "inherits",
    "basket_bytes",
    "auto_flush",
    "branch_compression",
    "split_level",
    "skip_errors",
    "fields",
    "exclude",
    "renames",
    "entries",
    "define",
    "expression",
    "objects",
    "split_entries",
    "split_bytes",
    "compression",
    "page_bytes",
    "cluster_bytes",
    "checkpoint",
    "append",
    "name",
    "extend",
    "new_cycle",
    "mapping",
    "memory_budget",
    "skip_unreadable",
];

impl Args {
    /// Whether options need entries of trees decoded.
    fn decodes(&self) -> bool {
        self.for_ntuples().is_some()
    }

    /// Whether only some entries are copied.
    fn selects(&self) -> bool {
        self.condition.has_cut() || !self.range.is_whole()
    }

    /// How ntuples are copied.
    fn how(&self) -> CopyOptions {
        CopyOptions::from(self.ntuple.pages()).with_renames(self.renaming.pairs())
    }

    /// Whether the trees of whole files are copied.
    fn takes_trees(&self) -> bool {
        !self.decodes() && !self.selects() && !self.target.extends()
    }

    /// The options that only ntuples and trees have, whether they are given, and for those that trees do not have what to use
    /// instead.
    fn for_entries(&self) -> [(&'static str, bool, Option<&'static str>); 11] {
        let defined = "`tupelo export` writes its entries again, also with --define; `tupelo import` makes an ntuple";
        let split = "copy ranges of entries one by one with --entries, or make an ntuple with `tupelo import`";
        let sizes = "--basket-bytes and --auto-flush are for trees; `tupelo import` makes an ntuple";
        let renamed = "`tupelo import` makes an ntuple of a tree, with --rename";
        let united = "`tupelo merge --mode union` adds branches that some files lack";
        [
            ("--fields or --exclude", !self.fields.is_empty(), None),
            ("--entries", !self.range.is_whole(), None),
            ("--cut", self.condition.has_cut(), None),
            ("--define", self.condition.has_columns(), Some(defined)),
            ("--rename", !self.renaming.is_empty(), Some(renamed)),
            ("--union", self.union, Some(united)),
            ("--inherits", !self.inherits.is_empty(), None),
            ("--basket-bytes, --auto-flush, --branch-compression or --split-level", !self.baskets.is_empty(), None),
            ("--split-entries or --split-bytes", !self.splitting.is_empty(), Some(split)),
            ("--page-bytes or --cluster-bytes", self.ntuple.has_sizes(), Some(sizes)),
            ("--extend", self.target.extends(), None),
        ]
    }

    /// The first option that is given and that trees do not have, and what to use instead.
    fn for_ntuples(&self) -> Option<(&'static str, &'static str)> {
        let given = self.for_entries().into_iter().filter(|(_, is_given, _)| *is_given);
        given.filter_map(|(option, _, instead)| Some((option, instead?))).next()
    }

    /// Refuses options that need entries of trees decoded.
    fn check_trees(&self) -> Result<(), Failure> {
        match self.for_ntuples() {
            Some((option, hint)) => {
                Err(Failure::usage(format_args!("{option} cannot be used with trees")).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// How trees are copied.
    fn moving(&self) -> Result<MoveOptions, Failure> {
        let (wanted, unwanted) = self.fields.chosen();
        self.baskets.apply(
            MoveOptions::default()
                .with_compression(self.ntuple.given_compression())
                .with_branches(wanted)
                .without_branches(unwanted)
                .with_heirs_of(self.inherits.iter().cloned()),
        )
    }
}

/// An ntuple to write.
struct Copy {
    job: Job,
    read: Read,
    /// Number of fields that are left out.
    skipped: usize,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (inputs, output) = args.operands.split("copy")?;
    let storage = args.reading.storage()?;
    if args.raw {
        return match inputs {
            [input] => raw::run(input, output, &args.operands, &args.target, storage, console),
            _ => {
                let several = Failure::usage(format_args!("--raw copies a single file, found {}", inputs.len()));
                Err(several.with_hint("copy the files one by one"))
            }
        };
    }
    let locations = find(inputs, storage)?;
    let source = if let [only] = inputs { Some(only.as_str()) } else { None };
    let to = args.target.locate(output, source)?;
    args.ntuple.check_checkpoint(&to)?;
    warn_of_repeated(&locations, "copied", console);
    let inputs = Inputs::of(&locations);
    let is_own_target = inputs.contain(&to);
    // All inputs are checked before anything is written.
    let (mut trees, mut objects, mut others) = (TreeJobs::default(), SingleObjects::default(), Vec::new());
    trees.take_named(&args.reading, &locations, to.ntuple_name(), |location, object| {
        match object.filter(has_no_entries) {
            Some(object) => objects.add(object, location, to.ntuple_name()),
            None => {
                others.push(location.clone());
                Ok(())
            }
        }
    })?;
    if !trees.is_empty() {
        args.check_trees()?;
    }
    let copies = copies(args, &others, to.ntuple_name(), &mut trees, console)?;
    trees.name(to.ntuple_name(), copies.len() + objects.count())?;
    objects.check_name(to.ntuple_name(), copies.len())?;
    if copies.is_empty() && trees.is_empty() {
        objects.check_options(&args.for_entries())?;
    }
    let is_for_trees = !args.inherits.is_empty() || !args.baskets.is_empty();
    if let Some(copy) = copies.first().filter(|_| is_for_trees) {
        let what = format_args!(
            "--inherits, --basket-bytes, --auto-flush, --branch-compression and --split-level are for trees, but '{}' is an \
             ntuple",
            copy.job.name
        );
        return Err(Failure::usage(what).with_hint("select a tree as IN:NAME"));
    }
    args.operands.check(&to, &inputs, &args.target)?;
    check_single(copies.iter().map(|copy| &copy.job), &to)?;
    let (mut summaries, mut left_out, mut carried) = (Vec::new(), Vec::new(), HashSet::new());
    let carry = |writer: &FileWriter| {
        args.carrying.carry((&args.reading, &args.skipping), &locations, &args.ntuple, writer, console)
    };
    if !args.splitting.is_empty() {
        if !objects.is_empty() {
            let what = "--split-entries and --split-bytes write one ntuple, and no object that is named";
            return Err(Failure::usage(what).with_hint("--objects=PATH copies it to the first file"));
        }
        let copy = split::single(&copies, !trees.is_empty(), &to)?;
        let split = Split { args, copy, to: &to, inputs: &inputs, storage, console };
        let written = split.write(|writer| {
            carried = carry(writer)?;
            Ok(())
        })?;
        summarise(&copy.job.name, &written, console);
        warn_left(args, &locations, &carried, console)?;
        return args.skip.check(copy.skipped, &to.to_string());
    }
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        // Their keys must be in the first 2 GiB.
        carried = carry(writer)?;
        let places = (&args.reading, &args.target);
        objects.write(places, &args.ntuple, writer, &carried, console)?;
        let how = TreeHow {
            moving: args.moving()?,
            missing: MissingBranches::Refuse,
            baskets: &args.baskets,
            compression: args.ntuple.given_compression(),
            skipping: &args.skipping,
            range: &args.range,
            condition: &args.condition,
            fields: &args.fields,
        };
        let Some(written) = trees.write(places, &how, writer, interrupt, console)? else {
            return Ok(ControlFlow::Break(()));
        };
        left_out.extend(written.left_out);
        summaries.extend(written.written);
        let names = copies.iter().map(|copy| copy.job.name.as_str());
        let destinations = args.target.destinations(writer, names, (&to, is_own_target))?;
        for (copy, destination) in copies.iter().zip(destinations) {
            let written = match sealed_input(&copy.job, destination, args, &to) {
                Some(input) => copy_sealed(&copy.job, input, args, writer, interrupt, console)?,
                None => {
                    let what = (copy.job.name.as_str(), &copy.read);
                    let written = write(what, args.how(), destination, &args.ntuple, writer, interrupt, console)?;
                    written.map(|Written { progress, lost }| {
                        left_out.extend(lost);
                        progress
                    })
                }
            };
            let Some(written) = written else {
                return Ok(ControlFlow::Break(()));
            };
            summaries.push((copy.job.name.clone(), written));
        }
        let is_any = !summaries.is_empty() || !carried.is_empty() || !objects.is_empty();
        if !is_any && left_out.is_empty() {
            return Err(Failure::new("the inputs contain neither entries nor objects that are chosen"));
        }
        check_any(is_any, &left_out)?;
        Ok(ControlFlow::Continue(()))
    })?;
    summaries.iter().for_each(|(name, written)| summarise(name, written, console));
    warn_left(args, &locations, &carried, console)?;
    let to = to.to_string();
    check_lost(&left_out, &args.skip, &to, console)?;
    args.skip.check(copies.iter().map(|copy| copy.skipped).sum(), &to)
}

/// The ntuples to write. The inputs of each must have the same fields, except with `--union`.
fn copies(
    args: &Args,
    locations: &[Location],
    name: Option<&str>,
    trees: &mut TreeJobs,
    console: &Console,
) -> Result<Vec<Copy>, Failure> {
    let finding =
        JobSearch { reading: &args.reading, skipping: &args.skipping, policy: policy(args.union), name, console };
    let names = |location: &Location| names(args, location, trees);
    let jobs = finding.jobs(locations, names)?;
    check_complete(&jobs)?;
    let copy = |job: Job| {
        let selecting = Selecting { with_counters: true, ..Selecting::default() };
        let chosen = args.fields.select(&job.table, Some(&args.condition), &selecting)?;
        if !args.union {
            let hint = "--union copies them with nulls for the other files; --exclude FIELDS leaves them out";
            chosen.check_missing(&job.table, hint)?;
            chosen.check_types(&job.table, "--union copies them in the type that holds all values")?;
        }
        chosen.tell(&job.table, console);
        // Checks the expressions before the output is created.
        let read = args.condition.apply(chosen.read)?.entries(args.range.of(job.table.entries(), console));
        args.how().check(&read)?;
        if read.schema_with_computed()?.fields.is_empty() && !job.table.schema().fields.is_empty() {
            let input = job.locations.first().map_or_else(String::new, Location::to_string);
            return Err(Failure::usage(format_args!("{input}: no field is selected; select at least one")));
        }
        Ok(Copy { job, read, skipped: chosen.skipped.len() })
    };
    jobs.into_iter().map(copy).collect()
}

/// Refuses a file that lacks one of the ntuples: its entries would be missing there.
fn check_complete(jobs: &[Job]) -> Result<(), Failure> {
    for (job, other) in jobs.iter().flat_map(|job| jobs.iter().map(move |other| (job, other))) {
        let has = |job: &Job, file: &str| job.locations.iter().any(|location| location.file == file);
        if let Some(lacking) = other.locations.iter().find(|location| !has(job, &location.file)) {
            let file = display_name(&lacking.file);
            let having = job.locations.first().map_or("", |location| &location.file);
            let missing = format_args!("{file} contains no ntuple '{}', but {} does", job.name, display_name(having));
            return Err(Failure::usage(missing)
                .with_hint("select one ntuple of each file as IN:NAME, or copy the files one by one with --append"));
        }
    }
    Ok(())
}

/// The names of the ntuples of a file, whose trees are added to the others.
fn names(args: &Args, location: &Location, trees: &mut TreeJobs) -> Result<Vec<String>, Failure> {
    let file = args.reading.open_uncounted(location)?;
    let (names, of_trees) = (file.ntuple_names()?, file.tree_names()?);
    if args.takes_trees() {
        trees.add_all(&of_trees, location);
    } else if names.is_empty() && !of_trees.is_empty() {
        args.check_trees()?;
        trees.add_all(&of_trees, location);
    }
    if names.is_empty() && trees.is_empty() && args.carrying.is_empty() {
        // The error of the engine lists the contents of the file.
        return match file.ntuple(None) {
            Err(error) if file.objects().is_ok_and(|objects| !objects.is_empty()) => {
                Err(Failure::from(error).with_hint("--objects copies histograms and other objects"))
            }
            Err(error) => Err(super::no_ntuple(error, location)),
            Ok(ntuple) => Ok(vec![ntuple.path().to_owned()]),
        };
    }
    Ok(names)
}

/// The path of an object without its cycle.
fn without_cycle(path: &str) -> &str {
    path.split(';').next().unwrap_or_default()
}

/// The only input of a copy that keeps the pages as they are stored.
fn sealed_input<'j>(job: &'j Job, destination: Destination, args: &Args, to: &Location) -> Option<&'j Location> {
    let [input] = job.locations.as_slice() else { return None };
    let has_objects = is_object_uri(&input.file) || is_object_uri(&to.file);
    let is_whole = args.fields.is_empty() && args.condition.is_empty() && args.range.is_whole();
    let is_whole = is_whole && args.renaming.is_empty();
    (has_objects && is_whole && !args.ntuple.has_pages() && destination == Destination::New).then_some(input)
}

/// Copies an ntuple with its pages as they are stored.
fn copy_sealed(
    job: &Job,
    input: &Location,
    args: &Args,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let source = args.reading.open_file(input, console)?;
    let ntuple = source.ntuple(input.object.as_deref())?;
    console.watch().follow(&ntuple.clone().into());
    let mut progress: Progress = console.progress(&job.name, inspect::summary(&ntuple)?.sizes.stored_bytes, "B");
    let mut report = progress.until(interrupt);
    let copied = file.copy_sealed(&ntuple, &job.name, &mut report);
    copied.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => {
            Failure::new(error).with_hint("with --compression zstd:5 the entries are decoded and written again")
        }
        _ => error.into(),
    })
}

/// What was written of an ntuple.
struct Written {
    progress: WriteProgress,
    /// What was selected but not copied: one sentence each.
    lost: Vec<String>,
}

/// Writes what is read.
fn write(
    (name, read): (&str, &Read),
    how: CopyOptions,
    destination: Destination,
    ntuple: &NtupleOptions,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Written>, Failure> {
    let mut progress: Progress = console.progress(name, read.count(), "entries");
    let mut report = progress.until(interrupt);
    let (read, options) = (read.clone(), ntuple.options());
    let copied = match destination {
        Destination::New => copy(read, file, name, options, how, &mut report)?,
        // Fields that differ from those of the ntuple.
        Destination::Existing => {
            extend(read, file, name, options, how, &mut report).map_err(|error| Failure::from(error).of_data())?
        }
    };
    if let Some(what) = copied.as_ref().and_then(Copied::note) {
        console.note(&format!("{name}: {what}"));
    }
    Ok(copied.map(|copied| Written { progress: copied.written, lost: copied.warnings }))
}

/// A failure of joining tables: only names of fields are given with arguments.
fn join_failure(error: tupelo::Error) -> Failure {
    let is_named = error.remedy() == Some(Remedy::Prefix);
    let failure = Failure::from(error);
    if is_named { failure } else { failure.of_data() }
}

/// Refuses to write a file with nothing in it, if something was left out.
fn check_any(is_any: bool, left_out: &[String]) -> Result<(), Failure> {
    match left_out {
        [first, ..] if !is_any => {
            let nothing = Failure::new(format_args!("nothing can be written: {first}"));
            Err(nothing.with_hint("--exclude leaves out single branches of trees"))
        }
        _ => Ok(()),
    }
}

/// Warns about what an output lacks although it was selected; a failure unless that is accepted.
fn check_lost(lost: &[String], skip: &SkipUnreadable, to: &str, console: &Console) -> Result<(), Failure> {
    lost.iter().for_each(|what| console.warn(&format!("not copied: {what}")));
    if lost.is_empty() || skip.is_given() {
        return Ok(());
    }
    let incomplete = Failure::new(format_args!("{to} was written without what the warnings name"));
    Err(incomplete.with_hint("--skip-unreadable accepts that"))
}

/// Warns about what is not copied of whole files.
fn warn_left(args: &Args, locations: &[Location], carried: &HashSet<String>, console: &Console) -> Result<(), Failure> {
    let skipped = args.skipping.left_out();
    for location in locations {
        let is_read = !skipped.iter().any(|(other, _)| other.file == location.file);
        if location.object.is_none() && is_read {
            let file = args.reading.open_uncounted(location)?;
            let takes_trees = args.takes_trees() || file.ntuple_names()?.is_empty();
            warn_not_copied(&file, takes_trees, carried, console);
        }
    }
    Ok(())
}

/// Warns about objects other than the newest cycles of ntuples, of trees if they were copied, and of what was carried.
fn warn_not_copied(file: &File, takes_trees: bool, carried: &HashSet<String>, console: &Console) {
    // An unreadable directory was already reported when the ntuples were listed.
    let objects = file.objects().unwrap_or_default();
    let is_tree = |object: &Object| TREE_CLASSES.contains(&object.class_name.as_str());
    let mut left: Vec<_> = objects.iter().collect();
    left.retain(|object| {
        let is_tree = is_tree(object);
        let is_of_trees = (is_tree || comes_with_trees(&object.class_name)) && takes_trees;
        let is_entries = object.class_name == NTUPLE_CLASS || is_of_trees;
        let is_copied = object.is_newest && (is_entries || !is_tree && carried.contains(&object.path));
        !is_copied && !object.class_name.starts_with(DIRECTORY_CLASS)
    });
    // Trees have entries: each is named.
    left.sort_by_key(|object| !is_tree(object));
    let listed = left.iter().filter(|object| is_tree(object)).count().max(MAX_LISTED);
    let named: Vec<_> = left
        .iter()
        .take(listed)
        .map(|object| {
            let (path, class) = (cut(&object.path, MAX_NAME), cut(&object.class_name, MAX_NAME));
            format!("'{path};{}' ({class})", object.cycle)
        })
        .collect();
    let more = match left.len().saturating_sub(listed) as u64 {
        0 => String::new(),
        more => format!(" and {} more", crate::table::count(more)),
    };
    if !named.is_empty() {
        console.warn(&format!("{}: not copied: {}{more}", file.name(), named.join(", ")));
    }
}
