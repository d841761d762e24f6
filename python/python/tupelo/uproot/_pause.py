"""Pauses of Python's garbage collector."""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """The calls of this process that pause the collector; they may overlap."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._was_enabled = False
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # The other threads are not in the child.
        self._lock = threading.Lock()
        if self._running and self._was_enabled:
            gc.enable()
        self._running = 0

    def begin(self) -> None:
        with self._lock:
            if self._running == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0 and self._was_enabled:
                gc.enable()


_pauses = _Pauses()


@contextmanager
def without_collections() -> Iterator[None]:
    """Pauses the collector where many objects are made that stay: it would visit all of them again and again.

    With a thousand branches that took longer than decoding them.
    """
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
