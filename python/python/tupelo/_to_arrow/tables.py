"""Conversion of data to Arrow for writing."""

import sys
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _core
from .._base.arrow import MAX_DATA_DEPTH, MAX_DECLARED_DEPTH, TYPE, check_depth, is_optional_list
from .._base.checks import check_name
from .._base.messages import short_repr
from ..errors import Error, InvalidArgumentError
from .cast import LISTS, cast_table, list_view_to_list, text_of, trim
from .values import to_arrow, to_arrow_values

_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, ValueError, OverflowError)


class NotAppendable:
    """Data that can only be written to a file of their own, by their method ``write``."""


def is_stream(data: Any) -> bool:
    """Whether data are an Arrow stream and not a table, data frame or Awkward array."""
    is_frame = isinstance(data, pa.Table) or _is_pandas(data) or _is_awkward(data)
    return hasattr(data, "__arrow_c_stream__") and not is_frame


def batches(data: Any) -> Any:
    """The `pyarrow.RecordBatchReader` of a stream.

    Raises `InvalidArgumentError` if the stream has no named columns.
    """
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        raise _no_named_columns_error(data, error) from error


def has_type_names(schema: Any) -> bool:
    """Whether a schema comes from an ntuple, so that its nullability is intended."""
    return len(schema) > 0 and all(TYPE.encode() in (field.metadata or {}) for field in schema)


def to_table(data: Any, schema: Any = None) -> Any:
    """Data as a `pyarrow.Table` with one column per field; a schema gives the types of Python values.

    Accepts mappings of names to columns (NumPy arrays, whose further dimensions become fixed-size arrays, Awkward
    arrays, Arrow arrays, pandas series, lists), Awkward records, NumPy structured arrays, pandas data frames, and
    objects with ``__arrow_c_stream__`` or ``__arrow_c_array__``.

    Raises `InvalidArgumentError` for other data and for columns of different lengths.
    """
    if isinstance(data, pa.Table):
        return _without_views(data)
    if _is_awkward(data):
        return _table_from_awkward(data)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return _table({name: data[name] for name in data.dtype.names}, schema)
    if _is_pandas(data):
        return _table_from_pandas(data, schema)
    if isinstance(data, Mapping) and not hasattr(data, "__arrow_c_stream__"):
        return _table(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return _without_views(batches(data).read_all())
    if hasattr(data, "__arrow_c_array__"):
        try:
            return _without_views(pa.Table.from_batches([pa.record_batch(data)]))
        except pa.ArrowInvalid as error:
            raise _no_named_columns_error(data, error) from error
    if isinstance(data, NotAppendable):
        raise InvalidArgumentError(f"{data!r} cannot be appended; write it to a new file: data.write('out.root')")
    raise _no_named_columns_error(data)


def to_batch(parts: Iterable[Any]) -> Any:
    """The columns of tables, which have the same length, as one `pyarrow.RecordBatch` of types that ntuples have."""
    columns, fields = [], []
    for table in parts:
        schema = normalize_schema(inferred_nullability(table))
        for chunked, column in zip(cast_table(table, schema).combine_chunks().columns, schema, strict=True):
            columns.append(chunked.chunk(0) if chunked.num_chunks else pa.array([], chunked.type))
            fields.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _no_named_columns_error(data: Any, error: Exception | None = None) -> InvalidArgumentError:
    kind = type(data).__name__
    if error is not None and "non-struct type" not in str(error):
        return InvalidArgumentError(f"data of type {kind} cannot be read: {text_of(error)}")
    name = getattr(data, "name", None)
    example = short_repr(name if isinstance(name, str) and name else "x")
    return InvalidArgumentError(
        f"data of type {kind} have no named columns; expected a dict of columns, such as {{{example}: data}}, "
        "an Awkward array of records, a data frame or an Arrow table"
    )


def inferred_nullability(table: Any) -> Any:
    """The schema of a table, nullable only if values are missing: other libraries mark all fields nullable."""
    for field in table.schema:
        check_depth(field.name, field.type, MAX_DATA_DEPTH)
    columns = [
        pa.chunked_array([trim(chunk) for chunk in column.chunks], field.type)
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return _core.tighten(pa.Table.from_arrays(columns, schema=table.schema))


def normalize_schema(schema: Any) -> Any:
    """A schema in the Arrow types of reading: large lists and strings, maps as lists, no dictionaries."""
    for field in schema:
        check_depth(field.name, field.type, MAX_DECLARED_DEPTH)
    return pa.schema([_normalize_field(field) for field in schema], metadata=schema.metadata)


def _normalize_field(field: Any) -> Any:
    kind, metadata = field.type, field.metadata
    while pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_map(kind):
        (name,) = _core.type_names(pa.schema([pa.field(field.name, kind, nullable=False)]))
        metadata = metadata or {TYPE: name}
        pair = [_normalize_field(kind.key_field.with_name("key")), _normalize_field(kind.item_field.with_name("value"))]
        kind = pa.large_list(pa.field("item", pa.struct(pair), nullable=False))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_normalize_field(member) for member in kind])
    elif pa.types.is_fixed_size_list(kind):
        kind = pa.list_(_normalize_field(kind.value_field), kind.list_size)
    elif any(test(kind) for test in LISTS):
        kind = pa.large_list(_normalize_field(kind.value_field))
    elif pa.types.is_string(kind) or pa.types.is_string_view(kind):
        kind = pa.large_string()
    elif pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        kind = pa.large_binary()
    return pa.field(field.name, kind, field.nullable, metadata=metadata)


def _is_awkward(data: Any) -> bool:
    awkward = sys.modules.get("awkward")
    return awkward is not None and isinstance(data, awkward.Array | awkward.Record)


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _table(columns: Mapping[Any, Any], schema: Any = None) -> Any:
    if not columns:
        raise InvalidArgumentError("no columns: an ntuple needs at least one field")
    wanted = {} if schema is None else {field.name: field for field in schema}
    arrays = {}
    for name, column in columns.items():
        check_name(name, "a field")
        arrays[name] = _column(name, column, wanted.get(name))
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
        raise InvalidArgumentError(f"the columns have different lengths: {text}")
    for name, array in arrays.items():
        check_depth(name, array.type, MAX_DECLARED_DEPTH)
    fields = [field for field, _ in map(_mark_tuples, arrays, arrays.values())]
    return _without_views(pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields)))


def _without_views(table: Any) -> Any:
    """Converts list views to lists."""
    for index, field in enumerate(table.schema):
        if pa.types.is_list_view(field.type) or pa.types.is_large_list_view(field.type):
            column = pa.chunked_array([list_view_to_list(chunk) for chunk in table.column(index).chunks])
            table = table.set_column(index, field.with_type(column.type), column)
    return table


def _table_from_awkward(data: Any) -> Any:
    import awkward as ak

    names = ak.fields(data)
    if isinstance(data, ak.Record) or not names or ak.is_tuple(data) or data.layout.is_option:
        raise InvalidArgumentError(
            f"expected an Awkward array of records with named fields, not one of type {data.type}"
        )
    return _table({name: data[name] for name in names})


def _table_from_pandas(data: Any, schema: Any) -> Any:
    """A table of the columns, followed by the levels of the index, see `_index_levels`."""
    levels = _index_levels(data, schema)
    try:
        table = pa.Table.from_pandas(data, preserve_index=False)
        for index, kind in enumerate(data.dtypes):
            if _is_numpy_float(kind):
                values = _from_numpy(data.iloc[:, index].to_numpy())
                table = table.set_column(index, pa.field(table.field(index).name, values.type), values)
    except _ARROW_ERRORS as error:
        for index, name in enumerate(data.columns):
            # The error of a single column is clearer.
            _column(str(name), data.iloc[:, index], None)
        raise InvalidArgumentError(f"the data frame cannot be written: {text_of(error)}") from error
    for name, level in levels.items():
        table = table.append_column(name, _column(name, level, None))
    return table.replace_schema_metadata(None)


def _index_levels(data: Any, schema: Any) -> dict[str, Any]:
    """The levels of the index of a data frame by name; unnamed ones have the names that ``reset_index`` gives them.

    A default index is left out. Raises `InvalidArgumentError` for names of columns, and for unnamed levels that are not
    in the schema.
    """
    index, levels = data.index, {}
    taken = set(map(str, data.columns))
    if _is_default(index, None if schema is None else set(schema.names) - taken):
        return {}
    for number, given in enumerate(index.names):
        name = str(given if given is not None else "index" if index.nlevels == 1 else f"level_{number}")
        is_undeclared = given is None and schema is not None and name not in schema.names
        if is_undeclared or name in taken:
            why = "is not declared" if is_undeclared else "exists already"
            raise InvalidArgumentError(
                f"the data frame cannot be written: its index would be a column '{name}', which {why}; leave the index "
                "out with reset_index(drop=True), or rename it with rename_axis"
            )
        taken.add(name)
        levels[name] = index.get_level_values(number)
    return levels


def _is_default(index: Any, free: Set[str] | None) -> bool:
    """Whether an index has no name and only numbers the entries.

    ``free`` contains the declared names that the data frame lacks. If ``index`` is not one of them, a range may start
    anywhere: the data frame may be a later part of the entries. Without a declaration it starts at 0, since selections
    of pandas have ranges too.
    """
    if not isinstance(index, sys.modules["pandas"].RangeIndex) or index.name is not None or index.step != 1:
        return False
    return index.start == 0 if free is None else "index" not in free


def _is_numpy_float(kind: Any) -> bool:
    """Whether a pandas column has NumPy floats, where NaN is a value. In other columns NaN means missing."""
    return isinstance(kind, np.dtype) and kind.kind == "f"


def _column(name: str, column: Any, want: Any) -> Any:
    """One column as an Arrow array; Python values are converted to the wanted type."""
    try:
        return to_array(column, want)
    except InvalidArgumentError as error:
        if str(error).startswith(f"field '{name}"):
            raise
        raise InvalidArgumentError(f"column '{name}' cannot be written: {error}") from error.__cause__


def to_array(values: Any, want: Any = None) -> Any:
    """One value for each entry as an Arrow array; Python values are converted to the type of the field.

    Raises `InvalidArgumentError` for values that cannot be converted.
    """
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if isinstance(values, str | bytes | type):
            raise InvalidArgumentError("it is a single string or type; expected one value for each entry")
        if isinstance(values, Mapping | Set):
            raise InvalidArgumentError(f"it is a {type(values).__name__}; expected one value for each entry")
        if _is_awkward(values):
            return _from_awkward(values)
        if isinstance(values, np.ndarray):
            return _from_numpy(values, want)
        if _is_numpy_float(getattr(values, "dtype", None)) and hasattr(values, "to_numpy"):
            return _from_numpy(values.to_numpy())
        if want is not None and pa.types.is_nested(want.type) and str(getattr(values, "dtype", "")) == "object":
            return _from_objects(values.tolist(), want)
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return _from_objects(values, want)
    except pa.ArrowNotImplementedError as error:
        kind = getattr(values, "dtype", None) or getattr(values, "type", None) or type(values).__name__
        raise _unsupported_error(str(kind), error) from error
    except Error:
        raise
    except (*_ARROW_ERRORS, RuntimeError) as error:
        if not isinstance(values, Iterable):
            raise _single_value_error(values) from error
        if "with type complex" in str(error):
            raise _unsupported_error("complex", error) from error
        # Awkward raises RuntimeError for invalid strings.
        raise InvalidArgumentError(text_of(error)) from error


def _unsupported_error(kind: str, error: Exception) -> InvalidArgumentError:
    advice = "write the real and the imaginary part as two columns" if "complex" in kind else "convert them first"
    if "complex" not in kind and "numpy type" not in (reason := text_of(error)):
        # Of a type of NumPy, Arrow only says its number.
        advice += f" ({reason})"
    return InvalidArgumentError(
        f"expected real numbers, booleans, strings, or lists or records of them, not values of type {kind}; {advice}"
    )


def _single_value_error(value: Any) -> InvalidArgumentError:
    example = f", such as [{short_repr(value)}]" if np.isscalar(value) else ""
    return InvalidArgumentError(
        f"it is a single value of type {type(value).__name__}; expected an array or a list with one value for each "
        f"entry{example}"
    )


def _from_awkward(values: Any) -> Any:
    import awkward as ak

    return ak.to_arrow(values, list_to32=False, extensionarray=False)


def _from_objects(values: Any, want: Any) -> Any:
    """An Arrow array of Python values. Given the type, Arrow would truncate 1.5 to an integer; without it, Arrow would
    convert tuples to lists.
    """
    if want is None or not pa.types.is_nested(want.type):
        return to_arrow(values)
    if is_optional_list(want) or any(kind in str(want.type) for kind in _BY_VALUE):
        return to_arrow_values(list(values), want, want.name)
    try:
        return to_arrow(values)
    except (*_ARROW_ERRORS, RuntimeError):
        # Gives the position of errors and supports sets and large integers.
        return to_arrow_values(list(values), want, want.name)


_BY_VALUE = "struct<", "union<", "fixed_size_list<"
"""Types that Arrow cannot infer from values."""


def _from_numpy(values: Any, want: Any = None) -> Any:
    if values.ndim == 0:
        raise _single_value_error(values[()])
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.ndim > 1:
        size = values.shape[1]
        inner = _from_numpy(values.reshape(values.shape[0] * size, *values.shape[2:]))
        return pa.FixedSizeListArray.from_arrays(inner, size)
    if values.dtype.names is not None:
        return pa.StructArray.from_arrays(
            [_from_numpy(values[n]) for n in values.dtype.names], list(values.dtype.names)
        )
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    if values.dtype.kind == "O":
        return _from_objects(values.tolist(), want)
    return pa.array(values)


def _mark_tuples(name: str, array: Any) -> tuple[Any, Any]:
    """The field of a column, with the C++ type of a tuple for structs that Awkward creates from tuples."""
    return _mark_tuple_field(pa.field(name, array.type)), array


def _mark_tuple_field(field: Any) -> Any:
    kind, metadata = field.type, field.metadata
    if not pa.types.is_nested(kind):
        return field
    if pa.types.is_struct(kind):
        members = [_mark_tuple_field(member) for member in kind]
        kind = pa.struct(members)
        if members and kind.names == [str(i) for i in range(len(members))] and metadata is None:
            types = _core.type_names(
                pa.schema([m.with_nullable(m.nullable and not _has_no_metadata(m)) for m in members])
            )
            if all(types):
                metadata = {TYPE: f"std::tuple<{','.join(types)}>"}
    elif pa.types.is_large_list(kind):
        kind = pa.large_list(_mark_tuple_field(kind.value_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_mark_tuple_field(kind.value_field))
    elif pa.types.is_fixed_size_list(kind):
        kind = pa.list_(_mark_tuple_field(kind.value_field), kind.list_size)
    return pa.field(field.name, kind, field.nullable, metadata=metadata)


def _has_no_metadata(field: Any) -> bool:
    return not (field.metadata or {})
