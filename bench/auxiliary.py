"""ATLAS's auxiliary stores entry by entry: Tupelo beside ROOT's views of ntuples and branches of trees.

`make bench ROWS=aux` calls this. The events are those of a real DAOD_PHYSLITE file, resampled; TUPELO_PHYSLITE is its
path. All contestants load the same variables of the same entries, and what they load is equal. Exit status 1 if it
differs or a contestant fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np

import tupelo
import tupelo.xaod

from .machine import DATA, JOB_SECONDS, PROJECT, cores, finish, machine
from .rivals.root_rival import load_root
from .turns import Rows

PHYSLITE = Path(
    os.environ.get("TUPELO_PHYSLITE", PROJECT.parent / "shared" / "data" / "atlas_daod_physlite_ntuple.root")
)
TYPES = ["float", "std::int32_t", "std::uint32_t", "std::uint8_t"]
"""Elements of the variables that all contestants load."""
ROWS = {"aux-order": {}, "aux-random": {"selectEntriesRandomly": True, "nEntries": 8, "nWarmupEntries": 8}}
"""Options of the rows: all entries in order, and eight that the published seed draws."""
ORDER_FACTOR, RANDOM_FACTOR, TREE_FACTOR = 5.0, 10.0, 2.0


def made(rows: Rows) -> tuple[Path, Path]:
    """The ntuple and the tree of the same events."""
    options = rows.options
    events = max(1000, options.events // 50)
    ntuple, tree = (DATA / f"aux-{events}-{kind}.root" for kind in ("ntuple", "tree"))
    rows.generated(ntuple, "physlite", events, "--from", str(PHYSLITE))
    if not tree.exists() or options.fresh:
        export = [str(options.binaries / "tupelo"), "--quiet", "export", f"{ntuple}:EventData"]
        command = [*export, "-o", f"{tree}:CollectionTree", "--jagged", "vector", "--force"]
        subprocess.run(command, check=True, timeout=JOB_SECONDS)
    return ntuple, tree


def common_variables(ntuple: Path) -> list[tuple[str, str, str]]:
    """Store and variable, field, and type of an element, of dynamic variables of numbers."""
    event = tupelo.xaod.open(f"{ntuple}:EventData")
    found = []
    for container in (event[name] for name in event):
        for variable in container.variables.values():
            is_number = not container.is_object and not variable.is_static and variable.typename in TYPES
            if is_number and not container.name.startswith("AnalysisTrigMatch"):
                found.append((f"{container.name}.{variable.name}", variable.path, variable.typename))
    return found


def ours(options: argparse.Namespace, row: dict[str, Any], paths: tuple[Path, Path], names: list[str]) -> Any:
    """The report of the command."""
    config = {"ntupleFilepath": f"{paths[0]}:EventData", "treeFilepath": f"{paths[1]}:CollectionTree"}
    config |= {"nRuns": options.repeat + 1, "variableNames": names, **row}
    file = DATA / "aux.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items()))
    command = [str(options.binaries / "tupelo"), "auxbench", str(file), "--json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=JOB_SECONDS)
    return json.loads(done.stdout)


def theirs(
    root: Any, paths: tuple[Path, Path], variables: list[tuple[str, str, str]], entries: dict[str, list[int]], runs: int
) -> dict[str, tuple[float, float, int, int]]:
    """Of ROOT's contestants: median seconds, slowest load in seconds, number of values and sum of their bits."""
    strings, numbers = root.std.vector["std::string"], root.std.vector["std::uint64_t"]
    types = strings([kind for _, _, kind in variables])
    warmup, measured = numbers(entries["warmup"]), numbers(entries["measured"])
    found = {}
    for name, load, path, ntuple, dot in [
        ("ROOT RNTupleView", root.bench.views, paths[0], "EventData", ":"),
        ("ROOT TBranch::GetEntry", root.bench.branches, paths[1], "CollectionTree", "."),
    ]:
        fields = strings([field.replace("AuxDyn:", f"AuxDyn{dot}") for _, field, _ in variables])
        compared = load(str(path), ntuple, fields, types, warmup, measured, True)
        times = [np.array(load(str(path), ntuple, fields, types, warmup, measured, False).times) for _ in range(runs)]
        totals = [float(own.sum()) / 1e9 for own in times]
        worst = max(float(own.max()) / 1e9 for own in times)
        found[name] = (statistics.median(totals), worst, int(compared.values), int(compared.bits))
    return found


def expected(ntuple: Path, variables: list[tuple[str, str, str]], entries: list[int]) -> tuple[int, int]:
    """The number of values and the sum of their bits, from columns that are read at once."""
    events = tupelo.open(f"{ntuple}:EventData")
    count = bits = 0
    for _, field, _ in variables:
        lists = events[field].array(library="ak")[entries]
        values = ak.to_numpy(ak.flatten(lists))
        count += len(values)
        bits += int(values.view(f"u{values.dtype.itemsize}").astype(np.uint64).sum(dtype=np.uint64))
    return count, bits % (1 << 64)


def run(options: argparse.Namespace) -> int:
    """Runs the rows."""
    rows = Rows("aux", options, columns=6)
    lines, failed = rows.lines, rows.failed
    if not PHYSLITE.exists():
        return finish("aux.md", [f"{PHYSLITE} is missing: TUPELO_PHYSLITE is the path of a DAOD_PHYSLITE file"], [])
    paths = made(rows)
    variables = common_variables(paths[0])
    names = [name for name, _, _ in variables]
    root = None
    try:
        root = load_root(1, f'#include "{Path(__file__).with_name("auxiliary.hpp")}"')
    except (ImportError, RuntimeError) as error:
        lines.append(f"| | ROOT | {error} | | | |")
    for row, config in ROWS.items():
        report = ours(options, config, paths, names)
        if differing := report["compared"]["differing"]:
            failed.append(f"{row}: different values of {differing[:3]}")
        entries = report["entries"]
        count, bits = expected(paths[0], variables, entries["measured"])
        times: dict[str, float] = {}
        worst: dict[str, float] = {}
        for summary in report["summaries"]:
            name = f"Tupelo {summary['store']}"
            times[name] = summary["median"]["median"]
            worst[name] = summary["slow"]["loads"][0]["nanoseconds"] / 1e9
            if summary["values"] != count:
                failed.append(f"{row}: {name} loads {summary['values']} values, expected {count}")
        if root is not None:
            for name, found in theirs(root, paths, variables, entries, options.repeat).items():
                times[name], worst[name], *loaded = found
                if loaded != [count, bits]:
                    failed.append(f"{row}: {name} loads {loaded[0]} values, expected {count}, or others")
        loads = len(entries["measured"])
        for name, median in times.items():
            own = f"{median:.4f} | {median / loads * 1e6:.2f} | {worst[name] * 1e6:.0f} | {count / median / 1e6:.1f}"
            lines.append(f"| {row} | {name} | {own} |")
        factor = ORDER_FACTOR if row == "aux-order" else RANDOM_FACTOR
        rows.target(row, times, "Tupelo RAuxStore", "ROOT RNTupleView", factor)
        rows.target(row, times, "Tupelo TAuxStore", "ROOT TBranch::GetEntry", factor)
        rows.target(row, times, "Tupelo RAuxStore", "Tupelo TAuxStore", TREE_FACTOR)
    head = [
        f"# Auxiliary stores, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{machine()['cpu']}, {cores()} cores; {len(variables)} variables of {PHYSLITE.name}, resampled; median of "
        f"{options.repeat} runs, warm page cache.\n",
        "| row | contestant | seconds | µs per load | slowest in µs | million values/s |\n|---|---|---|---|---|---|",
    ]
    return finish("aux.md", [*head, *lines], failed)
