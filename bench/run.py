"""Tupelo beside its rivals and the limits of the machine, on the same data in one run, answers asserted equal.

`make bench` calls this. Each contestant does each task in a process of its own: a call to warm up, then the median of
five, from files in the page cache. In the first table everybody has one thread on one core, in the second all cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contestants import Job, Outcome, setting

PROJECT = Path(__file__).resolve().parent.parent
COMMAND = PROJECT / "target/release/tupelo"
DATA = PROJECT / "target/bench"
ATLAS = Path(os.environ.get("TUPELO_DATA") or PROJECT.parent / "shared/data") / "atlas_daod_physlite_ntuple.root"
MEMORY_DISK = Path("/dev/shm")

EVENTS = 1_000_000
"""Flat events by default; there are half as many with jagged columns, and a quarter is written."""
RANGE_ENTRIES = 1000
JOB_SECONDS = 900
"""When a process counts as hanging."""

MEMBERS = ("PX", "PY", "PZ", "ProbK", "ProbPi", "isMuon")
EIGHTEEN = [f"H{hadron}_{member}" for hadron in (1, 2, 3) for member in MEMBERS]
"""The columns that LHCb's analysis of these data needs."""
ALL_26 = ["B_FlightDistance", "B_VertexChi2"] + [
    f"H{hadron}_{member}" for hadron in (1, 2, 3) for member in (*MEMBERS, "Charge", "IPChi2")
]
NTUPLES = {"b2hhh": "DecayTree", "nanoaod": "Events"}
READERS = ["Tupelo", "ROOT views", "ROOT bulk", "uproot", "Parquet", "HDF5"]
PARTS = {
    "read": [*READERS, "limit: codec", "limit: memcpy"],
    "range": [*READERS, "limit: codec"],
    "write": ["Tupelo", "ROOT", "uproot", "Parquet", "HDF5", "limit: codec", "limit: write(2)"],
    "names": ["Tupelo", "ROOT", "uproot"],
}
"""Who takes part with one thread. Of the limits, the codec's is for compressed data, write(2) for the others."""
PARTS_OF_MANY = {"read": ["Tupelo", "ROOT views", "ROOT bulk", "Parquet"], "write": ["Tupelo", "ROOT"]}
"""Who can use several cores."""


@dataclass(frozen=True)
class Task:
    """What is compared."""

    name: str
    title: str
    kind: str
    dataset: str = "b2hhh"
    codec: str = "none"

    def parts(self, threads: int) -> list[str]:
        """The contestants."""
        if threads > 1:
            return PARTS_OF_MANY.get(self.kind, [])
        absent = "limit: codec" if self.codec == "none" else "limit: write(2)"
        return [part for part in PARTS[self.kind] if part != absent]


TASKS = [
    Task("read-flat-zstd", "read 18 of 26 flat columns, zstd 5", "read", codec="zstd"),
    Task("read-flat-lz4", "read 18 of 26 flat columns, lz4 4", "read", codec="lz4"),
    Task("read-flat-none", "read 18 of 26 flat columns, uncompressed", "read"),
    Task("read-jagged-zstd", "read all jagged columns, zstd 5", "read", "nanoaod", "zstd"),
    Task("read-jagged-none", "read all jagged columns, uncompressed", "read", "nanoaod"),
    Task("read-range-zstd", f"read {RANGE_ENTRIES} entries of 18 flat columns, zstd 5", "range", codec="zstd"),
    Task("write-none", "write 26 flat columns, uncompressed", "write"),
    Task("write-zstd", "write 26 flat columns, zstd 5", "write", codec="zstd"),
    Task("write-lz4", "write 26 flat columns, lz4 4", "write", codec="lz4"),
    Task("open-atlas", "open an ATLAS file, list its 854 fields", "names", "atlas"),
]


@dataclass(frozen=True)
class Row:
    """One measurement."""

    task: str
    threads: int
    contestant: str
    seconds: list[float]
    column_bytes: int
    """Of the columns in memory, uncompressed."""
    stored_bytes: int

    @property
    def median(self) -> float:
        """The time that counts."""
        return statistics.median(self.seconds)


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.numbers = itertools.count()
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.failures: list[str] = []
        self.rows: list[Row] = []

    def do(self, job: Job) -> Outcome | None:
        """Do a job in a process of its own; None where it failed."""
        path = Path(job.result)
        order = path.with_suffix(".job")
        order.write_text(json.dumps(asdict(job)))
        command = [sys.executable, str(Path(__file__).with_name("contestants.py")), str(order)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            self.failures.append(f"{job.contestant}: no answer within {JOB_SECONDS} s ({job.kind} {job.path})")
            return None
        if done.returncode != 0 or not path.exists():
            lines = (done.stderr or done.stdout).strip().splitlines()
            said = "".join(f"\n    {line}" for line in [line for line in lines if "rror" in line][-3:] or lines[-3:])
            self.failures.append(f"{job.contestant} failed: {job.kind} {job.path}, status {done.returncode}{said}")
            return None
        outcome = Outcome(**json.loads(path.read_text()))
        if outcome.missing and job.contestant == "Tupelo":
            raise SystemExit(f"the package tupelo is not in this Python: {outcome.missing}; run make build")
        if outcome.missing:
            self.missing[job.contestant] = outcome.missing
            return None
        self.versions[job.contestant] = outcome.version
        return outcome

    def job(self, kind: str, contestant: str, threads: int = 1, **more: Any) -> Job:
        """A job with what all have in common."""
        result = str(self.scratch / f"{next(self.numbers)}.json")
        return Job(kind, contestant, threads, self.options.repeat, result, **more)

    def data(self, task: Task, contestant: str) -> Path:
        """The file that a contestant reads; what is not there is made and kept."""
        kind = CONTESTANT_SUFFIX.get(contestant, "root")
        small_groups = kind == "parquet" and task.kind == "range"
        directory = DATA / f"{task.dataset}-{self.events(task)}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{task.codec}{'-groups' if small_groups else ''}.{kind}"
        if path.exists() or contestant in self.missing:
            return path
        say(f"making {path.relative_to(PROJECT)}")
        part = path.with_name(f"part-{path.name}")
        part.unlink(missing_ok=True)
        if kind == "root":
            events = str(self.events(task))
            command = [str(COMMAND), "generate", task.dataset, "--events", events, "--seed", "1", "--quiet"]
            subprocess.run([*command, "--compression", setting(task.codec), str(part)], check=True)
            part.rename(path)
            return path
        source = str(self.data(task, "Tupelo"))
        columns = self.columns(task, whole=True)
        job = self.job("prepare", contestant, ntuple=NTUPLES[task.dataset], path=str(part), source=source)
        if self.do(replace(job, columns=columns, codec=task.codec, small_groups=small_groups)):
            part.rename(path)
        return path

    def events(self, task: Task) -> int:
        """How many events the data of a task have."""
        events: int = self.options.events
        return events // 2 if task.dataset == "nanoaod" else events

    def columns(self, task: Task, whole: bool = False) -> list[str]:
        """What is read or written."""
        if task.dataset == "b2hhh":
            return ALL_26 if whole or task.kind == "write" else EIGHTEEN
        command = [str(COMMAND), "schema", "--json", str(self.data(task, "Tupelo"))]
        schema = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return [field["name"] for field in schema["fields"] if field["type"].startswith("std::vector")]

    def jobs(self, task: Task, threads: int) -> Iterator[Job]:
        """The job of each contestant in a task."""
        if task.kind == "names":
            for contestant in task.parts(threads):
                yield self.job("names", contestant, threads, ntuple="EventData", path=str(ATLAS))
            return
        common: dict[str, Any] = {
            "ntuple": NTUPLES[task.dataset],
            "codec": task.codec,
            "columns": self.columns(task),
            "source": str(self.data(task, "Tupelo")),
        }
        if task.kind == "range":
            common["start"] = self.events(task) // 2
            common["stop"] = common["start"] + RANGE_ENTRIES
        if task.kind == "write":
            common["start"], common["stop"] = 0, self.options.events // 4
        for contestant in task.parts(threads):
            if task.kind != "write":
                yield self.job("read", contestant, threads, path=str(self.data(task, contestant)), **common)
                continue
            job = self.job("write", contestant, threads, path=str(self.scratch / "written"), **common)
            if contestant.startswith("limit"):  # on the pages that Tupelo writes
                source = str(self.scratch / f"{task.codec}.root")
                self.do(replace(job, kind="prepare", contestant="Tupelo", path=source))
                job = replace(job, source=source)
            yield job

    def compare(self, task: Task, threads: int) -> None:
        """Measure all contestants in a task, and hold their answers against each other."""
        outcomes: dict[str, Outcome] = {}
        for job in self.jobs(task, threads):
            if job.contestant in self.missing:
                continue
            say(f"{task.name}, {count(threads, 'thread')}: {job.contestant}")
            if outcome := self.do(job):
                outcomes[job.contestant] = outcome
        answers = {name: outcome.answer for name, outcome in outcomes.items() if outcome.answer}
        expected = answers.get("Tupelo")
        for name, answer in answers.items():
            if expected is not None and answer != expected:
                columns = sorted(c for c in expected.keys() | answer.keys() if expected.get(c) != answer.get(c))
                self.failures.append(
                    f"{task.name}: the answers of Tupelo and {name} differ in {count(len(columns), 'column')}: "
                    + "; ".join(f"{c}: {expected.get(c)} and {answer.get(c)}" for c in columns[:3])
                )
        column_bytes = max((outcome.answer_bytes for outcome in outcomes.values()), default=0)
        for name, outcome in outcomes.items():
            self.rows.append(Row(task.name, threads, name, outcome.seconds, column_bytes, outcome.stored_bytes))


LEGEND = """
MB/s: bytes of the columns in memory, uncompressed. Jagged columns come as Awkward arrays from Tupelo and uproot, as
Arrow from Parquet, as ends and items from ROOT and HDF5. ROOT's views are direct ones for flat columns; its bulks read
into place. Limits: the codec alone on the same pages, memcpy of the columns, write(2) of the same pages."""
CONTESTANT_SUFFIX = {"Parquet": "parquet", "HDF5": "h5"}


def say(text: str) -> None:
    """Talk goes to standard error."""
    print(text, file=sys.stderr, flush=True)


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def table(rows: list[Row], tasks: list[Task]) -> str:
    """Markdown: seconds, uncompressed column data per second, time over Tupelo's, and how large the file is."""
    lines = ["| task | contestant | seconds | MB/s | time ÷ Tupelo | file MB |", "|---|---|---:|---:|---:|---:|"]
    for task in tasks:
        mine = [row for row in rows if row.task == task.name]
        own = next((row.median for row in mine if row.contestant == "Tupelo"), None)
        for row in mine:
            title = task.title if row is mine[0] else ""
            speed = f"{row.column_bytes / 1e6 / row.median:.0f}" if row.column_bytes else "–"
            ratio = f"{row.median / own:.2f}" if own else "–"
            stored = f"{row.stored_bytes / 1e6:.1f}" if row.stored_bytes else ""
            lines.append(f"| {title} | {row.contestant} | {row.median:.4f} | {speed} | {ratio} | {stored} |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What the times depend on."""
    model = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = models[0] if models else model
    return {"cpu": model, "cores": cores(), "system": platform.platform(), "python": platform.python_version()}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Tupelo beside its rivals.")
    parser.add_argument("--events", type=int, default=EVENTS, metavar="N", help=f"flat events (default: {EVENTS})")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measured calls, after one (default: 5)")
    names = [task.name for task in TASKS]
    parser.add_argument("--only", action="append", choices=names, metavar="TASK", help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="100000 events, one call: does it run at all?")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="make the data anew, as after a change of the generator or of what is written",
    )
    options = parser.parse_args()
    if options.quick:
        options.events, options.repeat = 100_000, 1
    if options.events < 2 * RANGE_ENTRIES or options.repeat < 1:
        parser.error(f"at least {2 * RANGE_ENTRIES} events and one repetition")
    return options


def main() -> int:
    options = arguments()
    if not COMMAND.exists():
        say(f"{COMMAND} is missing: run make build")
        return 1
    DATA.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        for path in DATA.glob("*-*/*.*"):
            path.unlink()
    tasks = [task for task in TASKS if not options.only or task.name in options.only]
    remarks = []
    if not ATLAS.exists() and any(task.dataset == "atlas" for task in tasks):
        tasks = [task for task in tasks if task.dataset != "atlas"]
        remarks.append(f"open-atlas did not run: {ATLAS.name} is not there")
    where = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else DATA
    with tempfile.TemporaryDirectory(prefix="tupelo-bench-", dir=where) as scratch:
        bench = Bench(options, Path(scratch))
        for threads in sorted({1, cores()}):
            for task in tasks:
                if task.parts(threads):
                    bench.compare(task, threads)
    machine_ = machine()
    print(f"# Tupelo and its rivals, {datetime.now(UTC):%Y-%m-%d}\n")
    print(f"{machine_['cpu']}, {count(cores(), 'core')}. Median of {options.repeat} after a warm-up, warm page cache.")
    print(f"{options.events} flat events, {options.events // 2} jagged; {options.events // 4} written, to {where}.")
    print(f"Versions: {', '.join(dict.fromkeys(bench.versions.values()))}.")
    print(LEGEND)
    for threads in sorted({row.threads for row in bench.rows}):
        print(f"\n## {'One thread on one core' if threads == 1 else f'{threads} threads'}\n")
        print(table([row for row in bench.rows if row.threads == threads], tasks))
    print()
    remarks += [f"{name} did not run: {why}" for name, why in bench.missing.items()]
    if any(row.task == "write-lz4" for row in bench.rows):
        remarks.append("write-lz4: the lz4 of uproot and HDF5 has no levels, so theirs is the fast, larger variant")
    for line in remarks:
        print(line)
    results = {
        "machine": machine_,
        "options": {"events": options.events, "repeat": options.repeat},
        "versions": bench.versions,
        "rows": [{**asdict(row), "median": row.median} for row in bench.rows],
        "remarks": remarks,
        "failures": bench.failures,
    }
    (DATA / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    for failure in bench.failures:
        say(f"FAILED: {failure}")
    if not bench.failures:
        print("All answers are equal.")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
