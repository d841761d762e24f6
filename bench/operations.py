"""Operations on files: merging and slimming beside `cat` and `hadd`, comparing beside reading, single entries.

`make bench ROWS=operations` calls this; `ROWS=operations-merge*` does some rows. The answers are compared: what is
merged has the values of its parts. Exit status 1 if they differ or a contestant fails, not if a target is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .machine import DATA, JOB_SECONDS, MEMORY_DISK, cores, finish, machine
from .turns import Rows, run_program

FILES = 8
"""Inputs of the merge."""
MANY_FILES = 1000
"""Inputs of the merge whose memory and descriptors are measured."""
MANY_FILES_LIMITS = (256 << 20, 10)
"""Its memory in bytes, and open files besides those of any program."""
COMMON_FILES = 16
SLIM = "H*"
"""Fields of the simulated decays that slimming keeps, nearly all of them."""
TAKEN, TAKES = 100, 31
"""Random entries of a call, and calls of `take`, each with other entries."""
TAKE_SIZES = {"as written": [], "for single entries": ["--page-bytes", "16KiB", "--compression", "lz4:4"]}
"""How the events are written that `take` reads: with the options that `tupelo tune --takes` recommends, too."""
ALL_THREADS, ONE_THREAD = "Tupelo", "Tupelo, one thread"
CAT_FACTOR, HADD_FACTOR, DIFF_FACTOR = 0.9, 3.0, 0.5

MERGER = """
import sys, ROOT
merger = ROOT.TFileMerger(False)
merger.SetPrintLevel(0)
merger.OutputFile(sys.argv[1], True, 505)
for name in sys.argv[2:]:
    merger.AddFile(name)
begin = __import__("time").perf_counter()
assert merger.Merge()
print(__import__("time").perf_counter() - begin)
"""


class Operations(Rows):
    """The rows, and how they call the command."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        super().__init__("operations", options)
        self.scratch = scratch
        self.tupelo = str(options.binaries / "tupelo")

    def run(self, *arguments: str, threads: int = 1) -> None:
        """One call of the command."""
        command = [self.tupelo, "--quiet", "--threads", str(threads), *arguments]
        run_program(command, stdout=subprocess.DEVNULL)

    def compare(
        self, row: str, size: int, contestants: dict[str, Callable[[], float | None]], outputs: Sequence[Path] = ()
    ) -> dict[str, float]:
        """Adds a line for each contestant. Its time is the one that it returns, if any, or that of the call."""
        found, _ = self.turns(row, contestants, outputs, lambda own, seconds: seconds if own is None else own)
        for name, seconds in found.items():
            self.lines.append(f"| {row} | {name} | {seconds:.3f} | {size / seconds / (1 << 20):.0f} |")
        return found


def parts(rows: Operations, events: int) -> list[Path]:
    """The inputs: parts of a NanoAOD-like ntuple."""
    one = max(1, events // FILES)
    paths = [DATA / f"operations-{events}-{number}.root" for number in range(FILES)]
    return [rows.generated(path, "nanoaod", one, "--seed", str(number)) for number, path in enumerate(paths)]


def concatenate(inputs: list[Path], out: Path) -> None:
    """What `cat` does, by its own program."""
    with open(out, "wb") as target:
        run_program(["cat", *map(str, inputs)], stdout=target)


def hadd(inputs: list[Path], out: Path) -> None:
    """ROOT's program, with the codec of the first input, so that it copies baskets and pages as they are."""
    root = importlib.util.find_spec("ROOT")
    inside = root and root.origin and Path(root.origin).with_name("bin") / "hadd"
    program = inside if inside and inside.exists() else "hadd"
    command = [str(program), "-v", "0", "-f", "-ff", str(out), *map(str, inputs)]
    run_program(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def started_merger(inputs: list[Path], out: Path) -> float:
    """`TFileMerger`, which `hadd` calls, without the time that ROOT takes to start."""
    command = [sys.executable, "-W", "ignore", "-c", MERGER, str(out), *map(str, inputs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=JOB_SECONDS)
    return float(done.stdout.split()[-1])


def trees(rows: Operations, inputs: list[Path]) -> None:
    """Merging trees with the same values."""
    exported = []
    for path in inputs:
        tree = path.with_name(f"{path.stem}-tree.root")
        if not tree.exists() or rows.options.fresh:
            # What has no branch is named and left out.
            what = ["export", str(path), "-o", str(tree), "--force", "--compression", "zstd:5", "--skip-unreadable"]
            rows.run(*what, threads=0)
        exported.append(tree)
    merge(rows, exported, "operations-trees")


def merge(rows: Operations, inputs: list[Path], row: str = "operations-merge") -> None:
    """Merging all files."""
    size = sum(path.stat().st_size for path in inputs)
    ours, theirs, plain = (rows.scratch / f"{name}.root" for name in ("ours", "hadd", "cat"))
    names = list(map(str, inputs))
    times = rows.compare(
        row,
        size,
        {
            "cat": lambda: concatenate(inputs, plain),
            ALL_THREADS: lambda: rows.run("merge", str(ours), *names, "--force", threads=0),
            ONE_THREAD: lambda: rows.run("merge", str(ours), *names, "--force"),
            "hadd": lambda: hadd(inputs, theirs),
            "ROOT's merger, started": lambda: started_merger(inputs, theirs),
        },
        [ours, theirs, plain],
    )
    for own in (ALL_THREADS, ONE_THREAD):
        rows.target(row, times, own, "cat", CAT_FACTOR)
        rows.target(row, times, own, "hadd", HADD_FACTOR)
    rows.run("merge", str(ours), *names, "--force")
    if "hadd" in times:
        hadd(inputs, theirs)
        rows.run("diff", str(ours), str(theirs), threads=0)
    for out in (ours, theirs, plain):
        out.unlink(missing_ok=True)


def decays(rows: Operations, name: str, *sizes: str) -> Path:
    """Simulated decays with 26 flat columns."""
    path = DATA / f"operations-{rows.options.events}-{name}.root"
    return rows.generated(path, "b2hhh", 4 * rows.options.events, *sizes)


def take(rows: Operations) -> None:
    """Single entries of all columns, beside Lance and Vortex: open files, warm caches, equal values."""
    plain = decays(rows, "take-plain", "--compression", "none")
    paths = {f"Tupelo, {name}": decays(rows, f"take-{len(sizes)}", *sizes) for name, sizes in TAKE_SIZES.items()}
    script = str(Path(__file__).with_name("taking.py"))
    command = [sys.executable, script, str(TAKEN), str(TAKES), str(plain), str(rows.scratch)]
    done = subprocess.run(
        [*command, json.dumps({name: str(path) for name, path in paths.items()})],
        check=False,
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
    )
    if done.returncode:
        rows.failed.append(f"operations-take: {done.stderr.strip()[-400:]}")
        return
    found = json.loads(done.stdout)
    for name, why in found["missing"].items():
        rows.lines.append(f"| operations-take | {name} | | {why} |")
    times = found["seconds"]
    for name, seconds in times.items():
        rows.lines.append(f"| operations-take | {name} | {seconds:.4f} | {TAKEN / seconds:.0f} entries/s |")
    own = f"Tupelo, {list(TAKE_SIZES)[-1]}"
    for rival in set(times) - set(paths):
        rows.target("operations-take", times, own, rival, 1.0)


def slim(rows: Operations, _: list[Path]) -> None:
    """Copying most fields of one file."""
    source, out, plain = str(decays(rows, "slim")), rows.scratch / "slim.root", rows.scratch / "cat.root"
    rows.run("copy", source, "-o", str(out), "--force", "--fields", SLIM)
    size = out.stat().st_size
    kept = rows.scratch / "kept.root"
    shutil.copy(out, kept)
    times = rows.compare(
        "operations-slim",
        size,
        {
            "cat of the kept bytes": lambda: concatenate([kept], plain),
            ALL_THREADS: lambda: rows.run("copy", source, "-o", str(out), "--force", "--fields", SLIM, threads=0),
            ONE_THREAD: lambda: rows.run("copy", source, "-o", str(out), "--force", "--fields", SLIM),
        },
        [out, plain],
    )
    for own in (ALL_THREADS, ONE_THREAD):
        rows.target("operations-slim", times, own, "cat of the kept bytes", CAT_FACTOR)
    rows.run("copy", source, "-o", str(out), "--force", "--fields", SLIM)
    rows.run("diff", source, str(out), "--fields", SLIM, threads=0)


def difference(rows: Operations, inputs: list[Path]) -> None:
    """Comparing a file with a copy in another codec, beside reading both."""
    source, copy = str(inputs[0]), str(rows.scratch / "other.root")
    rows.run("copy", source, "-o", copy, "--force", "--compression", "lz4:4", threads=0)

    def read_both() -> None:
        for path in (source, copy):
            rows.run("dump", path, "--format", "arrow", "-o", os.devnull)

    size = 2 * inputs[0].stat().st_size
    times = rows.compare(
        "operations-diff", size, {"reading both": read_both, ONE_THREAD: lambda: rows.run("diff", source, copy)}
    )
    rows.target("operations-diff", times, ONE_THREAD, "reading both", DIFF_FACTOR)


def many(rows: Operations) -> None:
    """Memory and open files of a merge of many files."""
    small = rows.generated(rows.scratch / "small.root", "b2hhh", 8000, "--compression", "none")
    folder = rows.scratch / "many"
    folder.mkdir()
    for number in range(MANY_FILES):
        os.link(small, folder / f"{number:04}.root")
    memory, files = MANY_FILES_LIMITS

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files + COMMON_FILES, files + COMMON_FILES))

    command = [rows.tupelo, "--quiet", "--threads", "1", "merge", str(rows.scratch / "all.root"), f"{folder}/*.root"]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "--force"], preexec_fn=limit)
    _, status, usage = os.wait4(process.pid, 0)
    seconds, peak = time.perf_counter() - begin, usage.ru_maxrss * 1024
    if status:
        rows.failed.append(f"operations-many: status {status}")
        return
    size = MANY_FILES * small.stat().st_size
    rows.lines.append(f"| operations-many | {ONE_THREAD} | {seconds:.3f} | {size / seconds / (1 << 20):.0f} |")
    met = "met" if peak <= memory else "missed"
    rows.lines.append(
        f"| operations-many | peak memory in MiB | {peak / (1 << 20):.0f} (wanted {memory >> 20}) | {met} |"
    )


def run(options: argparse.Namespace) -> int:
    """Runs the rows."""
    where = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else DATA
    with tempfile.TemporaryDirectory(prefix="tupelo-bench-", dir=where) as scratch:
        rows = Operations(options, Path(scratch))
        inputs = parts(rows, 2 * options.events)
        for name, row in (("merge", merge), ("trees", trees), ("slim", slim), ("diff", difference)):
            if rows.wanted(f"operations-{name}"):
                row(rows, inputs)
        if rows.wanted("operations-many"):
            many(rows)
        if rows.wanted("operations-take"):
            take(rows)
    about = machine()
    head = [
        f"# Operations on files, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{about['cpu']}, {cores()} cores; median of {options.repeat} after a warm-up, warm page cache; "
        f"{2 * options.events} events in {FILES} files; outputs in {where}.\n",
        "| row | contestant | seconds | MiB/s |\n|---|---|---|---|",
    ]
    (DATA / "operations.json").write_text(json.dumps({"machine": about, "lines": rows.lines}, indent=1) + "\n")
    return finish("operations.md", [*head, *rows.lines], rows.failed)
