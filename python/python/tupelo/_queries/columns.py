"""Reading columns by name, and some of them only for the entries that match a condition on others."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from .. import _core
from ..errors import UnsupportedError
from ..fields import _select
from ..fields._fields import Fields
from .entry_batches import split_entry_numbers, with_entry_numbers

_SMALLEST_BATCH_BYTES = 8 << 20
_COLUMN_BYTES = 1 << 20
"""Bytes of a column in a batch, as long as the batch is not larger than others."""
_FIRST_ROWS = 4096
"""How many selected entries are read at once before the size of one is known."""


class Condition(Protocol):
    """Selects entries by the values of some columns."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that `rows` needs. Without any, it gets those that are read."""

    @property
    def filter(self) -> Any:
        """A filter of Arrow on these columns that is true for all matching rows, and perhaps for others; or `None`."""

    def rows(self, batch: Any) -> "np.ndarray[Any, np.dtype[Any]]":
        """Positions of the matching rows of a `pyarrow.RecordBatch`, ascending."""


class ColumnReader:
    """The columns of a request. Its entries are those of the pieces, which are the same request for other ranges."""

    def __init__(
        self,
        table: Fields,
        request: _select.Request,
        pieces: Sequence[_select.Request],
        pieces_of_files: Sequence[_select.Request] = (),
    ) -> None:
        self.table = table
        self.request = request
        self.pieces = list(pieces)
        self.pieces_of_files = list(pieces_of_files)
        """The same entries, in pieces that are within one file."""
        schema = table._core.arrow_schema(request)
        if request.order and request.order != schema.names:
            schema = pa.schema([schema.field(name) for name in request.order], metadata=schema.metadata)
        self.schema = schema
        """The `pyarrow.Schema` of all columns."""
        self._patterns = _patterns_of_columns(table, request, self.schema)

    def first(self, count: int) -> "ColumnReader":
        """The same for the first entries, before the cut."""
        pieces = []
        for piece in self.pieces:
            stop = min(piece.entry_stop, piece.entry_start + count)
            if stop > piece.entry_start:
                pieces.append(replace(piece, entry_stop=stop))
                count -= stop - piece.entry_start
        return self._of(pieces)

    def of_files(self) -> "list[ColumnReader]":
        """The entries of each file."""
        return [self._of([piece]) for piece in self.pieces_of_files]

    def _of(self, pieces: list[_select.Request]) -> "ColumnReader":
        made = object.__new__(ColumnReader)
        made.__dict__.update(self.__dict__)
        made.pieces = made.pieces_of_files = pieces
        return made

    @property
    def num_entries(self) -> int:
        """Number of entries, before the cut."""
        return sum(piece.entry_stop - piece.entry_start for piece in self.pieces)

    def entries_of(self, rows: "np.ndarray[Any, np.dtype[Any]]") -> "np.ndarray[Any, np.dtype[Any]]":
        """The entries at positions in the pieces."""
        lengths = [piece.entry_stop - piece.entry_start for piece in self.pieces]
        ends = np.cumsum(lengths)
        which = np.searchsorted(ends, rows, side="right")
        starts = np.array([piece.entry_start for piece in self.pieces], np.int64)
        found: np.ndarray[Any, np.dtype[Any]] = rows - (ends - lengths)[which] + starts[which]
        return found

    def chosen(self, columns: Iterable[str]) -> Any:
        """The `pyarrow.Schema` of columns."""
        return pa.schema([self.schema.field(name) for name in columns], metadata=self.schema.metadata)

    def batches(
        self, columns: Sequence[str], condition: Condition | None = None, batch_entries: int | None = None
    ) -> Iterator[Any]:
        """Columns as `pyarrow.RecordBatch` objects of about 32 MiB, or less of few columns without a condition; or of
        so many entries before the condition.

        The columns of the condition are read first, of entries that zone maps do not rule out. The others are read
        only for the entries that match.
        """
        first = dict.fromkeys(columns if condition is None else condition.columns) or dict.fromkeys(columns)
        others = {name: None for name in columns if name not in first}
        # A query works on a batch while the next one is decoded.
        size = _core.DEFAULT_BATCH_BYTES
        if condition is None:
            size = min(size, max(_SMALLEST_BATCH_BYTES, len(columns) * _COLUMN_BYTES))
        step_bytes = None if batch_entries else size
        for piece in self._possible_pieces(condition):
            reading = self._reading(piece, first)
            is_numbered = piece.cut is not None and bool(others)
            if is_numbered:
                reading = with_entry_numbers(reading)
            for read in self.table._core.batches(reading, batch_entries=batch_entries or 1, batch_bytes=step_bytes):
                batch = self.table._warned(read.data)
                if condition is None:
                    yield self._shaped(batch, columns)
                    continue
                batch, numbers = split_entry_numbers(batch) if is_numbered else (batch, None)
                rows = condition.rows(batch)
                if len(rows) < batch.num_rows:
                    batch = batch.take(pa.array(rows))
                if not others:
                    yield self._shaped(batch, columns)
                    continue
                entries = rows.astype(np.uint64) + np.uint64(read.entry_start) if numbers is None else numbers[rows]
                yield from self._completed(batch, columns, others, entries)

    def _possible_pieces(self, condition: Condition | None) -> Iterator[_select.Request]:
        """The pieces without entries that zone maps rule out."""
        for piece in self.pieces:
            if condition is None or condition.filter is None:
                yield piece
            else:
                # PyArrow's datasets take longer to import than most reads.
                from .zones import possible_pieces

                schema = self.chosen(condition.columns)
                yield from possible_pieces(self.table._core, piece, condition.filter, schema)

    def take(self, columns: Collection[str], entries: Any) -> Any:
        """Columns of single entries as a `pyarrow.RecordBatch`.

        Raises `UnsupportedError` for strings that are not UTF-8.
        """
        request = replace(self._reading(self.request, columns), cut=None)
        batch = self.table._warned(self.table._core.take(request, pa.array(entries, pa.uint64())))
        schema = self.chosen(columns)
        # The type of strings of single entries depends on their values.
        arrays = [_cast(batch.column(field.name), field) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch

    def _shaped(self, batch: Any, columns: Sequence[str]) -> Any:
        """Columns of a batch, with the types that are declared."""
        if not columns:
            # The number of rows survives.
            return batch.select([])
        schema = self.chosen(columns)
        return pa.RecordBatch.from_arrays([batch.column(name) for name in columns], schema=schema)

    def _completed(self, batch: Any, columns: Sequence[str], others: Collection[str], entries: Any) -> Iterator[Any]:
        """Entries in the order of the columns, after the others were read for them."""
        schema, start, count = self.chosen(columns), 0, _FIRST_ROWS
        while start < len(entries):
            rest = self.take(others, entries[start : start + count])
            known = batch.slice(start, rest.num_rows)
            arrays = [(rest if name in others else known).column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            start += rest.num_rows
            # Many entries may match in a batch of a narrow column, and the others may be wide.
            count = max(1, _core.DEFAULT_BATCH_BYTES * rest.num_rows // max(1, rest.nbytes))

    def _reading(self, piece: _select.Request, columns: Collection[str]) -> _select.Request:
        """The request for columns; each pattern appears once."""
        patterns = dict.fromkeys(pattern for name in columns for pattern in self._patterns.get(name, []))
        computed = [(name, text) for name, text in piece.computed if name in columns]
        return replace(piece, patterns=list(patterns) or None, computed=computed, order=[])


def _patterns_of_columns(table: Fields, request: _select.Request, columns: pa.Schema) -> dict[str, list[str]]:
    """The patterns to read for each column that is not computed."""
    if request.patterns is None:
        return {}
    computed = {name for name, _ in request.computed}
    globs = {name: _select.escape_glob(name) for name in columns.names if name not in computed}
    if not computed and (request.patterns in ([], ["*"]) or {*request.patterns} == {*globs.values()}):
        return {name: [glob] for name, glob in globs.items()}
    patterns: dict[str, list[str]] = {}
    whole = {field.name: field for field in table._core.arrow_schema(_select.Request([*globs.values()]))}
    for pattern in request.patterns or ["*"]:
        for field in table._core.arrow_schema(_select.Request([pattern])):
            # Whole columns can be read by name.
            is_whole = field.equals(whole.get(field.name))
            patterns.setdefault(field.name, []).append(_select.escape_glob(field.name) if is_whole else pattern)
    return patterns


def _cast(array: Any, field: Any) -> Any:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            f"field '{field.name}' has strings that are not UTF-8; read them with binary strings ({error})"
        ) from None
