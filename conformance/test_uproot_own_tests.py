"""uproot's own tests, run with Tupelo's engine under uproot.

They are fetched with uproot's source and are not part of the project. What passes with uproot alone passes with the
engine too, and Tupelo decodes most of the arrays that they read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from panel import JUDGES, PROJECT, WORK

VERSION = "5.7.7"
"""The newest version that is known."""
FEWEST_PASSED = 800
"""Minimum number of passing tests if the real files exist."""
LEAST_SERVED = 0.6
"""Part of the arrays that Tupelo decodes."""


def say(line: str, summary: list[str]) -> None:
    """Reports the coverage at the end of the run."""
    summary.append(line)
    if folder := os.environ.get("TUPELO_SUMMARY"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "uproot-own-tests.txt").write_text(line + "\n")


def fetched() -> tuple[Path | None, str]:
    """The directory of uproot's tests, or the reason if they are missing."""
    folder = WORK / f"uproot-{VERSION}"
    if not (folder / "tests").is_dir():
        WORK.mkdir(parents=True, exist_ok=True)
        command = [
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "uproot",
            f"uproot=={VERSION}",
            "--dest",
            str(WORK),
        ]
        done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, (done.stderr.strip().splitlines() or ["pip ends without a word"])[-1]
        # tarfile's filters came with Python 3.11.4.
        shutil.unpack_archive(WORK / f"uproot-{VERSION}.tar.gz", WORK)
    return folder / "tests", ""


def outcomes(report: Path) -> dict[str, set[str]]:
    """Names of the tests by outcome."""
    found: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in ElementTree.parse(report).iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[outcome].add(name)
    return found


def begin(folder: Path, mode: str, data: str, place: Path) -> Any:
    """Begins a run; its reports are in ``place``."""
    python_path = [str(JUDGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    options = ["-c", os.devnull, "--rootdir=.", "--noconftest", "-W", "ignore", "-q", "--tb=line"]
    options += ["-p", "uproot_with_tupelo", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    options += ["-m", "not network and not distributed and not xrootd"]
    options += [f"--basetemp={place / 'run'}", f"--junit-xml={place / 'report.xml'}"]
    place.mkdir()
    environment = {"TUPELO_UPROOT": mode, "TUPELO_UPROOT_REPORT": str(place / "counts.json"), "TUPELO_DATA": data}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(python_path)},
        stdout=(place / "output.txt").open("w"),
        stderr=subprocess.STDOUT,
    )


def test_uproot_own_tests(summary: list[str], tmp_path: Path) -> None:
    folder, why = fetched()
    if folder is None:
        say(f"uproot's own tests did not run: {why}", summary)
        pytest.skip(why)
    data = os.environ.get("TUPELO_DATA") or str(PROJECT.parent / "shared" / "data")
    places = tmp_path / "alone", tmp_path / "carried"
    runs = [begin(folder, mode, data, place) for mode, place in zip(("off", ""), places, strict=True)]
    for run, place in zip(runs, places, strict=True):
        run.wait()
        assert (place / "report.xml").exists(), (place / "output.txt").read_text()
    alone, carried = (outcomes(place / "report.xml") for place in places)
    lost = alone["passed"] - carried["passed"]
    assert not lost, f"{sorted(lost)}\n{(places[1] / 'output.txt').read_text()}"
    counts = json.loads((places[1] / "counts.json").read_text())
    served, passed = counts["served"], sum(counts["passed"].values())
    if Path(data).is_dir():
        assert len(carried["passed"]) >= FEWEST_PASSED
        assert served >= LEAST_SERVED * (served + passed), counts["passed"]
    say(
        f"{len(carried['passed'])} of uproot {VERSION}'s own tests pass with Tupelo's engine, as many as without it; "
        f"it decodes {served} of {served + passed} arrays; {len(carried['skipped'])} tests are skipped, which need "
        f"{len(counts['missing'])} files or packages that are not there",
        summary,
    )
