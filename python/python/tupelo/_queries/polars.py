"""Ntuples as lazy frames of polars."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from .._from_arrow.polars import from_table, load_polars, to_polars
from ..errors import InvalidArgumentError
from ..fields import _select
from .columns import ColumnReader
from .entry_batches import POSITION


def scan(reader: ColumnReader) -> Any:
    """A lazy frame of the columns of a reader."""
    pl = load_polars()
    from polars.io.plugins import register_io_source

    empty = from_table(pa.Table.from_batches([], reader.schema))
    source = _Source(reader)
    return register_io_source(source.frames, schema=pl.Schema(empty.schema), is_pure=True, validate_schema=True)


def check_fields(request: _select.Request) -> None:
    """Raises `InvalidArgumentError` for expressions."""
    if request.computed:
        raise InvalidArgumentError(
            f"scan() takes field names, not the expression {request.computed[0][0]!r}; compute it with polars"
        )


class _Source:
    """The IO source of a lazy frame."""

    def __init__(self, reader: ColumnReader) -> None:
        self.reader = reader

    def frames(
        self, columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        """The columns of the entries that match the predicate, among the first ``n_rows`` entries.

        polars evaluates the predicate on its columns. Other columns are read only for matching entries. (Translating
        the predicate for the engine would not read less and could not be exact: in polars NaN equals itself and is
        larger than all numbers, and integers wrap around.)
        """
        columns = self.reader.schema.names if columns is None else columns
        reader = self.reader if n_rows is None else self.reader.first(n_rows)
        condition = None if predicate is None else _Predicate(predicate, self.reader.schema.names)
        for batch in reader.batches(columns, condition, batch_size):
            if batch.num_rows:
                yield to_polars(batch)


class _Predicate:
    """A predicate of polars as a condition."""

    def __init__(self, predicate: Any, names: list[str]) -> None:
        self.predicate = predicate
        wanted = set(predicate.meta.root_names())
        self.columns = [name for name in names if name in wanted]

    def rows(self, batch: Any) -> Any:
        frame = to_polars(batch).with_row_index(POSITION).filter(self.predicate)
        return frame.get_column(POSITION).to_numpy()
