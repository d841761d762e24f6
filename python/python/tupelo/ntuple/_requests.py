"""What is read of an open ntuple or tree, and how."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.locations import NtupleLocation, Report
from .._base.messages import printable
from .._base.progress import Progress, is_silent, steps
from .._base.sizes import parse_bytes
from .._queries.entry_batches import EntryBatch, split_entry_numbers, with_entry_numbers
from .._to_arrow import declarations
from ..errors import InvalidArgumentError, NotFoundError, TupeloWarning
from ..fields import _select
from ..fields._fields import Fields
from ._columns import Columns
from ._rules import ReadRule

DEFAULT_STEP = "100 MiB"
"""Size in memory of a batch of `Ntuple.iterate`."""
_MIRROR = "ntpl+mirror:"


class Requests(Fields):
    """Makes requests from the arguments of methods, and reads what they ask for."""

    _columns: Columns | None = None
    """Additional columns, for `NtupleWithColumns`."""

    def __init__(
        self, core: "_core.Table", origin: NtupleLocation, rules: tuple[ReadRule, ...] = (), *, is_quiet: bool = False
    ) -> None:
        super().__init__(core, origin.file_path)
        self._location = origin
        self._rules = rules
        self._known_warnings = len(core.warnings) if rules or is_quiet else 0
        self._warn(stacklevel=4)

    def _warn(self, stacklevel: int) -> None:
        """Issues the warnings that are new."""
        texts = self._core.warnings
        for text in texts[self._known_warnings :]:
            warnings.warn(self._about(text), TupeloWarning, stacklevel=stacklevel)
        self._known_warnings = len(texts)

    def _about(self, text: str) -> str:
        """The text of a warning about the ntuple or tree."""
        return printable(f"{self._location.file_path}: {self._class.lower()} '{self._core.path}': {text}")

    def _warned(self, batch: Any) -> Any:
        """What was read, after warnings of stores of a mirror that were passed over."""
        if self._location.file_path.startswith(_MIRROR):
            self._warn(stacklevel=5)
        return batch

    def _whole(self, request: _select.Request, progress: Progress = None) -> tuple[Any, Any]:
        """The result of a request as one `pyarrow.RecordBatch`, and its entry numbers."""
        if parts := [] if is_silent(progress) else list(self._batches([request], DEFAULT_STEP, progress)):
            return arrow.combine_batches([one.batch for one in parts]), np.concatenate([one.entries for one in parts])
        if request.cut is None:
            return self._warned(self._core.read(request)), range(request.entry_start, request.entry_stop)
        return split_entry_numbers(self._warned(self._core.read(with_entry_numbers(request))))

    def _stream_batch(self, request: _select.Request) -> tuple[Any, Any]:
        """The result as a `pyarrow.RecordBatch` whose schema does not depend on the values, and its entry numbers."""
        if request.cut is None:
            batch = self._warned(request.read_as_stream(self._core))
            return request.ordered(batch), range(request.entry_start, request.entry_stop)
        batch = self._warned(with_entry_numbers(request).read_as_stream(self._core))
        batch, numbers = split_entry_numbers(batch)
        return request.ordered(batch), numbers

    def _pieces(self, request: _select.Request) -> list[_select.Request]:
        """What is read of a request, in ranges of entries."""
        return [request]

    def _pieces_of_files(self, request: _select.Request) -> list[_select.Request]:
        """The same, each within one file."""
        return [request]

    def _report(self, start: int, stop: int) -> Report:
        """The origin of a batch."""
        return Report(start, stop, self.file_path, self.object_path)

    def _batches(
        self, requests: list[_select.Request], step_size: SupportsIndex | str, progress: Progress = None
    ) -> Iterator[EntryBatch]:
        """The results in batches, each within one of the requests."""
        size = _select.check_step_size(step_size)
        is_cut = any(request.cut is not None for request in requests)

        def begin(request: _select.Request) -> Any:
            return self._core.batches(
                with_entry_numbers(request) if is_cut else request,
                batch_entries=size if isinstance(size, int) else 1,
                batch_bytes=parse_bytes(size) if isinstance(size, str) else None,
            )

        def entry_batch(found: _core.Batch) -> EntryBatch:
            start, stop, batch = found.entry_start, found.entry_stop, self._warned(found.data)
            return EntryBatch(start, stop, *(split_entry_numbers(batch) if is_cut else (batch, range(start, stop))))

        # Errors of the request are raised immediately.
        first = begin(requests[0]) if requests else []
        batches = chain(first, chain.from_iterable(map(begin, requests[1:])))
        total = sum(request.entry_stop - request.entry_start for request in requests)
        return map(entry_batch, steps(batches, progress, total))

    @property
    def _shares_memory(self) -> bool:
        # Functions of rules may keep references to their arguments and results.
        return bool(self._rules)

    def _request(
        self,
        expressions: str | Iterable[str] | None,
        cut: str | None,
        options: Mapping[str, Any],
        schema: Mapping[str, Any] | pa.Schema | None = None,
    ) -> _select.Request:
        """The request for the keywords of `ReadOptions`; the default range is all entries."""
        request = _select.Request(aliases=_select.aliases(options.get("aliases")), cut=_select.cut(cut))
        if self._columns is not None:
            self._columns.offer(request, with_all=expressions is None)
        filters: dict[str, Any] = {
            name: options.get(name) for name in ("filter_name", "filter_typename", "filter_field")
        }
        is_filtered = any(one is not None for one in filters.values())
        if schema is not None:
            if expressions is not None or is_filtered:
                raise InvalidArgumentError("a schema selects the fields; remove the expressions or filters")
            request.schema = declarations.target_schema(schema)
        elif is_filtered:
            if expressions is not None:
                raise InvalidArgumentError("give expressions or filters, not both")
            wanted = self.keys(**filters)
            if not wanted:
                raise NotFoundError(
                    f"{self.file_path}: ntuple '{self._path}': none of {len(self)} fields matches the filters"
                    f"{self._hint_of_filters}"
                )
            request.patterns = [_select.escape_glob(name) for name in wanted]
        elif expressions is not None:
            request.patterns = None
            asked = [self._path_of(text) for text in _select.string_list("expressions", expressions)]
            for text in asked:
                request.add(text, self._by_path)
            patterns: list[str] | None = request.patterns
            for pattern in patterns or []:
                if not _select.is_glob(pattern) and pattern not in self._by_path:
                    raise self._no_such_field(pattern)
            request.order = self._order(asked, request)
        start, stop = options.get("entry_start"), options.get("entry_stop")
        request.entry_start, request.entry_stop = _select.entry_range(start, stop, self.num_entries)
        return request

    @property
    def _hint_of_filters(self) -> str:
        """What can be done if filters match no field."""
        return ""

    def _order(self, asked: list[str], request: _select.Request) -> list[str]:
        """Names of the columns in the requested order; empty if a glob leaves the order open."""
        computed = {name for name, _ in request.computed}
        if not all(text in computed or text in self._by_path for text in asked):
            return []
        return list(dict.fromkeys(text if text in computed else self._top_level_name(text) for text in asked))

    def _top_level_name(self, path: str) -> str:
        """The name of the top-level field that contains a field."""
        if "." not in path:
            # Without making `_fields`.
            return path
        index = self._by_path[path]
        while (parent := self._fields[index].parent) is not None:
            index = parent
        return self._fields[index].name
