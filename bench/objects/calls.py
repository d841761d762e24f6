"""The process that measures one reader or writer of an ntuple in an object store.

`setup.py` starts ``bench.objects.calls JOB.json``, which writes the answer, the times and the requests to the path in
the job. The requests are those that the server has noted.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..remote.calls import NOTED_SECONDS, of_versitygw
from ..remote.plain_get import Client, Range
from ..rivals.contestants import hashes

NTUPLE = "DecayTree"
WARM_ENTRIES = 1000
"""Written before anything is measured, to load code and to open connections."""

CLASSES = {
    "GET": {"GetObject", "HeadObject"},
    "PUT": {
        *("PutObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload"),
        *("ListObjects", "ListObjectsV2", "CopyObject"),
    },
    "DELETE": {"DeleteObject", "DeleteObjects", "AbortMultipartUpload"},
}
"""Requests by what they cost: the first and second class of S3, and those that are free."""


@dataclass(frozen=True)
class Job:
    """The work of one process."""

    kind: str
    """A key of `KINDS`."""
    result: str
    """Path of the outcome, as JSON."""
    uri: str
    """What to read; what to write is this, `numbered`."""
    repeat: int
    columns: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    """``storage_options``."""
    log: str = ""
    """Where the server notes requests; empty for directories and files."""
    source: str = ""
    """The file with the data to write."""
    writing: dict[str, Any] = field(default_factory=dict)
    """Keywords of `tupelo.recreate`."""
    rounds: list[list[Range]] = field(default_factory=list)
    """Of a plain client: the requests that it may send at once, the next ones, and so on."""
    threads: int = 0
    """Of a plain client."""


@dataclass
class Outcome:
    """The outcome of a job."""

    seconds: list[float] = field(default_factory=list)
    """Of each measured call."""
    requests: dict[str, int] = field(default_factory=dict)
    """By their class, in the last call."""
    bytes: int = 0
    """Stored bytes of the pages that were read; of a plain client those of all answers."""
    answer: dict[str, str] = field(default_factory=dict)
    """One hash per column."""
    version: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def gets(self) -> int:
        return self.requests.get("GET", 0)

    @property
    def puts(self) -> int:
        return self.requests.get("PUT", 0)


def classes(lines: list[str]) -> dict[str, int]:
    """The number of requests of each class."""
    names = Counter(request.text.split()[0] for request in of_versitygw(lines))
    if unknown := names.keys() - set().union(*CLASSES.values()):
        raise ValueError(f"requests without a price: {', '.join(sorted(unknown))}")
    return {which: sum(names[name] for name in members) for which, members in CLASSES.items()}


def measure(job: Job, outcome: Outcome, call: Callable[[int], Any], before: Callable[[], Any] = lambda: None) -> Any:
    """Times calls, which get what ``before`` returns or else their number; returns the result of the last one."""
    result = None
    for number in range(job.repeat):
        result = None
        prepared = before()
        offset = Path(job.log).stat().st_size if job.log else 0
        begin = time.perf_counter()
        result = call(number if prepared is None else prepared)
        outcome.seconds.append(time.perf_counter() - begin)
        if job.log:
            time.sleep(NOTED_SECONDS)
            with open(job.log, errors="replace") as log:
                log.seek(offset)
                outcome.requests = classes(log.read().splitlines())
    return result


def opened(uri: str, options: dict[str, str], **more: Any) -> Any:
    """The ntuple in a file or an object store."""
    import tupelo

    place = uri if uri.startswith(("ntpl+", "daos:")) else {uri: NTUPLE}
    return tupelo.open(place, storage_options=options or None, **more)


def numbered(uri: str, number: object) -> str:
    """The URI of one of several ntuples: in DAOS, containers have numbers, because the name is that of the ntuple."""
    store, colon, name = uri.partition(f":{NTUPLE}")
    return f"{store}-{number}{colon}{name}"


def of_columns(arrays: dict[str, Any]) -> dict[str, str]:
    return hashes({name: (values,) for name, values in arrays.items()})


def read(job: Job, outcome: Outcome) -> None:
    """Opens the ntuple and reads columns."""
    read_timed(job, outcome, opened_before=False)


def read_opened(job: Job, outcome: Outcome) -> None:
    """Reads columns of an ntuple that is open."""
    read_timed(job, outcome, opened_before=True)


def read_timed(job: Job, outcome: Outcome, opened_before: bool) -> None:
    import tupelo

    def whole(_: int) -> Any:
        with opened(job.uri, job.options) as ntuple:
            return ntuple.arrays(job.columns, library="np")

    def pages(ntuple: Any) -> Any:
        return ntuple.arrays(job.columns, library="np")

    with opened(job.uri, job.options, metrics=True) as ntuple:
        ntuple.arrays(job.columns, library="np")
        outcome.bytes = int(ntuple.metrics.page_bytes)
    if opened_before:
        result = measure(job, outcome, pages, lambda: opened(job.uri, job.options))
    else:
        result = measure(job, outcome, whole)
    outcome.answer, outcome.version = of_columns(result), f"tupelo {tupelo.__version__}"


def write(job: Job, outcome: Outcome) -> None:
    """Writes columns in memory as new ntuples."""
    import tupelo

    with opened(job.source, {}) as ntuple:
        columns = ntuple.arrays(job.columns, library="np")

    def create(number: object, entries: int | None = None) -> None:
        with tupelo.recreate(numbered(job.uri, number), storage_options=job.options or None, **job.writing) as file:
            file[NTUPLE] = {name: values[:entries] for name, values in columns.items()}

    create("warm", WARM_ENTRIES)
    measure(job, outcome, create)
    outcome.version = f"tupelo {tupelo.__version__}"


def get(job: Job, outcome: Outcome) -> None:
    """Fetches ranges without reading them."""
    client = Client(job.options, job.rounds, job.threads)
    client.get()
    outcome.bytes = measure(job, outcome, lambda _: client.get())


KINDS: dict[str, Callable[[Job, Outcome], None]] = {
    "read": read,
    "read_opened": read_opened,
    "write": write,
    "get": get,
}


def work(job: Job) -> Outcome:
    """Runs the job."""
    outcome = Outcome()
    KINDS[job.kind](job, outcome)
    return outcome


if __name__ == "__main__":
    JOB = Job(**json.loads(Path(sys.argv[1]).read_text()))
    Path(JOB.result).write_text(json.dumps(asdict(work(JOB))))
