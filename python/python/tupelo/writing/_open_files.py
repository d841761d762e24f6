"""Files that this process writes: one writer for each file, which is finished or discarded when it is released."""

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from .. import _core
from .._base.checks import absolute_path
from ..errors import InvalidArgumentError, NotFoundError

Core = TypeVar("Core", bound="_core.NtupleWriter | _core.TreeWriter")
"""A writer of the engine."""


class OpenNtuple(Generic[Core]):
    """The state of an ntuple or tree being written; it outlives its `tupelo.NtupleWriter` or `tupelo.TreeWriter`."""

    def __init__(self, core: Core, zone_maps: list[str] | None = None) -> None:
        self.core: Core | None = core
        """The writer of the engine; None once the ntuple is closed."""
        self.zone_maps = zone_maps
        """The fields that get zone maps once the file is closed, an empty list for all; None without."""
        self._entries = 0

    @property
    def num_entries(self) -> int:
        """Number of entries so far."""
        return self._entries if self.core is None else self.core.num_entries

    def close(self) -> None:
        """Writes pending data."""
        if self.core is not None:
            self._entries = self.core.finish()
            self.core = None

    def abandon(self) -> None:
        """Removes the ntuple from the file."""
        core, self.core = self.core, None
        if core is not None:
            core.abandon()


class OpenFile:
    """The state of a file being written; it outlives its `tupelo.writing.WritableFile` and has no reference to it."""

    def __init__(
        self, path: str, *, update: bool, storage: "_core.Storage | None" = None, mapping: str | None = None
    ) -> None:
        self.path = _core.display_name(path)
        self.is_update = update
        # Remains valid when the working directory changes.
        self.absolute_path = absolute_path(path)
        self.core: _core.FileWriter | None = _core.FileWriter(
            self.absolute_path, update=update, storage=storage, mapping=mapping
        )
        """The writer of the engine; None once the file is closed or discarded."""
        self.ntuples: dict[str, OpenNtuple[Any]] = {}
        """Ntuples and trees being written, by path."""
        self.histograms: list[str] = []
        """Paths of the histograms that were written."""
        self.has_changes = False
        """Whether objects were removed or renamed."""
        self.has_failed = False
        """Whether the last call raised an exception."""
        self.end = "is closed"
        """Describes in errors why there is no writer any more."""
        self.is_replaced = False
        """Whether it was discarded for a new writer of the same file."""
        self._process = os.getpid()
        self._thread = threading.current_thread()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Records whether the block succeeds."""
        try:
            yield
        except BaseException:
            self.has_failed = True
            raise
        self.has_failed = False

    @property
    def is_ours(self) -> bool:
        """Whether this process opened the file and is still writing it."""
        return self.core is not None and self._process == os.getpid()

    @property
    def is_discardable(self) -> bool:
        """Whether the file can be discarded without losing data."""
        return self.has_failed or self.core is None or self.core.is_closed

    @property
    def closed_error(self) -> InvalidArgumentError:
        """The error for calls after the writer is closed."""
        return InvalidArgumentError(f"{self.path} {self.end}")

    def finish(self) -> None:
        """Finishes all ntuples and makes the file visible. After an error it can only be discarded."""
        if self.core is None:
            return
        with self.call():
            for begun in self.ntuples.values():
                begun.close()
        self.core.finish()
        self.core = None
        zone_maps = {path: begun.zone_maps for path, begun in self.ntuples.items() if begun.zone_maps is not None}
        if zone_maps:
            _core.add_zone_maps(self.absolute_path, zone_maps)

    def abort(self) -> str | None:
        """Discards the file and returns the name of the file that keeps its last checkpoint, if there is one."""
        if self.core is None:
            return None
        # In a forked process this raises an error and changes nothing.
        kept = self.core.abort()
        self.core = None
        return kept

    def discard(self, why: str, hint: str = "") -> None:
        """Discards the file and reports on the standard error stream what is lost."""
        state = "the file is unchanged" if self.is_update else "no file was created"
        lost = [f"discarded {self._listed()}"] if self.ntuples or self.histograms else []
        try:
            if kept := self.abort():
                state = f"its last checkpoint is kept: `tupelo verify --repair {kept}`"
        except Exception as error:
            state = f"the partial output could not be removed: {error}"
        with contextlib.suppress(Exception):
            print(f"tupelo: {self.path} {why}: {'; '.join([state, *lost])}{hint}", file=sys.stderr, flush=True)

    def release(self, why: str = "was not closed", hint: str | None = None) -> None:
        """Finishes or discards a file that is no longer referenced."""
        # A forked child process leaves the file to its parent.
        if not self.is_ours:
            return
        if self.is_update and not self.ntuples and not self.histograms and not self.has_changes:
            # Nothing is lost.
            with contextlib.suppress(Exception):
                self.abort()
            return
        if hint is None:
            function = "update" if self.is_update else "recreate"
            hint = f" (to keep the data: `with tupelo.{function}({self.path!r}) as file:`, or `file.close()`)"
        self.discard(why, hint)

    def yield_to_new_writer(self, path: str, update: bool) -> None:
        """Ends this writer because this process opens the file again under ``path``.

        Raises `InvalidArgumentError` if entries would be lost that the new writer does not replace, or if another
        thread may be writing.
        """
        if not self.is_ours:
            return
        function = "update" if update else "recreate"
        has_failed = self.is_discardable
        is_elsewhere = self._thread is not threading.current_thread() and self._thread.is_alive()
        if not has_failed and (is_elsewhere or (update and self.ntuples)):
            what = f" ({self._listed()})" if self.ntuples else ""
            shown = _core.display_name(path)
            raise InvalidArgumentError(
                f"{shown} is already being written by this process{what}: close() or abort() that writer first; if no "
                f"variable refers to it any more, tupelo.abort({shown!r}) discards it"
            )
        self.end = f"was discarded when {function}() opened it again; use the new writer"
        self.is_replaced = True
        if not self.ntuples:
            # Nothing is lost.
            with contextlib.suppress(Exception):
                self.abort()
            return
        state = "failed" if has_failed else "was not closed"
        self.release(f"is opened again by {function}(); its earlier writer {state} and is discarded")

    def _listed(self) -> str:
        ntuples = [f"'{name}' ({begun.num_entries} entries)" for name, begun in self.ntuples.items()]
        return ", ".join([*ntuples, *(f"histogram '{name}'" for name in self.histograms)])


class WriterHandle:
    """Shared by a `WritableFile` and its `NtupleWriter`s: the file is released with the last of them."""

    def __init__(self, opened: OpenFile) -> None:
        self.opened = opened
        # Also called at interpreter exit.
        weakref.finalize(self, opened.release)


_open_files: "weakref.WeakValueDictionary[str, WriterHandle]" = weakref.WeakValueDictionary()
"""The files being written, by real path or URL."""


def _real_path(path: str) -> str:
    return path if _core.is_remote(path) else os.path.realpath(path)


def open_for_writing(
    path: str, *, update: bool, storage: "_core.Storage | None" = None, mapping: str | None = None
) -> WriterHandle:
    """Opens a file for writing and ends an earlier writer of this process; see `tupelo.recreate`.

    Raises `InvalidArgumentError` if the earlier writer cannot be discarded, and the errors of opening the file.
    """
    real = _real_path(path)
    # A remote file cannot be updated; an earlier writer must not end for that.
    if (earlier := _open_files.get(real)) is not None and not (update and _core.is_remote(path)):
        earlier.opened.yield_to_new_writer(path, update)
    hold = WriterHandle(OpenFile(path, update=update, storage=storage, mapping=mapping))
    _open_files[real] = hold
    return hold


def abort(path: str) -> str | None:
    """Discards what this process writes to a file; see `OpenFile.abort`.

    Raises `NotFoundError` if it is not writing the file.
    """
    hold = _open_files.get(_real_path(path))
    if hold is None or not hold.opened.is_ours:
        raise NotFoundError(f"{_core.display_name(path)} is not being written by this process")
    hold.opened.end = "was discarded by tupelo.abort()"
    return hold.opened.abort()
