"""Conversion of Arrow arrays to Awkward arrays, without copies except for booleans."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .._base import arrow
from ..errors import InvalidArgumentError

AddDoc = bool | Mapping[str, str]
"""The type of ``ak_add_doc``; see `Ntuple.arrays`."""

RECORD = "__record__"
"""The Awkward parameter with the name of a record, which selects its behavior."""
_DOC = "__doc__"


@dataclass(frozen=True)
class AwkwardOptions:
    """Options of the conversion."""

    add_doc: AddDoc = False
    """The parameters to add."""
    fixed_types: bool = False
    """Whether the type depends on the fields only. Otherwise a variant is optional only if values are missing."""

    def __post_init__(self) -> None:
        """Raises `InvalidArgumentError` for invalid values of ``ak_add_doc``."""
        if isinstance(self.add_doc, bool):
            return
        if not isinstance(self.add_doc, Mapping):
            raise InvalidArgumentError(
                f"expected ak_add_doc to be True, False or {{parameter: attribute}}, not {self.add_doc!r}"
            )
        for key, attribute in self.add_doc.items():
            if attribute not in _ATTRIBUTES:
                known = ", ".join(map(repr, _ATTRIBUTES))
                raise InvalidArgumentError(f"ak_add_doc: unknown attribute {attribute!r} for {key!r}: expected {known}")

    def ntuple_parameters(self, schema: Any) -> dict[str, str] | None:
        """The parameters of the array of the ntuple."""
        if self.add_doc is not True:
            return None
        text = arrow.description(schema)
        return {_DOC: text} if text else None

    def parameters(self, field: Any) -> dict[str, str] | None:
        """The parameters of the array of a field."""
        if self.add_doc is False:
            return None
        if self.add_doc is True:
            text = _ATTRIBUTES["description"](field)
            return {_DOC: text} if text else None
        if not field.metadata and not pa.types.is_nested(field.type):
            # The bits of a bitset are not a field.
            return None
        return {key: self._attribute(name, field) for key, name in self.add_doc.items() if key != RECORD}

    def record(self, field: Any) -> dict[str, str] | None:
        """The parameters of a record, inside of an enclosing option."""
        if isinstance(self.add_doc, bool) or RECORD not in self.add_doc:
            return None
        name = self._attribute(self.add_doc[RECORD], field)
        return {RECORD: name} if name else None

    def _attribute(self, name: str, field: Any) -> str:
        return _ATTRIBUTES[name](field)


_ATTRIBUTES: dict[str, Callable[[Any], str]] = {
    "typename": arrow.full_type_name,
    "description": arrow.description,
    "name": lambda field: str(field.name),
}
_PLAIN = AwkwardOptions()


def to_awkward(batch: Any, style: AwkwardOptions = _PLAIN) -> Any:
    """A record array of the columns of a `pyarrow.RecordBatch`.

    Only nullable fields have option types; pairs and tuples become tuples, items of maps tuples of key and value, and
    strings strings, or bytestrings if they are not UTF-8.
    """
    import awkward as ak

    columns = [content(field, column, style) for field, column in zip(batch.schema, batch.columns, strict=True)]
    parameters = style.ntuple_parameters(batch.schema)
    return ak.Array(ak.contents.RecordArray(columns, batch.schema.names, length=batch.num_rows, parameters=parameters))


def content(field: Any, array: Any, style: AwkwardOptions) -> Any:
    """An Awkward layout of an Arrow array."""
    layout = _content(field, array, style)
    parameters = style.parameters(field)
    return layout.copy(parameters={**layout.parameters, **parameters}) if parameters else layout


def _content(field: Any, array: Any, style: AwkwardOptions) -> Any:
    """The layout without the parameters of the field."""
    import awkward as ak

    if pa.types.is_null(array.type):
        nothing = ak.index.Index64(np.full(len(array), -1, dtype=np.int64))
        return ak.contents.IndexedOptionArray(nothing, ak.contents.EmptyArray())
    if arrow.is_optional_list(field):
        ends = arrow.offsets(array)
        places = np.where(ends[1:] > ends[:-1], ends[:-1], -1)
        inner = content(array.type.value_field, array.values, style)
        return ak.contents.IndexedOptionArray.simplified(ak.index.Index64(places), inner)
    if pa.types.is_union(array.type):
        return _union(array, style)
    if not field.nullable:
        # Values below a missing parent are marked as missing too.
        return _values(field, arrow.without_nulls(array), style)
    mask = ak.index.Index8(arrow.null_mask(array).view(np.int8))
    values = _values(field, arrow.without_nulls(array), style)
    return ak.contents.ByteMaskedArray.simplified(mask, values, valid_when=False)


def _values(field: Any, array: Any, style: AwkwardOptions) -> Any:
    """The layout of an array without nulls."""
    import awkward as ak

    kind = array.type
    if pa.types.is_struct(kind):
        members = [content(kind.field(i), array.field(i), style) for i in range(kind.num_fields)]
        names = None if arrow.is_tuple(field) else kind.names
        return ak.contents.RecordArray(members, names, length=len(array), parameters=style.record(field))
    if pa.types.is_large_string(kind):
        return _text(array, "char", "string")
    if pa.types.is_large_binary(kind):
        return _text(array, "byte", "bytestring")
    if pa.types.is_large_list(kind):
        inner = content(kind.value_field, array.values, style)
        return ak.contents.ListOffsetArray(ak.index.Index64(arrow.offsets(array)), inner)
    if pa.types.is_fixed_size_list(kind):
        inner = content(kind.value_field, arrow.fixed_values(array), style)
        return ak.contents.RegularArray(inner, kind.list_size, zeros_length=len(array))
    return ak.contents.NumpyArray(arrow.to_numbers(array))


def _text(array: Any, item: str, whole: str) -> Any:
    import awkward as ak

    buffer = array.buffers()[2]
    text = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
    inner = ak.contents.NumpyArray(text, parameters={"__array__": item})
    ends = ak.index.Index64(arrow.offsets(array))
    return ak.contents.ListOffsetArray(ends, inner, parameters={"__array__": whole})


def _union(array: Any, style: AwkwardOptions) -> Any:
    """A variant. Its alternative for "no value" becomes an option around the others."""
    import awkward as ak

    children = [content(array.type.field(i), array.field(i), style) for i in range(1, array.type.num_fields)]
    tags = arrow.to_numbers(array.type_codes) - np.int8(1)
    places = arrow.to_numbers(array.offsets)
    there = tags >= 0
    if style.fixed_types:
        # The first alternative represents missing values, as in uproot.
        nothing = ak.contents.IndexedOptionArray(ak.index.Index64(np.array([-1])), ak.contents.EmptyArray())
        options = [
            child if child.is_option or child.is_union else ak.contents.UnmaskedArray(child) for child in children
        ]
        index = np.where(there, places, 0).astype(np.int64)
        tags = ak.index.Index8((tags + np.int8(1)).astype(np.int8))
        union = ak.contents.UnionArray.simplified if any(map(_is_nested, children)) else ak.contents.UnionArray
        return union(tags, ak.index.Index64(index), [nothing, *options])
    if len(children) == 1:
        index = np.where(there, places, -1).astype(np.int64)
        kind = ak.contents.IndexedArray if there.all() else ak.contents.IndexedOptionArray
        return kind.simplified(ak.index.Index64(index), children[0])
    if not there.all():
        # Awkward supports options only inside of unions: missing values become one of the first alternative.
        count = len(children[0])
        index = np.append(np.arange(count), -1)
        children[0] = ak.contents.IndexedOptionArray.simplified(ak.index.Index64(index), children[0])
        tags, places = np.where(there, tags, np.int8(0)), np.where(there, places, np.int32(count))
    if any(child.is_option for child in children):
        children = [child if child.is_option else ak.contents.UnmaskedArray.simplified(child) for child in children]
    # Not simplified if possible: that would merge integers and floats.
    union = ak.contents.UnionArray.simplified if any(map(_is_nested, children)) else ak.contents.UnionArray
    return union(ak.index.Index8(np.ascontiguousarray(tags)), ak.index.Index32(np.ascontiguousarray(places)), children)


def _is_nested(child: Any) -> bool:
    """Whether a layout is not allowed as an alternative of a union."""
    return bool(child.is_union or (child.is_indexed and not child.is_option))
