//! A field tree laid out as the format's field and column records.

use std::collections::{BTreeSet, HashMap};

use tupelo_format::compression::Compression;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::{AliasColumnRecord, ColumnRecord, FieldRecord, SchemaRecords, role};

use super::{IndexBits, WriteOptions};
use crate::encode::{ColumnWriter, FieldWriter, Memory, Sealing};
use crate::schema::arrow::default_column_type;
use crate::schema::{Field, Kind, Schema};
use crate::{Error, Result};

/// What a schema becomes when it is written.
pub(super) struct Records {
    pub(super) schema: SchemaRecords,
    /// One for each top-level field; `None` for those that are projected and so have no data of their own.
    pub(super) fields: Vec<Option<FieldWriter>>,
    pub(super) columns: Vec<ColumnWriter>,
}

/// Where a field of a given path, items of collections included as `_0`, ended up.
struct Placed {
    id: u32,
    /// Its own physical columns.
    columns: std::ops::Range<usize>,
}

struct Builder<'o> {
    options: &'o WriteOptions,
    records: Records,
    placed: HashMap<String, Placed>,
    /// Option paths that named a field.
    used: BTreeSet<&'o str>,
    /// Paths of the fields so far.
    seen: BTreeSet<String>,
}

/// Names, roles, columns and encodings of a schema under the given options.
pub(super) fn build(schema: &Schema, options: &WriteOptions) -> Result<Records> {
    let records = Records { schema: SchemaRecords::default(), fields: Vec::new(), columns: Vec::new() };
    let mut builder =
        Builder { options, records, placed: HashMap::new(), used: BTreeSet::new(), seen: BTreeSet::new() };
    let disk_paths = disk_paths(schema);
    // Sources first: a projected field refers to fields that may stand behind it.
    let mut projected = Vec::new();
    for field in &schema.fields {
        let (field, is_projected) = resolve(field, &disk_paths);
        let id = builder.records.schema.fields.len() as u32;
        let writer = builder.add(&field, id, &field.name, &field.name, None, options.compression, is_projected)?;
        builder.records.fields.push((!is_projected).then_some(writer));
        if is_projected {
            projected.push((field.name.clone(), field));
        }
    }
    for (path, field) in &projected {
        builder.alias(path, field)?;
    }
    builder.records.schema.extra_type_info.clone_from(&options.extra_type_info);
    let unused = |path: &&String| !builder.used.contains(path.as_str());
    if let Some(path) = options.field_compression.keys().chain(options.field_encoding.keys()).find(unused) {
        let paths = schema.paths();
        return Err(Error::no_such("field", path, paths.iter().map(|(path, _)| path.as_str())));
    }
    Ok(builder.records)
}

/// Paths of all fields, items of collections included, of the fields that are not projected.
fn disk_paths(schema: &Schema) -> BTreeSet<String> {
    fn collect(field: &Field, path: String, paths: &mut BTreeSet<String>) {
        for child in field.children() {
            collect(child, format!("{path}.{}", child.name), paths);
        }
        paths.insert(path);
    }
    let mut paths = BTreeSet::new();
    for field in schema.fields.iter().filter(|field| field.projected_from.is_none()) {
        collect(field, field.name.clone(), &mut paths);
    }
    paths
}

/// A projected field whose source is written too stays projected; without its source it becomes a field of its own.
fn resolve(field: &Field, sources: &BTreeSet<String>) -> (Field, bool) {
    fn all_there(field: &Field, sources: &BTreeSet<String>) -> bool {
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
    /// Adds a field and everything below it. `path` is as users write it, `disk_path` counts items as `_0`.
    #[expect(clippy::too_many_arguments, reason = "the state of one step of a tree walk")]
    fn add(
        &mut self,
        field: &Field,
        parent: u32,
        path: &str,
        disk_path: &str,
        inherited_encoding: Option<Encoding>,
        inherited_compression: Compression,
        is_projected: bool,
    ) -> Result<FieldWriter> {
        check_name(&field.name)?;
        let within = |e: Error| e.within(format!("field '{path}'"));
        let id = u32::try_from(self.records.schema.fields.len()).map_err(|_| Error::limit("more than 2^32 fields"))?;
        let array_size = match &field.kind {
            Kind::Array { size, .. } | Kind::Bitset { size } => Some(*size),
            _ => None,
        };
        self.records.schema.fields.push(FieldRecord {
            field_version: 0,
            type_version: field.type_version,
            parent: if disk_path.contains('.') { parent } else { id },
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
            _ => inherited_compression,
        };
        let asked = match self.options.field_encoding.get_key_value(path) {
            Some((key, encoding)) if !is_item => {
                self.used.insert(key);
                Some(*encoding)
            }
            _ => inherited_encoding,
        };
        let first = self.records.columns.len();
        // An encoding for a path of numbers in collections passes through the layers that cannot have it.
        let takes_it = asked.is_some_and(|encoding| fits(field, &encoding));
        if !is_projected {
            let chosen = if takes_it { asked } else { field.encoding };
            self.add_columns(field, id, chosen, compression).map_err(within)?;
        }
        let passed = asked.filter(|_| !takes_it);
        if passed.is_some() && !field.is_transparent() {
            let encoding = passed.map_or("", |e| e.column_type().name());
            return Err(within(Error::invalid_argument(format!(
                "'{}' cannot be stored as {encoding}",
                field.type_name
            ))));
        }
        self.placed.insert(disk_path.to_owned(), Placed { id, columns: first..self.records.columns.len() });
        let children = field
            .children()
            .iter()
            .map(|child| {
                let below = if field.is_transparent() { path.to_owned() } else { format!("{path}.{}", child.name) };
                let disk_below = format!("{disk_path}.{}", child.name);
                self.add(child, id, &below, &disk_below, passed, compression, is_projected)
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
    ) -> Result<()> {
        let compressed = !compression.is_none();
        for (k, memory) in FieldWriter::columns_of(field).into_iter().enumerate() {
            let encoding = match (k, chosen) {
                (0, Some(encoding)) if compressed => encoding,
                (0, Some(encoding)) => unsplit(field, encoding)?,
                (0, None) => {
                    let default =
                        default_column_type(field, compressed).ok_or_else(|| Error::unsupported("no column"))?;
                    of(match (self.options.index_bits, default) {
                        (IndexBits::Bits32, ColumnType::SplitIndex64) => ColumnType::SplitIndex32,
                        (IndexBits::Bits32, ColumnType::Index64) => ColumnType::Index32,
                        (_, default) => default,
                    })?
                }
                _ if field.kind == Kind::Streamer => of(ColumnType::Byte)?,
                _ => of(ColumnType::Char)?,
            };
            debug_assert!(memory != Memory::Bits || encoding.bits() == 1);
            let sealing = Sealing {
                encoding,
                compression,
                has_checksum: self.options.page_checksums,
                page_bytes: self.options.page_bytes,
            };
            self.records.schema.columns.push(ColumnRecord {
                column_type: encoding.column_type().code(),
                bits: encoding.bits(),
                field: id,
                representation: 0,
                first_element: None,
                range: encoding.range(),
            });
            self.records.columns.push(ColumnWriter::new(memory, sealing));
        }
        Ok(())
    }

    /// Points a projected field and all below it to the columns of their sources.
    fn alias(&mut self, disk_path: &str, field: &Field) -> Result<()> {
        let source_path = field.projected_from.as_deref().unwrap_or_default();
        let source = self.placed.get(source_path).map(|placed| (placed.id, placed.columns.clone()));
        let own = self.placed.get(disk_path).map(|placed| placed.id);
        let (Some((source, columns)), Some(own)) = (source, own) else {
            return Err(Error::invalid_argument(format!(
                "field '{disk_path}' is projected from the missing '{source_path}'"
            )));
        };
        if let Some(record) = self.records.schema.fields.get_mut(own as usize) {
            record.source = Some(source);
        }
        let aliases = columns.map(|column| AliasColumnRecord { column: column as u32, field: own });
        self.records.schema.alias_columns.extend(aliases);
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
