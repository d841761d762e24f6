"""Benchmark of Tupelo, other packages and the limits of the machine on the same data, with equal answers.

`make bench` calls this. Each contestant does each task in its own process: a warm-up call, then the median of five,
from files in the page cache. In the first table every contestant has one thread on one core, in the second all cores.
Memory is measured once.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report
from contestants import Job, Outcome
from limits import BINARY
from packages import MEMORY_CODEC, setting
from report import Row
from tasks import (
    ALL_26,
    BATCH_BYTES,
    BATCHES,
    CLUSTER_BYTES,
    COPIERS,
    CUT_VALUE,
    EIGHTEEN,
    FLOATS,
    MIB,
    NTUPLES,
    RANDOM_ENTRIES,
    RANGE_ENTRIES,
    STEP_ENTRIES,
    TASKS,
    TOUCHED,
    WIDE_COLUMNS,
    Task,
)

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "target/bench"
ATLAS = Path(os.environ.get("TUPELO_DATA") or PROJECT.parent / "shared/data") / "atlas_daod_physlite_ntuple.root"
MEMORY_DISK = Path("/dev/shm")

EVENTS = 1_000_000
"""Flat events by default; there are half as many with jagged columns, and a quarter is written."""
QUICK_EVENTS = 100_000
SMALL_EVENTS = 2 * RANGE_ENTRIES
JOB_SECONDS = 900
"""Timeout of a process."""
SUFFIXES = {"Parquet": "parquet", "HDF5": "h5"}


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.numbers = itertools.count()
        self.versions: dict[str, str] = {}
        self.missing: dict[tuple[str, str], str] = {}
        """Reasons for contestants that are missing in a task."""
        self.failures: list[str] = []
        self.unmade: dict[Path, str] = {}
        """Data that could not be created, with the reason."""
        self.rows: list[Row] = []

    def do(self, job: Job, binaries: Path | None = None, environment: dict[str, str] | None = None) -> Outcome | None:
        """Runs a job in a separate process; None if it failed."""
        path = Path(job.result)
        order = path.with_suffix(".job")
        order.write_text(json.dumps(asdict(job)))
        command = [sys.executable, str(Path(__file__).with_name("contestants.py")), str(order)]
        environment = (
            os.environ | {BINARY: str((binaries or self.options.binaries) / "tupelo-bench")} | (environment or {})
        )
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=JOB_SECONDS, errors="replace", env=environment
            )
        except subprocess.TimeoutExpired:
            late = f"no answer within {JOB_SECONDS} s"
            if not job.contestant.startswith("Tupelo"):
                return Outcome(missing=late)
            self.failures.append(f"{job.contestant}: {late} ({job.kind} {job.path})")
            return None
        if done.returncode != 0 or not path.exists():
            lines = (done.stderr or done.stdout).strip().splitlines()
            said = "".join(f"\n    {line}" for line in [line for line in lines if "rror" in line][-3:] or lines[-3:])
            self.failures.append(f"{job.contestant} failed: {job.kind} {job.path}, status {done.returncode}{said}")
            return None
        outcome = Outcome(**json.loads(path.read_text()))
        if outcome.version:
            self.versions[job.contestant] = outcome.version
        return outcome

    def job(self, kind: str, contestant: str, threads: int = 1, **more: Any) -> Job:
        """A job with the common options."""
        return Job(kind, contestant, threads, self.options.repeat, self.result(), **more)

    def result(self) -> str:
        """A path for an outcome."""
        return str(self.scratch / f"{next(self.numbers)}.json")

    def data(self, task: Task, contestant: str) -> Path | None:
        """The file that a contestant reads, created if missing. None if it cannot be created."""
        if task.dataset == "atlas":
            return ATLAS
        kind = SUFFIXES.get(contestant, "root")
        small_groups = kind == "parquet" and task.has_small_groups
        directory = DATA / f"{task.dataset}-{self.entries(task)}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{task.codec}{'-groups' if small_groups else ''}.{kind}"
        if path.exists():
            return path
        if path in self.unmade:
            self.missing[task.name, contestant] = self.unmade[path]
            return None
        part = path.with_name(f"part-{path.name}")
        part.unlink(missing_ok=True)
        if kind == "root" and task.dataset in ("b2hhh", "nanoaod"):
            say(f"making {path.relative_to(PROJECT)}")
            events = str(self.entries(task))
            command = [str(self.options.binaries / "tupelo-generate"), task.dataset, "--events", events]
            subprocess.run(
                [*command, "--seed", "1", "--quiet", "--compression", setting(task.codec), str(part)], check=True
            )
        else:
            make = self.making(task, contestant, part)
            say(f"making {path.relative_to(PROJECT)}")
            outcome = self.do(make)
            if not outcome or outcome.missing:
                part.unlink(missing_ok=True)
                self.unmade[path] = outcome.missing if outcome else f"{path.name} could not be made"
                self.missing[task.name, contestant] = self.unmade[path]
                return None
        part.rename(path)
        return path

    def making(self, task: Task, contestant: str, path: Path) -> Job:
        """The job that creates data not made by `tupelo-generate`, or converts them for a contestant."""
        if contestant not in SUFFIXES:
            source = self.data(replace(task, dataset="b2hhh"), "Tupelo") if task.dataset == "cut" else None
            more: dict[str, Any] = {"what": task.dataset, "entries": self.entries(task)}
            return self.job("make", "Tupelo", ntuple="", path=str(path), source=str(source), more=more)
        common: dict[str, Any] = {"columns": self.columns(task, whole=True), "codec": task.codec}
        more = {"small_groups": contestant == "Parquet" and task.has_small_groups}
        source = self.data(task, "Tupelo")
        ntuple = NTUPLES[task.dataset]
        return self.job("prepare", contestant, ntuple=ntuple, path=str(path), source=str(source), more=more, **common)

    def entries(self, task: Task) -> int:
        """The number of entries, or of columns, in the data of a task."""
        events: int = self.options.events
        return {"nanoaod": events // 2, "floats": FLOATS * events, "wide": WIDE_COLUMNS}.get(task.dataset, events)

    def columns(self, task: Task, whole: bool = False) -> list[str]:
        """The columns to read or write."""
        if task.dataset in ("b2hhh", "cut"):
            more = ["run", "mixed"] if whole and task.dataset == "cut" else []
            return [*(ALL_26 if whole or task.kind == "write" else EIGHTEEN), *more]
        if task.dataset == "floats":
            return ["x"]
        if task.kind == "touch":
            return TOUCHED
        if task.dataset == "wide":
            return [f"f{WIDE_COLUMNS // 2:04}"]
        if task.dataset == "atlas":
            return []
        command = [str(self.options.binaries / "tupelo"), "schema", "--json", str(self.data(task, "Tupelo"))]
        schema = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return [field["name"] for field in schema["fields"] if field["type"].startswith("std::vector")]

    def more(self, task: Task) -> dict[str, Any]:
        """Options of one kind of task."""
        if task.kind == "random":
            entries = random.Random(1).sample(range(self.entries(task)), RANDOM_ENTRIES)
            return {"entries": entries}
        if task.kind == "cut":
            return {"by": task.by, "value": CUT_VALUE}
        if task.kind == "stream":
            small = DATA / f"{task.dataset}-small.root"
            if not small.exists():
                command = [str(self.options.binaries / "tupelo-generate"), task.dataset, "--quiet", "--force"]
                subprocess.run([*command, "--events", str(SMALL_EVENTS), str(small)], check=True)
            return {"step_entries": STEP_ENTRIES, "small": str(small)}
        if task.kind == "write_floats":
            batch = {"batch_bytes": BATCH_BYTES, "batches": BATCHES // (4 if self.options.quick else 1)}
            return batch | {"columns": task.columns, "cluster_bytes": CLUSTER_BYTES}
        return {}

    def jobs(self, task: Task, threads: int, contestants: Collection[str] | None = None) -> Iterator[Job]:
        """The job of each contestant in a task, or of some of them."""
        parts = [name for name in task.parts(threads) if contestants is None or name in contestants]
        common: dict[str, Any] = {"more": self.more(task), "codec": task.codec}
        written = {"path": str(self.scratch / "written")}
        if task.kind == "write_floats":
            for contestant in parts:
                yield self.job(task.kind, contestant, threads, ntuple="Floats", **written, **common)
            return
        if task.kind == "load":
            for contestant in parts:
                yield self.job(task.kind, contestant, threads, ntuple="", path=written["path"])
            return
        common |= {"ntuple": NTUPLES.get(task.dataset, "EventData"), "columns": self.columns(task)}
        if task.ranged:
            common["start"] = self.entries(task) // 2
            common["stop"] = common["start"] + RANGE_ENTRIES
        if task.kind != "write":
            source = str(self.data(task, "Tupelo") or "")
            for contestant in parts:
                if path := self.data(task, contestant):
                    yield self.job(task.kind, contestant, threads, path=str(path), source=source, **common)
            return
        common |= {"start": 0, "stop": self.options.events // 4}
        for contestant in parts:
            job = self.job("write", contestant, threads, source=str(self.data(task, "Tupelo")), **written, **common)
            if contestant.startswith(COPIERS):
                source = str(self.scratch / f"{task.codec}.root")
                self.do(replace(job, kind="prepare", contestant="Tupelo", path=source))
                job = replace(job, source=source, start=None, stop=None)
            yield job

    def compare(self, task: Task, threads: int) -> None:
        """Measures all contestants in a task and compares their answers."""
        outcomes: dict[str, Outcome] = {}
        for job in self.jobs(task, threads):
            say(f"{task.name}, {count(threads, 'thread')}: {job.contestant}")
            outcome = self.do(job)
            if outcome and outcome.missing:
                self.missing[task.name, job.contestant] = outcome.missing
            elif outcome:
                outcomes[job.contestant] = outcome
        answers = {name: outcome.answer for name, outcome in outcomes.items() if outcome.answer}
        first, expected = next(iter(answers.items()), ("", {}))
        for name, answer in answers.items():
            if answer != expected:
                columns = sorted(c for c in expected.keys() | answer.keys() if expected.get(c) != answer.get(c))
                self.failures.append(
                    f"{task.name}: the answers of {first} and {name} differ in {count(len(columns), 'column')}: "
                    + "; ".join(f"{c}: {expected.get(c)} and {answer.get(c)}" for c in columns[:3])
                )
        column_bytes = max((outcome.answer_bytes for outcome in outcomes.values()), default=0)
        column_bytes = column_bytes if task.kind in ("read", "write", "write_floats") else 0
        for name, outcome in outcomes.items():
            about = (outcome.stored_bytes, outcome.read_bytes, outcome.peak_bytes)
            self.rows.append(Row(task.name, threads, name, outcome.seconds, column_bytes, *about))


LEGEND = f"""
MiB/s: bytes of the columns in memory, uncompressed. Jagged columns come as Awkward arrays from Tupelo and uproot, as
Arrow from Tupelo in Rust and Parquet, as ends and items from ROOT and HDF5. ROOT's views are direct ones for flat
columns; its bulks read into place. Limits: the codec alone on the same pages, into one buffer; memcpy of the columns;
write(2) of the same pages. Levels of codecs are ROOT's: zstd 5 is zstd's own 10. Read MiB: by system calls, not where a
file is mapped into memory; ROOT's are by its own metrics. An asterisk marks codecs at another level.
Memory is the peak over what is taken at the start. It is measured writing {BATCHES * BATCH_BYTES // MIB} MiB of floats
in batches of {BATCH_BYTES // MIB} MiB (uproot: of a cluster, because each batch becomes one), with {MEMORY_CODEC} into
clusters of {CLUSTER_BYTES // MIB} MiB compressed."""


def say(text: str) -> None:
    """Prints to standard error."""
    print(text, file=sys.stderr, flush=True)


def finish(name: str, lines: list[str], failed: list[str]) -> int:
    """Prints and stores a table and what failed. Returns the exit status."""
    lines = [*lines, *([f"\nFAILED: {failure}" for failure in failed] or ["\nAll answers are equal."])]
    text = "\n".join(lines)
    print(text)
    (DATA / name).write_text(text + "\n")
    say(f"stored as {name} in {DATA}")
    return 1 if failed else 0


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def machine() -> dict[str, Any]:
    """The properties of the machine."""
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
    names = [task.name for task in TASKS]
    parser = argparse.ArgumentParser(
        description="Measure Tupelo beside its rivals.", epilog=f"Rows: {', '.join(names)}"
    )
    parser.add_argument("--events", type=int, metavar="N", help=f"flat events (default: {EVENTS})")
    parser.add_argument(
        "--repeat", type=int, metavar="N", help="measured calls, after one (default: 5; 3 for rows objects*)"
    )
    rows_help = (
        "only these, as read-flat-zstd,write-*; remote* for reading over a network, objects* for object stores, ttree* "
        "for trees, uproot* for uproot with Tupelo's engine"
    )
    parser.add_argument("--rows", default="*", metavar="NAMES", help=rows_help)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS} events, one call: does it run at all?")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="regenerate the data, for example after a change of the generator or of the writer",
    )
    parser.add_argument(
        "--scale", type=int, default=1, metavar="N", help="rows objects*: N times 100 MB of data (default: 1)"
    )
    parser.add_argument("--readme", action="store_true", help="write a table of some tasks into README.md")
    parser.add_argument(
        "--binaries",
        type=Path,
        default=PROJECT / "target/release",
        metavar="DIR",
        help="where tupelo and tupelo-bench are (default: target/release)",
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare with this commit of Tupelo, instead of with rivals"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each version (default: 5)")
    parser.add_argument("--busy", action="store_true", help="with --against: measure on a busy machine too")
    options = parser.parse_args()
    options.events = options.events or (QUICK_EVENTS if options.quick else EVENTS)
    patterns = [pattern.strip() for pattern in options.rows.split(",")]
    options.remote = [pattern for pattern in patterns if pattern.startswith("remote")]
    options.objects = [pattern for pattern in patterns if pattern.startswith("objects")]
    options.trees = [pattern for pattern in patterns if pattern.startswith("ttree")]
    options.carried = [pattern for pattern in patterns if pattern.startswith("uproot")]
    if options.repeat is None:
        options.repeat = 1 if options.quick else 3 if options.objects else 5
    if options.events < SMALL_EVENTS or min(options.repeat, options.rounds, options.scale) < 1:
        parser.error(f"at least {SMALL_EVENTS} events, one repetition, one round and a scale of one")
    kinds = {
        "remote": options.remote,
        "objects": options.objects,
        "ttree": options.trees,
        "uproot": options.carried,
    }
    for kind, alone in kinds.items():
        if alone and (len(alone) < len(patterns) or options.against):
            parser.error(f"{kind} rows are measured alone")
    for pattern in [] if any(kinds.values()) else patterns:
        if not fnmatch.filter(names, pattern):
            parser.error(f"no row is called {pattern}; there are {', '.join(names)}")
    options.tasks = [task for task in TASKS if any(fnmatch.fnmatch(task.name, pattern) for pattern in patterns)]
    options.binaries = options.binaries.resolve()
    return options


def measure(options: argparse.Namespace, tasks: list[Task], where: Path) -> Bench:
    """Runs all tasks one after the other."""
    with tempfile.TemporaryDirectory(prefix="tupelo-bench-", dir=where) as scratch:
        bench = Bench(options, Path(scratch))
        try:
            for threads, task in itertools.product(sorted({1, cores()}), tasks):
                if task.parts(threads):
                    bench.compare(task, threads)
        except KeyboardInterrupt:  # keep the measurements so far
            bench.failures.append("interrupted before all was measured")
    return bench


def text(bench: Bench, tasks: list[Task], remarks: list[str], where: Path) -> tuple[str, dict[str, Any]]:
    """The results as Markdown and for JSON."""
    options, machine_, versions = bench.options, machine(), ", ".join(dict.fromkeys(bench.versions.values()))
    on = f"{machine_['cpu']}, {count(cores(), 'core')}, {machine_['system']}, Python {machine_['python']}."
    parts = [
        f"# Tupelo and its rivals, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{on}\nMedian of {options.repeat} after a warm-up, warm page cache.",
        f"{options.events} flat events, {options.events // 2} jagged; {options.events // 4} written, to {where}.",
        f"Versions: {versions}.",
        LEGEND,
    ]
    for threads in sorted({row.threads for row in bench.rows}):
        rows = [row for row in bench.rows if row.threads == threads]
        head = "One thread on one core" if threads == 1 else f"{threads} threads"
        if any(not row.peak_bytes for row in rows):
            parts.append(f"\n## {head}\n\n{report.table(rows, tasks)}")
        if any(row.peak_bytes for row in rows):
            parts.append(f"\n## Memory: {head[0].lower()}{head[1:]}\n\n{report.memory_table(rows, tasks)}")
    found = report.verdicts(bench.rows, tasks, cores())
    met, measured = (len([one for one in found if one.met in wanted]) for wanted in ((True,), (True, False)))
    parts.append(f"\n## What must be true\n\n{report.targets_table(found)}")
    parts.append(f"\n{met} of {measured} measured targets are met; {len(found) - measured} could not be measured.\n")
    parts += [f"{line}\n" for line in remarks]
    parts += [f"FAILED: {failure}" for failure in bench.failures] or ["All answers are equal."]
    events = {"events": options.events, "repeat": options.repeat}
    more: dict[str, Any] = {"machine": machine_, "options": events, "versions": bench.versions}
    more |= {"remarks": remarks, "failures": bench.failures}
    report.chart(DATA / "results.png", bench.rows, tasks, f"{on} {versions}. {options.events} flat events.")
    return "\n".join(parts), report.as_json(bench.rows, found, more)


def write_readme(bench: Bench, tasks: list[Task]) -> None:
    """Replaces the table in README.md."""
    machine_, path = machine(), PROJECT / "README.md"
    note = f"{machine_['cpu']}, median of {bench.options.repeat}, warm page cache; codec levels as in ROOT."
    content = f"{report.readme_table(bench.rows, tasks)}\n\n{note}"
    path.write_text(report.between_markers(path.read_text(), "bench", content))


def main() -> int:
    options = arguments()
    for binary in ("tupelo", "tupelo-generate", *([] if options.objects else ["tupelo-bench"])):
        if not (options.binaries / binary).exists():
            say(f"{options.binaries / binary} is missing: run make bench, which builds it")
            return 1
    if importlib.util.find_spec("tupelo") is None:
        say("the package tupelo is not in this Python: run make build")
        return 1
    DATA.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        for path in (*DATA.glob("*-*/*.*"), *DATA.glob("*.root")):
            path.unlink()
    tasks, remarks = options.tasks, []
    if options.remote:
        import remote

        return remote.run(options)
    if options.objects:
        import objects

        return objects.run(options)
    if options.trees:
        import trees

        return trees.run(options)
    if options.carried:
        import carried

        return carried.run(options)
    if options.against:
        import against

        return against.run(options)
    if not ATLAS.exists() and any(task.dataset == "atlas" for task in tasks):
        tasks = [task for task in tasks if task.dataset != "atlas"]
        remarks.append(f"open-atlas did not run: {ATLAS.name} is not there")
    where = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else DATA
    bench = measure(options, tasks, where)
    remarks += [f"{task}: {name} did not run: {why}" for (task, name), why in bench.missing.items()]
    if any(row.task == "write-lz4" for row in bench.rows):
        remarks.append("write-lz4: the lz4 of uproot and HDF5 has no levels, so theirs is the fast, larger variant")
    markdown, results = text(bench, tasks, remarks, where)
    print(markdown)
    (DATA / "results.md").write_text(markdown + "\n")
    (DATA / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if options.readme:
        write_readme(bench, tasks)
    say(f"stored as results.md, results.json and results.png in {DATA}")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
