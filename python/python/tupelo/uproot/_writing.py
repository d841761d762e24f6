"""Writing: Tupelo compresses what uproot writes, and what an `extend` of an RNTuple writes is written at once."""

from typing import Any

from uproot.compression import ZLIB

from .. import _core
from ._layouts import RefusedError


def compressed(data: Any, compression: Any) -> Any:
    """The data in the blocks of ROOT, or as they are if these are not smaller, as in ``uproot.compression.compress``.

    Raises `RefusedError` where Tupelo is not faster: uproot has the same libraries for other codecs than zlib.
    """
    if type(compression) is not ZLIB or compression.library != "zlib" or not 1 <= compression.level <= 9:
        raise RefusedError("it is not zlib")
    found = _core.compress(bytes(data), compression.code)
    return data if found is None else found


class JoinedWrites:
    """A sink of uproot that keeps what follows each other, and writes it when the sink is flushed."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._parts: list[Any] = []
        self._begin = self._end = 0

    def write(self, location: int, serialization: Any) -> None:
        """As that of the sink."""
        if location != self._end or not self._parts:
            self._drain()
            self._begin = self._end = location
        self._parts.append(serialization)
        self._end += memoryview(serialization).nbytes

    def __getattr__(self, name: str) -> Any:
        # Everything else sees the file as it is without joining.
        self._drain()
        return getattr(self._sink, name)

    def _drain(self) -> None:
        if self._parts:
            self._sink.write(self._begin, b"".join(self._parts))
            self._parts = []
