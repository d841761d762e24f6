"""Files that this process writes: one writer for each, and what becomes of one that nobody closes."""

import contextlib
import os
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import _core
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from .filling import NtupleWriter
    from .writing import WritableFile


class Opened:
    """What is left of a `tupelo.writing.WritableFile` when it is forgotten; nothing in here leads back to it."""

    def __init__(self, path: str, update: bool) -> None:
        self.path = path
        self.is_update = update
        self.core: _core.FileWriter | None = _core.FileWriter(path, update)
        """The writer of the engine; None once the file is closed or given up."""
        self.ntuples: dict[str, NtupleWriter] = {}
        """Ntuples that were begun, by path."""
        self.has_failed = False
        """Whether the last call raised an exception."""
        self.finish_when_forgotten = False
        """Whether the file is finished, and not discarded, when it is forgotten."""
        self._process = os.getpid()

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

    def finish(self) -> None:
        """Finishes all ntuples and makes the file visible. After an error it can only be given up."""
        if self.core is None:
            return
        for writer in self.ntuples.values():
            writer.close()
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
        ntuples = ", ".join(f"'{name}' ({writer.num_entries} entries)" for name, writer in self.ntuples.items())
        state = "the file is as it was before" if self.is_update else "there is no new file"
        lost = f"; discarded: {ntuples}" if ntuples else ""
        try:
            kept = self.abort()
        except Exception as error:
            state, kept = f"what was written could not be removed: {error}", None
        if kept:
            state = f"its last checkpoint is kept: `tupelo verify --repair {kept}`"
        with contextlib.suppress(Exception):
            print(f"tupelo: {self.path} {why}: {state}{lost}{hint}", file=sys.stderr, flush=True)

    def forget(self) -> None:
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
        function = "update" if self.is_update else "recreate"
        hint = f" (to keep it: `with tupelo.{function}({self.path!r}) as file:`, or `file.close()`)"
        self.discard("was not closed", hint)


_writing: "weakref.WeakValueDictionary[str, WritableFile]" = weakref.WeakValueDictionary()
"""The files that are being written, by their paths without links."""


def claim(path: str, file: "WritableFile") -> None:
    """Notes who writes a file. An earlier writer of this process that failed is given up.

    Raises `InvalidArgumentError` where there is one that did not fail.
    """
    real = os.path.realpath(path)
    earlier = _writing.get(real)
    if earlier is not None and (opened := earlier._opened) is not None and opened.is_ours:
        if not opened.is_spoilt:
            raise InvalidArgumentError(
                f"{path} is being written by this process already: {earlier!r}; close() or abort() it first"
            )
        opened.discard("is written anew, and its earlier writer, which failed, is given up")
    _writing[real] = file
