"""Reading many files."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import pyarrow as pa

from .. import _field_sets, _select
from .._files import InputNtuple, entry_ranges, listed, resolve
from .._many import shift_index
from ..errors import InvalidArgumentError, MissingFileError, NotFoundError
from ._fields import HasColumns
from ._options import library_name
from ._reading import ReadOnlyFile, _file
from ._table import Table
from ._trees import TTree


class Part(NamedTuple):
    """An ntuple or a tree, or a field of one, and the selected ranges of its entries."""

    source: HasColumns
    ranges: list[tuple[int, int]]
    """Ranges of entries, relative to the file."""
    is_divided: bool
    """Whether the caller gave the ranges."""


def parts_of(files: Any, allow_missing: bool) -> Iterator[Part]:
    """The ntuples of many files, or open ntuples.

    Invalid arguments raise errors immediately; each file is opened when it is reached.
    """
    places: list[Any] = []
    for one in listed(files, HasColumns):
        places += [one] if isinstance(one, HasColumns) else resolve(_as_pairs(one))

    def found() -> Iterator[Part]:
        for one in places:
            if isinstance(one, HasColumns):
                yield Part(one, [(0, one.num_entries)], False)
            elif (source := _find(one, allow_missing)) is not None:
                yield Part(source, entry_ranges(one, source.num_entries), one.steps is not None)

    return found()


def _as_pairs(one: Any) -> Any:
    """Converts steps to pairs of entries; uproot also accepts their boundaries: ``[0, 500, 1000]``."""
    if not isinstance(one, Mapping):
        return one

    def paired(inside: Any) -> Any:
        steps = inside.get("steps") if isinstance(inside, Mapping) else None
        if steps is None or not all(isinstance(step, SupportsIndex) for step in steps):
            return inside
        ends = [int(step) for step in steps]
        return {**inside, "steps": [list(pair) for pair in pairwise(ends)]}

    return {path: paired(inside) for path, inside in one.items()}


def _find(place: InputNtuple, allow_missing: bool) -> HasColumns | None:
    """Opens a file; None if it has no such ntuple and ``allow_missing`` is set."""
    try:
        directory = ReadOnlyFile(_file(place.path_from_here)).root_directory
        found = directory[directory.file.core.only().object_path if place.name is None else place.name]
    except MissingFileError:
        raise
    except NotFoundError:
        if not allow_missing:
            raise
        return None
    if not isinstance(found, HasColumns):
        raise InvalidArgumentError(f"{place.shown_path}: '{place.name}' is a directory, not an ntuple")
    return found


def ntuples_of(files: Any, allow_missing: bool) -> Iterator[HasColumns]:
    """The sources of `parts_of`."""
    return (part.source for part in parts_of(files, allow_missing))


_FILTERS = "filter_name", "filter_typename", "filter_field", "filter_branch"


def common_paths(ntuples: list[Table], filters: Mapping[str, Any]) -> list[str] | None:
    """Paths in Tupelo of the fields that match the filters and exist in all ntuples; None for all fields.

    A warning lists the fields that are skipped. Raises `NotFoundError` if no field matches.
    """
    is_filtered = any(one is not None for one in filters.values())
    common = _field_sets.Common()
    chosen: list[str] | None = None
    for ntuple in ntuples:
        # Columns of trees are branches, whatever fields they belong to.
        is_listed = is_filtered or isinstance(ntuple, TTree)
        mine = [field.core_path for field in ntuple.values(**filters) if field.core_path] if is_listed else None
        common.add(ntuple.core._fields, mine)
        chosen = chosen or mine
    if common.is_empty():
        raise NotFoundError(f"none of {len(ntuples[0].keys())} fields of {ntuples[0].file_path} matches the filters")
    return common.paths() or chosen


def union_schema(ntuples: list[Table], filters: Mapping[str, Any]) -> Any:
    """The `pyarrow.Schema` of the fields of all ntuples that match the filters."""
    union = _field_sets.Union()
    for ntuple in ntuples:
        union.add(ntuple.chosen_schema(filters), f"{ntuple.file_path}: ntuple '{ntuple.object_path}'")
    return union.schema()


class _Chosen:
    """What to read from each file: the common fields or the union of fields."""

    def __init__(self, parts: list[Part], expressions: Any, how: dict[str, Any], fields: _field_sets.Fields) -> None:
        _field_sets.check(fields)
        self._how = how
        self.expressions = expressions
        ntuples = [part.source for part in parts if isinstance(part.source, Table)]
        if expressions is not None or len(ntuples) < 2 or len(ntuples) < len(parts):
            return
        filters = {name: how.pop(name) for name in _FILTERS if name in how}
        if fields == "union":
            how["schema"] = union_schema(ntuples, filters)
            how.update(filters)
        elif (paths := common_paths(ntuples, filters)) is not None:
            wanted = set(paths)
            how["filter_field"] = lambda field: field.core_path in wanted


def iterate(
    files: Any,
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    library: Any = "ak",
    report: bool = False,
    allow_missing: bool = False,
    fields: _field_sets.Fields = "common",
    **how: Any,
) -> Iterator[Any]:
    """Reads the entries of many files in batches; other keywords are those of ``RNTuple.iterate``.

    ``files`` may select entries: ``{"f.root": {"object_path": "Events", "steps": [[0, 500]]}}``. Without
    ``expressions``, it reads the fields that all files have, or with ``fields="union"`` those that any file has, with
    missing values for files that lack them.
    """
    library = library_name(library)
    # Not a generator itself, so that relative paths are resolved now.
    found = parts_of(files, allow_missing)

    def batches() -> Iterator[Any]:
        parts, offset = list(found), 0
        _Chosen(parts, expressions, how, fields)
        for part in parts:
            for first, last in part.ranges:
                entries = {"entry_start": first, "entry_stop": last} if part.is_divided else {}
                options = {**how, **entries, "library": library, "report": True}
                for batch, own in part.source.iterate(expressions, cut, **options):
                    if library == "pd":
                        shift_index(offset, batch)
                    yield (batch, own.to_global(offset)) if report else batch
            offset += part.source.num_entries

    return batches()


def concatenate(
    files: Any,
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    entry_start: SupportsIndex | None = None,
    entry_stop: SupportsIndex | None = None,
    library: Any = "ak",
    allow_missing: bool = False,
    fields: _field_sets.Fields = "common",
    **how: Any,
) -> Any:
    """Reads the entries of many files into one array; other keywords are those of ``RNTuple.arrays``, ``fields`` that
    of `iterate`.
    """
    library, parts = library_name(library), list(parts_of(files, allow_missing))
    start, stop = _select.entry_range(entry_start, entry_stop, sum(part.source.num_entries for part in parts))
    _Chosen(parts, expressions, how, fields)
    batches: list[Any] = []
    offset = 0
    for part in parts:
        for begin, end in part.ranges:
            first, last = max(start - offset, begin), min(stop - offset, end)
            if first < last or (not batches and part is parts[-1]):
                how["entry_start"], how["entry_stop"] = min(first, end), max(last, 0)
                batch = part.source.arrays(expressions, cut, library=library, **how)
                if library == "pd":
                    shift_index(offset, batch)
                batches.append(batch)
        offset += part.source.num_entries
    return _concatenated(batches, library)


def _concatenated(batches: list[Any], library: str) -> Any:
    if not batches:
        return batches
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], dict):
        return {name: _concatenated([batch[name] for batch in batches], library) for name in batches[0]}
    if isinstance(batches[0], tuple | list):
        return type(batches[0])(_concatenated(list(several), library) for several in zip(*batches, strict=True))
    if library == "np":
        masked = any(isinstance(batch, np.ma.MaskedArray) for batch in batches)
        if masked:
            return np.ma.concatenate(batches)  # type: ignore[no-untyped-call]
        return np.concatenate(batches)
    if library == "ak":
        import awkward as ak

        return ak.concatenate(batches)
    if library == "pd":
        import pandas as pd

        return pd.concat(batches)
    return pa.concat_tables(batches) if isinstance(batches[0], pa.Table) else pa.chunked_array(batches)


def num_entries(paths: Any) -> Iterator[tuple[str, str, int]]:
    """File, name and number of entries of each ntuple; no entries are read."""
    ntuples = ntuples_of(paths, False)
    return ((ntuple.ntuple.file_path, ntuple.ntuple.object_path, ntuple.num_entries) for ntuple in ntuples)
