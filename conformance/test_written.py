"""What is imported can be read: every real tree as an ntuple, judged by ROOT.

The real files are in ../shared/data next to the project and missing in most clones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from panel import REAL_DATA, TUPELO, WORK, agree, judge, report, root_error

FOLDERS = (".", "trees", "uproot", "wild", "reports")
ENTRIES = 20
"""Entries of each tree or ntuple that are written and compared."""
MOST_BYTES = 4 << 20
"""Larger files are left to other tests."""


@dataclass
class Written:
    """A tree of a real file, and what the command wrote of it."""

    source: str
    out: Path
    skipped: list[str]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TUPELO), *arguments], capture_output=True, text=True, check=False, timeout=120)


def real_objects(kind: str) -> list[str]:
    """FILE:NAME of the trees or ntuples of all real files; copies of a file count once."""
    data = Path(os.environ.get("TUPELO_DATA", REAL_DATA))
    paths = {
        hashlib.sha256(path.read_bytes()).digest(): path for folder in FOLDERS for path in real_files(data / folder)
    }
    found = []
    for path in paths.values():
        listed = run("ls", "--json", str(path))
        if listed.stdout.startswith("{"):
            objects = json.loads(listed.stdout)[kind]
            found += [f"{path}:{one['name']}" for one in objects if ";" not in one["name"] and one.get("fields")]
    return found


def real_files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*.root")) if path.stat().st_size <= MOST_BYTES)


def write(command: str, sources: list[str], folder: Path, *options: str) -> tuple[list[Written], dict[str, list[str]]]:
    """Imports or exports objects, and what went wrong with which."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def one(numbered: tuple[int, str]) -> tuple[Written, str]:
        number, source = numbered
        out = folder / f"{number}.root"
        done = run(command, source, f"{out}:N", "--entries", f":{ENTRIES}", "--skip-unreadable", *options)
        skipped = re.findall(r"'([^']*)' is left out", done.stderr)
        skipped += [
            name
            for line in re.findall(r"for such reasons, too: (.*)", done.stderr)
            for name in line[1:-1].split("', '")
        ]
        return Written(source, out, skipped), "" if done.returncode == 0 else done.stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(one, enumerate(sources)))
    wrong = {written.source: [error.strip().splitlines()[-1]] for written, error in outcomes if error}
    return [written for written, error in outcomes if not error], wrong


def dump(uri: str, out: Path, *options: str) -> Path:
    with out.open("w", encoding="utf-8") as stdout:
        command = [str(TUPELO), "dump", uri, "--format", "jsonl", *options]
        subprocess.run(command, stdout=stdout, stderr=subprocess.DEVNULL, check=True, timeout=120)
    return out


def fields(uri: str, *options: str) -> list[dict[str, Any]]:
    done = run("schema", "--json", uri, *options)
    return json.loads(done.stdout)["fields"] if done.returncode == 0 else []


def needs(summary: list[str], objects: list[str], what: str) -> None:
    if not objects:
        pytest.skip("the real files are missing")
    if root_error():
        summary.append(f"{what} were not judged by ROOT: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")


def test_root_reads_every_real_tree_as_an_ntuple(summary: list[str]) -> None:
    """The command compares the ntuple with the tree; ROOT opens the whole ntuple and reads the same values."""
    trees = real_objects("trees")
    needs(summary, trees, "imports of real trees")
    written, wrong = write("import", trees, WORK / "written" / "ntuples", "--validate", "full")
    jobs = [{"file": str(one.out), "ntuple": "N", "model": True} for one in written]
    for one, theirs in zip(written, judge("root", jobs, "written"), strict=True):
        hidden = [field["name"] for field in fields(f"{one.out}:N", "--fields", "_collection*")]
        options = ("--fields", ",".join([*hidden, "*"])) if hidden else ()
        found = [*agree(dump(f"{one.out}:N", one.out.with_suffix(".jsonl"), *options), theirs)]
        found += [f"ROOT does not show {line}" for line in theirs.omitted]
        if found:
            wrong[one.source] = found
    report(wrong)
    summary.append(f"ROOT read {len(written)} real trees that were imported as ntuples")
