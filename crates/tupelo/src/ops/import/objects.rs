//! The objects of a file besides its trees.

use std::collections::HashSet;

use tupelo_format::compression::Compression;

use super::super::other_objects;
use crate::reader::File;
use crate::schema::Glob;
use crate::writer::FileWriter;
use crate::{Error, Result};

/// Copies the objects of a file whose paths match, as [`FileWriter::copy_object`] does: the newest cycle of all that are
/// neither trees, ntuples nor directories. `*` matches within a name of a path, `**` any number of names. Objects whose
/// paths are in `known` are left out, and returned; the others are added to it.
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
    let mut chosen = vec![false; objects.len()];
    for pattern in patterns {
        let glob = Glob::new(pattern, '/')?;
        let mut is_used = false;
        for (object, chosen) in objects.iter().zip(&mut chosen) {
            let is_match = glob.as_ref().map_or(object.path == *pattern, |glob| glob.is_match(&object.path));
            *chosen |= is_match;
            is_used |= is_match;
        }
        if !is_used && pattern != "**" {
            let error = Error::no_such("object", pattern, objects.iter().map(|object| object.path.as_str()));
            return Err(error.in_file(from.name()));
        }
    }
    let mut left_out = Vec::new();
    for (object, _) in objects.into_iter().zip(chosen).filter(|(_, chosen)| *chosen) {
        match known.insert(object.path.clone()) {
            true => to.copy_object(from, &object.name(), compression)?,
            false => left_out.push(object.path),
        }
    }
    Ok(left_out)
}
