"""Reading many files as one sequence of entries."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow as pa

from . import _arrow, _core, _field_sets, _hist, _polars, _progress, _select
from ._ahead import run_ahead
from ._awkward import AwkwardOptions, to_awkward
from ._checks import storage
from ._files import Files, InputNtuple, entry_ranges, listed, resolve
from ._libraries import to_library
from ._locations import Report
from ._progress import Progress
from ._read_options import FileOptions, ManyArrayOptions, ManyReadOptions, complete, takes
from ._select import Filter
from ._sizes import parse_optional_bytes
from .errors import InvalidArgumentError, MissingFileError, NotFoundError
from .fields import Field
from .ntuple import DEFAULT_STEP, Ntuple
from .reading import reopen

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes(ManyArrayOptions)
def iterate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    step_size: SupportsIndex | str = DEFAULT_STEP,
    fields: _field_sets.Fields = "common",
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
    _progress.check(progress)
    many = FileSequence(files, chosen).with_selection(Selection(expressions, cut, chosen, binary_strings), fields)
    total = 0 if _progress.is_silent(progress) else sum(stop - start for start, stop in many.all_ranges())

    def read_batches() -> Iterator[Any]:
        done = 0
        with _progress.report_progress(progress) as tell:
            for ntuple, offset, ranges in many:
                for first, last in ranges:
                    for start, stop, batch, entries in many.batches(ntuple, first, last, step_size):
                        tell(done + start - first, total)
                        result = to_library(
                            batch, library, _shift_entries(entries, offset), style, how, is_shared=ntuple._shares_memory
                        )
                        place = start + offset, stop + offset, ntuple.file_path, ntuple.object_path, offset
                        yield (result, Report(*place)) if report else result
                    done += last - first
            tell(done, total)

    return read_batches()


@takes(ManyReadOptions)
def concatenate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    fields: _field_sets.Fields = "common",
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
    return to_library(_arrow.combine_batches(batches), library, all_entries, style, chosen["how"], is_shared=is_shared)


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
    bins: Any = _hist.DEFAULT_BINS,
    range: Any = None,
    cut: str | None = None,
    weight: str | None = None,
    aliases: Mapping[str, str] | None = None,
    step_size: SupportsIndex | str = _hist.DEFAULT_STEP,
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
    total = 0 if _progress.is_silent(progress) else sum(stop - start for start, stop in many.all_ranges())
    reading = _hist.Reading(source, cut, aliases, 0, total, step_size)
    return _hist.fill_histogram(reading, expressions, bins, range, weight, progress)


_JOINED_BYTES = 4 << 20
"""Size in memory up to which the batches of several files are joined (4 MiB)."""


class _HistSource:
    """Many files with the interface of the ntuple that `_hist.Reading` reads."""

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
    return to_awkward(_arrow.combine_batches(batches or [pa.RecordBatch.from_pylist([], schema=tables[0].schema)]))


@takes(FileOptions)
def scan(
    files: Files | Ntuple | Iterable[Ntuple],
    names: str | Iterable[str] | None = None,
    *,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    fields: _field_sets.Fields = "common",
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
            _polars.check_fields(request)
            if many.union is None:
                first = first or (ntuple, request)
            elif request.patterns is None:
                # The file has none of the columns.
                frames.append(
                    _polars.to_polars(_field_sets.add_missing_columns(_NOTHING, many.union, stop - start)).lazy()
                )
            else:
                frames.append(_polars.scan(ntuple, request))
    if first is not None:
        return _polars.scan(*first, many.parts)
    if not frames:
        raise InvalidArgumentError(
            "no ntuples to read: the list of files is empty, or no file has an ntuple of that name"
        )
    return _polars.concatenate(frames, many.union.names)


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


@dataclass(frozen=True)
class Selection:
    """What to read from every file: the arguments of `Ntuple.arrays`."""

    expressions: str | Iterable[str] | None = None
    cut: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """`SelectOptions`."""
    binary_strings: bool = False

    @property
    def filters(self) -> dict[str, Any]:
        """The given filters by keyword."""
        names = ("filter_name", "filter_typename", "filter_field")
        return {name: self.options[name] for name in names if self.options.get(name) is not None}

    @property
    def is_filtered(self) -> bool:
        """Whether filters select the fields."""
        return bool(self.filters)

    def chosen(self, ntuple: Ntuple) -> list[str] | None:
        """The fields that match the filters; None without filters."""
        return ntuple.keys(**self.filters) if self.is_filtered else None


class FileSequence:
    """The ntuples of many files, opened one after the other, and what to read from each."""

    def __init__(self, files: Any, options: Mapping[str, Any]) -> None:
        remote = storage(options["storage_options"], options["cache"])
        self.places: list[Any] = []
        """The files, each an `InputNtuple` or an `Ntuple`."""
        for one in listed(files, Ntuple):
            self.places += [one] if isinstance(one, Ntuple) else resolve(one, remote)
        self.is_remote = any(isinstance(one, InputNtuple) and _core.is_remote(one.path) for one in self.places)
        """Whether files are on servers: several are then opened and read at the same time."""
        self._remote = remote
        self.opening: dict[str, Any] = {name: options[name] for name in FileOptions.__annotations__}
        """The `FileOptions`."""
        self.opening["memory_budget"] = parse_optional_bytes("memory_budget", self.opening["memory_budget"])
        self._wanted = Selection()
        self._patterns: list[str] | None = None
        self.union: Any = None
        """The common `pyarrow.Schema` of all batches, or None."""
        self._names: dict[str, str | None] | None = None
        """In a union, the expressions that name fields of some file, with the name of the column; None for globs."""

    def with_selection(self, wanted: Selection, fields: _field_sets.Fields) -> "FileSequence":
        """Sets what to read. Opens all files to find their fields, unless expressions name them.

        Raises `InvalidArgumentError` if the files have no common field or different types of a field, and
        `NotFoundError` if an expression in a union needs a field that a file lacks.
        """
        _field_sets.check(fields)
        # `expressions` may be a generator.
        listed = None if wanted.expressions is None else _select.string_list("expressions", wanted.expressions)
        self._wanted = replace(wanted, expressions=listed)
        if listed is not None and wanted.is_filtered:
            raise InvalidArgumentError("give expressions or filters, not both")
        if len(self.places) < 2 or (listed is not None and fields == "common"):
            return self
        if fields == "union":
            self._find_union(listed)
            return self
        common = _field_sets.Common()
        for ntuple, _, _ in self:
            common.add(ntuple._fields, wanted.chosen(ntuple))
        self._check_not_empty(not common.is_empty())
        if (paths := common.paths()) is not None:
            self._patterns = [_select.escape_glob(path) for path in paths]
        return self

    def _find_union(self, listed: list[str] | None) -> None:
        """Collects the columns of all files."""
        if listed is not None:
            self._names = {}
            for ntuple, _, _ in self:
                for text in listed:
                    if text not in self._names and self._names_fields(text, ntuple):
                        self._names[text] = ntuple._top_level_name(text) if text in ntuple else None
        union = _field_sets.Union()
        for ntuple, _, _ in self:
            union.add(self._schema(ntuple), f"{ntuple.file_path}: ntuple '{ntuple.object_path}'")
        self.union = union.schema()
        self._check_not_empty(bool(len(self.union)))
        if self._names is not None and listed is not None:
            self.union = pa.schema([self.union.field(name) for name in self._order(listed, self._names)])

    def _names_fields(self, text: str, ntuple: Ntuple) -> bool:
        """Whether an expression is the name of a field of an ntuple, or a glob that matches some."""
        request = _select.Request(aliases=_select.aliases(self._wanted.options.get("aliases")))
        request.add(ntuple._path_of(text), ntuple._by_path)
        if request.computed:
            return False
        try:
            ntuple._core.arrow_schema(_select.Request(request.patterns))
        except NotFoundError:
            return False
        return True

    def _schema(self, ntuple: Ntuple) -> Any:
        """The `pyarrow.Schema` of the selection in an ntuple."""
        request = self.request(ntuple, 0, 0)
        try:
            return ntuple._core.arrow_schema(request)
        except NotFoundError as error:
            if not request.computed and request.cut is None:
                raise
            raise NotFoundError(
                f"{error}; fields='union' fills missing fields for names and globs only, not within expressions or "
                "a cut: compute it from the arrays, or leave out the files that lack the field"
            ) from None

    def _order(self, listed: list[str], names: Mapping[str, str | None]) -> list[str]:
        """Columns of a union in the requested order; with globs, fields come before computed columns."""
        computed = [text for text in dict.fromkeys(listed) if text not in names]
        if None in names.values():
            return [*(name for name in self.union.names if name not in computed), *computed]
        return list(dict.fromkeys(names.get(text) or text for text in listed))

    def _check_not_empty(self, has_fields: bool) -> None:
        if not has_fields and self._wanted.is_filtered:
            raise NotFoundError(f"no field in any of {len(self.places)} files matches the filters")

    def __iter__(self) -> Iterator[tuple[Ntuple, int, list[tuple[int, int]]]]:
        """Each ntuple with the number of entries in earlier files and the selected ranges of entries."""
        offset = 0
        tasks = [partial(self._open, place) for place in self.places]
        opened = run_ahead(tasks) if self.is_remote else (task() for task in tasks)
        for place, ntuple in zip(self.places, opened, strict=True):
            if ntuple is None:
                continue
            is_open = isinstance(place, Ntuple)
            yield ntuple, offset, [(0, ntuple.num_entries)] if is_open else entry_ranges(place, ntuple.num_entries)
            offset += ntuple.num_entries

    def _open(self, place: InputNtuple | Ntuple) -> Ntuple | None:
        """Opens a file; None if it has no such ntuple and ``allow_missing`` is set."""
        if isinstance(place, Ntuple):
            return place
        try:
            opening = self.opening
            file = reopen(
                place.path_from_here, opening["page_checksums"], opening["memory_budget"], False, self._remote
            )
            return file._table(place.name)
        except MissingFileError:
            raise
        except NotFoundError:
            if not self.opening["allow_missing"]:
                raise
            return None

    def parts(self) -> Iterator[tuple[Ntuple, _select.Request]]:
        """Each range of entries of each ntuple with its request."""
        for ntuple, _, ranges in self:
            for start, stop in ranges:
                yield ntuple, self.request(ntuple, start, stop)

    def all_ranges(self) -> Iterator[tuple[int, int]]:
        """The selected ranges of entries of all files, each relative to its file."""
        return (one for _, _, ranges in self for one in ranges)

    def num_entries(self) -> int:
        """The number of entries of all files, selected or not."""
        return sum(ntuple.num_entries for ntuple, _, _ in self)

    def request(self, ntuple: Ntuple, start: int, stop: int) -> _select.Request:
        """The request for a range of entries of an ntuple."""
        wanted, expressions = self._wanted, self._wanted.expressions
        if self._names is not None:
            # This file may lack fields of other files.
            listed = _select.string_list("expressions", expressions)
            expressions = [text for text in listed if text not in self._names or self._names_fields(text, ntuple)]
        is_settled = wanted.is_filtered and (
            self._patterns is not None or self.union is not None or len(self.places) > 1
        )
        options = {"aliases": wanted.options.get("aliases"), **({} if is_settled else wanted.filters)}
        options |= {"entry_start": start, "entry_stop": stop}
        request = ntuple._request(expressions or None, wanted.cut, options)
        if self._patterns is not None:
            request.patterns = self._patterns
        elif expressions is not None and not expressions:
            request.patterns = None
        elif is_settled:
            # In a union, it may be that no field of this file matches.
            request.patterns = [_select.escape_glob(path) for path in wanted.chosen(ntuple) or []] or None
        request.binary_strings = wanted.binary_strings
        return request

    def read(self, ntuple: Ntuple, start: int, stop: int) -> tuple[Any, Any]:
        """Entries of an ntuple as a `pyarrow.RecordBatch`, and their entry numbers."""
        batch, entries = ntuple._stream_batch(self.request(ntuple, start, stop))
        return self._fitted(batch, len(entries)), entries

    def batches(
        self, ntuple: Ntuple, start: int, stop: int, step_size: SupportsIndex | str
    ) -> Iterator[tuple[int, int, Any, Any]]:
        """The same in batches: start, stop, batch and entry numbers."""
        request = self.request(ntuple, start, stop)
        for first, last, batch, entries in ntuple._batches(request, step_size):
            yield first, last, self._fitted(request.ordered(batch), len(entries)), entries

    def _fitted(self, batch: Any, num_rows: int) -> Any:
        return batch if self.union is None else _field_sets.add_missing_columns(batch, self.union, num_rows)


def _shift_entries(entries: Any, offset: int) -> Any:
    """Shifts entry numbers by an offset."""
    if isinstance(entries, range):
        return range(entries.start + offset, entries.stop + offset)
    return entries + offset


def shift_index(offset: int, arrays: Any) -> None:
    """Adds an offset to the index of data frames and series."""
    several = arrays.values() if isinstance(arrays, dict) else arrays if isinstance(arrays, list | tuple) else [arrays]
    for one in several:
        one.index = one.index + offset


def _types(batch: Any) -> dict[str, str]:
    """The types of the columns by name."""
    return {field.name: f"{field.type}{' or missing' if field.nullable else ''}" for field in batch.schema}
