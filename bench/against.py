"""Comparison with an earlier commit of Tupelo: the same tasks on the same files, alternating, with equal answers.

`make bench AGAINST=COMMIT` calls this. The commit is built in a worktree below target/against. In each round either
version does each task in its own process, after a warm-up call; the order of the versions changes from round to round.
The table has the median of each version, and the median over the rounds of their ratio, so that disturbances of a round
affect both. Exit status 1 if the newer version is more than 3 % slower, uses more than 3 % more memory, or gives
different answers.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from .machine import DATA, MEMORY_DISK, PROJECT, cores, say
from .report import amount
from .rivals.bench import Bench
from .rivals.contestants import Job, Outcome
from .tasks import Task

CONTESTANTS = ("Tupelo", "Tupelo (Rust)")
BOUND = 1.03
"""Largest ratio of times or memory that counts as equal."""
IDLE_SECONDS = 2.0
IDLE_SHARE = 0.9
"""Share of the processor time that must be idle before the start."""
AGAINST = PROJECT / "target/against"


@dataclass(frozen=True)
class Version:
    """A build of Tupelo."""

    binaries: Path
    python_path: Path | None
    """Path of its Python package; None for the installed one."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment of processes that use it."""
        return {} if self.python_path is None else {"PYTHONPATH": str(self.python_path)}


@dataclass
class Pair:
    """The measurements of both versions in a task."""

    task: Task
    threads: int
    contestant: str
    before: list[float] = field(default_factory=list)
    """The median of each round: seconds, or bytes where memory counts."""
    after: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Ratio of the newer to the older version."""
        return statistics.median(a / max(b, 1e-9) for a, b in zip(self.after, self.before, strict=True))

    def line(self) -> str:
        """A line of the table."""
        before, after = (amount(self.task, statistics.median(one)) for one in (self.before, self.after))
        verdict = "worse" if self.ratio > BOUND else "better" if self.ratio < 1 / BOUND else ""
        return (
            f"| `{self.task.name}` | {self.contestant} | {self.threads} | {before} | {after} | {self.ratio:.3f} "
            f"| {verdict} |"
        )


def built(commit: str) -> Version:
    """Builds a commit; the build is kept."""
    short = subprocess.run(
        ["git", "rev-parse", "--short=12", f"{commit}^{{commit}}"],
        check=True,
        capture_output=True,
        text=True,
        cwd=PROJECT,
    ).stdout.strip()
    tree, binaries = AGAINST / short, AGAINST / short / "bin"
    package = tree / "python/python"
    if not (binaries / "tupelo-bench").exists():
        say(f"building {short}")
        subprocess.run(["git", "worktree", "prune"], check=True, cwd=PROJECT)
        shutil.rmtree(tree, ignore_errors=True)
        subprocess.run(["git", "worktree", "add", "--force", "--detach", tree, short], check=True, cwd=PROJECT)
        packages = [f"--package={name}" for name in ("tupelo-cli", "tupelo-python", "tupelo-bench")]
        target = AGAINST / "build"
        command = ["cargo", "build", "--release", "--locked", *packages, "--target-dir", target]
        subprocess.run(command, check=True, cwd=tree)
        suffix = "dylib" if sys.platform == "darwin" else "so"
        shutil.copy2(target / f"release/lib_core.{suffix}", package / "tupelo/_core.abi3.so")
        binaries.mkdir()
        for name in ("tupelo", "tupelo-bench"):
            shutil.copy2(target / "release" / name, binaries / name)
    return Version(binaries, package)


def idle_share() -> float:
    """Idle share of all cores over a short time; 1 if unknown."""
    if not (stat := Path("/proc/stat")).exists():
        return 1.0

    def times() -> tuple[int, int]:
        numbers = [int(number) for number in stat.read_text().splitlines()[0].split()[1:9]]
        return numbers[3] + numbers[4], sum(numbers)

    idle_before, all_before = times()
    time.sleep(IDLE_SECONDS)
    idle_after, all_after = times()
    return (idle_after - idle_before) / max(1, all_after - all_before)


def compare(bench: Bench, versions: list[Version], job: Job, pair: Pair, rounds: int) -> bool:
    """Measures both versions alternately; False if one of them does not support the task."""
    for number in range(rounds):
        outcomes: list[Outcome | None] = [None, None]
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            own = replace(job, result=bench.result())
            outcomes[which] = bench.do(own, versions[which].binaries, versions[which].environment)
        before, after = outcomes
        if before is None or after is None or before.missing or after.missing:
            return False
        if before.answer != after.answer:
            bench.failures.append(f"{pair.task.name}: the versions have different answers")
            return False
        for outcome, medians in ((before, pair.before), (after, pair.after)):
            medians.append(statistics.median(outcome.peak_bytes or outcome.seconds))
    return True


def run(options: argparse.Namespace) -> int:
    """Compares the versions and prints the table."""
    earlier = built(options.against)
    if not options.busy and (idle := idle_share()) < IDLE_SHARE:
        say(
            f"the machine is busy: {1 - idle:.0%} of its processor time is in use. "
            "Wait, or measure nevertheless with --busy"
        )
        return 1
    versions = [earlier, Version(options.binaries, None)]
    where = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else DATA
    pairs: list[Pair] = []
    print("| task | contestant | threads | before | after | after ÷ before | |\n|---|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory(prefix="tupelo-against-", dir=where) as scratch:
        bench = Bench(options, Path(scratch))
        for threads, task in itertools.product(sorted({1, cores()}), options.tasks):
            if not task.parts(threads):
                continue
            for job in bench.jobs(task, threads, CONTESTANTS):
                pair = Pair(task, threads, job.contestant)
                if compare(bench, versions, job, pair, options.rounds):
                    print(pair.line(), flush=True)
                    pairs.append(pair)
    for failure in bench.failures:
        print(f"FAILED: {failure}")
    worse = [pair for pair in pairs if pair.ratio > BOUND]
    print(f"\n{len(pairs)} compared with {options.against}, {len(worse)} of them more than {BOUND - 1:.0%} worse")
    return 1 if worse or bench.failures else 0
