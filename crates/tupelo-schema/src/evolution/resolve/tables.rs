//! The tables: which numbers and which collections can be read as which others.

use tupelo_format::type_name::TypeName;

use crate::schema::{Field, Kind, Primitive};

/// Why something is allowed or not, in words.
pub(super) type Rule = &'static str;

/// Groups of similar numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Bool,
    /// `char` and integers.
    Integer,
    Byte,
    Real,
}

impl Group {
    fn of(primitive: Primitive) -> Self {
        match primitive {
            Primitive::Bool => Self::Bool,
            Primitive::Byte => Self::Byte,
            Primitive::Float | Primitive::Double => Self::Real,
            _ => Self::Integer,
        }
    }
}

/// The wanted type, the types it can be read from, and the rule. `RField.cxx` lists the same as deserialisation types.
const NUMBERS: &[(Group, &[Group], Rule)] = &[
    (Group::Bool, &[Group::Bool, Group::Integer], "booleans can only be read from integers"),
    (Group::Integer, &[Group::Bool, Group::Integer], "integers can only be read from integers and booleans"),
    (Group::Byte, &[Group::Byte], "std::byte can only be read from std::byte"),
    (Group::Real, &[Group::Real], "floating point can only be read from floating point"),
];

/// Whether numbers of one type can be read as those of another.
pub(super) fn numbers(from: Primitive, to: Primitive) -> Result<(), Rule> {
    let (from, to) = (Group::of(from), Group::of(to));
    match NUMBERS.iter().find(|(wanted, ..)| *wanted == to) {
        Some((_, from_groups, _)) if from_groups.contains(&from) => Ok(()),
        Some((.., rule)) => Err(rule),
        None => Err("no conversion exists"),
    }
}

/// Families of types with items, in the order of [`COLLECTIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `std::vector`, `ROOT::VecOps::RVec`, untyped collections.
    Sequence,
    /// Sets without duplicates.
    Set,
    /// Maps without duplicate keys.
    Map,
    /// Sets with duplicates.
    Multiset,
    /// Maps with duplicate keys.
    Multimap,
    /// Collection classes of users, structures of arrays.
    Other,
    /// `std::optional`, `std::unique_ptr`.
    Optional,
    /// `std::array`.
    Array,
}

impl Family {
    /// The family of a field; `None` if it has no items.
    pub(super) fn of(field: &Field) -> Option<Self> {
        let base = TypeName::parse(&field.type_name).map_or("", |name| name.base);
        match &field.kind {
            Kind::Optional(_) => Some(Self::Optional),
            Kind::Array { .. } => Some(Self::Array),
            Kind::Collection(_) | Kind::Map(_) => Some(match base {
                "" | "std::vector" | "ROOT::VecOps::RVec" | "ROOT::RVec" => Self::Sequence,
                "std::set" | "std::unordered_set" => Self::Set,
                "std::map" | "std::unordered_map" => Self::Map,
                "std::multiset" | "std::unordered_multiset" => Self::Multiset,
                "std::multimap" | "std::unordered_multimap" => Self::Multimap,
                _ => Self::Other,
            }),
            _ => None,
        }
    }
}

const COLLECTED: &[Family] =
    &[Family::Sequence, Family::Set, Family::Map, Family::Multiset, Family::Multimap, Family::Other, Family::Optional];
const ANY: &[Family] = &[
    Family::Sequence,
    Family::Set,
    Family::Map,
    Family::Multiset,
    Family::Multimap,
    Family::Other,
    Family::Optional,
    Family::Array,
];

/// The wanted type, the types it can be read from, and the rule. That the items of maps are pairs follows from the
/// items.
const COLLECTIONS: &[(Family, &[Family], Rule)] = &[
    (Family::Sequence, ANY, "a sequence can be read from any type with items"),
    (
        Family::Set,
        &[Family::Set, Family::Map],
        "a set can only be read from a set or map, not from a multiset or multimap",
    ),
    (Family::Map, &[Family::Map], "a map can only be read from a map, not from a multimap"),
    (Family::Multiset, COLLECTED, "a multiset can only be read from collections and optionals, not from fixed arrays"),
    (Family::Multimap, COLLECTED, "a multimap can only be read from collections and optionals, not from fixed arrays"),
    (Family::Other, COLLECTED, "a collection can only be read from collections and optionals, not from fixed arrays"),
];

/// Whether a collection of one family can be read as one of another.
pub(super) fn collections(from: Family, to: Family) -> Result<(), Rule> {
    match COLLECTIONS.iter().find(|(wanted, ..)| *wanted == to) {
        Some((_, families, _)) if families.contains(&from) => Ok(()),
        Some((.., rule)) => Err(rule),
        None => Err("no conversion exists"),
    }
}
