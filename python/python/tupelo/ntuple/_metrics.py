"""Read statistics."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Time:
    """Seconds spent by all threads together."""

    wall: float
    """Wall-clock time."""
    cpu: float
    """CPU time."""


@dataclass(frozen=True)
class Metrics:
    """Read statistics since a file was opened with ``metrics=True``. ``print`` shows a table.

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
    """Read requests to the storage, after adjacent ranges were coalesced (``nRead``). Of a remote file these are the
    requests to the server, those of opening and retries included; what the cache has is not requested."""
    retries: int
    """Requests to a server that repeat one that failed."""
    latency: float
    """Mean seconds from a request to a server to its complete answer; 0 for local files."""
    read_bytes: int
    """Bytes that these requests read (``szReadPayload`` + ``szReadOverhead``)."""
    page_bytes: int
    """Bytes of the stored pages that were decoded, checksums included (``szReadPayload``), or of baskets."""
    pages: int
    """Pages decoded (``nPageUnsealed``), or baskets."""
    unpacked_bytes: int
    """Uncompressed bytes of these pages (``szUnzip``)."""
    read: Time
    """Waiting for the storage (``timeWallRead``, ``timeCpuRead``)."""
    decompress: Time
    """Verifying checksums and decompressing (``timeWallUnzip``, ``timeCpuUnzip``)."""
    decode: Time
    """Decoding pages into arrays."""
    elapsed: float
    """Wall-clock seconds of all calls that read."""
    idle: float
    """Seconds in which threads did none of these: planning, assembling arrays, or idle."""
    threads: int
    """Number of threads."""
    text: str = field(repr=False)
    """The table."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, counts: dict[str, Any], text: str) -> "Metrics":
        """Creates it from the ``counts`` and the ``text`` of the engine. Raises no error."""
        for name in ("read", "decompress", "decode"):
            counts[name] = Time(**counts[name])
        return cls(**counts, text=text)
