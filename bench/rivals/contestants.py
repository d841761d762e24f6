"""The contestants, and the process that measures one of them in one task.

`bench.py` starts ``bench.rivals.contestants JOB.json``, which writes the answer and the times to the path in the job.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before numerical libraries detect the cores
    JOB = json.loads(Path(sys.argv[1]).read_text())
    for variable in ("TUPELO_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(JOB["threads"])
    if JOB["threads"] == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np

from .limits import Limit, Native, Program
from .packages import Answer, Hdf5, Missing, Parquet, Tupelo, Uproot


@dataclass(frozen=True)
class Job:
    """The work of one process."""

    kind: str
    """A key of `KINDS`."""
    contestant: str
    threads: int
    repeat: int
    result: str
    """Path of the outcome, as JSON."""
    ntuple: str
    path: str
    """The file to read or write."""
    source: str = ""
    """The RNTuple with the data to write."""
    columns: list[str] = field(default_factory=list)
    start: int | None = None
    stop: int | None = None
    codec: str = "none"
    more: dict[str, Any] = field(default_factory=dict)
    """Options of some kinds."""


@dataclass
class Outcome:
    """The outcome of a job."""

    seconds: list[float] = field(default_factory=list)
    answer: dict[str, str] = field(default_factory=dict)
    """One hash per column, which must be equal for all contestants."""
    answer_bytes: int = 0
    stored_bytes: int = 0
    read_bytes: int = 0
    """Bytes read by system calls in one measured call; 0 if unknown, for instance with memory mapping."""
    peak_bytes: list[int] = field(default_factory=list)
    """Peak memory over that at the start, for tasks that measure memory."""
    version: str = ""
    missing: str = ""
    """The reason if the contestant does not support the task."""


def root(threads: int, how: str = "views") -> Any:
    from . import root_rival

    return root_rival.Root(threads, how)


CONTESTANTS: dict[str, Callable[[int], Any]] = {
    "Tupelo": Tupelo,
    "Tupelo (Rust)": Native,
    "Tupelo (Rust), null sink": Native,
    "Tupelo (command)": Program,
    "Tupelo (Rust), mask": lambda threads: Native(threads, "mask"),
    "ROOT": root,
    "ROOT views": root,
    "ROOT bulk": lambda threads: root(threads, "bulk"),
    "ROOT RDataFrame": lambda threads: root(threads, "dataframe"),
    "ROOT, cache off": lambda threads: root(threads, "cache off"),
    "ROOT, sorted": lambda threads: root(threads, "sorted"),
    "uproot": Uproot,
    "Parquet": Parquet,
    "Parquet, own level": lambda threads: Parquet(threads, own_level=True),
    "HDF5": Hdf5,
    "limit: codec": lambda threads: Limit(threads, "codec"),
    "limit: memcpy": lambda threads: Limit(threads, "memcpy"),
    "limit: write(2)": lambda threads: Limit(threads, "write"),
}


def columns_of(job: Job) -> Answer:
    """The columns to write, read by Tupelo."""
    tupelo = Tupelo(1)
    return tupelo.answer(tupelo.read(Path(job.source), job.ntuple, job.columns, job.start, job.stop))


def hashes(answer: Answer) -> dict[str, str]:
    """A hash per column, over types, lengths and every bit of the values."""
    import xxhash

    def text(array: np.ndarray) -> str:
        contents = np.ascontiguousarray(array).view(np.uint8).data
        return f"{array.dtype}[{len(array)}] {xxhash.xxh3_64_hexdigest(contents)}"

    return {
        name: " ".join([*(text(end.astype(np.int64)) for end in ends), text(values)])
        for name, (*ends, values) in sorted(answer.items())
    }


def size(answer: Answer) -> int:
    return sum(array.nbytes for arrays in answer.values() for array in arrays)


def read_bytes() -> int:
    """Bytes that this process has read by system calls so far."""
    with contextlib.suppress(OSError), open("/proc/self/io") as counts:
        return int(next(line for line in counts if line.startswith("rchar")).split()[1])
    return 0


def measure(job: Job, outcome: Outcome, call: Callable[[], Any], before: Callable[[], object] = lambda: None) -> Any:
    """Times calls after a warm-up and returns the result of the last one."""
    result = None
    for _ in range(1 + job.repeat):
        result = None
        before()
        gc.collect()
        bytes_before, begin = read_bytes(), time.perf_counter()
        result = call()
        outcome.seconds.append(time.perf_counter() - begin)
        outcome.read_bytes = read_bytes() - bytes_before
    del outcome.seconds[0]
    return result


def measure_memory(outcome: Outcome, warm_up: Callable[[], object], call: Callable[[], Any]) -> Any:
    """Memory and time of one call, relative to the memory before it; ``warm_up`` loads code but little data."""
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        raise Missing("memory is measured by Linux only")
    warm_up()
    gc.collect()
    reset.write_text("5")  # resets the peak to the current memory: proc_pid_clear_refs(5)
    before, begin = memory("VmRSS"), time.perf_counter()
    result = call()
    outcome.seconds = [time.perf_counter() - begin]
    outcome.peak_bytes = [max(0, memory("VmHWM") - before)]
    return result


def memory(what: str) -> int:
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(what)).split()[1]) << 10


def take(outcome: Outcome, answer: Answer) -> None:
    """The answer as hashes."""
    outcome.answer, outcome.answer_bytes = hashes(answer), size(answer)


def remover(path: Path) -> Callable[[], None]:
    return lambda: path.unlink(missing_ok=True)


def make(job: Job, contestant: Any, outcome: Outcome) -> None:
    """Generated data."""
    contestant.make(job.more["what"], Path(job.path), job.more["entries"], job.source)


def prepare(job: Job, contestant: Any, outcome: Outcome) -> None:
    """The same data for another contestant."""
    more = {"small_groups": True} if job.more.get("small_groups") else {}
    contestant.write(Path(job.path), columns_of(job), job.codec, **more)


def read(job: Job, contestant: Any, outcome: Outcome) -> None:
    path = Path(job.path)
    if isinstance(contestant, Limit):
        measure(job, outcome, contestant.memcpy(size(columns_of(job))))
        return
    result = measure(job, outcome, lambda: contestant.read(path, job.ntuple, job.columns, job.start, job.stop))
    take(outcome, contestant.answer(result))


def write(job: Job, contestant: Any, outcome: Outcome) -> None:
    path = Path(job.path)
    remove = remover(path)
    if isinstance(contestant, Limit):
        measure(job, outcome, contestant.write(job), remove)
    else:
        if isinstance(contestant, Program):
            call = contestant.write(job)
        else:
            columns = columns_of(job)
            call = lambda: contestant.write(path, columns, job.codec)  # noqa: E731
        measure(job, outcome, call, remove)
        # Output of RNTuple writers is read by another package: that of Tupelo by uproot, the rest by Tupelo.
        reader = contestant
        if contestant.suffix == "root":
            reader = Uproot(1) if isinstance(contestant, (Tupelo, Program)) else Tupelo(1)
        take(outcome, reader.answer(reader.read(path, job.ntuple, job.columns, None, None)))
        outcome.stored_bytes = path.stat().st_size
    remove()


def names(job: Job, contestant: Any, outcome: Outcome) -> None:
    result = measure(job, outcome, lambda: contestant.names(Path(job.path), job.ntuple))
    outcome.answer = {"names": " ".join(sorted(result))}


def first(job: Job, contestant: Any, outcome: Outcome) -> None:
    result = measure(job, outcome, lambda: contestant.first(Path(job.path), job.ntuple, job.columns[0]))
    outcome.answer = {"first": repr(result)}


def everything(job: Job, contestant: Any, outcome: Outcome) -> None:
    result = measure(job, outcome, lambda: contestant.everything(Path(job.path), job.ntuple))
    take(outcome, contestant.answer(result))


def touch(job: Job, contestant: Any, outcome: Outcome) -> None:
    result = measure(job, outcome, lambda: contestant.touch(Path(job.path), job.ntuple, job.columns))
    take(outcome, contestant.answer(result))


def load(job: Job, contestant: Any, outcome: Outcome) -> None:
    """The time of the import, each in a new interpreter."""
    program = f"from time import perf_counter as now; begin = now(); import {contestant.package}; print(now() - begin)"
    command = [sys.executable, "-c", program]
    for _ in range(1 + job.repeat):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        outcome.seconds.append(float(done.stdout))
    del outcome.seconds[0]


def random(job: Job, contestant: Any, outcome: Outcome) -> None:
    (column,), path, entries = job.columns, Path(job.path), job.more["entries"]
    values = measure(job, outcome, lambda: contestant.random(path, job.ntuple, column, entries))
    take(outcome, {column: (np.asarray(values),)})
    if hasattr(contestant, "random_bytes"):  # it counts itself, because the system does not count its reads
        outcome.read_bytes = contestant.random_bytes(path, job.ntuple, column, entries)


def cut(job: Job, contestant: Any, outcome: Outcome) -> None:
    by, value = job.more["by"], job.more["value"]
    result = measure(job, outcome, lambda: contestant.cut(Path(job.path), job.ntuple, job.columns, by, value))
    take(outcome, contestant.answer(result))


def analysis(job: Job, contestant: Any, outcome: Outcome) -> None:
    counts = measure(job, outcome, lambda: contestant.analysis(Path(job.path), job.ntuple, job.columns))
    outcome.answer = {"counts": " ".join(str(int(count)) for count in counts)}


def stream(job: Job, contestant: Any, outcome: Outcome) -> None:
    def call(path: str) -> int:
        count: int = contestant.stream(Path(path), job.ntuple, job.columns, job.more["step_entries"])
        return count

    count = measure_memory(outcome, lambda: call(job.more["small"]), lambda: call(job.path))
    outcome.answer = {"positive": str(count)}


def write_floats(job: Job, contestant: Any, outcome: Outcome) -> None:
    path, more = Path(job.path), job.more
    batch_entries = more["batch_bytes"] // 4 // more["columns"]
    # All data exist before memory is measured, and no two batches are equal.
    shape = (more["columns"], batch_entries * more["batches"])
    data = np.random.default_rng(1).standard_normal(shape, np.float32)
    small = np.ascontiguousarray(data[:2, :2])
    remove = remover(path)

    def call(data: np.ndarray, batch_entries: int) -> None:
        remove()
        contestant.write_floats(path, data, batch_entries, more["cluster_bytes"])

    measure_memory(outcome, lambda: call(small, 1), lambda: call(data, batch_entries))
    outcome.stored_bytes = path.stat().st_size
    # The first and the last written column, read by Tupelo.
    columns = ["f0", f"f{len(data) - 1}"]
    whole = Tupelo(1).read(path, "Floats", columns, None, None)
    take(outcome, {name: (whole[name],) for name in columns})
    if outcome.answer != hashes(dict(zip(columns, ((data[0],), (data[-1],)), strict=True))):
        raise RuntimeError("what was read back is not what was written")
    outcome.answer_bytes = data.nbytes
    remove()


KINDS: dict[str, Callable[[Job, Any, Outcome], None]] = {
    "make": make,
    "prepare": prepare,
    "read": read,
    "write": write,
    "names": names,
    "first": first,
    "everything": everything,
    "touch": touch,
    "load": load,
    "random": random,
    "cut": cut,
    "analysis": analysis,
    "stream": stream,
    "write_floats": write_floats,
}


def work(job: Job) -> Outcome:
    """Runs the job."""
    outcome = Outcome()
    try:
        contestant = CONTESTANTS[job.contestant](job.threads)
        outcome.version = f"{contestant.package} {contestant.version}"
        report = None
        if isinstance(contestant, Native):
            report = contestant.report(job)
        elif isinstance(contestant, Limit) and contestant.what == "codec":
            report = contestant.codec(job)
        if report is None:
            KINDS[job.kind](job, contestant, outcome)
        for name, value in (report or {}).items():
            setattr(outcome, name, value)
        if getattr(contestant, "maps_memory", False):
            outcome.read_bytes = 0
        if not outcome.stored_bytes and not isinstance(contestant, Limit) and Path(job.path).exists():
            outcome.stored_bytes = Path(job.path).stat().st_size
    except (ImportError, Missing) as error:
        outcome.missing = str(error)
    return outcome


if __name__ == "__main__":
    Path(JOB["result"]).write_text(json.dumps(asdict(work(Job(**JOB)))))
