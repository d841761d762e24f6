//! Read rules with Python functions.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::Field as ArrowField;
use pyo3::prelude::*;
use pyo3_arrow::{PyArray, PySchema};
use tupelo::Error;
use tupelo::reader::ReadRule;
use tupelo::schema::Field;

/// A read rule, by the attributes of a Python object.
#[derive(Debug, FromPyObject)]
pub(crate) struct Rule {
    type_name: String,
    /// The first and the last one.
    versions: Option<(u32, u32)>,
    checksum: Option<u32>,
    sources: Vec<String>,
    targets: PySchema,
    hides_sources: bool,
    /// Takes a list of `pyarrow.Array` and their length, and gives a list of them.
    function: Py<PyAny>,
}

/// The rule of the engine.
pub(crate) fn rule(rule: Rule) -> tupelo::Result<ReadRule> {
    let Rule { type_name, versions, checksum, sources, targets, hides_sources, function } = rule;
    let mut rule = ReadRule::new(&type_name).with_sources(sources).with_hidden_sources(hides_sources);
    if let Some((first, last)) = versions {
        rule = rule.with_versions(first..=last);
    }
    if let Some(checksum) = checksum {
        rule = rule.with_checksum(checksum);
    }
    for target in targets.into_inner().fields() {
        rule = rule.with_target(Field::try_from(target.as_ref())?);
    }
    Ok(rule.with_function(move |sources, count| {
        Python::attach(|py| {
            call(py, &function, sources, count)
                .map_err(|raised| Error::invalid_argument(raised.value(py).to_string()).caused_by(raised))
        })
    }))
}

fn call(py: Python<'_>, function: &Py<PyAny>, sources: &[ArrayRef], count: usize) -> PyResult<Vec<ArrayRef>> {
    let array = |source: &ArrayRef| -> PyResult<Py<PyAny>> {
        let field = ArrowField::new("", source.data_type().clone(), true);
        let array = PyArray::new(source.clone(), Arc::new(field));
        Ok(array.to_pyarrow(py)?.unbind())
    };
    let sources = sources.iter().map(array).collect::<PyResult<Vec<_>>>()?;
    let outputs: Vec<PyArray> = function.bind(py).call1((sources, count))?.extract()?;
    Ok(outputs.into_iter().map(|output| output.into_inner().0).collect())
}
