//! `tupelo append`: adds entries or fields to an ntuple in its file.

use std::ops::ControlFlow;

use tupelo::dataset::find;
use tupelo::ops::append::append_fields;
use tupelo::reader::{Location, Read, Unmatched};
use tupelo::schema::{Field, escaped};
use tupelo::{ErrorKind, Remedy, Table};

use super::super::{Definition, Fields, Opened, Reading, Selecting, SkipUnreadable, policy};
use super::operands::Skipping;
use super::target::{Destination, NtupleOptions, Target, summarise};
use super::{Written, check_lost, join_failure, without_cycle, write};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::{bytes, things};

/// Add entries, or fields for all entries, to an ntuple in its file
///
/// The entries of each IN, which has the same fields, are added behind those that INTO has. With --as-fields, the fields of
/// each IN are added to the entries of the same number, or with --on to those with the same values of integer fields such
/// as run and event. --define adds a field that is computed from others. What INTO has stays where it is, and readers see it
/// either as it was or with everything that was added.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo append [OPTIONS] <INTO[:NAME]> [IN[:NAME]]...")]
#[command(after_help = "Examples:
  tupelo append events.root more.root
  tupelo append events.root --define 'ht=sum(Jet_pt)'
  tupelo append events.root scores.root --as-fields --on run,event --prefix nn_")]
pub(crate) struct Args {
    /// The file and the ntuple to which something is added
    #[arg(value_name = "INTO[:NAME]")]
    into: String,
    /// Inputs, as FILE or FILE:NAME; wildcards match files
    #[arg(value_name = "IN[:NAME]")]
    inputs: Vec<String>,
    /// Add the fields of the inputs, not their entries
    #[arg(long, requires = "inputs")]
    as_fields: bool,
    /// With --as-fields: integer fields that say which entries belong together; they are read and kept in memory first.
    /// Entries of INTO that an input lacks are an error
    #[arg(long, value_name = "KEYS", value_delimiter = ',', requires = "as_fields")]
    on: Vec<String>,
    /// With --as-fields: text before the names of the fields of the inputs; --fields and --exclude match names with it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, requires = "as_fields")]
    prefix: String,
    /// Add a field that is computed for all entries, such as 'ht=sum(Jet_pt)': a name and an expression; may be repeated, and
    /// later expressions may use the name
    #[arg(long, value_name = "NAME=EXPRESSION")]
    define: Vec<Definition>,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    skip: SkipUnreadable,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let into = Location::parse(&args.into);
    let storage = args.reading.storage()?;
    if into.local_path().is_none() {
        let refused = Failure::usage(format_args!("{into}: only local files can be added to"));
        return Err(refused.with_hint("`tupelo copy` or `tupelo join` writes another file"));
    }
    if args.inputs.is_empty() && args.define.is_empty() {
        return Err(Failure::usage("found nothing to add; expected inputs or --define"));
    }
    if !args.inputs.is_empty() && !args.as_fields && !args.define.is_empty() {
        let refused = Failure::usage("--define adds a field to all entries, but the inputs add entries");
        return Err(refused.with_hint("add the entries first, then the field; or use --as-fields"));
    }
    let own = args.reading.open(&into, None, console)?;
    let name = without_cycle(own.path()).to_owned();
    own.ntuple().map_err(|error| match error.kind() {
        ErrorKind::Unsupported => Failure::new(error).with_hint("`tupelo export --append` adds another tree"),
        _ => error.into(),
    })?;
    let locations = find(&args.inputs, storage)?;
    let inputs = Inputs::of(&locations);
    let target = Target::adding();
    if args.as_fields || args.inputs.is_empty() {
        let (read, skipped) = late_fields(args, own, console)?;
        let mut written = None;
        target.write(&into, &inputs, storage, |file, interrupt| {
            let mut progress: Progress = console.progress(&name, read.count(), "entries");
            let mut report = progress.until(interrupt);
            written = append_fields(read.clone(), file, &name, args.ntuple.options(), &mut report)?;
            Ok(if written.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if let Some(written) = written {
            let fields = things(read.schema_with_computed()?.fields.len() as u64, "field");
            let (entries, stored) = (things(read.count(), "entry"), bytes(written.stored_bytes));
            console.note(&format!("{name}: added {fields} of {entries} in {stored}"));
        }
        return args.skip.check(skipped, &into.to_string());
    }
    if inputs.contain(&into) {
        let refused = Failure::usage(format_args!("{into} is also an input: an ntuple cannot be extended with itself"));
        return Err(refused.with_hint("`tupelo copy` writes it to another file twice"));
    }
    let table = args.reading.chain(&locations, policy(false), Opened::default(), &args.skipping, console)?;
    args.skipping.finish(locations.len(), console)?;
    let chosen = args.fields.select(&table, None, &Selecting { with_counters: true, ..Selecting::default() })?;
    chosen.check_missing(&table, "add the files one by one")?;
    chosen.tell(&table, console);
    let mut written = None;
    target.write(&into, &inputs, storage, |file, interrupt| {
        let what = (name.as_str(), &chosen.read);
        written =
            write(what, args.ntuple.pages().into(), Destination::Existing, &args.ntuple, file, interrupt, console)?;
        Ok(if written.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let into = into.to_string();
    if let Some(Written { progress, lost }) = &written {
        summarise(&name, progress, console);
        check_lost(lost, &args.skip, &into, console)?;
    }
    args.skip.check(chosen.skipped.len(), &into)
}

/// The fields to add: those of the inputs beside the ntuple, and computed ones; and the number of those that are left out.
fn late_fields(args: &Args, own: Table, console: &Console) -> Result<(Read, usize), Failure> {
    let kept: Vec<String> = own.unreadable::<&str>(&[], &[]).into_iter().map(|it| it.name).collect();
    // The columns of projected fields are in no read.
    let shown = own.schema().fields.iter().filter(|field| !field.is_hidden());
    let known: Vec<String> = shown.map(|field| escaped(&field.name)).collect();
    let mut tables = vec![(String::new(), own)];
    for input in &args.inputs {
        let found = find(std::slice::from_ref(input), args.reading.storage()?)?;
        let table = args.reading.chain(&found, policy(false), Opened::default(), &args.skipping, console)?;
        args.skipping.finish(found.len(), console)?;
        // Fields that the ntuple has, too, are in the way only if they are chosen.
        let is_shared = |field: &&Field| {
            let name = format!("{}{}", args.prefix, field.name);
            known.contains(&escaped(&name)) && !args.on.contains(&field.name) && !args.fields.choose(field, &name)
        };
        let shared: Vec<String> = table.schema().fields.iter().filter(is_shared).map(|it| it.name.clone()).collect();
        tables.push((args.prefix.clone(), table.without(&shared)?));
    }
    let table = match args.on.as_slice() {
        [] => Table::join(tables),
        keys => Table::join_by(tables, keys, Unmatched::Error),
    };
    let table = table.map_err(|error| {
        let is_unmatched = error.remedy() == Some(Remedy::Unmatched);
        let failure = join_failure(error);
        match is_unmatched {
            true => failure.with_hint("`tupelo join --unmatched null` writes such entries to another file"),
            false => failure,
        }
    })?;
    let chosen = args.fields.select(&table, None, &Selecting::default())?;
    // What cannot be read of the ntuple itself stays in it.
    let skipped = chosen.skipped.iter().filter(|it| !kept.contains(&it.name)).count();
    let (read, skipped) = match args.inputs.is_empty() {
        true => (chosen.read.without_fields(), 0),
        false => {
            chosen.tell(&table, console);
            (chosen.read.without(known)?, skipped)
        }
    };
    let define = |read: Read, column: &Definition| read.with_defined(&column.name, &column.expression);
    let read = args.define.iter().try_fold(read, define)?;
    match read.schema_with_computed()?.fields.is_empty() {
        true => Err(not_selected(args)),
        false => Ok((read, skipped)),
    }
}

fn not_selected(args: &Args) -> Failure {
    let failure = Failure::usage("no field is selected; select at least one of an input");
    match args.prefix.as_str() {
        "" => failure,
        prefix => failure.with_hint(format!("--fields matches names with the prefix, such as '{prefix}*'")),
    }
}
