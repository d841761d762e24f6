//! Objects of streamer fields as Python values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use pyo3_arrow::PyArray;
use tupelo::object::{Numbers, Object, Value};

/// The objects of one streamer field.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Objects {
    inner: tupelo::reader::Objects,
}

impl From<tupelo::reader::Objects> for Objects {
    fn from(inner: tupelo::reader::Objects) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Objects {
    /// C++ class of the objects.
    #[getter]
    fn class_name(&self) -> &str {
        self.inner.class_name()
    }

    /// Decodes an object from its bytes: numbers, strings, NumPy arrays, lists, dicts, and for other classes the
    /// results of `make_object(class name, version, bases, members)` and `make_opaque(class name, bytes, reason)`.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        make_object: Bound<'py, PyAny>,
        make_opaque: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = py.detach(|| self.inner.decode(data));
        Maker { py, make_object, make_opaque, made: HashMap::new() }.value(&value)
    }
}

struct Maker<'py> {
    py: Python<'py>,
    make_object: Bound<'py, PyAny>,
    make_opaque: Bound<'py, PyAny>,
    /// Objects that several pointers refer to, which are converted once.
    made: HashMap<*const Object, Bound<'py, PyAny>>,
}

impl<'py> Maker<'py> {
    fn value(&mut self, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match value {
            // A pointer to an enclosing object would be a cycle.
            Value::Null | Value::Enclosing => Ok(py.None().into_bound(py)),
            Value::Bool(value) => value.into_bound_py_any(py),
            Value::Int(value) => value.into_bound_py_any(py),
            Value::UInt(value) => value.into_bound_py_any(py),
            Value::Float(value) => value.into_bound_py_any(py),
            Value::Text(value) => value.into_bound_py_any(py),
            Value::Bytes(value) => Ok(PyBytes::new(py, value).into_any()),
            Value::Numbers(numbers) => self.numbers(numbers),
            Value::Grid(shape, numbers) => self.numbers(numbers)?.call_method1("reshape", (PyTuple::new(py, shape)?,)),
            Value::List(list) => {
                let list = list.iter().map(|item| self.value(item)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, list)?.into_any())
            }
            Value::Map(map) => self.map(map),
            Value::Object(object) => self.object(object),
            Value::Opaque(opaque) => {
                let bytes = PyBytes::new(py, &opaque.bytes);
                self.make_opaque.call1((&opaque.class_name, bytes, &opaque.reason))
            }
        }
    }

    fn numbers(&self, numbers: &Numbers) -> PyResult<Bound<'py, PyAny>> {
        let array: ArrayRef = match numbers.clone() {
            Numbers::Bool(values) => Arc::new(BooleanArray::from(values)),
            Numbers::I8(values) => Arc::new(Int8Array::from(values)),
            Numbers::U8(values) => Arc::new(UInt8Array::from(values)),
            Numbers::I16(values) => Arc::new(Int16Array::from(values)),
            Numbers::U16(values) => Arc::new(UInt16Array::from(values)),
            Numbers::I32(values) => Arc::new(Int32Array::from(values)),
            Numbers::U32(values) => Arc::new(UInt32Array::from(values)),
            Numbers::I64(values) => Arc::new(Int64Array::from(values)),
            Numbers::U64(values) => Arc::new(UInt64Array::from(values)),
            Numbers::F32(values) => Arc::new(Float32Array::from(values)),
            Numbers::F64(values) => Arc::new(Float64Array::from(values)),
        };
        let options = PyDict::new(self.py);
        options.set_item("zero_copy_only", false)?;
        let array = Bound::new(self.py, PyArray::from_array_ref(array))?;
        let array = self.py.import("pyarrow")?.call_method1("array", (array,))?;
        array.call_method("to_numpy", (), Some(&options))
    }

    /// A dict, or a list of pairs if keys are objects or not unique, as in a `std::multimap`.
    fn map(&mut self, map: &[(Value, Value)]) -> PyResult<Bound<'py, PyAny>> {
        let pair = |(key, value): &(Value, Value)| Ok((self.value(key)?, self.value(value)?));
        let pairs = map.iter().map(pair).collect::<PyResult<Vec<_>>>()?;
        let dict = PyDict::new(self.py);
        for (key, value) in &pairs {
            if key.hash().is_err() {
                break;
            }
            dict.set_item(key, value)?;
        }
        match dict.len() == pairs.len() {
            true => Ok(dict.into_any()),
            false => Ok(PyList::new(self.py, pairs)?.into_any()),
        }
    }

    fn object(&mut self, object: &Arc<Object>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(made) = self.made.get(&Arc::as_ptr(object)) {
            return Ok(made.clone());
        }
        let (bases, members) = (PyDict::new(self.py), PyDict::new(self.py));
        for (name, base) in object.bases() {
            bases.set_item(name, self.value(base)?)?;
        }
        for (name, member) in object.members() {
            members.set_item(name, self.value(member)?)?;
        }
        let made = self.make_object.call1((object.class_name(), object.version(), bases, members))?;
        self.made.insert(Arc::as_ptr(object), made.clone());
        Ok(made)
    }
}
