//! Decode and write again: other fields, entries, codec, page and cluster size.

use std::ops::Range;

use tupelo_format::container;

use crate::Result;
use crate::reader::Ntuple;
use crate::writer::{FileWriter, WriteOptions, Written};

/// Entries that are decoded at once.
const BATCH_ENTRIES: u64 = 1 << 16;

/// Copies the chosen fields and entries of an ntuple. C++ types, descriptions and encodings stay as they are; the
/// description of the ntuple too, unless the options give another. The layouts of classes that the source's file
/// describes go into the new file, beside those that it has. `progress` is told how many entries are done.
///
/// # Errors
/// Those of reading and of writing.
pub fn copy<S: AsRef<str>>(
    ntuple: &Ntuple,
    patterns: &[S],
    entries: Range<u64>,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Written> {
    let read = ntuple.read(patterns)?.entries(entries).with_binary_strings(true);
    let options = match options.description().is_empty() {
        true => options.with_description(ntuple.description()),
        false => options,
    };
    let options = options.with_extra_type_info(ntuple.descriptor().extra_type_info().to_vec());
    let schema = ntuple.explicit_encodings(read.schema());
    let infos = ntuple.source().file().attempt(container::streamer_infos);
    file.add_streamer_info(&infos.map_err(|e| ntuple.context(e))?)?;
    let mut writer = file.ntuple(path, &schema, options)?;
    for batch in read.batches(BATCH_ENTRIES)? {
        writer.write(&batch?)?;
        progress(writer.entries());
    }
    writer.finish()
}
