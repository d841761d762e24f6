//! The field tree of the user: the meaning of the fields of an ntuple, independent of the location of their bytes.
//! `tupelo::schema` describes it for users.

mod alike;
pub mod arrow;
mod auxiliary;
mod bases;
mod combine;
mod data_type;
mod dictionaries;
mod disk;
mod glob;
mod imported;
mod project;
mod select;
#[cfg(test)]
pub(crate) mod tests;
mod tighten;
mod tree;

pub use arrow::{metadata, standard_type_name};
pub use auxiliary::is_auxiliary;
pub use bases::{Layouts, in_bases, nested, with_types_of};
pub use combine::{Combination, CombinedSchema, Differing, FieldPolicy};
pub(crate) use data_type::inner_fields;
pub use data_type::{depth, with_data_type, with_inner_fields};
pub use dictionaries::{VECTORS, has_dictionary};
pub use glob::{Glob, escaped};
pub use select::Names;
pub use tighten::tighten;
use tupelo_format::descriptor::FieldId;
use tupelo_format::encoding::Encoding;

use crate::{Error, Result};

/// A fundamental C++ type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum Primitive {
    Bool,
    Char,
    Byte,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float,
    Double,
}

impl Primitive {
    const ALL: [Self; 13] = [
        Self::Bool,
        Self::Char,
        Self::Byte,
        Self::Int8,
        Self::UInt8,
        Self::Int16,
        Self::UInt16,
        Self::Int32,
        Self::UInt32,
        Self::Int64,
        Self::UInt64,
        Self::Float,
        Self::Double,
    ];
}

/// The kind of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// One fundamental value.
    Primitive(Primitive),
    /// `std::string`.
    String,
    /// The bytes that a ROOT streamer wrote.
    Streamer,
    /// The size of the collection from which the field is projected, in 32 or 64 bits.
    Cardinality {
        /// Whether the C++ type is 64 bits wide.
        wide: bool,
    },
    /// `std::bitset<N>`.
    Bitset {
        /// N.
        size: u64,
    },
    /// `std::array<T, N>` or `T[N]`.
    Array {
        /// N.
        size: u64,
        /// T.
        item: Box<Field>,
    },
    /// `std::atomic<T>` or an enum: its subfield by another name.
    Wrapper(Box<Field>),
    /// Any number of values: vectors, sets, collection proxies, untyped collections.
    Collection(Box<Field>),
    /// A collection of key–value pairs.
    Map(Box<Field>),
    /// At most one value: `std::optional`, `std::unique_ptr`. An optional of an untyped record has no type name and is
    /// read back as an untyped collection.
    Optional(Box<Field>),
    /// Named members; base classes are called `:_0`, `:_1`, ….
    Record(Vec<Field>),
    /// `std::pair` or `std::tuple`.
    Tuple(Vec<Field>),
    /// One of several alternatives, or none.
    Variant(Vec<Field>),
}

/// One field and everything below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name; items of collections are called `_0`.
    pub name: String,
    /// Normalised C++ type; empty for untyped records and collections.
    pub type_name: String,
    /// The type in its original spelling, if that differs.
    pub type_alias: String,
    /// Free text.
    pub description: String,
    /// Version of the C++ class.
    pub type_version: u32,
    /// ROOT's checksum of the C++ class.
    pub checksum: Option<u32>,
    /// Whether the collection is a structure of arrays in C++.
    pub soa: bool,
    /// Dotted path of the field from which this one is projected.
    pub projected_from: Option<String>,
    /// How the first column of the field itself is, or will be, stored; `None` leaves it to the defaults.
    pub encoding: Option<Encoding>,
    /// How the first column is stored in any of the clusters that it is read from.
    pub representations: Vec<Encoding>,
    /// The kind of the field.
    pub kind: Kind,
    /// See [`Field::is_hidden`].
    pub hidden: bool,
    /// The field's id in the file that it was read from.
    pub id: Option<FieldId>,
}

impl Field {
    /// A plain field with a name and a type.
    pub fn new(name: impl Into<String>, type_name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            type_name: type_name.into(),
            type_alias: String::new(),
            description: String::new(),
            type_version: 0,
            checksum: None,
            soa: false,
            projected_from: None,
            encoding: None,
            representations: Vec::new(),
            kind,
            hidden: false,
            id: None,
        }
    }

    /// Converts a projected field to a stored one. The size of a collection becomes a number.
    pub fn store(&mut self) {
        self.projected_from = None;
        if let Kind::Cardinality { wide } = self.kind {
            let (primitive, name) = match wide {
                true => (Primitive::UInt64, "std::uint64_t"),
                false => (Primitive::UInt32, "std::uint32_t"),
            };
            self.kind = Kind::Primitive(primitive);
            self.type_name = name.to_owned();
            self.encoding = None;
            self.representations.clear();
        }
        self.children_mut().iter_mut().for_each(Self::store);
    }

    /// The same field for entries that may lack it.
    pub fn optional(&self) -> Self {
        if matches!(self.kind, Kind::Optional(_) | Kind::Variant(_)) {
            return self.clone();
        }
        let item = Self { name: "_0".into(), description: String::new(), ..self.clone() };
        let type_name = arrow::optional_type_name(&item);
        let optional = Self::new(self.name.clone(), type_name, Kind::Optional(Box::new(item)));
        Self { description: self.description.clone(), ..optional }
    }

    /// Subfields in order.
    pub fn children(&self) -> &[Field] {
        match &self.kind {
            Kind::Primitive(_) | Kind::String | Kind::Streamer | Kind::Cardinality { .. } | Kind::Bitset { .. } => &[],
            Kind::Array { item, .. }
            | Kind::Wrapper(item)
            | Kind::Collection(item)
            | Kind::Map(item)
            | Kind::Optional(item) => std::slice::from_ref(item),
            Kind::Record(fields) | Kind::Tuple(fields) | Kind::Variant(fields) => fields,
        }
    }

    /// Subfields in order.
    pub fn children_mut(&mut self) -> &mut [Field] {
        match &mut self.kind {
            Kind::Primitive(_) | Kind::String | Kind::Streamer | Kind::Cardinality { .. } | Kind::Bitset { .. } => {
                &mut []
            }
            Kind::Array { item, .. }
            | Kind::Wrapper(item)
            | Kind::Collection(item)
            | Kind::Map(item)
            | Kind::Optional(item) => std::slice::from_mut(item),
            Kind::Record(fields) | Kind::Tuple(fields) | Kind::Variant(fields) => fields,
        }
    }

    /// The type name to show: `struct` or `collection` where the field is untyped.
    pub fn display_type(&self) -> &str {
        match (&self.kind, self.type_name.as_str(), self.type_alias.as_str()) {
            (_, _, alias) if !alias.is_empty() => alias,
            (Kind::Record(_), "", _) => "struct",
            (Kind::Collection(_) | Kind::Optional(_), "", _) => "collection",
            (_, name, _) => name,
        }
    }

    /// Whether a file stores values of it for each entry: not of a record without members or an array of no items.
    pub fn has_values(&self) -> bool {
        match &self.kind {
            Kind::Record(members) | Kind::Tuple(members) => members.iter().any(Self::has_values),
            Kind::Array { size, item } => *size > 0 && item.has_values(),
            Kind::Bitset { size } => *size > 0,
            Kind::Wrapper(item) => item.has_values(),
            _ => true,
        }
    }

    /// Whether subfields are addressed through this field without a name of their own in dotted paths.
    pub fn is_transparent(&self) -> bool {
        matches!(
            self.kind,
            Kind::Array { .. } | Kind::Wrapper(_) | Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_)
        )
    }

    /// Dotted paths of this field and its subfields, as by [`Schema::paths`].
    pub fn paths(&self) -> Vec<(String, &Self)> {
        let mut paths = Vec::new();
        walk(self, self.name.clone(), &mut paths);
        paths
    }

    /// Whether it is found by its name only, because other fields show all of its values: see [`Schema::listed`].
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Whether Arrow can mark a missing value of this field by a null: not where the value could be null itself.
    pub fn takes_nulls(&self) -> bool {
        match &self.kind {
            Kind::Optional(_) | Kind::Variant(_) => false,
            Kind::Wrapper(item) => item.takes_nulls(),
            _ => true,
        }
    }
}

impl TryFrom<&arrow_schema::Field> for Field {
    type Error = Error;

    /// The field for an Arrow field, as in [`Schema::from_arrow`].
    fn try_from(field: &arrow_schema::Field) -> Result<Self> {
        let mut schema = Schema::from_arrow(&arrow_schema::Schema::new(vec![field.clone()]))?;
        Ok(schema.fields.swap_remove(0))
    }
}

/// The top-level fields of an ntuple, or of what is selected from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    /// In order.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Dotted paths of all fields with their fields, parents first. The items of collections, arrays, optionals and
    /// wrappers have no path of their own: `jets.pt` is the `pt` of the items of `jets`.
    pub fn paths(&self) -> Vec<(String, &Field)> {
        self.fields.iter().flat_map(Field::paths).collect()
    }
}

fn walk<'a>(field: &'a Field, path: String, paths: &mut Vec<(String, &'a Field)>) {
    let mut inner = field;
    while inner.is_transparent() {
        let [item] = inner.children() else { break };
        inner = item;
    }
    paths.push((path.clone(), field));
    if matches!(inner.kind, Kind::Variant(_)) {
        // A variant needs all its alternatives.
        return;
    }
    for child in inner.children() {
        walk(child, format!("{path}.{}", child.name), paths);
    }
}
