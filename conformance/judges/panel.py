"""Runs the judges and compares their results. Shared by all tests that use judges."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import uproot
from compare import compare, parse
from programs import run_forked

JUDGES = Path(__file__).resolve().parent
PROJECT = JUDGES.parent.parent
REAL_DATA = PROJECT.parent / "shared" / "data"
WORK = PROJECT / "target" / "conformance"
BUILD = Path(os.environ.get("TUPELO_BUILD") or PROJECT / "target" / "debug")
TUPELO = BUILD / "tupelo"
Entry = dict[str, Any]


@dataclass
class Dump:
    """A judge's dump of one ntuple."""

    path: Path
    omitted: list[str]
    messages: list[str]
    error: str | None


@cache
def root_error() -> str | None:
    """Why ROOT cannot be imported; None where it can."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import ROOT"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ends without a word"])[-1]


@cache
def real_ntuples() -> list[tuple[Path, str]]:
    """The RNTuples of the real files."""
    found = []
    for path in sorted(REAL_DATA.glob("*.root")):
        with uproot.open(path) as file:
            found += [(path, name) for name, kind in file.classnames(cycle=False).items() if kind == "ROOT::RNTuple"]
    return found


def judge(tool: str, jobs: list[Entry], label: str, library: str | None = None) -> list[Dump]:
    """Let root_dump.py or uproot_dump.py dump many ntuples in one process."""
    folder = WORK / "dumps" / f"{label}.{tool}"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [{"out": str(folder / f"{number}.jsonl")} | job for number, job in enumerate(jobs)]
    listing = folder / "jobs.json"
    listing.write_text(json.dumps(jobs))
    program = f"import sys, {tool}_dump; sys.exit({tool}_dump.main())"
    options = ["--library", library] if library else []
    done = run_forked(f"{tool}_dump", program, "--batch", listing, *options)
    if done.returncode == 0:
        reports = json.loads(done.stdout)
        return [Dump(Path(job["out"]), **report) for job, report in zip(jobs, reports, strict=True)]
    if len(jobs) == 1:
        return [
            Dump(
                Path(jobs[0]["out"]),
                [],
                [],
                f"{tool} crashed with status {done.returncode}",
            )
        ]
    half = len(jobs) // 2  # a crash takes the whole batch with it: look for the file at fault
    return [dump for part in (jobs[:half], jobs[half:]) for dump in judge(tool, part, label, library)]


def tupelo(*arguments: str, out: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command; its output goes to `out` or is dropped."""
    if not TUPELO.exists():
        pytest.fail(
            f"{TUPELO} is missing: run make test, or set TUPELO_BUILD",
            pytrace=False,
        )
    with open(out or os.devnull, "w", encoding="utf-8") as stdout:
        return subprocess.run([str(TUPELO), *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def run(*arguments: object) -> str:
    """Run the command, which must succeed; returns its output."""
    done = subprocess.run([str(TUPELO), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hidden_fields(uri: str) -> list[str]:
    """Imported collections, which ROOT and uproot list beside the fields that show them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ntuple = importlib.import_module("tupelo").open(uri)
    return [name for name in ntuple._by_path if "." not in name and name not in ntuple._listed]


def tupelo_dump(uri: str, label: str, *options: str) -> Path:
    """Dump with Tupelo; all fields, unless the options choose some."""
    if "--fields" not in options and (hidden := hidden_fields(uri)):
        options = (*options, "--fields", ",".join([*hidden, "*"]))
    out = WORK / "dumps" / "tupelo" / (hashlib.sha256(f"{label} {uri}".encode()).hexdigest()[:16] + ".jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    done = tupelo("dump", uri, "--format", "jsonl", *options, out=out)
    assert done.returncode == 0, f"tupelo dump {uri}: {done.stderr}"
    return out


def fields_of(path: Path) -> set[str]:
    """Top-level fields of the first entry."""
    with path.open(encoding="utf-8") as lines:
        first = next(lines, None)
    return set(parse(first)) if first else set()


def agree(ours: Path, theirs: Dump | Path, unordered: bool = False) -> list[str]:
    """Differences between a dump and what a judge said; a field may be absent only where the judge says so."""
    path, omitted = (theirs.path, theirs.omitted) if isinstance(theirs, Dump) else (theirs, [])
    if isinstance(theirs, Dump) and theirs.error:
        return [f"the judge failed: {theirs.error}"]
    found = []
    for name in sorted(fields_of(ours) ^ fields_of(path)):
        if not any(line.startswith(f"{name} (") for line in omitted):
            found.append(f"only one side has the field {name}")
    with ours.open(encoding="utf-8") as a, path.open(encoding="utf-8") as b:
        return found + compare(a, b, unordered=unordered)


def report(differences: dict[str, list[str]]) -> None:
    """Fail with all differences."""
    text = "\n".join(f"{label}: {line}" for label, lines in differences.items() for line in lines[:5])
    if text:
        pytest.fail(text, pytrace=False)
