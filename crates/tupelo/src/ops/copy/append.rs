//! Adding fields to an ntuple in its file.

use super::super::{Progress, pipe};
use super::{prepared, schema};
use crate::reader::Read;
use crate::writer::{FileWriter, WriteOptions, WriteProgress};
use crate::{Error, Result};

/// Adds the fields and computed columns of a read to an ntuple that the file has: see
/// [`FileWriter::append_fields`]. The read has an entry for each entry of the ntuple, in the same order; it may be one of the
/// ntuple itself, with computed columns, or of a [join](crate::Table::join_by) with it. `None` if `progress` cancelled: the
/// file can then only be dropped.
///
/// # Errors
/// Invalid argument for another number of entries and for a cut; those of reading, and of [`FileWriter::append_fields`] and its
/// writer.
pub fn append_fields(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<WriteProgress>> {
    if read.source().schema().is_of_tree() {
        let what = "fields of trees cannot be added to an ntuple; import the tree, and add those of the copy";
        return Err(read.context(Error::unsupported(what)));
    }
    let (read, _) = prepared(read)?;
    let streamer_infos = read.source().sidecar().streamer_infos()?;
    file.add_streamer_info(&streamer_infos)?;
    let mut writer = file.append_fields(path, &schema(&read)?, options)?;
    match pipe(read.with_binary_strings(true), Ok, &mut writer, progress)? {
        Some(_) => writer.finish().map(Some),
        None => Ok(None),
    }
}
