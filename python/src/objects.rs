//! Objects of streamer fields as Python values, and histograms that are filled.

pub(crate) mod filling;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3_arrow::PyArray;
use tupelo::object::{Numbers, Object, Value};
use tupelo::{Error, StreamerInfos};

use crate::error::OrRaise;

/// The objects of one streamer field.
#[pyclass(frozen, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Objects {
    inner: tupelo::reader::Objects,
}

/// Python objects of decoded values; see [`Objects::decode`].
pub(crate) fn made<'py>(
    py: Python<'py>,
    values: &[Value],
    make_object: Bound<'py, PyAny>,
    make_opaque: Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut maker = Maker { py, make_object, make_opaque, made: HashMap::new() };
    values.iter().map(|value| maker.value(value)).collect()
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
        to_python(&value, make_object, make_opaque)
    }
}

/// A decoded object, as [`Objects::decode`] returns it.
pub(crate) fn to_python<'py>(
    value: &Value,
    make_object: Bound<'py, PyAny>,
    make_opaque: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    Maker { py: make_object.py(), make_object, make_opaque, made: HashMap::new() }.value(value)
}

/// An object of a class with a known layout, from the values of its members: None, numbers, strings, `pyarrow.Array`s of
/// numbers, lists, and pairs of class name and members.
pub(crate) fn of_members(class_name: &str, members: &Bound<'_, PyDict>, infos: &StreamerInfos) -> PyResult<Object> {
    let py = members.py();
    let members = members.iter().map(|(name, value)| Ok((name.extract()?, to_value(&value, infos)?)));
    let members = members.collect::<PyResult<HashMap<String, Value>>>()?;
    Object::new(class_name, members, infos).map_err(Error::from).or_raise(py)
}

fn to_value(value: &Bound<'_, PyAny>, infos: &StreamerInfos) -> PyResult<Value> {
    Ok(if value.is_none() {
        Value::Null
    } else if let Ok(value) = value.cast::<PyBool>() {
        Value::Bool(value.is_true())
    } else if value.is_instance_of::<PyInt>() {
        Value::Int(value.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        Value::Float(value.extract()?)
    } else if value.is_instance_of::<PyString>() {
        Value::Text(value.extract()?)
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Value::Bytes(bytes.as_bytes().to_vec())
    } else if let Ok(list) = value.cast::<PyList>() {
        Value::List(list.iter().map(|item| to_value(&item, infos)).collect::<PyResult<_>>()?)
    } else if let Ok((class_name, members)) = value.extract::<(String, Bound<'_, PyDict>)>() {
        Value::Object(Arc::new(of_members(&class_name, &members, infos)?))
    } else {
        let (array, _) = value.extract::<PyArray>()?.into_inner();
        let what = || PyTypeError::new_err(format!("an array of {} is not an array of numbers", array.data_type()));
        Value::Numbers(to_numbers(&array).ok_or_else(what)?)
    })
}

fn to_numbers(array: &ArrayRef) -> Option<Numbers> {
    macro_rules! values {
        ($variant:ident, $type:ty) => {
            Numbers::$variant(array.as_primitive::<$type>().values().to_vec())
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => values!(I8, Int8Type),
        DataType::Int16 => values!(I16, Int16Type),
        DataType::Int32 => values!(I32, Int32Type),
        DataType::Int64 => values!(I64, Int64Type),
        DataType::Float32 => values!(F32, Float32Type),
        DataType::Float64 => values!(F64, Float64Type),
        _ => return None,
    })
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
            Value::Null | Value::Enclosing | Value::Whole => Ok(py.None().into_bound(py)),
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
