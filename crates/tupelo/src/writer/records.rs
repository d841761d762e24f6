//! A field tree laid out as the format's field and column records, from the start or added later.

use std::collections::{BTreeSet, HashMap};

use tupelo_format::compression::Compression;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::{AliasColumnRecord, ColumnRecord, FieldRecord, SchemaRecords, role};

use super::WriteOptions;
use crate::encode::{ColumnWriter, FieldWriter, Memory};
use crate::schema::arrow::default_column_type;
use crate::schema::{Field, Kind, Schema};
use crate::{Error, Result};

/// The fields of an ntuple that is being written, and what is needed to add more of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) schema: Schema,
    /// By path, items of collections included as `_0`.
    placed: HashMap<String, Placed>,
    fields: usize,
    /// For each physical column the number of its writer; `None` for representations that are not written.
    pub(super) columns: Vec<Option<usize>>,
    writers: usize,
}

/// What fields become that are added.
pub(super) struct Added {
    pub(super) records: SchemaRecords,
    /// One for each field; `None` for those that are projected and so have no data of their own.
    pub(super) fields: Vec<Option<FieldWriter>>,
    pub(super) columns: Vec<ColumnWriter>,
    /// For each physical column its first element.
    pub(super) first_elements: Vec<u64>,
    /// Their paths in the model.
    pub(super) placed: Vec<String>,
}

/// How far a model had come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    schema_fields: usize,
    fields: usize,
    columns: usize,
    writers: usize,
}

impl Mark {
    /// Records of top-level fields that were added behind the mark, as if they were the first ones.
    pub(super) fn without_those_before(&self, records: &SchemaRecords) -> SchemaRecords {
        let mut records = records.clone();
        let fields = u32::try_from(self.fields).unwrap_or(u32::MAX);
        records.fields.iter_mut().for_each(|field| field.parent = field.parent.saturating_sub(fields));
        records.columns.iter_mut().for_each(|column| column.field = column.field.saturating_sub(fields));
        records
    }
}

/// Where a field ended up.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) id: u32,
    /// Its own physical columns.
    pub(super) columns: Vec<u32>,
}

/// Where fields are added.
struct Place {
    parent: Option<u32>,
    /// In front of the names: empty, or the parent's path and a dot.
    prefix: String,
}

struct Builder<'o> {
    options: &'o WriteOptions,
    model: &'o mut Model,
    added: Added,
    /// Option paths that named a field.
    used: BTreeSet<&'o str>,
    /// Paths of the fields so far.
    seen: BTreeSet<String>,
}

impl Model {
    /// A model of fields that exist; `writers` have been made for the columns that are written.
    pub(super) fn existing(
        schema: Schema,
        placed: HashMap<String, Placed>,
        columns: Vec<Option<usize>>,
        fields: usize,
    ) -> Self {
        let writers = columns.iter().flatten().count();
        Self { schema, placed, fields, columns, writers }
    }

    /// Adds top-level fields after `entries` entries: names, roles, columns and encodings under the given options.
    pub(super) fn add(&mut self, schema: &Schema, options: &WriteOptions, entries: u64) -> Result<Added> {
        let place = Place { parent: None, prefix: String::new() };
        let added = self.build(schema, options, entries, &place)?;
        self.schema.fields.extend(schema.fields.iter().cloned());
        Ok(added)
    }

    /// How far it has come.
    pub(super) fn mark(&self) -> Mark {
        let (schema_fields, fields) = (self.schema.fields.len(), self.fields);
        Mark { schema_fields, fields, columns: self.columns.len(), writers: self.writers }
    }

    /// Takes out what was added behind a mark: top-level fields, and all fields of these paths.
    pub(super) fn undo(&mut self, mark: &Mark, placed: &[String]) {
        self.schema.fields.truncate(mark.schema_fields);
        self.columns.truncate(mark.columns);
        (self.fields, self.writers) = (mark.fields, mark.writers);
        for path in placed {
            self.placed.remove(path);
        }
    }

    /// Adds members to the untyped record of a dotted path.
    pub(super) fn add_members(
        &mut self,
        path: &str,
        members: &Schema,
        options: &WriteOptions,
        entries: u64,
    ) -> Result<Added> {
        let known = self.schema.paths();
        let no_such = || Error::no_such("field", path, known.iter().map(|(path, _)| path.as_str()));
        let mut fields = self.schema.fields.as_slice();
        for name in path.split('.') {
            let field = fields.iter().find(|field| field.name == name).ok_or_else(no_such)?;
            let is_untyped = matches!(field.kind, Kind::Record(_)) && field.type_name.is_empty();
            if !is_untyped {
                return Err(Error::invalid_argument(format!(
                    "members can be added to untyped records outside of collections only; '{name}' of '{path}' is a {}",
                    field.display_type()
                )));
            }
            fields = field.children();
        }
        let parent = self.placed.get(path).map(|placed| placed.id).ok_or_else(no_such)?;
        let place = Place { parent: Some(parent), prefix: format!("{path}.") };
        let added = self.build(members, options, entries, &place)?;
        let mut fields = &mut self.schema.fields;
        for name in path.split('.') {
            match fields.iter_mut().find(|field| field.name == name).map(|field| &mut field.kind) {
                Some(Kind::Record(members)) => fields = members,
                _ => return Err(Error::not_found(format!("'{name}' of '{path}' is no record"))),
            }
        }
        fields.extend(members.fields.iter().cloned());
        Ok(added)
    }

    /// Adds fields, or changes nothing.
    fn build(&mut self, schema: &Schema, options: &WriteOptions, entries: u64, place: &Place) -> Result<Added> {
        let mark = self.mark();
        // Sources first: a projected field refers to fields that may stand behind it.
        let sources = Sources { new: disk_paths(schema, &place.prefix), existing: &self.placed };
        let fields: Vec<_> = schema.fields.iter().map(|field| resolve(field, &sources)).collect();
        let added = Added {
            records: SchemaRecords::default(),
            fields: Vec::new(),
            columns: Vec::new(),
            first_elements: Vec::new(),
            placed: Vec::new(),
        };
        let (used, seen) = (BTreeSet::new(), BTreeSet::new());
        let mut builder = Builder { options, model: self, added, used, seen };
        let built = builder.build(schema, fields, entries, place);
        let added = builder.added;
        match built {
            Ok(()) => Ok(added),
            Err(error) => {
                self.undo(&mark, &added.placed);
                Err(error)
            }
        }
    }
}

/// Paths that a projected field may refer to.
struct Sources<'a> {
    new: BTreeSet<String>,
    existing: &'a HashMap<String, Placed>,
}

impl Sources<'_> {
    fn contains(&self, path: &str) -> bool {
        self.new.contains(path) || self.existing.contains_key(path)
    }
}

/// Paths of all fields, items of collections included, of the fields that are not projected.
fn disk_paths(schema: &Schema, prefix: &str) -> BTreeSet<String> {
    fn collect(field: &Field, path: String, paths: &mut BTreeSet<String>) {
        for child in field.children() {
            collect(child, format!("{path}.{}", child.name), paths);
        }
        paths.insert(path);
    }
    let mut paths = BTreeSet::new();
    for field in schema.fields.iter().filter(|field| field.projected_from.is_none()) {
        collect(field, format!("{prefix}{}", field.name), &mut paths);
    }
    paths
}

/// What a field takes over from those above it.
#[derive(Clone, Copy)]
struct Context {
    parent: Option<u32>,
    encoding: Option<Encoding>,
    compression: Compression,
    /// Elements that columns of fields added late lack; `None` below collections, which have none before.
    first_element: Option<u64>,
    is_projected: bool,
}

impl Context {
    /// For the subfields of a field.
    fn below(self, field: &Field, parent: u32) -> Self {
        let first_element = match &field.kind {
            Kind::Array { size, .. } => self.first_element.map(|first| first.saturating_mul(*size)),
            Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => self.first_element,
            _ => None,
        };
        Self { parent: Some(parent), first_element, ..self }
    }
}

/// A projected field whose source is written too stays projected; without its source it becomes a field of its own.
fn resolve(field: &Field, sources: &Sources<'_>) -> (Field, bool) {
    fn all_there(field: &Field, sources: &Sources<'_>) -> bool {
        field.projected_from.as_ref().is_none_or(|source| sources.contains(source))
            && field.children().iter().all(|child| all_there(child, sources))
    }
    fn physical(field: &mut Field) {
        field.projected_from = None;
        if let Kind::Cardinality { wide } = field.kind {
            let (primitive, name) = match wide {
                true => (crate::schema::Primitive::UInt64, "std::uint64_t"),
                false => (crate::schema::Primitive::UInt32, "std::uint32_t"),
            };
            field.kind = Kind::Primitive(primitive);
            field.type_name = name.to_owned();
            field.encoding = None;
        }
        field.children_mut().iter_mut().for_each(physical);
    }
    let mut field = field.clone();
    let is_projected = field.projected_from.is_some() && all_there(&field, sources);
    if !is_projected {
        physical(&mut field);
    }
    (field, is_projected)
}

impl<'o> Builder<'o> {
    /// Adds these fields of a schema, of each of which it is known whether it is projected.
    fn build(&mut self, schema: &Schema, fields: Vec<(Field, bool)>, entries: u64, place: &Place) -> Result<()> {
        let options = self.options;
        let mut projected = Vec::new();
        for (field, is_projected) in fields {
            let path = format!("{}{}", place.prefix, field.name);
            if self.model.placed.contains_key(&path) {
                return Err(Error::invalid_argument(format!("there is a field '{path}' already")));
            }
            let context = Context {
                parent: place.parent,
                encoding: None,
                compression: options.compression,
                first_element: Some(entries),
                is_projected,
            };
            let writer = self.add(&field, &path, &path, context)?;
            self.added.fields.push((!is_projected).then_some(writer));
            if is_projected {
                projected.push((path, field));
            }
        }
        for (path, field) in &projected {
            self.alias(path, field)?;
        }
        let unused = |path: &&String| !self.used.contains(path.as_str());
        if let Some(path) = options.field_compression.keys().chain(options.field_encoding.keys()).find(unused) {
            let paths = schema.paths();
            return Err(Error::no_such("field", path, paths.iter().map(|(path, _)| path.as_str())));
        }
        Ok(())
    }

    /// Adds a field and everything below it. `path` is as users write it, `disk_path` counts items as `_0`.
    fn add(&mut self, field: &Field, path: &str, disk_path: &str, context: Context) -> Result<FieldWriter> {
        check_name(&field.name)?;
        let within = |e: Error| e.within(format!("field '{path}'"));
        let id = u32::try_from(self.model.fields).map_err(|_| Error::limit("more than 2^32 fields"))?;
        let array_size = match &field.kind {
            Kind::Array { size, .. } | Kind::Bitset { size } => Some(*size),
            _ => None,
        };
        self.model.fields += 1;
        self.added.records.fields.push(FieldRecord {
            field_version: 0,
            type_version: field.type_version,
            parent: context.parent.unwrap_or(id),
            role: role(&field.kind),
            name: field.name.clone(),
            type_name: field.type_name.clone(),
            type_alias: field.type_alias.clone(),
            description: field.description.clone(),
            array_size,
            source: None,
            checksum: field.checksum,
            soa: field.soa,
        });
        // Items of collections share the path of their collection, which has had what the options say of it.
        let is_item = !self.seen.insert(path.to_owned());
        let compression = match self.options.field_compression.get_key_value(path) {
            Some((key, compression)) if !is_item => {
                self.used.insert(key);
                *compression
            }
            _ => context.compression,
        };
        let asked = match self.options.field_encoding.get_key_value(path) {
            Some((key, encoding)) if !is_item => {
                self.used.insert(key);
                Some(*encoding)
            }
            _ => context.encoding,
        };
        let (first, physical) = (self.model.writers, self.model.columns.len());
        // An encoding for a path of numbers in collections passes through the layers that cannot have it.
        let takes_it = asked.is_some_and(|encoding| fits(field, &encoding));
        if !context.is_projected {
            let chosen = if takes_it { asked } else { field.encoding };
            self.add_columns(field, id, chosen, compression, context.first_element).map_err(within)?;
        }
        let passed = asked.filter(|_| !takes_it);
        if passed.is_some() && !field.is_transparent() {
            let encoding = passed.map_or("", |e| e.column_type().name());
            return Err(within(Error::invalid_argument(format!(
                "'{}' cannot be stored as {encoding}",
                field.type_name
            ))));
        }
        let columns = (physical as u32..self.model.columns.len() as u32).collect();
        self.model.placed.insert(disk_path.to_owned(), Placed { id, columns });
        self.added.placed.push(disk_path.to_owned());
        let below = Context { encoding: passed, compression, ..context }.below(field, id);
        let children = field
            .children()
            .iter()
            .map(|child| {
                let path = if field.is_transparent() { path.to_owned() } else { format!("{path}.{}", child.name) };
                self.add(child, &path, &format!("{disk_path}.{}", child.name), below)
            })
            .collect::<Result<_>>()?;
        Ok(FieldWriter { path: path.to_owned(), kind: field.kind.clone(), column: first, children })
    }

    fn add_columns(
        &mut self,
        field: &Field,
        id: u32,
        chosen: Option<Encoding>,
        compression: Compression,
        first_element: Option<u64>,
    ) -> Result<()> {
        let compressed = !compression.is_none();
        for (k, memory) in FieldWriter::columns_of(field).into_iter().enumerate() {
            let encoding = match (k, chosen) {
                (0, Some(encoding)) if compressed => encoding,
                (0, Some(encoding)) => unsplit(field, encoding)?,
                (0, None) => {
                    let default =
                        default_column_type(field, compressed).ok_or_else(|| Error::unsupported("no column"))?;
                    of(default)?
                }
                _ if field.kind == Kind::Streamer => of(ColumnType::Byte)?,
                _ => of(ColumnType::Char)?,
            };
            debug_assert!(memory != Memory::Bits || encoding.bits() == 1);
            let sealing = self.options.sealing(encoding, compression);
            // Only a field's own first column is deferred: what its items would have before is nothing.
            let first = match (&field.kind, first_element) {
                (Kind::Bitset { size }, Some(first)) => first.saturating_mul(*size),
                (_, Some(first)) if k == 0 => first,
                _ => 0,
            };
            let deferred = i64::try_from(first).map_err(|_| Error::limit(format!("element {first}")))?;
            self.added.records.columns.push(ColumnRecord {
                column_type: encoding.column_type().code(),
                bits: encoding.bits(),
                field: id,
                representation: 0,
                first_element: (deferred > 0).then_some(deferred),
                range: encoding.range(),
            });
            self.added.first_elements.push(first);
            self.added.columns.push(ColumnWriter::new(memory, sealing));
            self.model.columns.push(Some(self.model.writers));
            self.model.writers += 1;
        }
        Ok(())
    }

    /// Points a projected field and all below it to the columns of their sources.
    fn alias(&mut self, disk_path: &str, field: &Field) -> Result<()> {
        let source_path = field.projected_from.as_deref().unwrap_or_default();
        let source = self.model.placed.get(source_path).cloned();
        let own = self.model.placed.get(disk_path).map(|placed| placed.id);
        let (Some(source), Some(own)) = (source, own) else {
            return Err(Error::invalid_argument(format!(
                "field '{disk_path}' is projected from the missing '{source_path}'"
            )));
        };
        let first = self.model.fields - self.added.records.fields.len();
        if let Some(record) = self.added.records.fields.get_mut(own as usize - first) {
            record.source = Some(source.id);
        }
        let aliases = source.columns.iter().map(|&column| AliasColumnRecord { column, field: own });
        self.added.records.alias_columns.extend(aliases);
        field.children().iter().try_for_each(|child| self.alias(&format!("{disk_path}.{}", child.name), child))
    }
}

fn of(column_type: ColumnType) -> Result<Encoding> {
    Encoding::of(column_type)
        .ok_or_else(|| Error::unsupported(format!("{} needs more than its name", column_type.name())))
}

/// Splitting bytes serves compression only; ROOT leaves it out where nothing is compressed, but for `Double32_t`.
fn unsplit(field: &Field, encoding: Encoding) -> Result<Encoding> {
    let plain = encoding.column_type().unsplit();
    if plain == encoding.column_type() || default_column_type(field, false) == Some(encoding.column_type()) {
        return Ok(encoding);
    }
    of(plain)
}

fn fits(field: &Field, encoding: &Encoding) -> bool {
    match (&field.kind, default_column_type(field, false)) {
        (Kind::Primitive(primitive), _) => primitive.can_be_stored_as(encoding.column_type()),
        (_, Some(ColumnType::Index64)) => encoding.column_type().is_index(),
        _ => false,
    }
}

fn role(kind: &Kind) -> u16 {
    match kind {
        Kind::Primitive(_)
        | Kind::String
        | Kind::Cardinality { .. }
        | Kind::Bitset { .. }
        | Kind::Array { .. }
        | Kind::Wrapper(_) => role::PLAIN,
        Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_) => role::COLLECTION,
        Kind::Record(_) | Kind::Tuple(_) => role::RECORD,
        Kind::Variant(_) => role::VARIANT,
        Kind::Streamer => role::STREAMER,
    }
}

/// Format specification, "Naming specification".
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid_argument("names must not be empty"));
    }
    match name.chars().find(|c| c.is_control() || matches!(c, '.' | '/' | '\\' | ' ')) {
        None => Ok(()),
        Some(c) => Err(Error::invalid_argument(format!(
            "the name '{}' contains {c:?}; the format forbids control characters, blanks, '.', '/' and '\\'",
            name.escape_debug()
        ))),
    }
}
