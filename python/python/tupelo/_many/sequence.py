"""The ntuples of many files, opened one after the other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, SupportsIndex

import pyarrow as pa

from .. import _core
from .._base.ahead import run_ahead
from .._base.checks import storage
from .._base.sizes import parse_optional_bytes
from ..errors import InvalidArgumentError, MissingFileError, NotFoundError
from ..fields import _select
from ..ntuple._ntuple import Ntuple
from ..ntuple._options import FileOptions
from ..reading._file import reopen
from . import field_sets
from .files import InputNtuple, entry_ranges, listed, resolve


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

    def with_selection(self, wanted: Selection, fields: field_sets.Fields) -> "FileSequence":
        """Sets what to read. Opens all files to find their fields, unless expressions name them.

        Raises `InvalidArgumentError` if the files have no common field or different types of a field, and
        `NotFoundError` if an expression in a union needs a field that a file lacks.
        """
        field_sets.check(fields)
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
        common = field_sets.Common()
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
        union = field_sets.Union()
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
                place.path_from_here,
                page_checksums=opening["page_checksums"],
                memory_budget=opening["memory_budget"],
                storage=self._remote,
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
        return batch if self.union is None else field_sets.add_missing_columns(batch, self.union, num_rows)
