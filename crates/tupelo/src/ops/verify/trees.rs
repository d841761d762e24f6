//! Trees and other objects: every basket decompressed and decoded, every record decompressed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;

use tupelo_format::container::{self, Object};
use tupelo_format::open::{self, ANCHOR_CLASS, PRE_RELEASE_CLASS};
use tupelo_pages::decode::{BasketCheck, check_baskets};
use tupelo_pages::source::TreeSource;
use tupelo_ttree::tree::TREE_CLASSES;
use tupelo_ttree::{ValueLayout, fields};

use super::{Damage, FETCH_BYTES, Report};
use crate::ops::batches;
use crate::reader::{self, File};
use crate::{ErrorKind, Result};

/// Baskets that are checked together, whatever their size.
const BATCH_BASKETS: usize = 4096;

/// Checks one tree, or all objects of a file that are not ntuples: trees with their baskets, older cycles and others as far
/// as their records can be decompressed. Returns whether there is an object of the name.
pub(super) fn check(
    file: &File,
    name: Option<&str>,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<bool> {
    let root = file.root_file()?;
    let named = match name {
        Some(name) => root.find_object(name)?,
        None => None,
    };
    let objects: Vec<(Object, bool)> = match (name, named) {
        (Some(_), None) => return Ok(false),
        (Some(_), Some(object)) => vec![(object, true)],
        (None, _) => root.listing()?.objects().map(|(object, is_newest)| (object.clone(), is_newest)).collect(),
    };
    let mut is_found = false;
    for (object, is_newest) in &objects {
        let class = object.key.class_name.as_str();
        if object.key.is_directory() || class == ANCHOR_CLASS {
            continue;
        }
        is_found = true;
        let name = reader::Object::of(object, *is_newest).name();
        if TREE_CLASSES.contains(&class) && *is_newest {
            report.trees += 1;
            match TreeSource::open(root.clone(), object) {
                Ok(source) => tree(&source, &name, report, progress)?,
                Err(error) => {
                    report.add(Damage { tree: name, ..Damage::whole("", error.to_string()) }, error.kind());
                }
            }
        } else {
            report.objects += 1;
            let checked = root.attempt(|fetched| match class {
                PRE_RELEASE_CLASS => Err(open::pre_release(fetched, object)?.into()),
                _ => container::object_bytes(fetched, &object.key).map(drop),
            });
            if let Err(error) = checked {
                report.add(Damage { object: name, ..Damage::whole("", error.to_string()) }, error.kind());
            }
        }
    }
    Ok(is_found)
}

fn tree(source: &TreeSource, name: &str, report: &mut Report, progress: &mut dyn FnMut(u64)) -> Result<()> {
    let tree = source.tree();
    let layouts: HashMap<usize, &ValueLayout> = fields::layouts(source.fields());
    let whole = |what: String| Damage { tree: name.to_owned(), ..Damage::whole("", what) };
    for (number, refused) in source.refused().iter().enumerate() {
        let what = format!("branch '{}' is not decoded: {}", refused.path, refused.reason);
        // The baskets of the others are found, and their numbers of entries are checked.
        let has_baskets = number >= tree.unreadable.len();
        let kind = ErrorKind::from(refused.kind);
        match kind {
            ErrorKind::Unsupported if has_baskets => report.warnings.push(format!("tree '{name}': {what}")),
            _ => report.add(whole(what), kind),
        }
    }
    let held = tree.branches.iter().map(|branch| branch.entries).max();
    let what = format!("its branches have {} entries, but the tree says {}", held.unwrap_or(0), tree.entries);
    match held.map(|held| held.cmp(&tree.entries)) {
        // ROOT reads no more entries than the tree says.
        Some(Ordering::Greater) => report.warnings.push(format!("tree '{name}': {what}")),
        Some(Ordering::Less) => report.add(whole(what), ErrorKind::Corrupt),
        _ => {}
    }
    let damage = |branch: usize, what: String| Damage { field: Some(tree.path(branch)), ..whole(what) };
    for (index, branch) in tree.branches.iter().enumerate() {
        let end = branch.baskets.last().map_or(0, |basket| basket.entries.end);
        if let Err(error) = source.open_other(branch) {
            report.add(damage(index, error.to_string()), error.kind());
            continue;
        }
        // Branches that contain others, and bases without members, have entries but no baskets; those of ROOT 4 have an
        // empty one.
        let has_values = layouts.contains_key(&index) || branch.baskets.iter().any(|basket| !basket.entries.is_empty());
        if end != branch.entries && has_values {
            let what = format!("its baskets contain {end} entries, expected {}", branch.entries);
            report.add(damage(index, what), ErrorKind::Corrupt);
        }
        // ROOT reads the last value again in the entries that a branch lacks.
        let is_short = branch.entries < tree.entries && branch.entries > 0;
        if is_short && has_values && held.is_some_and(|held| held >= tree.entries) {
            let what = format!("it has {} entries, expected the {} of the tree", branch.entries, tree.entries);
            report.add(damage(index, what), ErrorKind::Corrupt);
        }
    }
    let before = report.bytes;
    let mut found = |check: &BasketCheck<'_>, checked: Result<()>| {
        report.baskets += 1;
        report.bytes += check.stored_bytes();
        if let Err(error) = checked {
            let offset = check.range.as_ref().map(|range| range.start);
            let place = Damage { basket: Some(check.basket as u64), offset, ..damage(check.branch, error.to_string()) };
            report.add(place, error.kind());
        }
    };
    let mut progress = |bytes| {
        progress(before + bytes);
        ControlFlow::Continue(())
    };
    check_tree(source, &mut found, &mut progress)?;
    Ok(())
}

/// Reads, decompresses and decodes all baskets of a tree, except those in other files that cannot be opened. `found` receives
/// each with its error; `progress` receives the stored bytes that are done, and may end the work: the result is then false.
pub(in crate::ops) fn check_tree(
    source: &TreeSource,
    found: &mut dyn FnMut(&BasketCheck<'_>, Result<()>),
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<bool> {
    let layouts = fields::layouts(source.fields());
    let mut checks = Vec::new();
    for (index, branch) in source.tree().branches.iter().enumerate() {
        if source.open_other(branch).is_err() {
            continue;
        }
        for basket in 0..branch.baskets.len() {
            let check = BasketCheck { branch: index, basket, range: None, layout: layouts.get(&index).copied() };
            match source.range(branch, basket) {
                Ok(range) => checks.push(BasketCheck { range, ..check }),
                Err(error) => found(&check, Err(error)),
            }
        }
    }
    // As they lie in the file, so that those of a cluster, and their counters, are checked together.
    checks.sort_by_key(|check| check.range);
    let mut done = 0;
    for batch in batches(&checks, FETCH_BYTES, BATCH_BASKETS, BasketCheck::stored_bytes) {
        for (check, checked) in batch.iter().zip(check_baskets(source, batch)?) {
            done += check.stored_bytes();
            found(check, checked);
        }
        if progress(done).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}
