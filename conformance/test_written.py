"""What is written can be read: every real tree as an ntuple, and every real tree and ntuple as a tree, judged by ROOT.

The real files are in ../shared/data next to the project and missing in most clones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from compare import differences, parse
from panel import JUDGES, REAL_DATA, TUPELO, WORK, agree, judge, report, root_error

FOLDERS = (".", "trees", "uproot", "wild", "reports")
ENTRIES = 20
"""Entries of each tree or ntuple that are written and compared."""
MOST_BYTES = 4 << 20
"""Larger files are left to other tests."""
NOT_FOR_ROOT_FORMULAS = re.compile(r"[^A-Za-z0-9_.]")
"""Letters in names of branches that TTreeFormula takes for operators."""


@dataclass
class Written:
    """An object of a real file, and what the command wrote of it."""

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


def needs(summary: list[str], objects: list[str], what: str) -> None:
    if not objects:
        pytest.skip("there are no real files")
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


def fields(uri: str, *options: str) -> list[dict[str, Any]]:
    done = run("schema", "--json", uri, *options)
    return json.loads(done.stdout)["fields"] if done.returncode == 0 else []


def leaves(fields: list[dict[str, Any]], path: str = "") -> Iterator[str]:
    """Dotted paths of the numbers and texts."""
    for field in fields:
        own = path if field["name"] == "_0" and path else f"{path}.{field['name']}".lstrip(".")
        below = field.get("fields", [])
        yield from leaves(below, own) if below else [own]


def values(entry: Any, parts: list[str]) -> Iterator[Any]:
    """The values of a leaf in an entry, flattened."""
    if isinstance(entry, list):
        for item in entry:
            yield from values(item, parts)
    elif isinstance(entry, dict) and parts:
        for end in range(len(parts), 0, -1):
            if (name := ".".join(parts[:end])) in entry:
                yield from values(entry[name], parts[end:])
                return
    else:
        yield entry


def flattened(path: Path, leaf: str) -> list[list[Any]]:
    with path.open(encoding="utf-8") as lines:
        return [list(values(parse(line), leaf.split("."))) for line in lines]


def unequal(ours: list[list[Any]], theirs: Any, what: str) -> Iterator[str]:
    numbers = [[int(value) if isinstance(value, bool) else value for value in entry] for entry in ours]
    for found in differences(numbers, theirs, what):
        yield found
        return


def check_tree(one: Written, lines: Path) -> list[str]:
    """What ROOT reads of a tree that differs from what Tupelo reads, or that from the source."""
    found: list[str] = []
    ours = dump(f"{one.out}:N", one.out.with_suffix(".jsonl"))
    known = {leaf.replace(".", "_"): leaf for leaf in leaves(fields(f"{one.out}:N"))}
    for leaf, line in zip(expressions(one), lines.read_bytes().splitlines(), strict=True):
        try:
            theirs = parse(line.decode())
        except UnicodeDecodeError:
            continue  # ours are base64
        found += [theirs] if isinstance(theirs, str) else unequal(flattened(ours, leaf), theirs, f"ROOT: {leaf}")
    original = dump(one.source, one.out.with_suffix(".source.jsonl"), "--entries", f":{ENTRIES}")
    for leaf in leaves(fields(one.source)):
        if any(f"{leaf}.".startswith(f"{name}.") for name in one.skipped):
            continue
        if (copied := known.get(leaf.replace(".", "_"))) is None:
            found.append(f"{leaf} is neither written nor left out with a warning")
        else:
            found += unequal(flattened(ours, copied), flattened(original, leaf), f"the source: {leaf}")
    return found


def expressions(one: Written) -> list[str]:
    return [leaf for leaf in leaves(fields(f"{one.out}:N")) if not NOT_FOR_ROOT_FORMULAS.search(leaf)]


def judge_trees(written: list[Written], folder: Path) -> list[tuple[Path, list[str]]]:
    """The lines that ROOT wrote of each tree, and its errors."""
    jobs = [
        {"file": str(one.out), "tree": "N", "expressions": expressions(one), "entries": ENTRIES, "out": str(out)}
        for one in written
        for out in [one.out.with_suffix(".root.jsonl")]
    ]
    listing, reports = folder / "jobs.json", folder / "reports.json"
    listing.write_text(json.dumps(jobs))
    command = [sys.executable, "-W", "ignore", str(JUDGES / "root_trees.py"), str(listing), str(reports)]
    # ROOT prints some complaints to standard output.
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    errors = [
        [*([found["error"]] if found["error"] else []), *found["messages"]] for found in json.loads(reports.read_text())
    ]
    return [(Path(job["out"]), error) for job, error in zip(jobs, errors, strict=True)]


@pytest.mark.parametrize("kind", ["trees", "ntuples"])
def test_root_reads_every_real_tree_and_ntuple_as_a_tree(kind: str, summary: list[str]) -> None:
    """ROOT reads the same values from each branch as Tupelo, and these are the values of the source."""
    objects = real_objects(kind)
    needs(summary, objects, "exports of real files")
    for jagged in ("counter", "vector"):
        folder = WORK / "written" / f"{kind}_{jagged}"
        written, wrong = write("export", objects, folder, "--jagged", jagged)
        check: Callable[[tuple[Written, tuple[Path, list[str]]]], list[str]] = lambda pair: (  # noqa: E731
            pair[1][1] or check_tree(pair[0], pair[1][0])
        )
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(check, zip(written, judge_trees(written, folder), strict=True)))
        wrong |= {one.source: lines for one, lines in zip(written, found, strict=True) if lines}
        report(wrong)
        summary.append(f"ROOT read {len(written)} real {kind} that were exported with --jagged {jagged}")
