//! Decode and write again: other fields, entries, codec, page and cluster size.

pub mod append;
mod options;
mod salvage;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::Schema as ArrowSchema;
use tupelo_core::pool::{self, Spawned};
use tupelo_pages::plan::Continuity;
use tupelo_schema::schema::Schema;

pub use self::options::CopyOptions;
pub use self::salvage::{Lost, Salvaged, salvage, salvage_tree};
use super::Progress;
use super::import::{ClassNames, batch_of, imported, relabelled, representable, without_referenced};
use crate::reader::{Attached, Attributes, Ntuple, Read, Sealed, Skipped};
use crate::writer::{AttributeSetWriter, EntrySink, FileWriter, NtupleWriter, WriteOptions, WriteProgress};
use crate::{Error, ErrorKind, Result};

/// Smallest memory of a batch where a copy stops at a size, in bytes.
const MIN_BATCH_BYTES: u64 = 64 << 10;

/// What becomes of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pages {
    /// All entries are decoded and encoded again, as the options say.
    #[default]
    Encode,
    /// The pages of whole clusters stay as they are, in the codec of the source, where their fields are copied with the same
    /// columns and without a cut. Their checksums are compared. Other entries are decoded, and encoded in the codec of the
    /// source.
    Keep,
}

/// What was copied.
#[derive(Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The size of the ntuple.
    pub written: WriteProgress,
    /// What was selected but not copied: one sentence each.
    pub warnings: Vec<String>,
    /// The entry of the source after the last one that was read: where to continue if the options stopped the copy.
    pub end: u64,
    /// Whether some clusters store fields in other encodings than others do: see [`Copied::note`].
    is_mixed: bool,
}

impl Copied {
    /// What a user should know of an ntuple whose clusters store fields in different encodings.
    pub fn note(&self) -> Option<&'static str> {
        let note = "its pages keep the different encodings of the inputs, which uproot 5.7 misreads; with a compression all \
                    are written in one encoding";
        self.is_mixed.then_some(note)
    }
}

/// Copies what a read selects into a new ntuple: fields, entries, cut and computed columns. `None` if `progress` cancelled:
/// the file can then only be dropped.
///
/// C++ types, descriptions and encodings stay as they are; the description of the ntuple too, unless the options give
/// another. `how` can give fields other names, and stop early. The layouts of classes that the files of the source describe
/// go into the new file, beside those that it has.
/// Attribute sets are copied too, limited to the copied entries; attributes of no copied entry are left out. Metadata is
/// copied too; keys that already have a value keep it. A tree becomes an ntuple, with the types that an
/// [import](super::import) gives it.
///
/// # Errors
/// Those of reading, of [`FileWriter::ntuple`] and its writer, and of [`CopyOptions::check`].
pub fn copy(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    how: impl Into<CopyOptions>,
    progress: &mut Progress<'_>,
) -> Result<Option<Copied>> {
    let how = how.into();
    let (read, warnings) = prepared(read)?;
    let sidecar = read.source().sidecar();
    let compression = match how.pages {
        Pages::Keep => sidecar.compression()?,
        Pages::Encode => None,
    };
    let options = compression.into_iter().fold(options, WriteOptions::with_compression);
    let options = match options.description().is_empty() {
        true => options.with_description(sidecar.description()),
        false => options,
    };
    let options = options.with_extra_type_info(sidecar.extra_type_info().to_vec());
    let options = options.with_max_cluster_bytes(how.max_stored_bytes);
    let options = options.with_kept_representations(how.pages == Pages::Keep);
    let schema = how.schema(&read)?;
    let writer = file.ntuple(path, &schema, options)?;
    Copier::new(file, writer, how, warnings).copy(&read, &schema, progress)
}

/// Appends what a read selects to an ntuple that the file has, whose fields, encodings and description stay as they are.
/// Otherwise as [`copy`].
///
/// # Errors
/// Invalid argument if the fields differ from those of the ntuple, before anything is written; those of reading, and of
/// [`FileWriter::append`] and its writer.
pub fn extend(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    how: impl Into<CopyOptions>,
    progress: &mut Progress<'_>,
) -> Result<Option<Copied>> {
    let how = how.into();
    let (read, warnings) = prepared(read)?;
    let schema = how.schema(&read)?;
    let writer = file.append(path, options)?;
    Copier::new(file, writer, how, warnings).copy(&read, &schema, progress)
}

/// An ntuple that is filled.
struct Copier<'f> {
    file: &'f FileWriter,
    writer: NtupleWriter,
    how: CopyOptions,
    /// Entries and stored bytes before the first copied entry.
    before: (u64, u64),
    /// The entry of the source at which the options stopped the copy.
    stopped: Option<u64>,
    /// Those that were written to, by name, with their fields in the first file that has them.
    sets: HashMap<String, (Schema, AttributeSetWriter)>,
    warnings: Vec<String>,
    is_mixed: bool,
    lost: Vec<LostMetadata>,
}

/// Values of the metadata that are not copied because an earlier file has another one.
struct LostMetadata {
    key: String,
    /// A sentence about the first of them.
    warning: String,
    /// Number of files that have them.
    files: usize,
}

impl<'f> Copier<'f> {
    fn new(file: &'f FileWriter, writer: NtupleWriter, how: CopyOptions, warnings: Vec<String>) -> Self {
        let before = (writer.entries(), writer.stored_bytes());
        Self {
            file,
            writer,
            how,
            before,
            stopped: None,
            sets: HashMap::new(),
            warnings,
            lost: Vec::new(),
            is_mixed: false,
        }
    }

    /// Number of entries that may follow.
    fn left(&self) -> u64 {
        self.how.max_entries.saturating_sub(self.writer.entries() - self.before.0)
    }

    /// Stops before an entry of the source if the options say so; returns whether they do.
    fn may_stop(&mut self, next: u64) -> bool {
        let stored_bytes = self.writer.stored_bytes().saturating_sub(self.before.1);
        if self.left() == 0 || stored_bytes >= self.how.max_stored_bytes {
            self.stopped = Some(next);
        }
        self.stopped.is_some()
    }

    /// Copies what a read selects, with the fields of `schema`.
    fn copy(mut self, read: &Read, schema: &Schema, progress: &mut Progress<'_>) -> Result<Option<Copied>> {
        let (source, mut range) = (read.source(), read.range());
        if !read.has_cut() {
            range.end = range.end.min(range.start.saturating_add(self.how.max_entries));
        }
        let order = self.writer.schema().order_of(schema).map_err(|e| source.context(e))?;
        let parts = source.parts();
        for (number, part) in parts.iter().enumerate() {
            let [start, end] = [range.start, range.end].map(|entry| entry.clamp(part.start, part.end));
            let chosen = start..end;
            // A file with none of the entries has nothing to say of them.
            if chosen.is_empty() && !part.is_empty() && parts.len() > 1 {
                continue;
            }
            let before = start.saturating_sub(range.start);
            let attached = source.sidecar().attached(number)?;
            let mut progress = |done| progress(before + done);
            if !self.copy_part(read.clone().entries(chosen), part, attached, &order, &mut progress)? {
                return Ok(None);
            }
            if self.stopped.is_some() {
                break;
            }
        }
        let mut warnings = self.warnings;
        warnings.extend(self.lost.into_iter().map(|lost| match lost.files {
            0 | 1 => lost.warning,
            files => format!("{} (nor those of {} more files)", lost.warning, files - 1),
        }));
        let end = self.stopped.unwrap_or(range.end);
        Ok(Some(Copied { written: self.writer.finish()?, warnings, end, is_mixed: self.is_mixed }))
    }

    /// Copies what a read selects of the entries of a file; false if that was cancelled.
    fn copy_part(
        &mut self,
        read: Read,
        entries: &Range<u64>,
        attached: Attached,
        order: &[usize],
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        self.file.add_streamer_info(&attached.streamer_infos)?;
        let set = |(name, set): &(String, Ntuple)| Ok((name.clone(), set.user_schema()?, set.all_attributes(true)?));
        let sets: Vec<(String, Schema, Attributes)> = attached.sets.iter().map(set).collect::<Result<_>>()?;
        let before = self.writer.entries();
        let mut places = Places::of(sets.iter().map(|(.., attributes)| attributes), entries.start);
        if !self.copy_entries(&read, order, &mut places, progress)? {
            return Ok(false);
        }
        // Where nothing moves, attributes of no entry stay, too.
        let moves = before > 0 || places.copied < entries.end - entries.start;
        let first_entry = entries.start;
        for ((name, schema, attributes), (_, set)) in sets.iter().zip(&attached.sets) {
            let moved = moves.then(|| attributes.moved(|bound| before + places.place(first_entry + bound)));
            let moved = moved.transpose()?;
            let moved = moved.as_ref().unwrap_or(attributes);
            if !self.sets.contains_key(name) {
                let writer = self.writer.attribute_set(name, schema)?;
                self.sets.insert(name.clone(), (schema.clone(), writer));
            }
            if let Some((first, writer)) = self.sets.get_mut(name) {
                let written = writer.write(moved.ranges(), moved.values());
                written.map_err(|error| match error.kind() {
                    ErrorKind::InvalidArgument => set.context(other_fields(schema, first)),
                    _ => error,
                })?;
            }
        }
        self.add_metadata(&attached)?;
        for what in attached.tree.lost() {
            let warning = format!("{what} is left out: ntuples have none");
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        Ok(true)
    }

    /// Copies the entries: clusters with their pages as they are, if they may stay, and what is between them decoded.
    fn copy_entries(
        &mut self,
        read: &Read,
        order: &[usize],
        places: &mut Places,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        let range = read.range();
        let (mut done, mut next, mut keeps_pages) = (range.start, range.start, self.how.pages == Pages::Keep);
        let mut continuity = Continuity::default();
        // The next cluster is listed, and its file opened, while the pages of one are written.
        let list_ahead = |from: u64| {
            if from >= range.end || !pool::is_concurrent() {
                return None;
            }
            let (read, order, entries) = (read.clone(), order.to_vec(), from..range.end);
            pool::spawn_waiting(move || read.sealed(&order, &entries))
        };
        let mut listed = None;
        while keeps_pages && next < range.end {
            let sealed = listed.take().and_then(Spawned::wait);
            let Sealed { end, cluster, missing, elements } =
                sealed.unwrap_or_else(|| read.sealed(order, &(next..range.end)))?;
            listed = list_ahead(end);
            let (number, elements) = elements;
            for (column, elements) in elements {
                continuity.go_on(number, column, elements).map_err(|error| read.context(error))?;
            }
            match cluster.map(|(cluster, pages)| (self.writer.check_sealed(cluster, missing), pages)) {
                None => {}
                // Other clusters of the file hardly have other encodings.
                Some((Err(_), _)) => keeps_pages = false,
                Some((Ok(cluster), pages)) => {
                    if !self.decode(read, done..next, order, places, progress)? {
                        return Ok(false);
                    }
                    if self.stopped.is_some() {
                        return Ok(true);
                    }
                    self.is_mixed |= cluster.has_other_representations();
                    self.writer.append_sealed(cluster, pages)?;
                    places.pass_all(end, end - next);
                    done = end;
                    if progress(done - range.start).is_break() {
                        return Ok(false);
                    }
                    if self.may_stop(end) {
                        return Ok(true);
                    }
                }
            }
            next = end;
        }
        self.decode(read, done..range.end, order, places, progress)
    }

    fn decode(
        &mut self,
        read: &Read,
        entries: Range<u64>,
        order: &[usize],
        places: &mut Places,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        // A read without entries checks whether it could be done.
        if entries.is_empty() && !read.range().is_empty() {
            return Ok(true);
        }
        let before = entries.start - read.range().start;
        let is_of_tree = read.source().schema().is_of_tree();
        let types = self.writer.schema().to_arrow(true);
        // The numbers of the entries are the last column.
        let read = read.clone().entries(entries).with_binary_strings(true).with_entry_numbers("");
        let batch_bytes = <NtupleWriter as EntrySink>::BATCH_BYTES.min(self.how.max_stored_bytes / 4);
        let first = read.range().start;
        let mut batches = read.batches_of_bytes(batch_bytes.max(MIN_BATCH_BYTES))?;
        while let Some(batch) = batches.next() {
            let mut batch = batch?;
            let numbers = batch.remove_column(batch.num_columns() - 1);
            let mut numbers = numbers.as_primitive::<UInt64Type>().clone();
            let mut end = batches.position();
            let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
            if numbers.len() > left {
                (numbers, batch) = (numbers.slice(0, left), batch.slice(0, left));
                end = numbers.values().last().map_or(end, |last| last + 1);
            }
            places.pass(&numbers);
            let batch = batch.project(order)?;
            self.writer.write(&if is_of_tree { typed(&batch, &types)? } else { batch })?;
            if progress(before + (end - first)).is_break() {
                return Ok(false);
            }
            if self.may_stop(end) {
                break;
            }
        }
        Ok(true)
    }

    fn add_metadata(&mut self, attached: &Attached) -> Result<()> {
        let known = self.writer.metadata();
        for (key, value) in &attached.metadata {
            match known.get(key) {
                None => self.writer.set_metadata(key, value)?,
                Some(kept) if kept != value => {
                    let what = format!("metadata '{key}': kept the value '{kept}', '{value}' was not copied");
                    if let Some(lost) = self.lost.iter_mut().find(|lost| lost.key == *key) {
                        lost.files += 1;
                        continue;
                    }
                    let lost = Error::invalid_argument(what);
                    let lost = attached.ntuple.iter().fold(lost, |lost, ntuple| ntuple.context(lost));
                    self.lost.push(LostMetadata { key: key.clone(), warning: lost.to_string(), files: 1 });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The batch in the types of the ntuple, which are not those of a tree.
fn typed(batch: &RecordBatch, types: &ArrowSchema) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(types.fields());
    let columns = columns.map(|(column, field)| relabelled(column, field.data_type()));
    batch_of(types.fields(), columns.collect::<Result<_>>()?, batch.num_rows())
}

/// The fields that are written for a read. Of a tree, objects that derive from `TObject` are read for it.
pub(super) fn schema(read: &Read) -> Result<Schema> {
    let mut schema = read.source().schema().explicit_encodings(&read.schema_with_computed()?);
    if read.source().schema().is_of_tree() {
        let names = without_referenced(ClassNames::of_source(read)?, read)?;
        schema.fields.iter_mut().for_each(|field| *field = imported(field, &names));
    }
    Ok(schema)
}

/// The read with everything needed for writing it, and what is left out: one sentence each.
pub(super) fn prepared(read: Read) -> Result<(Read, Vec<String>)> {
    if !read.source().schema().is_of_tree() {
        return Ok((read.with_projected_sources(), Vec::new()));
    }
    let names = ClassNames::of_source(&read)?;
    let (read, skipped) = representable(read, &names)?;
    let warning = |skipped: &Skipped| format!("'{}' is left out: {}", skipped.name, skipped.reason);
    Ok((read, skipped.iter().map(warning).collect()))
}

fn other_fields(own: &Schema, first: &Schema) -> Error {
    let [own, first] = [own, first].map(|schema| {
        let told = schema.fields.iter().map(|field| format!("'{}' ({})", field.name, field.display_type()));
        told.collect::<Vec<_>>().join(", ")
    });
    Error::unsupported(format!("it has the fields {own}, but the set of the same name in the files before has {first}"))
}

/// The new positions of the entries that attributes refer to.
struct Places {
    /// Where ranges of entries begin or end, ascending.
    bounds: Vec<u64>,
    /// How many copied entries come before each bound, as far as that is known.
    before: Vec<u64>,
    copied: u64,
}

impl Places {
    fn of<'a>(sets: impl Iterator<Item = &'a Attributes>, first_entry: u64) -> Self {
        let ranges = sets.flat_map(Attributes::ranges);
        let mut bounds: Vec<u64> =
            ranges.flat_map(|range| [range.start, range.end].map(|bound| first_entry + bound)).collect();
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

    /// The next `count` entries, the last ones before `end`, are all copied.
    fn pass_all(&mut self, end: u64, count: u64) {
        let start = end - count;
        while let Some(&bound) = self.bounds.get(self.before.len()).filter(|bound| **bound < end) {
            self.before.push(self.copied + bound.saturating_sub(start));
        }
        self.copied += count;
    }

    fn place(&self, bound: u64) -> u64 {
        let known = self.bounds.binary_search(&bound).ok().and_then(|index| self.before.get(index));
        known.copied().unwrap_or(self.copied)
    }
}
