//! The types that fields of trees get in an ntuple.
//!
//! Classes keep their names if ROOT with their dictionaries reads what is stored. Without dictionaries, ROOT 6.40 reads such
//! ntuples by `RDataFrame` and by views, as it reads those of ATLAS, but ends where it makes a model of all fields by the
//! names of their types (`RFieldBase::Create`). Without class names it does so too. All other names are made here from the
//! structure of fields; the spelling of branches is used if both agree.

use std::collections::BTreeMap;
use std::slice;

use tupelo_format::object::Type;
use tupelo_format::type_name::{TypeName, without_arguments};
use tupelo_schema::schema::{Field, Kind, VECTORS, has_dictionary};
use tupelo_ttree::write::ROOT_OBJECT;

use super::classes::ClassNames;

/// The field with a type that ROOT reads. Other records than those of `names` have no names of classes, and what holds them
/// has no name either. Sets that ROOT has no dictionary for, and other containers, are vectors, maps vectors of pairs.
pub(super) fn readable(field: &Field, names: &ClassNames) -> Field {
    let mut field = field.clone();
    field.id = None;
    field.type_alias.clear();
    if let Kind::Record(parts) = &mut field.kind
        && field.type_name.starts_with("std::pair<")
        && parts.len() == 2
    {
        // A described class, as any other.
        parts.iter_mut().zip(["_0", "_1"]).for_each(|(part, name)| name.clone_into(&mut part.name));
        field.kind = Kind::Tuple(std::mem::take(parts));
    }
    let before = field.children().to_vec();
    for child in field.children_mut() {
        *child = readable(child, names);
    }
    let base = TypeName::parse(&field.type_name).map(|name| name.base.to_owned()).unwrap_or_default();
    let is_untyped = field.children().iter().any(|child| child.type_name.is_empty());
    // ROOT ends with a crash for a pair of a class that it does not know.
    let is_unknown_pair = field.children().iter().any(has_class);
    let arguments: Vec<&str> = field.children().iter().map(|child| child.type_name.as_str()).collect();
    let arguments = arguments.join(",");
    let (kind, type_name) = match (field.kind, is_untyped) {
        (Kind::Record(members), _) => match names.members(&field.type_name, &before, &members) {
            Some(members) => (Kind::Record(members), field.type_name),
            None => (Kind::Record(members), String::new()),
        },
        (Kind::Tuple(members), true) => (Kind::Record(members), String::new()),
        (Kind::Tuple(members), false) if is_unknown_pair => (Kind::Record(members), String::new()),
        (Kind::Tuple(parts), false) => {
            let name = if parts.len() == 2 { "std::pair" } else { "std::tuple" };
            (Kind::Tuple(parts), format!("{name}<{arguments}>"))
        }
        (Kind::Map(pair), false) if has_dictionary(&base, pair.children()) => {
            let parts: Vec<&str> = pair.children().iter().map(|part| part.type_name.as_str()).collect();
            let name = format!("{base}<{}>", parts.join(","));
            (Kind::Map(pair), name)
        }
        (Kind::Map(mut pair), true) => {
            let members = pair.children_mut().iter_mut().zip(["key", "value"]);
            members.for_each(|(part, name)| name.clone_into(&mut part.name));
            (Kind::Collection(pair), String::new())
        }
        (Kind::Collection(item), false) if names.is_container(&field.type_name) => {
            (Kind::Collection(item), field.type_name)
        }
        (Kind::Collection(item) | Kind::Array { item, .. }, true) => (Kind::Collection(item), String::new()),
        (Kind::Map(item) | Kind::Collection(item), false) => {
            let is_known = VECTORS.contains(&base.as_str()) || has_dictionary(&base, slice::from_ref(&item));
            let base = if is_known { base.as_str() } else { VECTORS[0] };
            (Kind::Collection(item), format!("{base}<{arguments}>"))
        }
        (Kind::Array { size, item }, false) => (Kind::Array { size, item }, format!("std::array<{arguments},{size}>")),
        (kind, _) => (kind, field.type_name),
    };
    (field.kind, field.type_name) = (kind, type_name);
    (field.type_version, field.checksum) = (0, None);
    let may_be_class = matches!(field.kind, Kind::Record(_) | Kind::Collection(_));
    if may_be_class && matches!(Type::parse(&field.type_name), Ok(Type::Class(_))) {
        names.identify(&mut field);
    }
    field
}

/// Whether values contain objects of a class.
fn has_class(field: &Field) -> bool {
    matches!(field.kind, Kind::Record(_)) || field.children().iter().any(has_class)
}

/// Adds the types of classes and containers that are others in the ntuple.
pub(super) fn add_renamed(before: &Field, after: &Field, renamed: &mut BTreeMap<String, String>) {
    // The members of a class that keeps its name have the same types, but are in its bases.
    if matches!(before.kind, Kind::Record(_)) && !after.type_name.is_empty() {
        return;
    }
    let is_class = match before.kind {
        Kind::Record(_) => before.type_name != ROOT_OBJECT,
        Kind::Collection(_) | Kind::Map(_) => {
            let template = |field: &Field| without_arguments(&field.type_name).replace("std::", "");
            !after.type_name.is_empty() && template(before) != template(after)
        }
        _ => false,
    };
    if is_class && !before.type_name.is_empty() {
        renamed.insert(before.type_name.clone(), after.type_name.clone());
    }
    before.children().iter().zip(after.children()).for_each(|(before, after)| add_renamed(before, after, renamed));
}

/// The field with lists in place of fixed arrays of what is [readable] without a name only: ROOT has no such arrays.
pub(in super::super) fn with_lists(field: &Field, names: &ClassNames) -> Field {
    let mut field = field.clone();
    for child in field.children_mut() {
        *child = with_lists(child, names);
    }
    field.kind = match field.kind {
        Kind::Array { item, .. } if readable(&item, names).type_name.is_empty() => {
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
    use tupelo_schema::schema::Primitive;

    use super::*;

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

    /// Regression: members were compared by their position with those of a class that has bases.
    #[test]
    fn members_in_bases_are_not_renamed() {
        let record = |name: &str, type_name: &str, members| Field::new(name, type_name, Kind::Record(members));
        let words = || Field { name: "words".into(), ..list("std::deque<TString>", number("_0", "std::int32_t")) };
        let [a, b] = ["a", "b"].map(|name| number(name, "std::int32_t"));
        let flat = record("x", "Jet", vec![a.clone(), b.clone(), words()]);
        let in_base = record("x", "Jet", vec![record(":_0", "Base", vec![a.clone(), b.clone()]), words()]);
        let without_name = record("x", "", vec![a, b, readable(&words(), &ClassNames::default())]);
        for (after, expected) in [(in_base, vec![]), (without_name, vec!["Jet", "std::deque<TString>"])] {
            let mut renamed = BTreeMap::new();
            add_renamed(&flat, &after, &mut renamed);
            assert_eq!(renamed.into_keys().collect::<Vec<_>>(), expected);
        }
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
            let found = readable(&field, &ClassNames::default());
            assert_eq!(found.type_name, expected, "{}", field.type_name);
            assert!(!expected.is_empty() || matches!(found.kind, Kind::Collection(_)), "{}", field.type_name);
        }
        assert!(matches!(with_lists(&array("", record()), &ClassNames::default()).kind, Kind::Collection(_)));
        assert!(matches!(with_lists(&array("", int()), &ClassNames::default()).kind, Kind::Array { .. }));
        assert!(!can_be_projected(&array("", int())) && can_be_projected(&list("", int())));
    }
}
