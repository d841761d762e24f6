//! Collections of ROOT's `RNTupleImporter` (`tree/ntupleutil`): it stores the leaf-count arrays of a tree as untyped
//! collections `_collection0`, `_collection15` and so on, whose numbers depend on the other branches, and shows their members
//! under the names of the branches by projected fields.

use std::collections::HashSet;

use super::{Field, Schema};

const PREFIX: &str = "_collection";

impl Schema {
    /// The fields that are listed and chosen if nothing is said: without hidden ones, which are found by their names only.
    #[must_use]
    pub fn listed(&self) -> Self {
        Self { fields: self.fields.iter().filter(|field| !field.hidden).cloned().collect() }
    }

    /// Hides the collections of an importer all of whose values are shown by top-level projected fields.
    pub(super) fn hide_imported(&mut self) {
        if !self.fields.iter().any(|field| is_numbered(&field.name)) {
            return;
        }
        let mut sources = HashSet::new();
        self.fields
            .iter()
            .filter(|field| field.projected_from.is_some())
            .for_each(|field| add_sources(field, &mut sources));
        let hidden: Vec<bool> = self.fields.iter().map(|field| is_imported(field, &sources)).collect();
        self.fields.iter_mut().zip(hidden).for_each(|(field, hidden)| field.hidden = hidden);
    }
}

fn is_numbered(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn is_imported(field: &Field, sources: &HashSet<String>) -> bool {
    let is_collection = field.projected_from.is_none() && !field.children().is_empty();
    is_collection && is_numbered(&field.name) && leaves_are_shown(field, field.name.clone(), sources)
}

/// Whether all values at the bottom of a field are the source of a projected field.
fn leaves_are_shown(field: &Field, path: String, sources: &HashSet<String>) -> bool {
    match field.children() {
        [] => sources.contains(&path),
        children => children.iter().all(|child| leaves_are_shown(child, format!("{path}.{}", child.name), sources)),
    }
}

fn add_sources(field: &Field, sources: &mut HashSet<String>) {
    sources.extend(field.projected_from.clone());
    field.children().iter().for_each(|child| add_sources(child, sources));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Kind, Primitive};

    fn float(name: &str) -> Field {
        Field::new(name, "float", Kind::Primitive(Primitive::Float))
    }

    /// A collection of an importer with `members`; `shown` of them are projected.
    fn imported(name: &str, members: &[&str], shown: &[&str]) -> Schema {
        let record = Field::new("_0", "", Kind::Record(members.iter().map(|member| float(member)).collect()));
        let schema = Schema { fields: vec![float("met"), Field::new(name, "", Kind::Collection(Box::new(record)))] };
        let schema = shown.iter().fold(schema, |schema, member| {
            schema.with_projection(&format!("{member}_shown"), &format!("{name}.{member}"), None).unwrap()
        });
        let mut schema = schema.with_projection("n", name, Some("ROOT::RNTupleCardinality<std::uint32_t>")).unwrap();
        schema.hide_imported();
        schema
    }

    fn listed(schema: &Schema) -> Vec<String> {
        schema.listed().fields.into_iter().map(|field| field.name).collect()
    }

    #[test]
    fn imported_collections_are_listed_once() {
        let schema = imported("_collection15", &["pt", "eta"], &["pt", "eta"]);
        assert_eq!(listed(&schema), ["met", "pt_shown", "eta_shown", "n"]);
        let names = |schema: Schema| schema.paths().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(names(schema.select::<&str>(&[]).unwrap()), ["met", "pt_shown", "eta_shown", "n"]);
        assert_eq!(names(schema.select(&["*"]).unwrap()), ["met", "pt_shown", "eta_shown", "n"]);
        assert_eq!(names(schema.select(&["_collection15.pt"]).unwrap()), ["_collection15", "_collection15.pt"]);
        assert_eq!(names(schema.select(&["_coll*"]).unwrap()).len(), 3);
    }

    #[test]
    fn collections_that_show_more_or_are_called_otherwise_stay() {
        for (name, shown) in [("_collection1", &["pt"][..]), ("_collection", &["pt", "eta"]), ("muons", &["pt", "eta"])]
        {
            let schema = imported(name, &["pt", "eta"], shown);
            assert_eq!(listed(&schema).len(), schema.fields.len(), "{name}");
        }
    }
}
