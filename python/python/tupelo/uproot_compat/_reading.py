"""Files with the methods of uproot."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from .. import _core
from .._checks import check_path
from .._messages import short_repr
from ..errors import NotFoundError
from ..ntuple import Tree
from ..reading import TABLE_CLASSES, File
from ..reading import open as open_file
from ._directory import Directory
from ._fields import HasColumns
from ._ntuple import RNTuple
from ._options import Compression, check_options
from ._table import Table
from ._trees import TBranch, TTree
from ._uproot import join_uproot

_DIRECTORIES = "TDirectory", "TDirectoryFile"


class _Object(NamedTuple):
    path: str
    class_name: str
    title: str
    cycle: int

    @property
    def key(self) -> str:
        return f"{self.path};{self.cycle}"


def open(path: Any, **options: Any) -> Any:
    """Opens a file, or an object in it.

    A file is ``"f.root"``, ``"f.root:name"``, ``{"f.root": "name"}``, any of these with a URL, a path or a file
    object. Options without effect on the result are ignored; ``open.defaults`` has those of uproot.
    """
    check_options("open", options)
    name = None
    if isinstance(path, Mapping):
        if len(path) != 1:
            raise TypeError(f"expected a dict with exactly one key and value, not {short_repr(path)}")
        ((path, name),) = path.items()
    elif isinstance(path, str):
        path, name = _core.parse_location(check_path(path))
    directory = ReadOnlyFile(_file(path), options).root_directory
    return directory if name is None else directory[name]


open.defaults = {  # type: ignore[attr-defined]
    "handler": None,
    "max_num_elements": None,
    "num_workers": 1,
    "use_threads": True,
    "num_fallback_workers": 10,
    "begin_chunk_size": 403,
    "minimal_ttree_metadata": True,
    "http_max_header_bytes": 21784,
}


def _file(path: Any) -> File:
    """Opens a file whose name may contain colons."""
    if isinstance(path, str):
        path = {check_path(path): None}
    opened = open_file(path)
    assert isinstance(opened, File)
    return opened


class Source:
    """The source of the bytes of a file."""

    def __init__(self, file: "ReadOnlyFile") -> None:
        self._file = file

    @property
    def file_path(self) -> str:
        """Path of the file."""
        return self._file.file_path

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self._file.core.size_bytes

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file.closed

    def __repr__(self) -> str:
        return f"<Source {self.file_path!r}>"


class ReadOnlyFile:
    """An open file."""

    def __init__(self, core: File, options: Mapping[str, Any] | None = None) -> None:
        join_uproot()
        self.core = core
        self.file_path = core.file_path
        self.options = {**open.defaults, **(options or {})}  # type: ignore[attr-defined]
        """Options of uproot, which have no effect."""
        self.source = Source(self)
        """The source of its bytes."""
        self._tables: dict[str, Table] = {}
        self.closed = False
        self.root_directory = ReadOnlyDirectory(self, "")

    @cached_property
    def _header(self) -> tuple[int, bool, int, int, int, bytes]:
        return self.core._core.header()

    @property
    def root_version_tuple(self) -> tuple[int, int, int]:
        """Version of ROOT in the file header."""
        version = self._header[0]
        return version // 10000, version // 100 % 100, version % 100

    @property
    def root_version(self) -> str:
        """The version as a string: ``"6.40/00"``."""
        major, minor, patch = self.root_version_tuple
        return f"{major}.{minor:02d}/{patch:02d}"

    @property
    def is_64bit(self) -> bool:
        """Whether the offsets in the header have 64 bits."""
        return self._header[1]

    @property
    def compression(self) -> Compression | None:
        """The codec in the file header; each ntuple has its own."""
        return Compression.from_code(self._header[4])

    @property
    def uuid(self) -> UUID:
        """The UUID of the file."""
        return UUID(bytes=bytes(self._header[5]))

    @property
    def hex_uuid(self) -> str:
        """The UUID as a string."""
        return str(self.uuid)

    def objects(self) -> list[_Object]:
        """All objects in all directories."""
        return [_Object(*item[:4]) for item in self.core._core.objects()]

    def table(self, key: str, directory: "ReadOnlyDirectory") -> Table:
        """The ntuple or tree with a path and cycle; always the same object."""
        if key not in self._tables:
            core = self.core[key]
            self._tables[key] = (TTree if isinstance(core, Tree) else RNTuple)(core, directory, key)
        return self._tables[key]

    def close(self) -> None:
        """Closes the file. Its ntuples can still be read."""
        # Still available after closing.
        _ = self._header
        self.closed = True
        self.core.close()

    def __enter__(self) -> "ReadOnlyFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return ReadOnlyFile, (self.core, self.options)

    def __repr__(self) -> str:
        return f"<ReadOnlyFile {self.file_path!r}>"


class ReadOnlyDirectory(Directory):
    """A directory of a file open for reading."""

    file: ReadOnlyFile

    @property
    def cache_key(self) -> str:
        """A key that is unique among all objects of all files."""
        return f"{self.file.hex_uuid}:{self.object_path}"

    @property
    def parent(self) -> "ReadOnlyDirectory | None":
        """The parent directory."""
        return ReadOnlyDirectory(self.file, self._inside.rpartition("/")[0]) if self._inside else None

    def _objects(self) -> Iterator[tuple[str, int, str]]:
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
        """The class of an object, or of a branch of a tree."""
        try:
            return self._find(where).class_name
        except NotFoundError:
            if not isinstance(found := self.get(where), TBranch):
                raise
            return found.classname

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
            raise TypeError(f"where must be a string, not {short_repr(where)}")
        try:
            one = self._find(where)
        except NotFoundError:
            # The path may continue within an ntuple or a tree.
            ntuple, _, field = where.rstrip("/").rpartition("/")
            if not ntuple:
                raise
            found = self[ntuple]
            if not isinstance(found, HasColumns):
                raise
            return found[field]
        if one.class_name in _DIRECTORIES:
            return ReadOnlyDirectory(self.file, one.path)
        if one.class_name not in TABLE_CLASSES:
            return self.file.core[one.key]
        return self.file.table(one.key, ReadOnlyDirectory(self.file, one.path.rpartition("/")[0]))

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


__all__ = ["ReadOnlyDirectory", "ReadOnlyFile", "Source", "open"]
