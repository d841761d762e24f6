//! Field and column records for a field tree, for new ntuples and for fields that are added later.

use std::collections::{BTreeSet, HashMap};

use tupelo_format::compression::Compression;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::{AliasColumnRecord, ColumnRecord, FieldRecord, MAX_NAME_BYTES, SchemaRecords, role};
use tupelo_pages::encode::{ColumnKind, ColumnWriter, FieldWriter};
use tupelo_schema::schema::arrow::default_column_type;
use tupelo_schema::schema::{Field, Kind, Schema};

use super::WriteOptions;
use crate::{Error, Result};

/// The fields of an ntuple that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) schema: Schema,
    /// By path, items of collections included as `_0`.
    ids: HashMap<String, FieldIds>,
    fields: usize,
    /// `None` for representations that are not written.
    pub(super) columns: Vec<Option<PhysicalColumn>>,
    /// Number of writers of columns.
    pub(super) writers: usize,
}

/// A physical column that is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhysicalColumn {
    /// The index of its writer, which those of other representations share.
    pub(super) writer: usize,
    /// Its number among the [representations](FieldWriter::others) of the field.
    pub(super) representation: usize,
}

/// The result of adding fields.
pub(super) struct AddedFields {
    pub(super) records: SchemaRecords,
    /// One for each field; `None` for projected fields, which have no data of their own.
    pub(super) fields: Vec<Option<FieldWriter>>,
    pub(super) columns: Vec<ColumnWriter>,
    /// The first element of each physical column.
    pub(super) first_elements: Vec<u64>,
    /// The paths of all new fields in the model.
    pub(super) paths: Vec<String>,
}

/// The size of a model, to roll it back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    schema_fields: usize,
    fields: usize,
    columns: usize,
    writers: usize,
}

impl Mark {
    /// Records of top-level fields that were added after the mark, numbered as if they were the first.
    pub(super) fn renumber(&self, records: &SchemaRecords) -> SchemaRecords {
        let mut records = records.clone();
        let fields = u32::try_from(self.fields).unwrap_or(u32::MAX);
        records.fields.iter_mut().for_each(|field| field.parent = field.parent.saturating_sub(fields));
        records.columns.iter_mut().for_each(|column| column.field = column.field.saturating_sub(fields));
        records
    }
}

/// The ids of a field and its columns.
#[derive(Debug, Clone)]
pub(super) struct FieldIds {
    pub(super) id: u32,
    /// The field's own physical columns.
    pub(super) columns: Vec<u32>,
}

/// The parent of added fields.
struct ParentField {
    parent: Option<u32>,
    /// Prefix of the names: empty, or the parent's path and a dot.
    prefix: String,
}

struct Builder<'o> {
    options: &'o WriteOptions,
    model: &'o mut Model,
    added: AddedFields,
    /// Paths in the options that matched a field.
    used: BTreeSet<&'o str>,
    /// Paths of the fields added so far.
    seen: BTreeSet<String>,
}

impl Model {
    /// A model of existing fields.
    pub(super) fn existing(
        schema: Schema,
        ids: HashMap<String, FieldIds>,
        columns: Vec<Option<PhysicalColumn>>,
        fields: usize,
    ) -> Self {
        let writers = columns.iter().flatten().count();
        Self { schema, ids, fields, columns, writers }
    }

    /// The physical columns of a cluster, in the order of their writers, each in this representation. In a continued ntuple
    /// they are in another order.
    pub(super) fn physical(&self, representations: &[usize]) -> Result<Vec<usize>> {
        let mut physical = vec![None; representations.len()];
        for (place, column) in self.columns.iter().enumerate() {
            let Some(PhysicalColumn { writer, representation }) = *column else { continue };
            if representations.get(writer) == Some(&representation) {
                physical[writer] = Some(place);
            }
        }
        let all: Option<Vec<usize>> = physical.into_iter().collect();
        all.ok_or_else(|| Error::invalid_argument("a column of the cluster is not that of any representation"))
    }

    /// Adds top-level fields after `entries` entries: names, roles, columns and encodings under the given options.
    pub(super) fn add(&mut self, schema: &Schema, options: &WriteOptions, entries: u64) -> Result<AddedFields> {
        let place = ParentField { parent: None, prefix: String::new() };
        let added = self.build(schema, options, entries, &place)?;
        self.schema.fields.extend(schema.fields.iter().cloned());
        Ok(added)
    }

    /// The current size.
    pub(super) fn mark(&self) -> Mark {
        let (schema_fields, fields) = (self.schema.fields.len(), self.fields);
        Mark { schema_fields, fields, columns: self.columns.len(), writers: self.writers }
    }

    /// Removes what was added after a mark: top-level fields, and all fields of these paths.
    pub(super) fn roll_back(&mut self, mark: &Mark, paths: &[String]) {
        self.schema.fields.truncate(mark.schema_fields);
        self.columns.truncate(mark.columns);
        (self.fields, self.writers) = (mark.fields, mark.writers);
        for path in paths {
            self.ids.remove(path);
        }
    }

    /// Adds members to the untyped record of a dotted path.
    pub(super) fn add_members(
        &mut self,
        path: &str,
        members: &Schema,
        options: &WriteOptions,
        entries: u64,
    ) -> Result<AddedFields> {
        let known = self.schema.paths();
        let no_such = || Error::no_such("field", path, known.iter().map(|(path, _)| path.as_str()));
        let mut fields = self.schema.fields.as_slice();
        for name in path.split('.') {
            let field = fields.iter().find(|field| field.name == name).ok_or_else(no_such)?;
            let is_untyped = matches!(field.kind, Kind::Record(_)) && field.type_name.is_empty();
            if !is_untyped {
                return Err(Error::invalid_argument(format!(
                    "members can only be added to untyped records outside collections; '{name}' of '{path}' is a {}",
                    field.display_type()
                )));
            }
            fields = field.children();
        }
        let parent = self.ids.get(path).map(|ids| ids.id).ok_or_else(no_such)?;
        let place = ParentField { parent: Some(parent), prefix: format!("{path}.") };
        let added = self.build(members, options, entries, &place)?;
        let mut fields = &mut self.schema.fields;
        for name in path.split('.') {
            match fields.iter_mut().find(|field| field.name == name).map(|field| &mut field.kind) {
                Some(Kind::Record(members)) => fields = members,
                _ => return Err(Error::not_found(format!("'{name}' of '{path}' is not a record"))),
            }
        }
        fields.extend(members.fields.iter().cloned());
        Ok(added)
    }

    /// Adds fields; after an error the model is unchanged.
    fn build(
        &mut self,
        schema: &Schema,
        options: &WriteOptions,
        entries: u64,
        place: &ParentField,
    ) -> Result<AddedFields> {
        let mark = self.mark();
        // Sources of projections come first: a projected field may refer to a later field.
        let sources = ProjectionSources { new: disk_paths(schema, &place.prefix), existing: &self.ids };
        let fields: Vec<_> = schema.fields.iter().map(|field| resolve(field, &sources)).collect();
        let added = AddedFields {
            records: SchemaRecords::default(),
            fields: Vec::new(),
            columns: Vec::new(),
            first_elements: Vec::new(),
            paths: Vec::new(),
        };
        let (used, seen) = (BTreeSet::new(), BTreeSet::new());
        let mut builder = Builder { options, model: self, added, used, seen };
        let built = builder.build(schema, fields, entries, place);
        let added = builder.added;
        match built {
            Ok(()) => Ok(added),
            Err(error) => {
                self.roll_back(&mark, &added.paths);
                Err(error)
            }
        }
    }
}

/// Paths that a projected field may refer to.
struct ProjectionSources<'a> {
    new: BTreeSet<String>,
    existing: &'a HashMap<String, FieldIds>,
}

impl ProjectionSources<'_> {
    fn contains(&self, path: &str) -> bool {
        self.new.contains(path) || self.existing.contains_key(path)
    }
}

/// Paths of all fields that are not projected, including items of collections.
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

/// What a field inherits from its parents.
#[derive(Clone, Copy)]
struct Context {
    parent: Option<u32>,
    encoding: Option<Encoding>,
    compression: Compression,
    /// The first element of deferred columns; `None` inside collections, which have no earlier items.
    first_element: Option<u64>,
    is_projected: bool,
}

impl Context {
    /// The context of the subfields of a field.
    fn below(self, field: &Field, parent: u32) -> Self {
        let first_element = match &field.kind {
            Kind::Array { size, .. } => self.first_element.map(|first| first.saturating_mul(*size)),
            Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => self.first_element,
            _ => None,
        };
        Self { parent: Some(parent), first_element, ..self }
    }
}

/// A projected field stays projected if its source is written too; otherwise it becomes a stored field.
fn resolve(field: &Field, sources: &ProjectionSources<'_>) -> (Field, bool) {
    fn all_there(field: &Field, sources: &ProjectionSources<'_>) -> bool {
        field.projected_from.as_ref().is_none_or(|source| sources.contains(source))
            && field.children().iter().all(|child| all_there(child, sources))
    }
    let mut field = field.clone();
    let is_projected = field.projected_from.is_some() && all_there(&field, sources);
    if !is_projected {
        field.store();
    }
    (field, is_projected)
}

impl<'o> Builder<'o> {
    /// Adds the fields of a schema, each with a flag that tells whether it is projected.
    fn build(&mut self, schema: &Schema, fields: Vec<(Field, bool)>, entries: u64, place: &ParentField) -> Result<()> {
        let options = self.options;
        let mut projected = Vec::new();
        for (field, is_projected) in fields {
            let path = format!("{}{}", place.prefix, field.name);
            if self.model.ids.contains_key(&path) {
                return Err(Error::invalid_argument(format!("field '{path}' already exists")));
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

    /// Adds a field and its subfields. `path` is the path for users; in `disk_path`, items of collections are `_0`.
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
        // Items share the path of their collection, to which the options were applied already.
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
        // An encoding for numbers in collections is passed on by the fields that cannot have it.
        let takes_it = asked.is_some_and(|encoding| fits(field, &encoding));
        let mut others = Vec::new();
        if !context.is_projected {
            let chosen = if takes_it { asked } else { field.encoding };
            let encodings = self.encodings(field, chosen, compression).map_err(within)?;
            // ROOT 6.40 takes the bits and the range of one representation for those of all others.
            let has_parameters =
                |it: &Encoding| matches!(it.column_type(), ColumnType::Real32Trunc | ColumnType::Real32Quant);
            if let Some(own) =
                encodings.first().filter(|own| self.options.keeps_representations && !has_parameters(own))
            {
                let fitting = field.representations.iter().filter(|it| *it != own && fits(field, it));
                others.extend(fitting.filter(|it| !has_parameters(it)));
            }
            self.add_columns(field, id, &encodings, compression, context.first_element).map_err(within)?;
            self.add_representations(id, &encodings, &others);
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
        self.model.ids.insert(disk_path.to_owned(), FieldIds { id, columns });
        self.added.paths.push(disk_path.to_owned());
        let below = Context { encoding: passed, compression, ..context }.below(field, id);
        let children = field
            .children()
            .iter()
            .map(|child| {
                let path = if field.is_transparent() { path.to_owned() } else { format!("{path}.{}", child.name) };
                self.add(child, &path, &format!("{disk_path}.{}", child.name), below)
            })
            .collect::<Result<_>>()?;
        Ok(FieldWriter { path: path.to_owned(), kind: field.kind.clone(), column: first, others, children })
    }

    /// How the columns of a field are encoded.
    fn encodings(&self, field: &Field, chosen: Option<Encoding>, compression: Compression) -> Result<Vec<Encoding>> {
        let compressed = !compression.is_none();
        let encoding = |k: usize| match (k, chosen) {
            (0, Some(encoding)) if compressed => Ok(encoding),
            (0, Some(encoding)) => unsplit(field, encoding),
            (0, None) => {
                let default = default_column_type(field, compressed)
                    .ok_or_else(|| Error::unsupported("the field has no column"))?;
                of(default)
            }
            _ if field.kind == Kind::Streamer => of(ColumnType::Byte),
            _ => of(ColumnType::Char),
        };
        (0..FieldWriter::columns_of(field).len()).map(encoding).collect()
    }

    fn add_columns(
        &mut self,
        field: &Field,
        id: u32,
        encodings: &[Encoding],
        compression: Compression,
        first_element: Option<u64>,
    ) -> Result<()> {
        for (k, (memory, &encoding)) in FieldWriter::columns_of(field).into_iter().zip(encodings).enumerate() {
            debug_assert!(memory != ColumnKind::Bits || encoding.bits() == 1);
            let sealing = self.options.page_options(encoding, compression);
            // Only the first column of a field is deferred: earlier entries have no items.
            let first = match (&field.kind, first_element) {
                (Kind::Bitset { size }, Some(first)) => first.saturating_mul(*size),
                (_, Some(first)) if k == 0 => first,
                _ => 0,
            };
            let deferred =
                i64::try_from(first).map_err(|_| Error::limit(format!("first element {first} is too large")))?;
            let record = ColumnRecord { first_element: (deferred > 0).then_some(deferred), ..record(id, encoding, 0) };
            self.added.records.columns.push(record);
            self.added.first_elements.push(first);
            self.added.columns.push(ColumnWriter::new(memory, sealing));
            self.model.columns.push(Some(PhysicalColumn { writer: self.model.writers, representation: 0 }));
            self.model.writers += 1;
        }
        Ok(())
    }

    /// Adds further representations of a field, in which the first column has these encodings and others have those of the
    /// columns that were just added.
    fn add_representations(&mut self, id: u32, encodings: &[Encoding], others: &[Encoding]) {
        for (representation, first) in (1..).zip(others) {
            let columns = [first].into_iter().chain(encodings.iter().skip(1));
            for (writer, encoding) in (self.model.writers - encodings.len()..).zip(columns) {
                self.added.records.columns.push(record(id, *encoding, representation));
                self.added.first_elements.push(0);
                let representation = representation.into();
                self.model.columns.push(Some(PhysicalColumn { writer, representation }));
            }
        }
    }

    /// Adds alias columns of a projected field and its subfields, which refer to the columns of their sources.
    fn alias(&mut self, disk_path: &str, field: &Field) -> Result<()> {
        let source_path = field.projected_from.as_deref().unwrap_or_default();
        let source = self.model.ids.get(source_path).cloned();
        let own = self.model.ids.get(disk_path).map(|ids| ids.id);
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

/// The record of a column that every cluster has.
fn record(field: u32, encoding: Encoding, representation: u16) -> ColumnRecord {
    ColumnRecord {
        column_type: encoding.column_type().code(),
        bits: encoding.bits(),
        field,
        representation,
        first_element: None,
        range: encoding.range(),
    }
}

fn of(column_type: ColumnType) -> Result<Encoding> {
    Encoding::of(column_type).ok_or_else(|| Error::unsupported(format!("{} needs parameters", column_type.name())))
}

/// Split encodings only help compression; without it ROOT does not use them, except for `Double32_t`.
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
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid_argument("names must not be empty"));
    }
    if name.len() > MAX_NAME_BYTES {
        let what = format!("a name of {} bytes exceeds the limit of {MAX_NAME_BYTES}", name.len());
        return Err(Error::invalid_argument(what));
    }
    match name.chars().find(|c| c.is_control() || matches!(c, '.' | '/' | '\\' | ' ')) {
        None => Ok(()),
        Some(c) => Err(Error::invalid_argument(format!(
            "the name '{}' contains {c:?}; the format forbids control characters, blanks, '.', '/' and '\\'",
            name.escape_debug()
        ))),
    }
}
