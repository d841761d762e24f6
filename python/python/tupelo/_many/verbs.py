"""Reading many files as one sequence of entries."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow as pa

from .._base import arrow
from .._base.ahead import run_ahead
from .._base.locations import Report
from .._base.progress import Progress, is_silent, report_progress
from .._base.progress import check as check_progress
from .._from_arrow.awkward import AwkwardOptions, to_awkward
from .._from_arrow.libraries import to_library
from .._from_arrow.polars import to_polars
from ..errors import InvalidArgumentError
from ..fields import _select
from ..fields._fields import Field
from ..fields._select import Filter
from ..histogram import _filling
from ..ntuple import _scan
from ..ntuple._entries import DEFAULT_STEP
from ..ntuple._ntuple import Ntuple
from ..ntuple._options import FileOptions, ManyArrayOptions, ManyReadOptions, complete, takes
from . import field_sets
from .files import Files
from .sequence import FileSequence, Selection

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes(ManyArrayOptions)
def iterate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    step_size: SupportsIndex | str = DEFAULT_STEP,
    fields: field_sets.Fields = "common",
    report: bool = False,
    binary_strings: bool = False,
    progress: Progress = None,
    **options: "Unpack[ManyArrayOptions]",
) -> Iterator[Any]:
    """Reads the entries of many files in batches, like `Ntuple.iterate` for one file.

    ``files`` are those of `partitions`, or open ntuples. A batch never spans two files. The `Report` of a batch and the
    index of data frames count entries through all files. ``allow_missing`` skips files without an ntuple of that name;
    the file itself must exist. ``page_checksums`` and ``memory_budget`` are those of `open`; one file is
    open at a time, of remote files up to 9. The other keywords are those of `Ntuple.iterate`.

    Files may have different fields. Without ``expressions``, ``fields="common"`` reads the fields that all files have
    and a warning lists the others; ``fields="union"`` reads the fields that any file has, with missing values for files
    that lack them. Filters select among these. All files are opened before the first batch to compare their fields.
    Names and globs in ``expressions`` must match fields of every file, or with ``fields="union"`` of one file, and give
    missing values for the others. The fields of computed expressions and of a ``cut`` must exist in every file;
    otherwise an error names the file and the field.

    ``progress`` is that of `Ntuple.iterate`, over the entries of all files, which are counted first.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"iterate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> for batch, report in tupelo.iterate("iterate?.root:Events", "x", report=True, library="np"):
    ...     print(report.file_path, report.start, report.stop, batch["x"])
    iterate1.root 0 2 [ 1 10]
    iterate2.root 2 4 [ 2 20]
    >>> for batch in tupelo.iterate({"iterate1.root": {"object_path": "Events", "steps": [[1, 2]]}}):
    ...     print(batch.x)
    [10]
    """
    # Not a generator itself, so that errors are raised immediately.
    chosen = complete("iterate", options, ManyArrayOptions)
    library, how, style = chosen["library"], chosen["how"], AwkwardOptions(chosen["ak_add_doc"])
    _select.check_step_size(step_size)
    check_progress(progress)
    many = FileSequence(files, chosen).with_selection(Selection(expressions, cut, chosen, binary_strings), fields)
    total = 0 if is_silent(progress) else sum(stop - start for start, stop in many.all_ranges())

    def read_batches() -> Iterator[Any]:
        done = 0
        with report_progress(progress) as tell:
            for ntuple, offset, ranges in many:
                for first, last in ranges:
                    for start, stop, batch, entries in many.batches(ntuple, first, last, step_size):
                        tell(done + start - first, total)
                        result = to_library(
                            batch, library, _shift_entries(entries, offset), style, how, is_shared=ntuple._shares_memory
                        )
                        origin = Report(
                            start + offset,
                            stop + offset,
                            file_path=ntuple.file_path,
                            object_path=ntuple.object_path,
                            global_offset=offset,
                        )
                        yield (result, origin) if report else result
                    done += last - first
            tell(done, total)

    return read_batches()


@takes(ManyReadOptions)
def concatenate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    fields: field_sets.Fields = "common",
    binary_strings: bool = False,
    **options: "Unpack[ManyReadOptions]",
) -> Any:
    """Reads the entries of many files into one array, like `Ntuple.arrays` for one file.

    ``files``, ``fields`` and ``allow_missing`` are those of `iterate`; ``entry_start`` and ``entry_stop`` count through
    all files. The other keywords are those of `Ntuple.arrays`. Fields of the same name must have the same type in all
    files.

    Raises `InvalidArgumentError` with the difference if they do not, and for an empty list of files.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"concatenate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run], f"only{run}": [0.5, 1.5]}
    >>> tupelo.concatenate("concatenate?.root", "x", entry_start=1, library="np")
    {'x': array([10,  2, 20])}
    >>> print(tupelo.concatenate("concatenate?.root", fields="union").only2)
    [None, None, 0.5, 1.5]
    >>> tupelo.concatenate("concatenate?.root", ["only2", "x * 2"], cut="x > 1", fields="union").tolist()
    [{'only2': None, 'x * 2': 20}, {'only2': 0.5, 'x * 2': 4}, {'only2': 1.5, 'x * 2': 40}]
    """
    chosen = complete("concatenate", options, ManyReadOptions)
    library, entry_start, entry_stop = chosen["library"], chosen["entry_start"], chosen["entry_stop"]
    many = FileSequence(files, chosen).with_selection(Selection(expressions, cut, chosen, binary_strings), fields)
    end: float = math.inf
    begin = 0
    if entry_start is not None or entry_stop is not None:
        begin, end = _select.entry_range(entry_start, entry_stop, many.num_entries())
    batches: list[Any] = []
    numbers: list[Any] = []
    is_shared = False
    last: Ntuple | None = None

    def parts() -> Iterator[Callable[[], tuple[Ntuple, int, Any, Any]]]:
        nonlocal last
        for ntuple, offset, ranges in many:
            last = ntuple
            for start, stop in ranges:
                start, stop = max(start, begin - offset), int(min(stop, end - offset))
                if start < stop:
                    yield partial(read, ntuple, offset, start, stop)
            if offset + ntuple.num_entries >= end:
                break

    def read(ntuple: Ntuple, offset: int, start: int, stop: int) -> tuple[Ntuple, int, Any, Any]:
        return (ntuple, offset, *many.read(ntuple, start, stop))

    for ntuple, offset, batch, entries in run_ahead(parts()) if many.is_remote else (part() for part in parts()):
        _add(batches, batch, entries, numbers, offset, ntuple)
        is_shared = is_shared or ntuple._shares_memory
    if last is None:
        raise InvalidArgumentError(
            "no ntuples to read: the list of files is empty, or no file has an ntuple of that name"
        )
    if not batches:
        _add(batches, *many.read(last, 0, 0), numbers, 0, last)
    all_entries = np.concatenate(numbers) if library == "pd" else range(0)
    style = AwkwardOptions(chosen["ak_add_doc"])
    return to_library(arrow.combine_batches(batches), library, all_entries, style, chosen["how"], is_shared=is_shared)


def _add(batches: list[Any], batch: Any, entries: Any, numbers: list[Any], offset: int, ntuple: Ntuple) -> None:
    """Appends a batch of an ntuple.

    Raises `InvalidArgumentError` if its schema differs from that of the first batch.
    """
    if batches and not batch.schema.equals(batches[0].schema):
        raise InvalidArgumentError(
            f"{ntuple.file_path}: ntuple '{ntuple.object_path}' differs from the previous one: "
            f"{_select.describe_difference(_types(batches[0]), _types(batch))}"
        )
    batches.append(batch)
    numbers.append(_shift_entries(entries, offset))


@takes(FileOptions)
def hist(
    files: Files | Ntuple | Iterable[Ntuple],
    *expressions: str,
    bins: Any = _filling.DEFAULT_BINS,
    range: Any = None,
    cut: str | None = None,
    weight: str | None = None,
    aliases: Mapping[str, str] | None = None,
    step_size: SupportsIndex | str = _filling.DEFAULT_STEP,
    progress: Progress = None,
    **options: "Unpack[FileOptions]",
) -> Any:
    """Fills one histogram from the entries of many files, like `Ntuple.hist` for one file.

    ``files`` and ``allow_missing`` are those of `iterate`; the other arguments are those of `Ntuple.hist`.

    Raises the errors of `Ntuple.hist` and `iterate`, and `InvalidArgumentError` for an empty list of files.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"hist{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.hist("hist?.root:Events", "x", bins=2, range=(0, 20), cut="x < 20").values().tolist()
    [2.0, 1.0]
    """
    many = FileSequence(files, complete("hist", options, FileOptions))
    source: Any = _HistSource(many)
    # Counting opens all files.
    total = 0 if is_silent(progress) else sum(stop - start for start, stop in many.all_ranges())
    reading = _filling.Reading(source, cut, aliases, 0, total, step_size)
    return _filling.fill_histogram(reading, expressions, bins, range, weight, progress)


_JOINED_BYTES = 4 << 20
"""Size in memory up to which the batches of several files are joined (4 MiB)."""


class _HistSource:
    """Many files with the interface of the ntuple that `_filling.Reading` reads."""

    def __init__(self, many: "FileSequence") -> None:
        self._many = many
        first = next(iter(many), None)
        if first is None:
            raise InvalidArgumentError(
                "no ntuples to read: the list of files is empty, or no file has an ntuple of that name"
            )
        self._first = first[0]

    def __contains__(self, path: object) -> bool:
        return path in self._first

    def __getitem__(self, path: str) -> Field:
        return self._first[path]

    def iterate(
        self, expressions: list[str], *, entry_start: int, entry_stop: int, library: str, **how: Any
    ) -> Iterator[Any]:
        # The range always covers all entries. The batches of small files are joined, because each one costs more than
        # its values.
        waiting: list[Any] = []
        waiting_bytes = 0
        for table in iterate(self._many.places, expressions, library="arrow", **self._many.opening, **how):
            if waiting and (waiting_bytes + table.nbytes > _JOINED_BYTES or table.schema != waiting[0].schema):
                yield _joined(waiting)
                waiting, waiting_bytes = [], 0
            waiting.append(table)
            waiting_bytes += table.nbytes
        if waiting:
            yield _joined(waiting)


def _joined(tables: list[Any]) -> Any:
    """The entries of `pyarrow.Table` objects with the same schema as one Awkward array."""
    # A table without entries has no batches.
    batches = [batch for table in tables for batch in table.to_batches()]
    return to_awkward(arrow.combine_batches(batches or [pa.RecordBatch.from_pylist([], schema=tables[0].schema)]))


@takes(FileOptions)
def scan(
    files: Files | Ntuple | Iterable[Ntuple],
    names: str | Iterable[str] | None = None,
    *,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    fields: field_sets.Fields = "common",
    binary_strings: bool = False,
    **options: "Unpack[FileOptions]",
) -> Any:
    """A `polars.LazyFrame` of the entries of many files, like `Ntuple.scan` for one file.

    ``files``, ``fields`` and ``allow_missing`` are those of `iterate`; the other arguments are those of `Ntuple.scan`.
    All files are opened immediately.

    Raises the errors of `Ntuple.scan` and `iterate`, and `InvalidArgumentError` for an empty list of files.

    >>> import polars, tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"scan{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.scan("scan?.root:Events").filter(polars.col("x") > 1).collect()["x"].to_list()
    [10, 2, 20]
    """
    chosen = complete("scan", options, FileOptions)
    filters = {"filter_name": filter_name, "filter_typename": filter_typename}
    many = FileSequence(files, chosen).with_selection(Selection(names, None, filters, binary_strings), fields)
    frames = []
    first: tuple[Ntuple, _select.Request] | None = None
    for ntuple, _, ranges in many:
        for start, stop in ranges:
            request = many.request(ntuple, start, stop)
            _scan.check_fields(request)
            if many.union is None:
                first = first or (ntuple, request)
            elif request.patterns is None:
                # The file has none of the columns.
                frames.append(to_polars(field_sets.add_missing_columns(_NOTHING, many.union, stop - start)).lazy())
            else:
                frames.append(_scan.scan(ntuple, request))
    if first is not None:
        return _scan.scan(*first, many.parts)
    if not frames:
        raise InvalidArgumentError(
            "no ntuples to read: the list of files is empty, or no file has an ntuple of that name"
        )
    return _scan.concatenate(frames, many.union.names)


_NOTHING = pa.RecordBatch.from_arrays([], names=[])
"""A batch without columns."""


def num_entries(
    files: Files | Ntuple | Iterable[Ntuple], *, allow_missing: bool = False
) -> Iterator[tuple[str, str, int]]:
    """The number of entries of the ntuple in each file, as (file, ntuple, number); no entries are read.

    ``files`` and ``allow_missing`` are those of `iterate`. Raises the errors of `open`.

    >>> import tupelo
    >>> with tupelo.recreate("num_entries.root") as file:
    ...     file["Events"] = {"x": [1, 2, 3]}
    >>> list(tupelo.num_entries("num_*.root"))
    [('num_entries.root', 'Events', 3)]
    """
    # Not a generator itself, so that relative paths are resolved now.
    many = FileSequence(files, complete("num_entries", {"allow_missing": allow_missing}, FileOptions))
    return (
        (ntuple.file_path, ntuple.object_path, sum(stop - start for start, stop in ranges))
        for ntuple, _, ranges in many
    )


def _shift_entries(entries: Any, offset: int) -> Any:
    """Shifts entry numbers by an offset."""
    if isinstance(entries, range):
        return range(entries.start + offset, entries.stop + offset)
    return entries + offset


def _types(batch: Any) -> dict[str, str]:
    """The types of the columns by name."""
    return {field.name: f"{field.type}{' or missing' if field.nullable else ''}" for field in batch.schema}
