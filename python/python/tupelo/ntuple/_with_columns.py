"""Ntuples with additional columns."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._to_arrow.tables import NotAppendable
from ..fields import _select
from ._columns import Columns
from ._entries import Entries


class NtupleWithColumns(NotAppendable):
    """An ntuple with additional columns; `Ntuple.with_columns` returns it.

    It is read like the ntuple and written as a file with all fields and columns. Expressions and cuts may use the new
    columns.
    """

    def __init__(self, ntuple: Entries, columns: Columns) -> None:
        self._plain = ntuple
        self._columns = columns
        # The same ntuple with the columns in its requests.
        self._ntuple = object.__new__(type(ntuple))
        self._ntuple.__dict__.update(ntuple.__dict__)
        self._ntuple._columns = columns

    @property
    def column_names(self) -> list[str]:
        """Names of the new columns."""
        return list(self._columns.names)

    @property
    def num_entries(self) -> int:
        """Number of entries of the ntuple."""
        return self._plain.num_entries

    def with_columns(self, columns: Mapping[str, Any] | None = None, **unknown: object) -> "NtupleWithColumns":
        """Returns this ntuple with more columns; see `Ntuple.with_columns`."""
        return NtupleWithColumns(self._plain, self._columns.more(columns, self._plain, unknown))

    def arrays(self, expressions: str | Iterable[str] | None = None, cut: str | None = None, **options: Any) -> Any:
        """Reads fields and columns; see `Ntuple.arrays`. The default is all fields, followed by all columns."""
        return self._ntuple.arrays(expressions, cut, **options)

    def iterate(
        self, expressions: str | Iterable[str] | None = None, cut: str | None = None, **options: Any
    ) -> Iterator[Any]:
        """Reads ``expressions``, by default all fields and columns, in batches; see `Ntuple.iterate`.

        The columns can be used in ``expressions`` and ``cut``; ``options`` are those of `Ntuple.iterate`.

        Raises `NotFoundError` for unknown fields and `InvalidArgumentError` for invalid expressions.
        """
        return self._ntuple.iterate(expressions, cut, **options)

    def write(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Writes all fields, columns and entries to a new file and returns the number of entries.

        ``name``, ``progress`` and the write options are those of `Ntuple.copy`.

        >>> import tupelo
        >>> with tupelo.recreate("plain.root") as file:
        ...     file["Events"] = {"x": [1.5, 2.5]}
        >>> tupelo.open("plain.root:Events").with_columns({"tags": [["a"], []]}).write("tagged.root", name="Tagged")
        2
        >>> tupelo.open("tagged.root:Tagged").arrays().tolist()
        [{'x': 1.5, 'tags': ['a']}, {'x': 2.5, 'tags': []}]
        """
        return self.copy(path, **options)

    def copy(self, path: str | os.PathLike[str], cut: str | None = None, *, fields: Any = None, **options: Any) -> int:
        """Writes selected fields and entries, and all columns, to a new file; see `Ntuple.copy`."""
        chosen = [] if fields is None else _select.string_list("fields", fields)
        if chosen:
            options["fields"] = [*chosen, *self._columns.names]
        return self._ntuple.copy(path, cut, **options)

    def __len__(self) -> int:
        return self.num_entries

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._columns.names))
        return f"<tupelo.NtupleWithColumns {self._plain.object_path!r} with {names}>"
