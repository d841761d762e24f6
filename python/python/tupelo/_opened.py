"""Files that this process writes: one writer for each, and what becomes of one that nobody closes."""

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator

from . import _core
from ._checks import absolute_path
from .errors import InvalidArgumentError, NotFoundError


class Begun:
    """An ntuple of a file that is being written: what is left of its `tupelo.NtupleWriter` when that is forgotten."""

    def __init__(self, core: "_core.NtupleWriter") -> None:
        self.core: _core.NtupleWriter | None = core
        """The writer of the engine; None once the ntuple is closed."""
        self._entries = 0

    @property
    def num_entries(self) -> int:
        """Number of entries so far."""
        return self._entries if self.core is None else self.core.num_entries

    def close(self) -> None:
        """Writes what is pending."""
        if self.core is not None:
            self._entries, *_ = self.core.finish()
            self.core = None

    def abandon(self) -> None:
        """Gives the ntuple up, as if it had never been begun."""
        core, self.core = self.core, None
        if core is not None:
            core.abandon()


class Opened:
    """What is left of a `tupelo.writing.WritableFile` when it is forgotten; nothing in here leads back to it."""

    def __init__(self, path: str, update: bool) -> None:
        self.path = path
        self.is_update = update
        # The output stays where it is when the working directory changes.
        self.absolute_path = absolute_path(path)
        self.core: _core.FileWriter | None = _core.FileWriter(self.absolute_path, update)
        """The writer of the engine; None once the file is closed or given up."""
        self.ntuples: dict[str, Begun] = {}
        """Ntuples that were begun, by path."""
        self.has_failed = False
        """Whether the last call raised an exception."""
        self.finish_when_forgotten = False
        """Whether the file is finished, and not discarded, when it is forgotten."""
        self.end = "is closed"
        """What is said of the file once there is no writer."""
        self.is_replaced = False
        """Whether it was given up for another writer of the same file."""
        self._process = os.getpid()
        self._thread = threading.current_thread()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Notes whether what is done in the block succeeds."""
        try:
            yield
        except BaseException:
            self.has_failed = True
            raise
        self.has_failed = False

    @property
    def is_ours(self) -> bool:
        """Whether this process opened the file, and still writes it."""
        return self.core is not None and self._process == os.getpid()

    @property
    def is_spoilt(self) -> bool:
        """Whether it is no loss to give the file up."""
        return self.has_failed or self.core is None or self.core.is_closed

    @property
    def closed_error(self) -> InvalidArgumentError:
        """What is raised once there is no writer."""
        return InvalidArgumentError(f"{self.path} {self.end}")

    def finish(self) -> None:
        """Finishes all ntuples and makes the file visible. After an error it can only be given up."""
        if self.core is None:
            return
        with self.call():
            for begun in self.ntuples.values():
                begun.close()
        self.core.finish()
        self.core = None

    def abort(self) -> str | None:
        """Gives the file up; gives the name of the file that keeps its last checkpoint, if there is one."""
        if self.core is None:
            return None
        # In a process that may not touch the file, this raises and changes nothing.
        kept = self.core.abort()
        self.core = None
        return kept

    def discard(self, why: str, hint: str = "") -> None:
        """Gives the file up, and says on the standard error stream what is lost."""
        state = "the file is as it was before" if self.is_update else "there is no new file"
        said = [f"discarded: {self._listed()}"] if self.ntuples else []
        try:
            if kept := self.abort():
                state = f"its last checkpoint is kept: `tupelo verify --repair {kept}`"
        except Exception as error:
            state = f"what was written could not be removed: {error}"
        with contextlib.suppress(Exception):
            print(f"tupelo: {self.path} {why}: {'; '.join([state, *said])}{hint}", file=sys.stderr, flush=True)

    def forget(self, why: str = "was not closed", hint: str | None = None) -> None:
        """Finishes or discards a file that nobody can close any more."""
        # A child process that was forked leaves the file to its parent.
        if not self.is_ours:
            return
        if self.is_update and not self.ntuples:
            # Nothing is lost.
            with contextlib.suppress(Exception):
                self.abort()
            return
        if self.finish_when_forgotten:
            try:
                return self.finish()
            except Exception as error:
                return self.discard(f"could not be finished ({error})")
        if hint is None:
            function = "update" if self.is_update else "recreate"
            hint = f" (to keep it: `with tupelo.{function}({self.path!r}) as file:`, or `file.close()`)"
        self.discard(why, hint)

    def give_way(self, path: str, update: bool) -> None:
        """Ends the writer, for another one that this process begins under ``path``.

        Raises `InvalidArgumentError` where entries would be lost that the new writer does not replace, and where
        another thread may be writing.
        """
        if not self.is_ours:
            return
        function = "update" if update else "recreate"
        if self.finish_when_forgotten:
            self.end = f"was finished when {function}() opened it again; write to what that returned"
            return self.forget()
        has_failed = self.is_spoilt
        is_elsewhere = self._thread is not threading.current_thread() and self._thread.is_alive()
        if not has_failed and (is_elsewhere or (update and self.ntuples)):
            what = f" ({self._listed()})" if self.ntuples else ""
            raise InvalidArgumentError(
                f"{path} is being written by this process already{what}: close() or abort() that writer first; where "
                "it is out of reach, as in a notebook in which the last exception keeps it, "
                f"tupelo.abort({path!r}) gives it up"
            )
        self.end = f"was given up when {function}() opened it again; write to what that returned"
        self.is_replaced = True
        if not self.ntuples:
            # Nothing is lost.
            with contextlib.suppress(Exception):
                self.abort()
            return
        state = "failed" if has_failed else "was not closed"
        self.forget(f"is opened by {function}() again, and its earlier writer, which {state}, is given up")

    def _listed(self) -> str:
        return ", ".join(f"'{name}' ({begun.num_entries} entries)" for name, begun in self.ntuples.items())


class Hold:
    """What a `WritableFile` and its `NtupleWriter`s have in common: with the last of them the file is forgotten."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        # Also called when the interpreter ends.
        weakref.finalize(self, opened.forget)


_writing: "weakref.WeakValueDictionary[str, Hold]" = weakref.WeakValueDictionary()
"""The files that are being written, by their paths without links."""


def begin(path: str, update: bool) -> Hold:
    """Opens a file for writing. An earlier writer of this process gives way, as `tupelo.recreate` says.

    Raises `InvalidArgumentError` where there is one that does not, and what opening raises.
    """
    real = os.path.realpath(path)
    if (earlier := _writing.get(real)) is not None:
        earlier.opened.give_way(path, update)
    hold = Hold(Opened(path, update))
    _writing[real] = hold
    return hold


def abort(path: str) -> str | None:
    """Gives up what this process writes to a file, as `Opened.abort`.

    Raises `NotFoundError` where it writes no such file.
    """
    hold = _writing.get(os.path.realpath(path))
    if hold is None or not hold.opened.is_ours:
        raise NotFoundError(f"{path} is not being written by this process")
    hold.opened.end = "was given up by tupelo.abort()"
    return hold.opened.abort()
