"""Fields that are declared, and data that declare them."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from . import _conversion, _cpp
from ._messages import short
from .errors import InvalidArgumentError


def declared(what: Any) -> Any:
    """The `pyarrow.Schema` of a declaration.

    Raises `InvalidArgumentError` for data.
    """
    schema, tables = schema_and_data(what)
    if tables != ():
        raise InvalidArgumentError("fields are declared by types, as {'x': 'float'}; these are data")
    return _conversion.plain_schema(schema)


def read_as(what: Any) -> Any:
    """The `pyarrow.Schema` of what is to be read as other types than those on disk; None where nothing is said.

    Raises `InvalidArgumentError` for all else, and for a schema without fields.
    """
    if what is None:
        return None
    if not isinstance(what, Mapping | pa.Schema):
        raise InvalidArgumentError(f"a schema is a mapping of names to types or a pyarrow.Schema, not {short(what)}")
    if len(what) == 0:
        raise InvalidArgumentError("no field is chosen: the schema is empty; without one, everything is read as it is")
    return what if isinstance(what, pa.Schema) else _schema_of(what)


def _schema_of(types: Mapping[str, Any]) -> Any:
    return pa.schema([_cpp.field_of(name, declared) for name, declared in types.items()])


def schema_and_data(what: Any) -> tuple[Any, Any]:
    """The `pyarrow.Schema` to write and the tables that are there already."""
    if isinstance(what, pa.Schema):
        return what, ()
    if declares(what):
        return _schema_of(what), ()
    dtype_names = getattr(what, "names", None) if type(what).__name__.endswith("DType") else None
    if dtype_names:
        return pa.schema([_cpp.field_of(name, what[name]) for name in dtype_names]), ()
    if _conversion.is_stream(what):
        reader = _conversion.batches(what)
        if _conversion.says_all(reader.schema):
            return reader.schema, (pa.Table.from_batches([batch]) for batch in reader)
        what = reader.read_all()
    table = _conversion.to_table(what)
    return _conversion.tight_schema(table), (table,)


def declares(what: Any) -> bool:
    """Whether a mapping declares fields rather than giving columns."""
    return isinstance(what, Mapping) and len(what) > 0 and all(map(_is_type, what.values()))


def _is_type(value: Any) -> bool:
    """Whether a value of a mapping declares a type rather than giving data."""
    import numpy as np

    if isinstance(value, tuple):
        return len(value) == 2 and _is_type(value[0]) and isinstance(value[1], int | tuple)
    return isinstance(value, str | type | np.dtype | pa.DataType | pa.Field)
