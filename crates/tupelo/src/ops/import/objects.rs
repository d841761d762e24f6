//! The objects of a file besides its trees.

use std::collections::HashSet;

use tupelo_format::compression::Compression;

use super::super::{directories, other_objects};
use crate::reader::File;
use crate::schema::Glob;
use crate::writer::FileWriter;
use crate::{Error, ErrorKind, Result};

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
    let (objects, directories) = (other_objects(from)?, directories(from)?);
    let mut chosen = vec![false; objects.len()];
    let mut left_out = Vec::new();
    for pattern in patterns {
        let glob = Glob::new(pattern, '/')?;
        let is_match = |path: &str| glob.as_ref().map_or(path == pattern, |glob| glob.is_match(path));
        let mut is_used = false;
        for (object, chosen) in objects.iter().zip(&mut chosen) {
            let is_match = is_match(&object.path);
            *chosen |= is_match;
            is_used |= is_match;
        }
        for directory in directories.iter().filter(|directory| is_match(&directory.path)) {
            match to.file_sink()?.make_directory(&directory.path, Some(&directory.title)) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => left_out.push(directory.path.clone()),
                made => made?,
            }
        }
        if !is_used && pattern != "**" {
            let error = Error::no_such("object", pattern, objects.iter().map(|object| object.path.as_str()));
            return Err(error.in_file(from.name()));
        }
    }
    for (object, _) in objects.into_iter().zip(chosen).filter(|(_, chosen)| *chosen) {
        match known.insert(object.path.clone()) {
            true => to.copy_object(from, &object.name(), compression)?,
            false => left_out.push(object.path),
        }
    }
    Ok(left_out)
}
