//! Reading containers and objects.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field as ArrowField, Fields, Schema as ArrowSchema};
use tupelo::reader::DEFAULT_MEMORY_BUDGET_BYTES;
use tupelo::{Error, OpenOptions, Result, Table, Tree};

use crate::files::Files;
use crate::keys::Keys;
use crate::linked::joined;
use crate::links::{self, Dangling, Targets, key_numbers};
use crate::lists::{first_differing, from_zero};
use crate::stores::{Container, Stores, Variable, container_of};

/// Names of the ntuple or tree with the events in files of ATLAS, in the order in which they are looked for: of ntuples, of early
/// ntuples, and of trees.
pub const EVENTS: [&str; 3] = ["EventData", "RNT:CollectionTree", "CollectionTree"];

/// How events are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As an ntuple.
    Ntuple,
    /// As a tree.
    Tree,
}

/// The containers of all entries of an ntuple, a tree, or a chain of them.
#[derive(Debug, Clone)]
pub struct Event {
    table: Table,
    stores: Arc<Stores>,
    /// The files with the keys of links, which are read when they are needed.
    files: Files,
    keys_of_first: Arc<OnceLock<Keys>>,
    keys_of_all: Arc<OnceLock<Keys>>,
}

/// Variables of a container that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    container: String,
    variables: Vec<String>,
}

impl Selection {
    /// Name of the container.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Names of the variables.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }
}

impl Event {
    /// Opens the events of a file: those that the location names, `EventData`, or `CollectionTree`.
    ///
    /// # Errors
    /// Those of opening; not found if the file has no such ntuple or tree.
    pub fn open(options: OpenOptions) -> Result<Self> {
        let named = options.location().object.clone();
        let file = options.open_file()?;
        let names = file.table_names()?;
        let usual =
            || EVENTS.iter().find(|name| names.iter().any(|known| known == *name)).map(|name| (*name).to_owned());
        let table = file.table(named.or_else(usual).as_deref())?;
        Self::of(table, file.into())
    }

    /// The events of a table. `files` have their metadata, with which links are resolved.
    ///
    /// # Errors
    /// Those of reading what shallow copies are copies of, in the first entry.
    pub fn of(table: Table, files: Files) -> Result<Self> {
        let stores = Arc::new(Stores::of(table.schema()));
        let event = Self { table, stores, files, keys_of_first: Arc::default(), keys_of_all: Arc::default() };
        let parents = event.parents()?;
        let stores = match parents.is_empty() {
            true => Arc::clone(&event.stores),
            false => Arc::new(Stores::clone(&event.stores).with_parents(&parents)),
        };
        Ok(Self { stores, ..event })
    }

    /// Shallow copies, and what they are copies of.
    fn parents(&self) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        for copy in self.stores.containers() {
            let Some(path) = copy.parent_link().filter(|_| self.entries() > 0) else { continue };
            let batch = self.table.read([path])?.entries(0..1).to_batch()?;
            let keys = key_numbers(&Columns::of(&batch).at(path)?);
            let key = keys.and_then(|keys| keys.values().first().copied());
            let store = key.map(|key| {
                let known = self.keys_with([key])?;
                Ok::<_, Error>(known.name(key).and_then(container_of).map(str::to_owned))
            });
            found.extend(store.transpose()?.flatten().map(|parent| (copy.name().to_owned(), parent)));
        }
        Ok(found)
    }

    /// The ntuple or tree.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The files with the metadata.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// The tree of the events, or the first one of several; `None` for ntuples.
    pub(crate) fn tree(&self) -> Result<Option<Tree>> {
        let first = match (&self.table, self.files.first()?) {
            (Table::Chain(_), Some(file)) => Some(file.table(Some(self.table.path()))?),
            _ => None,
        };
        Ok(first.as_ref().unwrap_or(&self.table).tree().cloned())
    }

    /// How the events are stored.
    pub fn format(&self) -> Format {
        if self.table.is_of_trees() { Format::Tree } else { Format::Ntuple }
    }

    /// The name of the events in a file of this format.
    pub(crate) fn name_as(&self, format: Format) -> &str {
        let own = self.table.path();
        let [ntuple, early, tree] = EVENTS;
        match (format, self.format()) {
            (Format::Tree, Format::Ntuple) if [ntuple, early].contains(&own) => tree,
            (Format::Ntuple, Format::Tree) if own == tree => ntuple,
            _ => own,
        }
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.table.entries()
    }

    /// The containers and objects with their variables.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The containers that keys of links stand for, in all files.
    ///
    /// # Errors
    /// Those of reading the metadata; unsupported if a key stands for two containers.
    pub fn keys(&self) -> Result<&Keys> {
        if let Some(known) = self.keys_of_all.get() {
            return Ok(known);
        }
        let mut keys = self.first_keys()?.clone();
        for number in 1..self.files.count() {
            keys.add_file(&self.files.open(number)?)?;
        }
        Ok(self.keys_of_all.get_or_init(|| keys))
    }

    /// The keys of the first file.
    fn first_keys(&self) -> Result<&Keys> {
        if let Some(known) = self.keys_of_first.get() {
            return Ok(known);
        }
        let keys = self.files.first()?.map_or_else(|| Ok(Keys::default()), |file| Keys::of(&file))?;
        Ok(self.keys_of_first.get_or_init(|| keys))
    }

    /// Keys with these among them, as far as any file has them. Others are only read where the first file lacks one: a key
    /// is made of the name of its container.
    fn keys_with(&self, wanted: impl IntoIterator<Item = u32>) -> Result<&Keys> {
        let first = self.first_keys()?;
        let is_known = wanted.into_iter().all(|key| first.name(key).is_some());
        if is_known { Ok(first) } else { self.keys() }
    }

    /// Chooses variables of a container or object; all of them if none is named.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn select<S: AsRef<str>>(&self, container: &str, variables: impl IntoIterator<Item = S>) -> Result<Selection> {
        let container = self.stores.container(container)?;
        let mut names = Vec::new();
        for name in variables {
            names.push(container.variable(name.as_ref())?.name().to_owned());
        }
        if names.is_empty() {
            names = container.variables().iter().map(|variable| variable.name().to_owned()).collect();
        }
        Ok(Selection { container: container.name().to_owned(), variables: names })
    }

    /// The selected variables of a range of entries, in one request: a column for each container, of lists of structs, and of
    /// structs for an object.
    ///
    /// # Errors
    /// Those of reading; unsupported, with container, variable and entry, where a variable has another number of values than
    /// the container has elements.
    pub fn read(&self, selections: &[Selection], entries: Range<u64>) -> Result<RecordBatch> {
        let paths = self.paths(selections)?;
        let batch = || self.table.read(&paths)?.entries(entries.clone()).to_batch();
        let read = if paths.is_empty() { None } else { Some(batch()?) };
        self.records(selections, read.as_ref(), entries)
    }

    /// The paths of the fields that the variables are read from.
    pub(crate) fn paths(&self, selections: &[Selection]) -> Result<Vec<&str>> {
        let mut paths = Vec::new();
        for selection in selections {
            let container = self.stores.container(&selection.container)?;
            paths.extend(container.interface());
            for variable in &selection.variables {
                paths.extend(paths_of(container.variable(variable)?));
            }
        }
        Ok(paths)
    }

    /// The selected variables of what was read of their fields in a range of entries: as [`Event::read`] returns them.
    pub(crate) fn records(
        &self,
        selections: &[Selection],
        read: Option<&RecordBatch>,
        entries: Range<u64>,
    ) -> Result<RecordBatch> {
        let first = entries.start;
        let wanted = usize::try_from(entries.end.saturating_sub(first)).unwrap_or(0);
        let count = read.map_or(wanted, RecordBatch::num_rows);
        let columns = read.map(Columns::of);
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for selection in selections {
            let container = self.stores.container(&selection.container)?;
            let column = records(container, &selection.variables, columns.as_ref(), first)?;
            fields.push(ArrowField::new(container.name(), column.data_type().clone(), false));
            arrays.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)?)
    }

    /// What the links of a variable refer to, in a range of entries: in the form of the links, with structs of `variables` of the
    /// elements in place of the links; null where a link is. Links to several containers need the same types of the variables.
    /// If no link refers to an element, these types are unknown.
    ///
    /// # Errors
    /// Those of reading; invalid argument if the variable does not consist of links; not found, with entry and link, for a key
    /// that the metadata do not have or whose container is not in the event, and for an index that is too large, unless
    /// `dangling` says that these are null.
    pub fn resolve(
        &self,
        links: &str,
        variables: &[String],
        entries: Range<u64>,
        dangling: Dangling,
    ) -> Result<ArrayRef> {
        let (container, variable) = self.stores.find(links)?;
        let first = entries.start;
        let paths: Vec<&str> = paths_of(variable).collect();
        let batch = self.table.read(paths)?.entries(entries.clone()).to_batch()?;
        let values = value_of(container, variable, &Columns::of(&batch), first)?;
        let named = format!("variable '{}' of '{}'", variable.name(), container.name());
        let found =
            links::Links::of(&values, first).map_err(|what| Error::invalid_argument(format!("{named} {what}")))?;
        let keys = self.keys_with(found.keys())?;
        let mut targets: BTreeMap<u32, Targets> = BTreeMap::new();
        let mut selections = BTreeMap::new();
        for key in found.keys() {
            let target = keys.name(key).and_then(|name| self.stores.container(name).ok());
            if let Some(target) = target.filter(|target| !target.is_object()) {
                selections.insert(key, self.select(target.name(), variables)?);
            }
        }
        let wanted: Vec<(u32, Selection)> = selections.into_iter().collect();
        let chosen: Vec<Selection> = wanted.iter().map(|(_, selection)| selection.clone()).collect();
        let read = self.read(&chosen, entries)?;
        for ((key, selection), column) in wanted.iter().zip(read.columns()) {
            targets.insert(*key, Targets::of(selection.container(), column.as_list::<i64>()));
        }
        let budget = self.files.first()?.map_or(DEFAULT_MEMORY_BUDGET_BYTES, |file| file.memory_budget());
        found.resolve(&targets, variables, keys, (dangling, budget)).map_err(|error| error.of(&named))
    }
}

/// The columns of a batch by the names of their fields.
struct Columns<'b> {
    batch: &'b RecordBatch,
    places: HashMap<String, usize>,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b RecordBatch) -> Self {
        let names = batch.schema_ref().fields().iter().enumerate();
        let places = names.map(|(at, field)| (tupelo::schema::escaped(field.name()), at)).collect();
        Self { batch, places }
    }

    /// The array at a dotted path, whose field is cut to what was chosen.
    fn at(&self, path: &str) -> Result<ArrayRef> {
        let missing = || Error::unsupported(format!("'{path}' was not read"));
        // The longest name of a field that the path begins with.
        let mut ends = std::iter::once(path.len()).chain(path.rmatch_indices('.').map(|(at, _)| at));
        let found = ends.find_map(|end| Some((*self.places.get(path.get(..end)?)?, path.get(end..)?)));
        let (at, rest) = found.ok_or_else(missing)?;
        let mut value = Arc::clone(self.batch.columns().get(at).ok_or_else(missing)?);
        for member in rest.split('.').filter(|member| !member.is_empty()) {
            let record = value.as_struct_opt().ok_or_else(missing)?;
            value = Arc::clone(record.column_by_name(member).ok_or_else(missing)?);
        }
        Ok(value)
    }
}

/// The paths of the fields that a variable is read from.
fn paths_of(variable: &Variable) -> impl Iterator<Item = &str> {
    std::iter::once(variable.path()).chain(variable.linked().map(|linked| linked.path.as_str()))
}

/// The values of a variable, together with those that belong to them.
fn value_of(container: &Container, variable: &Variable, columns: &Columns<'_>, first: u64) -> Result<ArrayRef> {
    let values = columns.at(variable.path())?;
    let (Some(linked), Some(list)) = (variable.linked(), values.as_list_opt::<i64>()) else { return Ok(values) };
    joined(list, &columns.at(&linked.path)?, linked.kind).map_err(|(entry, what)| {
        let (container, variable, entry) = (container.name(), variable.name(), first + entry as u64);
        Error::unsupported(format!("container '{container}', variable '{variable}', entry {entry}: {what}"))
    })
}

/// The variables of a container as lists of structs, or of an object as structs.
fn records(container: &Container, variables: &[String], batch: Option<&Columns<'_>>, first: u64) -> Result<ArrayRef> {
    let missing = || Error::unsupported(format!("'{}' has neither elements nor variables", container.name()));
    let batch = batch.ok_or_else(missing)?;
    let mut offsets: Option<(OffsetBuffer<i64>, String)> = None;
    if let Some(interface) = container.interface() {
        let own = batch.at(interface)?;
        offsets = Some((from_zero(own.as_list_opt::<i64>().ok_or_else(missing)?).0, String::new()));
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for name in variables {
        let variable = container.variable(name)?;
        let mut values = value_of(container, variable, batch, first)?;
        if !container.is_object() {
            let list = values.as_list_opt::<i64>().ok_or_else(|| {
                let what = format!("variable '{name}' of '{}' has no list of values in each entry", container.name());
                Error::unsupported(what)
            })?;
            let (own, items) = from_zero(list);
            match &offsets {
                Some((known, other)) => check(container, [name, other], [&own, known], first)?,
                None => offsets = Some((own, name.clone())),
            }
            values = items;
        }
        fields.push(ArrowField::new(name, values.data_type().clone(), values.is_nullable()));
        columns.push(values);
    }
    let count = offsets.as_ref().map_or(batch.batch.num_rows(), |(known, _)| known.lengths().sum());
    let records = StructArray::try_new_with_length(Fields::from(fields), columns, None, count)?;
    match offsets {
        Some((offsets, _)) => {
            let item = Arc::new(ArrowField::new("item", records.data_type().clone(), false));
            Ok(Arc::new(LargeListArray::try_new(item, offsets, Arc::new(records), None)?))
        }
        None if container.is_object() => Ok(Arc::new(records)),
        None => Err(missing()),
    }
}

/// Refuses a variable that has another number of values than another one, or than the container has elements.
fn check(container: &Container, names: [&str; 2], offsets: [&OffsetBuffer<i64>; 2], first: u64) -> Result<()> {
    let [own, known] = offsets;
    let Some((entry, (own, known))) = first_differing(own, known) else { return Ok(()) };
    let [name, other] = names;
    let what = match other {
        "" => "the container has".to_owned(),
        other => format!("variable '{other}' has"),
    };
    let entry = first + entry as u64;
    let (container, of) = (container.name(), if known == 1 { "" } else { "s" });
    Err(Error::unsupported(format!(
        "container '{container}', variable '{name}', entry {entry}: found {own} values where {what} {known} element{of}"
    )))
}
