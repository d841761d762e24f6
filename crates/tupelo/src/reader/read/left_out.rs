//! What is left out of a read: unreadable fields and branches, and the counters of lists.

use super::super::table::Table;
use super::Read;
use crate::error::printable;
use crate::schema::{Field, Glob, Kind, Schema, escaped};
use crate::{Error, Result};

/// A branch or field that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The path of the field, or the names of the branch and its parents, joined by slashes.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

impl Skipped {
    /// Something that is left out.
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), reason: reason.into() }
    }

    /// Whether a pattern names it, or something around it.
    fn is_meant_by(&self, pattern: &str) -> bool {
        let dotted = self.name.replace('/', ".");
        let is_match = |glob: Glob| {
            dotted.match_indices('.').any(|(end, _)| glob.is_match(&dotted[..end])) || glob.is_match(&dotted)
        };
        let branch = self.name.rsplit('/').next().unwrap_or_default();
        [self.name.as_str(), branch].contains(&pattern)
            || format!("{dotted}.").starts_with(&format!("{pattern}."))
            || Glob::new(pattern, '.').ok().flatten().is_some_and(is_match)
    }
}

impl Table {
    /// The unreadable parts of the table, according to its metadata: branches of a tree, fields of an ntuple. With
    /// patterns, only what `wanted` names, if it names anything, and `unwanted` does not.
    pub fn unreadable<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Vec<Skipped> {
        let all: Vec<Skipped> = match self {
            Self::Ntuple(ntuple) => {
                let dropped = ntuple.descriptor().dropped().iter();
                dropped.map(|dropped| Skipped::new(&dropped.field, dropped.reason.clone())).collect()
            }
            Self::Tree(tree) => tree.refused().map(|(path, reason)| Skipped::new(path, reason)).collect(),
        };
        let is_meant = |skipped: &Skipped, patterns: &[S]| patterns.iter().any(|it| skipped.is_meant_by(it.as_ref()));
        let is_chosen = |it: &Skipped| (wanted.is_empty() || is_meant(it, wanted)) && !is_meant(it, unwanted);
        all.into_iter().filter(is_chosen).collect()
    }

    /// Whether a pattern names something that cannot be read.
    pub fn is_unreadable(&self, pattern: &str) -> bool {
        !self.unreadable(&[pattern], &[]).is_empty()
    }
}

impl Read {
    /// The same without the branches of a tree whose values cannot be decoded, and what these are. To find out, all chosen
    /// entries of a small tree are decoded; of more than 64 MiB, the first ones of branches with objects.
    ///
    /// # Errors
    /// Those of the storage and of the memory budget.
    pub fn without_unreadable(mut self) -> Result<(Self, Vec<Skipped>)> {
        let mut skipped = Vec::new();
        loop {
            let found = self.source().unreadable(self.stored_fields(), self.range()).map_err(|e| self.context(e))?;
            if found.is_empty() {
                return Ok((self, skipped));
            }
            let before = self.schema().paths().len();
            for (path, error) in found {
                self = self.without_path(&path)?;
                skipped.push(Skipped::new(&path, error.to_string()));
            }
            if self.schema().paths().len() == before {
                return Err(self.context(Error::corrupt(format!("{}", printable(&skipped[0].reason)))));
            }
        }
    }

    /// The same without what [`Read::without_unreadable`] left out of the same fields before.
    ///
    /// # Errors
    /// Not found if the fields lack one of them.
    pub fn without_skipped(self, skipped: &[Skipped]) -> Result<Self> {
        skipped.iter().try_fold(self, |read, skipped| read.without_path(&skipped.name))
    }

    fn without_path(self, path: &str) -> Result<Self> {
        // Members of maps cannot be left out alone.
        let top = self.stored_fields().iter().find(|field| path.starts_with(&format!("{}.", field.name)));
        let top = top.map_or_else(|| path.to_owned(), |field| field.name.clone());
        match self.clone().without([escaped(path)]) {
            Ok(read) => Ok(read),
            Err(_) => self.without([escaped(&top)]),
        }
    }

    /// The same without fields, by their paths.
    pub(crate) fn without_paths(self, skipped: &[Skipped]) -> Result<Self> {
        self.without(skipped.iter().map(|skipped| escaped(&skipped.name)).collect::<Vec<_>>())
    }

    /// The same with the counters of the chosen lists, and the names of those that were not chosen.
    ///
    /// # Errors
    /// Those of [`Read::with_fields`], except for names of fields.
    pub fn with_counters(self) -> Result<(Self, Vec<String>)> {
        let missing = self.missing_counters();
        if missing.is_empty() {
            return Ok((self, missing));
        }
        let all = &self.source().schema().schema().fields;
        let mut wanted: Vec<String> = missing.iter().map(|name| escaped(name)).collect();
        for field in &self.schema().fields {
            match all.contains(field) {
                true => wanted.push(escaped(&field.name)),
                false => {
                    let schema = Schema { fields: vec![field.clone()] };
                    let paths = schema.paths();
                    let is_parent = |path: &str| {
                        paths.iter().any(|(it, _)| it.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
                    };
                    wanted.extend(paths.iter().filter(|(path, _)| !is_parent(path)).map(|(path, _)| escaped(path)));
                }
            }
        }
        Ok((self.with_fields(wanted)?, missing))
    }

    fn missing_counters(&self) -> Vec<String> {
        let is_chosen = |name: &str| self.schema().fields.iter().any(|field| field.name == name);
        let counters = self.source().counters().into_iter();
        let mut missing: Vec<String> = counters
            .filter(|(list, counter)| is_chosen(list) && !is_chosen(counter))
            .map(|(_, counter)| counter)
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}

impl Schema {
    /// Lists that are projected from a collection, each with the projected field that has its size: names of both.
    pub(crate) fn projected_counters(&self) -> Vec<(String, String)> {
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

    #[test]
    fn patterns_name_what_cannot_be_read_by_path_branch_or_parent() {
        let skipped = Skipped::new("Event/tracks.fX", "");
        for pattern in ["Event/tracks.fX", "Event.tracks.fX", "tracks.fX", "Event", "Event.tracks", "Ev*", "**.fX"] {
            assert!(skipped.is_meant_by(pattern), "{pattern}");
        }
        for pattern in ["Eve", "fX", "tracks", "Event.tracks.f", "X*"] {
            assert!(!skipped.is_meant_by(pattern), "{pattern}");
        }
    }
}
