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
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import report
from .machine import DATA, MEMORY_DISK, PROJECT, cores, count, machine, say
from .rivals.bench import ATLAS, SMALL_EVENTS, Bench
from .rivals.packages import MEMORY_CODEC
from .tasks import (
    BATCH_BYTES,
    BATCHES,
    CLUSTER_BYTES,
    MIB,
    TASKS,
    Task,
)

EVENTS = 1_000_000
"""Flat events by default; there are half as many with jagged columns, and a quarter is written."""
QUICK_EVENTS = 100_000


LEGEND = f"""
MiB/s: bytes of the columns in memory, uncompressed. Jagged columns come as Awkward arrays from Tupelo and uproot, as
Arrow from Tupelo in Rust and Parquet, as ends and items from ROOT and HDF5. ROOT's views are direct ones for flat
columns; its bulks read into place. Limits: the codec alone on the same pages, into one buffer; memcpy of the columns;
write(2) of the same pages. Levels of codecs are ROOT's: zstd 5 is zstd's own 10. Read MiB: by system calls, not where a
file is mapped into memory; ROOT's are by its own metrics. An asterisk marks codecs at another level.
Memory is the peak over what is taken at the start. It is measured writing {BATCHES * BATCH_BYTES // MIB} MiB of floats
in batches of {BATCH_BYTES // MIB} MiB (uproot: of a cluster, because each batch becomes one), with {MEMORY_CODEC} into
clusters of {CLUSTER_BYTES // MIB} MiB compressed."""


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
        "for trees, operations* for merging, slimming and comparing, aux* for ATLAS's auxiliary stores, query* "
        "for SQL, histograms and inspect, uproot* for uproot with Tupelo's engine"
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
    options.operations = [pattern for pattern in patterns if pattern.startswith("operations")]
    options.aux = [pattern for pattern in patterns if pattern.startswith("aux")]
    options.query = [pattern for pattern in patterns if pattern.startswith("query")]
    options.carried = [pattern for pattern in patterns if pattern.startswith("uproot")]
    if options.repeat is None:
        options.repeat = 1 if options.quick else 3 if options.objects else 5
    if options.events < SMALL_EVENTS or min(options.repeat, options.rounds, options.scale) < 1:
        parser.error(f"at least {SMALL_EVENTS} events, one repetition, one round and a scale of one")
    kinds = {
        "remote": options.remote,
        "objects": options.objects,
        "ttree": options.trees,
        "operations": options.operations,
        "aux": options.aux,
        "query": options.query,
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
        from .remote import rows as remote

        return remote.run(options)
    if options.objects:
        from .objects import rows as objects

        return objects.run(options)
    if options.trees:
        from . import trees

        return trees.run(options)
    if options.aux:
        from . import auxiliary

        return auxiliary.run(options)
    if options.query:
        from . import query

        return query.run(options)
    if options.operations:
        from . import operations

        return operations.run(options)
    if options.carried:
        from . import carried

        return carried.run(options)
    if options.against:
        from . import against

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
