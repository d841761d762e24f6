"""Partitions: ranges of entries for distributed reading."""

import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .. import _core
from .._base.locations import NtupleLocation
from .._from_arrow.libraries import Library, to_library
from ..errors import ChangedFileError, Error
from ..fields import _select
from ..histogram import _filling
from ..ntuple._ntuple import Ntuple, as_table
from . import field_sets

OPEN_NTUPLES = 16
"""Number of ntuples that a process keeps open for later partitions."""


@dataclass(frozen=True)
class PartitionReport:
    """The outcome of reading a partition. Attributes are None if unknown or not applicable."""

    file: str
    """The file, by its absolute path, or its URL without credentials."""
    ntuple: str
    """Path of the ntuple in it."""
    entry_start: int
    """First entry of the partition."""
    entry_stop: int
    """End of the partition (exclusive)."""
    cluster: int | None = None
    """Number of the cluster in which it failed."""
    column: str | None = None
    """Dotted path of the field in which it failed."""
    error: str | None = None
    """Class of the exception, for instance ``"CorruptError"``; None on success."""
    cause: str | None = None
    """Its message."""


@dataclass(frozen=True)
class Partition:
    """A range of entries of one ntuple, read by one process at a time. `partitions` returns them.

    A partition is only a description; reading it opens the file. Every process keeps the most recent ntuples open. It
    pickles to less than 1 KiB, unless hundreds of fields are selected by name or by a function (globs stay globs), or
    files have different fields.

    >>> import tupelo
    >>> with tupelo.recreate("partition.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
    >>> (partition,) = tupelo.partitions("partition.root")
    >>> partition.name, partition.entry_start, partition.entry_stop
    ('Events', 0, 2)
    >>> partition.with_columns("y").arrays().tolist()
    [{'y': [1]}, {'y': [2, 3]}]
    """

    uri: str
    """The file, by its absolute path, or its URL with credentials, which `repr` does not show."""
    name: str
    """Path of the ntuple in the file."""
    entry_start: int
    """First entry."""
    entry_stop: int
    """End of the range (exclusive)."""
    columns: tuple[str, ...] | None
    """The fields to read, as dotted paths and globs; None means all."""
    identity: str
    """Identifies the contents of the file; it changes when the file is rewritten."""
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS
    """Whether page checksums are verified."""
    memory_budget: int | None = None
    """Memory budget in bytes; see `open`."""
    binary_strings: bool = False
    """Whether strings are returned as bytes."""
    expressions: tuple[str, ...] | None = None
    """Expressions to read instead of ``columns``; see `Ntuple.arrays`."""
    cut: str | None = None
    """Selects entries; see `Ntuple.arrays`."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Pairs of alias and expression."""
    storage: "_core.Storage | None" = None
    """Options and cache of a remote file."""
    schema: Any = None
    """The `pyarrow.Schema` of a union of fields, some of which the file may lack; else None."""

    @property
    def num_entries(self) -> int:
        """Number of entries before the cut."""
        return self.entry_stop - self.entry_start

    def with_columns(self, names: str | Iterable[str] | None) -> "Partition":
        """Returns a partition of the same entries with other fields: ``names`` are dotted paths or globs, None means
        all.

        Raises `InvalidArgumentError` for names that are not strings.
        """
        columns = None if names is None else tuple(_select.string_list("names", names))
        return replace(self, columns=columns, expressions=None)

    def arrays(self, library: Library = "ak", *, report: bool = False) -> Any:
        """Reads the entries; ``library`` is that of `Ntuple.arrays`.

        With ``report`` errors of Tupelo are not raised. The result is a pair of the arrays and a `PartitionReport`;
        the arrays are None if they could not be read.

        Raises `ChangedFileError` (an `OSError`) if the file changed after planning, `UnsupportedError` for strings that
        are not UTF-8 without ``binary_strings``, and the errors of `open` and `Ntuple.arrays`.
        """
        _select.check_library(library)
        try:
            batch, entries = self._read()
            arrays = to_library(batch, library, entries)
        except Error as error:
            if not report:
                raise
            return None, self._report(error)
        return (arrays, self._report()) if report else arrays

    def _open(self) -> Ntuple:
        ntuple = _opened(
            self.uri,
            self.name,
            self.identity,
            page_checksums=self.page_checksums,
            memory_budget=self.memory_budget,
            storage=self.storage,
            state=self._file_state(),
        )
        if self.entry_stop > ntuple.num_entries:
            raise ChangedFileError(
                f"{_core.display_name(self.uri)}: ntuple '{self.name}' has {ntuple.num_entries} entries, and the "
                f"partition ends at entry {self.entry_stop}; plan again, and recreate the manifest if you use one"
            )
        return ntuple

    def _file_state(self) -> tuple[int, int, int]:
        """A value that changes with the file."""
        try:
            found = os.stat(self.uri)
        except OSError:
            # Opening the file gives a better error. A remote file that changed is an error when it is read.
            return (0, 0, 0)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> tuple[Any, Any]:
        """A `pyarrow.RecordBatch` whose schema does not depend on the values, and its entry numbers."""
        ntuple = self._open()
        options = {"aliases": dict(self.aliases), "entry_start": self.entry_start, "entry_stop": self.entry_stop}
        request = ntuple._request(self.expressions or None, self.cut, options)
        request.binary_strings = self.binary_strings
        if self.expressions is None:
            request.patterns = list(self.columns or ())
        elif not self.expressions:
            request.patterns = None
        if self.schema is None:
            return ntuple._stream_batch(request)
        schema = self.schema
        if self.columns is not None:
            schema = _core.schema_choose(schema, list(self.columns), binary_strings=self.binary_strings).schema
        there = field_sets.leaf_paths(_core.schema_fields(schema), ntuple)
        request.patterns = [_select.escape_glob(path) for path in there] or None
        batch, numbers = ntuple._stream_batch(request)
        return field_sets.add_missing_columns(batch, schema, len(numbers)), numbers

    def _hist(self, booking: _filling.Booking) -> Any:
        """Fills histograms from the entries."""
        reading = _filling.Reading(
            self._open(), self.cut, dict(self.aliases), self.entry_start, self.entry_stop, _filling.DEFAULT_STEP
        )
        return booking.fill(reading, None)

    def _count(self) -> int:
        """Number of entries that the cut selects."""
        if self.cut is None:
            self._open()
            return self.num_entries
        _, entries = replace(self, expressions=(), columns=None, schema=None)._read()
        return len(entries)

    def _report(self, error: BaseException | None = None) -> PartitionReport:
        report = PartitionReport(_core.display_name(self.uri), self.name, self.entry_start, self.entry_stop)
        if error is None:
            return report
        cluster, column = getattr(error, "cluster", None), getattr(error, "field", None)
        return replace(report, cluster=cluster, column=column, error=type(error).__name__, cause=str(error))

    def __repr__(self) -> str:
        shown = {**vars(self), "uri": _core.display_name(self.uri)}
        return f"Partition({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Column names compress well.
        packed = None if self.columns is None else zlib.compress("\0".join(self.columns).encode(), 9)
        return _unpack, (packed, *(value for name, value in vars(self).items() if name != "columns"))


def _unpack(packed: bytes | None, uri: str, name: str, start: int, stop: int, *rest: Any) -> Partition:
    """Creates an unpickled partition."""
    columns = None if packed is None else tuple(zlib.decompress(packed).decode().split("\0"))
    return Partition(uri, name, start, stop, columns, *rest)


@lru_cache(maxsize=OPEN_NTUPLES)
def _opened(
    uri: str,
    name: str,
    identity: str,
    *,
    page_checksums: bool,
    memory_budget: int | None,
    storage: "_core.Storage | None",
    state: tuple[int, int, int],
) -> Ntuple:
    """Opens an ntuple; ``state`` invalidates the cache when the file changes."""
    how: dict[str, Any] = {"page_checksums": page_checksums, "memory_budget": memory_budget, "storage": storage}
    core = _core.File(uri, **how).table(name)
    if (found := core.identity()) != identity:
        shown = _core.display_name(uri)
        raise ChangedFileError(
            f"{shown}: ntuple '{name}' has changed since the partitions were planned: its identity is {found}, not "
            f"{identity}; plan again, and recreate the manifest if you use one"
        )
    # The warnings were issued while planning.
    place = NtupleLocation(_core.display_name(uri), (name,), uri, **how)
    return as_table(core, place, is_quiet=True)
