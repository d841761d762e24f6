//! Decode and write again: other fields, entries, codec, page and cluster size.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};

use super::import::{imported, relabelled, representable};
use crate::reader::{Attached, Attributes, Ntuple, Read, Skipped};
use crate::schema::{Field, Schema, same, with_data_type};
use crate::writer::{AttributeSetWriter, FileWriter, NtupleWriter, WriteOptions, WriteProgress};
use crate::{Error, Result};

/// Memory of the entries that are decoded at once, in bytes: 16 MiB.
const BATCH_BYTES: u64 = 16 << 20;

/// Copies the selected fields and entries of an ntuple into a new one: see [`Copier`]. `progress` receives the number
/// of selected entries that are done, and may cancel the copy: the result is then `None`, and the file can only be
/// dropped. Otherwise it comes with the [warnings](Copier::warnings).
///
/// # Errors
/// Those of reading and of writing.
pub fn copy(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: WriteOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<(WriteProgress, Vec<String>)>> {
    let mut copier = Copier::create(&read, file, path, options)?;
    match copier.append(read, progress)? {
        ControlFlow::Continue(()) => {
            let warnings = copier.warnings.clone();
            Ok(Some((copier.finish()?, warnings)))
        }
        ControlFlow::Break(()) => Ok(None),
    }
}

/// An ntuple that is filled with entries of others, one after the other.
///
/// The selection of a read is copied: fields, entries, cut and computed columns. C++ types, descriptions and
/// encodings stay as they are; the description of the ntuple too, unless the options give another. The layouts of
/// classes that the source's file describes go into the new file, beside those that it has. Attribute sets are copied
/// too, limited to the copied entries; attributes of no copied entry are left out. Metadata is copied too; keys that
/// already have a value keep it. A tree becomes an ntuple, with the types that an
/// [import](super::import) gives it.
#[derive(Debug)]
pub struct Copier<'f> {
    file: &'f FileWriter,
    writer: NtupleWriter,
    /// Those that were written to, by name.
    sets: HashMap<String, AttributeSetWriter>,
    warnings: Vec<String>,
    /// The Arrow schema of what is written, if the sources may lack fields of it.
    union: Option<SchemaRef>,
}

/// The fields that any of several sources has; those that some lack are optional. Projected fields are stored.
#[derive(Debug, Default)]
pub struct Union {
    /// Each with the number of sources that have it.
    fields: Vec<(Field, usize)>,
    places: HashMap<String, usize>,
    sources: usize,
}

impl Union {
    /// Adds the fields of another source.
    ///
    /// # Errors
    /// Invalid argument, which names a field that differs from an earlier source.
    pub fn add(&mut self, read: &Read) -> Result<()> {
        self.sources += 1;
        for mut field in schema(read)?.fields {
            field.store();
            match self.places.get(&field.name) {
                None => {
                    self.places.insert(field.name.clone(), self.fields.len());
                    self.fields.push((field, 1));
                }
                Some(&place) => {
                    let (known, sources) = &mut self.fields[place];
                    same(known, &field, &field.name).map_err(|error| read.context(error))?;
                    *sources += 1;
                }
            }
        }
        Ok(())
    }

    fn schema(&self) -> Result<Schema> {
        let field = |(field, sources): &(Field, usize)| match *sources == self.sources {
            true => Ok(field.clone()),
            false => field.optional().map_err(|error| error.in_field(&field.name)),
        };
        Ok(Schema { fields: self.fields.iter().map(field).collect::<Result<_>>()? })
    }
}

impl<'f> Copier<'f> {
    /// Begins a new ntuple with the fields of `like`.
    ///
    /// # Errors
    /// As [`FileWriter::ntuple`].
    pub fn create(like: &Read, file: &'f FileWriter, path: &str, options: WriteOptions) -> Result<Self> {
        let (prepared, warnings) = prepared(like.clone())?;
        Ok(Self { warnings, ..Self::with_schema(like, &schema(&prepared)?, file, path, options)? })
    }

    /// Begins a new ntuple with all fields of several sources, starting with `like`. What is appended may lack
    /// those that are optional; they are null in its entries.
    ///
    /// # Errors
    /// As [`FileWriter::ntuple`]; invalid argument for a field that cannot be optional.
    pub fn create_union(
        like: &Read,
        union: &Union,
        file: &'f FileWriter,
        path: &str,
        options: WriteOptions,
    ) -> Result<Self> {
        let created = Self::with_schema(like, &union.schema()?, file, path, options)?;
        let columns: SchemaRef = created.writer.schema().to_arrow(true).into();
        Ok(Self { union: Some(columns), ..created })
    }

    fn with_schema(
        like: &Read,
        schema: &Schema,
        file: &'f FileWriter,
        path: &str,
        options: WriteOptions,
    ) -> Result<Self> {
        let sidecar = like.source().sidecar();
        let options = match options.description().is_empty() {
            true => options.with_description(sidecar.description()),
            false => options,
        };
        let options = options.with_extra_type_info(sidecar.extra_type_info().to_vec());
        Ok(Self::over(file, file.ntuple(path, schema, options)?))
    }

    /// Continues an ntuple that the file has. Its fields, their encodings and its description stay as they are.
    ///
    /// # Errors
    /// As [`FileWriter::append`].
    pub fn extend(file: &'f FileWriter, path: &str, options: WriteOptions) -> Result<Self> {
        Ok(Self::over(file, file.append(path, options)?))
    }

    fn over(file: &'f FileWriter, writer: NtupleWriter) -> Self {
        Self { file, writer, sets: HashMap::new(), warnings: Vec::new(), union: None }
    }

    /// Appends the selected entries. Fields are matched by name and must have the same type. `progress` receives the
    /// number of selected entries that are done, and may cancel the copy.
    ///
    /// # Errors
    /// Invalid argument if the fields differ from those of the ntuple, before anything is written; those of
    /// reading and of writing.
    pub fn append(&mut self, read: Read, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        let read = if self.union.is_some() { read } else { prepared(read)?.0 };
        let first = read.range().start;
        let source = Arc::clone(read.source());
        let order = match &self.union {
            Some(_) => Vec::new(),
            None => self.writer.schema().order_of(&schema(&read)?).map_err(|e| source.context(e))?,
        };
        let sidecar = source.sidecar();
        self.file.add_streamer_info(&sidecar.streamer_infos()?)?;
        let attached = sidecar.attached()?;
        let mut sets = Vec::new();
        for Attached { first_entry, sets: own, .. } in &attached {
            for (name, set) in own {
                sets.push(AttachedSet { name, set, attributes: set.rows(true)?, first_entry: *first_entry });
            }
        }
        let before = self.writer.entries();
        let mut places = Places::of(&sets);
        // The numbers of the entries are the last column.
        let mut batches = read.with_binary_strings(true).with_entry_numbers("").batches_of_bytes(BATCH_BYTES)?;
        while let Some(batch) = batches.next() {
            let mut batch: RecordBatch = batch?;
            let numbers = batch.remove_column(batch.num_columns() - 1);
            places.pass(numbers.as_primitive());
            self.writer.write(&match &self.union {
                Some(columns) => with_nulls(&batch, columns)?,
                None => self.typed(batch.project(&order)?, source.schema().is_of_tree())?,
            })?;
            if progress(batches.position() - first).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for AttachedSet { name, set, attributes, first_entry } in &sets {
            let moves = before + first_entry > 0 || places.copied < source.entries();
            let moved = moves.then(|| attributes.moved(|bound| before + places.place(first_entry + bound)));
            let moved = moved.transpose()?;
            let attributes = moved.as_ref().unwrap_or(attributes);
            if !self.sets.contains_key(*name) {
                let begun = self.writer.attribute_set(name, &set.user_schema()?)?;
                self.sets.insert((*name).clone(), begun);
            }
            if let Some(writer) = self.sets.get_mut(*name) {
                writer.write(attributes.ranges(), attributes.values())?;
            }
        }
        attached.iter().try_for_each(|part| self.add_metadata(part))?;
        Ok(ControlFlow::Continue(()))
    }

    fn add_metadata(&mut self, part: &Attached) -> Result<()> {
        let known = self.writer.metadata();
        for (key, value) in &part.metadata {
            match known.get(key) {
                None => self.writer.set_metadata(key, value)?,
                Some(kept) if kept != value => {
                    let what = format!("metadata '{key}': kept the value '{kept}', '{value}' was not copied");
                    self.warnings.push(part.ntuple.context(Error::invalid_argument(what)).to_string());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The batch in the types of the ntuple, which are not those of a tree.
    fn typed(&self, batch: RecordBatch, is_of_tree: bool) -> Result<RecordBatch> {
        if !is_of_tree {
            return Ok(batch);
        }
        let fields = self.writer.schema().to_arrow(true);
        let columns = batch.columns().iter().zip(fields.fields());
        let columns = columns.map(|(column, field)| relabelled(column, field.data_type()));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let typed = fields.fields().iter().zip(&columns);
        let typed = typed.map(|(field, column)| with_data_type(field, column.data_type().clone()));
        let schema = Arc::new(ArrowSchema::new(typed.collect::<Vec<_>>()));
        let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &count)?)
    }

    /// What was selected but not copied: one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Ends the ntuple.
    ///
    /// # Errors
    /// As [`NtupleWriter::finish`].
    pub fn finish(mut self) -> Result<WriteProgress> {
        self.writer.finish()
    }
}

/// A batch with the columns of a union, those that it lacks with nulls.
fn with_nulls(batch: &RecordBatch, columns: &SchemaRef) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(columns.fields().len());
    let column = |field: &Arc<arrow_schema::Field>| {
        let known = batch.column_by_name(field.name()).cloned();
        let array = known.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()));
        fields.push(field.as_ref().clone().with_data_type(array.data_type().clone()));
        array
    };
    let arrays: Vec<ArrayRef> = columns.fields().iter().map(column).collect();
    if let Some(other) = batch.schema().fields().iter().find(|field| columns.field_with_name(field.name()).is_err()) {
        let what = "is missing in some sources; the file was changed";
        return Err(Error::invalid_argument(what).in_field(other.name()));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)?)
}

/// Says whether entries of two ntuples can be copied into one.
///
/// # Errors
/// Invalid argument, which names the field in which they differ.
pub fn check_alike(first: &Read, other: &Read) -> Result<()> {
    let order = schema(first)?.order_of(&schema(other)?);
    order
        .map(|_| ())
        .map_err(|e| other.context(e.within(format!("fields differ from those in {}", first.source().file_name()))))
}

/// What is written.
pub(super) fn schema(read: &Read) -> Result<Schema> {
    let mut schema = read.source().schema().explicit_encodings(&read.schema_with_computed()?);
    if read.source().schema().is_of_tree() {
        schema.fields.iter_mut().for_each(|field| *field = imported(field));
    }
    Ok(schema)
}

/// The read with everything needed for writing it, and what is left out: one sentence each.
fn prepared(read: Read) -> Result<(Read, Vec<String>)> {
    if !read.source().schema().is_of_tree() {
        return Ok((read.with_projected_sources(), Vec::new()));
    }
    let (read, skipped) = representable(read)?;
    let warning = |skipped: &Skipped| format!("'{}' is left out: {}", skipped.name, skipped.reason);
    Ok((read, skipped.iter().map(warning).collect()))
}

/// An attribute set of a part of what is copied.
struct AttachedSet<'a> {
    name: &'a String,
    set: &'a Ntuple,
    attributes: Attributes,
    /// The place of the first entry of the part.
    first_entry: u64,
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
    fn of(sets: &[AttachedSet<'_>]) -> Self {
        let bounds = sets.iter().flat_map(|set| {
            set.attributes
                .ranges()
                .iter()
                .flat_map(|range| [range.start, range.end].map(|bound| set.first_entry + bound))
        });
        let mut bounds: Vec<u64> = bounds.collect();
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
