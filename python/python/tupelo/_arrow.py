"""What the engine says in Arrow's words, for the libraries that do not speak them."""

from typing import Any

import numpy as np
import pyarrow as pa

from .errors import InvalidArgumentError

TYPE = "rntuple.type"
"""Key of the field metadata under which the C++ type name stands."""
VERSION = "rntuple.version"
"""Key of the field metadata under which the version of the C++ class stands."""
CHECKSUM = "rntuple.checksum"
"""Key of the field metadata under which ROOT's checksum of the C++ class stands."""
PROJECTED = "rntuple.projected"
"""Key of the field metadata under which the dotted path stands that a projected field shows."""
DESCRIPTION = "rntuple.description"
"""Key of the metadata under which descriptions stand: of a field, and on the schema that of the ntuple."""

MAX_DECLARED_DEPTH = 65
"""Levels of a type that can be declared: one more is an error of the format."""
MAX_DATA_DEPTH = 63
"""Levels of types that PyArrow hands over."""

_OPTIONALS = ("std::optional", "std::unique_ptr")


def type_name(field: Any) -> str:
    """The C++ type of the values of a `pyarrow.Field`; what is around them (an optional) is left out.

    Empty for untyped records and collections, and where the field does not come from an ntuple.
    """
    metadata = field.metadata or {}
    name, key = "", TYPE
    while (found := metadata.get(key.encode())) is not None:
        name, key = found.decode(), key + "/0"
    return name


def whole_type_name(field: Any) -> str:
    """The C++ type of a `pyarrow.Field`, with what is around its values.

    Empty for untyped records and collections, and where the field does not come from an ntuple.
    """
    return str((field.metadata or {}).get(TYPE.encode(), b"").decode())


def projected_from(field: Any) -> str:
    """The dotted path of what a projected field shows; empty for one that is stored."""
    path = ""
    # A list shows a collection, and its items what is in that.
    while (found := (field.metadata or {}).get(PROJECTED.encode())) is not None:
        path = found.decode()
        if not pa.types.is_large_list(field.type):
            break
        field = field.type.value_field
    # Items have no name in the paths that people write.
    return ".".join(name for name in path.split(".") if name != "_0")


def description(described: Any) -> str:
    """Of a `pyarrow.Field`, or of the ntuple if it is a `pyarrow.Schema`; empty where there is none."""
    return str((described.metadata or {}).get(DESCRIPTION.encode(), b"").decode())


def is_tuple(field: Any) -> bool:
    """Whether a struct stands for `std::pair` or `std::tuple`, whose members have numbers rather than names."""
    return type_name(field).partition("<")[0] in ("std::pair", "std::tuple")


def is_size(field: Any) -> bool:
    """Whether a field has the sizes of a collection."""
    return whole_type_name(field).startswith("ROOT::RNTupleCardinality<")


def are_alike(one: Any, other: Any) -> bool:
    """Whether fields give arrays of the same type, whatever their C++ types are called.

    Of these it depends only on which structs are tuples, and which lists are optionals.
    """
    return bool(one.type == other.type and one.nullable == other.nullable and _marks(one) == _marks(other))


def _marks(field: Any) -> list[bool]:
    kind = field.type
    below = (_marks(kind.field(index)) for index in range(kind.num_fields))
    return [is_tuple(field), is_optional_list(field), *(mark for marks in below for mark in marks)]


def is_optional_list(field: Any) -> bool:
    """Whether a list stands for a value that may be missing, of a type that has no nulls of its own in Arrow."""
    return pa.types.is_large_list(field.type) and type_name(field).partition("<")[0] in _OPTIONALS


def check_depth(name: str, kind: Any, most: int) -> None:
    """Raises `InvalidArgumentError` for a type that is nested deeper than so many levels."""
    level, depth = [kind], 0
    while level:
        depth += 1
        if depth > most:
            raise InvalidArgumentError(f"field '{name}' has types nested more than {most} deep")
        level = [one.field(index).type for one in level for index in range(one.num_fields)]


def one_batch(batches: list[Any]) -> Any:
    """Several `pyarrow.RecordBatch` of one schema, at least one, as one."""
    if len(batches) == 1:
        return batches[0]
    # Of no entries at all a table has no batch.
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    return whole


def without_nulls(array: Any) -> Any:
    """The values of an array as they lie in memory, those that are missing too."""
    if array.null_count == 0 or pa.types.is_null(array.type):
        return array
    if pa.types.is_struct(array.type):
        members = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(array.type))
    own = array.type.num_buffers
    children = [array.values] if pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type) else None
    buffers = [None, *array.buffers()[1:own]]
    return pa.Array.from_buffers(array.type, len(array), buffers, null_count=0, offset=array.offset, children=children)


def numbers(array: Any) -> np.ndarray[Any, Any]:
    """Numbers or truths as they lie in memory, those that are missing too."""
    # What pyarrow has for it loads pandas, which takes longer than most reading.
    kind, buffer = array.type, array.buffers()[1]
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(b"" if buffer is None else buffer, dtype=np.uint8)
        return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)
    dtype = np.dtype(kind.to_pandas_dtype())
    if buffer is None or len(array) == 0:
        return np.empty(0, dtype)
    found: np.ndarray[Any, Any] = np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    return found


def nulls(array: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where an array's values are missing."""
    return numbers(array.is_null())


def offsets(array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where the items of a list, or the bytes of a string, begin and end: one more than there are lists."""
    if pa.types.is_large_list(array.type):
        return numbers(array.offsets)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(array) + 1, dtype=np.int64)
    whole: np.ndarray[Any, np.dtype[np.int64]] = np.frombuffer(buffer, dtype=np.int64)
    return whole[array.offset : array.offset + len(array) + 1]


def fixed_values(array: Any) -> Any:
    """The items of a fixed-size list array, those of lists that are missing too."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def drill(field: Any, array: Any, names: list[str]) -> tuple[Any, Any]:
    """Takes ``jets.pt`` out of ``jets``: a list of structs becomes a list of what the names lead to."""
    if not names:
        return field, array
    kind = field.type
    if pa.types.is_struct(kind):
        index = kind.get_field_index(names[0])
        inner = array.flatten()[index] if array.null_count else array.field(index)
        member = kind.field(index)
        if array.null_count:
            member = member.with_nullable(True)
        return drill(member, inner, names[1:])
    mask = pa.array(nulls(array)) if array.null_count else None
    if pa.types.is_large_list(kind):
        item, values = drill(kind.value_field, array.values, names)
        wider = pa.large_list(item)
        lists = pa.LargeListArray.from_arrays(pa.array(offsets(array)), values, type=wider, mask=mask)
    else:
        item, values = drill(kind.value_field, fixed_values(array), names)
        wider = pa.list_(item, kind.list_size)
        lists = pa.FixedSizeListArray.from_arrays(values, type=wider, mask=mask)
    return pa.field(field.name, wider, field.nullable, metadata=_frame_metadata(field)), lists


def _frame_metadata(field: Any) -> dict[str, str] | None:
    """Of what is around a value that was taken out, only that it may be missing is still true."""
    return {TYPE: type_name(field)} if is_optional_list(field) else None
