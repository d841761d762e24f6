//! Decode and write again: other fields, entries, codec, page and cluster size.

use std::ops::{ControlFlow, Range};

use tupelo_format::container;

use crate::Result;
use crate::reader::{METADATA_SET, Ntuple};
use crate::writer::{FileWriter, NtupleWriter, WriteOptions, Written};

/// Memory of the entries that are decoded at once, in bytes: 16 MiB.
const BATCH_BYTES: u64 = 16 << 20;

/// Copies the chosen fields and entries of an ntuple. C++ types, descriptions and encodings stay as they are; the
/// description of the ntuple too, unless the options give another. The layouts of classes that the source's file
/// describes go into the new file, beside those that it has. Attribute sets go along: where not all entries are copied,
/// what rows say of the others is left out, and rows that speak of no copied entry too. `progress` is told how many
/// entries are done, and may break off: then there is no answer, and the file can only be given up.
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
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Written>> {
    let read = ntuple.read(patterns)?.entries(entries.clone()).with_binary_strings(true);
    let options = match options.description().is_empty() {
        true => options.with_description(ntuple.description()),
        false => options,
    };
    let options = options.with_extra_type_info(ntuple.descriptor().extra_type_info().to_vec());
    let schema = ntuple.explicit_encodings(read.schema());
    let infos = ntuple.source().file().attempt(container::streamer_infos);
    file.add_streamer_info(&infos.map_err(|e| ntuple.context(e))?)?;
    let mut writer = file.ntuple(path, &schema, options)?;
    for batch in read.batches_of_bytes(BATCH_BYTES)? {
        writer.write(&batch?)?;
        if progress(writer.entries()).is_break() {
            return Ok(None);
        }
    }
    copy_attributes(ntuple, &entries, &mut writer)?;
    writer.finish().map(Some)
}

fn copy_attributes(ntuple: &Ntuple, entries: &Range<u64>, writer: &mut NtupleWriter) -> Result<()> {
    let metadata = ntuple.own_metadata()?;
    for name in ntuple.attribute_sets() {
        if let Some(metadata) = metadata.as_ref().filter(|_| name == METADATA_SET) {
            metadata.iter().try_for_each(|(key, value)| writer.set_metadata(key, value))?;
            continue;
        }
        let set = ntuple.attribute_set(name)?;
        let rows = set.rows(true)?;
        let rows = if *entries == (0..ntuple.entries()) { rows } else { rows.cut(entries)? };
        writer.attribute_set(name, &set.user_schema()?)?.write(rows.ranges(), rows.values())?;
    }
    Ok(())
}
