//! Decode and write again: other fields, entries, codec, page and cluster size.

use std::ops::ControlFlow;

use arrow_array::UInt64Array;
use arrow_array::cast::AsArray;
use tupelo_format::container;

use crate::Result;
use crate::reader::{Attributes, METADATA_SET, Ntuple, Read};
use crate::schema::Schema;
use crate::writer::{FileWriter, WriteOptions, Written};

/// Memory of the entries that are decoded at once, in bytes: 16 MiB.
const BATCH_BYTES: u64 = 16 << 20;

/// Copies what is chosen of an ntuple: fields, entries, those that a cut keeps, and computed columns. C++ types,
/// descriptions and encodings stay as they are; the description of the ntuple too, unless the options give another. The
/// layouts of classes that the source's file describes go into the new file, beside those that it has. Attribute sets
/// go along: what rows say of entries that are not copied is left out, and rows that speak of no copied entry too.
/// `progress` is told how many of the chosen entries are done, and may break off: then there is no answer, and the file
/// can only be given up.
///
/// # Errors
/// Those of reading and of writing.
pub fn copy(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Written>> {
    let (ntuple, first) = (read.ntuple().clone(), read.range().start);
    let options = match options.description().is_empty() {
        true => options.with_description(ntuple.description()),
        false => options,
    };
    let options = options.with_extra_type_info(ntuple.descriptor().extra_type_info().to_vec());
    let infos = ntuple.source().file().attempt(container::streamer_infos);
    file.add_streamer_info(&infos.map_err(|e| ntuple.context(e))?)?;
    let read = read.with_projected_sources().with_binary_strings(true);
    let mut writer = file.ntuple(path, &schema(&read)?, options)?;
    let metadata = ntuple.own_metadata()?;
    let sets = attribute_sets(&ntuple, metadata.is_some())?;
    let mut places = Places::of(&sets);
    // The numbers of the entries are the last column.
    let mut batches = read.with_entry_numbers("").batches_of_bytes(BATCH_BYTES)?;
    while let Some(batch) = batches.next() {
        let mut batch = batch?;
        let numbers = batch.remove_column(batch.num_columns() - 1);
        places.pass(numbers.as_primitive());
        writer.write(&batch)?;
        if progress(batches.position() - first).is_break() {
            return Ok(None);
        }
    }
    for (name, set, rows) in &sets {
        let moves = places.copied < ntuple.entries();
        let moved = moves.then(|| rows.moved(|bound| places.place(bound))).transpose()?;
        let rows = moved.as_ref().unwrap_or(rows);
        writer.attribute_set(name, &set.user_schema()?)?.write(rows.ranges(), rows.values())?;
    }
    for (key, value) in metadata.unwrap_or_default() {
        writer.set_metadata(&key, &value)?;
    }
    writer.finish().map(Some)
}

/// Names, fields and rows of the attribute sets, without that of metadata where it is nothing else.
fn attribute_sets(ntuple: &Ntuple, has_own_metadata: bool) -> Result<Vec<(&str, Ntuple, Attributes)>> {
    let names = ntuple.attribute_sets().filter(|&name| !(has_own_metadata && name == METADATA_SET));
    let read = |name| {
        let set = ntuple.attribute_set(name)?;
        let rows = set.rows(true)?;
        Ok((name, set, rows))
    };
    names.map(read).collect()
}

/// What is written.
fn schema(read: &Read) -> Result<Schema> {
    Ok(read.ntuple().explicit_encodings(&read.schema_with_computed()?))
}

/// Where entries go of which attributes speak.
struct Places {
    /// Where ranges of entries begin or end, ascending.
    bounds: Vec<u64>,
    /// How many copied entries come before each bound, as far as that is known.
    before: Vec<u64>,
    copied: u64,
}

impl Places {
    fn of(sets: &[(&str, Ntuple, Attributes)]) -> Self {
        let ranges = sets.iter().flat_map(|(.., rows)| rows.ranges());
        let mut bounds: Vec<u64> = ranges.flat_map(|range| [range.start, range.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        Self { bounds, before: Vec::new(), copied: 0 }
    }

    /// The numbers of the next entries that are copied.
    fn pass(&mut self, numbers: &UInt64Array) {
        while let Some(bound) =
            self.bounds.get(self.before.len()).filter(|bound| numbers.values().last() >= Some(bound))
        {
            self.before.push(self.copied + numbers.values().partition_point(|number| number < bound) as u64);
        }
        self.copied += numbers.len() as u64;
    }

    fn place(&self, bound: u64) -> u64 {
        let known = self.bounds.binary_search(&bound).ok().and_then(|index| self.before.get(index));
        known.copied().unwrap_or(self.copied)
    }
}
