//! Trees that are copied or merged with their baskets as they are stored.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use tupelo::ops::merge::merge_tree;
use tupelo::reader::{Location, Tree};
use tupelo::storage::is_object_uri;
use tupelo::writer::WriteProgress;
use tupelo::{Compression, FileWriter, MoveOptions, Table};

use super::super::{Condition, EntryRange, Reading};
use super::target::Target;
use super::without_cycle;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::parse::Bytes;

/// Bytes of what a cut needs that are read together.
const BATCH_BYTES: u64 = 64 << 20;

/// How the baskets of trees are made.
#[derive(Debug, clap::Args)]
pub(super) struct Baskets {
    /// Of trees: size of a basket in bytes, before compression, into which the entries are moved [default: that of the branch]
    #[arg(long, value_name = "SIZE")]
    basket_bytes: Option<Bytes>,
    /// Of trees: number of entries in a cluster, at whose end every branch begins another basket [default: as in the tree]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    auto_flush: Option<u64>,
    /// Of trees: codec of the branches that match, instead of that of --compression, such as 'Muon_*=lz4:4'; may be repeated
    #[arg(long, value_name = "BRANCHES=CODEC", value_parser = branch_codec)]
    branch_compression: Vec<(String, Compression)>,
}

fn branch_codec(text: &str) -> Result<(String, Compression), String> {
    match text.rsplit_once('=') {
        Some((branches, codec)) if !branches.is_empty() => {
            let codec = codec.parse().map_err(|error| format!("{error}"))?;
            Ok((branches.to_owned(), codec))
        }
        _ => Err("expected BRANCHES=CODEC, such as 'Muon_*=lz4:4'".to_owned()),
    }
}

impl Baskets {
    /// Whether no option is given.
    pub(super) fn is_empty(&self) -> bool {
        self.basket_bytes.is_none() && self.auto_flush.is_none() && self.branch_compression.is_empty()
    }

    /// The options of moving trees with these.
    pub(super) fn apply(&self, options: MoveOptions) -> Result<MoveOptions, Failure> {
        let options = options.with_branch_compression(self.branch_compression.iter().cloned());
        let options = match self.basket_bytes {
            Some(bytes) => options.with_basket_bytes(bytes.0)?,
            None => options,
        };
        Ok(match self.auto_flush {
            Some(entries) => options.with_auto_flush(entries)?,
            None => options,
        })
    }
}

/// The entries of trees that are read as one: those of a range for which a cut is true.
pub(super) fn chosen_entries(
    table: &Table,
    range: &EntryRange,
    condition: &Condition,
    console: &Console,
) -> Result<Vec<Range<u64>>, Failure> {
    let entries = range.of(table.entries());
    if !condition.has_cut() {
        return Ok(vec![entries]);
    }
    let read = condition.apply(table.read_all().without_fields())?.entries(entries.clone()).with_entry_numbers("");
    let mut chosen: Vec<Range<u64>> = Vec::new();
    for batch in read.batches_of_bytes(BATCH_BYTES)? {
        let batch = batch?;
        let numbers = batch.columns().last().map(|numbers| numbers.as_primitive::<UInt64Type>().values().clone());
        for &number in numbers.iter().flatten() {
            match chosen.last_mut().filter(|last| last.end == number) {
                Some(last) => last.end += 1,
                None => chosen.push(number..number + 1),
            }
        }
    }
    condition.note_if_empty(entries.end - entries.start, chosen.len() as u64, console);
    Ok(chosen)
}

/// Which entries of a job are written; `None` for all.
pub(super) type Choose<'c> = dyn Fn(&[Location]) -> Result<Option<Vec<Range<u64>>>, Failure> + 'c;

/// Trees to write, by path, and the inputs of each.
#[derive(Default)]
pub(super) struct TreeJobs(Vec<(String, Vec<Location>)>);

/// What became of trees.
#[derive(Default)]
pub(super) struct WrittenTrees {
    /// What was written, by path.
    pub(super) written: Vec<(String, WriteProgress)>,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
}

impl TreeJobs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a tree of a file.
    pub(super) fn add(&mut self, path: &str, location: Location) {
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, locations)) => locations.push(location),
            None => self.0.push((path.to_owned(), vec![location])),
        }
    }

    /// Adds all trees of a file.
    pub(super) fn add_all(&mut self, names: &[String], location: &Location) {
        for name in names {
            self.add(name, Location { object: Some(name.clone()), ..location.clone() });
        }
    }

    /// Gives the only tree a name, if there is one. `others` is the number of ntuples beside the trees.
    pub(super) fn name(&mut self, name: Option<&str>, others: usize) -> Result<(), Failure> {
        let (Some(name), [(first, _), ..]) = (name, self.0.as_mut_slice()) else { return Ok(()) };
        let example = first.clone();
        name.clone_into(first);
        match self.0.len() + others {
            1 => Ok(()),
            count => {
                let what = format_args!("'{name}' would be the name of {count} trees and ntuples");
                Err(Failure::usage(what).with_hint(format!("select one as IN:NAME, for example IN:{example}")))
            }
        }
    }

    /// Adds the inputs that name a tree, under `name` if it is given; returns the other inputs.
    pub(super) fn take_named(
        &mut self,
        reading: &Reading,
        locations: &[Location],
        name: Option<&str>,
    ) -> Vec<Location> {
        let mut others = Vec::with_capacity(locations.len());
        for location in locations {
            match &location.object {
                Some(tree) if is_tree(reading, location, tree) => {
                    self.add(name.unwrap_or_else(|| without_cycle(tree)), location.clone());
                }
                _ => others.push(location.clone()),
            }
        }
        others
    }

    /// Writes all trees; `None` if a signal ended the work.
    pub(super) fn write(
        &self,
        (reading, target): (&Reading, &Target),
        (options, choose): (&MoveOptions, &Choose<'_>),
        writer: &FileWriter,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<Option<WrittenTrees>, Failure> {
        let mut all = WrittenTrees::default();
        for (name, _) in &self.0 {
            target.check_tree(writer, name)?;
        }
        for (name, trees) in &self.0 {
            let mut progress = console.progress(name, None::<u64>, "B");
            let open = |number: usize| open(reading, &trees[number]);
            let options = choose(trees)?.into_iter().fold(options.clone(), MoveOptions::with_entries);
            let mut report = progress.until(interrupt);
            let Some(merged) = merge_tree(name, trees.len(), open, writer, options, &mut report)? else {
                return Ok(None);
            };
            all.left_out.extend(merged.left_out.iter().map(|it| format!("tree '{}': {}", it.name, it.reason)));
            all.written.extend(merged.written.map(|written| (name.clone(), written)));
        }
        Ok(Some(all))
    }
}

/// Whether an input is a tree. What cannot be opened is reported where it is read.
fn is_tree(reading: &Reading, location: &Location, name: &str) -> bool {
    let names = || reading.open_uncounted(location).ok()?.tree_names().ok();
    !is_object_uri(&location.file) && names().is_some_and(|names| names.iter().any(|tree| tree == without_cycle(name)))
}

fn open(reading: &Reading, location: &Location) -> Result<Tree, Failure> {
    match reading.open_uncounted(location)?.table(location.object.as_deref())? {
        Table::Tree(tree) => Ok(tree),
        _ => Err(Failure::new(format_args!("{location} is not a tree"))),
    }
}
