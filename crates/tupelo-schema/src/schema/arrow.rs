//! Field tree ⇄ Arrow schema.
//!
//! Properties that Arrow cannot express are stored in the field metadata under the keys of [`metadata`]. Fields that
//! have no layer of their own in Arrow (optionals, which become nulls, and wrappers, which become their subfield) put
//! their subfield's keys beside their own, with `/0` appended once for every such layer.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, UnionFields, UnionMode};
use tupelo_format::descriptor::MAX_FIELD_DEPTH;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::type_name::{TypeName, fundamental, normalised, template};

use super::{Field, Kind, Primitive, Schema, data_type};
use crate::{Error, Result};

/// Levels of an Arrow type that are converted, because the stack is limited. More than [`MAX_FIELD_DEPTH`]: bitsets
/// have a level in Arrow that their fields lack.
const MAX_ARROW_DEPTH: usize = 2 * MAX_FIELD_DEPTH;

/// A `double` that is stored as a `float`.
const DOUBLE32: &str = "Double32_t";

/// Keys of Arrow field metadata, and of schema metadata, that carry what RNTuple knows beyond Arrow.
pub mod metadata {
    /// C++ type name.
    pub const TYPE: &str = "rntuple.type";
    /// C++ type in its original spelling.
    pub const ALIAS: &str = "rntuple.alias";
    /// Description of a field, or of the ntuple on the schema.
    pub const DESCRIPTION: &str = "rntuple.description";
    /// Version of the C++ class.
    pub const VERSION: &str = "rntuple.version";
    /// ROOT's checksum of the C++ class.
    pub const CHECKSUM: &str = "rntuple.checksum";
    /// Column encoding where it is not the default: `Real16`, `Real32Trunc(16)`, `Real32Quant(12,-1,1)`, `Index32`, ….
    pub const ENCODING: &str = "rntuple.encoding";
    /// Dotted path of the field from which this one is projected.
    pub const PROJECTED: &str = "rntuple.projected";
    /// `streamer` or `soa`, where type and structure do not tell.
    pub const ROLE: &str = "rntuple.role";
    /// Name of the ntuple, on the schema.
    pub const NAME: &str = "rntuple.name";
}

/// Name of the items of Arrow lists.
const ITEM: &str = "item";
/// Names of the members of the pairs in maps.
pub(crate) const PAIR: [&str; 2] = ["key", "value"];
/// Type id and name of a variant's child that stands for "no value".
const VALUELESS: &str = "valueless";

impl Schema {
    /// The Arrow schema of reading. `compressed` tells whether the source is compressed, which determines the default
    /// encodings, left out of the metadata.
    pub fn to_arrow(&self, compressed: bool) -> ArrowSchema {
        ArrowSchema::new(self.fields.iter().map(|field| to_arrow(field, compressed)).collect::<Vec<_>>())
    }

    /// The field tree to write for an Arrow schema. A nullable field becomes an optional; see
    /// [`tighten`](super::tighten) for schemas in which everything is nullable.
    ///
    /// # Errors
    /// Unsupported for Arrow types that have no C++ counterpart; the error names field and type.
    pub fn from_arrow(schema: &ArrowSchema) -> Result<Self> {
        let field = |arrow: &FieldRef| {
            let levels = data_type::depth(arrow.data_type());
            if levels > MAX_ARROW_DEPTH {
                return Err(too_deep(levels, arrow.name()));
            }
            let field = from_arrow(arrow.name(), arrow)?;
            match depth(&field) {
                levels if levels > MAX_FIELD_DEPTH => Err(too_deep(levels, arrow.name())),
                _ => Ok(field),
            }
        };
        Ok(Self { fields: schema.fields().iter().map(field).collect::<Result<_>>()? })
    }
}

#[cold]
fn too_deep(depth: usize, name: &str) -> Error {
    let what = format!("its type is nested {depth} deep, limit is {MAX_FIELD_DEPTH}");
    Error::invalid_argument(what).in_field(name)
}

/// Levels of fields below a field.
fn depth(field: &Field) -> usize {
    field.children().iter().map(|child| depth(child) + 1).max().unwrap_or(0)
}

/// The standard name of a fundamental C++ type, or of a template without its arguments: `std::int32_t` of `Int_t`,
/// `std::vector` of `vector`. `None` for other names.
pub fn standard_type_name(name: &str) -> Option<&'static str> {
    fundamental(name).or_else(|| template(name))
}

/// A type name as it is stored: normalised, unless it differs from that in spaces only, so that copies keep names such as
/// `std::vector<Link<Muon> >`.
fn stored_type_name(name: &str) -> String {
    let normalised = normalised(name);
    let without_spaces = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if without_spaces(name) == without_spaces(&normalised) { name.trim().to_owned() } else { normalised }
}

/// The standard name of the outermost template.
pub(super) fn standard_base(type_name: &str) -> &str {
    TypeName::parse(type_name).map_or("", |name| template(name.base).unwrap_or(name.base))
}

/// The Arrow field that a field reads as.
pub(crate) fn to_arrow(field: &Field, compressed: bool) -> FieldRef {
    named(field, &field.name, data_type(field, compressed), compressed)
}

/// An Arrow field of another name or data type than its own, with all metadata.
pub fn named(field: &Field, name: &str, data_type: DataType, compressed: bool) -> FieldRef {
    let mut entries = HashMap::new();
    collect_metadata(field, "", compressed, &mut entries);
    Arc::new(ArrowField::new(name, data_type, field.is_nullable()).with_metadata(entries))
}

/// The Arrow field of a list's items.
pub fn item(field: &Field, data_type: DataType, compressed: bool) -> FieldRef {
    named(field, ITEM, data_type, compressed)
}

impl Field {
    /// Whether its values in Arrow may be null.
    pub fn is_nullable(&self) -> bool {
        match &self.kind {
            Kind::Optional(item) => item.takes_nulls(),
            Kind::Wrapper(item) => item.is_nullable(),
            // Arrow counts a variant without a value as a null.
            Kind::Variant(_) => true,
            _ => false,
        }
    }
}

/// The Arrow type that a field reads as, strings being UTF-8.
pub fn data_type(field: &Field, compressed: bool) -> DataType {
    let children = |fields: &[Field]| fields.iter().map(|f| to_arrow(f, compressed)).collect::<Fields>();
    let list_item = |field: &Field| item(field, data_type(field, compressed), compressed);
    match &field.kind {
        Kind::Primitive(primitive) => primitive.data_type(),
        Kind::String => DataType::LargeUtf8,
        Kind::Streamer => DataType::LargeBinary,
        Kind::Cardinality { wide: true } => DataType::UInt64,
        Kind::Cardinality { wide: false } => DataType::UInt32,
        Kind::Bitset { size } => DataType::FixedSizeList(bits(), list_size(*size)),
        Kind::Array { size, item } => DataType::FixedSizeList(list_item(item), list_size(*size)),
        Kind::Wrapper(item) => data_type(item, compressed),
        Kind::Optional(item) if item.takes_nulls() => data_type(item, compressed),
        Kind::Optional(item) | Kind::Collection(item) => DataType::LargeList(list_item(item)),
        Kind::Map(pair) => {
            let entries = Fields::from(
                pair.children()
                    .iter()
                    .zip(PAIR)
                    .map(|(f, name)| named(f, name, data_type(f, compressed), compressed))
                    .collect::<Vec<_>>(),
            );
            DataType::LargeList(item(pair, DataType::Struct(entries), compressed))
        }
        Kind::Record(fields) | Kind::Tuple(fields) => DataType::Struct(children(fields)),
        Kind::Variant(fields) => union_type(children(fields)),
    }
}

/// A dense union of [`union_fields`].
pub(crate) fn union_type(alternatives: Fields) -> DataType {
    DataType::Union(union_fields(alternatives), UnionMode::Dense)
}

/// The fields of a dense union whose type ids are the tags on disk: 0 for no value, then the alternatives.
pub fn union_fields(alternatives: Fields) -> UnionFields {
    let valueless: FieldRef = Arc::new(ArrowField::new(VALUELESS, DataType::Null, true));
    (0i8..).zip(std::iter::once(valueless).chain(alternatives.iter().cloned())).collect()
}

/// The items of a bitset.
pub fn bits() -> FieldRef {
    Arc::new(ArrowField::new(ITEM, DataType::Boolean, false))
}

/// Arrow counts fixed sizes in 31 bits; larger arrays are refused when they are read.
fn list_size(size: u64) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

impl Primitive {
    /// The Arrow type of the same values.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Char | Self::Int8 => DataType::Int8,
            Self::Byte | Self::UInt8 => DataType::UInt8,
            Self::Int16 => DataType::Int16,
            Self::UInt16 => DataType::UInt16,
            Self::Int32 => DataType::Int32,
            Self::UInt32 => DataType::UInt32,
            Self::Int64 => DataType::Int64,
            Self::UInt64 => DataType::UInt64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
        }
    }

    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Char => "char",
            Self::Byte => "std::byte",
            Self::Int8 => "std::int8_t",
            Self::UInt8 => "std::uint8_t",
            Self::Int16 => "std::int16_t",
            Self::UInt16 => "std::uint16_t",
            Self::Int32 => "std::int32_t",
            Self::UInt32 => "std::uint32_t",
            Self::Int64 => "std::int64_t",
            Self::UInt64 => "std::uint64_t",
            Self::Float => "float",
            Self::Double => "double",
        }
    }
}

/// The default encoding of the first column of a field, as in ROOT.
pub fn default_column_type(field: &Field, compressed: bool) -> Option<ColumnType> {
    let plain = match &field.kind {
        // ROOT stores Double32_t in split encoding even where nothing is compressed.
        Kind::Primitive(Primitive::Double) if field.type_alias == DOUBLE32 => return Some(ColumnType::SplitReal32),
        Kind::Primitive(primitive) => primitive.column_type(),
        Kind::String
        | Kind::Streamer
        | Kind::Collection(_)
        | Kind::Map(_)
        | Kind::Optional(_)
        | Kind::Cardinality { .. } => ColumnType::Index64,
        Kind::Bitset { .. } => ColumnType::Bit,
        Kind::Variant(_) => ColumnType::Switch,
        Kind::Array { .. } | Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => return None,
    };
    Some(if compressed { plain.split() } else { plain })
}

fn collect_metadata(field: &Field, suffix: &str, compressed: bool, entries: &mut HashMap<String, String>) {
    let mut put = |key: &str, value: String| {
        entries.insert(format!("{key}{suffix}"), value);
    };
    put(metadata::TYPE, field.type_name.clone());
    for (key, text) in [(metadata::ALIAS, &field.type_alias), (metadata::DESCRIPTION, &field.description)] {
        if !text.is_empty() {
            put(key, text.clone());
        }
    }
    if field.type_version != 0 {
        put(metadata::VERSION, field.type_version.to_string());
    }
    if let Some(checksum) = field.checksum {
        put(metadata::CHECKSUM, checksum.to_string());
    }
    if let Some(source) = &field.projected_from {
        put(metadata::PROJECTED, source.clone());
    }
    if let Some(encoding) = &field.encoding
        && Some(encoding.column_type()) != default_column_type(field, compressed)
    {
        put(metadata::ENCODING, encoding_text(encoding));
    }
    if field.kind == Kind::Streamer {
        put(metadata::ROLE, "streamer".into());
    } else if field.soa {
        put(metadata::ROLE, "soa".into());
    }
    match &field.kind {
        Kind::Wrapper(item) => collect_metadata(item, &format!("{suffix}/0"), compressed, entries),
        Kind::Optional(item) if item.takes_nulls() => {
            collect_metadata(item, &format!("{suffix}/0"), compressed, entries);
        }
        _ => {}
    }
}

/// `Real32Quant(12,-1,1)`, `Real32Trunc(16)`, `Real16`.
fn encoding_text(encoding: &Encoding) -> String {
    let name = encoding.column_type().name();
    match (encoding.column_type(), encoding.range()) {
        (ColumnType::Real32Quant, Some((min, max))) => format!("{name}({},{min:?},{max:?})", encoding.bits()),
        (ColumnType::Real32Trunc, _) => format!("{name}({})", encoding.bits()),
        _ => name.to_owned(),
    }
}

/// Parses an encoding, such as `Real32Quant(12,-1,1)`.
///
/// # Errors
/// Invalid argument that explains the syntax of encodings.
pub fn parse_encoding(text: &str) -> Result<Encoding> {
    let wrong = || {
        Error::invalid_argument(format!(
            "'{text}' is not a column encoding; expected a column type of the format, with bits for Real32Trunc(BITS) \
             and bits and range for Real32Quant(BITS,MIN,MAX)"
        ))
    };
    let (name, arguments) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text, Vec::new()),
    };
    let column_type =
        (0..=u16::from(u8::MAX)).filter_map(ColumnType::from_code).find(|c| c.name() == name).ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    let bits = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    let refused = |error: tupelo_format::Error| Error::invalid_argument(format!("'{text}': {error}"));
    match arguments.as_slice() {
        [] => Encoding::of(column_type).ok_or_else(wrong),
        [width] => Encoding::new(column_type, bits(width)?, None).map_err(refused),
        [width, min, max] => {
            Encoding::new(column_type, bits(width)?, Some((number(min)?, number(max)?))).map_err(refused)
        }
        _ => Err(wrong()),
    }
}

/// The metadata of one layer.
struct Layer<'a> {
    entries: &'a HashMap<String, String>,
    suffix: String,
}

impl Layer<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(&format!("{key}{}", self.suffix)).map(String::as_str)
    }

    fn below(&self) -> Self {
        Self { entries: self.entries, suffix: format!("{}/0", self.suffix) }
    }

    fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    fn number(&self, key: &str) -> Result<Option<u32>> {
        self.get(key)
            .map(|text| text.parse().map_err(|_| Error::invalid_argument(format!("{key} '{text}' is not a number"))))
            .transpose()
    }
}

fn from_arrow(name: &str, arrow: &ArrowField) -> Result<Field> {
    let layer = Layer { entries: arrow.metadata(), suffix: String::new() };
    from_layer(name, arrow.data_type(), arrow.is_nullable(), &layer).map_err(|e| match name {
        "_0" => e,
        name => e.within(format!("field '{name}'")),
    })
}

fn from_layer(name: &str, data_type: &DataType, nullable: bool, layer: &Layer<'_>) -> Result<Field> {
    let type_name = layer.get(metadata::TYPE);
    let base = type_name.map_or("", standard_base);
    let has_layer_below = layer.below().get(metadata::TYPE).is_some();
    // Wrappers always have a type name: what has a layer below it and no name is an optional of an untyped record.
    let is_untyped = type_name == Some("") && has_layer_below;
    let is_optional = is_untyped || matches!(base, "std::optional" | "std::unique_ptr");
    let below = |nullable| from_layer("_0", data_type, nullable, &layer.below()).map(Box::new);
    let may_be_null = nullable && !matches!(data_type, DataType::Union(..) | DataType::Null);
    let kind = if is_optional && may_be_null {
        Kind::Optional(below(false)?)
    } else if has_layer_below && !is_optional {
        Kind::Wrapper(below(nullable)?)
    } else if may_be_null {
        // The metadata, if any, speak of the value: the optional around it is new.
        let item = from_layer("_0", data_type, false, layer)?;
        let optional = optional_type_name(&item);
        let description = item.description.clone();
        let mut field =
            Field::new(name, optional, Kind::Optional(Box::new(Field { description: String::new(), ..item })));
        field.description = description;
        return Ok(field);
    } else {
        plain_kind(data_type, base, layer)?
    };
    let derived = match type_name {
        Some(name) => stored_type_name(name),
        None => derive_type_name(&kind)?,
    };
    let type_alias = match layer.text(metadata::ALIAS) {
        alias if alias.is_empty() && type_name == Some(DOUBLE32) => DOUBLE32.to_owned(),
        alias => alias,
    };
    let encoding = layer
        .get(metadata::ENCODING)
        .map(parse_encoding)
        .transpose()?
        .or_else(|| (*data_type == DataType::Float16).then(|| Encoding::of(ColumnType::Real16)).flatten());
    let field = Field {
        type_alias,
        description: layer.text(metadata::DESCRIPTION),
        type_version: layer.number(metadata::VERSION)?.unwrap_or(0),
        checksum: layer.number(metadata::CHECKSUM)?,
        soa: layer.get(metadata::ROLE) == Some("soa"),
        projected_from: layer.get(metadata::PROJECTED).map(str::to_owned),
        encoding,
        ..Field::new(name, derived, kind)
    };
    check_encoding(&field)?;
    Ok(field)
}

fn check_encoding(field: &Field) -> Result<()> {
    let Some(encoding) = &field.encoding else { return Ok(()) };
    let column_type = encoding.column_type();
    let fits = match (&field.kind, default_column_type(field, false)) {
        (Kind::Primitive(primitive), _) => primitive.can_be_stored_as(column_type),
        (_, Some(ColumnType::Index64)) => column_type.is_index(),
        (_, Some(default)) => column_type == default,
        (_, None) => false,
    };
    match fits {
        true => Ok(()),
        false => {
            Err(Error::invalid_argument(format!("'{}' cannot be stored as {}", field.type_name, column_type.name())))
        }
    }
}

fn plain_kind(data_type: &DataType, base: &str, layer: &Layer<'_>) -> Result<Kind> {
    let named = layer.get(metadata::TYPE).unwrap_or_default();
    let item = |field: &FieldRef| from_arrow("_0", field).map(Box::new);
    let fields = |fields: &Fields, positional: bool| {
        let name = |index: usize, field: &FieldRef| match positional {
            true => format!("_{index}"),
            false => field.name().clone(),
        };
        fields.iter().enumerate().map(|(i, f)| from_arrow(&name(i, f), f)).collect::<Result<Vec<_>>>()
    };
    let primitive = |default: Primitive| {
        let of_name = fundamental(named).and_then(Primitive::from_name);
        Kind::Primitive(of_name.filter(|p| p.data_type() == *data_type).unwrap_or(default))
    };
    Ok(match data_type {
        DataType::UInt32 | DataType::UInt64 if base == "ROOT::RNTupleCardinality" => {
            Kind::Cardinality { wide: *data_type == DataType::UInt64 }
        }
        DataType::Boolean => primitive(Primitive::Bool),
        DataType::Int8 => primitive(Primitive::Int8),
        DataType::UInt8 => primitive(Primitive::UInt8),
        DataType::Int16 => primitive(Primitive::Int16),
        DataType::UInt16 => primitive(Primitive::UInt16),
        DataType::Int32 => primitive(Primitive::Int32),
        DataType::UInt32 => primitive(Primitive::UInt32),
        DataType::Int64 => primitive(Primitive::Int64),
        DataType::UInt64 => primitive(Primitive::UInt64),
        DataType::Float16 | DataType::Float32 => primitive(Primitive::Float),
        DataType::Float64 => primitive(Primitive::Double),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            if layer.get(metadata::ROLE) == Some("streamer") {
                Kind::Streamer
            } else if fundamental(named) == Some("std::string") {
                Kind::String
            } else {
                let byte = Field::new("_0", "std::byte", Kind::Primitive(Primitive::Byte));
                Kind::Collection(Box::new(byte))
            }
        }
        DataType::List(field) | DataType::LargeList(field) => match base {
            "std::optional" | "std::unique_ptr" => Kind::Optional(item(field)?),
            "std::map" | "std::unordered_map" | "std::multimap" | "std::unordered_multimap" => Kind::Map(pair(field)?),
            _ => Kind::Collection(item(field)?),
        },
        DataType::Map(field, _) => Kind::Map(pair(field)?),
        DataType::FixedSizeList(_, size) if base == "std::bitset" => Kind::Bitset { size: size.unsigned_abs().into() },
        DataType::FixedSizeList(_, 0) => {
            return Err(Error::unsupported("fixed-size lists of size 0 have no C++ type"));
        }
        DataType::FixedSizeList(field, size) => Kind::Array { size: size.unsigned_abs().into(), item: item(field)? },
        DataType::Struct(members) => match base {
            "std::pair" | "std::tuple" => Kind::Tuple(fields(members, true)?),
            _ => Kind::Record(fields(members, false)?),
        },
        DataType::Union(members, UnionMode::Dense) => {
            let alternatives = members.iter().filter(|(_, field)| *field.data_type() != DataType::Null);
            let alternatives = alternatives.enumerate().map(|(i, (_, f))| from_arrow(&format!("_{i}"), f));
            Kind::Variant(alternatives.collect::<Result<_>>()?)
        }
        DataType::Dictionary(_, values) => return plain_kind(values, base, layer),
        DataType::Null => {
            return Err(Error::invalid_argument(
                "all data are empty or missing, so their type is unknown; declare it before writing data",
            ));
        }
        other => {
            return Err(Error::unsupported(format!(
                "Arrow type {other} has no C++ type in RNTuple; cast it to a number, a string, a list or a struct"
            )));
        }
    })
}

/// The pair below a map, whatever its struct fields are called.
fn pair(field: &FieldRef) -> Result<Box<Field>> {
    let DataType::Struct(members) = field.data_type() else {
        return Err(Error::unsupported("items of a map must be structs of key and value"));
    };
    let items = members.iter().enumerate().map(|(i, f)| from_arrow(&format!("_{i}"), f)).collect::<Result<Vec<_>>>()?;
    let type_name = match field.metadata().get(metadata::TYPE) {
        Some(name) => stored_type_name(name),
        None => typed("std::pair", &items)?,
    };
    Ok(Box::new(Field::new("_0", type_name, Kind::Tuple(items))))
}

/// The type name of an optional. An optional of an untyped record has no type name: it is stored, and read by ROOT, as
/// an untyped collection of at most one item.
pub(super) fn optional_type_name(item: &Field) -> String {
    match item.type_name.as_str() {
        "" => String::new(),
        name => format!("std::optional<{name}>"),
    }
}

/// `base<T, …>`. All arguments must have type names.
fn typed(base: &str, arguments: &[Field]) -> Result<String> {
    let Some(untyped) = arguments.iter().find(|argument| argument.type_name.is_empty()) else {
        let names: Vec<_> = arguments.iter().map(|argument| argument.type_name.as_str()).collect();
        return Ok(format!("{base}<{}>", names.join(",")));
    };
    let what = match untyped.kind {
        Kind::Record(_) => "records",
        _ => "collections of records",
    };
    let instead = match base {
        "std::array" => "write lists of any length (Awkward: ak.from_regular)",
        "std::variant" => "write one field for each kind of value",
        _ => "write them as fields of their own, in records or in lists",
    };
    Err(Error::unsupported(format!(
        "{what} without a C++ class cannot be part of {base}<…>, since ROOT would not read the ntuple; {instead}, or \
         name the class in the metadata '{}' of their Arrow field",
        metadata::TYPE
    )))
}

fn derive_type_name(kind: &Kind) -> Result<String> {
    fn one(item: &Field) -> &[Field] {
        std::slice::from_ref(item)
    }
    Ok(match kind {
        Kind::Primitive(primitive) => primitive.type_name().to_owned(),
        Kind::String => "std::string".to_owned(),
        Kind::Streamer => return Err(Error::invalid_argument("a streamer field needs a class name")),
        Kind::Cardinality { wide } => format!("ROOT::RNTupleCardinality<std::uint{}_t>", if *wide { 64 } else { 32 }),
        Kind::Bitset { size } => format!("std::bitset<{size}>"),
        Kind::Array { size, item } => {
            typed("std::array", one(item))?;
            format!("std::array<{},{size}>", item.type_name)
        }
        Kind::Wrapper(item) => typed("std::atomic", one(item))?,
        // Untyped items make an untyped collection, which the format allows.
        Kind::Collection(item) if item.type_name.is_empty() => String::new(),
        Kind::Collection(item) => typed("std::vector", one(item))?,
        Kind::Map(pair) => typed("std::map", pair.children())?,
        Kind::Optional(item) => optional_type_name(item),
        Kind::Record(_) => String::new(),
        Kind::Tuple(fields) => typed("std::tuple", fields)?,
        Kind::Variant(fields) => typed("std::variant", fields)?,
    })
}
