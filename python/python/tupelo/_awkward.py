"""Arrow arrays as Awkward arrays, without copies but for booleans."""

from typing import Any

import numpy as np
import pyarrow as pa

from . import _arrow


def to_awkward(batch: Any) -> Any:
    """A record array of the columns of a `pyarrow.RecordBatch`.

    Fields that cannot be missing have types without an option; pairs and tuples are tuples; the items of maps are
    tuples of key and value; strings are strings, or bytestrings where they are not UTF-8.
    """
    import awkward as ak

    columns = [_content(field, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
    return ak.Array(ak.contents.RecordArray(columns, batch.schema.names, length=batch.num_rows))


def column_to_awkward(field: Any, array: Any) -> Any:
    """One column."""
    import awkward as ak

    return ak.Array(_content(field, array))


def _content(field: Any, array: Any) -> Any:
    """An Awkward layout of an Arrow array."""
    import awkward as ak

    if pa.types.is_null(array.type):
        nothing = ak.index.Index64(np.full(len(array), -1, dtype=np.int64))
        return ak.contents.IndexedOptionArray(nothing, ak.contents.EmptyArray())
    if _arrow.is_optional_list(field):
        ends = _arrow.offsets(array)
        places = np.where(ends[1:] > ends[:-1], ends[:-1], -1)
        inner = _content(array.type.value_field, array.values)
        return ak.contents.IndexedOptionArray.simplified(ak.index.Index64(places), inner)
    if pa.types.is_union(array.type):
        return _union(array)
    if not field.nullable:
        # Below something that is missing, values are marked as missing too.
        return _values(field, _arrow.without_nulls(array))
    mask = ak.index.Index8(_arrow.nulls(array).view(np.int8))
    values = _values(field, _arrow.without_nulls(array))
    return ak.contents.ByteMaskedArray.simplified(mask, values, valid_when=False)


def _values(field: Any, array: Any) -> Any:
    """The same for an array in which nothing is missing."""
    import awkward as ak

    kind = array.type
    if pa.types.is_struct(kind):
        members = [_content(kind.field(i), array.field(i)) for i in range(kind.num_fields)]
        names = None if _arrow.is_tuple(field) else kind.names
        return ak.contents.RecordArray(members, names, length=len(array))
    if pa.types.is_large_string(kind):
        return _text(array, "char", "string")
    if pa.types.is_large_binary(kind):
        return _text(array, "byte", "bytestring")
    if pa.types.is_large_list(kind):
        inner = _content(kind.value_field, array.values)
        return ak.contents.ListOffsetArray(ak.index.Index64(_arrow.offsets(array)), inner)
    if pa.types.is_fixed_size_list(kind):
        inner = _content(kind.value_field, _arrow.fixed_values(array))
        return ak.contents.RegularArray(inner, kind.list_size, zeros_length=len(array))
    return ak.contents.NumpyArray(array.to_numpy(zero_copy_only=not pa.types.is_boolean(kind)))


def _text(array: Any, item: str, whole: str) -> Any:
    import awkward as ak

    buffer = array.buffers()[2]
    text = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
    inner = ak.contents.NumpyArray(text, parameters={"__array__": item})
    ends = ak.index.Index64(_arrow.offsets(array))
    return ak.contents.ListOffsetArray(ends, inner, parameters={"__array__": whole})


def _union(array: Any) -> Any:
    """A variant. The alternative that stands for "no value" becomes an option around the others."""
    import awkward as ak

    children = [_content(array.type.field(i), array.field(i)) for i in range(1, array.type.num_fields)]
    tags = array.type_codes.to_numpy() - np.int8(1)
    places = array.offsets.to_numpy()
    there = tags >= 0
    if len(children) == 1:
        index = np.where(there, places, -1).astype(np.int64)
        kind = ak.contents.IndexedArray if there.all() else ak.contents.IndexedOptionArray
        return kind.simplified(ak.index.Index64(index), children[0])
    if not there.all():
        # Awkward has options inside of unions only: what has no value is one more, missing, value of the first.
        count = len(children[0])
        index = np.append(np.arange(count), -1)
        children[0] = ak.contents.IndexedOptionArray.simplified(ak.index.Index64(index), children[0])
        tags, places = np.where(there, tags, np.int8(0)), np.where(there, places, np.int32(count))
    if any(child.is_option for child in children):
        children = [child if child.is_option else ak.contents.UnmaskedArray.simplified(child) for child in children]
    # Not simplified where that can be: an integer beside a float would become one.
    is_nested = any(child.is_union or (child.is_indexed and not child.is_option) for child in children)
    union = ak.contents.UnionArray.simplified if is_nested else ak.contents.UnionArray
    return union(ak.index.Index8(np.ascontiguousarray(tags)), ak.index.Index32(np.ascontiguousarray(places)), children)
