"""Several files as one sequence of entries."""

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import _core
from .._base import arrow
from .._base.checks import storage
from .._base.locations import NtupleLocation, Report
from .._base.messages import short_repr
from .._base.progress import Progress
from .._base.sizes import parse_optional_bytes
from ..errors import InvalidArgumentError, MissingFileError, NotFoundError, TupeloWarning
from ..fields import _select
from ..ntuple._entries import Entries
from ..ntuple._ntuple import Ntuple
from ._files import InputNtuple, entry_ranges, listed, resolve

FieldPolicy = Literal["common", "union"]
"""Which fields to read if files differ: those that all files have, or those that any file has, with missing values for
files that lack them."""


def check_policy(fields: object) -> None:
    """Raises `InvalidArgumentError` for invalid values of ``fields``."""
    if fields not in ("common", "union"):
        raise InvalidArgumentError(
            f"fields={short_repr(fields)}: expected 'common' (the fields that all files have) or 'union' (the "
            "fields that any file has, with missing values)"
        )


def warn_of_missing_fields(
    missing: str | None, stacklevel: int, advice: str = "fields='union' reads them with missing values"
) -> None:
    """Warns of fields that are not read because some files lack them."""
    if missing is not None:
        text = f"skipped the fields that some files lack: {missing}; {advice}"
        warnings.warn(text, TupeloWarning, stacklevel=stacklevel)


class ChainPart(NamedTuple):
    """An ntuple or tree of a `Chain`, and its entries."""

    file_path: str
    object_path: str
    entry_start: int
    """Number of entries in earlier files."""
    entry_stop: int


@dataclass(frozen=True)
class ChainLocation:
    """The files of a chain, from which it can be opened again; this is what gets pickled."""

    places: tuple[InputNtuple | Ntuple, ...]
    fields: FieldPolicy = "common"
    allow_missing: bool = False
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS
    memory_budget: int | None = None
    storage: "_core.Storage | None" = None

    def open(self) -> "_core.Table":
        """Opens the files and compares their fields.

        Raises `InvalidArgumentError` if no ntuple is left.
        """
        places = [
            place._core if isinstance(place, Ntuple) else (place.absolute_path, place.name) for place in self.places
        ]
        try:
            return _core.chain(
                places,
                fields=self.fields,
                allow_missing=self.allow_missing,
                page_checksums=self.page_checksums,
                memory_budget=self.memory_budget,
                storage=self.storage,
            )
        except MissingFileError:
            raise
        except NotFoundError as error:
            if self.allow_missing or not places:
                raise InvalidArgumentError(str(error)) from None
            raise


class Chain(Entries):
    """Ntuples or trees of several files, one after the other: a mapping from dotted paths to fields, with the methods
    of an `Ntuple` that read entries. `open` returns it for several files.

    Entries are counted through all files. It has the fields that all files have, or with ``fields="union"`` those that
    any file has, with missing values for the entries of files that lack them. Expressions and cuts need fields that all
    files have. Batches of `iterate` do not span two files. Few files are open at a time.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"chain{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> events = tupelo.open(["chain1.root:Events", "chain2.root:Events"])
    >>> events
    <tupelo.Chain 'Events' of 2 files (1 fields, 4 entries)>
    >>> events.arrays("x", cut="x > 1", library="np")
    {'x': array([10,  2, 20])}
    >>> [(part.file_path, part.entry_start, part.entry_stop) for part in events.parts]
    [('chain1.root', 0, 2), ('chain2.root', 2, 4)]
    """

    _class = "Chain"

    def __init__(self, location: ChainLocation, *, is_quiet: bool = False) -> None:
        core = location.open()
        origin = NtupleLocation(core.file_path, (core.path,), None, storage=location.storage)
        self._chain_location = location
        self._numbers = core.part_numbers()
        self._paths, self._starts, self._stops = core.parts()
        self._steps: list[tuple[int, int]] | None = None
        super().__init__(core, origin, is_quiet=is_quiet)
        for text in [] if is_quiet else core.deviations():
            warnings.warn(f"{core.file_path}: {text}", TupeloWarning, stacklevel=4)

    @property
    def parts(self) -> list[ChainPart]:
        """The ntuples and trees that are not left out, and their entries."""
        return [self._part(index) for index in range(self.num_files)]

    def _part(self, index: int) -> ChainPart:
        place = self._chain_location.places[self._numbers[index]]
        # As it was given, unless the working directory has changed.
        path = place.file_path if isinstance(place, Ntuple) else _core.display_name(place.path_from_here)
        return ChainPart(path, self._paths[index], self._starts[index], self._stops[index])

    @property
    def num_files(self) -> int:
        """Number of files that are not left out."""
        return len(self._numbers)

    def _with_steps(self) -> "Chain":
        """The same chain, of which only the ranges of entries are read that its files are given with."""
        if any(isinstance(place, InputNtuple) and place.steps is not None for place in self._chain_location.places):
            self._steps = [
                (part.entry_start + start, part.entry_start + stop)
                for number, part in zip(self._numbers, self.parts, strict=True)
                for start, stop in self._ranges_of(self._chain_location.places[number], part)
            ]
        return self

    @staticmethod
    def _ranges_of(place: InputNtuple | Ntuple, part: ChainPart) -> list[tuple[int, int]]:
        num_entries = part.entry_stop - part.entry_start
        return [(0, num_entries)] if isinstance(place, Ntuple) else entry_ranges(place, num_entries)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of entries that are read: all entries, or the steps of the files."""
        return [(0, self.num_entries)] if self._steps is None else self._steps

    def _within(self, request: _select.Request, ranges: Iterable[tuple[int, int]]) -> Iterator[_select.Request]:
        """The parts of a request within ranges."""
        for start, stop in ranges:
            start, stop = max(start, request.entry_start), min(stop, request.entry_stop)
            if start < stop:
                yield replace(request, entry_start=start, entry_stop=stop)

    def _pieces(self, request: _select.Request) -> list[_select.Request]:
        return list(self._within(request, self.ranges))

    def _pieces_of_files(self, request: _select.Request) -> list[_select.Request]:
        if self._steps is not None:
            return self._pieces(request)
        return list(self._within(request, zip(self._starts, self._stops, strict=True)))

    def _whole(self, request: _select.Request, progress: Progress = None) -> tuple[Any, Any]:
        if self._steps is None:
            return super()._whole(request, progress)
        # An empty piece has the columns.
        pieces = self._pieces(request) or [replace(request, entry_stop=request.entry_start)]
        parts = [self._stream_batch(piece) for piece in pieces]
        return arrow.combine_batches([batch for batch, _ in parts]), np.concatenate([entries for _, entries in parts])

    def _report(self, start: int, stop: int) -> Report:
        # Parts without entries end where they start.
        part = self._part(min(bisect_right(self._stops, start), self.num_files - 1))
        return Report(start, stop, part.file_path, part.object_path, part.entry_start)

    @property
    def _shares_memory(self) -> bool:
        return any(isinstance(place, Ntuple) and place._shares_memory for place in self._chain_location.places)

    @property
    def _inputs(self) -> list[str | None]:
        return [
            place._location.absolute_path if isinstance(place, Ntuple) else place.absolute_path
            for place in self._chain_location.places
        ]

    def _no_such_field(self, path: object) -> Exception:
        if isinstance(path, str) and self._core.is_differing(path):
            # The engine knows which files lack it, or have another type.
            self._core.arrow_schema(_select.Request([_select.escape_glob(path)]))
        return super()._no_such_field(path)

    @property
    def _hint_of_filters(self) -> str:
        missing = self._core.missing_fields()
        return "" if missing is None else f"; some files lack {missing}, which fields='union' reads"

    def _warn_of_missing_fields(self, stacklevel: int) -> None:
        """Warns of the fields that some files lack."""
        warn_of_missing_fields(self._core.missing_fields(), stacklevel + 1)

    def __repr__(self) -> str:
        from_files = f"of {self.num_files} file{'s' if self.num_files != 1 else ''}"
        return super().__repr__().replace(" (", f" {from_files} (", 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._chain_location,)


def _reopen(location: ChainLocation) -> Chain:
    """Opens an unpickled chain."""
    # The warnings were issued where it was pickled.
    return Chain(location, is_quiet=True)


def open_chain(
    files: Any, options: Mapping[str, Any], fields: FieldPolicy = "common", *, is_quiet: bool = False
) -> Chain:
    """The chain of the files of `iterate`, with `FileOptions`.

    Raises `InvalidArgumentError` if no ntuple is left.
    """
    check_policy(fields)
    remote = storage(options["storage_options"], options["cache"])
    places: list[InputNtuple | Ntuple] = []
    for one in listed(files, Ntuple):
        places += [one] if isinstance(one, Ntuple) else resolve(one, remote)
    budget = parse_optional_bytes("memory_budget", options["memory_budget"])
    location = ChainLocation(tuple(places), fields, options["allow_missing"], options["page_checksums"], budget, remote)
    return Chain(location, is_quiet=is_quiet)._with_steps()
