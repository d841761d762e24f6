//! Fields that files have in common, and unions of the fields of files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use tupelo_core::error::{Remedy, listed};
use tupelo_schema::schema::{Field, with_inner_fields};

use crate::{Error, Result};

/// Collects the fields that all files have, file by file. A record with different members in different files is read
/// with their common members.
#[derive(Debug, Default)]
pub struct CommonFields {
    /// Top-level fields in order, each with the paths of its leaves that all files have so far.
    tops: Vec<(String, Vec<String>)>,
    /// Paths missing in some files, in the order in which they were found.
    skipped: Vec<String>,
    /// Top-level fields that are skipped in part.
    pruned: HashSet<String>,
    files: usize,
}

impl CommonFields {
    /// Adds the selected fields of a file: dotted paths, parents first, each with the name of its top-level field.
    pub fn add_paths(&mut self, paths: &[(String, String)]) {
        let own = leaves(paths);
        self.files += 1;
        if self.files == 1 {
            self.tops = own;
            return;
        }
        let mut by_name: HashMap<String, Vec<String>> = own.iter().cloned().collect();
        let mut tops = Vec::with_capacity(self.tops.len());
        for (top, ours) in std::mem::take(&mut self.tops) {
            let theirs = by_name.remove(&top).unwrap_or_default();
            if ours == theirs {
                tops.push((top, ours));
                continue;
            }
            let known: HashSet<&String> = theirs.iter().collect();
            let (both, missing): (Vec<String>, Vec<String>) = ours.into_iter().partition(|leaf| known.contains(leaf));
            let common: HashSet<&String> = both.iter().collect();
            let added = theirs.iter().filter(|leaf| !common.contains(leaf)).cloned();
            let differing: BTreeSet<String> = missing.into_iter().chain(added).collect();
            match both.is_empty() {
                true => self.skip([top]),
                // Only in another order.
                false if differing.is_empty() => tops.push((top, both)),
                false => {
                    self.skip(differing);
                    self.pruned.insert(top.clone());
                    tops.push((top, both));
                }
            }
        }
        self.tops = tops;
        let new = own.into_iter().map(|(top, _)| top).filter(|top| by_name.contains_key(top)).collect::<Vec<_>>();
        self.skip(new);
    }

    fn skip(&mut self, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            if !self.skipped.contains(&path) {
                self.skipped.push(path);
            }
        }
    }

    /// Whether no file has a selected field.
    pub fn is_empty(&self) -> bool {
        self.tops.is_empty() && self.skipped.is_empty()
    }

    /// The dotted paths of fields that some files lack, which are not read.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The same as a list for a message; `None` if there are none.
    pub fn skipped_text(&self) -> Option<String> {
        Some(listed(&self.skipped)).filter(|_| !self.skipped.is_empty())
    }

    /// The dotted paths to read of every file; `None` if all files have the same fields.
    ///
    /// # Errors
    /// Invalid argument where the files have no field in common.
    pub fn paths(&self) -> Result<Option<Vec<String>>> {
        if self.skipped.is_empty() {
            return Ok(None);
        }
        if self.tops.is_empty() {
            let what = format!("the files have no field in common ({})", listed(&self.skipped));
            return Err(Error::invalid_argument(what).with_remedy(Remedy::UnionFields));
        }
        let of_top = |(top, leaves): &(String, Vec<String>)| match self.pruned.contains(top) {
            true => leaves.clone(),
            false => vec![top.clone()],
        };
        Ok(Some(self.tops.iter().flat_map(of_top).collect()))
    }
}

/// The top-level fields, each with its paths that have no subfields. Subfields directly follow their parents.
fn leaves(paths: &[(String, String)]) -> Vec<(String, Vec<String>)> {
    let mut tops: Vec<(String, Vec<String>)> = Vec::new();
    for (index, (top, path)) in paths.iter().enumerate() {
        let next = paths.get(index + 1).filter(|(next, _)| next == top).and_then(|(_, next)| next.strip_prefix(path));
        if next.is_some_and(|rest| rest.starts_with('.')) {
            continue;
        }
        match tops.last_mut().filter(|(last, _)| last == top) {
            Some((_, leaves)) => leaves.push(path.clone()),
            None => tops.push((top.clone(), vec![path.clone()])),
        }
    }
    tops
}

/// Collects the fields that any file has, file by file.
#[derive(Debug, Default)]
pub struct UnionFields {
    /// Fields in order, each with the first file that has it and the number of files that have it.
    fields: Vec<(Arc<ArrowField>, String, usize)>,
    places: HashMap<String, usize>,
    files: usize,
}

impl UnionFields {
    /// Adds the columns that are read of a file; `name` names the file in errors.
    ///
    /// # Errors
    /// Invalid argument for a field whose type differs in an earlier file.
    pub fn add(&mut self, schema: &ArrowSchema, name: &str) -> Result<()> {
        self.files += 1;
        for field in schema.fields() {
            let Some(&place) = self.places.get(field.name()) else {
                self.places.insert(field.name().clone(), self.fields.len());
                self.fields.push((Arc::clone(field), name.to_owned(), 1));
                continue;
            };
            let (known, first, files) = &mut self.fields[place];
            // The C++ types of items may differ: `std::vector` and `RVec` are the same list.
            let (own, other) = (plain(field.data_type()), plain(known.data_type()));
            if own != other {
                let names = (type_name(field), type_name(known));
                // Classes of the same name may have other members.
                let names = if names.0 == names.1 { (own.to_string(), other.to_string()) } else { names };
                let (own, other) = names;
                return Err(Error::invalid_argument(format!(
                    "{name}: field '{}' has type {own}, but type {other} in {first}; select other fields or read the \
                     files separately",
                    field.name()
                )));
            }
            if field.is_nullable() && !known.is_nullable() {
                *known = Arc::clone(field);
            }
            *files += 1;
        }
        Ok(())
    }

    /// The columns of all files. Those that some files lack are nullable.
    pub fn schema(&self) -> ArrowSchema {
        let field = |(field, _, files): &(Arc<ArrowField>, String, usize)| match *files == self.files {
            true => Arc::clone(field),
            false => Arc::new(field.as_ref().clone().with_nullable(true)),
        };
        ArrowSchema::new(self.fields.iter().map(field).collect::<Vec<_>>())
    }
}

/// A type without the metadata of the fields in it.
fn plain(data_type: &DataType) -> DataType {
    with_inner_fields(data_type, |field| {
        let own = field.as_ref().clone().with_data_type(plain(field.data_type()));
        Arc::new(own.with_metadata(HashMap::new()))
    })
}

/// The C++ type of a column, or its Arrow type where it has none.
fn type_name(field: &ArrowField) -> String {
    let cpp = Field::try_from(field).ok().map(|field| field.display_type().to_owned()).filter(|name| !name.is_empty());
    cpp.unwrap_or_else(|| field.data_type().to_string())
}

#[cfg(test)]
mod tests {
    use tupelo_schema::schema::Schema;

    use super::*;
    use crate::ErrorKind;

    fn int(name: &str) -> ArrowField {
        ArrowField::new(name, DataType::Int32, false)
    }

    fn record(name: &str, members: &[&str]) -> ArrowField {
        ArrowField::new_struct(name, members.iter().map(|name| int(name)).collect::<Vec<_>>(), false)
    }

    fn common(files: &[Vec<ArrowField>]) -> CommonFields {
        let mut common = CommonFields::default();
        for fields in files {
            let schema = Schema::from_arrow(&ArrowSchema::new(fields.clone())).unwrap();
            let top = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
            let paths: Vec<_> = schema.paths().into_iter().map(|(path, _)| (top(&path), path)).collect();
            common.add_paths(&paths);
        }
        common
    }

    #[test]
    fn fields_that_some_files_lack_are_skipped() {
        let same = common(&[vec![int("x"), int("y")], vec![int("y"), int("x")]]);
        assert_eq!((same.paths().unwrap(), same.skipped()), (None, &[][..]));
        let some = common(&[
            vec![int("a"), record("r", &["p", "q"]), int("x")],
            vec![record("r", &["q", "s"]), int("x"), int("z")],
            vec![int("x"), record("r", &["q"])],
        ]);
        assert_eq!(some.paths().unwrap().unwrap(), ["r.q", "x"]);
        assert_eq!(some.skipped(), ["a", "r.p", "r.s", "z"]);
        let none = common(&[vec![int("a")], vec![int("b")]]);
        let error = none.paths().unwrap_err();
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::InvalidArgument, Some(Remedy::UnionFields)));
        assert!(error.to_string().starts_with("the files have no field in common (a, b)"), "{error}");
        assert!(common(&[vec![]]).is_empty() && !none.is_empty());
    }

    #[test]
    fn a_union_has_nulls_where_files_lack_a_field() {
        let mut union = UnionFields::default();
        union.add(&ArrowSchema::new(vec![int("x"), int("y")]), "one").unwrap();
        union.add(&ArrowSchema::new(vec![int("z"), int("x")]), "two").unwrap();
        let schema = union.schema();
        let nullable: Vec<_> =
            schema.fields().iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(nullable, [("x", false), ("y", true), ("z", true)]);
        let error = union.add(&ArrowSchema::new(vec![ArrowField::new("x", DataType::Float32, false)]), "three");
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("three: field 'x' has type float, but type std::int32_t in one"), "{error}");
    }
}
