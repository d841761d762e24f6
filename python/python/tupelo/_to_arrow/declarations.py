"""Schemas from declarations and from data."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from .._base.messages import short_repr
from ..errors import InvalidArgumentError
from . import cpp, tables


def declared_schema(what: Any) -> Any:
    """The `pyarrow.Schema` of a declaration.

    Raises `InvalidArgumentError` for data.
    """
    schema, first_entries = schema_and_data(what)
    if first_entries != ():
        raise InvalidArgumentError("expected types such as {'x': 'float'}, not data")
    return tables.normalize_schema(schema)


def target_schema(what: Any) -> Any:
    """The `pyarrow.Schema` to convert to on reading, or None.

    Raises `InvalidArgumentError` for other types and for an empty schema.
    """
    if what is None:
        return None
    if not isinstance(what, Mapping | pa.Schema):
        raise InvalidArgumentError(
            f"expected a schema as a mapping of names to types or a pyarrow.Schema, not {short_repr(what)}"
        )
    if len(what) == 0:
        raise InvalidArgumentError("the schema is empty; omit it to read all fields with their stored types")
    return what if isinstance(what, pa.Schema) else _schema_of(what)


def _schema_of(types: Mapping[str, Any]) -> Any:
    return pa.schema([cpp.field_of(name, declared) for name, declared in types.items()])


def schema_and_data(what: Any) -> tuple[Any, Any]:
    """The `pyarrow.Schema` to write, and the tables of the first entries."""
    if isinstance(what, pa.Schema):
        return what, ()
    if is_declaration(what):
        return _schema_of(what), ()
    dtype_names = getattr(what, "names", None) if type(what).__name__.endswith("DType") else None
    if dtype_names:
        return pa.schema([cpp.field_of(name, what[name]) for name in dtype_names]), ()
    if tables.is_stream(what):
        reader = tables.batches(what)
        if tables.has_type_names(reader.schema):
            return reader.schema, (pa.Table.from_batches([batch]) for batch in reader)
        what = reader.read_all()
    table = tables.to_table(what)
    return tables.inferred_nullability(table), (table,)


def is_declaration(what: Any) -> bool:
    """Whether a mapping declares fields instead of giving columns."""
    return isinstance(what, Mapping) and len(what) > 0 and all(map(_is_type, what.values()))


def _is_type(value: Any) -> bool:
    """Whether a value of a mapping declares a type instead of giving data."""
    import numpy as np

    if isinstance(value, tuple):
        return len(value) == 2 and _is_type(value[0]) and isinstance(value[1], int | tuple)
    return isinstance(value, str | type | np.dtype | pa.DataType | pa.Field)
