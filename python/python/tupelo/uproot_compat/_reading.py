"""Files with the methods that they have in uproot."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from .. import _core, _select
from .._many import count_from, each
from .._short import short
from ..errors import InvalidArgumentError, NotFoundError, UnsupportedError
from ..reading import NTUPLE_CLASSES, File
from ..reading import open as open_file
from ._directory import Directory
from ._fields import HasFields, Report
from ._ntuple import RField, RNTuple
from ._options import check_options, library_name

_DIRECTORIES = "TDirectory", "TDirectoryFile"


class _Object(NamedTuple):
    path: str
    class_name: str
    title: str
    cycle: int

    @property
    def key(self) -> str:
        return f"{self.path};{self.cycle}"


def open(path: Any, **options: Any) -> "ReadOnlyDirectory | RNTuple | RField":
    """Opens a file, or an object in it.

    Files are named as ``"f.root"``, ``"f.root:name"``, ``{"f.root": "name"}``, or given as a path or a file object.
    Options that make no difference to what is read are taken and do nothing.
    """
    check_options("open", options)
    name = None
    if isinstance(path, Mapping):
        if len(path) != 1:
            raise TypeError(f"a dict with exactly one key and value is needed, not {short(path)}")
        ((path, name),) = path.items()
    elif isinstance(path, str):
        path, name = _core.parse_location(path)
    directory = ReadOnlyFile(_file(path)).root_directory
    return directory if name is None else directory[name]


def _file(path: Any) -> File:
    """The whole file, whatever colons its name has."""
    opened = open_file(path if hasattr(path, "read") else Path(path))
    assert isinstance(opened, File)
    return opened


class ReadOnlyFile:
    """An open file."""

    def __init__(self, core: File) -> None:
        self.core = core
        self.file_path = core.file_path
        self._ntuples: dict[str, RNTuple] = {}
        self.closed = False
        self.root_directory = ReadOnlyDirectory(self, "")

    def objects(self) -> list[_Object]:
        """What is in it, in all directories."""
        return [_Object(*row[:4]) for row in self.core._core.objects()]

    def ntuple(self, key: str, directory: "ReadOnlyDirectory") -> RNTuple:
        """An ntuple by path and cycle; always the same object."""
        if key not in self._ntuples:
            self._ntuples[key] = RNTuple(self.core[key], directory)
        return self._ntuples[key]

    def close(self) -> None:
        """Lets go of the file. Ntuples that were taken from it can still be read."""
        self.closed = True
        self.core.close()

    def __enter__(self) -> "ReadOnlyFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ReadOnlyFile {self.file_path!r}>"


class ReadOnlyDirectory(Directory):
    """A directory of a file that is read."""

    file: ReadOnlyFile

    @property
    def parent(self) -> "ReadOnlyDirectory | None":
        """The directory around it."""
        return ReadOnlyDirectory(self.file, self._inside.rpartition("/")[0]) if self._inside else None

    def _rows(self) -> Iterator[tuple[str, int, str]]:
        return ((one.path, one.cycle, one.class_name) for one in self.file.objects())

    def iteritems(self, **which: Any) -> Iterator[tuple[str, Any]]:
        """Pairs of name and object; keywords are those of `iterclassnames`."""
        return ((key, self[key]) for key in self.iterkeys(**which))

    def itervalues(self, **which: Any) -> Iterator[Any]:
        """The objects."""
        return (value for _, value in self.iteritems(**which))

    def values(self, **which: Any) -> list[Any]:  # type: ignore[override]
        """`itervalues` as a list."""
        return list(self.itervalues(**which))

    def items(self, **which: Any) -> list[tuple[str, Any]]:  # type: ignore[override]
        """`iteritems` as a list."""
        return list(self.iteritems(**which))

    def classname_of(self, where: str) -> str:
        """The class of an object."""
        return self._find(where).class_name

    def title_of(self, where: str) -> str:
        """The title of an object."""
        return self._find(where).title

    def _find(self, where: str) -> _Object:
        path, _, cycle = where.strip("/").partition(";")
        whole = self._whole(path)
        alike = [one for one in self.file.objects() if one.path == whole and cycle in ("", str(one.cycle))]
        if not alike:
            raise self._no_object(where)
        return max(alike, key=lambda one: one.cycle)

    def __getitem__(self, where: str) -> Any:
        if not isinstance(where, str):
            raise TypeError(f"where must be a string, not {short(where)}")
        try:
            one = self._find(where)
        except NotFoundError:
            # The way may go on in an ntuple.
            ntuple, _, field = where.rstrip("/").rpartition("/")
            if not ntuple:
                raise
            found = self[ntuple]
            if not isinstance(found, HasFields):
                raise
            return found[field]
        if one.class_name in _DIRECTORIES:
            return ReadOnlyDirectory(self.file, one.path)
        if one.class_name not in NTUPLE_CLASSES:
            raise UnsupportedError(
                f"{self.file_path}: '{one.path}' is a {one.class_name}, and only RNTuples can be read; uproot reads it"
            )
        directory = ReadOnlyDirectory(self.file, one.path.rpartition("/")[0])
        return self.file.ntuple(one.key, directory)

    def __contains__(self, where: object) -> bool:
        try:
            return isinstance(where, str) and self._find(where) is not None
        except NotFoundError:
            return False

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadOnlyDirectory) and (self.file, self._inside) == (other.file, other._inside)

    def _ipython_key_completions_(self) -> Iterator[str]:
        return self.iterkeys(cycle=False)

    def __enter__(self) -> "ReadOnlyDirectory":
        return self


def iterate(
    files: Any,
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    library: Any = "ak",
    report: bool = False,
    allow_missing: bool = False,
    **how: Any,
) -> Iterator[Any]:
    """Pieces of the entries of many files; other keywords are those of ``RNTuple.iterate``."""
    library, offset = library_name(library), 0
    for ntuple in _ntuples(files, allow_missing):
        for piece, own in ntuple.iterate(expressions, cut, library=library, report=True, **how):
            if library == "pd":
                count_from(offset, piece)
            yield (piece, own.to_global(offset)) if report else piece
        offset += ntuple.num_entries


def concatenate(
    files: Any,
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    *,
    entry_start: SupportsIndex | None = None,
    entry_stop: SupportsIndex | None = None,
    library: Any = "ak",
    allow_missing: bool = False,
    **how: Any,
) -> Any:
    """The entries of many files in one array; other keywords are those of ``RNTuple.arrays``."""
    library, ntuples = library_name(library), list(_ntuples(files, allow_missing))
    total = sum(ntuple.num_entries for ntuple in ntuples)
    start, stop = _select.entry_range(entry_start, entry_stop, total)
    pieces: list[Any] = []
    offset = 0
    for ntuple in ntuples:
        first, last = max(start - offset, 0), min(stop - offset, ntuple.num_entries)
        if first < last or (not pieces and ntuple is ntuples[-1]):
            how["entry_start"], how["entry_stop"] = min(first, ntuple.num_entries), max(last, 0)
            piece = ntuple.arrays(expressions, cut, library=library, **how)
            if library == "pd":
                count_from(offset, piece)
            pieces.append(piece)
        offset += ntuple.num_entries
    return _joined(pieces, library)


def _joined(pieces: list[Any], library: str) -> Any:
    if not pieces:
        return pieces
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], dict):
        return {name: _joined([piece[name] for piece in pieces], library) for name in pieces[0]}
    if isinstance(pieces[0], tuple | list):
        return type(pieces[0])(_joined(list(several), library) for several in zip(*pieces, strict=True))
    if library == "np":
        masked = any(isinstance(piece, np.ma.MaskedArray) for piece in pieces)
        if masked:
            return np.ma.concatenate(pieces)  # type: ignore[no-untyped-call]
        return np.concatenate(pieces)
    if library == "ak":
        import awkward as ak

        return ak.concatenate(pieces)
    if library == "pd":
        import pandas as pd

        return pd.concat(pieces)
    import pyarrow as pa

    return pa.concat_tables(pieces) if isinstance(pieces[0], pa.Table) else pa.chunked_array(pieces)


def num_entries(paths: Any) -> Iterator[tuple[str, str, int]]:
    """File, name and number of entries of each ntuple; no entries are read."""
    for ntuple in _ntuples(paths, False):
        yield ntuple.ntuple.file_path, ntuple.ntuple.object_path, ntuple.num_entries


def _ntuples(files: Any, allow_missing: bool) -> Iterator[HasFields]:
    def find(path: str, name: str | None) -> HasFields:
        directory = ReadOnlyFile(_file(path)).root_directory
        found = directory[directory.file.core.only().object_path if name is None else name]
        if not isinstance(found, HasFields):
            raise InvalidArgumentError(f"{path}: '{name}' is a directory, not an ntuple")
        return found

    # Abstract, as far as checkers of types are concerned.
    kind: Any = HasFields
    return each(files, kind, find, allow_missing)


def first_ntuple(files: Any) -> RNTuple:
    """The first of many.

    Raises `NotFoundError` where there is none.
    """
    for found in _ntuples(files, False):
        return found.ntuple
    raise NotFoundError("no files are named")


__all__ = [
    "ReadOnlyDirectory",
    "ReadOnlyFile",
    "Report",
    "concatenate",
    "first_ntuple",
    "iterate",
    "num_entries",
    "open",
]
