"""Open files."""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import _core
from .._base.checks import absolute_path, check_name
from .._base.html import code, shown
from .._base.locations import NtupleLocation
from .._base.messages import printable, short_repr
from ..errors import CorruptError, Error, InvalidArgumentError, NotFoundError, TupeloWarning, UnsupportedError
from ..fields import _objects
from ..ntuple._ntuple import Ntuple, as_table
from ..writing._trees import TREE_CLASSES
from . import _html

if TYPE_CHECKING:
    from typing_extensions import Self

NTUPLE_CLASSES = ("ROOT::RNTuple", "ROOT::Experimental::RNTuple")
TABLE_CLASSES = (*NTUPLE_CLASSES, *TREE_CLASSES)
_DIRECTORIES = ("TDirectory", "TDirectoryFile")


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
        *,
        page_checksums: bool,
        memory_budget: int | None,
        metrics: bool,
        absolute_path: str | None = None,
        storage: "_core.Storage | None" = None,
        recover: bool = False,
    ) -> None:
        self._known_deviations: set[str] = set()
        self._recover = recover
        self._absolute_path = absolute_path
        """The absolute path or the URL of the file when it was opened; None for a file object."""
        self._storage = storage
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
    def size_bytes(self) -> int | None:
        """Size of the file in bytes; None for an ntuple in an object store where it is not recorded."""
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
                warnings.warn(printable(f"{self._file_path}: {text}"), TupeloWarning, stacklevel=package_frames())

    def classnames(self, *, cycle: bool = False) -> dict[str, str]:
        """C++ classes of all objects in the directories by path.

        With ``cycle`` the paths end in ``;CYCLE`` and include older cycles.
        """
        if cycle:
            names = {f"{found.path};{found.cycle}": found.class_name for found in self._core.objects()}
        else:
            names = {path: found.class_name for path, found in self._newest().items()}
        self._warn()
        return names

    def _newest(self) -> "dict[str, _core.ObjectInfo]":
        """The newest cycle of each object by path."""
        newest: dict[str, _core.ObjectInfo] = {}
        for found in self._core.objects():
            if found.path not in newest or newest[found.path].cycle < found.cycle:
                newest[found.path] = found
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
            return _objects.of_file(self._core.object(name, **_objects.MAKERS))
        except (CorruptError, UnsupportedError) as error:
            if str(error).startswith(self._file_path):
                raise
            raise type(error)(f"{self._file_path}: object '{name}': {error}") from error.__cause__

    def only(self) -> Ntuple:
        """The only ntuple of the file or, if it has no ntuple, its only tree.

        Raises `NotFoundError` (a `KeyError`) if the file has neither and `InvalidArgumentError` with the names if it
        has several.
        """
        return self._open_table(self._core.table(name=None).path)

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
        core = self._core.table(name)
        self._warn()
        return as_table(core, NtupleLocation(self._file_path, (name,), self._absolute_path, **self._how))

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
        if self._open_core is None:
            return code(repr(self))
        try:
            newest = self._newest()
        except Error as error:
            return f"{code(repr(self))}: {shown(str(error))}"
        return _html.of_file(self._core, self._file_path, newest, set(self.keys()))

    def __repr__(self) -> str:
        return f"<tupelo.File {self._file_path!r}{' (closed)' if self._open_core is None else ''}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            text = f"'{type(self).__name__}' object has no attribute '{name}'"
            if not name.startswith("_") and callable(getattr(Ntuple, name, None)) and self._open_core is not None:
                with suppress(Error):
                    names = self.keys() or ["Events"]
                    text += f"; its ntuples and trees have: file[{names[0]!r}].{name}; it contains {short_repr(names)}"
            raise AttributeError(text, name=name, obj=self)

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
        return partial(reopen, **self._how), (self._absolute_path,)

    @property
    def _how(self) -> dict[str, Any]:
        """The keywords with which it was opened."""
        return {
            "page_checksums": self._page_checksums,
            "memory_budget": self._memory_budget,
            "metrics": self._metrics,
            "storage": self._storage,
            "recover": self._recover,
        }

    @property
    def _core(self) -> "_core.File":
        if self._open_core is None:
            raise InvalidArgumentError(f"{self._file_path} is closed")
        return self._open_core


def reopen(
    path: str,
    *,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | None = None,
    metrics: bool = False,
    storage: "_core.Storage | None" = None,
    recover: bool = False,
) -> File:
    """Opens a path or URL; `open` and unpickling call it."""
    how: dict[str, Any] = {
        "page_checksums": page_checksums,
        "memory_budget": memory_budget,
        "metrics": metrics,
        "storage": storage,
        "recover": recover,
    }
    return File(_core.File(path, **how), _core.display_name(path), absolute_path=absolute_path(path), **how)


def package_frames() -> int:
    """How many frames of this package the caller of this function has above it, with itself: a `stacklevel`."""
    frame, count = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tupelo":
        frame, count = frame.f_back, count + 1
    return count
