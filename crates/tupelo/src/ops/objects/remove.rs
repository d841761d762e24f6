//! Removing objects and directories from a ROOT file.

use std::collections::BTreeSet;

use tupelo_core::error::Remedy;
use tupelo_format::container;
use tupelo_schema::schema::Glob;

use super::extents::{Freed, used_only_by};
use crate::reader::{File, Object};
use crate::writer::FileWriter;
use crate::{Error, Result};

/// What is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The objects and directories, in file order.
    pub objects: Vec<Object>,
    /// Bytes of the records that are listed as free: of the objects themselves, and of the pages, envelopes and baskets
    /// that nothing else uses.
    pub bytes: u64,
    /// Why pages, envelopes or baskets of removed objects stay in use, if any do: something cannot be read.
    pub kept: Option<String>,
}

/// What [`remove`] would remove from a file.
///
/// # Errors
/// As there.
pub fn find<S: AsRef<str>>(file: &File, names: &[S], recursive: bool) -> Result<Removed> {
    let found = Removal::find(file, names, recursive, &BTreeSet::new()).map(|(_, _, removed)| removed);
    found.map_err(|error| error.or_in_file(file.name()))
}

/// Removes objects and directories from a file that is updated. `names` are paths, with `;CYCLE` for one cycle and
/// without it for all cycles; they may have the wildcards of shells, where `*` stands for any characters but `/`. A
/// directory must be empty, or `recursive` removes everything in it.
///
/// What the objects use alone is listed in the file as free once a state without them is durable: their records, the
/// pages, page lists and attribute sets of ntuples, and the baskets of trees. Records that other objects use too, such
/// as older cycles, stay. Nothing is overwritten, and the file keeps its size: [`repack`](super::repack()) makes it
/// smaller.
/// ```no_run
/// let file = tupelo::update("events.root")?;
/// let removed = tupelo::ops::objects::remove(&file, &["old/*", "Events;1"], false)?;
/// file.finish()?;
/// println!("{} objects with {} bytes", removed.objects.len(), removed.bytes);
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Not found, with similar names, for a name without an object; invalid argument for directories that are not empty,
/// and for objects that were written by this writer; unsupported for directories that are in the file twice, and for
/// ntuples in object stores; corrupt if a directory is damaged. Nothing is removed then.
pub fn remove<S: AsRef<str>>(file: &FileWriter, names: &[S], recursive: bool) -> Result<Removed> {
    let (existing, sink) = file.updated()?;
    let remove = || {
        let (offsets, freed, removed) = Removal::find(existing, names, recursive, &sink.removed()?)?;
        let paths: Vec<String> = removed.objects.iter().map(|object| object.path.clone()).collect();
        sink.remove(&offsets, &paths, &freed.records)?;
        Ok(removed)
    };
    remove().map_err(|error: Error| error.or_in_file(existing.name()))
}

/// The objects of a file that are left.
pub(super) struct Removal<'f> {
    objects: Vec<(&'f container::Object, bool)>,
}

impl<'f> Removal<'f> {
    /// All objects but those that are gone, by the offsets of their records.
    pub(super) fn of(file: &'f File, gone: &BTreeSet<u64>) -> Result<Self> {
        let objects = file.root_file()?.listing()?.objects();
        Ok(Self { objects: objects.filter(|(object, _)| !gone.contains(&object.key.seek_key)).collect() })
    }

    fn find<S: AsRef<str>>(
        file: &'f File,
        names: &[S],
        recursive: bool,
        gone: &BTreeSet<u64>,
    ) -> Result<(BTreeSet<u64>, Freed, Removed)> {
        let left = Self::of(file, gone)?;
        let mut offsets = BTreeSet::new();
        for name in names {
            offsets.extend(left.named(name.as_ref(), true)?.into_iter().map(|(object, _)| object.key.seek_key));
        }
        left.check_directories(&mut offsets, recursive)?;
        let freed = used_only_by(file, &offsets, gone, false)?;
        let chosen = left.objects.iter().filter(|(object, _)| offsets.contains(&object.key.seek_key));
        let objects: Vec<Object> = chosen.map(|(object, is_newest)| Object::of(object, *is_newest)).collect();
        let bytes = freed.bytes + objects.iter().map(|object| object.bytes).sum::<u64>();
        let removed = Removed { objects, bytes, kept: freed.kept.clone() };
        Ok((offsets, freed, removed))
    }

    /// The objects of a name: a path, perhaps with a cycle and wildcards.
    pub(super) fn named(&self, name: &str, wildcards: bool) -> Result<Vec<(&'f container::Object, bool)>> {
        let (path, cycle) = split_cycle(name);
        let path = path.trim_matches('/');
        let chosen = |is_match: &dyn Fn(&str) -> bool| {
            let is_chosen =
                |it: &container::Object| is_match(&it.path) && cycle.is_none_or(|cycle| cycle == it.key.cycle);
            self.objects.iter().filter(|(object, _)| is_chosen(object)).copied().collect::<Vec<_>>()
        };
        let mut found = chosen(&|other| other == path);
        if let (true, true, Some(glob)) = (found.is_empty(), wildcards, Glob::new(path, '/')?) {
            found = chosen(&|other| glob.is_match(other));
        }
        match found.is_empty() {
            false => Ok(found),
            true => Err(Error::no_such("object", name, self.objects.iter().map(|(object, _)| object.path.as_str()))),
        }
    }

    /// Adds what is in the chosen directories, or refuses directories that are not empty.
    fn check_directories(&self, offsets: &mut BTreeSet<u64>, recursive: bool) -> Result<()> {
        let objects = || self.objects.iter().map(|(object, _)| *object);
        let chosen: Vec<_> =
            objects().filter(|it| it.key.is_directory() && offsets.contains(&it.key.seek_key)).collect();
        for directory in chosen {
            let path = directory.path.as_str();
            if objects().filter(|other| other.path == path && other.key.is_directory()).count() > 1 {
                return Err(Error::unsupported(format!("directory '{path}' is in the file more than once")));
            }
            let is_below = |other: &&container::Object| {
                other.path.strip_prefix(path).is_some_and(|behind| behind.starts_with('/'))
            };
            let below: Vec<_> = objects().filter(is_below).filter(|it| !offsets.contains(&it.key.seek_key)).collect();
            if let Some(other) = below.iter().find(|other| other.key.name.contains('/')) {
                let what = format!("'{}' may be in directory '{path}' or have a slash in its name", other.path);
                return Err(Error::unsupported(what));
            }
            if !below.is_empty() && !recursive {
                let count = below.len();
                let what = format!("'{path}' is a directory that is not empty: found {count} objects in it");
                return Err(Error::invalid_argument(what).with_remedy(Remedy::Recursive));
            }
            offsets.extend(below.iter().map(|object| object.key.seek_key));
        }
        Ok(())
    }
}

/// Splits `name;2` into name and cycle.
fn split_cycle(name: &str) -> (&str, Option<u16>) {
    match name.rsplit_once(';').map(|(path, cycle)| (path, cycle.parse())) {
        Some((path, Ok(cycle))) => (path, Some(cycle)),
        _ => (name, None),
    }
}
