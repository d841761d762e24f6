"""Entries as a dataset of Arrow."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, SupportsIndex

import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyarrow.fs import LocalFileSystem

from .._base.messages import MAX_CHARACTERS, truncate
from ..errors import UnsupportedError
from .columns import ColumnReader
from .expressions import ArrowCondition
from .scanner import Scanner

_DEFAULT_BATCH_SIZE = 131_072
"""The value of Arrow."""
_HINTS = {
    "batch_readahead",
    "cache_metadata",
    "fragment_readahead",
    "fragment_scan_options",
    "memory_pool",
    "use_threads",
}
"""Keywords of Arrow that do not change what is read."""
_NOT_A_FILE = "a tupelo.Dataset is read by its own methods only: give the to_table() of it"
"""The name of a file that does not exist, for the error of Arrow."""


class Dataset(pads.UnionDataset):  # type: ignore[misc]
    """Entries of an ntuple as a `pyarrow.dataset.Dataset`; `Ntuple.dataset` returns it.

    DuckDB, polars, DataFusion and other libraries that query datasets read only the columns that a query uses. Columns
    of a filter that they pass are read first, and of the others only pages with entries that match. Batches are read on
    demand. Filters are expressions of `pyarrow.compute`, and are evaluated by Arrow.

    The methods of PyArrow have these differences: keywords that only tune reading have no effect; `sort_by`, `join` and
    `join_asof` read everything into memory first; `get_fragments` returns datasets of one file each. Functions of
    PyArrow that read a dataset in C++, such as ``Scanner.from_dataset``, raise an `OSError`.

    >>> import pyarrow.compute as pc, tupelo
    >>> with tupelo.recreate("dataset.root") as file:
    ...     file["Events"] = {"run": [1, 1, 2], "pt": [[31.5, 7.25], [], [12.0]]}
    >>> events = tupelo.open("dataset.root:Events").dataset()
    >>> events.to_table(columns=["pt"], filter=pc.field("run") == 1).to_pydict()
    {'pt': [[31.5, 7.25], []]}
    >>> events.count_rows(filter=pc.field("run") > 1)
    1
    """

    def __init__(self, reader: ColumnReader, filter: Any = None) -> None:
        # C++ gets a dataset of a file that does not exist, so that it raises an error where it would otherwise crash.
        format, system = pads.IpcFileFormat(), LocalFileSystem()
        missing = format.make_fragment(_NOT_A_FILE, filesystem=system)
        super().__init__(reader.schema, [pads.FileSystemDataset([missing], reader.schema, format, system)])
        self._reader = reader
        self._filter = filter

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of its columns. The field metadata ``rntuple.type`` contain the C++ types."""
        return self._reader.schema

    @property
    def partition_expression(self) -> Any:
        """An expression that is true for all entries."""
        return pc.scalar(True)

    @property
    def children(self) -> "list[Fragment]":
        """The same as `get_fragments`."""
        return list(self.get_fragments())

    def scanner(
        self,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        filter: Any = None,
        batch_size: SupportsIndex = _DEFAULT_BATCH_SIZE,
        **hints: object,
    ) -> Scanner:
        """What a query reads: ``columns``, by default all, of the entries for which ``filter`` is true.

        ``columns`` are names, or a mapping of names to expressions. ``batch_size`` limits the rows of a batch.

        Raises `NotFoundError` (a `KeyError`) for an unknown column and `InvalidArgumentError` for an expression that
        does not fit. Reading raises the errors of `Ntuple.arrays`.
        """
        if unknown := hints.keys() - _HINTS:
            raise TypeError(f"scanner() got an unexpected keyword argument {min(unknown)!r}")
        if filter is not None and self._filter is not None:
            filter = self._filter & filter
        return Scanner(self._reader, columns, self._filter if filter is None else filter, batch_size)

    def to_batches(self, *how: Any, **options: Any) -> Iterator[Any]:
        """Reads `pyarrow.RecordBatch` objects, on demand; the arguments are those of `scanner`."""
        return self.scanner(*how, **options).to_batches()

    def to_table(self, *how: Any, **options: Any) -> Any:
        """Reads a `pyarrow.Table`; the arguments are those of `scanner`."""
        return self.scanner(*how, **options).to_table()

    def head(self, num_rows: SupportsIndex, *how: Any, **options: Any) -> Any:
        """Reads the first ``num_rows`` rows as a `pyarrow.Table`; the other arguments are those of `scanner`."""
        return self.scanner(*how, **options).head(num_rows)

    def take(self, indices: Iterable[SupportsIndex], *how: Any, **options: Any) -> Any:
        """Reads the rows with the numbers ``indices`` as a `pyarrow.Table`, in their order; others are those of
        `scanner`.
        """
        return self.scanner(*how, **options).take(indices)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """Number of entries for which ``filter`` is true; only its columns are read. Options are those of `scanner`."""
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    def filter(self, expression: Any) -> "Dataset":
        """The dataset of the entries for which ``expression`` is also true.

        Raises the errors of `scanner`.
        """
        ArrowCondition(expression, self.schema)
        return Dataset(self._reader, expression if self._filter is None else self._filter & expression)

    def get_fragments(self, filter: Any = None) -> "Iterator[Fragment]":
        """The entries of each file. None is left out: ``filter`` is for datasets that know values of whole files.

        Raises the errors of `scanner`.
        """
        if filter is not None:
            ArrowCondition(filter, self.schema)
        return (Fragment(reader, self._filter) for reader in self._reader.of_files())

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """Reads everything and sorts it by ``sorting``, as `pyarrow.Table.sort_by` does: a
        `pyarrow.dataset.InMemoryDataset`.

        Raises the errors of `to_table`.
        """
        return pads.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, *how: Any, **options: Any) -> Any:
        """Reads everything and joins it with ``right_dataset``, as `pyarrow.Table.join` does, which has the arguments
        ``how``: a `pyarrow.dataset.InMemoryDataset`.

        Raises the errors of `to_table`.
        """
        return pads.InMemoryDataset(self.to_table().join(right_dataset.to_table(), *how, **options))

    def join_asof(self, right_dataset: Any, *how: Any, **options: Any) -> Any:
        """Reads everything and joins it with ``right_dataset``, as `pyarrow.Table.join_asof` does, which has the
        arguments ``how``: a `pyarrow.dataset.InMemoryDataset`.

        Raises the errors of `to_table`.
        """
        return pads.InMemoryDataset(self.to_table().join_asof(right_dataset.to_table(), *how, **options))

    def replace_schema(self, schema: Any) -> NoReturn:
        """Raises `UnsupportedError`, whatever the ``schema``."""
        raise UnsupportedError(
            "the schema of a tupelo.Dataset cannot be replaced; select other fields with dataset(), or cast the "
            "columns of a query"
        )

    def __arrow_c_schema__(self) -> object:
        return self.scanner().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scanner().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._reader, self._filter)

    def __repr__(self) -> str:
        table = self._reader.table
        names = truncate(", ".join(self.schema.names), MAX_CHARACTERS)
        return f"<tupelo.{type(self).__name__} of {table.object_path!r} ({names}; {self._reader.num_entries} entries)>"


class Fragment(Dataset):
    """The entries of one file of a `Dataset`, with the methods of a `pyarrow.dataset.Fragment`."""

    @property
    def physical_schema(self) -> Any:
        """The same as `schema`."""
        return self.schema

    def scanner(  # type: ignore[override]
        self,
        schema: Any = None,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        filter: Any = None,
        batch_size: SupportsIndex = _DEFAULT_BATCH_SIZE,
        **hints: object,
    ) -> Scanner:
        """What a query reads; see `Dataset.scanner`.

        Raises `UnsupportedError` for another schema than that of the dataset.
        """
        if schema is not None and not self.schema.equals(schema):
            self.replace_schema(schema)
        return super().scanner(columns, filter, batch_size, **hints)
