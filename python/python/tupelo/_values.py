"""Python's own values as Arrow arrays of declared types."""

from collections.abc import Iterable, Mapping, Set
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ._arrow import is_optional_list
from ._cast import check_missing, dense_union, fit_array
from ._messages import short
from .errors import InvalidArgumentError


def plain(values: Any) -> Any:
    """Values as Arrow guesses them. Raises what Arrow does."""
    try:
        return pa.array(values)
    except OverflowError:
        # Integers above 2⁶³ are not what Arrow thinks of first.
        if not all(value is None or (isinstance(value, int) and value >= 0) for value in values):
            raise
        return pa.array(values, pa.uint64())


def to_declared(values: list[Any], field: Any, path: str) -> Any:
    """One value for each entry as an array of the type of a field: records are mappings or tuples, maps are mappings or
    lists of pairs, and of the alternatives of a variant each value takes the nearest that holds it.

    Raises `InvalidArgumentError` for values that are something else.
    """
    kind = field.type
    if is_optional_list(field) and not _are_optional(values, kind):
        values = [[] if value is None else [value] for value in values]
    if pa.types.is_union(kind):
        return _variants(values, kind, path)
    if not pa.types.is_nested(kind):
        return fit_array(plain(values), field, path)
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
        # What is missing holds something all the same: what the first one does that is there.
        filler = next((inner for inner, value in zip(items, values, strict=True) if value is not None), None)
        for inner, value in zip(items, values, strict=True):
            if value is not None and len(inner) != size:
                raise InvalidArgumentError(f"field '{path}': not every list has {size} items: {short(value)}")
        if filler is None:
            return pa.nulls(len(values), kind)
        full = [filler if value is None else inner for inner, value in zip(items, values, strict=True)]
        return pa.FixedSizeListArray.from_arrays(_below(full, kind, path), size, mask=mask)
    offsets = np.zeros(len(items) + 1, dtype=np.int64)
    np.cumsum([len(inner) for inner in items], out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), _below(items, kind, path), mask=mask)


def _below(items: list[Any], kind: Any, path: str) -> Any:
    inner = kind.value_field
    return to_declared(list(chain.from_iterable(items)), inner, path)


def _items(value: Any, kind: Any, path: str) -> Any:
    """The items of a collection."""
    if isinstance(value, Mapping) and pa.types.is_struct(kind.value_type):
        return list(value.items())
    if isinstance(value, bytes | bytearray) and pa.types.is_integer(kind.value_type):
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"field '{path}': {short(value)} is no list, which the type {kind} wants")
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def _records(values: list[Any], kind: Any, path: str, mask: Any) -> Any:
    members: list[list[Any]] = [[] for _ in kind]
    names = kind.names
    for value in values:
        if value is None:
            row: list[Any] = [None] * len(names)
        elif isinstance(value, Mapping):
            if unknown := [name for name in value if name not in names]:
                raise InvalidArgumentError(f"field '{path}' has no member {short(unknown[0])}: it has {short(names)}")
            row = [value.get(name) for name in names]
        elif isinstance(value, tuple | list | np.void):
            row = list(value.item() if isinstance(value, np.void) else value)
            if len(row) != len(names):
                raise InvalidArgumentError(f"field '{path}': {short(value)} has not {len(names)} members")
        else:
            raise InvalidArgumentError(
                f"field '{path}': {short(value)} is no mapping or tuple, which a record of {short(names)} wants"
            )
        for member, item in zip(members, row, strict=True):
            member.append(item)
    # Below a record that is missing its members are.
    fields = [member.with_nullable(member.nullable or mask is not None) for member in kind]
    pairs = zip(members, fields, strict=True)
    arrays = [to_declared(items, member, f"{path}.{member.name}") for items, member in pairs]
    # Texts stay as they are.
    fields = [member.with_type(array.type) for member, array in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _variants(values: list[Any], kind: Any, path: str) -> Any:
    groups: list[list[Any]] = [[] for _ in kind]
    rows: list[list[int]] = [[] for _ in kind]
    for at, value in enumerate(values):
        index = _alternative(value, kind, path)
        groups[index].append(value)
        rows[index].append(at)
    parts = [
        [to_declared(group, one, f"{path}.{one.name}")] if group else []
        for group, one in zip(groups, kind, strict=True)
    ]
    return dense_union(kind, len(values), [[np.array(mine, dtype=np.int64)] for mine in rows], parts)


def _alternative(value: Any, kind: Any, path: str) -> int:
    """The first alternative of a variant that is nearest to a value and holds it."""
    near = sorted((distance, index) for index, one in enumerate(kind) if (distance := _distance(value, one.type)))
    for _, index in near:
        inner = kind.field(index)
        if not pa.types.is_nested(inner.type):
            if _holds(inner.type, value):
                return index
            continue
        try:
            to_declared([value], inner, path)
        except (InvalidArgumentError, pa.ArrowException, OverflowError):
            continue
        return index
    kinds = ", ".join(str(one.type) for one in kind if not pa.types.is_null(one.type))
    raise InvalidArgumentError(f"field '{path}': {short(value)} is none of {kinds}")


def _distance(value: Any, kind: Any) -> int:
    """How far a value is from a type: 1 if they are of one kind, 0 if it cannot be held."""
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
    """Whether a type of numbers holds a number, but for digits of a float."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return bool(limits.min <= value <= limits.max)
    if pa.types.is_floating(kind) and isinstance(value, int | np.integer):
        return abs(int(value)) < 2**1023 and int(float(value)) == value
    if pa.types.is_float32(kind):
        return not np.isfinite(value) or abs(value) <= float(np.finfo(np.float32).max)
    return True


def _are_optional(values: list[Any], kind: Any) -> bool:
    """Whether they are lists of at most one item each, as optionals of optionals may be given."""
    if pa.types.is_union(kind.value_type):
        return False
    return all(value is None or (isinstance(value, list) and len(value) <= 1) for value in values)
