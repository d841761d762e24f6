//! The objects of a file besides its trees.

use std::collections::HashSet;

use tupelo_format::compression::Compression;
use tupelo_schema::schema::Glob;

use super::super::{make_directories, other_objects};
use crate::reader::File;
use crate::writer::FileWriter;
use crate::{Error, Result};

/// Copies the objects of a file whose paths match, as [`FileWriter::copy_object`] does: the newest cycle of all that are
/// neither trees, ntuples nor directories. `*` matches within a name of a path, `**` any number of names. Directories whose
/// paths match are made, with their titles, even if they are empty. Objects whose paths are in `known` are left out, and
/// returned; the others are added to it.
///
/// # Errors
/// Not found, with near names, for a pattern that matches nothing; those of copying.
pub fn copy_objects(
    from: &File,
    to: &FileWriter,
    patterns: &[String],
    compression: Compression,
    known: &mut HashSet<String>,
) -> Result<Vec<String>> {
    let objects = other_objects(from)?;
    let globs = patterns.iter().map(|pattern| Ok((pattern, Glob::new(pattern, '/')?))).collect::<Result<Vec<_>>>()?;
    let is_match = |(pattern, glob): &(&String, Option<Glob>), path: &str| {
        glob.as_ref().map_or(path == *pattern, |glob| glob.is_match(path))
    };
    let is_used =
        |it: &(&String, Option<Glob>)| *it.0 == "**" || objects.iter().any(|object| is_match(it, &object.path));
    if let Some((unused, _)) = globs.iter().find(|it| !is_used(it)) {
        let error = Error::no_such("object", unused, objects.iter().map(|object| object.path.as_str()));
        return Err(error.in_file(from.name()));
    }
    let is_chosen = |path: &str| globs.iter().any(|it| is_match(it, path));
    let refused = make_directories(from, to, is_chosen)?;
    let mut left_out: Vec<String> = refused.into_iter().map(|(path, _)| path).collect();
    for object in objects.iter().filter(|object| is_chosen(&object.path)) {
        match known.insert(object.path.clone()) {
            true => to.copy_object(from, &object.name(), compression)?,
            false => left_out.push(object.path.clone()),
        }
    }
    Ok(left_out)
}
