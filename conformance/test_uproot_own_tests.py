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
from xml.etree import ElementTree

import pytest
from panel import JUDGES, PROJECT, WORK

VERSION = "5.7.7"
"""The newest version that is known."""
FEWEST_PASSED = 800
"""Minimum number of passing tests if the real files exist."""
LEAST_SERVED = 0.6
"""Part of the arrays that Tupelo decodes."""
MAX_SECONDS = 1800
"""Ends tests that hang; they take two to four minutes of one core."""


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


def run(folder: Path, mode: str, data: str, place: Path, tests: list[str]) -> dict[str, set[str]]:
    """Runs tests, by default all; the reports are in ``place``."""
    python_path = [str(JUDGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    options = ["-c", os.devnull, "--rootdir=.", "--noconftest", "-W", "ignore", "-q", "--tb=line"]
    options += ["-p", "uproot_with_tupelo", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    options += ["-m", "not network and not distributed and not xrootd"]
    options += [f"--basetemp={place / 'run'}", f"--junit-xml={place / 'report.xml'}"]
    place.mkdir()
    environment = {"TUPELO_UPROOT": mode, "TUPELO_UPROOT_REPORT": str(place / "counts.json"), "TUPELO_DATA": data}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(python_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
    )
    assert (place / "report.xml").exists(), done.stdout + done.stderr
    return outcomes(place / "report.xml")


def test_uproot_own_tests(summary: list[str], tmp_path: Path) -> None:
    folder, why = fetched()
    if folder is None:
        say(f"uproot's own tests did not run: {why}", summary)
        pytest.skip(why)
    data = os.environ.get("TUPELO_DATA") or str(PROJECT.parent / "shared" / "data")
    carried = run(folder, "", data, tmp_path / "carried", [])
    # What fails needs the network or packages that are not there, and fails with uproot alone too.
    failed = sorted(name.replace("::", ".py::", 1) for name in carried["failed"])
    lost = run(folder, "off", data, tmp_path / "alone", failed)["passed"] if failed else set()
    assert not lost, f"they pass without Tupelo: {sorted(lost)}"
    counts = json.loads((tmp_path / "carried" / "counts.json").read_text())
    served, passed = counts["served"], sum(counts["passed"].values())
    if Path(data).is_dir():
        assert len(carried["passed"]) >= FEWEST_PASSED
        assert served >= LEAST_SERVED * (served + passed), counts["passed"]
    say(
        f"{len(carried['passed'])} of uproot {VERSION}'s own tests pass with Tupelo's engine, as many as without it; "
        f"it decodes {served} of {served + passed} arrays; {len(carried['skipped'])} tests are skipped, which need "
        f"packages or some of {len(counts['missing'])} files that are not there",
        summary,
    )
