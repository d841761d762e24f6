"""Entries of many files, one after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from . import _arrow, _core, _select
from ._awkward import AddDoc, Style
from ._files import Files, expand
from ._libraries import How, Library, check_how, hand_out
from ._select import Filter
from ._sizes import optional_bytes
from .errors import InvalidArgumentError, MissingFileError, NotFoundError
from .fields import Field
from .ntuple import DEFAULT_STEP, Ntuple
from .reading import File, reopen

N = TypeVar("N")


def iterate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    step_size: SupportsIndex | str = DEFAULT_STEP,
    aliases: Mapping[str, str] | None = None,
    library: Library = "ak",
    filter_name: Filter = None,
    filter_typename: Filter = None,
    filter_field: Callable[[Field], object] | None = None,
    report: bool = False,
    how: How = None,
    ak_add_doc: AddDoc = False,
    binary_strings: bool = False,
    allow_missing: bool = False,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    **unknown: object,
) -> Iterator[Any]:
    """Reads the entries of many files piece by piece, as `Ntuple.iterate` does those of one.

    ``files`` are those of `partitions`, or ntuples that are open. A piece never spans two files. The `Report` of a
    piece counts entries through all files, and so does the index of data frames. With ``allow_missing``, files without
    an ntuple of the name are left out; the file itself must be there. ``page_checksums`` and ``memory_budget`` are
    those of `open`; files are opened when it is their turn.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"iterate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> for piece, report in tupelo.iterate("iterate?.root:Events", "x", report=True, library="np"):
    ...     print(report.file_path, report.start, report.stop, piece["x"])
    iterate1.root 0 2 [ 1 10]
    iterate2.root 2 4 [ 2 20]
    """
    # Not a generator itself, so that what is wrong is said at once.
    _select.refuse("iterate", unknown)
    _select.check_library(library)
    check_how(how, library)
    Style(ak_add_doc)
    _select.step(step_size)
    ntuples = _ntuples(files, allow_missing, page_checksums, memory_budget)

    def pieces() -> Iterator[Any]:
        offset = 0
        for ntuple in ntuples:
            mine = ntuple.iterate(
                expressions,
                cut,
                step_size=step_size,
                aliases=aliases,
                library=library,
                filter_name=filter_name,
                filter_typename=filter_typename,
                filter_field=filter_field,
                report=True,
                how=how,
                ak_add_doc=ak_add_doc,
                binary_strings=binary_strings,
            )
            for piece, own in mine:
                whole = replace(own, start=own.start + offset, stop=own.stop + offset, global_offset=offset)
                if library == "pd":
                    count_from(offset, piece)
                yield (piece, whole) if report else piece
            offset += ntuple.num_entries

    return pieces()


def concatenate(
    files: Files | Ntuple | Iterable[Ntuple],
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
    entry_start: SupportsIndex | None = None,
    entry_stop: SupportsIndex | None = None,
    library: Library = "ak",
    filter_name: Filter = None,
    filter_typename: Filter = None,
    filter_field: Callable[[Field], object] | None = None,
    how: How = None,
    ak_add_doc: AddDoc = False,
    binary_strings: bool = False,
    allow_missing: bool = False,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    **unknown: object,
) -> Any:
    """Reads the entries of many files into one array, as `Ntuple.arrays` does those of one.

    ``files`` and ``allow_missing`` are those of `iterate`; ``entry_start`` and ``entry_stop`` count through all files.
    All else, ``filter_name``, ``filter_typename`` and ``filter_field`` too, is as in `Ntuple.arrays`. The chosen fields
    must have the same names and types in all of them.

    Raises `InvalidArgumentError` where they do not, saying how, and where there is no file.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"concatenate{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.concatenate("concatenate?.root", "x", entry_start=1, library="np")
    {'x': array([10,  2, 20])}
    """
    _select.refuse("concatenate", unknown)
    _select.check_library(library)
    check_how(how, library)
    style = Style(ak_add_doc)
    ntuples = list(_ntuples(files, allow_missing, page_checksums, memory_budget))
    if not ntuples:
        raise InvalidArgumentError("there is no ntuple in any of the files")
    ends = np.cumsum([0, *(ntuple.num_entries for ntuple in ntuples)]).tolist()
    first, last = _select.entry_range(entry_start, entry_stop, ends[-1])
    batches: list[Any] = []
    numbers: list[Any] = []
    for ntuple, start, stop in zip(ntuples, ends, ends[1:], strict=False):
        mine = max(first, start), min(last, stop)
        if mine[0] >= mine[1] and (batches or ntuple is not ntuples[-1]):
            continue
        batch, entries = ntuple._batch(
            expressions,
            cut,
            aliases,
            (filter_name, filter_typename, filter_field),
            (max(0, mine[0] - start), max(0, mine[0] - start, mine[1] - start)),
            binary_strings,
        )
        if batches and not batch.schema.equals(batches[0].schema):
            raise InvalidArgumentError(
                f"{ntuple.file_path}: ntuple '{ntuple.object_path}' differs from the one before: "
                f"{_select.difference(_types(batches[0]), _types(batch))}"
            )
        batches.append(batch)
        numbers.append(np.asarray(entries) + start)
    entries = range(first, max(first, last)) if cut is None else np.concatenate(numbers)
    is_kept = any(ntuple._is_kept for ntuple in ntuples)
    return hand_out(_arrow.one_batch(batches), library, entries, style, how, is_kept=is_kept)


def num_entries(
    files: Files | Ntuple | Iterable[Ntuple], *, allow_missing: bool = False
) -> Iterator[tuple[str, str, int]]:
    """The number of entries of each ntuple of many files, as (file, ntuple, number); no entries are read.

    ``files`` and ``allow_missing`` are those of `iterate`. Raises what `open` does.

    >>> import tupelo
    >>> with tupelo.recreate("num_entries.root") as file:
    ...     file["Events"] = {"x": [1, 2, 3]}
    >>> list(tupelo.num_entries("num_*.root"))
    [('num_entries.root', 'Events', 3)]
    """
    for ntuple in _ntuples(files, allow_missing, _core.DEFAULT_PAGE_CHECKSUMS, None):
        yield ntuple.file_path, ntuple.object_path, ntuple.num_entries


def _ntuples(
    files: Any, allow_missing: bool, page_checksums: bool, memory_budget: int | str | None
) -> Iterator[Ntuple]:
    """Opens them one after the other."""
    budget = optional_bytes("memory_budget", memory_budget)

    def find(path: str, name: str | None) -> Ntuple:
        file: File = reopen(path, page_checksums, budget, False)
        return file.only() if name is None else file[name]

    return each(files, Ntuple, find, allow_missing)


def each(files: Any, kind: type[N], find: Callable[[str, str | None], N], allow_missing: bool) -> Iterator[N]:
    """The ntuples of files, one after the other: those of a class that are open already, and those that are found.

    Files that are none are refused at once; they are opened when it is their turn.
    """
    is_one = isinstance(files, str | Mapping | kind) or not isinstance(files, Iterable)
    places: list[Any] = []
    for one in [files] if is_one else files:
        places += [one] if isinstance(one, kind) else expand(one)

    def found() -> Iterator[N]:
        for place in places:
            try:
                yield place if isinstance(place, kind) else find(*place)
            except MissingFileError:
                raise
            except NotFoundError:
                if not allow_missing:
                    raise

    return found()


def count_from(offset: int, piece: Any) -> None:
    """Lets the index of data frames, and of series, count the entries before too."""
    several = piece.values() if isinstance(piece, dict) else piece if isinstance(piece, list | tuple) else [piece]
    for one in several:
        one.index = one.index + offset


def _types(batch: Any) -> dict[str, str]:
    """What columns there are."""
    return {field.name: f"{field.type}{' or missing' if field.nullable else ''}" for field in batch.schema}
