"""Types of HDF5 as those of Arrow."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import UnsupportedError

FORBIDDEN = re.compile(r"[./\\ \x00-\x1f\x7f-\x9f]")
"""Characters that names of fields cannot have."""


@dataclass(frozen=True)
class Type:
    """How values are stored: as an Arrow type, and the function that makes an array of one-dimensional values."""

    arrow: Any
    convert: Callable[[Any], Any]
    bytes: int
    """Memory of a value, as far as it is known."""
    fixed: int
    """The part of it that all values take, whatever their length."""
    is_variable: bool = False
    """Whether values may have any length."""


class Types:
    """The types of the datasets of a file."""

    def __init__(self, h5py: Any) -> None:
        """``h5py`` is the module."""
        self._h5py = h5py
        self.enums: dict[str, list[str]] = {}
        """The labels of enums, which an ntuple does not have, by the path of the values."""

    def of(self, dtype: Any, path: str) -> Type:
        """The type of values of a NumPy type, with what h5py knows of it."""
        h5py = self._h5py
        if dtype.subdtype is not None:
            base, shape = dtype.subdtype
            return arrays(self.of(base, path), shape, path)
        if dtype.names is not None:
            return _records({name: self.of(dtype.fields[name][0], f"{path}.{name}") for name in dtype.names}, dtype)
        if (text := h5py.check_string_dtype(dtype)) is not None:
            return Type(pa.large_string(), _strings, max(dtype.itemsize, 32), 8, text.length is None)
        if (base := h5py.check_vlen_dtype(dtype)) is not None:
            return _lists(self.of(base, path), base)
        if h5py.check_ref_dtype(dtype) is None and dtype.kind in "biuf" and dtype.itemsize <= 8:
            native = dtype.newbyteorder("=")
            if (labels := h5py.check_enum_dtype(dtype)) is not None:
                native = np.dtype(native.str)
                self.enums[path] = list(labels)
            kind = pa.from_numpy_dtype(native)
            size = dtype.itemsize
            return Type(kind, lambda values: pa.array(np.ascontiguousarray(values, dtype=native), kind), size, size)
        what = (
            f"{path}: an ntuple cannot store the HDF5 type {dtype}; exclude= leaves it out, and dataset= chooses others"
        )
        raise UnsupportedError(what)


def _records(members: dict[str, Type], dtype: Any) -> Type:
    """The type of compound values."""
    fields = [pa.field(FORBIDDEN.sub("_", name), one.arrow, nullable=False) for name, one in members.items()]

    def convert(values: Any) -> Any:
        arrays = [one.convert(values[name]) for name, one in members.items()]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    types = members.values()
    fixed, is_variable = sum(one.fixed for one in types), any(one.is_variable for one in types)
    return Type(pa.struct(fields), convert, max(dtype.itemsize, sum(one.bytes for one in types)), fixed, is_variable)


def arrays(item: Type, shape: tuple[int, ...], path: str) -> Type:
    """The type of fixed arrays of values."""
    if 0 in shape:
        raise UnsupportedError(f"{path}: an ntuple cannot store arrays of no items")
    if not shape:
        return item
    kinds = [item.arrow]
    for size in reversed(shape):
        if size > np.iinfo(np.int32).max:
            raise UnsupportedError(f"{path}: an ntuple cannot store arrays of {size} items from HDF5")
        kinds.append(pa.list_(pa.field("item", kinds[-1], nullable=False), size))

    def convert(values: Any) -> Any:
        array = item.convert(values.reshape(-1))
        for kind in kinds[1:]:
            array = pa.FixedSizeListArray.from_arrays(array, type=kind)
        return array

    return Type(kinds[-1], convert, item.bytes * prod(shape), item.fixed * prod(shape), item.is_variable)


def _lists(item: Type, base: Any) -> Type:
    """The type of lists of values."""
    kind = pa.large_list(pa.field("item", item.arrow, nullable=False))

    def convert(values: Any) -> Any:
        offsets = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum([len(value) for value in values], out=offsets[1:])
        # Those that were never written are empty, and of no type.
        parts = [value for value in values if len(value)]
        items = np.concatenate(parts) if parts else np.empty(0, dtype=base)
        return pa.LargeListArray.from_arrays(pa.array(offsets), item.convert(items), type=kind)

    return Type(kind, convert, max(item.bytes * 16, 64), 8, True)


def _strings(values: Any) -> Any:
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    return pa.array(texts, pa.large_string())
