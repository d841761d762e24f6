//! Projected fields: other names and shapes for values that are stored once (format specification, "Projected fields";
//! what may be the source of what is in its "Field Description").

use tupelo_format::type_name::{TypeName, fundamental, normalised, template};

use super::{Field, Kind, Schema};
use crate::{Error, Result};

const CARDINALITY: &str = "ROOT::RNTupleCardinality";
/// Collections of one template argument, and whether they hold at most one value.
const COLLECTIONS: [(&str, bool); 8] = [
    ("std::vector", false),
    ("ROOT::VecOps::RVec", false),
    ("std::set", false),
    ("std::unordered_set", false),
    ("std::multiset", false),
    ("std::unordered_multiset", false),
    ("std::optional", true),
    ("std::unique_ptr", true),
];
const MAPS: [&str; 4] = ["std::map", "std::unordered_map", "std::multimap", "std::unordered_multimap"];

impl Schema {
    /// The schema with another projected field at the end; see [`Schema::projection`].
    ///
    /// # Errors
    /// As there.
    pub fn with_projection(mut self, name: &str, source: &str, type_name: Option<&str>) -> Result<Self> {
        let field = self.projection(name, source, type_name)?;
        self.fields.push(field);
        Ok(self)
    }

    /// A top-level field `name` that shows the values of the field of the dotted path `source`, without storing them
    /// again; nothing is written to it. Projecting a field inside collections gives a collection: `jets.pt` as `jet_pt`
    /// is a `std::vector<float>`.
    ///
    /// `type_name` is the C++ type of the whole new field, where it is not the type of the source (with a `std::vector`
    /// for every collection above it): another kind of collection, such as `ROOT::VecOps::RVec<float>` or
    /// `std::set<float>`; another class for a record; or `ROOT::RNTupleCardinality<std::uint32_t>` (or `uint64_t`) for
    /// the sizes of a collection, which stay inside of the collections above.
    ///
    /// # Errors
    /// Not found, with near names; invalid argument for a name that exists, and for what the format forbids: variants
    /// and fixed arrays in the source or above it, another type where there is none of the same role (numbers, strings
    /// and streamer fields keep theirs), and a source that is projected itself.
    pub fn projection(&self, name: &str, source: &str, type_name: Option<&str>) -> Result<Field> {
        let project = || {
            if self.fields.iter().any(|field| field.name == name) {
                return Err(Error::invalid_argument(format!("field '{name}' already exists")));
            }
            let source = self.source(source)?;
            let mut field = source.project(type_name)?;
            name.clone_into(&mut field.name);
            Ok(field)
        };
        project().map_err(|e| e.within(format!("projected field '{name}'")))
    }

    fn source(&self, path: &str) -> Result<Source<'_>> {
        let no_such = || Error::no_such("field", path, self.paths().iter().map(|(path, _)| path.as_str()));
        let mut source = Source { above: Vec::new(), field: None, path: String::new() };
        let mut fields = self.fields.as_slice();
        for name in path.split('.') {
            if source.field.is_some() {
                fields = source.descend()?;
            }
            let field = fields.iter().find(|field| field.name == name).ok_or_else(no_such)?;
            if let Some(origin) = &field.projected_from {
                return Err(Error::invalid_argument(format!(
                    "'{path}' is itself projected; project from '{}' instead",
                    origin.replace("._0", "")
                )));
            }
            source.step(field);
        }
        Ok(source)
    }
}

/// The field to project, and the path to it.
struct Source<'a> {
    /// The collections on the way, each with its path on disk.
    above: Vec<(&'a Field, String)>,
    field: Option<&'a Field>,
    /// Path on disk, on which items of collections are called `_0`.
    path: String,
}

impl<'a> Source<'a> {
    fn step(&mut self, field: &'a Field) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(&field.name);
        self.field = Some(field);
    }

    /// Descends through collections to a field with members, and returns these.
    fn descend(&mut self) -> Result<&'a [Field]> {
        while let Some(field) = self.field.filter(|field| field.is_transparent()) {
            match &field.kind {
                Kind::Array { .. } => return Err(forbidden(&self.path, field, "out of fixed arrays")),
                Kind::Wrapper(_) => {}
                _ => self.above.push((field, self.path.clone())),
            }
            let Some(item) = field.children().first() else { break };
            self.step(item);
        }
        match self.field {
            Some(field) if matches!(field.kind, Kind::Variant(_)) => {
                Err(forbidden(&self.path, field, "out of variants"))
            }
            field => Ok(field.map_or(&[], Field::children)),
        }
    }

    fn project(&self, type_name: Option<&str>) -> Result<Field> {
        let Some(field) = self.field else { return Err(Error::invalid_argument("nothing to project from")) };
        let below = |wanted: Option<&str>| match wanted.map(cardinality).transpose()?.flatten() {
            Some(wide) => sizes(field, &self.path, wide),
            None => same(field, &self.path, wanted),
        };
        // The sizes of a collection are not the type of what is around them.
        let bare = type_name.map(cardinality).transpose()?.flatten().and(type_name);
        let whole = if bare.is_some() { None } else { type_name };
        wrapped(&self.above, whole, &|wanted| below(wanted.or(bare)))
    }
}

/// A field inside collections, with such collections around it.
fn wrapped(
    above: &[(&Field, String)],
    wanted: Option<&str>,
    inner: &dyn Fn(Option<&str>) -> Result<Field>,
) -> Result<Field> {
    let Some(((layer, path), rest)) = above.split_first() else { return inner(wanted) };
    let item = |wanted: Option<&str>| wrapped(rest, wanted, inner).map(|item| Field { name: "_0".to_owned(), ..item });
    if let Some(text) = wanted {
        return collection(layer, path, text, item);
    }
    let item = item(None)?;
    let is_optional = matches!(layer.kind, Kind::Optional(_));
    let name = match (item.type_name.as_str(), is_optional) {
        ("", false) => String::new(),
        ("", true) => {
            return Err(Error::invalid_argument(format!(
                "'{path}' is an optional of records without a C++ type, which is not supported; name the type"
            )));
        }
        (item, false) => format!("std::vector<{item}>"),
        (item, true) => format!("std::optional<{item}>"),
    };
    let kind = if is_optional { Kind::Optional } else { Kind::Collection };
    Ok(projected(name, kind(Box::new(item)), path))
}

/// The same values under another name, or of another C++ type of the same structure.
fn same(field: &Field, path: &str, wanted: Option<&str>) -> Result<Field> {
    let child = |child: &Field, wanted: Option<&str>| {
        let same = same(child, &format!("{path}.{}", child.name), wanted)?;
        Ok(Field { name: child.name.clone(), ..same })
    };
    let is_same = |text: &str| {
        normalised(text) == normalised(&field.type_name)
            || !field.type_alias.is_empty() && text.trim() == field.type_alias
    };
    let wanted = wanted.filter(|text| !is_same(text));
    let kind = match &field.kind {
        Kind::Variant(_) => return Err(forbidden(path, field, "from variants")),
        Kind::Array { .. } | Kind::Bitset { .. } => return Err(forbidden(path, field, "from fixed arrays")),
        Kind::Collection(item) | Kind::Map(item) | Kind::Optional(item) => {
            if let Some(text) = wanted {
                return collection(field, path, text, |wanted| child(item, wanted));
            }
            let item = Box::new(child(item, None)?);
            match &field.kind {
                Kind::Map(_) => Kind::Map(item),
                Kind::Optional(_) => Kind::Optional(item),
                _ => Kind::Collection(item),
            }
        }
        Kind::Record(members) | Kind::Tuple(members) => {
            let is_tuple = matches!(field.kind, Kind::Tuple(_));
            let parsed = wanted.map(parse).transpose()?;
            let base = parsed.as_ref().map(|name| standard_base(name.base));
            let arguments = parsed.iter().flat_map(|name| &name.arguments).map(|text| Some(*text));
            let becomes_tuple = base.map_or(is_tuple, |base| matches!(base, "std::pair" | "std::tuple"));
            if becomes_tuple != is_tuple || is_tuple && wanted.is_some() && arguments.clone().count() != members.len() {
                return Err(unlike(path, field, wanted.unwrap_or_default()));
            }
            let wanted_members = arguments.filter(|_| is_tuple).chain(std::iter::repeat(None));
            let members = members.iter().zip(wanted_members).map(|(member, wanted)| child(member, wanted));
            let members = members.collect::<Result<Vec<_>>>()?;
            match (base, is_tuple) {
                (Some(base), true) => {
                    let names: Vec<_> = members.iter().map(|member| member.type_name.as_str()).collect();
                    return Ok(projected(format!("{base}<{}>", names.join(",")), Kind::Tuple(members), path));
                }
                (Some(_), false) => {
                    let name = normalised(wanted.unwrap_or_default());
                    return Ok(projected(name, Kind::Record(members), path));
                }
                (None, true) => Kind::Tuple(members),
                (None, false) => Kind::Record(members),
            }
        }
        plain => match (wanted, plain) {
            (Some(text), _) => {
                return Err(Error::invalid_argument(format!(
                    "'{path}' is a {} and cannot be shown as {text}: its values would have to be stored again",
                    field.display_type()
                )));
            }
            (None, Kind::Wrapper(item)) => Kind::Wrapper(Box::new(child(item, None)?)),
            (None, plain) => plain.clone(),
        },
    };
    Ok(Field { projected_from: Some(path.to_owned()), encoding: None, kind, id: None, ..field.clone() })
}

/// A collection as one of another type; `item` converts its items to the type that the new collection needs.
fn collection(
    field: &Field,
    path: &str,
    text: &str,
    item: impl FnOnce(Option<&str>) -> Result<Field>,
) -> Result<Field> {
    let name = parse(text)?;
    let base = standard_base(name.base);
    let at_most_one = COLLECTIONS.iter().find(|(known, _)| *known == base).map(|(_, at_most_one)| *at_most_one);
    let is_map = MAPS.contains(&base);
    match (at_most_one, is_map, name.arguments.as_slice()) {
        (Some(true), ..) if !matches!(field.kind, Kind::Optional(_)) => Err(unlike(path, field, text)),
        (Some(at_most_one), _, [argument]) => {
            let item = Box::new(item(Some(argument))?);
            let name = format!("{base}<{}>", item.type_name);
            Ok(projected(name, if at_most_one { Kind::Optional(item) } else { Kind::Collection(item) }, path))
        }
        (_, true, [key, value]) => {
            let pair = item(Some(&format!("std::pair<{key},{value}>")))?;
            let arguments = pair.type_name.trim_start_matches("std::pair");
            Ok(projected(format!("{base}{arguments}"), Kind::Map(Box::new(pair)), path))
        }
        // A class that is a collection by its proxy has the items that there are.
        (None, false, _) if fundamental(text).is_none() && !is_other_shape(base) => {
            Ok(projected(normalised(text), Kind::Collection(Box::new(item(None)?)), path))
        }
        _ => Err(unlike(path, field, text)),
    }
}

/// The sizes of a collection.
fn sizes(field: &Field, path: &str, wide: bool) -> Result<Field> {
    match field.kind {
        Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_) => {
            let name = format!("{CARDINALITY}<std::uint{}_t>", if wide { 64 } else { 32 });
            Ok(projected(name, Kind::Cardinality { wide }, path))
        }
        _ => Err(Error::invalid_argument(format!(
            "'{path}' is a {} without a number of items; a cardinality needs a collection",
            field.display_type()
        ))),
    }
}

/// Whether a type is a cardinality, and whether of 64 bits.
fn cardinality(text: &str) -> Result<Option<bool>> {
    let Some(name) = TypeName::parse(text).filter(|name| standard_base(name.base) == CARDINALITY) else {
        return Ok(None);
    };
    match name.arguments.as_slice() {
        [size] if fundamental(size) == Some("std::uint32_t") => Ok(Some(false)),
        [size] if fundamental(size) == Some("std::uint64_t") => Ok(Some(true)),
        _ => Err(Error::invalid_argument(format!("'{text}': sizes must be std::uint32_t or std::uint64_t"))),
    }
}

fn projected(type_name: String, kind: Kind, path: &str) -> Field {
    Field { projected_from: Some(path.to_owned()), ..Field::new("_0", type_name, kind) }
}

fn parse(text: &str) -> Result<TypeName<'_>> {
    let name = TypeName::parse(text).filter(|name| !name.base.is_empty());
    name.ok_or_else(|| Error::invalid_argument(format!("'{text}' is not a C++ type name")))
}

/// The name of a template as the format spells it.
fn standard_base(base: &str) -> &str {
    template(base).unwrap_or(base)
}

/// Whether a template is not a collection.
fn is_other_shape(base: &str) -> bool {
    matches!(
        base,
        "std::pair" | "std::tuple" | "std::variant" | "std::array" | "std::bitset" | "std::atomic" | CARDINALITY
    ) || MAPS.contains(&base)
}

#[cold]
fn forbidden(path: &str, field: &Field, what: &str) -> Error {
    let shown = field.display_type();
    Error::invalid_argument(format!("'{path}' is a {shown}; fields cannot be projected {what}"))
}

#[cold]
fn unlike(path: &str, field: &Field, text: &str) -> Error {
    Error::invalid_argument(format!(
        "'{path}' is a {} and cannot be shown as {text}, which differs in structure",
        field.display_type()
    ))
}

impl Schema {
    /// Lists that are projected from a collection, each with the projected field that has its size: names of both.
    pub fn projected_counters(&self) -> Vec<(String, String)> {
        let counts = |field: &&Field| field.projected_from.is_some() && matches!(field.kind, Kind::Cardinality { .. });
        let counters: Vec<&Field> = self.fields.iter().filter(counts).collect();
        let counter = |list: &Field| {
            let source = list.projected_from.as_deref().filter(|_| matches!(list.kind, Kind::Collection(_)))?;
            let counts = |counter: &&&Field| {
                let rest = counter.projected_from.as_deref().and_then(|collection| source.strip_prefix(collection));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            counters.iter().find(counts).map(|counter| (list.name.clone(), counter.name.clone()))
        };
        self.fields.iter().filter_map(counter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Primitive;

    fn float(name: &str) -> Field {
        Field::new(name, "float", Kind::Primitive(Primitive::Float))
    }

    fn list(name: &str, type_name: &str, item: Field) -> Field {
        Field::new(name, type_name, Kind::Collection(Box::new(item)))
    }

    /// jets: {pt: float, hits: vector<{x: float}>, pos: array<float,3>}, a: float, v: variant<float>, m: map, o: optional.
    fn schema() -> Schema {
        let hits = list("hits", "", Field::new("_0", "", Kind::Record(vec![float("x")])));
        let pos = Field::new("pos", "std::array<float,3>", Kind::Array { size: 3, item: Box::new(float("_0")) });
        let jet = Field::new("_0", "", Kind::Record(vec![float("pt"), hits, pos]));
        let pair = Field::new("_0", "std::pair<float,float>", Kind::Tuple(vec![float("_0"), float("_1")]));
        let points = Field::new("_0", "Point", Kind::Record(vec![float("x")]));
        Schema {
            fields: vec![
                list("jets", "", jet),
                float("a"),
                Field::new("v", "std::variant<float>", Kind::Variant(vec![float("_0")])),
                Field::new("m", "std::map<float,float>", Kind::Map(Box::new(pair))),
                Field::new("o", "std::optional<Point>", Kind::Optional(Box::new(points.clone()))),
                Field::new("s", "TH1F", Kind::Streamer),
                list("l", "std::vector<float>", float("_0")),
                Field::new("p", "std::array<Point,2>", Kind::Array { size: 2, item: Box::new(points) }),
                Field::new("w", "std::variant<Point>", Kind::Variant(vec![float("_0")])),
            ],
        }
    }

    /// Type of the new field, and path and source of everything in it.
    fn project(source: &str, type_name: Option<&str>) -> (String, Vec<(String, String)>) {
        fn sources(field: &Field, path: &str, all: &mut Vec<(String, String)>) {
            all.push((path.to_owned(), field.projected_from.clone().expect("projected as a whole")));
            field.children().iter().for_each(|child| sources(child, &format!("{path}.{}", child.name), all));
        }
        let field = schema().projection("b", source, type_name).unwrap();
        let mut all = Vec::new();
        sources(&field, "b", &mut all);
        (field.type_name, all)
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(path, source)| ((*path).to_owned(), (*source).to_owned())).collect()
    }

    #[test]
    fn values_get_another_name() {
        assert_eq!(project("a", None), ("float".into(), pairs(&[("b", "a")])));
        assert_eq!(project("a", Some("Float_t")).0, "float");
        let (name, sources) = project("m", None);
        assert_eq!(name, "std::map<float,float>");
        assert_eq!(sources, pairs(&[("b", "m"), ("b._0", "m._0"), ("b._0._0", "m._0._0"), ("b._0._1", "m._0._1")]));
    }

    #[test]
    fn members_of_collections_become_collections() {
        assert_eq!(
            project("jets.pt", None),
            ("std::vector<float>".into(), pairs(&[("b", "jets"), ("b._0", "jets._0.pt")]))
        );
        let (name, sources) = project("jets.hits.x", None);
        assert_eq!(name, "std::vector<std::vector<float>>");
        assert_eq!(sources, pairs(&[("b", "jets"), ("b._0", "jets._0.hits"), ("b._0._0", "jets._0.hits._0.x")]));
        assert_eq!(project("jets.hits.x", Some("RVec<set<float>>")).0, "ROOT::VecOps::RVec<std::set<float>>");
        assert_eq!(project("o.x", None).0, "std::optional<float>");
        assert_eq!(project("o.x", Some("std::vector<float>")).0, "std::vector<float>");
        assert_eq!(project("jets.hits", None).0, "");
    }

    #[test]
    fn collections_get_another_type() {
        for wanted in ["std::set<float>", "ROOT::VecOps::RVec<float>", "std::unordered_multiset<float>"] {
            assert_eq!(project("l", Some(wanted)), (wanted.into(), pairs(&[("b", "l"), ("b._0", "l._0")])));
        }
        assert_eq!(project("l", Some("MyVector")).0, "MyVector");
        assert_eq!(project("m", Some("std::vector<std::pair<float,float>>")).0, "std::vector<std::pair<float,float>>");
        assert_eq!(project("m", Some("multimap<float,float>")).0, "std::multimap<float,float>");
        assert_eq!(project("o", Some("std::unique_ptr<Other>")).0, "std::unique_ptr<Other>");
    }

    #[test]
    fn sizes_of_collections() {
        let wide = "ROOT::RNTupleCardinality<std::uint64_t>";
        assert_eq!(project("jets", Some(wide)), (wide.into(), pairs(&[("b", "jets")])));
        assert_eq!(
            project("jets.hits", Some("ROOT::RNTupleCardinality<std::uint32_t>")),
            (
                "std::vector<ROOT::RNTupleCardinality<std::uint32_t>>".into(),
                pairs(&[("b", "jets"), ("b._0", "jets._0.hits")])
            )
        );
        assert_eq!(project("jets.hits", Some(&format!("RVec<{wide}>"))).0, format!("ROOT::VecOps::RVec<{wide}>"));
    }

    #[test]
    fn projections_forbidden_by_the_format_are_refused() {
        let cardinality = "ROOT::RNTupleCardinality<std::uint64_t>";
        for (source, type_name, expected) in [
            ("v", None, "'v' is a std::variant<float>; fields cannot be projected from variants"),
            ("w.x", None, "fields cannot be projected out of variants"),
            ("p", None, "from fixed arrays"),
            ("p.x", None, "'p' is a std::array<Point,2>; fields cannot be projected out of fixed arrays"),
            ("jets.pos", None, "from fixed arrays"),
            ("jets", None, "'jets._0.pos' is a std::array<float,3>"),
            ("a", Some("double"), "'a' is a float and cannot be shown as"),
            ("l", Some("std::vector<double>"), "'l._0' is a float and cannot be shown as"),
            ("s", Some("TH1D"), "'s' is a TH1F and cannot be shown as"),
            ("a", Some("std::vector<float>"), "cannot be shown as"),
            ("l", Some("float"), "differs in structure"),
            ("l", Some("std::optional<float>"), "differs in structure"),
            ("l", Some("std::map<float,float>"), "cannot be shown as"),
            ("l", Some("std::vector<float"), "not a C++ type name"),
            ("m", Some("std::vector<std::tuple<float>>"), "differs in structure"),
            ("a", Some(cardinality), "a float without a number of items"),
            ("v", Some(cardinality), "without a number of items"),
            ("jets", Some("ROOT::RNTupleCardinality<std::int8_t>"), "std::uint32_t or std::uint64_t"),
        ] {
            let error = schema().projection("b", source, type_name).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{source} {error}");
            assert!(error.to_string().starts_with("projected field 'b': "), "{error}");
            assert!(error.to_string().contains(expected), "{source} as {type_name:?}: {error}");
        }
        assert!(schema().projection("b", "jets.Pt", None).unwrap_err().to_string().contains("'jets.pt'"));
        assert!(schema().projection("a", "l", None).unwrap_err().to_string().contains("field 'a' already exists"));
    }

    #[test]
    fn a_projection_is_not_a_source() {
        let schema = schema().with_projection("b", "jets.pt", None).unwrap();
        let error = schema.projection("c", "b", None).unwrap_err();
        assert!(error.to_string().ends_with("'b' is itself projected; project from 'jets' instead"), "{error}");
    }
}
