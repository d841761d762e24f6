//! Import of trees: the entries of a tree as an ntuple that ROOT reads, and the proof that both are equal.
//!
//! Names follow ROOT's importer (`RNTupleImporter` in `tree/ntupleutil`) and ATLAS's auxiliary stores: see
//! [`ImportOptions`]. Classes become untyped records, so that readers need no dictionaries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, LargeListArray, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef};
use tupelo_ttree::Layout;
use tupelo_ttree::fields::FieldKind;

use crate::evolution::relabel;
use crate::reader::{Ntuple, Read, Tree};
use crate::schema::{Field, Kind, Schema};
use crate::writer::{FileWriter, NtupleWriter, WriteOptions, WriteProgress};
use crate::{Error, Result};

/// Batches take about this many bytes in memory.
const BATCH_BYTES: u64 = 16 << 20;
/// Prefix of the hidden collections of leaf-count arrays, as in ROOT's importer.
const COLLECTION: &str = "_collection";
/// Bins of the histograms with which two fields are compared.
const BINS: usize = 64;

/// How branches become fields.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    renames: BTreeMap<String, String>,
    dots: char,
    collections: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { renames: BTreeMap::new(), dots: '_', collections: true }
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

    /// Whether arrays with the same counter become one collection, of which the arrays and the counter are projected
    /// fields: the number of items is then stored once. By default yes, as in ROOT's importer.
    #[must_use]
    pub fn with_collections(mut self, collections: bool) -> Self {
        self.collections = collections;
        self
    }

    fn name(&self, field: &str, branch: &str) -> String {
        if let Some(name) = self.renames.get(field) {
            return name.clone();
        }
        if branch.contains("Aux.") || branch.contains("AuxDyn.") {
            return legal(branch, ':');
        }
        legal(field, self.dots)
    }
}

/// A name without the characters that the format forbids.
fn legal(name: &str, dots: char) -> String {
    let letter = |c: char| match c {
        '.' => dots,
        ' ' | '/' | '\\' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    name.chars().map(letter).collect()
}

/// How the fields of a tree become those of an ntuple.
#[derive(Debug, Clone)]
pub struct ImportPlan {
    read: Read,
    schema: Schema,
    columns: Vec<Column>,
    /// The fields of the ntuple that are compared with those of the tree: names in both.
    compared: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
}

/// Where a stored field of the ntuple comes from: columns of the tree.
#[derive(Debug, Clone)]
enum Column {
    Field(usize),
    /// Members of a collection, and their names.
    Collection(Vec<(usize, String)>),
}

impl ImportPlan {
    /// Plans the import of what is chosen of a tree. Fields that an ntuple cannot have are left out.
    ///
    /// # Errors
    /// Invalid argument for a rename of a field that is not there, and where two fields would have the same name.
    pub fn new(tree: &Tree, read: Read, options: &ImportOptions) -> Result<Self> {
        let mut skipped: Vec<(String, String)> =
            tree.refused().map(|(path, reason)| (path.to_owned(), reason.to_owned())).collect();
        let chosen: Vec<Field> = read.schema().fields.clone();
        let known: HashSet<&str> = chosen.iter().map(|field| field.name.as_str()).collect();
        if let Some(unknown) = options.renames.keys().find(|name| !known.contains(name.as_str())) {
            return Err(Error::no_such("field", unknown, known.iter().copied()));
        }
        let read = match objects(&chosen) {
            paths if paths.is_empty() => read,
            paths => {
                let read = read.without(paths.iter().map(|path| escaped(path)).collect::<Vec<_>>())?;
                skipped.extend(paths.into_iter().map(|path| (path, "its objects have no columns".to_owned())));
                read
            }
        };
        let fields = read.schema().fields.clone();
        let branch_names = branch_names(tree);
        let name = |field: &Field| {
            let branch = branch_names.get(field.name.as_str()).copied().unwrap_or(&field.name);
            options.name(&field.name, branch)
        };
        let groups = if options.collections { groups(tree, &fields) } else { Vec::new() };
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
                members.push(untyped(&Field { name: new.clone(), ..(**item).clone() }));
                let mut shown = untyped(field);
                shown.name.clone_from(&new);
                project(&mut shown, &format!("{collection}._0.{new}"), &collection);
                projected.push((index, shown));
                sources.push((index, new));
            }
            let item = Field::new("_0", "", Kind::Record(members));
            stored.push(Field::new(collection, "", Kind::Collection(Box::new(item))));
            columns.push(Column::Collection(sources));
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
            let mut field = untyped(field);
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
        Ok(Self { read, schema: Schema { fields: stored }, columns, compared, skipped })
    }

    /// The fields of the ntuple.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What is read of the tree.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// Branches and fields that are not imported, and why.
    pub fn skipped(&self) -> &[(String, String)] {
        &self.skipped
    }

    /// The columns of the ntuple.
    fn convert(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let array = |(column, field): (&Column, &Arc<ArrowField>)| match column {
            Column::Field(index) => relabelled(batch.column(*index), field.data_type()),
            Column::Collection(members) => collection(batch, members, field.data_type()),
        };
        let arrays: Vec<ArrayRef> = self.columns.iter().zip(schema.fields()).map(array).collect::<Result<_>>()?;
        let fields: Fields = schema
            .fields()
            .iter()
            .zip(&arrays)
            .map(|(field, array)| field.as_ref().clone().with_data_type(array.data_type().clone()))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)?)
    }

    /// The Arrow schema of the stored fields.
    fn stored(&self) -> SchemaRef {
        let fields = self.schema.fields.iter().filter(|field| field.projected_from.is_none()).cloned().collect();
        Arc::new(Schema { fields }.to_arrow(true))
    }
}

/// Writes the entries of trees as an ntuple.
#[derive(Debug)]
pub struct Importer {
    writer: NtupleWriter,
}

impl Importer {
    /// Begins the ntuple.
    ///
    /// # Errors
    /// As [`FileWriter::ntuple`].
    pub fn create(
        plan: &ImportPlan,
        tree: &Tree,
        file: &FileWriter,
        path: &str,
        options: WriteOptions,
    ) -> Result<Self> {
        let options = match options.description().is_empty() {
            true => options.with_description(tree.description()),
            false => options,
        };
        Ok(Self { writer: file.ntuple(path, plan.schema(), options)? })
    }

    /// Appends what the plan reads. `progress` receives the number of entries of this plan that are done, and may cancel
    /// the import.
    ///
    /// # Errors
    /// Those of reading and of writing; invalid argument where the fields are not those of the ntuple.
    pub fn append(
        &mut self,
        plan: &ImportPlan,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let first = plan.read.range().start;
        let stored = plan.stored();
        let mut batches = plan.read.clone().with_binary_strings(true).batches_of_bytes(BATCH_BYTES)?;
        while let Some(batch) = batches.next() {
            let batch = plan.convert(&batch?, &stored).map_err(|e| plan.read.context(e))?;
            self.writer.write(&batch)?;
            if progress(batches.position() - first).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the ntuple.
    ///
    /// # Errors
    /// As [`NtupleWriter::finish`].
    pub fn finish(mut self) -> Result<WriteProgress> {
        self.writer.finish()
    }
}

/// The names of the top-level branches, by those of their fields.
fn branch_names(tree: &Tree) -> HashMap<&str, &str> {
    let metadata = tree.metadata();
    let branches = metadata.top_level.iter().filter_map(|&index| metadata.branches.get(index));
    branches
        .map(|branch| (branch.name.split('[').next().unwrap_or_default().trim_end_matches('.'), branch.name.as_str()))
        .collect()
}

/// A name as a pattern that matches nothing else.
fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') { vec!['[', c, ']'] } else { vec![c] })
        .collect()
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

/// The same field without the names of classes: records and what holds them are untyped. Names of members are legal.
fn untyped(field: &Field) -> Field {
    let mut field = field.clone();
    if let Kind::Map(pair) = &field.kind
        && has_class(pair)
    {
        // Without a type it would be read as a collection anyway.
        let Kind::Tuple(parts) = &pair.kind else { return field };
        let parts = parts.iter().zip(["key", "value"]).map(|(part, name)| Field { name: name.into(), ..part.clone() });
        let record = Field::new("_0", "", Kind::Record(parts.collect()));
        field.kind = Kind::Collection(Box::new(record));
        field.type_name.clear();
    }
    if has_class(&field) {
        field.type_name.clear();
        field.type_version = 0;
        if let Kind::Tuple(parts) = &field.kind {
            field.kind = Kind::Record(parts.clone());
        }
    }
    field.id = None;
    for child in field.children_mut() {
        *child = untyped(child);
        child.name = legal(&child.name, '_');
    }
    if let (Kind::Array { size, item }, true) = (&field.kind, field.type_name.is_empty()) {
        field.type_name = format!("std::array<{},{size}>", item.type_name);
    }
    field
}

fn has_class(field: &Field) -> bool {
    matches!(field.kind, Kind::Record(_)) || field.children().iter().any(has_class)
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

fn groups(tree: &Tree, fields: &[Field]) -> Vec<Group> {
    let metadata = tree.metadata();
    let places: HashMap<&str, usize> = fields.iter().enumerate().map(|(at, field)| (field.name.as_str(), at)).collect();
    let mut groups: Vec<((usize, usize), Group)> = Vec::new();
    for stored in tree.tree_fields() {
        let FieldKind::Value { branch, layout: Layout::Rest(_) } = &stored.kind else { continue };
        let Some(&place) = places.get(stored.name.as_str()) else { continue };
        let leaves = metadata.branches.get(*branch).map(|branch| branch.leaves.as_slice());
        let Some([leaf]) = leaves else { continue };
        let Some(counter) = leaf.counter else { continue };
        match groups.iter_mut().find(|(known, _)| *known == counter) {
            Some((_, group)) => group.members.push(place),
            None => {
                let counting = tree.tree_fields().iter().find(|field| {
                    matches!(&field.kind, FieldKind::Value { branch, layout: Layout::Number(..) } if *branch == counter.0)
                });
                let counter_place = counting.and_then(|field| places.get(field.name.as_str()).copied());
                groups.push((counter, Group { counter: counter_place, members: vec![place] }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Lists with the same numbers of items as one list of records.
fn collection(batch: &RecordBatch, members: &[(usize, String)], data_type: &DataType) -> Result<ArrayRef> {
    let DataType::LargeList(item) = data_type else { return Err(Error::unsupported("a collection that is no list")) };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(Error::unsupported("a collection of other things than records"));
    };
    let mut offsets = None;
    let mut arrays = Vec::with_capacity(members.len());
    for ((index, name), field) in members.iter().zip(fields) {
        let list = batch.column(*index).as_list::<i64>();
        match &offsets {
            None => offsets = Some(list.offsets().clone()),
            Some(known) if known == list.offsets() => {}
            Some(_) => {
                let what = format!("field '{name}' has other numbers of items than the others with its counter");
                return Err(Error::corrupt(what));
            }
        }
        arrays.push(relabelled(list.values(), field.data_type())?);
    }
    let offsets = offsets.ok_or_else(|| Error::unsupported("a collection without members"))?;
    let fields: Fields = fields
        .iter()
        .zip(&arrays)
        .map(|(field, array)| field.as_ref().clone().with_data_type(array.data_type().clone()))
        .collect();
    let records = StructArray::try_new(fields, arrays, None)?;
    let item = Arc::new(item.as_ref().clone().with_data_type(records.data_type().clone()));
    Ok(Arc::new(LargeListArray::try_new(item, offsets, Arc::new(records), None)?))
}

/// An array under the names of another type. Texts stay bytes where they are.
fn relabelled(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let data_type = match holds_bytes(array.data_type()) {
        true => crate::evolution::binary_type(data_type),
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

/// What a comparison of a tree with an ntuple found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Validation {
    /// Entries that were compared.
    pub entries: u64,
    /// What was compared of each field.
    pub fields: Vec<FieldValidation>,
}

/// What was compared of a field.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FieldValidation {
    /// Its name in the tree.
    pub branch: String,
    /// Its name in the ntuple.
    pub field: String,
    /// Numbers and texts that were compared.
    pub values: u64,
    /// The first entry in which it is not equal.
    pub first_difference: Option<u64>,
    /// Histograms of its numbers, those of each member of it together.
    pub histogram: Option<Comparison>,
}

/// Two histograms with the same bins.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// Lower and upper bound. Values outside are counted in the first and last bin.
    pub range: (f64, f64),
    /// Counts of the tree and of the ntuple. The last bin counts numbers that are not finite.
    pub counts: [Vec<u64>; 2],
}

impl Validation {
    /// Whether all values, and all histograms, are equal.
    pub fn is_equal(&self) -> bool {
        self.fields.iter().all(FieldValidation::is_equal)
    }
}

impl FieldValidation {
    /// Whether all values and the histograms are equal.
    pub fn is_equal(&self) -> bool {
        let same = |histogram: &Comparison| histogram.counts[0] == histogram.counts[1];
        self.first_difference.is_none() && self.histogram.as_ref().is_none_or(same)
    }
}

/// Compares the entries that plans read, one after the other, with those of an ntuple, entry by entry and bit by bit.
/// Of each plan at most `most` entries are compared, half of them from its begin and half from its end.
///
/// # Errors
/// Those of reading.
pub fn validate(plans: &[ImportPlan], ntuple: &Ntuple, most: u64) -> Result<Validation> {
    let mut found = Validation::default();
    let mut before = 0;
    for plan in plans {
        let range = plan.read.range();
        let all = range.end - range.start;
        let parts = match most < all {
            true => vec![0..most.div_ceil(2), all - most / 2..all],
            false => vec![0..all, all..all],
        };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            compare(plan, ntuple, part, before, &mut found)?;
        }
        before += all;
    }
    Ok(found)
}

fn compare(
    plan: &ImportPlan,
    ntuple: &Ntuple,
    entries: std::ops::Range<u64>,
    before: u64,
    found: &mut Validation,
) -> Result<()> {
    let first = plan.read.range().start;
    let names: Vec<String> = plan.compared.iter().map(|(_, name)| escaped(name)).collect();
    let imported = ntuple.read(&names)?.with_binary_strings(true);
    let order: HashMap<String, usize> =
        imported.arrow_schema().fields().iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect();
    let tree = plan.read.clone().entries(first + entries.start..first + entries.end).with_binary_strings(true);
    let mut batches = tree.batches_of_bytes(BATCH_BYTES)?;
    let mut next = before + entries.start;
    for batch in &mut batches {
        let batch = batch?;
        let rows = batch.num_rows() as u64;
        let other = imported.clone().entries(next..next + rows).to_batch()?;
        for (index, (branch, name)) in plan.compared.iter().enumerate() {
            let place = order.get(name).copied();
            let ours = place.and_then(|place| other.columns().get(place));
            let ours = ours.ok_or_else(|| Error::not_found(format!("field '{name}' is not in the ntuple")))?;
            let (Some(theirs), ours) = (batch.columns().get(index), counted(ours, batch.column(index))?) else {
                continue;
            };
            let known = found.fields.iter().position(|field| field.branch == *branch);
            let known = known.unwrap_or_else(|| {
                let (branch, field) = (branch.clone(), name.clone());
                found.fields.push(FieldValidation {
                    branch,
                    field,
                    values: 0,
                    first_difference: None,
                    histogram: None,
                });
                found.fields.len() - 1
            });
            let field = &mut found.fields[known];
            let ours = relabelled(&ours, theirs.data_type()).unwrap_or(ours);
            if field.first_difference.is_none() && ours.to_data() != theirs.to_data() {
                let same = |row: &usize| ours.slice(*row, 1).to_data() == theirs.slice(*row, 1).to_data();
                let row = (0..batch.num_rows().min(ours.len())).find(|row| !same(row)).unwrap_or(0);
                field.first_difference = Some(next + row as u64);
            }
            let mut numbers = [Vec::new(), Vec::new()];
            field.values += leaves(theirs, &mut numbers[0])?;
            leaves(&ours, &mut numbers[1])?;
            fill(&mut field.histogram, numbers);
        }
        next += rows;
        found.entries += rows;
    }
    Ok(())
}

/// The number of items of a collection in the type of the counter.
fn counted(ours: &ArrayRef, theirs: &ArrayRef) -> Result<ArrayRef> {
    let is_number = |array: &ArrayRef| array.data_type().is_integer();
    match is_number(ours) && is_number(theirs) && ours.data_type() != theirs.data_type() {
        true => Ok(cast(ours, theirs.data_type())?),
        false => Ok(Arc::clone(ours)),
    }
}

/// Adds the numbers in an array; returns how many numbers and texts it has.
fn leaves(array: &ArrayRef, numbers: &mut Vec<f64>) -> Result<u64> {
    Ok(match array.data_type() {
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (start, end) = (list.offsets().first().copied(), list.offsets().last().copied());
            let (start, end) = (start.unwrap_or(0) as usize, end.unwrap_or(0) as usize);
            leaves(&list.values().slice(start, end - start), numbers)?
        }
        DataType::FixedSizeList(..) => leaves(array.as_fixed_size_list().values(), numbers)?,
        DataType::Struct(_) => {
            let mut sum = 0;
            for column in array.as_struct().columns() {
                sum += leaves(column, numbers)?;
            }
            sum
        }
        other if other.is_numeric() || *other == DataType::Boolean => {
            let values = cast(array, &DataType::Float64)?;
            numbers.extend_from_slice(values.as_primitive::<Float64Type>().values());
            array.len() as u64
        }
        _ => array.len() as u64,
    })
}

fn fill(histogram: &mut Option<Comparison>, numbers: [Vec<f64>; 2]) {
    if histogram.is_none() && numbers[0].is_empty() {
        return;
    }
    let histogram = histogram.get_or_insert_with(|| {
        let finite = || numbers[0].iter().copied().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        let range = if low < high { (low, high) } else { (low.min(0.0), low.min(0.0) + 1.0) };
        Comparison { range, counts: [vec![0; BINS + 1], vec![0; BINS + 1]] }
    });
    let (low, high) = histogram.range;
    for (counts, numbers) in histogram.counts.iter_mut().zip(&numbers) {
        for value in numbers {
            let bin = match value.is_finite() {
                true => (((value - low) / (high - low) * BINS as f64).max(0.0) as usize).min(BINS - 1),
                false => BINS,
            };
            counts[bin] += 1;
        }
    }
}
