"""Helpers for the Arrow schemas and arrays of the engine."""

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgumentError

TYPE = "rntuple.type"
"""Key of the field metadata with the C++ type name."""
VERSION = "rntuple.version"
"""Key of the field metadata with the version of the C++ class."""
CHECKSUM = "rntuple.checksum"
"""Key of the field metadata with ROOT's checksum of the C++ class."""
PROJECTED = "rntuple.projected"
"""Key of the field metadata with the dotted path of the source of a projected field."""
DESCRIPTION = "rntuple.description"
"""Key of the metadata with the description of a field, or of the ntuple on the schema."""

MAX_DECLARED_DEPTH = 65
"""Maximum nesting of declared types, as in the format."""
MAX_DATA_DEPTH = 63
"""Maximum nesting of types that PyArrow can export."""

_OPTIONALS = ("std::optional", "std::unique_ptr")


def type_name(field: Any) -> str:
    """The C++ type of the values of a `pyarrow.Field`, without an enclosing optional.

    Empty for untyped records and collections, and for fields that do not come from an ntuple.
    """
    metadata = field.metadata or {}
    name, key = "", TYPE
    while (found := metadata.get(key.encode())) is not None:
        name, key = found.decode(), key + "/0"
    return name


def full_type_name(field: Any) -> str:
    """The C++ type of a `pyarrow.Field`, including an enclosing optional.

    Empty for untyped records and collections, and for fields that do not come from an ntuple.
    """
    return str((field.metadata or {}).get(TYPE.encode(), b"").decode())


def projected_from(field: Any) -> str:
    """The dotted path of the source of a projected field; empty for a stored field."""
    path = ""
    # A list projects a collection, and its items project the items of that.
    while (found := (field.metadata or {}).get(PROJECTED.encode())) is not None:
        path = found.decode()
        if not pa.types.is_large_list(field.type):
            break
        field = field.type.value_field
    # Items have no name in dotted paths.
    return ".".join(name for name in path.split(".") if name != "_0")


def description(described: Any) -> str:
    """The description of a `pyarrow.Field`, or of the ntuple for a `pyarrow.Schema`; may be empty."""
    return str((described.metadata or {}).get(DESCRIPTION.encode(), b"").decode())


def is_tuple(field: Any) -> bool:
    """Whether a struct is a `std::pair` or `std::tuple`, whose members have numbers instead of names."""
    return type_name(field).partition("<")[0] in ("std::pair", "std::tuple")


def is_size(field: Any) -> bool:
    """Whether a field holds the sizes of a collection."""
    return full_type_name(field).startswith("ROOT::RNTupleCardinality<")


def have_same_layout(one: Any, other: Any) -> bool:
    """Whether fields give arrays of the same type, even if their C++ types differ.

    The C++ types matter only for which structs are tuples and which lists are optionals.
    """
    return bool(
        one.type == other.type and one.nullable == other.nullable and _layout_flags(one) == _layout_flags(other)
    )


def _layout_flags(field: Any) -> list[bool]:
    kind = field.type
    below = (_layout_flags(kind.field(index)) for index in range(kind.num_fields))
    return [is_tuple(field), is_optional_list(field), *(mark for marks in below for mark in marks)]


def is_optional_list(field: Any) -> bool:
    """Whether a list represents an optional value of a type that has no nulls in Arrow."""
    return pa.types.is_large_list(field.type) and type_name(field).partition("<")[0] in _OPTIONALS


def check_depth(name: str, kind: Any, most: int) -> None:
    """Raises `InvalidArgumentError` for a type that is nested more than ``most`` levels deep."""
    level, depth = [kind], 0
    while level:
        depth += 1
        if depth > most:
            raise InvalidArgumentError(f"field '{name}' nests types more than {most} levels deep")
        level = [one.field(index).type for one in level for index in range(one.num_fields)]


def has_bounds(kind: Any) -> bool:
    """Whether zone maps have the lowest and highest value of a type of single values."""
    return bool(pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))


def combine_batches(batches: list[Any]) -> Any:
    """Concatenates `pyarrow.RecordBatch` objects with the same schema."""
    if len(batches) == 1:
        return batches[0]
    # A table without entries has no batches.
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    return whole


def without_nulls(array: Any) -> Any:
    """The values of an array as stored, ignoring nulls."""
    if array.null_count == 0 or pa.types.is_null(array.type):
        return array
    if pa.types.is_struct(array.type):
        members = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(array.type))
    own = array.type.num_buffers
    children = [array.values] if pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type) else None
    buffers = [None, *array.buffers()[1:own]]
    return pa.Array.from_buffers(array.type, len(array), buffers, null_count=0, offset=array.offset, children=children)


def to_numbers(array: Any) -> np.ndarray[Any, Any]:
    """Numbers or booleans as stored, ignoring nulls."""
    # The method of pyarrow imports pandas, which takes longer than most reads.
    kind, buffer = array.type, array.buffers()[1]
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(b"" if buffer is None else buffer, dtype=np.uint8)
        return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)
    dtype = np.dtype(kind.to_pandas_dtype())
    if buffer is None or len(array) == 0:
        return np.empty(0, dtype)
    found: np.ndarray[Any, Any] = np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    return found


def null_mask(array: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The null mask of an array."""
    return to_numbers(array.is_null())


def offsets(array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offsets of lists or strings: one more than their number."""
    if pa.types.is_large_list(array.type):
        return to_numbers(array.offsets)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(array) + 1, dtype=np.int64)
    whole: np.ndarray[Any, np.dtype[np.int64]] = np.frombuffer(buffer, dtype=np.int64)
    return whole[array.offset : array.offset + len(array) + 1]


def fixed_values(array: Any) -> Any:
    """The items of a fixed-size list array, including those of missing lists."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def extract_subfield(field: Any, array: Any, names: list[str]) -> tuple[Any, Any]:
    """Extracts ``jets.pt`` from ``jets``: a list of structs becomes a list of the subfield."""
    if not names:
        return field, array
    kind = field.type
    if pa.types.is_struct(kind):
        index = kind.get_field_index(names[0])
        inner = array.flatten()[index] if array.null_count else array.field(index)
        member = kind.field(index)
        if array.null_count:
            member = member.with_nullable(True)
        return extract_subfield(member, inner, names[1:])
    mask = pa.array(null_mask(array)) if array.null_count else None
    if pa.types.is_large_list(kind):
        item, values = extract_subfield(kind.value_field, array.values, names)
        wider = pa.large_list(item)
        lists = pa.LargeListArray.from_arrays(pa.array(offsets(array)), values, type=wider, mask=mask)
    else:
        item, values = extract_subfield(kind.value_field, fixed_values(array), names)
        wider = pa.list_(item, kind.list_size)
        lists = pa.FixedSizeListArray.from_arrays(values, type=wider, mask=mask)
    return pa.field(field.name, wider, field.nullable, metadata=_outer_metadata(field)), lists


def _outer_metadata(field: Any) -> dict[str, str] | None:
    """The metadata of a list around an extracted subfield: only its optionality still applies."""
    return {TYPE: type_name(field)} if is_optional_list(field) else None
