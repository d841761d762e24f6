//! Several files as one table.

use pyo3::prelude::*;
use tupelo::dataset::FieldPolicy;
use tupelo::reader::{ChainPart, Location};
use tupelo::{OpenOptions, Table as Source};

use crate::error::cancellable;
use crate::ntuple::Table;
use crate::storage::{Storage, or_default};

/// Remote files that are opened at the same time.
const OPENED_AT_ONCE: usize = 8;

/// An open table, or a file and the path of a table in it; `None` stands for the only one.
#[derive(FromPyObject)]
pub(crate) enum Place {
    Open(Py<Table>),
    Stored(String, Option<String>),
}

/// The tables of several files, one after the other. With `union`, it has the fields that any of them has. With
/// `allow_missing`, files without such a table are left out.
#[pyfunction]
#[pyo3(signature = (places, *, union, allow_missing, page_checksums, memory_budget, storage=None))]
pub(crate) fn chain(
    py: Python<'_>,
    places: Vec<Place>,
    union: bool,
    allow_missing: bool,
    page_checksums: bool,
    memory_budget: Option<u64>,
    storage: Option<&Storage>,
) -> PyResult<Table> {
    let storage = or_default(storage);
    let is_remote =
        |place: &Place| matches!(place, Place::Stored(file, _) if tupelo::storage::local_path(file).is_none());
    let at_once = if places.iter().any(is_remote) { OPENED_AT_ONCE } else { 1 };
    let policy = if union { FieldPolicy::Union } else { FieldPolicy::Common };
    let (count, places): (usize, Vec<Result<Source, Location>>) = (
        places.len(),
        places
            .into_iter()
            .map(|place| match place {
                Place::Open(table) => Ok(table.get().inner().clone()),
                Place::Stored(file, object) => Err(Location { file, object }),
            })
            .collect(),
    );
    let open = move |number: usize| {
        let location = match &places[number] {
            Ok(table) => return Ok(Some(table.clone())),
            Err(location) => location.clone(),
        };
        let object = location.object.clone();
        let options = OpenOptions::at(location).with_page_checksums(page_checksums).with_storage(storage.clone());
        let options = match memory_budget {
            Some(bytes) => options.with_memory_budget(bytes),
            None => options,
        };
        match options.open_file()?.table(object.as_deref()) {
            Err(error) if allow_missing && error.is_not_found() => Ok(None),
            table => table.map(Some),
        }
    };
    Ok(cancellable(py, || Source::chain(count, at_once, policy, open))?.into())
}

/// The paths in their files of the tables of a chain, or of the only one, their first entries and their ends.
pub(crate) fn parts(table: &Source) -> (Vec<String>, Vec<u64>, Vec<u64>) {
    let Some(chain) = table.files() else {
        return (vec![table.path().to_owned()], vec![0], vec![table.entries()]);
    };
    let parts = chain.parts();
    let of = |entry: fn(&ChainPart) -> u64| parts.iter().map(entry).collect();
    let paths = parts.iter().map(|part| part.path.clone()).collect();
    (paths, of(|part| part.entries.start), of(|part| part.entries.end))
}

/// The numbers of the tables of a chain among those that were given.
pub(crate) fn part_numbers(table: &Source) -> Vec<usize> {
    table.files().map_or_else(|| vec![0], |chain| chain.parts().iter().map(|part| part.number).collect())
}
