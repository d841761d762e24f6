"""The uncompressed size of columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _select

if TYPE_CHECKING:
    from ._ntuple import RNTuple

_PROJECTED = b"rntuple.projected"
_SIZE_BYTES = 8
"""Bytes of one collection size, which is computed from offsets."""


def column_bytes(ntuple: "RNTuple", request: _select.Request) -> int:
    """Uncompressed bytes of the columns that a request for whole fields reads, each counted once."""
    sizes = {path: size for path, (_, size, _) in ntuple.core._core.sizes()[2].items()}
    by_path = {field.core_path: field for field in ntuple.all_fields}
    own = {
        path: max(0, size - sum(sizes.get(below.core_path, 0) for below in by_path[path].core_fields))
        for path, size in sizes.items()
        if path in by_path
    }
    patterns = None if request.patterns is None else set(request.patterns)
    columns: set[str] = set()
    counted = 0

    def add(path: str, with_below: bool) -> None:
        """Adds the columns of a field, its parents and optionally its subfields."""
        names = path.split(".")
        columns.update(".".join(names[:depth]) for depth in range(1, len(names) + 1))
        if with_below:
            columns.update(one for one in own if one.startswith(f"{path}."))

    for field in ntuple.all_fields:
        is_top = "." not in field.core_path
        if is_top if not patterns else _select.escape_glob(field.core_path) in patterns:
            sources = list(_sources(field._arrow_field))
            if field.core_kind == "cardinality":
                counted += 1
            for source in sources if field.core_kind != "cardinality" else []:
                # On disk the items of collections have a name.
                bare = ".".join(name for name in source.split(".") if name != "_0")
                add(bare if bare in own else source, False)
            # A collection that is not listed counts with the fields that project it.
            if not any(source.partition(".")[0] in own for source in sources):
                add(field.core_path, True)
    return sum(own.get(path, 0) for path in columns) + counted * _SIZE_BYTES * ntuple.num_entries


def _sources(field: Any) -> Iterator[str]:
    """Paths of the sources of a projected field and its subfields."""
    if (found := (field.metadata or {}).get(_PROJECTED)) is not None:
        yield found.decode()
    for index in range(field.type.num_fields):
        yield from _sources(field.type.field(index))
