//! `tupelo copy`: decodes ntuples and writes them again.

pub(super) mod export;
pub(super) mod import;
pub(super) mod operands;
mod raw;
pub(super) mod target;

use std::ops::{ControlFlow, Range};

use tupelo::dataset::find;
use tupelo::ops::copy::{Copier, Union, check_alike};
use tupelo::ops::inspect;
use tupelo::reader::{Location, Read};
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::WriteProgress;
use tupelo::{ErrorKind, File, FileWriter, Table};

use self::operands::{Operands, Skipping};
use self::target::{Destination, NtupleOptions, Target, summarise};
use super::ls::{DIRECTORY_CLASS, NTUPLE_CLASS};
use super::{EntryRange, Matched, Selecting};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::{Inputs, repeated};
use crate::interrupt::Interrupt;
use crate::table::cut;

/// Maximum number of names in the warning about objects that are not copied.
const MAX_LISTED: usize = 5;
/// Maximum length of names and classes in it, in characters.
const MAX_NAME: usize = 60;

/// Copy ntuples, with other fields, entries, columns, codec, page or cluster sizes
///
/// Without NAME, the newest cycle of every ntuple in IN is copied; a warning lists objects that are not copied (trees,
/// histograms, older cycles). With several IN, ntuples with the same name are concatenated; their fields must be the
/// same, except with --union. C++ types, descriptions, column encodings, attribute sets and metadata are kept; with
/// --entries or --cut, the entry ranges of attributes are adjusted. OUT appears when it is complete. It cannot be one of
/// the inputs, except with --append under another name.
///
/// If IN or OUT is in an object store (ntpl+s3://BUCKET/PREFIX, ntpl+file:///DIRECTORY/NAME, daos://POOL/CONTAINER:NAME,
/// ntpl+mirror:URI,URI), pages are copied as they are stored, without decompressing them. They are decoded where several
/// inputs are concatenated, and with options that need the entries.
///
/// With --raw, IN is any one file, which is copied byte by byte between any two locations. A copy to a local file that
/// was interrupted is kept as OUT.part; the same command continues it if IN is the same version.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo copy [OPTIONS] <IN[:NAME]>... <OUT[:NAME]>")]
#[command(after_help = "Examples:
  tupelo copy events.root small.root --fields 'Muon_*' --entries :100000
  tupelo copy events.root dimuons.root --cut 'len(Muon_pt) == 2 and sum(Muon_charge) == 0'
  tupelo copy events.root with_ht.root --define 'ht=sum(Jet_pt)' --cut 'ht > 500'
  tupelo copy 'run*.root' all.root
  tupelo copy run*.root -o union.root --force --union --skip-errors
  tupelo copy events.root:Events all.root:run1/Events --append --compression lzma:7
  tupelo copy more.root all.root --append --extend
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
    #[command(flatten)]
    range: EntryRange,
    #[command(flatten)]
    condition: super::Condition,
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
const DECODING: [&str; 18] = [
    "union",
    "skip_errors",
    "fields",
    "exclude",
    "entries",
    "define",
    "expression",
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

/// Lists are copied with their counters. All entries of an ntuple can be decoded, or are damaged.
fn selecting(matched: Option<&Matched>) -> Selecting<'_> {
    Selecting { matched, with_counters: true, ..Selecting::default() }
}

/// An ntuple to write, with its inputs.
struct Job {
    name: String,
    parts: Vec<Part>,
    /// The fields of all inputs, with `--union`.
    union: Option<Union>,
    /// Number of fields that are left out.
    skipped: usize,
}

/// An entry range of an input.
struct Part {
    location: Location,
    entries: Range<u64>,
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
    if let Some(repeated) = repeated(&locations) {
        console.warn(&format!("{repeated} occurs more than once; its entries are copied each time"));
    }
    let inputs = Inputs::of(&locations);
    let is_own_target = inputs.contain(&to);
    // All inputs are checked before anything is written.
    let jobs = jobs(args, &locations, to.ntuple_name(), console)?;
    args.operands.check(&to, &inputs, &args.target)?;
    if let ([first, _, ..], true) = (jobs.as_slice(), is_object_uri(&to.file)) {
        let what = format_args!("a URI of an object store names a single ntuple, but {} would be written", jobs.len());
        return Err(Failure::usage(what).with_hint(format!("select one as IN:NAME, for example IN:{}", first.name)));
    }
    let mut summaries = Vec::with_capacity(jobs.len());
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        let mut destination = Vec::with_capacity(jobs.len());
        for job in &jobs {
            destination.push(args.target.destination(writer, &job.name)?);
            if destination.last() == Some(&Destination::Existing) && is_own_target {
                let itself = format!("{to} is also the input: an ntuple cannot be extended with itself");
                return Err(Failure::usage(itself).with_hint("--as NAME writes a copy under another name"));
            }
        }
        for (job, destination) in jobs.iter().zip(destination) {
            let written = match sealed_part(job, destination, args, &to) {
                Some(part) => copy_sealed(job, part, args, writer, interrupt, console)?,
                None => copy(job, destination, args, writer, interrupt, console)?,
            };
            let Some(written) = written else {
                return Ok(ControlFlow::Break(()));
            };
            summaries.push((&job.name, written));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    summaries.iter().for_each(|(name, written)| summarise(name, written, console));
    let left_out = args.skipping.left_out();
    let is_copied = |location: &&Location| !left_out.iter().any(|(other, _)| other == *location);
    for location in locations.iter().filter(|location| location.object.is_none()).filter(is_copied) {
        warn_not_copied(&args.reading.open_uncounted(location)?, console);
    }
    args.skip.check(jobs.iter().map(|job| job.skipped).sum(), &to.to_string())
}

/// The ntuples to write. The inputs of each must have the same fields, except with `--union`.
fn jobs(args: &Args, locations: &[Location], name: Option<&str>, console: &Console) -> Result<Vec<Job>, Failure> {
    let mut jobs: Vec<(Job, Read)> = Vec::new();
    let matched = args.union.then(|| Matched::new(true));
    let (mut first, mut any) = (None::<&Location>, None);
    for location in locations {
        let opened = open_ntuples(args, location, name);
        let Some(ntuples) = args.skipping.note(location, locations.len(), opened)? else { continue };
        let before = jobs.first().map_or(0, |(job, _)| job.parts.len());
        for (object, ntuple) in ntuples {
            let from = Location { file: location.file.clone(), object: Some(object) };
            let target = name.unwrap_or_else(|| without_cycle(ntuple.path())).to_owned();
            let chosen = args.fields.select(&ntuple, Some(&args.condition), &selecting(matched.as_ref()))?;
            chosen.tell(&ntuple, console);
            let (read, skipped) = (chosen.read, chosen.skipped.len());
            // A file of a union may lack all of the fields.
            if !args.union && read.schema().fields.is_empty() && !ntuple.schema().fields.is_empty() {
                let computed = args.condition.apply(read.clone())?.schema_with_computed()?;
                if computed.fields.is_empty() {
                    return Err(Failure::usage(format_args!("{from}: no field is selected; select at least one")));
                }
            }
            let part = Part { location: from, entries: 0..ntuple.entries() };
            match (jobs.iter_mut().find(|(job, _)| job.name == target), first) {
                (Some((job, first)), _) => {
                    match &mut job.union {
                        Some(union) => union.add(&args.condition.apply(read)?)?,
                        None => check_alike(first, &read)?,
                    }
                    job.parts.push(part);
                    job.skipped += skipped;
                }
                (None, None) => {
                    // Checks the expressions before the output is created.
                    let defined = args.condition.apply(read.clone())?;
                    let mut union = args.union.then(Union::default);
                    union.as_mut().map_or(Ok(()), |union| union.add(&defined))?;
                    jobs.push((Job { name: target, parts: vec![part], union, skipped }, read));
                }
                (None, Some(first)) => {
                    let (file, first) = (display_name(&location.file), display_name(&first.file));
                    let other = Failure::usage(format_args!("{file}: ntuple '{target}' is not in {first}"));
                    return Err(other.with_hint(MERGE_HINT));
                }
            }
            any = Some(ntuple);
        }
        if let (Some((job, _)), Some(first)) = (jobs.iter().find(|(job, _)| job.parts.len() <= before), first) {
            let (file, first) = (display_name(&location.file), display_name(&first.file));
            let missing = format_args!("{file} contains no ntuple '{}', but {first} does", job.name);
            return Err(Failure::usage(missing).with_hint(MERGE_HINT));
        }
        first.get_or_insert(location);
    }
    args.skipping.finish(locations.len(), console)?;
    if let (Some(matched), Some(table)) = (&matched, any) {
        matched.check(&args.fields, &args.condition, || Ok(table))?;
    }
    Ok(jobs.into_iter().map(|(job, _)| chosen(job, &args.range)).collect())
}

/// Opens the ntuples at a location, with their names.
fn open_ntuples(args: &Args, location: &Location, name: Option<&str>) -> Result<Vec<(String, Table)>, Failure> {
    let file = args.reading.open_uncounted(location)?;
    let names = names(&file, location)?;
    if let (Some(name), 2..) = (name, names.len()) {
        let several = Failure::usage(format_args!("{} ntuples cannot have the same name '{name}'", names.len()));
        return Err(several.with_hint("select one ntuple as IN:NAME, or omit the name of the output"));
    }
    let open = |object: String| {
        let ntuple = file.ntuple(Some(&object)).map_err(|error| super::no_ntuple(error, location))?;
        Ok((object, Table::from(ntuple)))
    };
    names.into_iter().map(open).collect()
}

const MERGE_HINT: &str = "select one ntuple of each file as IN:NAME, or copy the files one by one with --append";

/// The names of the ntuples at a location.
fn names(file: &File, location: &Location) -> Result<Vec<String>, Failure> {
    let names = match &location.object {
        Some(name) => vec![name.clone()],
        None => file.ntuple_names()?,
    };
    if names.is_empty() {
        // The error of the engine lists the contents of the file.
        return match file.ntuple(None) {
            Err(error) => Err(super::no_ntuple(error, location)),
            Ok(ntuple) => Ok(vec![ntuple.path().to_owned()]),
        };
    }
    Ok(names)
}

fn without_cycle(path: &str) -> &str {
    path.split(';').next().unwrap_or_default()
}

/// Limits the inputs to a range of all entries together.
fn chosen(mut job: Job, range: &EntryRange) -> Job {
    let all = job.parts.iter().map(|part| part.entries.end).sum();
    let wanted = range.of(all);
    let mut before = 0;
    for part in &mut job.parts {
        let count = part.entries.end;
        let place = |entry: u64| entry.saturating_sub(before).min(count);
        part.entries = place(wanted.start)..place(wanted.end);
        before += count;
    }
    job
}

/// The only input of a copy that keeps the pages as they are stored.
fn sealed_part<'j>(job: &'j Job, destination: Destination, args: &Args, to: &Location) -> Option<&'j Part> {
    let [part] = job.parts.as_slice() else { return None };
    let has_objects = is_object_uri(&part.location.file) || is_object_uri(&to.file);
    let is_whole = args.fields.is_empty() && args.condition.is_empty() && args.range.is_whole();
    (has_objects && is_whole && !args.ntuple.has_pages() && destination == Destination::New).then_some(part)
}

/// Copies an ntuple with its pages as they are stored.
fn copy_sealed(
    job: &Job,
    part: &Part,
    args: &Args,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let source = args.reading.open_file(&part.location, console)?;
    let ntuple = source.ntuple(part.location.object.as_deref())?;
    console.watch().follow(&ntuple.clone().into());
    let mut progress: Progress = console.progress(&job.name, inspect::summary(&ntuple)?.sizes.stored_bytes, "B");
    let mut report = |done| {
        progress.set(done);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let copied = file.copy_sealed(&ntuple, &job.name, &mut report);
    copied.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => {
            Failure::new(error).with_hint("with --compression zstd:5 the entries are decoded and written again")
        }
        _ => error.into(),
    })
}

fn copy(
    job: &Job,
    destination: Destination,
    args: &Args,
    file: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let total = job.parts.iter().map(|part| part.entries.end - part.entries.start).sum();
    let mut progress: Progress = console.progress(&job.name, total, "entries");
    let (mut copier, mut before) = (None, 0);
    let matched = job.union.is_some().then(|| Matched::new(true));
    for part in &job.parts {
        let source = args.reading.open_file(&part.location, console)?;
        let ntuple = Table::from(source.ntuple(part.location.object.as_deref())?);
        console.watch().follow(&ntuple);
        let read = args.fields.select(&ntuple, Some(&args.condition), &selecting(matched.as_ref()))?.read;
        let read = read.entries(part.entries.clone());
        let read = args.condition.apply(read)?;
        let copier = match &mut copier {
            Some(copier) => copier,
            none => none.insert(match (destination, &job.union) {
                (Destination::New, None) => Copier::create(&read, file, &job.name, args.ntuple.options())?,
                (Destination::New, Some(union)) => {
                    Copier::create_union(&read, union, file, &job.name, args.ntuple.options())?
                }
                (Destination::Existing, _) => Copier::extend(file, &job.name, args.ntuple.options())?,
            }),
        };
        let mut report = |done| {
            progress.set(before + done);
            if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if copier.append(read, &mut report)?.is_break() {
            return Ok(None);
        }
        before += part.entries.end - part.entries.start;
    }
    let Some(copier) = copier else { return Ok(Some(WriteProgress::default())) };
    copier.warnings().iter().for_each(|warning| console.warn(warning));
    Ok(Some(copier.finish()?))
}

/// Warns about objects other than the newest cycles of ntuples.
fn warn_not_copied(file: &File, console: &Console) {
    // An unreadable directory was already reported when the ntuples were listed.
    let objects = file.objects().unwrap_or_default();
    let mut left = objects.iter().filter(|object| {
        let is_copied = object.class_name == NTUPLE_CLASS && object.is_newest;
        !is_copied && !object.class_name.starts_with(DIRECTORY_CLASS)
    });
    let named: Vec<_> = left
        .by_ref()
        .take(MAX_LISTED)
        .map(|object| {
            let (path, class) = (cut(&object.path, MAX_NAME), cut(&object.class_name, MAX_NAME));
            format!("'{path};{}' ({class})", object.cycle)
        })
        .collect();
    let more = match left.count() as u64 {
        0 => String::new(),
        more => format!(" and {} more", crate::table::count(more)),
    };
    if !named.is_empty() {
        console.warn(&format!("{}: not copied: {}{more}", file.name(), named.join(", ")));
    }
}
