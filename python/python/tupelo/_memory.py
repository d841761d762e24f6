"""Memory of Arrow arrays as NumPy arrays that can be written to.

Arrow arrays are immutable, since several may share memory. What the engine decoded for one call belongs to the caller
alone, unless two of its columns share it: then it is copied.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from . import _arrow


class _Interface:
    """A buffer of numbers in NumPy's array interface. An array that is made of it keeps it alive."""

    def __init__(self, buffer: Any, dtype: np.dtype[Any], count: int, skip_bytes: int) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "data": (buffer.address + skip_bytes, False),
            "shape": (count,),
            "typestr": dtype.str,
            "version": 3,
        }


def writable_numbers(array: Any) -> np.ndarray[Any, Any]:
    """The same as `_arrow.numbers`, as an array that can be written to.

    Only for memory that nobody else reads; `shared` says of which columns that is not true.
    """
    buffer, count = array.buffers()[1], len(array)
    if pa.types.is_boolean(array.type) or buffer is None or count == 0:
        # A new array.
        return _arrow.numbers(array)
    dtype = np.dtype(array.type.to_pandas_dtype())
    skip_bytes = array.offset * dtype.itemsize
    if skip_bytes + count * dtype.itemsize > buffer.size:
        raise ValueError(f"a buffer of {buffer.size} bytes is too small for {count} numbers behind {skip_bytes} bytes")
    found: np.ndarray[Any, Any] = np.asarray(_Interface(buffer, dtype, count, skip_bytes))
    return found


def shared(columns: list[Any]) -> set[int]:
    """The columns, by number, that have numbers in the same memory as another one."""
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
    """First and last address of the numbers in an array and below it."""
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
