"""Paths of the judges, and the summary lines of a run."""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "judges"), str(HERE / "root_writers")]
# Servers and programs of the tests of the package.
sys.path.append(str(HERE.parent / "python" / "tests"))

SUMMARY = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Starts the list of summary lines."""
    config.stash[SUMMARY] = []


@pytest.fixture(scope="session")
def summary(pytestconfig: pytest.Config) -> list[str]:
    """Lines to print after all tests."""
    return pytestconfig.stash[SUMMARY]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Takes over the summary lines of a parallel worker."""
    node.config.stash[SUMMARY] += node.workeroutput["summary"] if error is None else []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands the summary lines of a parallel worker to the main process."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["summary"] = session.config.stash[SUMMARY]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the summary lines."""
    if config.stash[SUMMARY]:
        terminalreporter.section("conformance")
        for line in config.stash[SUMMARY]:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def manifest(summary: list[str]) -> dict[str, Any]:
    """Writes the files of root_writers/ unless they exist."""
    from panel import WORK, root_error

    if root_error():
        summary.append(f"ROOT cross-checks did not run: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")
    folder = WORK / "root"
    sources = sorted((HERE / "root_writers").glob("*.[hp]*"))
    version = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            "import ROOT; print(ROOT.gROOT.GetVersion())",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    stamp = hashlib.sha256(version.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp_file = folder / "stamp"
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / "root.lock").open("w") as lock:
        # Parallel workers use the same files.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp_file.exists() or stamp_file.read_text() != stamp:
            done = subprocess.run(
                [sys.executable, str(HERE / "root_writers" / "write_all.py"), str(folder)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            stamp_file.write_text(stamp)
    result: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    summary.append(f"ROOT {result['root']} wrote {len(result['cases'])} ntuples")
    summary.extend(f"not run: {line}" for line in result["not_run"])
    return result
