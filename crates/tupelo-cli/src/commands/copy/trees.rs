//! Trees that are copied or merged with their baskets as they are stored.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use tupelo::ops::export::{OriginalTrees, rewrite as write_again};
use tupelo::ops::merge::{MissingBranches, UnlikeBranches, merge_tree};
use tupelo::reader::{Location, Object, TREE_CLASSES, Tree};
use tupelo::storage::is_object_uri;
use tupelo::writer::{TreeOptions, WriteProgress};
use tupelo::{Compression, FileWriter, MoveOptions, Table};

use super::super::fields::Chosen;
use super::super::{Condition, EntryRange, Fields, Opened, Reading, Selecting};
use super::operands::Skipping;
use super::target::Target;
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
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
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

/// The size of a basket, if it is not too large.
pub(super) fn basket_bytes(Bytes(bytes): Bytes) -> Result<u32, Failure> {
    let refused = |_| Failure::usage(format_args!("--basket-bytes {bytes}: a basket can have at most 256 MiB"));
    u32::try_from(bytes).map_err(refused)
}

/// How trees are written.
pub(super) struct TreeHow<'h> {
    pub(super) moving: MoveOptions,
    pub(super) missing: MissingBranches,
    pub(super) baskets: &'h Baskets,
    pub(super) compression: Option<Compression>,
    pub(super) skipping: &'h Skipping,
    pub(super) range: &'h EntryRange,
    pub(super) condition: &'h Condition,
    /// Of trees whose entries are decoded.
    pub(super) fields: &'h Fields,
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

    /// Whether a tree has this path.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.0.iter().any(|(known, _)| known == path)
    }

    /// Adds a tree of a file.
    pub(super) fn add(&mut self, path: &str, location: Location) {
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, locations)) => locations.push(location),
            None => self.0.push((path.to_owned(), vec![location])),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
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

    /// Adds the inputs that name a tree, under `name` if it is given. `other` receives each other one, with the object that it
    /// names.
    pub(super) fn take_named(
        &mut self,
        reading: &Reading,
        locations: &[Location],
        name: Option<&str>,
        mut other: impl FnMut(&Location, Option<Object>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for location in locations {
            match named(reading, location) {
                Some(Object { path, class_name, .. }) if TREE_CLASSES.contains(&class_name.as_str()) => {
                    self.add(name.unwrap_or(&path), location.clone());
                }
                object => other(location, object)?,
            }
        }
        Ok(())
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
            let written = written.map_err(|failure| match failure.is_not_found && self.0.len() > 1 {
                true => failure.with_hint("options for branches are for all trees; select one, as IN:NAME"),
                false => how.explain(failure, trees, reading),
            });
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
        let chosen = self.chosen_entries(trees, reading, console)?;
        let moving = chosen.into_iter().fold(self.moving.clone(), MoveOptions::with_entries);
        if self.missing == MissingBranches::Refuse || trees.len() < 2 {
            return Ok(Some(moving));
        }
        let unlike = UnlikeBranches::of(trees.len(), |number| open(reading, &trees[number]))?;
        let moving = self.missing.moving(&unlike, moving);
        if moving.is_none() {
            let why = match self.missing == MissingBranches::Drop || unlike.missing.is_empty() {
                true => format!("branches have different types: {}", shortened(&unlike.differing)),
                false => format!("some files lack {}", shortened(&unlike.missing)),
            };
            console.note(&format!("tree '{name}': its entries are decoded, because {why}"));
        } else if !unlike.missing.is_empty() {
            let names = unlike.missing.join(", ");
            console.warn(&format!("tree '{name}': dropped the branches missing in some files: {names}"));
        }
        Ok(moving)
    }

    /// The trees as one.
    fn chain(&self, trees: &[Location], reading: &Reading, console: &Console) -> Result<Table, Failure> {
        reading.chain(trees, self.missing.policy(), Opened::default(), self.skipping, console)
    }

    /// The entries of the range for which the cut is true, counted through all trees; `None` for all.
    fn chosen_entries(
        &self,
        trees: &[Location],
        reading: &Reading,
        console: &Console,
    ) -> Result<Option<Vec<Range<u64>>>, Failure> {
        if self.range.is_whole() && !self.condition.has_cut() {
            return Ok(None);
        }
        let table = self.chain(trees, reading, console)?;
        let entries = self.range.of(table.entries(), console);
        if !self.condition.has_cut() {
            return Ok(Some(vec![entries]));
        }
        let read = self.condition.apply(table.read_all().without_fields())?.entries(entries.clone());
        let mut chosen: Vec<Range<u64>> = Vec::new();
        for batch in read.with_entry_numbers("").batches_of_bytes(BATCH_BYTES)? {
            let batch = batch?;
            let numbers = batch.columns().last().map(|numbers| numbers.as_primitive::<UInt64Type>().values().clone());
            for &number in numbers.iter().flatten() {
                match chosen.last_mut().filter(|last| last.end == number) {
                    Some(last) => last.end += 1,
                    None => chosen.push(number..number + 1),
                }
            }
        }
        self.condition.note_if_empty(entries.end - entries.start, chosen.len() as u64, console);
        Ok(Some(chosen))
    }

    /// What is read of trees whose entries are decoded.
    fn decoded(&self, trees: &[Location], reading: &Reading, console: &Console) -> Result<Chosen, Failure> {
        let table = self.chain(trees, reading, console)?;
        let entries = self.range.of(table.entries(), console);
        let selecting = Selecting { entries: entries.clone(), with_counters: true, ..Selecting::default() };
        let mut chosen = self.fields.select(&table, Some(self.condition), &selecting)?;
        if self.missing == MissingBranches::Drop
            && let Some(missing) = chosen.missing.take()
        {
            console.warn(&format!("dropped the branches missing in some files: {missing}"));
        }
        chosen.check_missing(&table, "--exclude FIELDS leaves them out")?;
        chosen.tell(&table, console);
        chosen.read = self.condition.apply(chosen.read)?.entries(entries);
        Ok(chosen)
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
            return failure.of_data().with_hint(format!("some files lack the branches {names}; {modes}"));
        }
        if !unlike.differing.is_empty() {
            let what = "`tupelo merge --mode union` writes numbers of different width in the wider type";
            return failure.of_data().with_hint(format!("different types: {}; {what}", shortened(&unlike.differing)));
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
    let [first, rest @ ..] = trees else { return Err(Failure::usage("no tree is selected")) };
    let first = open(reading, first)?;
    let mut options = how.baskets.options_like(&first, how.compression)?;
    let chosen = how.decoded(trees, reading, console)?;
    let mut originals = OriginalTrees::of(&chosen.read);
    originals.add(&first);
    drop(first);
    for tree in rest {
        let tree = open(reading, tree)?;
        options = options.with_classes_of(&tree);
        originals.add(&tree);
    }
    let mut progress = console.progress(name, chosen.read.count(), "entries");
    let written = write_again(chosen.read, originals, writer, name, options, &mut progress.until(interrupt))?;
    let Some(written) = written else { return Ok(None) };
    let skipped = chosen.skipped.iter().map(|it| format!("branch '{}': {}", it.name, it.reason));
    let renamed = written.renamed.iter();
    let renamed = renamed.map(|(class, stored)| format!("class {class}, which is stored as {stored}"));
    Ok(Some((written.written, skipped.chain(written.left_out).chain(renamed).collect())))
}

/// The object that an input names. What cannot be opened is reported where it is read.
fn named(reading: &Reading, location: &Location) -> Option<Object> {
    let name = location.object.as_deref().filter(|_| !is_object_uri(&location.file))?;
    reading.open_uncounted(location).ok()?.listed(name).ok()?
}

pub(super) fn open(reading: &Reading, location: &Location) -> Result<Tree, Failure> {
    match reading.open_uncounted(location)?.table(location.object.as_deref())? {
        Table::Tree(tree) => Ok(tree),
        _ => Err(Failure::new(format_args!("{location} is not a tree"))),
    }
}
