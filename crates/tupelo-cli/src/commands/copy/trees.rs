//! Trees that are copied or merged with their baskets as they are stored.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use tupelo::ops::merge::{UnlikeBranches, merge_tree};
use tupelo::reader::{Location, Tree};
use tupelo::storage::is_object_uri;
use tupelo::writer::{TreeOptions, WriteProgress};
use tupelo::{Compression, FileWriter, MoveOptions, Table};

use super::super::fields::Chosen;
use super::super::{Condition, EntryRange, Reading};
use super::target::Target;
use super::without_cycle;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::parse::Bytes;

/// Branches that a message names.
const MAX_NAMED: usize = 5;
/// Bytes of what a cut needs that are read together.
const BATCH_BYTES: u64 = 64 << 20;

/// How the baskets of trees are made.
#[derive(Debug, Default, clap::Args)]
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
    /// Of trees: number of levels to which members of objects are split into branches, from 0 to 99; entries are decoded
    /// [default: as in the tree]
    #[arg(long, value_name = "LEVEL", conflicts_with = "branch_compression")]
    split_level: Option<u8>,
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
        let keeps_baskets =
            self.basket_bytes.is_none() && self.auto_flush.is_none() && self.branch_compression.is_empty();
        keeps_baskets && !self.splits()
    }

    /// Whether the entries of trees are decoded, and stored in other branches.
    pub(super) fn splits(&self) -> bool {
        self.split_level.is_some()
    }

    /// The options to write the entries of a tree again.
    fn options_like(&self, tree: &Tree, compression: Option<Compression>) -> Result<TreeOptions, Failure> {
        let mut options = TreeOptions::of(tree);
        if let Some(compression) = compression {
            options = options.with_compression(compression);
        }
        if let Some(entries) = self.auto_flush {
            options = options.with_auto_flush(i64::try_from(entries).unwrap_or(i64::MAX));
        }
        if let Some(bytes) = self.basket_bytes {
            options = options.with_basket_bytes(basket_bytes(bytes)?);
        }
        Ok(self.split_level.into_iter().fold(options, TreeOptions::with_split_level))
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

/// The size of a basket, if it is not too large.
pub(super) fn basket_bytes(Bytes(bytes): Bytes) -> Result<u32, Failure> {
    let refused = |_| Failure::usage(format_args!("--basket-bytes {bytes}: a basket can have at most 256 MiB"));
    u32::try_from(bytes).map_err(refused)
}

/// What is done with branches that some of several trees lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingBranches {
    Refuse,
    Drop,
    /// Write default values. The entries are decoded.
    Fill,
}

/// The entries of trees that are moved; `None` for all.
type Choose<'c> = dyn Fn(&[Location]) -> Result<Option<Vec<Range<u64>>>, Failure> + 'c;

/// How trees are written.
pub(super) struct TreeHow<'h> {
    pub(super) moving: MoveOptions,
    pub(super) choose: &'h Choose<'h>,
    pub(super) missing: MissingBranches,
    /// How trees are written whose entries are decoded,
    pub(super) baskets: &'h Baskets,
    pub(super) compression: Option<Compression>,
    /// and what of them.
    pub(super) select: &'h dyn Fn(&[Location]) -> Result<Chosen, Failure>,
}

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
        how: &TreeHow<'_>,
        writer: &FileWriter,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<Option<WrittenTrees>, Failure> {
        let mut all = WrittenTrees::default();
        for (name, _) in &self.0 {
            target.check_tree(writer, name)?;
        }
        for (name, trees) in &self.0 {
            let written = match how.moving_of(name, trees, reading, console)? {
                Some(moving) => move_trees((name, trees), reading, moving, writer, interrupt, console),
                None => rewrite((name, trees), reading, how, writer, interrupt, console),
            };
            let written = written.map_err(|failure| how.explain(failure, trees, reading));
            let Some((written, left_out)) = written? else { return Ok(None) };
            all.left_out.extend(left_out.iter().map(|it| format!("tree '{name}': {it}")));
            all.written.extend(written.map(|written| (name.clone(), written)));
        }
        Ok(Some(all))
    }
}

/// What was written of a tree, and what was left out.
type Written = (Option<WriteProgress>, Vec<String>);

impl TreeHow<'_> {
    /// How the baskets of trees are moved; `None` if their entries are decoded.
    fn moving_of(
        &self,
        name: &str,
        trees: &[Location],
        reading: &Reading,
        console: &Console,
    ) -> Result<Option<MoveOptions>, Failure> {
        if self.baskets.splits() {
            return Ok(None);
        }
        let mut moving = self.choose_entries(trees)?;
        if self.missing == MissingBranches::Refuse || trees.len() < 2 {
            return Ok(Some(moving));
        }
        let UnlikeBranches { missing, differing, .. } =
            UnlikeBranches::of(trees.len(), |number| open(reading, &trees[number]))?;
        let names = shortened(&missing);
        if self.missing == MissingBranches::Fill && !(missing.is_empty() && differing.is_empty()) {
            let why = match missing.is_empty() {
                true => format!("branches have different types: {}", shortened(&differing)),
                false => format!("some files lack {names}"),
            };
            console.note(&format!("tree '{name}': its entries are decoded, because {why}"));
            return Ok(None);
        }
        if missing.is_empty() {
            return Ok(Some(moving));
        }
        console.warn(&format!("tree '{name}': dropped the branches missing in some files: {names}"));
        moving = moving.without_paths(missing);
        Ok(Some(moving))
    }

    fn choose_entries(&self, trees: &[Location]) -> Result<MoveOptions, Failure> {
        Ok((self.choose)(trees)?.into_iter().fold(self.moving.clone(), MoveOptions::with_entries))
    }

    /// A failure with a hint if the reason may be that some trees lack branches.
    fn explain(&self, failure: Failure, trees: &[Location], reading: &Reading) -> Failure {
        if self.missing != MissingBranches::Refuse || trees.len() < 2 {
            return failure;
        }
        let unlike = UnlikeBranches::of(trees.len(), |number| open(reading, &trees[number])).unwrap_or_default();
        if !unlike.missing.is_empty() {
            let names = shortened(&unlike.missing);
            let modes = "`tupelo merge --mode intersect` drops them, and --mode union fills them with zeros";
            return failure.with_hint(format!("some files lack the branches {names}; {modes}"));
        }
        if !unlike.differing.is_empty() {
            let what = "`tupelo merge --mode union` writes them in the type that holds all values";
            return failure.with_hint(format!("different types: {}; {what}", shortened(&unlike.differing)));
        }
        failure
    }
}

/// The first names of many.
fn shortened(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

/// Moves the baskets of trees to one tree; `None` if a signal ended the work.
fn move_trees(
    (name, trees): (&str, &[Location]),
    reading: &Reading,
    moving: MoveOptions,
    writer: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Written>, Failure> {
    let mut progress = console.progress(name, None::<u64>, "B");
    let open = |number: usize| open(reading, &trees[number]);
    let merged = merge_tree(name, trees.len(), open, writer, moving, &mut progress.until(interrupt))?;
    Ok(merged.map(|merged| (merged.written, merged.left_out.into_iter().map(|it| it.reason).collect())))
}

/// Decodes the entries of trees, and writes them as one tree; `None` if a signal ended the work.
fn rewrite(
    (name, trees): (&str, &[Location]),
    reading: &Reading,
    how: &TreeHow<'_>,
    writer: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Written>, Failure> {
    let first = trees.first().ok_or_else(|| Failure::usage("no tree is selected"))?;
    let options = how.baskets.options_like(&open(reading, first)?, how.compression)?;
    let chosen = (how.select)(trees)?;
    let mut progress = console.progress(name, chosen.read.count(), "entries");
    let written = tupelo::ops::export::rewrite(chosen.read, writer, name, options, &mut progress.until(interrupt))?;
    let Some(written) = written else { return Ok(None) };
    for (type_name, class_name) in &written.renamed {
        console.warn(&format!("tree '{name}': class {type_name} is stored as {class_name}"));
    }
    let skipped = chosen.skipped.into_iter().chain(written.left_out);
    Ok(Some((written.written, skipped.map(|it| format!("branch '{}': {}", it.name, it.reason)).collect())))
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
