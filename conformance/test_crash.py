"""ROOT and uproot read the files of killed writers: the last checkpoint, in every state between two calls.

The states are those of tests/suite/crash.rs, and of scripts that append to files of ROOT and uproot.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import uproot
from panel import BUILD

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
WORK = PROJECT / "target" / "conformance" / "crash"
REAL_DATA = Path(os.environ.get("TUPELO_DATA") or PROJECT.parent / "shared" / "data")
ROOT_FILE = "test_multiple_cluster_groups_rntuple_v1-0-0-0.root"

# Exit status of judges/crash_states.py if the judge cannot be imported.
NO_JUDGE = 3


@pytest.fixture(scope="session")
def states(summary: list[str]) -> list[dict[str, Any]]:
    """Writes the states."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    foreign = WORK / "by_uproot.root"
    with uproot.recreate(foreign) as file:
        file.mkrntuple("old", {"id": numpy.arange(50, dtype=numpy.int64), "x": numpy.arange(50) / 8.0})
    others = [foreign]
    if (REAL_DATA / ROOT_FILE).exists():
        others.append(REAL_DATA / ROOT_FILE)
    else:
        summary.append(f"crash states: {ROOT_FILE} is absent, nothing was added to a file of ROOT's")
    command = [BUILD / "examples" / "crash_states", WORK / "states", *others]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout, f"files that Tupelo cannot add to: {done.stdout}"
    result: list[dict[str, Any]] = json.loads((WORK / "states" / "states.json").read_text())
    assert len(result) > 30
    return result


def report(tool: str, summary: list[str]) -> list[dict[str, Any]]:
    """The results of a judge for all states."""
    folder = WORK / "states"
    command = [sys.executable, "-W", "ignore", str(HERE / "judges" / "crash_states.py"), tool]
    done = subprocess.run(
        [*command, str(folder / "states.json"), str(folder)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode == NO_JUDGE:
        summary.append(f"crash states were not read by {tool}: it cannot be imported")
        pytest.skip(f"{tool} cannot be imported")
    assert done.returncode == 0, f"{tool} ended with status {done.returncode}"
    result: list[dict[str, Any]] = json.loads(done.stdout)
    return result


def judged(states: list[dict[str, Any]], tool: str, summary: list[str]) -> None:
    """Every ntuple of every state has one of its allowed contents."""
    wrong = []
    for state, said in zip(states, report(tool, summary), strict=True):
        place = f"{state['file']} ({state['what']})"
        wrong += [f"{place}: {line}" for line in [said["error"], *said["messages"]] if line]
        if said["error"]:
            continue
        names = set(said["found"]).union(*state["allowed"])
        for name in sorted(names):
            found = said["found"].get(name)
            if all(found != content.get(name) for content in state["allowed"]):
                expected = [content.get(name) for content in state["allowed"]]
                wrong.append(f"{place}: '{name}' is {found}, not {' or '.join(map(str, expected))}")
    assert not wrong, "\n".join(wrong[:20])
    summary.append(f"{tool} reads {len(states)} states of killed writers as the last checkpoint, without a word")


def test_root(states: list[dict[str, Any]], summary: list[str]) -> None:
    """ROOT."""
    judged(states, "root", summary)


def test_uproot(states: list[dict[str, Any]], summary: list[str]) -> None:
    """uproot."""
    judged(states, "uproot", summary)
