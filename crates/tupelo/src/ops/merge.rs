//! Objects of several files as one: histograms are summed, as `hadd` does.
//!
//! Ntuples are merged by [copying](super::copy) a [`Table::chain`](crate::Table::chain) of them.

mod histogram;
mod trees;

use std::collections::{BTreeMap, BTreeSet};

use tupelo_format::checksum::xxh3;
use tupelo_format::compression::Compression;
use tupelo_format::object::{Object, Value};

pub use self::trees::{MergedTree, MissingBranches, UnlikeBranches, merge_tree};
use super::other_objects;
use crate::reader::{File, Skipped};
use crate::writer::FileWriter;
use crate::{ErrorKind, Result};

/// What became of the objects.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MergedObjects {
    /// Number of objects that were written.
    pub written: u64,
    /// Number of histograms that are sums of several files.
    pub sums: u64,
    /// Objects that are not in the output, by path, and why: those of later files, and those that cannot be copied.
    pub left_out: Vec<Skipped>,
}

/// Where objects of a path are.
struct Occurrences {
    class_name: String,
    first: usize,
    last: usize,
}

/// An object on the way to the output.
enum Merging {
    /// The sum so far, and the number of files that it is of.
    Sum(Object, u64),
    /// The output has it; why others are not added, unless they are the same.
    Written(&'static str, u64),
    /// It cannot be copied.
    Refused(String),
}

/// Writes the objects of files that are neither ntuples, trees nor directories, in the newest cycle of each, under their
/// paths. `open` opens a file by its number below `count`, twice each; one is open at a time.
///
/// Histograms and profiles of the same path, class and axes are summed: bins, squares of weights, entries and statistics.
/// Everything else of them is as in the first file that has one. Of objects of other classes, the first is taken.
///
/// # Errors
/// Those of `open`; corrupt where a directory or a histogram is damaged; those of writing.
pub fn merge_objects<E: From<crate::Error>>(
    count: usize,
    mut open: impl FnMut(usize) -> Result<File, E>,
    to: &FileWriter,
    compression: Compression,
) -> Result<MergedObjects, E> {
    let mut places: BTreeMap<String, Occurrences> = BTreeMap::new();
    let mut with_objects = BTreeSet::new();
    for number in 0..count {
        for object in other_objects(&open(number)?)? {
            with_objects.insert(number);
            let new = Occurrences { class_name: object.class_name, first: number, last: number };
            places.entry(object.path).or_insert(new).last = number;
        }
    }
    let (mut merged, mut merging) = (MergedObjects::default(), BTreeMap::new());
    for number in with_objects {
        let file = open(number)?;
        for object in other_objects(&file)? {
            let Some(place) = places.get(&object.path) else { continue };
            let left_out = |reason: &str| Skipped::new(&object.path, format!("that of {}: {reason}", file.name()));
            let next = match merging.remove(&object.path) {
                None | Some(Merging::Refused(_)) => {
                    let begun = begin(&file, &object.name(), place, to, compression)?;
                    if let Merging::Refused(reason) = &begun {
                        merged.left_out.push(left_out(reason));
                    }
                    begun
                }
                Some(Merging::Written(reason, first)) => {
                    if checksum(&file, &object.name())? != first {
                        merged.left_out.push(left_out(reason));
                    }
                    Merging::Written(reason, first)
                }
                Some(Merging::Sum(sum, of)) => match add(&sum, &file, &object.name())? {
                    Ok(sum) => Merging::Sum(sum, of + 1),
                    Err(reason) => {
                        merged.left_out.push(left_out(&reason));
                        Merging::Sum(sum, of)
                    }
                },
            };
            let next = match next {
                Merging::Sum(sum, of) if place.last == number => {
                    let title = match sum.get("fTitle") {
                        Some(Value::Text(title)) => title.as_str(),
                        _ => "",
                    };
                    to.object(&object.path, title, &sum, compression)?;
                    merged.sums += u64::from(of > 1);
                    Merging::Written("", 0)
                }
                next => next,
            };
            merging.insert(object.path, next);
        }
    }
    merged.written = merging.values().filter(|it| matches!(it, Merging::Written(..))).count() as u64;
    Ok(merged)
}

/// Takes the first object of a path.
fn begin(file: &File, name: &str, place: &Occurrences, to: &FileWriter, compression: Compression) -> Result<Merging> {
    let why = if place.first == place.last {
        ""
    } else if !histogram::is_histogram(&place.class_name) {
        "objects of its class are not merged, and that of the first file is different"
    } else {
        match file.object(name) {
            Ok(Value::Object(object)) if object.write().is_ok() => return Ok(Merging::Sum((*object).clone(), 1)),
            Err(error) if error.is_corrupt() => return Err(error),
            _ => "the first one has parts that cannot be written again",
        }
    };
    match to.copy_object(file, name, compression) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Merging::Refused(error.reason())),
        Ok(()) if why.is_empty() => Ok(Merging::Written(why, 0)),
        copied => copied.and_then(|()| Ok(Merging::Written(why, checksum(file, name)?))),
    }
}

/// The checksum of an object before compression.
fn checksum(file: &File, name: &str) -> Result<u64> {
    file.with_object(name, |_, bytes, _| Ok(xxh3(bytes)))
}

/// The sum with another object, or why there is none.
fn add(sum: &Object, file: &File, name: &str) -> Result<Result<Object, String>> {
    match file.object(name) {
        Ok(Value::Object(other)) => Ok(histogram::sum(sum, &other)),
        Ok(_) => Ok(Err("it is not an object".to_owned())),
        Err(error) if error.is_corrupt() => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}
