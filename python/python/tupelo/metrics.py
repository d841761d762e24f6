"""Metrics of reading."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Time:
    """Seconds that all threads together spent on something."""

    wall: float
    """By the clock on the wall."""
    cpu: float
    """In which the threads had a core."""


@dataclass(frozen=True)
class Metrics:
    """The cost of reading from a file since it was opened with ``metrics=True``. ``print`` shows a table.

    The names in brackets are the matching counters of ROOT's ``RPageSourceFile``. Times are sums over all threads.

    >>> import tupelo
    >>> with tupelo.recreate("metrics.root") as file:
    ...     file["Events"] = {"x": range(100_000)}
    >>> ntuple = tupelo.open("metrics.root:Events", metrics=True)
    >>> _ = ntuple.arrays(library="np")
    >>> ntuple.metrics.unpacked_bytes, ntuple.metrics.page_bytes < 800_000
    (800000, True)
    """

    requests: int
    """Read requests to the storage, near ranges merged (``nRead``)."""
    read_bytes: int
    """Bytes that those read (``szReadPayload`` + ``szReadOverhead``)."""
    page_bytes: int
    """Bytes of the stored pages that were decoded, checksums included (``szReadPayload``)."""
    pages: int
    """Pages decoded (``nPageUnsealed``)."""
    unpacked_bytes: int
    """Bytes of those pages once decompressed (``szUnzip``)."""
    read: Time
    """Waiting for the storage (``timeWallRead``, ``timeCpuRead``)."""
    decompress: Time
    """Comparing checksums and decompressing (``timeWallUnzip``, ``timeCpuUnzip``)."""
    decode: Time
    """Decoding pages into arrays."""
    elapsed: float
    """Seconds of all reading requests, from call to answer."""
    idle: float
    """Seconds in which threads did none of these: they planned, put arrays together, or had nothing to do."""
    threads: int
    """Threads that could work."""
    text: str = field(repr=False)
    """The table."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, counts: dict[str, Any], text: str) -> "Metrics":
        """Of the ``counts`` and the ``text`` of the engine, for `Ntuple.metrics`. Raises no error of its own."""
        for name in ("read", "decompress", "decode"):
            counts[name] = Time(*counts[name])
        return cls(**counts, text=text)
