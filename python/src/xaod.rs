//! ATLAS's event data model.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;
use tupelo::Error;
use tupelo_xaod::{Dangling, Derivation, EntryWise, Event, Files, Format, Origin, Selection, Values};

use crate::arrow;
use crate::error::{OrRaise, cancellable, lock, telling};
use crate::file::{File, open_options};
use crate::ntuple::Table;
use crate::options::parse_compression;
use crate::storage::{Storage, or_default};
use crate::table::Batch;
use crate::writer::FileWriter;

/// A variable of a container or object.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct AuxVariable {
    name: String,
    path: String,
    type_name: String,
    is_static: bool,
    id: usize,
}

/// A container or object.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct AuxContainer {
    name: String,
    class_name: String,
    store_class: String,
    is_object: bool,
    variables: Vec<AuxVariable>,
}

impl AuxContainer {
    fn of(container: &tupelo_xaod::Container) -> Self {
        let variable = |variable: &tupelo_xaod::Variable| AuxVariable {
            name: variable.name().to_owned(),
            path: variable.path().to_owned(),
            type_name: variable.type_name().to_owned(),
            is_static: variable.origin() == Origin::Static,
            id: variable.id(),
        };
        Self {
            name: container.name().to_owned(),
            class_name: container.class_name().to_owned(),
            store_class: container.store_class().to_owned(),
            is_object: container.is_object(),
            variables: container.variables().iter().map(variable).collect(),
        }
    }
}

/// An expression, or the only column of a batch.
#[derive(FromPyObject)]
enum Given {
    Text(String),
    Values(PyRecordBatch),
}

impl Given {
    fn values(&self) -> tupelo::Result<Values> {
        match self {
            Self::Text(text) => Ok(Values::Expression(text.parse()?)),
            Self::Values(batch) => match batch.as_ref().columns() {
                [column] => Ok(Values::Given(column.clone())),
                _ => Err(Error::invalid_argument("expected one column of values")),
            },
        }
    }
}

/// What a derived file has of an event.
#[derive(FromPyObject)]
pub(crate) struct DerivationRequest {
    containers: Option<Vec<(String, Vec<String>)>>,
    fields: Vec<String>,
    cut: Option<String>,
    thinned: Vec<(String, Given)>,
    added: Vec<(String, String, Given)>,
    start: u64,
    stop: u64,
    is_tree: Option<bool>,
    compression: Option<String>,
}

impl DerivationRequest {
    fn of<'e>(&self, event: &'e Event) -> tupelo::Result<Derivation<'e>> {
        let mut derivation =
            event.derivation().with_fields(self.fields.iter().cloned()).with_entries(self.start..self.stop);
        if let Some(containers) = &self.containers {
            derivation = derivation.with_containers(selections(event, containers)?);
        }
        if let Some(cut) = &self.cut {
            derivation = derivation.with_where(cut.parse()?);
        }
        for (container, name, values) in &self.added {
            derivation = derivation.with_variable(container, name, values.values()?);
        }
        for (container, keep) in &self.thinned {
            derivation = derivation.with_thinned(container, keep.values()?);
        }
        Ok(match &self.compression {
            Some(codec) => derivation.with_compression(parse_compression(codec)?),
            None => derivation,
        })
    }
}

fn selections(event: &Event, wanted: &[(String, Vec<String>)]) -> tupelo::Result<Vec<Selection>> {
    wanted.iter().map(|(container, variables)| event.select(container, variables)).collect()
}

/// What was written of an event.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct AuxDerived {
    entries: u64,
    warnings: Vec<String>,
    left_out: Vec<String>,
}

/// A file that has metadata of events: open, or its path.
#[derive(FromPyObject)]
enum FileSource {
    Open(Py<File>),
    Stored(String),
}

/// The containers of the entries of a table.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct AuxStores {
    inner: Event,
}

#[pymethods]
impl AuxStores {
    #[new]
    #[pyo3(signature = (table, files, *, page_checksums, memory_budget, storage=None))]
    fn new(
        py: Python<'_>,
        table: &Table,
        files: Vec<FileSource>,
        page_checksums: bool,
        memory_budget: Option<u64>,
        storage: Option<&Storage>,
    ) -> PyResult<Self> {
        let (table, storage) = (table.inner().clone(), or_default(storage));
        let files = Files::new(files.len(), move |number| match &files[number] {
            FileSource::Open(file) => Ok(file.get().inner().clone()),
            FileSource::Stored(path) => {
                open_options(path, page_checksums, memory_budget).with_storage(storage.clone()).open_file()
            }
        });
        Ok(Self { inner: cancellable(py, || Event::of(table, files))? })
    }

    /// The names of all containers and objects, sorted.
    fn names(&self) -> Vec<&str> {
        self.inner.stores().containers().iter().map(tupelo_xaod::Container::name).collect()
    }

    /// The container or object with a name.
    fn container(&self, py: Python<'_>, name: &str) -> PyResult<AuxContainer> {
        self.inner.stores().container(name).map(AuxContainer::of).or_raise(py)
    }

    /// The container and variable that a name stands for.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let (container, variable) = self.inner.stores().find(name).or_raise(py)?;
        Ok((container.name().to_owned(), variable.name().to_owned()))
    }

    /// Variables of containers, all if none is named, in a range of entries, as a `pyarrow.RecordBatch`.
    fn read<'py>(
        &self,
        py: Python<'py>,
        wanted: Vec<(String, Vec<String>)>,
        start: u64,
        stop: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = cancellable(py, || self.inner.read(&selections(&self.inner, &wanted)?, start..stop))?;
        arrow::batch(py, batch)
    }

    /// Prepares reading variables of containers entry by entry.
    fn entry_wise(&self, py: Python<'_>, wanted: Vec<(String, Vec<String>)>) -> PyResult<AuxEntries> {
        let inner = cancellable(py, || self.inner.entry_wise(selections(&self.inner, &wanted)?))?;
        Ok(AuxEntries { inner: Mutex::new(inner) })
    }

    /// What the links of a variable refer to, as the column of a `pyarrow.RecordBatch`.
    fn resolve<'py>(
        &self,
        py: Python<'py>,
        links: &str,
        variables: Vec<String>,
        start: u64,
        stop: u64,
        dangling_is_null: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dangling = if dangling_is_null { Dangling::Null } else { Dangling::Refused };
        let found = cancellable(py, || {
            let found = self.inner.resolve(links, &variables, start..stop, dangling)?;
            Ok(RecordBatch::try_from_iter_with_nullable([(links, found, true)])?)
        })?;
        arrow::batch(py, found)
    }

    /// The keys of links, and the names of their containers.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<(u32, String)>> {
        let keys = cancellable(py, || self.inner.keys())?;
        Ok(keys.iter().map(|(key, name)| (key, name.to_owned())).collect())
    }

    /// Writes a derived file.
    fn derive(
        &self,
        py: Python<'_>,
        derivation: DerivationRequest,
        file: &FileWriter,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<AuxDerived> {
        let derived = telling(py, tell, |progress| {
            let format = match derivation.is_tree {
                Some(true) => Format::Tree,
                Some(false) => Format::Ntuple,
                None => self.inner.format(),
            };
            file.with(|file| derivation.of(&self.inner)?.write(file, format, progress))
        })?;
        let derived = derived.unwrap_or_default();
        Ok(AuxDerived { entries: derived.entries, warnings: derived.warnings, left_out: derived.left_out })
    }

    /// Adds variables to the ntuple in its own file.
    fn append(&self, py: Python<'_>, derivation: DerivationRequest, file: &FileWriter) -> PyResult<()> {
        telling(py, None, |progress| file.with(|file| derivation.of(&self.inner)?.append(file, progress)))?;
        Ok(())
    }
}

/// Variables that are read entry by entry.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct AuxEntries {
    inner: Mutex<EntryWise>,
}

#[pymethods]
impl AuxEntries {
    /// The entries of the first container that are decoded together with an entry.
    fn piece(&self, py: Python<'_>, entry: u64) -> PyResult<Batch> {
        let (piece, records) = cancellable(py, || {
            let mut entries = lock(&self.inner)?;
            entries.load(entry)?;
            let (piece, values) = entries.piece(0).ok_or_else(|| Error::invalid_argument("nothing was read"))?;
            let name = entries.selections().first().map_or("", Selection::container);
            Ok((piece, RecordBatch::try_from_iter_with_nullable([(name, Arc::clone(values), false)])?))
        })?;
        Ok(Batch { entry_start: piece.start, entry_stop: piece.end, data: arrow::batch(py, records)?.unbind() })
    }
}
