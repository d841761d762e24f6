"""Awkward layouts from Arrow arrays, in the form that uproot gives them."""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from .._base import arrow
from .._from_arrow import memory


class RefusedError(Exception):
    """The reason why a branch or field is left to uproot."""


_INDEXES = {"i32": np.int32, "u32": np.uint32, "i64": np.int64}


def numbers(array: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers as a writable array of exactly this type; fixed-size lists become dimensions.

    Raises `RefusedError` if the numbers have another type.
    """
    sizes: tuple[int, ...] = ()
    length = len(array)
    while pa.types.is_fixed_size_list(array.type):
        sizes += (array.type.list_size,)
        array = arrow.fixed_values(array)
    _check_no_nulls(array)
    base, shape = (dtype, ()) if dtype.subdtype is None else dtype.subdtype
    # uproot counts from the outside too, and a list of one dimension may have several of ours.
    if sizes != shape and prod(shape) != prod(sizes):
        raise RefusedError(f"its shape {sizes} is {shape} in uproot")
    if base.names is not None:
        if not pa.types.is_struct(array.type) or list(base.names) != array.type.names:
            raise RefusedError(f"it has other members: {array.type}")
        found = np.empty(len(array), base)
        for number, name in enumerate(base.names):
            found[name] = numbers(array.field(number), base[name])
    else:
        if not (pa.types.is_primitive(array.type) and (pa.types.is_floating(array.type) or _is_integer(array.type))):
            raise RefusedError(f"its type {array.type} is {base} in uproot")
        found = memory.writable_numbers(array)
        if found.dtype != base:
            raise RefusedError(f"its type {found.dtype} is {base} in uproot")
    return found.reshape((length, *shape)) if shape else found


def _is_integer(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _check_no_nulls(array: Any) -> None:
    if array.null_count:
        raise RefusedError("it has missing values")


def lists(array: Any) -> tuple[np.ndarray[Any, Any], Any]:
    """Offsets that begin with zero, and the items of lists."""
    if not pa.types.is_large_list(array.type):
        raise RefusedError(f"its type {array.type} is a list in uproot")
    _check_no_nulls(array)
    ends, items = arrow.offsets(array), array.values
    first, last = int(ends[0]), int(ends[-1])
    if first != 0 or last != len(items):
        ends, items = ends - first, items.slice(first, last - first)
    return ends, items


def text(array: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Offsets that begin with zero, and the bytes of strings."""
    if not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
        raise RefusedError(f"its type {array.type} is a string in uproot")
    _check_no_nulls(array)
    ends, buffer = arrow.offsets(array), array.buffers()[2]
    first, last = int(ends[0]), int(ends[-1])
    data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)[first:last]
    return (ends - first if first else ends), data


def layout(form: Any, field: Any, array: Any) -> Any:
    """An Awkward layout of this form.

    Raises `RefusedError` for forms that do not fit the array, and for those with unions.
    """
    import awkward as ak

    if isinstance(form, ak.forms.NumpyForm):
        if arrow.is_size(field):
            array = array.cast(pa.from_numpy_dtype(np.dtype(form.primitive)))
        dtype = np.dtype((form.primitive, form.inner_shape)) if form.inner_shape else np.dtype(form.primitive)
        return ak.contents.NumpyArray(numbers(array, dtype), parameters=form.parameters)
    if isinstance(form, ak.forms.IndexedOptionForm):
        return _optional(form, field, array)
    if isinstance(form, ak.forms.ListOffsetForm):
        if form.parameter("__array__") == "string":
            ends, data = text(array)
            content = ak.contents.NumpyArray(data, parameters=form.content.parameters)
        else:
            ends, items = lists(array)
            content = layout(form.content, array.type.value_field, items)
        index = ak.index.Index(ends.astype(_INDEXES[form.offsets], copy=False))
        return ak.contents.ListOffsetArray(index, content, parameters=form.parameters)
    if isinstance(form, ak.forms.RegularForm):
        if not pa.types.is_fixed_size_list(array.type) or array.type.list_size != form.size:
            raise RefusedError(f"its type {array.type} is a list of {form.size} items in uproot")
        _check_no_nulls(array)
        content = layout(form.content, array.type.value_field, arrow.fixed_values(array))
        return ak.contents.RegularArray(content, form.size, zeros_length=len(array), parameters=form.parameters)
    if isinstance(form, ak.forms.RecordForm):
        return _record(form, array)
    raise RefusedError(f"its form is a {type(form).__name__}")


def _optional(form: Any, field: Any, array: Any) -> Any:
    import awkward as ak

    if arrow.is_optional_list(field):
        ends = arrow.offsets(array)
        places = np.where(ends[1:] > ends[:-1], ends[:-1], -1)
        content = layout(form.content, array.type.value_field, array.values)
    elif field.nullable:
        places = np.where(arrow.null_mask(array), -1, np.arange(len(array)))
        content = layout(form.content, field.with_nullable(False), arrow.without_nulls(array))
    else:
        raise RefusedError(f"its type {array.type} is optional in uproot")
    index = ak.index.Index(places.astype(_INDEXES[form.index], copy=False))
    return ak.contents.IndexedOptionArray(index, content, parameters=form.parameters)


def _record(form: Any, array: Any) -> Any:
    import awkward as ak

    if not pa.types.is_struct(array.type):
        raise RefusedError(f"its type {array.type} is a record in uproot")
    _check_no_nulls(array)
    members = dict(_members(array))
    # The items of maps are tuples in uproot.
    names = array.type.names if form.is_tuple else form.fields
    if len(names) != len(form.contents):
        raise RefusedError(f"its type {array.type} has {len(form.contents)} members in uproot")
    contents = []
    for name, inner in zip(names, form.contents, strict=True):
        if name not in members:
            raise RefusedError(f"it has no member {name!r}")
        contents.append(layout(inner, *members[name]))
    fields = None if form.is_tuple else form.fields
    return ak.contents.RecordArray(contents, fields, length=len(array), parameters=form.parameters)


def _members(array: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Members of records by name, with those of base classes, which uproot does not keep apart."""
    for number in range(array.type.num_fields):
        field, column = array.type.field(number), array.field(number)
        if field.name.startswith(":_") and pa.types.is_struct(field.type):
            inherited = dict(_members(column))
            yield from inherited.items()
    for number in range(array.type.num_fields):
        yield array.type.field(number).name, (array.type.field(number), array.field(number))
