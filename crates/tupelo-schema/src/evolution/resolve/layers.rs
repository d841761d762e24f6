//! Properties of fields for schema evolution: how their items lie in Arrow, whether they are base classes, how they are
//! called.

use tupelo_format::type_name::TypeName;

use crate::schema::{Field, Kind};
use crate::{Error, Result};

/// How the items of a field lie in Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemLayout {
    /// One for each value: the field is not a collection.
    One,
    /// Null if there is none.
    Nullable,
    /// A list of any length.
    List,
    /// A list of that length.
    Fixed(u64),
}

impl ItemLayout {
    pub(super) fn of(field: &Field) -> Self {
        match &field.kind {
            Kind::Optional(item) if item.takes_nulls() => Self::Nullable,
            Kind::Array { size, .. } => Self::Fixed(*size),
            _ => Self::List,
        }
    }
}

/// Checks that a field that is not on disk has a default value.
///
/// # Errors
/// Invalid argument for streamed classes, whose default bytes are unknown.
pub(super) fn check_default(field: &Field) -> Result<()> {
    if matches!(field.kind, Kind::Streamer) {
        let name = &field.type_name;
        return Err(Error::invalid_argument(format!(
            "it is not on disk, and the streamed class '{name}' has no default"
        )));
    }
    match &field.kind {
        Kind::Record(members) | Kind::Tuple(members) => members.iter().try_for_each(check_default),
        Kind::Array { item, .. } | Kind::Wrapper(item) => check_default(item),
        // A variant without anything on disk holds its first alternative, as in C++.
        Kind::Variant(alternatives) => alternatives.iter().take(1).try_for_each(check_default),
        _ => Ok(()),
    }
}

impl Field {
    /// Whether the field is `std::atomic`, which is a wrapper as enums are.
    pub(super) fn is_atomic(&self) -> bool {
        TypeName::parse(&self.type_name).is_some_and(|name| name.base == "std::atomic")
    }

    /// Whether the field has an index column for its items.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self.kind, Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_))
    }

    /// Whether the field is a base class of the record that it stands in.
    pub(super) fn is_base(&self) -> bool {
        self.name.strip_prefix(":_").is_some_and(|number| number.parse::<u32>().is_ok())
    }

    /// The base classes of a record.
    pub(super) fn bases(&self) -> impl Iterator<Item = &Field> {
        self.children().iter().filter(|member| member.is_base())
    }

    /// The same field around another item.
    pub(super) fn with_item(&self, item: Field) -> Self {
        let item = Box::new(item);
        let kind = match &self.kind {
            Kind::Array { size, .. } => Kind::Array { size: *size, item },
            Kind::Wrapper(_) => Kind::Wrapper(item),
            Kind::Map(_) if matches!(item.kind, Kind::Tuple(_)) => Kind::Map(item),
            Kind::Optional(_) => Kind::Optional(item),
            _ => Kind::Collection(item),
        };
        Self { kind, ..self.clone() }
    }

    /// The same record with other members.
    pub(super) fn with_members(&self, members: Vec<Field>) -> Self {
        let kind = match &self.kind {
            Kind::Tuple(all) if all.len() == members.len() => Kind::Tuple(members),
            _ => Kind::Record(members),
        };
        Self { kind, ..self.clone() }
    }

    /// This field's type over the columns of another field.
    pub(super) fn in_place_of(&self, disk: &Field) -> Self {
        Self { kind: self.kind.clone(), type_name: self.type_name.clone(), ..disk.clone() }
    }
}
