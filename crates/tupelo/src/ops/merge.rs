//! Objects of several files as one: what `hadd` adds up, and the first of others.
//!
//! Ntuples are merged by [copying](super::copy) a [`Table::chain`](crate::Table::chain) of them.

mod addition;
mod arrays;
mod bins;
mod histogram;
mod many_axes;
mod statistics;
mod trees;

use std::collections::{BTreeMap, BTreeSet};

use tupelo_format::checksum::xxh3;
use tupelo_format::compression::Compression;
use tupelo_format::object::{Object, Value};

use self::addition::{Add, addition, is_merged_by_root};
pub(crate) use self::trees::LaterTrees;
pub use self::trees::{MergedTree, MissingBranches, UnlikeBranches, merge_tree};
use super::{make_directories, other_objects};
use crate::reader::{File, Skipped};
use crate::writer::FileWriter;
use crate::{ErrorKind, Result};

/// What became of the objects.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MergedObjects {
    /// Number of objects that were written.
    pub written: u64,
    /// Number of objects that are sums of several files.
    pub sums: u64,
    /// What is not in the output, by path, and why, once for each path and reason: objects of later files, and those that
    /// cannot be copied.
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
    /// The sum so far, how others are added to it, and the number of files that it is of.
    Sum(Object, Add, u64),
    /// The output has it; why others are not added.
    Written(String, Equal),
    /// It cannot be copied.
    Refused(String),
}

/// Which other objects of a path need not be added.
#[derive(Debug, Clone, Copy)]
enum Equal {
    /// Those with this checksum.
    To(u64),
    None,
}

/// What is left out, with the number of files.
#[derive(Default)]
struct LeftOut(BTreeMap<(String, String), (String, usize)>);

impl LeftOut {
    fn add(&mut self, path: &str, file: &File, reason: &str) {
        let first = || (file.name().to_owned(), 0);
        self.0.entry((path.to_owned(), reason.to_owned())).or_insert_with(first).1 += 1;
    }

    fn into_skipped(self) -> Vec<Skipped> {
        let skipped = self.0.into_iter().map(|((path, reason), (first, files))| match files {
            1 => Skipped::new(&path, format!("that of {first}: {reason}")),
            2 => Skipped::new(&path, format!("those of {first} and 1 more file: {reason}")),
            _ => Skipped::new(&path, format!("those of {first} and {} more files: {reason}", files - 1)),
        });
        skipped.collect()
    }
}

/// Writes the objects of files that are neither ntuples, trees nor directories, in the newest cycle of each, under their
/// paths. `open` opens a file by its number below `count`, twice each; one is open at a time.
///
/// Objects of the same path are added up as by `hadd`: histograms and profiles with the same axes (bins, squares of weights,
/// entries and statistics), also those of any number of axes (`THnSparse`, `THn`), efficiencies, the points of graphs, and
/// `TParameter` by its bits. Everything else of them is as in the first file that has one. Of objects of other classes the
/// first is taken; others that differ are left out, and so are equal ones of a class that ROOT adds up and this version does
/// not. The directories of all files are made, with the title in the first file that has each.
///
/// # Errors
/// Those of `open`; corrupt where a directory or an object to add is damaged; those of writing.
pub fn merge_objects<E: From<crate::Error>>(
    count: usize,
    mut open: impl FnMut(usize) -> Result<File, E>,
    to: &FileWriter,
    compression: Compression,
) -> Result<MergedObjects, E> {
    let mut places: BTreeMap<String, Occurrences> = BTreeMap::new();
    let mut with_objects = BTreeSet::new();
    let mut left_out = LeftOut::default();
    for number in 0..count {
        let file = open(number)?;
        for (directory, reason) in make_directories(&file, to, |_| true)? {
            left_out.add(&directory, &file, &reason);
        }
        for object in other_objects(&file)? {
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
            let mut leave_out = |reason: &str| left_out.add(&object.path, &file, reason);
            let next = match merging.remove(&object.path) {
                None | Some(Merging::Refused(_)) => {
                    let begun = begin(&file, &object.name(), place, to, compression)?;
                    if let Merging::Refused(reason) = &begun {
                        leave_out(reason);
                    }
                    begun
                }
                Some(Merging::Written(reason, equal)) => {
                    let is_equal = match equal {
                        Equal::To(first) => checksum(&file, &object.name())? == first,
                        Equal::None => false,
                    };
                    if !is_equal {
                        leave_out(&reason);
                    }
                    Merging::Written(reason, equal)
                }
                Some(Merging::Sum(sum, add, of)) => match added(&sum, add, &file, &object.name())? {
                    Ok(sum) => Merging::Sum(sum, add, of + 1),
                    Err(reason) => {
                        leave_out(&reason);
                        Merging::Sum(sum, add, of)
                    }
                },
            };
            let next = match next {
                Merging::Sum(sum, _, of) if place.last == number => {
                    let title = match sum.get("fTitle") {
                        Some(Value::Text(title)) => title.as_str(),
                        _ => "",
                    };
                    match to.object(&object.path, title, &sum, compression) {
                        Err(error) if error.kind() == ErrorKind::Unsupported => {
                            leave_out(&error.reason());
                            Merging::Refused(error.reason())
                        }
                        written => {
                            written?;
                            merged.sums += u64::from(of > 1);
                            Merging::Written(String::new(), Equal::None)
                        }
                    }
                }
                next => next,
            };
            merging.insert(object.path, next);
        }
    }
    merged.written = merging.values().filter(|it| matches!(it, Merging::Written(..))).count() as u64;
    merged.left_out = left_out.into_skipped();
    Ok(merged)
}

/// Takes the first object of a path.
fn begin(file: &File, name: &str, place: &Occurrences, to: &FileWriter, compression: Compression) -> Result<Merging> {
    let why = if place.first == place.last {
        String::new()
    } else if let Some(add) = addition(&place.class_name) {
        match file.object(name) {
            Ok(Value::Object(object)) => match object.write() {
                Ok(_) => return Ok(Merging::Sum((*object).clone(), add, 1)),
                Err(error) => format!("the first one has parts that cannot be written again: {error}"),
            },
            Err(error) if error.is_corrupt() => return Err(error),
            Err(error) => error.reason(),
            Ok(_) => "the first one is not an object".to_owned(),
        }
    } else if is_merged_by_root(&place.class_name) {
        "objects of its class are added up by ROOT, but not by this version".to_owned()
    } else {
        "objects of its class are not merged, and that of the first file is different".to_owned()
    };
    match to.copy_object(file, name, compression) {
        // An invalid argument is a name that is not written.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument) => {
            Ok(Merging::Refused(error.reason()))
        }
        copied => {
            copied?;
            let equal = match why.is_empty() || is_merged_by_root(&place.class_name) {
                true => Equal::None,
                false => Equal::To(checksum(file, name)?),
            };
            Ok(Merging::Written(why, equal))
        }
    }
}

/// The checksum of an object before compression.
fn checksum(file: &File, name: &str) -> Result<u64> {
    file.with_object(name, |_, bytes, _| Ok(xxh3(bytes)))
}

/// The sum with another object, or why there is none.
fn added(sum: &Object, add: Add, file: &File, name: &str) -> Result<Result<Object, String>> {
    match file.object(name) {
        Ok(Value::Object(other)) if other.class_name() == sum.class_name() => Ok(add(sum, &other)),
        Ok(Value::Object(other)) => Ok(Err(format!("it is a {}, not a {}", other.class_name(), sum.class_name()))),
        Ok(_) => Ok(Err("it is not an object".to_owned())),
        Err(error) if error.is_corrupt() => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}
