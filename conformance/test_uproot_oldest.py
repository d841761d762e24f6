"""The oldest version of uproot that the engine supports: its tests run on it too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from panel import PROJECT, WORK

VERSION = "5.6.0"
FEWEST_PASSED = 15
"""Minimum number of passing tests."""
TESTS = PROJECT / "python" / "tests"


def say(line: str, summary: list[str]) -> None:
    """Reports the coverage at the end of the run."""
    summary.append(line)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "uproot-oldest.txt").write_text(line + "\n")


def installed() -> tuple[Path, str]:
    """The folder with this version of uproot, and the reason if it is missing."""
    folder = WORK / f"uproot-{VERSION}-installed"
    if not (folder / "uproot").is_dir():
        command = ["install", "--quiet", "--no-deps", "--target", str(folder), f"uproot=={VERSION}"]
        done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return folder, (done.stderr.strip().splitlines() or ["pip ends without a word"])[-1]
    return folder, ""


def test_the_engine_runs_on_the_oldest_uproot(summary: list[str], tmp_path: Path) -> None:
    folder, why = installed()
    if why:
        say(f"the tests of tupelo.uproot did not run on uproot {VERSION}: {why}", summary)
        pytest.skip(why)
    python_path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    # Without the real files, which take minutes and are read with the newest version.
    environment = {**os.environ, "PYTHONPATH": python_path, "TUPELO_DATA": str(tmp_path)}
    options = ["-q", "-c", str(PROJECT / "python" / "pyproject.toml"), f"--rootdir={PROJECT}", "-p", "no:cacheprovider"]
    # It has no ntuples that the engine serves, which is said at the import.
    options += ["-W", f"ignore:uproot {VERSION}"]
    options += [f"--basetemp={tmp_path / 'run'}", str(TESTS / "test_uproot_engine.py")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-10000:] + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    passed = 0 if found is None else int(found[1])
    assert passed >= FEWEST_PASSED
    say(f"{passed} tests of tupelo.uproot pass on uproot {VERSION}, the oldest that it supports", summary)
