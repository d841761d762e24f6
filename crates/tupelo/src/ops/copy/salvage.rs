//! What is whole of damaged ntuples and trees, in a new file.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem::take;
use std::ops::{ControlFlow, Range};

use tupelo_pages::decode::{BasketCheck, check_baskets};
use tupelo_schema::schema::{Schema, escaped};
use tupelo_ttree as record;

use super::super::Progress;
use super::super::merge::merge_tree;
use super::super::verify::check_tree;
use super::{Copier, Pages, Places, prepared, schema};
use crate::reader::{Attached, Attributes, Ntuple, Read, Skipped, Tree};
use crate::writer::{FileWriter, MoveOptions, WriteOptions, WriteProgress};
use crate::{Error, ErrorKind, Result};

/// What is copied of a damaged ntuple.
#[derive(Debug)]
#[non_exhaustive]
pub struct Salvaged {
    /// The size of the new ntuple.
    pub written: WriteProgress,
    /// What was not copied, in the order of entries.
    pub lost: Vec<Lost>,
}

/// What is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Entries of the damaged ntuple; empty for what does not belong to entries.
    pub entries: Range<u64>,
    /// The fields that are damaged there, and how; empty where no field is known.
    pub fields: Vec<Skipped>,
    /// Why, where no field is known.
    pub reason: String,
}

/// Copies the clusters that are whole of an ntuple. All entries of a cluster are left out if a value of any field cannot be
/// read, since the fields of an entry belong together. If at least half of the entries would be lost, fields are left out
/// instead, those with the most damaged entries first. Attribute sets, metadata and layouts of classes are copied if all of
/// them can be read. `progress` receives the entries that are checked; otherwise as [`copy`](super::copy()) with
/// [`Pages::Keep`].
///
/// # Errors
/// Those of writing, and those of reading that are not damage of this ntuple, such as storage errors.
pub fn salvage(
    ntuple: &Ntuple,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<Salvaged>> {
    let (read, _) = prepared(ntuple.read_all())?;
    let Some(mut damage) = Damage::of(ntuple, &read, progress)? else { return Ok(None) };
    let read = damage.without_fields(read)?;
    let sidecar = read.source().sidecar();
    let compression = damage_or(sidecar.compression())?.ok().flatten();
    let options = compression.into_iter().fold(options, WriteOptions::with_compression);
    let options = options.with_description(sidecar.description());
    let writer = file.ntuple(path, &schema(&read)?, options)?;
    Copier::new(file, writer, Pages::Keep.into(), Vec::new()).salvage(ntuple, &read, damage)
}

/// What of an ntuple is whole, and what is not.
#[derive(Default)]
struct Damage {
    /// The clusters, each with the fields that cannot be read.
    clusters: Vec<(Range<u64>, Vec<Skipped>)>,
    /// What is lost whatever is copied.
    lost: Vec<Lost>,
}

impl Damage {
    /// Reads all values; `None` if `progress` ended the work.
    fn of(ntuple: &Ntuple, read: &Read, progress: &mut Progress<'_>) -> Result<Option<Self>> {
        let mut damage = Self::default();
        for (entries, list) in ntuple.listed_clusters() {
            match damage_or(list)? {
                Ok(clusters) => {
                    for cluster in clusters {
                        if progress(cluster.start).is_break() {
                            return Ok(None);
                        }
                        let fields = damaged_fields(read, &cluster)?;
                        damage.clusters.push((cluster, fields));
                    }
                }
                Err(error) => damage.lost.push(Lost { entries, fields: Vec::new(), reason: error.reason() }),
            }
        }
        Ok(Some(damage))
    }

    /// Number of entries in clusters with a field that cannot be read, but for some fields.
    fn lost_entries(&self, without: &BTreeMap<String, String>) -> u64 {
        let is_lost = |fields: &[Skipped]| fields.iter().any(|field| !without.contains_key(&field.name));
        self.clusters.iter().filter(|(_, fields)| is_lost(fields)).map(|(entries, _)| entries.end - entries.start).sum()
    }

    /// A read without the fields without which fewer than half of the entries are lost.
    fn without_fields(&mut self, read: Read) -> Result<Read> {
        let mut counts: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for (entries, fields) in &self.clusters {
            for field in fields {
                counts.entry(&field.name).or_insert((0, &field.reason)).0 += entries.end - entries.start;
            }
        }
        let mut worst: Vec<(&str, (u64, &str))> = counts.into_iter().collect();
        worst.sort_by_key(|(_, (count, _))| Reverse(*count));
        let all: u64 = self.clusters.iter().map(|(entries, _)| entries.end - entries.start).sum();
        let mut dropped: BTreeMap<String, String> = BTreeMap::new();
        for (name, (count, reason)) in worst {
            let lost = self.lost_entries(&dropped);
            if lost == 0 || lost.saturating_mul(2) < all {
                break;
            }
            dropped.insert(name.to_owned(), format!("left out in all entries: {count} entries are damaged: {reason}"));
        }
        // Without any field, entries are worth nothing.
        if dropped.len() == read.schema().fields.len() {
            return Ok(read);
        }
        self.clusters.iter_mut().for_each(|(_, fields)| fields.retain(|field| !dropped.contains_key(&field.name)));
        let dropped: Vec<Skipped> = dropped.iter().map(|(name, why)| Skipped::new(name, why)).collect();
        let read = read.without_paths(&dropped)?;
        self.lost.extend(dropped.into_iter().map(|field| Lost {
            entries: 0..0,
            fields: vec![field],
            reason: String::new(),
        }));
        Ok(read)
    }
}

/// Copies the entries that are whole of a tree. An entry is left out if a basket of any branch that has it cannot be read,
/// since the branches of an entry belong together. If at least half of the entries would be lost, branches are left out
/// instead, those with the most damaged entries first, with their parts and the branches that they count. Branches with another
/// number of entries than the tree are always left out. Classes, codecs and clusters stay as they are; baskets too if nothing is
/// damaged. `progress` receives the stored bytes that are checked and then moved, and may end the work: the result is then
/// `None`.
///
/// # Errors
/// Unsupported, with the reason, if the tree cannot be [moved](FileWriter::moved_tree); those of writing, and those of reading that are not damage of baskets.
pub fn salvage_tree(
    tree: &Tree,
    file: &FileWriter,
    path: &str,
    progress: &mut Progress<'_>,
) -> Result<Option<Salvaged>> {
    let mut damaged: Vec<(usize, Range<u64>, Skipped)> = Vec::new();
    let (mut failure, mut checked_bytes) = (None, 0);
    let record = tree.source().tree();
    let mut found = |check: &BasketCheck<'_>, checked: Result<()>| {
        checked_bytes += check.stored_bytes();
        let Some(basket) = record.branches.get(check.branch).and_then(|branch| branch.baskets.get(check.basket)) else {
            return;
        };
        // Entries of classes that are not decoded are copied as they are.
        let is_unknown = |error: &Error| error.kind() == ErrorKind::Unsupported && check.layout.is_some();
        let checked = match checked {
            Err(error) if is_unknown(&error) => {
                let bytes_alone = BasketCheck { layout: None, ..*check };
                check_baskets(tree.source(), &[bytes_alone]).and_then(|checked| checked.into_iter().collect())
            }
            checked => checked,
        };
        match damage_or(checked) {
            Ok(Err(error)) => {
                let reason = format!("basket {}: {}", check.basket, error.reason());
                damaged.push((check.branch, basket.entries.clone(), Skipped::new(&record.path(check.branch), reason)));
            }
            Ok(Ok(())) => {}
            Err(error) => failure = failure.take().or(Some(error)),
        }
    };
    if !check_tree(tree.source(), &mut found, progress)? {
        return Ok(None);
    }
    if let Some(error) = failure {
        return Err(tree.context(error));
    }
    let dropped = dropped(record, &damaged);
    damaged.retain(|(branch, ..)| !dropped.contains_key(branch));
    let mut lost = together(damaged.into_iter().map(|(_, range, skipped)| (range, skipped)).collect());
    let ends = lost.iter().map(|lost| lost.entries.start).chain([tree.entries()]);
    let starts = [0].into_iter().chain(lost.iter().map(|lost| lost.entries.end));
    let whole: Vec<Range<u64>> = starts.zip(ends).map(|(start, end)| start..end).collect();
    let options = match lost.is_empty() {
        true => MoveOptions::default(),
        false => MoveOptions::default().with_entries(whole),
    };
    let options = options.without_paths(dropped.keys().map(|&branch| record.path(branch)));
    let mut progress = |bytes| progress(checked_bytes + bytes);
    let Some(moved) = merge_tree(path, 1, |_| Ok::<_, Error>(tree.clone()), file, options, &mut progress)? else {
        return Ok(None);
    };
    let left_out = moved.left_out.into_iter().map(|it| it.reason);
    let Some(written) = moved.written else {
        return Err(Error::unsupported(left_out.collect::<Vec<_>>().join("; ")));
    };
    for (branch, why) in dropped {
        let field = Skipped::new(&record.path(branch), format!("left out in all entries: {why}"));
        lost.push(Lost { entries: 0..0, fields: vec![field], reason: String::new() });
    }
    lost.extend(left_out.map(|reason| Lost { entries: 0..0, fields: Vec::new(), reason }));
    Ok(Some(Salvaged { written, lost }))
}

/// The branches to leave out, and why: those that cannot be moved, and those without which fewer than half of the entries are
/// lost.
fn dropped(tree: &record::Tree, damaged: &[(usize, Range<u64>, Skipped)]) -> BTreeMap<usize, String> {
    let mut dropped = BTreeMap::new();
    // Other classes of trees know their branches.
    if tree.class_name != "TTree" {
        return dropped;
    }
    let has_values = |branch: &record::Branch| !branch.baskets.is_empty() && branch.entries > 0;
    for (index, branch) in tree.branches.iter().enumerate().filter(|(_, branch)| has_values(branch)) {
        let end = branch.baskets.last().map_or(0, |basket| basket.entries.end);
        if branch.entries != tree.entries || end != tree.entries && end > 0 {
            let found = branch.entries.min(end);
            drop_with_parts(tree, index, &format!("it has {found} entries, expected {}", tree.entries), &mut dropped);
        }
    }
    let mut counts: BTreeMap<usize, (u64, &Skipped)> = BTreeMap::new();
    for (branch, range, skipped) in damaged {
        counts.entry(*branch).or_insert((0, skipped)).0 += range.end - range.start;
    }
    let mut worst: Vec<(usize, (u64, &Skipped))> = counts.into_iter().collect();
    worst.sort_by_key(|(_, (lost, _))| Reverse(*lost));
    for (branch, (count, skipped)) in worst {
        let rest = damaged.iter().filter(|(branch, ..)| !dropped.contains_key(branch));
        let lost = together(rest.map(|(_, range, skipped)| (range.clone(), skipped.clone())).collect());
        let lost: u64 = lost.iter().map(|lost| lost.entries.end - lost.entries.start).sum();
        if lost == 0 || lost.saturating_mul(2) < tree.entries {
            break;
        }
        if !dropped.contains_key(&branch) {
            let mut more = dropped.clone();
            drop_with_parts(tree, branch, &format!("{count} entries are damaged: {}", skipped.reason), &mut more);
            let mut kept =
                tree.branches.iter().enumerate().filter(|(index, it)| has_values(it) && !more.contains_key(index));
            if kept.next().is_none() {
                break;
            }
            dropped = more;
        }
    }
    dropped
}

/// Adds a branch, its parts, and what it counts.
fn drop_with_parts(tree: &record::Tree, branch: usize, why: &str, dropped: &mut BTreeMap<usize, String>) {
    let mut next = vec![(branch, why.to_owned())];
    while let Some((index, why)) = next.pop() {
        let Some(branch) = tree.branches.get(index).filter(|_| !dropped.contains_key(&index)) else { continue };
        dropped.insert(index, why);
        let with = || format!("it needs '{}'", tree.path(index));
        next.extend(branch.children.iter().map(|&child| (child, with())));
        for (other, counted) in tree.branches.iter().enumerate() {
            if counted.leaves.iter().any(|leaf| leaf.counter.is_some_and(|(counter, _)| counter == index)) {
                next.push((other, with()));
            }
        }
    }
}

/// The damages of entries that overlap or touch as one loss: no entry is in two, and each branch is named once.
fn together(mut damaged: Vec<(Range<u64>, Skipped)>) -> Vec<Lost> {
    damaged.sort_by_key(|(range, _)| range.start);
    let (mut all, mut fields): (Vec<Lost>, Vec<Skipped>) = Default::default();
    let mut entries = 0..0;
    let finish = |entries: &Range<u64>, fields: &mut Vec<Skipped>| {
        fields.sort_by(|one, other| one.name.cmp(&other.name));
        fields.dedup_by(|one, other| one.name == other.name);
        Lost { entries: entries.clone(), fields: take(fields), reason: String::new() }
    };
    for (range, field) in damaged.into_iter().filter(|(range, _)| !range.is_empty()) {
        if range.start > entries.end && !fields.is_empty() {
            all.push(finish(&entries, &mut fields));
        }
        entries = if fields.is_empty() { range } else { entries.start..entries.end.max(range.end) };
        fields.push(field);
    }
    if !fields.is_empty() {
        all.push(finish(&entries, &mut fields));
    }
    all
}

/// Damage apart from other errors.
fn damage_or<T>(outcome: Result<T>) -> Result<Result<T>> {
    match outcome {
        Err(error) if error.is_corrupt() || error.is_not_found() || error.kind() == ErrorKind::Unsupported => {
            Ok(Err(error))
        }
        Err(error) => Err(error),
        outcome => Ok(outcome),
    }
}

impl Copier<'_> {
    fn salvage(mut self, ntuple: &Ntuple, read: &Read, damage: Damage) -> Result<Option<Salvaged>> {
        let order = self.writer.schema().order_of(&schema(read)?).map_err(|e| ntuple.context(e))?;
        let Damage { clusters, mut lost } = damage;
        let attached = match damage_or(read.source().sidecar().attached(0))? {
            Ok(attached) => attached,
            Err(error) => {
                let reason = format!("attribute sets, metadata or layouts of classes: {}", error.reason());
                lost.push(Lost { entries: 0..0, fields: Vec::new(), reason });
                Attached::default()
            }
        };
        self.file.add_streamer_info(&attached.streamer_infos)?;
        let set = |(name, set): &(String, Ntuple)| Ok((name.clone(), set.user_schema()?, set.all_attributes(true)?));
        let mut sets: Vec<(String, Schema, Attributes)> = Vec::new();
        for one in &attached.sets {
            match damage_or(set(one))? {
                Ok(set) => sets.push(set),
                Err(error) => {
                    let reason = format!("attribute set '{}': {}", one.0, error.reason());
                    lost.push(Lost { entries: 0..0, fields: Vec::new(), reason });
                }
            }
        }
        let mut places = Places::of(sets.iter().map(|(.., attributes)| attributes), 0);
        for (cluster, fields) in clusters {
            if !fields.is_empty() {
                lost.push(Lost { entries: cluster, fields, reason: String::new() });
                continue;
            }
            let chosen = read.clone().entries(cluster);
            if !self.copy_entries(&chosen, &order, &mut places, &mut |_| ControlFlow::Continue(()))? {
                return Ok(None);
            }
        }
        for (name, schema, attributes) in &sets {
            let moved = attributes.moved(|bound| places.place(bound))?;
            self.writer.attribute_set(name, schema)?.write(moved.ranges(), moved.values())?;
        }
        self.add_metadata(&attached)?;
        Ok(Some(Salvaged { written: self.writer.finish()?, lost }))
    }
}

/// The fields whose values in a cluster cannot be read, and why.
fn damaged_fields(read: &Read, cluster: &Range<u64>) -> Result<Vec<Skipped>> {
    let all = read.clone().with_binary_strings(true).entries(cluster.clone());
    if damage_or(all.to_batch())?.is_ok() {
        return Ok(Vec::new());
    }
    let mut damaged = Vec::new();
    for field in &read.schema().fields {
        let one = all.clone().with_fields([escaped(&field.name)]);
        if let Err(error) = damage_or(one.and_then(|one| one.to_batch()))? {
            damaged.push(Skipped::new(&field.name, error.reason_in_field()));
        }
    }
    Ok(damaged)
}
