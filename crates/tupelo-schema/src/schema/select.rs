//! Projections: which fields of a schema a caller wants.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Field, Glob, Kind, Schema, walk};
use crate::{Error, Result};

impl Schema {
    /// The part of the schema that dotted paths or globs name: `Muon_pt`, `Muon_*`, `jets.pt`, `*.pt`. A path
    /// selects everything below it; the fields above it remain as its parents. Without patterns, all that is
    /// [listed](Self::listed); globs choose hidden fields only where they fit no other.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that selects nothing.
    pub fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(self.listed());
        }
        self.select_by(&Names::of(self), patterns)
    }

    /// The same with names that were looked up before. Names cost no walk through the schema, globs do.
    pub(crate) fn select_by<S: AsRef<str>>(&self, names: &Names, patterns: &[S]) -> Result<Self> {
        let (wanted, tops) = self.matching(names, patterns)?;
        let fields = tops.iter().filter_map(|&top| self.fields.get(top));
        Ok(Self { fields: fields.filter_map(|field| prune(field, &field.name, &wanted)).collect() })
    }

    /// The schema without the fields of some paths and all below them. Fields without remaining subfields are removed,
    /// too.
    pub(crate) fn without(&self, unwanted: &HashSet<&str>) -> Self {
        let touched: HashSet<&str> = unwanted.iter().flat_map(|path| prefixes(path)).collect();
        let paths = self.paths();
        let is_whole = |path: &&str| !touched.contains(path) && prefixes(path).all(|above| !unwanted.contains(above));
        let wanted = paths.iter().map(|(path, _)| path.as_str()).filter(is_whole).collect();
        Self { fields: self.fields.iter().filter_map(|field| prune(field, &field.name, &wanted)).collect() }
    }

    /// The paths that patterns fit, and the top-level fields that they are, or are below of.
    ///
    /// # Errors
    /// As [`Schema::select`].
    pub fn matching<'n, S: AsRef<str>>(
        &self,
        names: &'n Names,
        patterns: &[S],
    ) -> Result<(HashSet<&'n str>, BTreeSet<usize>)> {
        let (mut wanted, mut tops) = (HashSet::new(), BTreeSet::new());
        for pattern in patterns {
            let pattern = pattern.as_ref();
            // A name may look like a pattern; then it means itself.
            if let Some((path, &top)) = names.find(pattern) {
                wanted.insert(path.as_str());
                tops.insert(top);
                continue;
            }
            let glob = Glob::new(pattern, '.')?;
            let is_match = |path: &str| glob.as_ref().is_some_and(|glob| glob.is_match(path));
            let mut found: Vec<_> = names.paths.iter().filter(|(path, _)| is_match(path)).collect();
            if found.is_empty() {
                let paths = self.paths();
                return Err(Error::no_such("field", pattern, paths.iter().map(|(path, _)| path.as_str())));
            }
            // Hidden fields are chosen only where the glob fits no other field.
            let is_listed = |(_, top): &(&String, &usize)| self.fields.get(**top).is_some_and(|field| !field.hidden);
            if found.iter().any(is_listed) {
                found.retain(is_listed);
            }
            for (path, &top) in found {
                wanted.insert(path.as_str());
                tops.insert(top);
            }
        }
        Ok((wanted, tops))
    }

    /// The field at a dotted path.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn get(&self, path: &str) -> Result<&Field> {
        let paths = self.paths();
        match paths.iter().find(|(known, _)| known == path) {
            Some((_, field)) => Ok(field),
            None => Err(Error::no_such("field", path, paths.iter().map(|(path, _)| path.as_str()))),
        }
    }
}

/// The dotted paths of a schema, each with the index of the top-level field that it is, or is below of.
#[derive(Debug, Default)]
pub struct Names {
    paths: HashMap<String, usize>,
    /// Other names, with the paths that they stand for.
    others: HashMap<String, String>,
}

impl Names {
    /// Those of a schema.
    pub fn of(schema: &Schema) -> Self {
        let mut names = HashMap::new();
        for (top, field) in schema.fields.iter().enumerate() {
            let mut paths = Vec::new();
            walk(field, field.name.clone(), &mut paths);
            names.extend(paths.into_iter().map(|(path, _)| (path, top)));
        }
        Self { paths: names, others: HashMap::new() }
    }

    /// The same with other names, each with the path that it stands for.
    pub(crate) fn with_others(self, others: HashMap<String, String>) -> Self {
        Self { others, ..self }
    }

    /// The path that a name stands for, and the index of the top-level field that it is, or is below of.
    pub(crate) fn find(&self, name: &str) -> Option<(&String, &usize)> {
        let other = || self.others.get(name).and_then(|path| self.paths.get_key_value(path));
        self.paths.get_key_value(name).or_else(other)
    }
}

/// A path and those above it.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(end, _)| &path[..end]).chain([path])
}

/// The field with only the wanted parts below it, or nothing.
fn prune(field: &Field, path: &str, wanted: &HashSet<&str>) -> Option<Field> {
    if wanted.contains(path) {
        return Some(field.clone());
    }
    let below = |child: &Field| prune(child, &format!("{path}.{}", child.name), wanted);
    let kind = match &field.kind {
        Kind::Record(fields) => Kind::Record(some(fields.iter().filter_map(below).collect())?),
        Kind::Tuple(fields) => Kind::Record(some(fields.iter().filter_map(below).collect())?),
        Kind::Array { size, item } => Kind::Array { size: *size, item: Box::new(prune(item, path, wanted)?) },
        Kind::Wrapper(item) => Kind::Wrapper(Box::new(prune(item, path, wanted)?)),
        Kind::Collection(item) => Kind::Collection(Box::new(prune(item, path, wanted)?)),
        Kind::Map(pair) => Kind::Collection(Box::new(prune(pair, path, wanted)?)),
        Kind::Optional(item) => Kind::Optional(Box::new(prune(item, path, wanted)?)),
        // A variant needs all its alternatives.
        Kind::Variant(_) => return None,
        Kind::Primitive(_) | Kind::String | Kind::Streamer | Kind::Cardinality { .. } | Kind::Bitset { .. } => {
            return None;
        }
    };
    // A record without one of its members no longer has the named class.
    let untyped = matches!(kind, Kind::Record(_) | Kind::Collection(_));
    let type_name = if untyped { String::new() } else { field.type_name.clone() };
    Some(Field { kind, type_name, checksum: None, type_version: 0, soa: false, ..field.clone() })
}

fn some(fields: Vec<Field>) -> Option<Vec<Field>> {
    (!fields.is_empty()).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Primitive;

    fn schema() -> Schema {
        let float = |name: &str| Field::new(name, "float", Kind::Primitive(Primitive::Float));
        let jet = Field::new("_0", "Jet", Kind::Record(vec![float("pt"), float("eta")]));
        let jets = Field::new("jets", "std::vector<Jet>", Kind::Collection(Box::new(jet)));
        Schema { fields: vec![float("MET_pt"), float("MET_phi"), jets] }
    }

    fn paths(patterns: &[&str]) -> Vec<String> {
        let selected = schema().select(patterns).unwrap();
        selected.paths().into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn paths_and_globs_select_in_the_order_of_the_file() {
        assert_eq!(paths(&[]), ["MET_pt", "MET_phi", "jets", "jets.pt", "jets.eta"]);
        assert_eq!(paths(&["jets.eta", "MET_pt"]), ["MET_pt", "jets", "jets.eta"]);
        assert_eq!(paths(&["MET_*"]), ["MET_pt", "MET_phi"]);
        assert_eq!(paths(&["*"]).len(), 5);
        assert_eq!(paths(&["jets.*"]), ["jets", "jets.pt", "jets.eta"]);
        assert_eq!(paths(&["*.pt"]), ["jets", "jets.pt"]);
        assert_eq!(paths(&["**.pt"]), ["jets", "jets.pt"]);
        assert_eq!(paths(&["*pt"]), ["MET_pt", "jets", "jets.pt"]);
        assert_eq!(paths(&["{MET,jets}_p{t,hi}"]), ["MET_pt", "MET_phi"]);
        // A pattern may repeat what another one has chosen.
        assert_eq!(paths(&["MET_pt", "MET_*"]), ["MET_pt", "MET_phi"]);
    }

    #[test]
    fn a_name_that_looks_like_a_pattern_means_itself() {
        let float = |name: &str| Field::new(name, "float", Kind::Primitive(Primitive::Float));
        let schema = Schema { fields: vec![float("a[0]*"), float("a0")] };
        assert_eq!(schema.select(&["a[0]*"]).unwrap().fields, [float("a[0]*")]);
    }

    #[test]
    fn alternatives_of_a_variant_cannot_be_chosen_alone() {
        let float = |name: &str| Field::new(name, "float", Kind::Primitive(Primitive::Float));
        let variant = Field::new("v", "std::variant<float>", Kind::Variant(vec![float("_0")]));
        let schema = Schema { fields: vec![variant] };
        assert!(schema.select(&["v._0"]).unwrap_err().is_not_found());
        assert_eq!(schema.select(&["v*"]).unwrap(), schema);
    }

    #[test]
    fn excluded_fields_are_removed_with_their_subfields() {
        let left = |unwanted: &[&str]| {
            let left = schema().without(&unwanted.iter().copied().collect());
            left.paths().into_iter().map(|(path, _)| path).collect::<Vec<_>>()
        };
        assert_eq!(schema().without(&HashSet::new()), schema());
        assert_eq!(left(&["MET_pt", "jets.pt"]), ["MET_phi", "jets", "jets.eta"]);
        assert_eq!(left(&["jets"]), ["MET_pt", "MET_phi"]);
        assert_eq!(left(&["jets", "jets.pt"]), ["MET_pt", "MET_phi"]);
        assert_eq!(left(&["jets.pt", "jets.eta", "MET"]), ["MET_pt", "MET_phi"]);
        // What is not touched stays as it is.
        assert_eq!(schema().without(&["MET_pt"].into()).fields, schema().fields[1..]);
    }

    #[test]
    fn a_class_that_lost_members_loses_its_name() {
        let jets = schema().select(&["jets.pt"]).unwrap().fields.remove(0);
        assert_eq!((jets.type_name.as_str(), jets.children()[0].type_name.as_str()), ("", ""));
        assert_eq!(schema().select(&["jets"]).unwrap().fields[0].type_name, "std::vector<Jet>");
    }

    #[test]
    fn patterns_without_a_match_are_errors_that_list_near_names() {
        let error = schema().select(&["jets.Pt"]).unwrap_err();
        assert!(error.is_not_found());
        assert!(error.to_string().contains("'jets.pt'"), "{error}");
        assert!(schema().select(&["nothing*"]).unwrap_err().is_not_found());
        assert_eq!(schema().select(&["a[b"]).unwrap_err().kind(), crate::ErrorKind::InvalidArgument);
    }
}
