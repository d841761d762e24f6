"""The memory of Arrow arrays as writable NumPy arrays.

Arrow arrays are immutable because they may share memory. The caller owns what the engine decoded for one call. Columns
that share memory are copied.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from .._base import arrow


class _Interface:
    """A buffer of numbers with NumPy's array interface. Arrays created from it keep it alive."""

    def __init__(self, buffer: Any, dtype: np.dtype[Any], count: int, skip_bytes: int) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "data": (buffer.address + skip_bytes, False),
            "shape": (count,),
            "typestr": dtype.str,
            "version": 3,
        }


def writable_numbers(array: Any) -> np.ndarray[Any, Any]:
    """The same as `arrow.to_numbers`, as a writable array.

    Only for memory that is not shared; see `sharing_columns`.
    """
    buffer, count = array.buffers()[1], len(array)
    if pa.types.is_boolean(array.type) or buffer is None or count == 0:
        # A new array.
        return arrow.to_numbers(array)
    dtype = np.dtype(array.type.to_pandas_dtype())
    skip_bytes = array.offset * dtype.itemsize
    if skip_bytes + count * dtype.itemsize > buffer.size:
        raise ValueError(f"a buffer of {buffer.size} bytes is too small for {count} numbers at byte {skip_bytes}")
    found: np.ndarray[Any, Any] = np.asarray(_Interface(buffer, dtype, count, skip_bytes))
    return found


def sharing_columns(columns: list[Any]) -> set[int]:
    """The numbers of the columns that share memory with another one."""
    places = [(*place, number) for number, column in enumerate(columns) for place in _places(column)]
    places.sort()
    found: set[int] = set()
    end, last = 0, 0
    for start, stop, number in places:
        if start < end:
            found |= {last, number}
        if stop > end:
            end, last = stop, number
    return found


def _places(array: Any) -> Iterator[tuple[int, int]]:
    """Address ranges of the numbers in an array and its children."""
    kind = array.type
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        for index in range(kind.num_fields):
            yield from _places(array.field(index))
    elif pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _places(array.values)
    elif pa.types.is_primitive(kind) and (buffer := array.buffers()[1]) is not None and len(array) > 0:
        width = kind.bit_width
        first = array.offset * width // 8
        yield buffer.address + first, buffer.address + first + -(-len(array) * width // 8)
