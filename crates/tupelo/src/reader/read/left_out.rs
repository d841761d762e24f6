//! What is left out of a read: unreadable fields and branches, and the counters of lists.

use tupelo_core::error::printable;
use tupelo_schema::schema::{Schema, escaped};

use super::super::skipped::Skipped;
use super::super::table::Table;
use super::Read;
use crate::{Error, Result};

impl Table {
    /// What cannot be read of the table, as its metadata say: branches of a tree, fields of an ntuple; of several files what
    /// any of them cannot give. With patterns, only
    /// what `wanted` names, if it names anything, and `unwanted` does not.
    pub fn unreadable<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Vec<Skipped> {
        let all = self.as_source().sidecar().left_out();
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
        let counters = self.source().schema().counters().into_iter();
        let mut missing: Vec<String> = counters
            .filter(|(list, counter)| is_chosen(list) && !is_chosen(counter))
            .map(|(_, counter)| counter)
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}
