"""What a query reads of a dataset."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

import pyarrow as pa

from .._base.messages import short_repr
from .._base.sizes import as_count
from ..errors import InvalidArgumentError, NotFoundError
from ..fields import _select
from .columns import ColumnReader
from .expressions import ArrowCondition, ArrowProjection


class Scanner:
    """Some columns of the entries that match a filter; `Dataset.scanner` returns it.

    It has the methods of a `pyarrow.dataset.Scanner`; each call reads again. It does not derive from that class, which
    would read ahead without a limit.
    """

    def __init__(
        self,
        reader: ColumnReader,
        columns: Iterable[str] | Mapping[str, Any] | None,
        filter: Any,
        batch_size: SupportsIndex,
    ) -> None:
        self._reader = reader
        self._batch_size = max(1, as_count("batch_size", "rows", batch_size))
        self._condition = None if filter is None else ArrowCondition(filter, reader.schema)
        self._projection: ArrowProjection | None = None
        if isinstance(columns, Mapping):
            self._projection = ArrowProjection(columns, reader.schema)
            self._columns, self._schema = self._projection.columns, self._projection.schema
        else:
            self._columns = self._checked(columns)
            self._schema = reader.chosen(self._columns)

    def _checked(self, columns: Iterable[str] | None) -> list[str]:
        known = self._reader.schema.names
        if columns is None:
            return list(known)
        wanted = columns if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
        if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
            raise InvalidArgumentError(
                f"expected columns as a list of names or a mapping of names to expressions, not {short_repr(wanted)}"
            )
        for index, name in enumerate(wanted):
            if name not in known:
                table = self._reader.table
                raise NotFoundError(
                    f"{table.file_path}: '{table.object_path}': the dataset has no column {short_repr(name)}; it has "
                    f"{short_repr(known)}"
                )
            if name in wanted[:index]:
                raise InvalidArgumentError(f"column {short_repr(name)} is named twice")
        return wanted

    @property
    def dataset_schema(self) -> Any:
        """The `pyarrow.Schema` of the dataset."""
        return self._reader.schema

    @property
    def projected_schema(self) -> Any:
        """The `pyarrow.Schema` of the columns that are read."""
        return self._schema

    def to_batches(self) -> Iterator[Any]:
        """Reads `pyarrow.RecordBatch` objects, on demand."""
        return self._batches(self._reader)

    def to_reader(self) -> Any:
        """Reads the same as a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self._schema, self.to_batches())

    def to_table(self) -> Any:
        """Reads everything as a `pyarrow.Table`."""
        return pa.Table.from_batches(self.to_batches(), self._schema)

    def head(self, num_rows: SupportsIndex) -> Any:
        """Reads the first rows as a `pyarrow.Table`."""
        left = as_count("num_rows", "rows", num_rows)
        found = []
        for batch in self._batches(self._reader if self._is_selective else self._reader.first(left)):
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if left == 0:
                break
        return pa.Table.from_batches(found, self._schema)

    def take(self, indices: Iterable[SupportsIndex]) -> Any:
        """Reads single rows as a `pyarrow.Table`, in the given order."""
        if self._is_selective or self._projection is not None:
            table = self.to_table()
            return table.take(pa.array(_select.entry_numbers_of(indices, table.num_rows), pa.int64()))
        rows = _select.entry_numbers_of(indices, self._reader.num_entries)
        return pa.Table.from_batches([self._reader.take(self._columns, self._reader.entries_of(rows))])

    def count_rows(self) -> int:
        """Number of rows."""
        if not self._is_selective:
            return self._reader.num_entries
        return sum(batch.num_rows for batch in self._reader.batches([], self._condition))

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @property
    def _is_selective(self) -> bool:
        """Whether it leaves out entries."""
        return self._condition is not None or self._reader.request.cut is not None

    def _batches(self, reader: ColumnReader) -> Iterator[Any]:
        for batch in reader.batches(self._columns, self._condition):
            if batch.num_rows == 0:
                continue
            made = batch if self._projection is None else self._projection.computed(batch)
            for start in range(0, made.num_rows, self._batch_size):
                yield made.slice(start, self._batch_size)
