//! How entries are copied.

use std::collections::{BTreeMap, HashSet};

use tupelo_schema::schema::{Field, Schema};

use super::Pages;
use crate::reader::Read;
use crate::{Error, Result};

/// How entries are copied: what becomes of pages and names, and where a copy stops.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    pub(super) pages: Pages,
    renames: BTreeMap<String, String>,
    pub(super) max_entries: u64,
    pub(super) max_stored_bytes: u64,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self { pages: Pages::default(), renames: BTreeMap::new(), max_entries: u64::MAX, max_stored_bytes: u64::MAX }
    }
}

impl From<Pages> for CopyOptions {
    fn from(pages: Pages) -> Self {
        Self { pages, ..Self::default() }
    }
}

impl CopyOptions {
    /// What becomes of the pages; by default all entries are encoded again.
    #[must_use]
    pub fn with_pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Names that top-level fields get, by those in the source. Pages can stay as they are; projected fields follow the
    /// fields that they refer to.
    #[must_use]
    pub fn with_renames(mut self, renames: impl IntoIterator<Item = (String, String)>) -> Self {
        self.renames.extend(renames);
        self
    }

    /// Stops after this many copied entries. [`Copied::end`](super::Copied) is where to continue.
    #[must_use]
    pub fn with_max_entries(mut self, entries: u64) -> Self {
        self.max_entries = entries.max(1);
        self
    }

    /// Stops when the pages take this many stored bytes, or a little later: at the end of a cluster whose pages stay as
    /// they are, otherwise after some of the entries that are encoded. [`Copied::end`](super::Copied) is where to continue.
    #[must_use]
    pub fn with_max_stored_bytes(mut self, bytes: u64) -> Self {
        self.max_stored_bytes = bytes.max(1);
        self
    }

    /// Refuses names that the fields of a read cannot get, before anything is written.
    ///
    /// # Errors
    /// Not found, with near names, for renaming a missing field; invalid argument if two fields would have the same
    /// name.
    pub fn check(&self, read: &Read) -> Result<()> {
        let (read, _) = super::prepared(read.clone())?;
        let schema = read.schema_with_computed()?;
        self.renamed(schema).map(|_| ()).map_err(|e| read.context(e))
    }

    /// What is written of a read.
    pub(super) fn schema(&self, read: &Read) -> Result<Schema> {
        self.renamed(super::schema(read)?).map_err(|e| read.context(e))
    }

    fn renamed(&self, mut schema: Schema) -> Result<Schema> {
        if self.renames.is_empty() {
            return Ok(schema);
        }
        for old in self.renames.keys() {
            if !schema.fields.iter().any(|field| field.name == *old) {
                let known = schema.fields.iter().filter(|field| !field.is_hidden());
                return Err(Error::no_such("field", old, known.map(|field| field.name.as_str())));
            }
        }
        for field in &mut schema.fields {
            if let Some(new) = self.renames.get(&field.name) {
                field.name.clone_from(new);
            }
            self.follow(field);
        }
        let mut names = HashSet::new();
        match schema.fields.iter().find(|field| !names.insert(field.name.as_str())) {
            None => Ok(schema),
            Some(twice) => {
                let what = format!("two fields would have the name '{}'; rename one of them", twice.name);
                Err(Error::invalid_argument(what))
            }
        }
    }

    /// Lets projected fields refer to the new names.
    fn follow(&self, field: &mut Field) {
        if let Some(source) = &mut field.projected_from {
            let (first, rest) = source.split_once('.').map_or((source.as_str(), None), |(first, it)| (first, Some(it)));
            if let Some(new) = self.renames.get(first) {
                *source = rest.map_or_else(|| new.clone(), |rest| format!("{new}.{rest}"));
            }
        }
        field.children_mut().iter_mut().for_each(|child| self.follow(child));
    }
}

#[cfg(test)]
mod tests {
    use tupelo_schema::schema::{Kind, Primitive};

    use super::*;

    fn field(name: &str, source: Option<&str>) -> Field {
        let mut field = Field::new(name, "float", Kind::Primitive(Primitive::Float));
        field.projected_from = source.map(str::to_owned);
        field
    }

    #[test]
    fn projected_fields_follow() {
        let options = |renames: &[(&str, &str)]| {
            CopyOptions::default().with_renames(renames.iter().map(|(old, new)| ((*old).into(), (*new).into())))
        };
        let schema = || Schema { fields: vec![field("a", None), field("b", Some("a")), field("c", Some("a._0.x"))] };
        let renamed = options(&[("a", "b"), ("b", "a")]).renamed(schema()).unwrap();
        let names: Vec<_> = renamed.fields.iter().map(|it| (it.name.as_str(), it.projected_from.as_deref())).collect();
        assert_eq!(names, [("b", None), ("a", Some("b")), ("c", Some("b._0.x"))]);
        let error = options(&[("a", "c")]).renamed(schema()).unwrap_err().to_string();
        assert!(error.contains("two fields would have the name 'c'"), "{error}");
        let error = options(&[("A", "x")]).renamed(schema()).unwrap_err().to_string();
        assert!(error.contains("no field named 'A'") && error.contains("'a'"), "{error}");
    }
}
