"""Derived files: fewer events, containers, variables and elements, and new variables."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from .._base.checks import absolute_path, check_text
from .._base.messages import short_repr
from .._base.progress import Progress, is_silent, report_progress
from .._to_arrow import tables
from ..errors import InvalidArgumentError, TupeloWarning, UnsupportedError
from ..ntuple._ntuple import Ntuple
from ..reading._chain import Chain
from ..writing._copying import check_output, new_file

_FORMATS = ("ntuple", "tree")


@dataclass(frozen=True)
class Derivation:
    """What a derived file has of an event."""

    containers: list[tuple[str, list[str]]] | None = None
    fields: list[str] = field(default_factory=list)
    cut: str | None = None
    thinned: list[tuple[str, Any]] = field(default_factory=list)
    """Containers, with an expression or a `pyarrow.RecordBatch` of one column."""
    added: list[tuple[str, str, Any]] = field(default_factory=list)
    """Containers and names, with the same."""
    start: int = 0
    stop: int = 0
    is_tree: bool | None = None
    compression: str | None = None


def derive(
    core: "_core.AuxStores",
    events: Ntuple | Chain,
    request: Derivation,
    path: str | os.PathLike[str],
    progress: Progress,
) -> int:
    """Writes a derived file and returns the number of its entries."""
    target = check_output(path, events._inputs)
    total = request.stop - request.start
    with report_progress(progress) as tell, new_file(target, events._location.storage) as file:
        tell(0, total)
        callback = None if is_silent(progress) else lambda done: tell(done, total)
        derived = core.derive(request, file, callback)
    for text in derived.warnings:
        warnings.warn(text, TupeloWarning, stacklevel=3)
    if derived.left_out:
        names = ", ".join(map(repr, derived.left_out))
        text = f"not copied: {names}; they refer to entries by their places in the old file"
        warnings.warn(text, TupeloWarning, stacklevel=3)
    return derived.entries


def append(core: "_core.AuxStores", events: Ntuple | Chain, request: Derivation) -> None:
    """Adds variables to the ntuple in its own file."""
    path = events._location.absolute_path if isinstance(events, Ntuple) else None
    if path is None:
        raise UnsupportedError("variables can only be added to the one file of an event; derive() writes another file")
    file = _core.FileWriter(absolute_path(path), update=True, storage=events._location.storage)
    try:
        core.append(request, file)
        file.finish()
    except BaseException:
        file.abort()
        raise


def masks(thinned: Mapping[str, Any], num_entries: int) -> list[tuple[str, Any]]:
    """The elements that are kept, by container."""
    _check_mapping(thinned, "thin", "expressions or lists of booleans")
    return [(check_text(name, "container"), _values(name, keep, num_entries)) for name, keep in thinned.items()]


def variables(added: Mapping[str, Mapping[str, Any]], num_entries: int) -> list[tuple[str, str, Any]]:
    """New variables, by container and name."""
    _check_mapping(added, "decorate", "mappings of names to values")
    for own in added.values():
        _check_mapping(own, "decorate", "expressions or values")
    return [
        (check_text(container, "container"), check_text(name, "variable"), _values(name, values, num_entries))
        for container, own in added.items()
        for name, values in own.items()
    ]


def is_tree(format: str) -> bool:
    """Whether a format is that of trees."""
    if format not in _FORMATS:
        raise InvalidArgumentError(f"expected format 'ntuple' or 'tree', not {short_repr(format)}")
    return format == "tree"


def codec(compression: str | int | None) -> str | None:
    """A codec as text."""
    return None if compression is None else str(compression)


def _check_mapping(given: object, name: str, of: str) -> None:
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"expected {name} as a mapping of names to {of}, not {short_repr(given)}")


def _values(name: str, values: Any, num_entries: int) -> Any:
    """An expression, or values for all entries as a `pyarrow.RecordBatch` of one column."""
    if isinstance(values, str):
        return values
    batch = tables.to_batch([tables.to_table({name: values})])
    if batch.num_rows != num_entries:
        raise InvalidArgumentError(
            f"'{name}' has {batch.num_rows} values, expected one for each of the {num_entries} entries"
        )
    return batch
