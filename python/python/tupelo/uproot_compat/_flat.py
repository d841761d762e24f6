"""Records as in uproot: base classes, pairs and tuples."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .. import _arrow

if TYPE_CHECKING:
    from ._ntuple import RField, RNTuple


def flatten(arrays: Any, ntuple: "RNTuple") -> Any:
    """Converts records to those of uproot: members of base classes become members of the class, and records without
    members or with numbered members become tuples.
    """
    import awkward as ak

    layout = arrays.layout
    if ntuple.uneven.keys().isdisjoint(layout.fields):
        return arrays
    contents = [
        _flattened(content, ntuple.uneven[name]) if name in ntuple.uneven else content
        for name, content in zip(layout.fields, layout.contents, strict=True)
    ]
    return ak.Array(layout.copy(contents=contents))


def _flattened(layout: Any, field: "RField") -> Any:
    if not layout.is_record:
        is_leaf = layout.is_union or not hasattr(layout, "content")
        return layout if is_leaf else layout.copy(content=_flattened(layout.content, field))
    if layout.is_tuple:
        below = [member for member, _ in members(field)]
        pairs = zip(layout.contents, below, strict=True)
        return (
            layout.copy(contents=[_flattened(*pair) for pair in pairs])
            if len(below) == len(layout.contents)
            else layout
        )
    found: dict[str, Any] = {}
    for member, way in members(field, bases_last=True):
        inner = layout
        for name in way:
            inner = inner.contents[inner.fields.index(name)] if inner is not None and name in inner.fields else None
        if inner is not None:
            found[member.name] = _flattened(inner, member)
    is_tuple = all(name.isdecimal() for name in found)
    return layout.copy(contents=list(found.values()), fields=None if is_tuple else list(found))


def signed_sizes(batch: Any) -> Any:
    """Sizes of collections as signed 64-bit integers, as in uproot: unsigned ones would wrap around below zero."""
    for index, field in enumerate(batch.schema):
        if _arrow.is_size(field):
            batch = batch.set_column(index, field.with_type(pa.int64()), batch.column(index).cast(pa.int64()))
    return batch


def uproot_name(arrays: Any, name: str) -> str:
    """The name of a member; the only member that was read from a tuple is named 0."""
    return "0" if name.isdecimal() and arrays.fields == ["0"] else name


def members(field: "RField", bases_last: bool = False) -> list[tuple["RField", list[str]]]:
    """The members of a class and of its base classes, each with its path in Tupelo.

    Members of base classes come at the position of the base class, as in uproot's keys, or after the others, as in
    uproot's arrays. Members with the same name are prefixed with as many names of base classes as necessary.
    """
    found: list[tuple[RField, list[str], list[str]]] = []
    rest: list[tuple[RField, list[str], list[str]]] = [(field, [], [])]

    def visit(one: "RField", way: list[str], classes: list[str]) -> None:
        for lower in one.core_fields:
            below = lower, [*way, lower.core_name], classes
            if not lower.is_base:
                found.append(below)
            elif bases_last:
                rest.append((*below[:2], [*classes, lower.typename]))
            else:
                visit(*below[:2], [*classes, lower.typename])

    while rest:
        visit(*rest.pop())
    own = [lower.core_name for lower, _, _ in found]
    for lower, _, classes in found:
        if classes and own.count(lower.core_name) > 1:
            alike = [other for one, _, other in found if one.core_name == lower.core_name]
            count = next((n for n in range(1, len(classes)) if [o[:n] for o in alike].count(classes[:n]) == 1), None)
            lower.unique_name = "::".join([*classes[:count], lower.core_name])
    return [(lower, way) for lower, way, _ in found]
