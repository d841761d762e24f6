"""uproot with Tupelo's engine beside uproot alone, with equal answers: `make bench ROWS=uproot`.

The data are a tree with the branches of a NanoAOD, 200 MB before compression, and the jagged RNTuple of other rows.
Each side runs in its own process with one thread: a call that is not measured, then several. Exit status 1 if answers
differ, not if a target is missed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .machine import DATA, cores, finish, machine, say

FOLDER = DATA / "carried-data"
CODECS = {"zstd": "ZSTD(5)", "lz4": "LZ4(4)", "zlib": "ZLIB(1)"}
FLAGS, NUMBERS, COLLECTIONS, MEMBERS = 500, 100, 40, 8
"""Branches of the tree: 960 with the counters."""
TREE_EVENTS = 50_000
EXTENDS, EXTEND_ENTRIES = 300, 20
STEP_ENTRIES, RANGES, RANGE_ENTRIES = 1000, 100, 10
JOB_SECONDS = 1200

TARGETS = {"tree": 4.0, "jagged": 5.0, "ranges": 1.0, "iterate": 1.0, "extend": 1.0}
"""How many times as fast the engine is wanted to be, by the word after ``uproot-``."""


def tree_columns(events: int) -> dict[str, Any]:
    import awkward as ak

    random = np.random.default_rng(1)
    columns: dict[str, Any] = {f"HLT_{n}": random.random(events) < 0.1 for n in range(FLAGS)}
    columns |= {f"MET_{n}": random.exponential(30, events).astype("f4") for n in range(NUMBERS)}
    for number in range(COLLECTIONS):
        counts = random.poisson(1.5, events)
        members = [random.normal(0, 30, counts.sum()).astype("f4") for _ in range(MEMBERS)]
        # Precision as in NanoAOD, which keeps 10 bits of the mantissa.
        rounded = [(member.view("u4") & np.uint32(0xFFFFE000)).view("f4") for member in members]
        columns[f"Jet{number}"] = ak.zip({f"m{n}": ak.unflatten(member, counts) for n, member in enumerate(rounded)})
    return columns


def prepare(options: argparse.Namespace) -> None:
    """Writes the files that are missing."""
    import uproot

    FOLDER.mkdir(parents=True, exist_ok=True)
    events = min(TREE_EVENTS, options.events)
    for codec, setting in CODECS.items():
        if options.fresh or not (FOLDER / f"tree-{events}-{codec}.root").exists():
            columns = tree_columns(events)
            path, part = FOLDER / f"tree-{events}-{codec}.root", events // 5
            compression = eval(setting, vars(uproot))
            with uproot.recreate(path, compression=compression) as file:
                first = {name: column[:part] for name, column in columns.items()}
                tree = file.mktree(
                    "Events", {name: getattr(one, "dtype", None) or one.type.content for name, one in first.items()}
                )
                for start in range(0, events, part):
                    tree.extend({name: column[start : start + part] for name, column in columns.items()})
    path = FOLDER / f"jagged-{options.events}.root"
    if options.fresh or not path.exists():
        command = [options.binaries / "tupelo-generate", "nanoaod", "--quiet", "--events", str(options.events), path]
        subprocess.run(command, check=True)


def task(name: str, path: str) -> Callable[[], Any]:
    """What is measured: it returns arrays."""
    if os.environ["TUPELO_UPROOT"] == "off":
        import uproot
    else:
        import tupelo
        import tupelo.uproot as uproot

        tupelo.set_threads(1)
    kind = name.split("-")[1]
    if kind in ("tree", "jagged"):
        return lambda: uproot.open(f"{path}:Events", array_cache=None).arrays()
    if kind == "ranges":
        source = uproot.open(f"{path}:Events", array_cache=None)
        names = "/(Jet1_|Muon).*/"
        starts = np.linspace(0, source.num_entries - RANGE_ENTRIES, RANGES).astype(int).tolist()
        return lambda: [source.arrays(filter_name=names, entry_start=n, entry_stop=n + RANGE_ENTRIES) for n in starts]
    if kind == "iterate":
        columns = [f"MET_{n}" for n in range(20)]
        return lambda: list(uproot.open(f"{path}:Events").iterate(columns, step_size=STEP_ENTRIES))
    random = np.random.default_rng(2)
    columns = {f"x{n}": random.normal(size=EXTENDS * EXTEND_ENTRIES) for n in range(10)}

    def extend() -> Any:
        with uproot.recreate(path) as file:
            ntuple = file.mkrntuple("Events", {name: column.dtype for name, column in columns.items()})
            for n in range(0, EXTENDS * EXTEND_ENTRIES, EXTEND_ENTRIES):
                ntuple.extend({name: column[n : n + EXTEND_ENTRIES] for name, column in columns.items()})
        return uproot.open(f"{path}:Events").arrays()

    return extend


def answer(values: Any) -> dict[str, float]:
    """The sums that both sides must agree on."""
    import awkward as ak

    parts = values if isinstance(values, list) else [values]
    return {name: sum(float(ak.sum(part[name], axis=None)) for part in parts) for name in parts[0].fields}


def work() -> None:
    """Runs one side in a separate process."""
    job = json.loads(sys.argv[2])
    call, times, values = task(job["name"], job["path"]), [], None
    for _ in range(job["repeat"] + 1):
        values = None
        begin = time.perf_counter(), time.process_time()
        values = call()
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    wall, processor = (statistics.median(time[n] for time in times[1:]) for n in (0, 1))
    print(json.dumps({"seconds": wall, "processor": processor, "answer": answer(values)}))


def run(options: argparse.Namespace) -> int:
    prepare(options)
    events = min(TREE_EVENTS, options.events)
    rows = {f"uproot-tree-{codec}": FOLDER / f"tree-{events}-{codec}.root" for codec in CODECS}
    rows |= {"uproot-jagged-rntuple": FOLDER / f"jagged-{options.events}.root"}
    rows |= {"uproot-ranges-rntuple": rows["uproot-jagged-rntuple"], "uproot-ranges-tree": rows["uproot-tree-zlib"]}
    rows |= {"uproot-iterate-tree": rows["uproot-tree-zlib"], "uproot-extend-rntuple": FOLDER / "extended.root"}
    lines = [
        f"# uproot with Tupelo's engine, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{machine()['cpu']}, {cores()} cores. Median of {options.repeat}; one thread; warm page cache.\n",
        "| row | uproot, s | with Tupelo, s | faster by | of processor time |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    failed = []
    for name, path in rows.items():
        if not any(
            fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"{pattern}*") for pattern in options.carried
        ):
            continue
        found = {}
        for mode in "off", "strict":
            say(f"{name}: {'uproot' if mode == 'off' else 'tupelo.uproot'}")
            job = {"name": name, "path": str(path), "repeat": options.repeat}
            environment = os.environ | {"TUPELO_UPROOT": mode, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "bench.carried", "--job", json.dumps(job)],
                capture_output=True,
                text=True,
                timeout=JOB_SECONDS,
                env=environment,
                check=False,
            )
            if done.returncode != 0:
                failed.append(f"{name}: {mode}: {done.stderr.strip().splitlines()[-1:]}")
                break
            found[mode] = json.loads(done.stdout.strip().splitlines()[-1])
        if len(found) < 2:
            continue
        theirs, ours = found["off"], found["strict"]
        if ours["answer"] != theirs["answer"]:
            failed.append(f"{name}: other answers")
        wanted = f" (wanted {TARGETS[name.split('-')[1]]:.2g})"
        wall, processor = (theirs[key] / ours[key] for key in ("seconds", "processor"))
        times = f"{theirs['seconds']:.3f} | {ours['seconds']:.3f}"
        lines.append(f"| {name} | {times} | {wall:.2f}{wanted} | {processor:.2f} |")
    return finish("carried.md", lines, failed)


if __name__ == "__main__" and sys.argv[1:2] == ["--job"]:
    work()
