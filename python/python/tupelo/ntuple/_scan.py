"""Ntuples as lazy frames of polars."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _core
from .._from_arrow.polars import from_table, load_polars, to_polars
from ..errors import InvalidArgumentError
from ..fields import _select
from ..fields._fields import Fields

_POSITION = "\0place"
"""Name of a column with the position of an entry in its batch. It is not a C++ name, so no field can have it."""


def scan(ntuple: Fields, request: _select.Request, pieces: list[_select.Request]) -> Any:
    """A lazy frame of the patterns of a request (an empty list means all fields). Its entries are those of the pieces,
    which are the same request for other ranges.
    """
    pl = load_polars()
    from polars.io.plugins import register_io_source

    schema = ntuple._core.arrow_schema(request)
    patterns = _patterns_of_columns(ntuple, schema.names, request.patterns or [])
    empty = from_table(pa.Table.from_batches([], schema))
    source = _Source(ntuple, patterns, pieces, empty.schema)
    return register_io_source(source.frames, schema=pl.Schema(empty.schema), is_pure=True, validate_schema=True)


def check_fields(request: _select.Request) -> None:
    """Raises `InvalidArgumentError` for expressions."""
    if request.computed:
        raise InvalidArgumentError(
            f"scan() takes field names, not the expression {request.computed[0][0]!r}; compute it with polars"
        )


class _Source:
    """The IO source of a lazy frame."""

    def __init__(
        self,
        ntuple: Fields,
        patterns: Mapping[str, list[str]],
        pieces: list[_select.Request],
        schema: Mapping[str, Any],
    ) -> None:
        self.ntuple = ntuple
        self.pieces = pieces
        self.patterns = patterns
        self.schema = schema

    def frames(
        self, columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        """The columns of the entries that match the predicate, among the first ``n_rows`` entries.

        polars evaluates the predicate on its columns. Other columns are read only for matching entries. (Translating
        the predicate for the engine would not read less and could not be exact: in polars NaN equals itself and is
        larger than all numbers, and integers wrap around.)
        """
        columns = list(self.patterns) if columns is None else columns
        step_bytes = None if batch_size else _core.DEFAULT_BATCH_BYTES
        first = [] if predicate is None else [name for name in self.patterns if name in predicate.meta.root_names()]
        others = [name for name in columns if name not in first] if first else []
        seen = first or columns
        left = n_rows
        for request in self.pieces:
            if left is not None:
                request = replace(request, entry_stop=min(request.entry_stop, request.entry_start + left))
                left -= request.entry_stop - request.entry_start
            reading = self._reading(request, seen)
            for batch in self.ntuple._core.batches(reading, batch_entries=batch_size or 1, batch_bytes=step_bytes):
                frame = to_polars(batch.data)
                if predicate is not None:
                    frame = frame.with_row_index(_POSITION).filter(predicate)
                    if others and not frame.is_empty():
                        rest = self._reading(request, others)
                        survivors = self._read_survivors(rest, batch.entry_start, frame.get_column(_POSITION))
                        frame = frame.hstack(survivors.select(others))
                if not frame.is_empty():
                    yield frame.select(columns)
            if left == 0:
                return

    def _read_survivors(self, reading: _select.Request, position: int, places: Any) -> Any:
        """The entries at these positions of the batch that starts at ``position``."""
        entries = pa.array(places.to_numpy().astype(np.uint64) + np.uint64(position))
        frame = to_polars(self.ntuple._core.take(reading, entries))
        # The type of strings of single entries depends on their values.
        return frame.cast({name: self.schema[name] for name in frame.columns if name in self.schema})

    def _reading(self, request: _select.Request, columns: list[str]) -> _select.Request:
        """The request for columns; each pattern appears once."""
        patterns = list(dict.fromkeys(pattern for name in columns for pattern in self.patterns[name]))
        return replace(request, patterns=patterns)


def _patterns_of_columns(ntuple: Fields, columns: list[str], wanted: list[str]) -> dict[str, list[str]]:
    """The patterns to read for each column."""
    patterns: dict[str, list[str]] = {name: [] for name in columns}
    whole = {field.name: field for field in ntuple._core.arrow_schema(_select.Request(["*"]))}
    for pattern in wanted or ["*"]:
        for field in ntuple._core.arrow_schema(_select.Request([pattern])):
            # Whole columns can be read by name.
            is_whole = field.equals(whole.get(field.name))
            patterns[field.name].append(_select.escape_glob(field.name) if is_whole else pattern)
    return patterns
