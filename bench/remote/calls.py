"""The process that measures one contestant reading remote files.

`rows.py` starts ``bench.remote.calls JOB.json``, which writes the answer, the times and the requests to the path in the
job. The requests are those that the server has noted: nothing that a contestant says about itself.
"""

from __future__ import annotations

import http.client
import json
import re
import statistics
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..rivals import contestants
from ..rivals.contestants import hashes, measure_memory
from ..rivals.packages import Answer, Missing, from_numpy_or_awkward, positive

NOTED_SECONDS = 0.2
"""Time after which the server has noted all requests."""
BLOCK_BYTES = 1 << 20
WINDOW_SECONDS = 0.02
"""Less than the latency: of requests that arrive within it, none waited for the answer of another."""


@dataclass(frozen=True)
class Job:
    """The work of one process."""

    kind: str
    """A method of a contestant."""
    contestant: str
    result: str
    """Path of the outcome, as JSON."""
    ntuple: str
    names: list[str]
    """URLs or paths."""
    columns: list[str] = field(default_factory=list)
    server: str = ""
    """A key of `REQUESTS`, or empty for local files."""
    log: str = ""
    """Where the server notes requests."""
    options: dict[str, Any] = field(default_factory=dict)
    """Keywords of `tupelo.open` and others."""
    repeat: int = 1
    bytes: int = 0
    """For ``get``."""
    small: str = ""
    """A local file to load code with, before anything is measured."""


@dataclass
class Outcome(contestants.Outcome):
    """The outcome of a job. ``seconds`` are those of each call; the first one opens connections."""

    requests: list[int] = field(default_factory=list)
    sent_bytes: list[int] = field(default_factory=list)
    """Bytes that the server sent; 0 if it does not say."""
    listed: list[str] = field(default_factory=list)
    """The requests of the last call."""
    most_files: int = 0
    """Most files that were requested within `WINDOW_SECONDS` in the last call."""

    @property
    def median(self) -> float:
        """Of the calls after the first one."""
        return statistics.median(self.seconds[1:] or self.seconds)


@dataclass(frozen=True)
class Request:
    """A request that a server noted."""

    text: str
    bytes: int = 0
    file: str = ""
    arrived: float = 0


def of_nginx(lines: list[str]) -> Iterator[Request]:
    for line in lines:
        method, path, asked, status, sent, took, ended = line.split(" ")
        asked = asked.strip('"').removeprefix("bytes=")
        text = f"{method} {path} {asked} {status}"
        yield Request(text, int(sent), path, float(ended) - float(took))


def of_versitygw(lines: list[str]) -> Iterator[Request]:
    for line in lines:
        if operation := re.search(r" s3_(\w+) (\S+)", line):
            yield Request(f"{operation[1]} {operation[2]}")


def of_xrootd(lines: list[str]) -> Iterator[Request]:
    """What a caller waits for in every call: not the set-up of connections, nor closing, nor checks sent with reads."""
    kind, asked = "", 0
    ranges: list[str] = []
    for line in [*lines, " req=close "]:
        if begun := re.search(r" req=(\w+) ", line):
            if kind not in ("", "protocol", "login", "auth", "close", "stat"):
                yield Request(" ".join([kind, *ranges]), asked)
            kind, asked, ranges = begun[1], 0, []
        elif read := re.search(r" (?:read|readV|pgread) (\d+)@(\d+)", line):
            asked += int(read[1])
            ranges.append(f"{read[1]}@{read[2]}")


REQUESTS: dict[str, Callable[[list[str]], Iterator[Request]]] = {
    "http": of_nginx,
    "s3": of_versitygw,
    "root": of_xrootd,
}


class Tupelo:
    """The package tupelo."""

    def __init__(self) -> None:
        import tupelo

        self.tupelo: Any = tupelo
        self.version = f"tupelo {tupelo.__version__}"

    def keys(self, job: Job) -> list[str]:
        with self.tupelo.open(job.names[0], **job.options) as file:
            return list(file[job.ntuple].keys(recursive=False))

    def read(self, job: Job) -> Any:
        with self.tupelo.open(job.names[0], **job.options) as file:
            return file[job.ntuple].arrays(job.columns or None, library="np")

    def concatenate(self, job: Job) -> Any:
        names = [f"{name}:{job.ntuple}" for name in job.names]
        return self.tupelo.concatenate(names, job.columns, library="np", **job.options)

    def stream(self, job: Job) -> int:
        names = [f"{name}:{job.ntuple}" for name in job.names]
        return positive(self.tupelo.iterate(names, job.columns, library="np", **job.options))

    def stored_bytes(self, job: Job) -> int:
        with self.tupelo.open(job.names[0], metrics=True) as file:
            ntuple = file[job.ntuple]
            ntuple.arrays(job.columns or None, library="np")
            return int(ntuple.metrics.page_bytes)


class Uproot:
    """uproot, without its caches of earlier reads."""

    def __init__(self, handler: str | None = None) -> None:
        import uproot

        self.uproot = uproot
        self.version = f"uproot {uproot.__version__}"
        self.handler = handler

    def source(self, job: Job) -> dict[str, Any]:
        """The options for one way to read URLs."""
        is_url = job.names[0].startswith("http")
        return {"handler": getattr(self.uproot, self.handler)} if self.handler and is_url else {}

    def open(self, job: Job) -> Any:
        return self.uproot.open(job.names[0], object_cache=None, array_cache=None, **self.source(job))

    def keys(self, job: Job) -> list[str]:
        with self.open(job) as file:
            return list(file[job.ntuple].keys(recursive=False))

    def read(self, job: Job) -> Any:
        with self.open(job) as file:
            return file[job.ntuple].arrays(job.columns or None, library="np")

    def concatenate(self, job: Job) -> Any:
        return self.uproot.concatenate(
            dict.fromkeys(job.names, job.ntuple), job.columns, library="np", **self.source(job)
        )


class Get:
    """One plain request for as many bytes: the most that a connection can give."""

    version = ""

    def get(self, job: Job) -> int:
        url = urllib.parse.urlsplit(job.names[0])
        connection = http.client.HTTPConnection(url.netloc)
        connection.request("GET", url.path, headers={"Range": f"bytes=0-{job.bytes - 1}"})
        answer, block, count = connection.getresponse(), bytearray(BLOCK_BYTES), 0
        while got := answer.readinto(block):
            count += got
        connection.close()
        return count


CONTESTANTS: dict[str, Callable[[], Any]] = {
    "Tupelo": Tupelo,
    "Tupelo, local file": Tupelo,
    "Tupelo, cache": Tupelo,
    "uproot": Uproot,
    "uproot, HTTPSource": lambda: Uproot("HTTPSource"),
    "one GET": Get,
}


def requests(job: Job, offset: int) -> list[Request]:
    """What the server noted from an offset of its log on."""
    with open(job.log, errors="replace") as log:
        log.seek(offset)
        return list(REQUESTS[job.server](log.read().splitlines()))


def most_files(noted: list[Request]) -> int:
    """Most files of requests that were in flight at once."""
    begins = [request.arrived for request in noted]
    windows = ({it.file for it in noted if 0 <= it.arrived - begin < WINDOW_SECONDS} for begin in begins)
    return max(map(len, windows), default=0)


def note(outcome: Outcome, offset: int, job: Job) -> None:
    """Adds the requests of a call."""
    time.sleep(NOTED_SECONDS)
    noted = requests(job, offset)
    outcome.requests.append(len(noted))
    outcome.sent_bytes.append(sum(request.bytes for request in noted))
    outcome.listed, outcome.most_files = [request.text for request in noted], most_files(noted)


def of_small(job: Job) -> Job:
    """The same task with the small local file."""
    return replace(job, names=[job.small], options={})


def measure(job: Job, outcome: Outcome, call: Callable[[], Any]) -> Any:
    """Times calls and counts their requests; returns the result of the last one."""
    result = None
    for _ in range(1 + job.repeat):
        result = None
        offset = Path(job.log).stat().st_size if job.log else 0
        begin = time.perf_counter()
        result = call()
        outcome.seconds.append(time.perf_counter() - begin)
        if job.log:
            note(outcome, offset, job)
    return result


def answer(result: Any) -> dict[str, str]:
    """The answer as text; of columns a hash each."""
    if isinstance(result, list):
        return {"names": " ".join(sorted(result))}
    if isinstance(result, int):
        return {"count": str(result)}
    columns: Answer = from_numpy_or_awkward(result)
    return hashes({name: tuple(np.asarray(array) for array in arrays) for name, arrays in columns.items()})


def work(job: Job) -> Outcome:
    """Runs the job."""
    outcome = Outcome()
    try:
        contestant = CONTESTANTS[job.contestant]()
        outcome.version = contestant.version
        method = getattr(contestant, job.kind)
        if job.kind == "stream":
            offset = Path(job.log).stat().st_size if job.log else 0
            result = measure_memory(outcome, lambda: method(of_small(job)), lambda: method(job))
            if job.log:
                note(outcome, offset, job)
        else:
            if job.small:
                method(of_small(job))
            result = measure(job, outcome, lambda: method(job))
        outcome.answer = answer(result)
        if not job.log and job.kind == "read":
            outcome.stored_bytes = contestant.stored_bytes(job)
    except (ImportError, Missing) as error:
        outcome.missing = str(error)
    return outcome


if __name__ == "__main__":
    JOB = Job(**json.loads(Path(sys.argv[1]).read_text()))
    Path(JOB.result).write_text(json.dumps(asdict(work(JOB))))
