//! Import of trees: the entries of a tree as an ntuple that ROOT reads, and the proof that both are equal.
//!
//! Names follow ROOT's importer (`RNTupleImporter` in `tree/ntupleutil`) and ATLAS's auxiliary stores: see
//! [`ImportOptions`].

mod classes;
mod objects;
mod types;
mod validate;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, LargeListArray, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef};
use tupelo_schema::evolution::relabel;
use tupelo_schema::schema::{Field, Kind, Schema, in_bases, is_auxiliary, with_types_of};

pub(super) use self::classes::ClassNames;
use self::classes::{has_root_object, is_referenced};
pub use self::objects::copy_objects;
pub(super) use self::types::with_lists;
use self::types::{can_be_projected, readable};
pub use self::validate::{Comparison, FieldValidation, Validation, samples};
use super::{Progress, pipe};
use crate::reader::{Read, Skipped};
use crate::writer::{EntrySink, FileWriter, NtupleWriter, WriteOptions, WriteProgress};
use crate::{Error, Result};

/// Prefix of the hidden collections of leaf-count arrays, as in ROOT's importer.
const COLLECTION: &str = "_collection";

/// How branches become fields.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    renames: BTreeMap<String, String>,
    dots: char,
    collections: bool,
    class_names: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { renames: BTreeMap::new(), dots: '_', collections: true, class_names: true }
    }
}

impl ImportOptions {
    /// Names that top-level fields get, by the names in the tree.
    #[must_use]
    pub fn with_renames(mut self, renames: impl IntoIterator<Item = (String, String)>) -> Self {
        self.renames.extend(renames);
        self
    }

    /// What replaces dots in the names of branches, since the names of an ntuple cannot have them; by default `_`, as in
    /// ROOT's importer. `:` tells them apart from other names. ATLAS's auxiliary stores (`XAux.`, `XAuxDyn.y`) always
    /// get colons.
    #[must_use]
    pub fn with_dots(mut self, replacement: char) -> Self {
        self.dots = replacement;
        self
    }

    /// Whether arrays with the same counter become one collection, with the arrays and the counter as projected fields:
    /// the number of items is then stored once. By default yes, as in ROOT's importer.
    #[must_use]
    pub fn with_collections(mut self, collections: bool) -> Self {
        self.collections = collections;
        self
    }

    /// Whether records have the names of their classes, with which ROOT makes objects if it has their dictionaries; by default
    /// yes. Classes that ROOT stores differently, such as those with pointers or a `TString`, never have names.
    #[must_use]
    pub fn with_class_names(mut self, class_names: bool) -> Self {
        self.class_names = class_names;
        self
    }

    fn name(&self, field: &str, branch: &str) -> String {
        if let Some(name) = self.renames.get(field) {
            return name.clone();
        }
        if is_auxiliary(branch, '.') {
            return legal(branch, ':');
        }
        legal(field, self.dots)
    }
}

/// A name without the characters that the format forbids: `dots` replaces dots, and `_` all others.
pub fn legal(name: &str, dots: char) -> String {
    let letter = |c: char| match c {
        '.' => dots,
        ' ' | '/' | '\\' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    name.chars().map(letter).collect()
}

/// How what is chosen of a tree, or of the trees of several files, becomes an ntuple.
#[derive(Debug, Clone)]
pub struct Import {
    read: Read,
    /// The entries to import, one range after the other.
    ranges: Vec<Range<u64>>,
    schema: Schema,
    columns: Vec<Column>,
    /// The fields of the ntuple that are compared with those of the tree: names in both.
    compared: Vec<(String, String)>,
    skipped: Vec<Skipped>,
    not_kept: Vec<String>,
    renamed: BTreeMap<String, String>,
}

/// Where a stored field of the ntuple comes from: columns of the tree.
#[derive(Debug, Clone)]
enum Column {
    Field(usize),
    /// Members of a collection, with their names, and the field that counts the items.
    Collection(Vec<(usize, String)>, Option<usize>),
}

impl Import {
    /// Plans the import of what is chosen of trees. Fields that cannot be decoded, or that an ntuple cannot hold, are
    /// left out: see [`Import::skipped`].
    ///
    /// # Errors
    /// Invalid argument for an ntuple, for renaming a missing field, and if two fields would have the same name; those of
    /// [`Read::without_unreadable`].
    pub fn new(read: Read, options: &ImportOptions) -> Result<Self> {
        if !read.source().schema().is_of_tree() {
            return Err(read.context(Error::invalid_argument("an ntuple cannot be imported; copy it")));
        }
        let known: HashSet<String> = read.schema().fields.iter().map(|field| field.name.clone()).collect();
        let mut options = options.clone();
        for (name, new) in std::mem::take(&mut options.renames) {
            let path = read.source().schema().path_of(&name).filter(|path| known.contains(*path));
            match path {
                Some(path) => options.renames.insert(path.to_owned(), new),
                None => return Err(Error::no_such("field", &name, known.iter().map(String::as_str))),
            };
        }
        let names = match options.class_names {
            true => ClassNames::of_source(&read)?,
            false => ClassNames::default(),
        };
        let (read, skipped) = representable(read, &names)?;
        let names = without_referenced(names, &read)?;
        let imported = |field: &Field| imported(field, &names);
        let fields = read.schema().fields.clone();
        let mut renamed = BTreeMap::new();
        if options.class_names {
            fields.iter().for_each(|field| types::add_renamed(field, &imported(field), &mut renamed));
        }
        let branch_names = branch_names(&read);
        let name = |field: &Field| {
            let branch = branch_names.get(field.name.as_str()).unwrap_or(&field.name);
            options.name(&field.name, branch)
        };
        let groups = if options.collections { groups(&read) } else { Vec::new() };
        let in_group: HashSet<usize> = groups.iter().flat_map(|group| group.members.iter().copied()).collect();
        let counters: HashMap<usize, usize> =
            groups.iter().enumerate().filter_map(|(group, it)| Some((it.counter?, group))).collect();
        let (mut stored, mut projected, mut columns, mut compared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, group) in groups.iter().enumerate() {
            let collection = format!("{COLLECTION}{number}");
            let mut members = Vec::new();
            let mut sources = Vec::new();
            for &index in &group.members {
                let (field, new) = (&fields[index], name(&fields[index]));
                let Kind::Collection(item) = &field.kind else { continue };
                members.push(imported(&Field { name: new.clone(), ..(**item).clone() }));
                let mut shown = imported(field);
                shown.name.clone_from(&new);
                project(&mut shown, &format!("{collection}._0.{new}"), &collection);
                projected.push((index, shown));
                sources.push((index, new));
            }
            let item = Field::new("_0", "", Kind::Record(members));
            stored.push(Field::new(collection, "", Kind::Collection(Box::new(item))));
            columns.push(Column::Collection(sources, group.counter));
        }
        for (index, field) in fields.iter().enumerate() {
            let new = name(field);
            compared.push((field.name.clone(), new.clone()));
            if in_group.contains(&index) {
                continue;
            }
            if let Some(group) = counters.get(&index) {
                let type_name = "ROOT::RNTupleCardinality<std::uint32_t>";
                let mut shown = Field::new(new, type_name, Kind::Cardinality { wide: false });
                shown.description.clone_from(&field.description);
                shown.projected_from = Some(format!("{COLLECTION}{group}"));
                projected.push((index, shown));
                continue;
            }
            let mut field = imported(field);
            field.name = new;
            stored.push(field);
            columns.push(Column::Field(index));
        }
        projected.sort_by_key(|(index, _)| *index);
        stored.extend(projected.into_iter().map(|(_, field)| field));
        let mut names = HashSet::new();
        if let Some(twice) = stored.iter().find(|field| !names.insert(field.name.as_str())) {
            let what = format!("two fields would have the name '{}'; rename one of them", twice.name);
            return Err(Error::invalid_argument(what));
        }
        let (ranges, not_kept) = (vec![read.range()], not_kept(&read)?);
        let schema = Schema { fields: stored };
        Ok(Self { read, ranges, schema, columns, compared, skipped, not_kept, renamed })
    }

    /// The same for ranges of entries, one after the other.
    #[must_use]
    pub fn with_ranges(mut self, ranges: Vec<Range<u64>>) -> Self {
        self.ranges = ranges;
        self
    }

    /// Number of entries to import.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Writes the ntuple; `None` if `progress` cancelled: the file can then only be dropped.
    ///
    /// # Errors
    /// Unsupported if nothing can be imported: the entries would be a number without values; those of reading, and of
    /// [`FileWriter::ntuple`] and its writer.
    pub fn write(
        &self,
        file: &FileWriter,
        path: &str,
        options: WriteOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Option<WriteProgress>> {
        self.check()?;
        let options = match options.description().is_empty() {
            true => options.with_description(self.read.source().sidecar().description()),
            false => options,
        };
        let mut writer = file.ntuple(path, &self.schema, options)?;
        let (stored, mut before) = (self.stored(), 0);
        for range in &self.ranges {
            let read = self.read.clone().entries(range.clone()).with_binary_strings(true);
            let convert = |batch| self.convert(&batch, &stored).map_err(|e| self.read.context(e));
            if pipe(read, convert, &mut writer, &mut |done| progress(before + done))?.is_none() {
                return Ok(None);
            }
            before += range.end - range.start;
        }
        writer.finish().map(Some)
    }

    /// Refuses to import nothing.
    ///
    /// # Errors
    /// Unsupported, with one of the fields that are left out.
    pub fn check(&self) -> Result<()> {
        if !self.schema.fields.is_empty() {
            return Ok(());
        }
        let why = match self.skipped() {
            [] => String::new(),
            [one, ..] => format!(", such as '{}': {}", one.name, one.reason),
        };
        let what = format!("no branch can be imported{why}; select other branches or another tree");
        Err(self.read.context(Error::unsupported(what)))
    }

    /// The fields of the ntuple.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What is read of the trees.
    pub(super) fn read(&self) -> &Read {
        &self.read
    }

    /// The fields of the tree and of the ntuple that are equal: names in both.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.compared.iter().map(|(branch, field)| (branch.as_str(), field.as_str()))
    }

    /// What was selected but is not imported, and why.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// What the trees have besides branches, which an ntuple cannot hold: aliases, friends, index, user information and weight.
    pub fn not_kept(&self) -> &[String] {
        &self.not_kept
    }

    /// The classes and containers that are stored as others, since ROOT stores them differently in ntuples, and these; empty for
    /// records without a name. If class names are left out, there are none.
    pub fn renamed(&self) -> &BTreeMap<String, String> {
        &self.renamed
    }

    /// The columns of the ntuple.
    pub(super) fn convert(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let array = |(column, field): (&Column, &Arc<ArrowField>)| match column {
            Column::Field(index) => relabelled(batch.column(*index), field.data_type()),
            Column::Collection(members, counter) => {
                let items = collection(batch, members, field.data_type())?;
                counter.map_or(Ok(()), |counter| check_counter(batch, counter, &items))?;
                Ok(items)
            }
        };
        let arrays: Vec<ArrayRef> = self.columns.iter().zip(schema.fields()).map(array).collect::<Result<_>>()?;
        batch_of(schema.fields(), arrays, batch.num_rows())
    }

    /// The Arrow schema of the stored fields.
    pub(super) fn stored(&self) -> SchemaRef {
        let fields = self.schema.fields.iter().filter(|field| field.projected_from.is_none()).cloned().collect();
        Arc::new(Schema { fields }.to_arrow(true))
    }
}

/// What the trees of a read have besides branches.
fn not_kept(read: &Read) -> Result<Vec<String>> {
    let mut all = BTreeSet::new();
    for part in 0..read.source().parts().len() {
        all.extend(read.source().sidecar().attached(part)?.tree.lost());
    }
    Ok(all.into_iter().collect())
}

/// The names of top-level branches that are not those of their fields, by those of the fields.
fn branch_names(read: &Read) -> HashMap<String, String> {
    let names = read.source().schema().other_names().into_iter();
    let is_of_field =
        |name: &str, field: &str| name.split('[').next().unwrap_or_default().trim_end_matches('.') == field;
    names.filter(|(name, field)| is_of_field(name, field)).map(|(name, field)| (field, name)).collect()
}

/// The selected fields of a tree that an ntuple can hold, in types that ROOT reads, and what is left out.
pub(super) fn representable(read: Read, names: &ClassNames) -> Result<(Read, Vec<Skipped>)> {
    let reason = "its objects have no columns";
    let mut skipped: Vec<Skipped> =
        objects(&read.schema().fields).iter().map(|path| Skipped::new(path, reason)).collect();
    let read = read.without_paths(&skipped)?;
    let (read, unreadable) = read.without_unreadable()?;
    skipped.extend(unreadable);
    let wanted = Schema { fields: read.schema().fields.iter().map(|field| with_lists(field, names)).collect() };
    let read = if wanted == *read.schema() { read } else { read.with_schema(&wanted)? };
    Ok((read, skipped))
}

/// Without the names of classes that derive from `TObject`, in the fields with objects that references point to: ROOT refuses to
/// read these from an ntuple.
///
/// # Errors
/// Those of reading these fields.
pub(super) fn without_referenced(names: ClassNames, read: &Read) -> Result<ClassNames> {
    let is_heir = |field: &&Field| has_root_object(&readable(field, &names));
    let (heirs, others): (Vec<&Field>, Vec<&Field>) = read.schema().fields.iter().partition(is_heir);
    if heirs.is_empty() {
        return Ok(names);
    }
    let others: Vec<Skipped> = others.iter().map(|field| Skipped::new(&field.name, "")).collect();
    let read = read.clone().without_paths(&others)?;
    let fields: Vec<Field> = read.schema().fields.iter().map(|field| readable(field, &names)).collect();
    let types = Schema { fields: fields.clone() }.to_arrow(true);
    let mut referenced = HashSet::new();
    for batch in read.batches_of_bytes(NtupleWriter::BATCH_BYTES)? {
        for ((column, to), field) in batch?.columns().iter().zip(types.fields()).zip(&fields) {
            if !referenced.contains(&field.name) && is_referenced(&in_bases(column, to.data_type())?, field) {
                referenced.insert(field.name.clone());
            }
        }
    }
    Ok(names.without(referenced))
}

/// Paths of the fields that have objects instead of columns.
fn objects(fields: &[Field]) -> Vec<String> {
    let paths = Schema { fields: fields.to_vec() };
    let is_object = |field: &Field| {
        let mut field = field;
        while let (true, [item]) = (field.is_transparent(), field.children()) {
            field = item;
        }
        matches!(field.kind, Kind::Streamer)
    };
    paths.paths().into_iter().filter(|(_, field)| is_object(field)).map(|(path, _)| path).collect()
}

/// The field as the ntuple has it: of a type that ROOT reads, with legal names of members.
pub(super) fn imported(field: &Field, names: &ClassNames) -> Field {
    let mut field = names.of_field(&field.name, |names| readable(field, names));
    legalise(&mut field);
    field
}

fn legalise(field: &mut Field) {
    for child in field.children_mut() {
        child.name = legal(&child.name, '_');
        legalise(child);
    }
}

/// Makes a collection a projected field, with the items of another.
fn project(field: &mut Field, member: &str, collection: &str) {
    field.projected_from = Some(collection.to_owned());
    if let Kind::Collection(item) = &mut field.kind {
        project_all(item, member);
    }
}

fn project_all(field: &mut Field, path: &str) {
    field.projected_from = Some(path.to_owned());
    for child in field.children_mut() {
        project_all(child, &format!("{path}.{}", child.name));
    }
}

/// Arrays with the same counter.
struct Group {
    /// The field that is the counter, if it is chosen.
    counter: Option<usize>,
    members: Vec<usize>,
}

fn groups(read: &Read) -> Vec<Group> {
    let fields = &read.schema().fields;
    let places: HashMap<&str, usize> = fields.iter().enumerate().map(|(at, field)| (field.name.as_str(), at)).collect();
    let mut groups: Vec<(String, Group)> = Vec::new();
    for (list, counter) in read.source().schema().counters() {
        let Some(&place) = places.get(list.as_str()) else { continue };
        if !fields[place].children().iter().all(can_be_projected) {
            continue;
        }
        match groups.iter_mut().find(|(known, _)| *known == counter) {
            Some((_, group)) => group.members.push(place),
            None => {
                let counting = places.get(counter.as_str()).copied();
                groups.push((counter, Group { counter: counting, members: vec![place] }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Lists with the same numbers of items as one list of records.
fn collection(batch: &RecordBatch, members: &[(usize, String)], data_type: &DataType) -> Result<ArrayRef> {
    let DataType::LargeList(item) = data_type else { return Err(Error::unsupported("a collection is not a list")) };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(Error::unsupported("the items of a collection are not records"));
    };
    let mut offsets = None;
    let mut arrays = Vec::with_capacity(members.len());
    for ((index, name), field) in members.iter().zip(fields) {
        let list = batch.column(*index).as_list::<i64>();
        match &offsets {
            None => offsets = Some(list.offsets().clone()),
            Some(known) if known == list.offsets() => {}
            Some(_) => {
                let what =
                    format!("field '{name}' differs in its numbers of items from the other fields with its counter");
                return Err(Error::corrupt(what));
            }
        }
        arrays.push(relabelled(list.values(), field.data_type())?);
    }
    let offsets = offsets.ok_or_else(|| Error::unsupported("a collection has no members"))?;
    let fields = with_types_of(&arrays, fields);
    let records = StructArray::try_new(fields, arrays, None)?;
    let item = Arc::new(item.as_ref().clone().with_data_type(records.data_type().clone()));
    Ok(Arc::new(LargeListArray::try_new(item, offsets, Arc::new(records), None)?))
}

/// Refuses a counter that contradicts the lists that it counts.
fn check_counter(batch: &RecordBatch, counter: usize, items: &ArrayRef) -> Result<()> {
    let counts = cast(batch.column(counter), &DataType::Int64)?;
    let lengths = items.as_list::<i64>().offsets().windows(2).map(|pair| pair[1] - pair[0]);
    let mut both = counts.as_primitive::<Int64Type>().values().iter().zip(lengths);
    match both.find(|(count, length)| **count != *length) {
        Some((count, length)) => {
            let what = format!("it is {count}, but an array that it counts has {length} items");
            Err(Error::corrupt(what).in_field(batch.schema().field(counter).name()))
        }
        None => Ok(()),
    }
}

/// A batch of arrays that have the types of fields, in which texts may be bytes.
pub(super) fn batch_of(fields: &Fields, arrays: Vec<ArrayRef>, count: usize) -> Result<RecordBatch> {
    let schema = Arc::new(ArrowSchema::new(with_types_of(&arrays, fields)));
    let count = RecordBatchOptions::new().with_row_count(Some(count));
    Ok(RecordBatch::try_new_with_options(schema, arrays, &count)?)
}

/// An array under the names of another type, which may have members in the bases of classes. Texts stay bytes where they are.
pub(super) fn relabelled(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let array = in_bases(array, data_type)?;
    let data_type = match holds_bytes(array.data_type()) {
        true => tupelo_schema::evolution::binary_type(data_type),
        false => data_type.clone(),
    };
    Ok(make_array(relabel(&array.to_data(), &data_type)?))
}

fn holds_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::LargeBinary => true,
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => holds_bytes(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_bytes(field.data_type())),
        _ => false,
    }
}
