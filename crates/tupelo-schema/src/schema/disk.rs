//! From the file's field and column records to the field tree.

use tupelo_format::descriptor::{Descriptor, Field as DiskField, FieldId};
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::role;
use tupelo_format::type_name::{TypeName, fundamental};

use super::{Field, Kind, Primitive, Schema};
use crate::{Error, Result};

impl Schema {
    /// The field tree of everything that can be read.
    ///
    /// # Errors
    /// Corrupt if a field's columns do not fit its role and type.
    pub fn from_descriptor(descriptor: &Descriptor) -> Result<Self> {
        let fields = descriptor.top_level().iter().map(|&id| field(descriptor, id)).collect::<Result<_>>()?;
        let mut schema = Self { fields };
        schema.hide_imported();
        Ok(schema)
    }
}

fn field(descriptor: &Descriptor, id: FieldId) -> Result<Field> {
    let disk = descriptor.field(id)?;
    let columns = Columns::of(descriptor, disk).map_err(|e| e.within(format!("field '{}'", descriptor.path(id))))?;
    let children = disk.children.iter().map(|&child| field(descriptor, child)).collect::<Result<Vec<_>>>()?;
    let kind = kind(disk, &columns, children)
        .and_then(|kind| columns.fit_range(kind))
        .map_err(|e| e.within(format!("field '{}'", descriptor.path(id))))?;
    let record = &disk.record;
    Ok(Field {
        name: record.name.clone(),
        type_name: record.type_name.clone(),
        type_alias: record.type_alias.clone(),
        description: record.description.clone(),
        type_version: record.type_version,
        checksum: record.checksum,
        soa: record.soa,
        projected_from: record.source.map(|source| descriptor.path(FieldId::from(source))),
        encoding: columns.widest(),
        representations: columns.first(),
        kind,
        hidden: false,
        id: Some(id),
    })
}

/// The column types of every representation of a field.
struct Columns {
    representations: Vec<Vec<Encoding>>,
}

impl Columns {
    fn of(descriptor: &Descriptor, field: &DiskField) -> Result<Self> {
        let encoding = |&id| {
            let column = descriptor.column(id)?;
            column.encoding.ok_or_else(|| Error::unsupported(format!("column {id} has an unknown type")))
        };
        let representations = field
            .representations
            .iter()
            .map(|columns| columns.iter().map(encoding).collect())
            .collect::<Result<_>>()?;
        Ok(Self { representations })
    }

    /// Whether every representation consists of columns that satisfy the tests, in order.
    fn are(&self, tests: &[fn(ColumnType) -> bool]) -> bool {
        !self.representations.is_empty()
            && self.representations.iter().all(|columns| {
                columns.len() == tests.len() && columns.iter().zip(tests).all(|(c, test)| test(c.column_type()))
            })
    }

    fn is_empty(&self) -> bool {
        self.representations.is_empty()
    }

    /// The first column of each representation.
    fn first(&self) -> Vec<Encoding> {
        self.representations.iter().filter_map(|columns| columns.first().copied()).collect()
    }

    /// The first column of the most precise representation.
    fn widest(&self) -> Option<Encoding> {
        let first = self.representations.iter().filter_map(|columns| columns.first());
        // `max_by_key` takes the last of equals; the first representation is the writer's favourite.
        first.rev().max_by_key(|encoding| encoding.bits()).copied()
    }

    /// Single precision must be able to hold every quantised value.
    fn fit_range(&self, kind: Kind) -> Result<Kind> {
        let mut ranges = self.representations.iter().flatten().filter_map(Encoding::range);
        match ranges.find(|&(min, max)| !(min as f32).is_finite() || !(max as f32).is_finite()) {
            Some((min, max)) if kind == Kind::Primitive(Primitive::Float) => {
                Err(Error::corrupt(format!("a float cannot hold the value range [{min:e}, {max:e}]")))
            }
            _ => Ok(kind),
        }
    }

    fn describe(&self) -> String {
        let names =
            |columns: &Vec<Encoding>| columns.iter().map(|c| c.column_type().name()).collect::<Vec<_>>().join("+");
        match self.representations.as_slice() {
            [] => "no columns".to_owned(),
            representations => representations.iter().map(names).collect::<Vec<_>>().join(" or "),
        }
    }
}

fn kind(disk: &DiskField, columns: &Columns, children: Vec<Field>) -> Result<Kind> {
    let record = &disk.record;
    let count = children.len();
    let misfit = || {
        Error::corrupt(format!(
            "a field of role {:#04x} and type '{}' cannot have {} and {count} subfields",
            record.role,
            record.type_name.escape_debug(),
            columns.describe()
        ))
    };
    // Names in files are standard ones: a template `optional` outside `std` is a class of somebody else.
    let base = TypeName::parse(&record.type_name).map_or("", |name| name.base);
    let only = |children: Vec<Field>| match <[Field; 1]>::try_from(children) {
        Ok([child]) => Ok(Box::new(child)),
        Err(_) => Err(misfit()),
    };
    match record.role {
        role::PLAIN if count == 1 && columns.is_empty() => {
            let item = only(children)?;
            Ok(match record.array_size {
                Some(size) => Kind::Array { size: fixed_size(size)?, item },
                None => Kind::Wrapper(item),
            })
        }
        role::PLAIN if count == 0 => match record.array_size {
            Some(size) if columns.are(&[|c| c == ColumnType::Bit]) => Ok(Kind::Bitset { size: fixed_size(size)? }),
            Some(_) => Err(misfit()),
            None => leaf(&record.type_name, columns).ok_or_else(misfit),
        },
        role::COLLECTION if columns.are(&[ColumnType::is_index]) => {
            let item = only(children)?;
            Ok(match base {
                "std::optional" | "std::unique_ptr" => Kind::Optional(item),
                "std::map" | "std::unordered_map" | "std::multimap" | "std::unordered_multimap" if matches!(&item.kind, Kind::Tuple(pair) if pair.len() == 2) => {
                    Kind::Map(item)
                }
                _ => Kind::Collection(item),
            })
        }
        role::RECORD if columns.is_empty() => Ok(match base {
            "std::pair" | "std::tuple" => Kind::Tuple(children),
            _ => Kind::Record(children),
        }),
        role::VARIANT if columns.are(&[|c| c == ColumnType::Switch]) && count > 0 => Ok(Kind::Variant(children)),
        role::STREAMER if columns.are(&[ColumnType::is_index, |c| c == ColumnType::Byte]) => Ok(Kind::Streamer),
        _ => Err(misfit()),
    }
}

/// Refused here, before values are decoded, because Arrow's fixed-size lists cannot hold more.
fn fixed_size(items: u64) -> Result<u64> {
    match i32::try_from(items) {
        Ok(_) => Ok(items),
        Err(_) => Err(Error::limit(format!("fixed array of {items} items exceeds the limit of {}", i32::MAX))),
    }
}

fn leaf(type_name: &str, columns: &Columns) -> Option<Kind> {
    if columns.are(&[ColumnType::is_index, |c| c == ColumnType::Char]) {
        return Some(Kind::String);
    }
    if columns.are(&[ColumnType::is_index]) {
        let name = TypeName::parse(type_name)?;
        let wide = match (name.base, name.arguments.as_slice()) {
            ("ROOT::RNTupleCardinality", [size]) => fundamental(size)? == "std::uint64_t",
            _ => return None,
        };
        return Some(Kind::Cardinality { wide });
    }
    let natural = columns.widest().and_then(|encoding| natural(encoding.column_type()))?;
    // An unknown leaf type has the type of its column.
    let primitive = fundamental(type_name).and_then(Primitive::from_name).unwrap_or(natural);
    let fits = columns
        .representations
        .iter()
        .all(|columns| matches!(columns.as_slice(), [column] if primitive.can_be_stored_as(column.column_type())));
    fits.then_some(Kind::Primitive(primitive))
}

fn natural(column: ColumnType) -> Option<Primitive> {
    Some(match column.unsplit() {
        ColumnType::Bit => Primitive::Bool,
        ColumnType::Byte => Primitive::Byte,
        ColumnType::Char => Primitive::Char,
        ColumnType::Int8 => Primitive::Int8,
        ColumnType::UInt8 => Primitive::UInt8,
        ColumnType::Int16 => Primitive::Int16,
        ColumnType::UInt16 => Primitive::UInt16,
        ColumnType::Int32 => Primitive::Int32,
        ColumnType::UInt32 => Primitive::UInt32,
        ColumnType::Int64 => Primitive::Int64,
        ColumnType::UInt64 => Primitive::UInt64,
        ColumnType::Real64 => Primitive::Double,
        column if column.is_real() => Primitive::Float,
        _ => return None,
    })
}

impl Primitive {
    /// The primitive of a standard type name (see [`fundamental`]).
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|primitive| primitive.type_name() == name)
    }

    /// The column type without split encoding that holds the type exactly.
    pub(crate) fn column_type(self) -> ColumnType {
        match self {
            Self::Bool => ColumnType::Bit,
            Self::Char => ColumnType::Char,
            Self::Byte => ColumnType::Byte,
            Self::Int8 => ColumnType::Int8,
            Self::UInt8 => ColumnType::UInt8,
            Self::Int16 => ColumnType::Int16,
            Self::UInt16 => ColumnType::UInt16,
            Self::Int32 => ColumnType::Int32,
            Self::UInt32 => ColumnType::UInt32,
            Self::Int64 => ColumnType::Int64,
            Self::UInt64 => ColumnType::UInt64,
            Self::Float => ColumnType::Real32,
            Self::Double => ColumnType::Real64,
        }
    }

    /// Format specification, "Fundamental Types": the combinations marked W.
    pub fn can_be_stored_as(self, column: ColumnType) -> bool {
        let exact = self.column_type();
        column.unsplit() == exact
            || match self {
                Self::Float => column.is_real() && column.unsplit() != ColumnType::Real64,
                Self::Double => column.is_real(),
                _ => false,
            }
    }
}
