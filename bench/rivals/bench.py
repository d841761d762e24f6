"""One run of tasks: their data, their jobs, and the answers of all contestants."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..machine import DATA, JOB_SECONDS, PROJECT, count, say
from ..report import Row
from ..tasks import (
    ALL_26,
    BATCH_BYTES,
    BATCHES,
    CLUSTER_BYTES,
    COPIERS,
    CUT_VALUE,
    EIGHTEEN,
    FLOATS,
    NTUPLES,
    RANDOM_ENTRIES,
    RANGE_ENTRIES,
    STEP_ENTRIES,
    TOUCHED,
    WIDE_COLUMNS,
    Task,
)
from .contestants import Job, Outcome
from .limits import BINARY
from .packages import setting

ATLAS = Path(os.environ.get("TUPELO_DATA") or PROJECT.parent / "shared/data") / "atlas_daod_physlite_ntuple.root"
SMALL_EVENTS = 2 * RANGE_ENTRIES
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
        command = [sys.executable, "-m", "bench.rivals.contestants", str(order)]
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
