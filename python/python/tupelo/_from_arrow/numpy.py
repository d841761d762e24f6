"""Conversion of Arrow arrays to NumPy arrays."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from .._base import arrow
from . import memory


def to_numpy(field: Any, array: Any) -> Any:
    """Converts a column of n entries to writable arrays, which take ownership of its memory:

    - numbers: an array of shape (n,), without a copy; booleans are copied
    - fixed-size arrays and bitsets: an array of shape (n, N)
    - records, pairs and tuples: a structured array of shape (n,)
    - strings: an object array of `str`, or `bytes` if they are not UTF-8 and for streamer fields
    - collections: an object array of NumPy arrays, even if all have the same length
    - variants: an object array of the values; None for missing values
    - optionals: a masked array for numbers, else an object array with None for missing values
    """
    kind = array.type
    if pa.types.is_null(kind):
        return _objects([None] * len(array))
    if pa.types.is_union(kind):
        return _objects(array.to_pylist())
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return array.to_numpy(zero_copy_only=False)
    if arrow.is_optional_list(field):
        ends, inner = arrow.offsets(array), _masked_to_none(to_numpy(kind.value_field, array.values))
        return _objects([inner[a] if b > a else None for a, b in pairwise(ends)])
    if not field.nullable:
        # Values below a missing parent are marked as missing too.
        return _values(arrow.without_nulls(array))
    mask, values = arrow.null_mask(array), _values(arrow.without_nulls(array))
    if values.ndim == 1 and values.dtype.kind in "biuf":
        return np.ma.MaskedArray(values, mask)
    return _objects([None if missing else value for missing, value in zip(mask, values, strict=True)])


def _values(array: Any) -> Any:
    """The same for an array without nulls."""
    kind = array.type
    if pa.types.is_struct(kind):
        members = [_masked_to_none(to_numpy(kind.field(i), array.field(i))) for i in range(kind.num_fields)]
        dtype = [(name, m.dtype, m.shape[1:]) for name, m in zip(kind.names, members, strict=True)]
        records = np.empty(len(array), dtype=dtype)
        for name, member in zip(kind.names, members, strict=True):
            records[name] = member
        return records
    if pa.types.is_large_list(kind):
        ends = arrow.offsets(array).tolist()
        inner = to_numpy(kind.value_field, array.values)
        return _objects([inner[a:b] for a, b in pairwise(ends)])
    if pa.types.is_fixed_size_list(kind):
        inner = to_numpy(kind.value_field, arrow.fixed_values(array))
        return inner.reshape(len(array), kind.list_size, *inner.shape[1:])
    return memory.writable_numbers(array)


def _objects(values: Sequence[Any]) -> Any:
    """An object array of the values."""
    objects = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def _masked_to_none(values: Any) -> Any:
    """Replaces masked values by None, as records cannot contain masked arrays."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    plain = values.data.astype(object)
    plain[np.ma.getmaskarray(values)] = None
    return plain
