"""Files with the methods that they have in uproot."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from .. import _core, _select
from .._files import expand
from .._select import Filter
from ..errors import NotFoundError, UnsupportedError
from ..reading import File
from ..reading import open as open_file
from ._ntuple import HasFields, Report, RField, RNTuple
from ._options import check_options, library_name, matcher

NTUPLE_CLASSES = "ROOT::RNTuple", "ROOT::Experimental::RNTuple"
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
            raise TypeError(f"a dict with exactly one key and value is needed, not {path!r}")
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


class ReadOnlyDirectory(Mapping[str, Any]):
    """A directory of a file: a mapping from names, ``"name"`` or ``"name;cycle"``, to what is in it."""

    classname = "TDirectory"

    def __init__(self, file: ReadOnlyFile, inside: str) -> None:
        self.file = file
        self._inside = inside

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the directories around it, and its own."""
        return tuple(name for name in self._inside.split("/") if name)

    @property
    def object_path(self) -> str:
        """The same as a text: ``"/dir"``."""
        return "/" + self._inside

    @property
    def file_path(self) -> str:
        """Path of the file."""
        return self.file.file_path

    @property
    def parent(self) -> "ReadOnlyDirectory | None":
        """The directory around it."""
        return ReadOnlyDirectory(self.file, self._inside.rpartition("/")[0]) if self._inside else None

    def _objects(self, recursive: bool, filter_name: Filter, filter_classname: Filter) -> Iterator[tuple[str, _Object]]:
        """Pairs of path from here on and object."""
        fits_name, fits_class = matcher(filter_name), matcher(filter_classname)
        lead = self._inside + "/" if self._inside else ""
        for one in self.file.objects():
            path = one.path.removeprefix(lead)
            if not one.path.startswith(lead) or ("/" in path and not recursive):
                continue
            if (fits_name(path) or fits_name(path.rpartition("/")[2])) and fits_class(one.class_name):
                yield path, one

    def iterkeys(
        self,
        *,
        recursive: bool = True,
        cycle: bool = True,
        filter_name: Filter = None,
        filter_classname: Filter = None,
    ) -> Iterator[str]:
        """Names of all objects, with ``;cycle`` unless told otherwise."""
        seen = set()
        for path, one in self._objects(recursive, filter_name, filter_classname):
            key = f"{path};{one.cycle}" if cycle else path
            if key not in seen:
                seen.add(key)
                yield key

    def iterclassnames(self, *, recursive: bool = True, cycle: bool = True, **which: Any) -> Iterator[tuple[str, str]]:
        """Pairs of name and class."""
        for key in self.iterkeys(recursive=recursive, cycle=cycle, **which):
            yield key, self.classname_of(key)

    def iteritems(self, *, recursive: bool = True, cycle: bool = True, **which: Any) -> Iterator[tuple[str, Any]]:
        """Pairs of name and object."""
        return ((key, self[key]) for key in self.iterkeys(recursive=recursive, cycle=cycle, **which))

    def itervalues(self, *, recursive: bool = True, **which: Any) -> Iterator[Any]:
        """The objects."""
        return (value for _, value in self.iteritems(recursive=recursive, **which))

    def keys(self, **which: Any) -> list[str]:  # type: ignore[override]
        """`iterkeys` as a list."""
        return list(self.iterkeys(**which))

    def values(self, **which: Any) -> list[Any]:  # type: ignore[override]
        """`itervalues` as a list."""
        return list(self.itervalues(**which))

    def items(self, **which: Any) -> list[tuple[str, Any]]:  # type: ignore[override]
        """`iteritems` as a list."""
        return list(self.iteritems(**which))

    def classnames(self, **which: Any) -> dict[str, str]:
        """Classes by name."""
        return dict(self.iterclassnames(**which))

    def classname_of(self, where: str) -> str:
        """The class of an object."""
        return self._find(where).class_name

    def title_of(self, where: str) -> str:
        """The title of an object."""
        return self._find(where).title

    def _find(self, where: str) -> _Object:
        path, _, cycle = where.strip("/").partition(";")
        whole = f"{self._inside}/{path}" if self._inside else path
        alike = [one for one in self.file.objects() if one.path == whole and cycle in ("", str(one.cycle))]
        if not alike:
            names = ", ".join(map(repr, self.keys(cycle=False)[:20])) or "none"
            raise NotFoundError(f"{self.file_path}: no object is called {where!r} (there are: {names})")
        return max(alike, key=lambda one: one.cycle)

    def __getitem__(self, where: str) -> Any:
        if not isinstance(where, str):
            raise TypeError(f"where must be a string, not {where!r}")
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

    def __iter__(self) -> Iterator[str]:
        return self.iterkeys()

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadOnlyDirectory) and (self.file, self._inside) == (other.file, other._inside)

    def _ipython_key_completions_(self) -> Iterator[str]:
        return self.iterkeys(cycle=False)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self.file.closed

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "ReadOnlyDirectory":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ReadOnlyDirectory {self.object_path!r}>"


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
    short, offset = library_name(library), 0
    for ntuple in _ntuples(files, allow_missing):
        for piece, own in ntuple.iterate(expressions, cut, library=library, report=True, **how):
            _count_from(piece, offset, short)
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
    short, ntuples = library_name(library), list(_ntuples(files, allow_missing))
    total = sum(ntuple.num_entries for ntuple in ntuples)
    start, stop = _select.entry_range(entry_start, entry_stop, total)
    pieces: list[Any] = []
    offset = 0
    for ntuple in ntuples:
        first, last = max(start - offset, 0), min(stop - offset, ntuple.num_entries)
        if first < last or (not pieces and ntuple is ntuples[-1]):
            how["entry_start"], how["entry_stop"] = min(first, ntuple.num_entries), max(last, 0)
            piece = ntuple.arrays(expressions, cut, library=library, **how)
            _count_from(piece, offset, short)
            pieces.append(piece)
        offset += ntuple.num_entries
    return _joined(pieces, short)


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


def _count_from(piece: Any, offset: int, library: str) -> None:
    """Lets the index of data frames count through all files."""
    if library != "pd":
        return
    for one in piece.values() if isinstance(piece, dict) else piece if isinstance(piece, list | tuple) else [piece]:
        one.index = one.index + offset


def num_entries(paths: Any) -> Iterator[tuple[str, str, int]]:
    """File, name and number of entries of each ntuple; no entries are read."""
    for ntuple in _ntuples(paths, False):
        yield ntuple.file_path, ntuple.object_path, ntuple.num_entries


def _ntuples(files: Any, allow_missing: bool) -> Iterator[Any]:
    is_one = isinstance(files, str | Mapping) or not isinstance(files, Iterable)
    for one in [files] if is_one or isinstance(files, HasFields) else files:
        if isinstance(one, HasFields):
            yield one
            continue
        for path, name in expand(one):
            directory = ReadOnlyFile(_file(path)).root_directory
            if name is None:
                name = directory.file.core.only().object_path
            try:
                found = directory[name]
            except NotFoundError:
                if allow_missing:
                    continue
                raise
            yield found


def first_ntuple(files: Any) -> RNTuple:
    """The first of many.

    Raises `NotFoundError` where there is none.
    """
    for ntuple in _ntuples(files, False):
        found: RNTuple = ntuple
        return found
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
