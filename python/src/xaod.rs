//! ATLAS's event data model.

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use tupelo_xaod::{Dangling, Event, Origin, Selection};

use crate::arrow;
use crate::error::{OrRaise, cancellable};
use crate::file::File;
use crate::ntuple::Table;

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

/// The containers of the entries of a table.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct AuxStores {
    inner: Event,
}

#[pymethods]
impl AuxStores {
    #[new]
    fn new(table: &Table, file: Option<&File>) -> Self {
        Self { inner: Event::of(table.inner().clone(), file.map(|file| file.inner().clone())) }
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
        let batch = cancellable(py, || {
            let select = |(container, variables): &(String, Vec<String>)| self.inner.select(container, variables);
            let selections = wanted.iter().map(select).collect::<tupelo::Result<Vec<Selection>>>()?;
            self.inner.read(&selections, start..stop)
        })?;
        arrow::batch(py, batch)
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
}
