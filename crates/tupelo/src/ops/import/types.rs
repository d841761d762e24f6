//! The types that fields of trees get in an ntuple: those that ROOT reads without a dictionary of anybody's classes.
//!
//! ROOT makes fields by the names of their types (`RFieldBase::Create`), so one unknown name makes the whole ntuple
//! unreadable. Names are made here from the structure of fields; the spelling of branches is used if both agree.

use tupelo_format::type_name::TypeName;

use crate::schema::{Field, Kind};

/// Sequences that ROOT has fields for, whatever their items are.
const SEQUENCES: [&str; 2] = ["std::vector", "ROOT::VecOps::RVec"];
/// Sets; ROOT reads those that it has a dictionary for …
const SETS: [&str; 4] = ["std::set", "std::unordered_set", "std::multiset", "std::unordered_multiset"];
/// … that is, those of these items (`core/clingutils`).
const SET_ITEMS: [&str; 5] = ["std::int32_t", "std::int64_t", "float", "double", "std::string"];
/// Keys and values of the maps that ROOT has dictionaries for, beside those of integers and of texts.
const MAP_KEYS: [&str; 3] = ["std::int64_t", "double", "std::string"];
const MAP_VALUES: [&str; 4] = ["std::int32_t", "std::int64_t", "float", "double"];

/// The field with a type that ROOT reads. Records have no names of classes, and what holds them has no name either. Sets
/// that ROOT has no dictionary for, and other containers, are vectors, maps vectors of pairs.
pub(super) fn readable(field: &Field) -> Field {
    let mut field = field.clone();
    field.id = None;
    field.type_alias.clear();
    for child in field.children_mut() {
        *child = readable(child);
    }
    let base = TypeName::parse(&field.type_name).map(|name| name.base.to_owned()).unwrap_or_default();
    let is_untyped = field.children().iter().any(|child| child.type_name.is_empty());
    let arguments: Vec<&str> = field.children().iter().map(|child| child.type_name.as_str()).collect();
    let arguments = arguments.join(",");
    let (kind, type_name) = match (field.kind, is_untyped) {
        (Kind::Record(members), _) | (Kind::Tuple(members), true) => (Kind::Record(members), String::new()),
        (Kind::Tuple(parts), false) => {
            let name = if parts.len() == 2 { "std::pair" } else { "std::tuple" };
            (Kind::Tuple(parts), format!("{name}<{arguments}>"))
        }
        (Kind::Map(pair), false) if has_dictionary(&base, &pair) => {
            let parts: Vec<&str> = pair.children().iter().map(|part| part.type_name.as_str()).collect();
            let name = format!("{base}<{}>", parts.join(","));
            (Kind::Map(pair), name)
        }
        (Kind::Map(mut pair), true) => {
            let members = pair.children_mut().iter_mut().zip(["key", "value"]);
            members.for_each(|(part, name)| name.clone_into(&mut part.name));
            (Kind::Collection(pair), String::new())
        }
        (Kind::Collection(item) | Kind::Array { item, .. }, true) => (Kind::Collection(item), String::new()),
        (Kind::Map(item) | Kind::Collection(item), false) => {
            let is_known = SEQUENCES.contains(&base.as_str())
                || SETS.contains(&base.as_str()) && SET_ITEMS.contains(&item.type_name.as_str());
            let base = if is_known { base.as_str() } else { SEQUENCES[0] };
            (Kind::Collection(item), format!("{base}<{arguments}>"))
        }
        (Kind::Array { size, item }, false) => (Kind::Array { size, item }, format!("std::array<{arguments},{size}>")),
        (kind, _) => (kind, field.type_name),
    };
    (field.kind, field.type_name) = (kind, type_name);
    if field.type_name.is_empty() {
        field.type_version = 0;
    }
    field
}

/// Whether ROOT has a dictionary for a map.
fn has_dictionary(base: &str, pair: &Field) -> bool {
    let [key, value] = pair.children() else { return false };
    match (base, key.type_name.as_str(), value.type_name.as_str()) {
        ("std::map" | "std::unordered_map", "std::int32_t", "std::int32_t") => true,
        ("std::map", "std::string", "std::string") => true,
        ("std::map" | "std::unordered_map", key, value) => MAP_KEYS.contains(&key) && MAP_VALUES.contains(&value),
        ("std::multimap" | "std::unordered_multimap", key, value) => {
            MAP_KEYS.contains(&key) && MAP_VALUES.contains(&value) && value != "float"
        }
        _ => false,
    }
}

/// The field with lists in place of fixed arrays of what is [readable] without a name only: ROOT has no such arrays.
pub(super) fn with_lists(field: &Field) -> Field {
    let mut field = field.clone();
    for child in field.children_mut() {
        *child = with_lists(child);
    }
    field.kind = match field.kind {
        Kind::Array { item, .. } if readable(&item).type_name.is_empty() => {
            field.type_name.clear();
            Kind::Collection(item)
        }
        kind => kind,
    };
    field
}

/// Whether ROOT can show the items of a list by a projected field.
pub(super) fn can_be_projected(item: &Field) -> bool {
    !matches!(item.kind, Kind::Array { .. } | Kind::Bitset { .. } | Kind::Variant(_))
        && item.children().iter().all(can_be_projected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Primitive;

    fn number(name: &str, type_name: &str) -> Field {
        Field::new(name, type_name, Kind::Primitive(Primitive::Int32))
    }

    fn list(type_name: &str, item: Field) -> Field {
        Field::new("x", type_name, Kind::Collection(Box::new(Field { name: "_0".into(), ..item })))
    }

    fn array(type_name: &str, item: Field) -> Field {
        Field::new("x", type_name, Kind::Array { size: 2, item: Box::new(Field { name: "_0".into(), ..item }) })
    }

    fn map(type_name: &str, key: Field, value: Field) -> Field {
        Field::new("x", type_name, Kind::Map(Box::new(Field::new("_0", "pair", Kind::Tuple(vec![key, value])))))
    }

    #[test]
    fn types_have_names_that_root_makes_fields_of() {
        let int = || number("_0", "std::int32_t");
        let text = || Field::new("_0", "std::string", Kind::String);
        let record = || Field::new("_0", "Point", Kind::Record(vec![number("x", "std::int32_t")]));
        for (field, expected) in [
            (list("list<std::int32_t>", int()), "std::vector<std::int32_t>"),
            (list("std::vector<Colour>", int()), "std::vector<std::int32_t>"),
            (list("std::vector<TString>", text()), "std::vector<std::string>"),
            (list("std::set<std::int32_t>", int()), "std::set<std::int32_t>"),
            (list("std::set<std::uint32_t>", number("_0", "std::uint32_t")), "std::vector<std::uint32_t>"),
            (list("std::vector<Point>", record()), ""),
            (list("", list("std::deque<TString>", text())), "std::vector<std::vector<std::string>>"),
            (array("std::array<Colour,2>", int()), "std::array<std::int32_t,2>"),
            (array("", list("", text())), "std::array<std::vector<std::string>,2>"),
            (array("std::array<Point,2>", record()), ""),
            (map("std::map<TString,std::int32_t>", text(), int()), "std::map<std::string,std::int32_t>"),
            (
                map("std::map<std::int32_t,std::string>", int(), text()),
                "std::vector<std::pair<std::int32_t,std::string>>",
            ),
            (map("std::map<std::int32_t,Point>", int(), record()), ""),
        ] {
            let found = readable(&field);
            assert_eq!(found.type_name, expected, "{}", field.type_name);
            assert!(!expected.is_empty() || matches!(found.kind, Kind::Collection(_)), "{}", field.type_name);
        }
        assert!(matches!(with_lists(&array("", record())).kind, Kind::Collection(_)));
        assert!(matches!(with_lists(&array("", int())).kind, Kind::Array { .. }));
        assert!(!can_be_projected(&array("", int())) && can_be_projected(&list("", int())));
    }
}
