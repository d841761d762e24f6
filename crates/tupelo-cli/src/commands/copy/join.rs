//! `tupelo join`: the fields of several ntuples as one ntuple.

use std::ops::ControlFlow;

use clap::ValueEnum;
use tupelo::Table;
use tupelo::dataset::find;
use tupelo::reader::{Location, Unmatched};

use super::super::{Condition, EntryRange, Fields, Opened, Reading, Selecting, SkipUnreadable, policy};
use super::operands::Skipping;
use super::target::{NtupleOptions, Operand, Target, summarise};
use super::{Written, check_lost, join_failure, without_cycle, write};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::table::{count, things};

/// Join the fields of several ntuples or trees into one ntuple, by entry or by keys
///
/// Entries of the same number belong together, and all inputs have as many; or, with --on, entries with the same values of
/// integer fields such as run and event, in the order of the first input. Fields of the same name need a --prefix. OUT
/// appears when it is complete. Attribute sets and metadata are those of all inputs whose entries stay in their order.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo join [OPTIONS] <OUT[:NAME]> <IN[:NAME]>...")]
#[command(after_help = "Examples:
  tupelo join all.root events.root scores.root --prefix nn_
  tupelo join all.root 'run*.root:Events' scores.root:Scores --on run,event --unmatched drop
  tupelo join all.root tree.root:Events --friends
  tupelo join dimuons.root events.root scores.root --on run,event --cut 'len(Muon_pt) == 2 and score > 0.9' --fields 'Muon_*,score'")]
pub(crate) struct Args {
    /// Output
    #[arg(value_name = "OUT[:NAME]")]
    output: String,
    /// Inputs, each as FILE or FILE:NAME; wildcards match files, whose entries follow each other
    #[arg(value_name = "IN[:NAME]", required = true)]
    inputs: Vec<String>,
    /// Integer fields that say which entries belong together; they are read and kept in memory first
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    on: Vec<String>,
    /// What to do with entries of the first input whose keys another input lacks [default: error]
    #[arg(long, value_enum, value_name = "WHAT", requires = "on")]
    unmatched: Option<WhatUnmatched>,
    /// Also join the friends of trees, by entry or by their index: the names of their fields begin with the alias of the
    /// friend and '_'
    #[arg(long)]
    friends: bool,
    /// Text before the names of the fields of an input; given more than once, for the second, third, ... input. --fields and
    /// --exclude match names with it
    #[arg(long, value_name = "TEXT")]
    prefix: Vec<String>,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    range: EntryRange,
    #[command(flatten)]
    condition: Condition,
    #[command(flatten)]
    skip: SkipUnreadable,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: Reading,
}

/// What is done with entries of the first input that have no counterpart in another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhatUnmatched {
    /// Stop with an error that names the first unmatched entry
    Error,
    /// Keep them, with nulls in the fields of the other input
    Null,
    /// Leave them out
    Drop,
}

impl From<WhatUnmatched> for Unmatched {
    fn from(what: WhatUnmatched) -> Self {
        match what {
            WhatUnmatched::Error => Self::Error,
            WhatUnmatched::Null => Self::Null,
            WhatUnmatched::Drop => Self::Drop,
        }
    }
}

/// Says how to join the friends of a tree that are not joined.
pub(super) fn tell_friends(table: &Table, console: &Console) {
    if table.tree().is_some_and(|tree| !tree.friends().is_empty()) {
        let place = format!("{}:{}", table.file_name(), table.path());
        console.note(&format!("{place} has friends; `tupelo join OUT {place} --friends` joins their fields"));
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.reading.storage()?;
    let to = args.target.locate(&args.output, args.inputs.first().map(String::as_str))?;
    args.ntuple.check_checkpoint(&to)?;
    let mut prefixes = args.prefix.iter();
    if args.prefix.len() >= args.inputs.len() {
        let what = format_args!("found {} prefixes for {} inputs", args.prefix.len(), args.inputs.len());
        return Err(Failure::usage(what).with_hint("the fields of the first input keep their names"));
    }
    let (mut tables, mut locations): (Vec<(String, Table)>, Vec<Location>) = Default::default();
    let what = Opened { has_friends: args.friends, ..Opened::default() };
    for (number, input) in args.inputs.iter().enumerate() {
        let found = find(std::slice::from_ref(input), storage)?;
        let table = args.reading.chain(&found, policy(false), what, &args.skipping, console)?;
        args.skipping.finish(found.len(), console)?;
        if !args.friends {
            tell_friends(&table, console);
        }
        let prefix = if number == 0 { None } else { prefixes.next() };
        tables.push((prefix.cloned().unwrap_or_default(), table));
        locations.extend(found);
    }
    let sides = tables.clone();
    let joined = match args.on.as_slice() {
        [] => Table::join(tables),
        keys => Table::join_by(tables, keys, args.unmatched.map(Into::into).unwrap_or_default()),
    };
    let table = joined.map_err(join_failure)?;
    let all = sides.first().map_or(0, |(_, first)| first.entries());
    let left_out = all.saturating_sub(table.entries());
    let inputs = Inputs::of(&locations);
    let chosen = args.fields.select(
        &table,
        Some(&args.condition),
        &Selecting { with_counters: true, ..Selecting::default() },
    )?;
    chosen.tell(&table, console);
    for (input, (prefix, side)) in args.inputs.iter().zip(&sides) {
        let is_own = |name: &str| side.schema().fields.iter().any(|own| name.strip_prefix(prefix) == Some(&own.name));
        if !chosen.read.schema().fields.iter().any(|field| is_own(&field.name)) {
            console.warn(&format!("{input}: none of its fields is selected"));
        }
    }
    let read = args.condition.apply(chosen.read)?.entries(args.range.of(table.entries(), console));
    if read.schema_with_computed()?.fields.is_empty() {
        return Err(Failure::usage("no field is selected; select at least one"));
    }
    let name = to.ntuple_name().unwrap_or_else(|| without_cycle(table.path())).to_owned();
    let is_own_target = inputs.contain(&to);
    let mut summary = None;
    args.target.operand(Operand::First).write(&to, &inputs, storage, |writer, interrupt| {
        let names = std::iter::once(name.as_str());
        let destinations = args.target.destinations(writer, names, (&to, is_own_target))?;
        for destination in destinations {
            let what = (name.as_str(), &read);
            summary = write(what, args.ntuple.pages().into(), destination, &args.ntuple, writer, interrupt, console)?;
        }
        Ok(if summary.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    if left_out > 0 {
        let entries = things(all, "entry");
        console.note(&format!("{} of {entries} of the first input were left out: no counterpart", count(left_out)));
    }
    let to = to.to_string();
    if let Some(Written { progress, lost }) = &summary {
        summarise(&name, progress, console);
        check_lost(lost, &args.skip, &to, console)?;
    }
    args.skip.check(chosen.skipped.len(), &to)
}
