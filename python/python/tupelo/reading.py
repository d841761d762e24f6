"""Opening files."""

import inspect
import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from . import _core, _html, _objects
from ._checks import absolute_path, check_name, check_path, storage
from ._locations import NtupleLocation
from ._messages import printable, short_repr
from ._sizes import parse_optional_bytes
from .errors import CorruptError, InvalidArgumentError, NotFoundError, TupeloWarning, UnsupportedError
from .fields import Field
from .ntuple import Ntuple, as_table
from .trees import TREE_CLASSES

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._objects import Instance
    from .efficiency import Efficiency
    from .graph import Graph
    from .histogram import Histogram

NTUPLE_CLASSES = ("ROOT::RNTuple", "ROOT::Experimental::RNTuple")
TABLE_CLASSES = (*NTUPLE_CLASSES, *TREE_CLASSES)
_DIRECTORIES = ("TDirectory", "TDirectoryFile")


def open(
    where: str | os.PathLike[str] | Mapping[str, str | None] | Mapping[os.PathLike[str], str | None] | BinaryIO,
    *,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    metrics: bool = False,
    recover: bool = False,
    storage_options: Mapping[str, object] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> "File | Ntuple | Field | Histogram | Graph | Efficiency | Instance":
    """Opens a ROOT file, an object in it, or a field of an ntuple.

    ``"f.root"`` returns a `File`, ``"f.root:dir/Events"`` an `Ntuple`, ``"f.root:dir/Events/jets/pt"`` its `Field`
    ``jets.pt``, and ``"f.root:dir/h"`` another object, as `File` does. For names with colons, use ``{"f.root":
    "dir/Events"}``. A `pathlib.Path` is always a file name. ``~`` in a string is the home directory.
    ``page_checksums=False`` skips the checksums of pages; those of metadata are always verified.

    A file object also returns a `File`, which cannot be pickled, nor can its ntuples. From a file of fsspec
    (``fsspec.open(url).open()``) ranges are read by its file system. All bytes of others (`io.BytesIO`, ``open(path,
    "rb")``) are read into memory and stay there as long as the `File` and its ntuples.

    ``memory_budget`` limits the memory that reading may take in addition to the requested values, in bytes or as a
    string such as ``"2 GiB"`` (default 1 GiB). Larger requests are fetched in smaller batches; if that is not
    possible, a `LimitError` is raised.

    ``metrics`` collects statistics for `Ntuple.metrics`.

    ``recover`` reads a file whose writer was killed before it saved anything, or that was cut off: its directories are
    rebuilt from the keys in it, as ROOT does. Files whose directories lead to objects are read as usual.

    A file that breaks a rule of the format that ROOT does not check is read as ROOT reads it, with a `TupeloWarning`.

    A URL of the schemes ``http``, ``https``, ``s3``, ``gs``, ``az``, ``abfs``, ``root`` or ``roots`` is a remote file.
    ``storage_options`` are its credentials, endpoints and limits by name, such as ``{"anonymous": True}`` or
    ``{"aws_endpoint_url": "https://s3.example.org"}``; without them, they come from the environment, as for other
    programs. ``cache`` is a directory that keeps fetched ranges, up to 10 GiB. Both are pickled with the `File` and its
    ntuples; errors and names do not show them.

    The URI of an ntuple in an object store (``"ntpl+s3://BUCKET/PREFIX"``, ``"ntpl+file:///DIRECTORY/NAME"``,
    ``"daos://POOL/CONTAINER:NAME"``, or the ``"ntpl+mirror:…"`` of several; see `recreate`) returns the `Ntuple`, with
    the same options, except ``cache``.

    Raises `MissingFileError` (a `FileNotFoundError`) if the file does not exist, `NotFoundError` (a `KeyError`) with
    similar names if it has no such object, `InvalidArgumentError` if the name is that of a directory or if a pattern
    matches several files (use `iterate`, `concatenate`, `hist`, `scan` or `partitions`), `CorruptError` for a damaged
    file or one that is not a ROOT file, `UnsupportedError` for unknown schemes, and `StorageError` (an
    `OSError`) for errors of the network and of servers, after retries.


    >>> import tupelo
    >>> with tupelo.recreate("open.root") as out:
    ...     out["dir/Events"] = {"x": [1.5, 2.5]}
    >>> with tupelo.open("open.root:dir/Events") as ntuple:
    ...     print(ntuple["x"].array(library="np"))
    [1.5 2.5]
    >>> tupelo.open("open.root:dir/Events/x")
    <tupelo.Field 'x': double>
    """
    name: str | None = None
    budget = parse_optional_bytes("memory_budget", memory_budget)
    remote = storage(storage_options, cache)
    if (fsspec := sys.modules.get("fsspec")) is not None and isinstance(where, fsspec.core.OpenFile):
        shown = _core.display_name(where.path)
        raise InvalidArgumentError(
            f"the OpenFile {shown!r} of fsspec is not open; pass the result of its method open()"
        )
    if hasattr(where, "read"):
        opened = _open_bytes(where, page_checksums, budget, metrics, recover)
        opened._warn()
        return opened
    if isinstance(where, Mapping):
        if len(where) != 1:
            raise InvalidArgumentError(f"expected a mapping of one file to an object in it, not {len(where)} files")
        ((file_path, name),) = where.items()
        path = check_path(file_path)
    else:
        path = check_path(where)
        if isinstance(where, str):
            path, name = _core.parse_location(path)
            if found := _core.matching_files(path, remote):
                pattern = _core.display_name(path)
                raise InvalidArgumentError(
                    f"{pattern!r} matches {len(found)} files, but open() takes one; use tupelo.iterate, "
                    "tupelo.concatenate or tupelo.partitions"
                )
    file = reopen(path, page_checksums, budget, metrics, remote, recover)
    file._warn()
    if not isinstance(where, Mapping) and _core.is_object_uri(path):
        (name,) = file
    return file if name is None else _named(file, name)


def _named(file: "File", name: str) -> Any:
    """An object of a file, or a field of an ntuple: ``"dir/Events"`` or ``"dir/Events/jets/pt"``."""
    try:
        return file[name]
    except NotFoundError:
        parts = name.strip("/").split("/")
        for count in range(len(parts) - 1, 0, -1):
            if file._class_name(ntuple := "/".join(parts[:count])) in TABLE_CLASSES:
                return file[ntuple][".".join(parts[count:])]
        raise


class File(Mapping[str, Any]):
    """An open ROOT file: a mapping from names to the ntuples and trees in it.

    Names are paths in the file's directories, ``"dir/Events"``; ``"Events;1"`` selects an older cycle. Closing the file
    does not close its ntuples.

    Other objects are read by name too; `classnames` lists them. ``file["h"]`` is a `Histogram`, `Graph` or `Efficiency`
    for ROOT's histograms, profiles, graphs and efficiencies, a string or list for ROOT's strings and lists, and an
    `Instance` of any other class that the file's streamer info describes. Iteration, `keys` and ``len`` are about
    ntuples and trees only.

    >>> import tupelo
    >>> with tupelo.recreate("two.root") as out:
    ...     out["a"] = {"x": [1]}
    ...     out["dir/b"] = {"y": [True, False]}
    >>> with tupelo.open("two.root") as file:
    ...     print(file.keys(), file["dir/b"].num_entries, "c" in file)
    ['a', 'dir/b'] 2 False
    """

    def __init__(
        self,
        core: "_core.File",
        file_path: str,
        page_checksums: bool,
        memory_budget: int | None = None,
        metrics: bool = False,
        absolute_path: str | None = None,
        remote: "_core.Storage | None" = None,
        recover: bool = False,
    ) -> None:
        self._known_deviations: set[str] = set()
        self._recover = recover
        self._absolute_path = absolute_path
        """The absolute path or the URL of the file when it was opened; None for a file object."""
        self._storage = remote
        self._open_core: _core.File | None = core
        self._file_path = file_path
        self._page_checksums = page_checksums
        self._memory_budget = memory_budget
        self._metrics = metrics

    @property
    def file_path(self) -> str:
        """The path of the file, as given to `open`, or its URL without credentials."""
        return self._file_path

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes."""
        return self._core.size_bytes

    def keys(self) -> list[str]:  # type: ignore[override]
        """Paths of the ntuples in the file, followed by those of the trees."""
        names = self._core.table_names()
        self._warn()
        return names

    def _warn(self) -> None:
        """Issues the warnings about rules of the format that the file breaks, each once."""
        for text in self._core.deviations():
            if text not in self._known_deviations:
                self._known_deviations.add(text)
                warnings.warn(printable(f"{self._file_path}: {text}"), TupeloWarning, stacklevel=_frames())

    def classnames(self, *, cycle: bool = False) -> dict[str, str]:
        """C++ classes of all objects in the directories by path.

        With ``cycle`` the paths end in ``;CYCLE`` and include older cycles.
        """
        if cycle:
            names = {f"{path};{number}": class_name for path, class_name, _, number, _ in self._core.objects()}
        else:
            names = {path: class_name for path, (_, class_name, *_) in self._newest().items()}
        self._warn()
        return names

    def _newest(self) -> dict[str, tuple[str, str, str, int, int]]:
        """The newest cycle of each object by path: path, class, title, cycle and size."""
        newest: dict[str, tuple[str, str, str, int, int]] = {}
        for item in self._core.objects():
            if item[0] not in newest or newest[item[0]][3] < item[3]:
                newest[item[0]] = item
        return newest

    def __getitem__(self, name: str) -> Any:
        check_name(name)
        try:
            return self._item(name)
        finally:
            self._warn()

    def _item(self, name: str) -> Any:
        """What has this name, of any class."""
        try:
            return self._open_table(name)
        except NotFoundError:
            if self.keys():
                raise
        except UnsupportedError:
            if self._class_name(name) in (None, *TABLE_CLASSES):
                raise
        try:
            return _objects.of_file(self._core.object(name, _objects.Instance, _objects.OpaqueObject))
        except (CorruptError, UnsupportedError) as error:
            if str(error).startswith(self._file_path):
                raise
            raise type(error)(f"{self._file_path}: object '{name}': {error}") from error.__cause__

    def only(self) -> Ntuple:
        """The only ntuple of the file or, if it has no ntuple, its only tree.

        Raises `NotFoundError` (a `KeyError`) if the file has neither and `InvalidArgumentError` with the names if it
        has several.
        """
        return self._open_table(self._core.table(None).path)

    def _table(self, name: str | None) -> Ntuple:
        """An ntuple or a tree, with None the only one.

        Raises the errors of `only`, `NotFoundError`, and `InvalidArgumentError` for objects of other classes.
        """
        if name is None:
            return self.only()
        try:
            return self._open_table(name)
        except UnsupportedError as error:
            class_name = self._class_name(name)
            if class_name in (None, *TABLE_CLASSES):
                raise
            text = f"{self._file_path}: '{name}' is a {class_name}, not an ntuple or a tree"
            raise InvalidArgumentError(text) from error

    def _open_table(self, name: str) -> Ntuple:
        how = self._page_checksums, self._memory_budget, self._metrics, self._absolute_path, self._storage
        core = self._core.table(name)
        self._warn()
        return as_table(core, NtupleLocation(self._file_path, (name,), *how, recover=self._recover))

    def _class_name(self, name: str) -> str | None:
        """The C++ class of an object, or None if there is no such object."""
        return self.classnames(cycle=";" in name).get(name.strip("/"))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._class_name(name) not in (None, *_DIRECTORIES)

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def _repr_html_(self) -> str:
        return _html.of_file(self)

    def __repr__(self) -> str:
        return f"<tupelo.File {self._file_path!r}{' (closed)' if self._open_core is None else ''}>"

    def close(self) -> None:
        """Closes the file."""
        self._open_core = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        if self._absolute_path is None:
            raise InvalidArgumentError(f"{self._file_path} is read from a file object and cannot be pickled")
        how = self._page_checksums, self._memory_budget, self._metrics, self._storage, self._recover
        return reopen, (self._absolute_path, *how)

    @property
    def _core(self) -> "_core.File":
        if self._open_core is None:
            raise InvalidArgumentError(f"{self._file_path} is closed")
        return self._open_core


def reopen(
    path: str,
    page_checksums: bool,
    memory_budget: int | None,
    metrics: bool,
    remote: "_core.Storage | None" = None,
    recover: bool = False,
) -> File:
    """Opens a path or URL; `open` and unpickling call it."""
    core = _core.File(path, page_checksums, memory_budget, metrics, remote, recover)
    name = _core.display_name(path)
    return File(core, name, page_checksums, memory_budget, metrics, absolute_path(path), remote, recover)


def _open_bytes(source: Any, page_checksums: bool, memory_budget: int | None, metrics: bool, recover: bool) -> File:
    """Opens a file object."""
    if isinstance(source, io.TextIOBase):
        raise InvalidArgumentError(
            f"{short_repr(source)} returns strings, not bytes; open it in binary mode: open(path, 'rb')"
        )
    path = getattr(source, "name", None) or getattr(source, "path", None)
    name = _core.display_name(path) if isinstance(path, str) else f"<{type(source).__name__}>"
    system: Any = getattr(source, "fs", None)
    size = getattr(source, "size", None)
    if hasattr(system, "cat_ranges") and isinstance(source.path, str) and isinstance(size, int):

        def read(starts: list[int], ends: list[int]) -> Any:
            return system.cat_ranges([source.path] * len(starts), starts, ends, on_error="raise")

        core = _core.File.of_ranges(name, size, read, page_checksums, memory_budget, metrics)
        core = core.recovered() if recover else core
        return File(core, name, page_checksums, memory_budget, metrics)
    if hasattr(source, "seek"):
        source.seek(0)
    data = source.read()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidArgumentError(
            f"{short_repr(source)} returns {type(data).__name__}, not bytes; open it in binary mode"
        )
    core = _core.File.of_bytes(name, bytes(data), page_checksums, memory_budget, metrics)
    core = core.recovered() if recover else core
    return File(core, name, page_checksums, memory_budget, metrics)


def _frames() -> int:
    """How many frames of this package the caller of this function has above it, with itself: a `stacklevel`."""
    frame, count = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tupelo":
        frame, count = frame.f_back, count + 1
    return count
