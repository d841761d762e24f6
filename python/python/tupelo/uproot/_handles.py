"""Open trees and ntuples of Tupelo for objects of uproot."""

import os
import threading
from collections import OrderedDict
from functools import cached_property
from typing import Any

from .. import _core
from ..fields import _select
from ._layouts import RefusedError

_KEPT = 64
"""Number of trees and ntuples that stay open."""


class Handle:
    """An open tree or ntuple, and what is known about its branches or fields."""

    def __init__(self, path: str, storage: Any, uuid: bytes, object_path: str, num_entries: int) -> None:
        file = _core.File(path, storage=storage)
        if file.uuid() != uuid:
            raise RefusedError("the file is another one by now")
        self.table = file.table(object_path.strip("/"))
        if self.table.num_entries != num_entries:
            raise RefusedError("the number of entries has changed")
        about = self.table.tree()
        self.unreadable: dict[str, str] | None = None if about is None else dict(about.unreadable)
        """The reasons why branches cannot be read, by path; None for an ntuple."""
        self.plans: dict[Any, Any] = {}
        """How branches are read: filled by the hooks."""

    def read(self, patterns: list[str], entry_start: int, entry_stop: int) -> Any:
        """A `pyarrow.RecordBatch` of these fields. Strings are bytes, as in uproot."""
        request = _select.Request(patterns, entry_start=entry_start, entry_stop=entry_stop, binary_strings=True)
        return self.table.read(request)

    @cached_property
    def empty(self) -> Any:
        """All fields and no entry."""
        return self.read([], 0, 0)

    @cached_property
    def columns(self) -> dict[str, int]:
        """Numbers of the top-level fields by name."""
        return {name: number for number, name in enumerate(self.empty.schema.names)}

    @cached_property
    def fields(self) -> "list[_core.FieldInfo]":
        """All fields, parents first."""
        return self.table.fields()

    @cached_property
    def branch_numbers(self) -> dict[tuple[int | None, str, int], int]:
        """Of a tree: the number of each branch by its parent, its name, and its place under the parent."""
        numbers: dict[tuple[int | None, str, int], int] = {}
        places: dict[int | None, int] = {}
        for number, branch in enumerate(self._branches):
            place = places.get(branch.parent, 0)
            places[branch.parent] = place + 1
            numbers[branch.parent, branch.name, place] = number
        return numbers

    @cached_property
    def field_paths(self) -> dict[int, str]:
        """Of a tree: the path of the field with the values of a branch, by its number."""
        return {number: branch.field for number, branch in enumerate(self._branches) if branch.field is not None}

    @cached_property
    def _branches(self) -> "list[_core.BranchInfo]":
        return self.table.tree_branches()


class _Handles:
    """The handles of this process. The one that was used last is the last to go."""

    def __init__(self) -> None:
        self.clear()
        os.register_at_fork(after_in_child=self.clear)

    def clear(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[Any, Handle | Exception] = OrderedDict()

    def get(self, file: Any, object_path: str, num_entries: int) -> Handle:
        """The handle of an object in a file of uproot; a file that was rewritten is opened again.

        Raises `RefusedError` for files that Tupelo cannot open in the same way, and the errors of opening.
        """
        path, uuid = file.file_path, file.uuid.bytes
        if not isinstance(path, str):
            raise RefusedError("it is not a file with a path")
        storage = getattr(getattr(file, "source", None), "storage", None)
        key = (path, uuid, object_path, num_entries, _state(path) if storage is None else storage)
        with self._lock:
            if (found := self._open.get(key)) is not None:
                self._open.move_to_end(key)
        if found is None:
            try:
                found = Handle(path.removeprefix("file://"), storage, uuid, object_path, num_entries)
            except Exception as error:
                found = error.with_traceback(None)
            with self._lock:
                self._open[key] = found
                while len(self._open) > _KEPT:
                    self._open.popitem(last=False)
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found


def _state(path: str) -> Any:
    """What changes when a file is rewritten."""
    try:
        about = os.stat(path.removeprefix("file://"))
    except OSError:
        raise RefusedError(
            "uproot opened the remote file" if _core.is_remote(path) else "it is not a file with a path"
        ) from None
    return about.st_mtime_ns, about.st_size, about.st_ino


handles = _Handles()
