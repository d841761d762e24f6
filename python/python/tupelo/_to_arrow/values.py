"""Conversion of Python values to Arrow arrays of declared types."""

from collections.abc import Iterable, Mapping, Set
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from .._base.arrow import is_optional_list
from .._base.messages import short_repr
from ..errors import InvalidArgumentError
from .cast import cast_array, check_missing, dense_union


def to_arrow(values: Any) -> Any:
    """Values with the type that Arrow infers. Raises the errors of Arrow."""
    try:
        return pa.array(values)
    except OverflowError:
        # Arrow does not infer uint64 for integers above 2⁶³.
        if not all(value is None or (isinstance(value, int) and value >= 0) for value in values):
            raise
        return pa.array(values, pa.uint64())


def to_arrow_values(values: list[Any], field: Any, path: str) -> Any:
    """One value for each entry as an array of the type of a field: records may be mappings or tuples, maps mappings or
    lists of pairs. Values of a variant take the closest alternative that can hold them.

    Raises `InvalidArgumentError` for other values.
    """
    kind = field.type
    if is_optional_list(field) and not _are_optional(values, kind):
        values = [[] if value is None else [value] for value in values]
    if pa.types.is_union(kind):
        return _variants(values, kind, path)
    if not pa.types.is_nested(kind):
        return cast_array(to_arrow(values), field, path)
    missing = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    if missing.any() and is_optional_list(field):
        values, missing = [[] if value is None else value for value in values], np.zeros(len(values), dtype=bool)
    check_missing(int(missing.sum()), field, path)
    mask = pa.array(missing) if missing.any() else None
    if pa.types.is_struct(kind):
        return _records(values, kind, path, mask)
    items = [() if value is None else _items(value, kind, path) for value in values]
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        # Missing arrays need values too: those of the first one that is not missing.
        filler = next((inner for inner, value in zip(items, values, strict=True) if value is not None), None)
        for inner, value in zip(items, values, strict=True):
            if value is not None and len(inner) != size:
                raise InvalidArgumentError(f"field '{path}': expected a list of {size} items, not {short_repr(value)}")
        if filler is None:
            return pa.nulls(len(values), kind)
        full = [filler if value is None else inner for inner, value in zip(items, values, strict=True)]
        return pa.FixedSizeListArray.from_arrays(_item_field(full, kind, path), size, mask=mask)
    offsets = np.zeros(len(items) + 1, dtype=np.int64)
    np.cumsum([len(inner) for inner in items], out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), _item_field(items, kind, path), mask=mask)


def _item_field(items: list[Any], kind: Any, path: str) -> Any:
    inner = kind.value_field
    return to_arrow_values(list(chain.from_iterable(items)), inner, path)


def _items(value: Any, kind: Any, path: str) -> Any:
    """The items of a collection."""
    if isinstance(value, Mapping) and pa.types.is_struct(kind.value_type):
        return list(value.items())
    if isinstance(value, bytes | bytearray) and pa.types.is_integer(kind.value_type):
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"field '{path}': expected a list for the type {kind}, not {short_repr(value)}")
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def _records(values: list[Any], kind: Any, path: str, mask: Any) -> Any:
    members: list[list[Any]] = [[] for _ in kind]
    names = kind.names
    for value in values:
        if value is None:
            record: list[Any] = [None] * len(names)
        elif isinstance(value, Mapping):
            if unknown := [name for name in value if name not in names]:
                raise InvalidArgumentError(
                    f"field '{path}': unknown member {short_repr(unknown[0])}: expected {short_repr(names)}"
                )
            record = [value.get(name) for name in names]
        elif isinstance(value, tuple | list | np.void):
            record = list(value.item() if isinstance(value, np.void) else value)
            if len(record) != len(names):
                raise InvalidArgumentError(f"field '{path}': expected {len(names)} members in {short_repr(value)}")
        else:
            raise InvalidArgumentError(
                f"field '{path}': expected a mapping or tuple with {short_repr(names)}, not {short_repr(value)}"
            )
        for member, item in zip(members, record, strict=True):
            member.append(item)
    # The members of a missing record are missing.
    fields = [member.with_nullable(member.nullable or mask is not None) for member in kind]
    pairs = zip(members, fields, strict=True)
    arrays = [to_arrow_values(items, member, f"{path}.{member.name}") for items, member in pairs]
    # Strings keep their type.
    fields = [member.with_type(array.type) for member, array in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _variants(values: list[Any], kind: Any, path: str) -> Any:
    groups: list[list[Any]] = [[] for _ in kind]
    indices: list[list[int]] = [[] for _ in kind]
    for at, value in enumerate(values):
        index = _matching_alternative(value, kind, path)
        groups[index].append(value)
        indices[index].append(at)
    parts = [
        [to_arrow_values(group, one, f"{path}.{one.name}")] if group else []
        for group, one in zip(groups, kind, strict=True)
    ]
    return dense_union(kind, len(values), [[np.array(mine, dtype=np.int64)] for mine in indices], parts)


def _matching_alternative(value: Any, kind: Any, path: str) -> int:
    """The closest alternative of a variant that can hold a value."""
    near = sorted((distance, index) for index, one in enumerate(kind) if (distance := _distance(value, one.type)))
    for _, index in near:
        inner = kind.field(index)
        if not pa.types.is_nested(inner.type):
            if _holds(inner.type, value):
                return index
            continue
        try:
            to_arrow_values([value], inner, path)
        except (InvalidArgumentError, pa.ArrowException, OverflowError):
            continue
        return index
    kinds = ", ".join(str(one.type) for one in kind if not pa.types.is_null(one.type))
    raise InvalidArgumentError(f"field '{path}': expected a value of {kinds}, not {short_repr(value)}")


def _distance(value: Any, kind: Any) -> int:
    """Distance of a value from a type: 1 if they match, 0 if the type cannot hold it."""
    if value is None:
        return int(pa.types.is_null(kind))
    if isinstance(value, bool | np.bool_):
        return int(pa.types.is_boolean(kind))
    if isinstance(value, int | np.integer):
        return 1 if pa.types.is_integer(kind) else 2 * int(pa.types.is_floating(kind))
    if isinstance(value, float | np.floating):
        return int(pa.types.is_floating(kind))
    if isinstance(value, str):
        return int(pa.types.is_large_string(kind))
    is_list = pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if isinstance(value, Mapping):
        return 1 if pa.types.is_struct(kind) else 2 * int(is_list)
    if isinstance(value, tuple):
        return 1 if pa.types.is_struct(kind) else 2 * int(is_list)
    if isinstance(value, Iterable | Set):
        return 1 if is_list else 2 * int(pa.types.is_struct(kind))
    return 0


def _holds(kind: Any, value: Any) -> bool:
    """Whether a numeric type can hold a number, except for digits of a float."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return bool(limits.min <= value <= limits.max)
    if pa.types.is_floating(kind) and isinstance(value, int | np.integer):
        return abs(int(value)) < 2**1023 and int(float(value)) == value
    if pa.types.is_float32(kind):
        return not np.isfinite(value) or abs(value) <= float(np.finfo(np.float32).max)
    return True


def _are_optional(values: list[Any], kind: Any) -> bool:
    """Whether values are lists of at most one item, as for optionals of optionals."""
    if pa.types.is_union(kind.value_type):
        return False
    return all(value is None or (isinstance(value, list) and len(value) <= 1) for value in values)
