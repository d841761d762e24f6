//! Trees of several files as one.

use std::ops::ControlFlow;

use crate::reader::{Skipped, Tree};
use crate::writer::{FileWriter, MoveOptions, WriteProgress};
use crate::{Error, ErrorKind, Result};

/// What became of the trees of a path.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MergedTree {
    /// What was written; `None` if the tree was left out.
    pub written: Option<WriteProgress>,
    /// What is not in the output, and why.
    pub left_out: Vec<Skipped>,
}

/// Writes the entries of `count` trees as one tree. `open` opens them by number; one is open at a time.
///
/// Baskets are copied as they are stored, unless the options say otherwise. The tree keeps classes, titles and all else of the
/// first one. What cannot be copied in this way is left out. `progress` receives the stored bytes that are done, and may end
/// the work: the result is then `None`.
///
/// # Errors
/// Those of `open`; invalid argument for trees that have other branches than the first one; not found, with near names, for
/// options that match no branch; corrupt where a tree is damaged; those of writing.
pub fn merge_tree<E: From<Error>>(
    path: &str,
    count: usize,
    mut open: impl FnMut(usize) -> Result<Tree, E>,
    to: &FileWriter,
    options: MoveOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<MergedTree>, E> {
    let mut writer = to.moved_tree(path, options)?;
    let (mut merged, mut before) = (MergedTree::default(), 0);
    for number in 0..count {
        let mut done = 0;
        let appended = writer.append(&open(number)?, &mut |now| {
            done = now;
            progress(before + now)
        });
        before += done;
        match appended {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return refused(writer.abandon(), error, path),
        }
    }
    match writer.finish() {
        Ok(written) => merged.written = Some(written),
        Err(error) => return refused(writer.abandon(), error, path),
    }
    merged.left_out.extend(writer.left_out().into_iter().map(|what| Skipped::new(path, what)));
    Ok(Some(merged))
}

/// What became of a tree that cannot be written: it was abandoned.
fn refused<E: From<Error>>(abandoned: Result<()>, error: Error, path: &str) -> Result<Option<MergedTree>, E> {
    if error.kind() != ErrorKind::Unsupported {
        return Err(error.into());
    }
    abandoned?;
    Ok(Some(MergedTree { written: None, left_out: vec![Skipped::new(path, error.to_string())] }))
}
