"""What is written can be read: every real tree as an ntuple, and every real tree and ntuple as a tree, judged by ROOT.

The real files are in ../shared/data next to the project and missing in most clones.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from compare import differences, parse, same_values
from panel import JUDGES, REAL_DATA, TUPELO, WORK, agree, judge, report, root_error

FOLDERS = (".", "trees", "uproot", "wild", "reports")
NOTHING_TO_WRITE = re.compile("no branch can be imported|no field can be exported")
ENTRIES = 12
"""Entries of each tree or ntuple that are written and compared."""
MOST_BYTES = 4 << 20
"""Larger files are left to other tests."""
PROCESSES = os.cpu_count() or 1
PARTS = {"_0": "first", "_1": "second"}
"""Names of the parts of a pair, and what ROOT calls them."""
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


@pytest.fixture(autouse=True)
def _without_garbage_collection() -> Iterator[None]:
    """Looking for cycles in millions of parsed values takes long, and there are none."""
    gc.disable()
    yield
    gc.enable()


@cache
def listings() -> dict[Path, dict[str, Any]]:
    """What the real files hold; copies of a file count once."""
    data = Path(os.environ.get("TUPELO_DATA", REAL_DATA))
    paths = {
        hashlib.sha256(path.read_bytes()).digest(): path for folder in FOLDERS for path in real_files(data / folder)
    }
    listed = {path: run("ls", "--json", str(path)).stdout for path in paths.values()}
    return {path: json.loads(text) for path, text in listed.items() if text.startswith("{")}


def real_objects(kind: str) -> list[str]:
    """FILE:NAME of the trees or ntuples of all real files."""
    return [
        f"{path}:{one['name']}"
        for path, objects in listings().items()
        for one in objects[kind]
        if ";" not in one["name"] and one.get("fields")
    ]


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
            for line in re.findall(r"also left out for such reasons: (.*)", done.stderr)
            for name in line[1:-1].split("', '")
        ]
        return Written(source, out, skipped), "" if done.returncode == 0 else done.stderr

    with ThreadPoolExecutor(PROCESSES) as pool:
        outcomes = list(pool.map(one, enumerate(sources)))
    # What has nothing that can be written is refused.
    errors = ((written.source, error.strip().splitlines()[-1]) for written, error in outcomes if error)
    wrong = {source: [error] for source, error in errors if not NOTHING_TO_WRITE.search(error)}
    return [written for written, error in outcomes if not error], wrong


def dump(uri: str, out: Path, *options: str) -> Path:
    with out.open("w", encoding="utf-8") as stdout:
        command = [str(TUPELO), "dump", uri, "--format", "jsonl", "--skip-unreadable", *options]
        subprocess.run(command, stdout=stdout, stderr=subprocess.DEVNULL, check=True, timeout=120)
    return out


def needs(summary: list[str], objects: list[str], what: str) -> None:
    if not objects:
        pytest.skip("there are no real files")
    if root_error():
        summary.append(f"{what} were not judged by ROOT: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")


@pytest.mark.parametrize("has_classes", [True, False])
def test_root_reads_every_real_tree_as_an_ntuple(has_classes: bool, summary: list[str]) -> None:
    """The command compares the ntuple with the tree; ROOT opens the whole ntuple and reads the same values. It has no
    dictionaries, and emulates classes."""
    trees = real_objects("trees")
    needs(summary, trees, "imports of real trees")
    folder = "ntuples" if has_classes else "untyped"
    options = [] if has_classes else ["--no-class-names"]
    written, wrong = write("import", trees, WORK / "written" / folder, "--validate", "full", *options)
    jobs = [{"file": str(one.out), "ntuple": "N", "model": "emulated" if has_classes else "plain"} for one in written]
    for one, theirs in zip(written, judge("root", jobs, folder), strict=True):
        hidden = [field["name"] for field in fields(f"{one.out}:N", "--fields", "_collection*")]
        options = ("--fields", ",".join([*hidden, "*"])) if hidden else ()
        found = [*agree(dump(f"{one.out}:N", one.out.with_suffix(".jsonl"), *options), theirs)]
        found += [f"ROOT does not show {line}" for line in theirs.omitted]
        if found:
            wrong[one.source] = found
    report(wrong)
    names = "with" if has_classes else "without"
    summary.append(f"ROOT read {len(written)} real trees that were imported as ntuples {names} class names")


def fields(uri: str, *options: str) -> list[dict[str, Any]]:
    done = run("schema", "--json", uri, *options)
    return json.loads(done.stdout)["fields"] if done.returncode == 0 else []


@dataclass(frozen=True)
class Leaf:
    """A field of numbers or texts."""

    path: str
    type_name: str
    is_inner: bool
    """Whether it is part of another field."""

    depth: int
    """Of lists in lists."""

    is_hidden: bool = False
    """In a set, or in a class that is a container: formulas do not find the values, or end with a crash."""

    @property
    def is_char(self) -> bool:
        return self.type_name in ("std::int8_t", "char")

    @property
    def is_for_formulas(self) -> bool:
        """ROOT's formulas take chars for a text and large numbers for negative ones, do not find texts in lists, nor
        what is in more than two lists."""
        is_misread = self.is_char or self.type_name == "std::uint64_t"
        is_text = self.type_name == "std::string"
        # Formulas do not find the parts of pairs in maps.
        is_paired = bool({*PARTS} & {*self.path.split(".")})
        return not (is_text or is_paired or self.is_hidden or (is_misread and self.is_inner) or self.depth > 2)


def leaves(fields: list[dict[str, Any]], path: str = "", depth: int = 0, is_in_class: bool = False) -> Iterator[Leaf]:
    for field in fields:
        if field["name"].startswith(":_") and not field.get("fields"):
            # A base class without members.
            continue
        is_item = field["name"] == "_0" and len(fields) == 1 and path
        own = path if is_item else f"{path}.{field['name']}".lstrip(".")
        below = field.get("fields", [])
        deeper = depth + (not field["type"].startswith("std::array") and [it["name"] for it in below] == ["_0"])
        is_class = names(field) == ["_0"] and not field["type"].startswith(("std::", "ROOT::")) and bool(field["type"])
        is_hidden = is_in_class or is_class or "set<" in field["type"]
        leaf = Leaf(own, field["type"], bool(path), depth, is_hidden)
        yield from leaves(below, own, deeper, is_hidden) if below else [leaf]


def add_values(found: list[Any], entry: Any, parts: list[str]) -> None:
    """Adds the values of a leaf in an entry, flattened: truth as numbers, other than finite numbers as texts."""
    if isinstance(entry, list):
        add_items(found, entry, parts)
    elif isinstance(entry, dict):
        for end in range(len(parts), 0, -1):
            if (name := ".".join(parts[:end])) in entry:
                add_values(found, entry[name], parts[end:])
                return
    elif isinstance(entry, bool):
        found.append(int(entry))
    elif entry is None or (isinstance(entry, float) and not math.isfinite(entry)):
        found.append("NaN" if entry is None or math.isnan(entry) else "Infinity" if entry > 0 else "-Infinity")
    else:
        found.append(entry)


def add_items(found: list[Any], items: list[Any], parts: list[str]) -> None:
    """Adds the values of a leaf in items. Items of one kind are taken at once, because there may be very many."""
    types = set(map(type, items))
    if types <= {int, str} or (types <= {int, float} and all(map(math.isfinite, items))):
        found += items
        return
    if types == {list}:
        add_items(found, list(itertools.chain.from_iterable(items)), parts)
        return
    if types == {dict}:
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if all(name in item for item in items):
                add_items(found, [item[name] for item in items], parts[end:])
                return
            if any(name in item for item in items):
                break
    for item in items:
        add_values(found, item, parts)


def columns(entries: list[Any], parts: list[str]) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in entries]
    for values, entry in zip(found, entries, strict=True):
        add_values(values, entry, parts)
    return found


@dataclass
class Source:
    """A tree or ntuple of a real file: what it holds."""

    uri: str
    entries: list[Any]
    leaves: list[Leaf]


def source_of(uri: str) -> Source:
    folder = WORK / "written" / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{hashlib.sha256(uri.encode()).hexdigest()[:16]}.jsonl"
    dump(uri, out, "--entries", f":{ENTRIES}")
    known = fields(uri)
    with out.open(encoding="utf-8") as lines:
        entries = [parse(line) for line in lines]
    if has_tuples(known):
        entries = [{one["name"]: shaped(entry[one["name"]], one) for one in known} for entry in entries]
    return Source(uri, entries, list(leaves(known)))


def has_tuples(fields: list[dict[str, Any]]) -> bool:
    return any("_1" in names(one) or has_tuples(one.get("fields", [])) for one in fields)


def names(field: dict[str, Any]) -> list[str]:
    return [one["name"] for one in field.get("fields", [])]


def shaped(value: Any, field: dict[str, Any]) -> Any:
    """A value with pairs and tuples as objects."""
    below = field.get("fields", [])
    if value is None or not below:
        return value
    if names(field) == ["_0"]:
        return [shaped(item, below[0]) for item in value] if isinstance(value, list) else shaped(value, below[0])
    parts = dict(zip(names(field), value, strict=True)) if isinstance(value, list) else value
    # A variant has one of its values.
    return {one["name"]: shaped(parts[one["name"]], one) for one in below} if isinstance(parts, dict) else parts


@dataclass
class Exported:
    """A tree that was exported: its leaves, and the lines that ROOT wrote of it."""

    written: Written
    leaves: list[Leaf]
    lines: Path

    @property
    def expressions(self) -> list[str]:
        readable = (leaf.path for leaf in self.leaves if leaf.is_for_formulas)
        return [path for path in readable if not NOT_FOR_ROOT_FORMULAS.search(path)]


def first_difference(ours: list[Any], theirs: list[Any], what: str) -> list[str]:
    return [] if same_values(ours, theirs) else [*itertools.islice(differences(ours, theirs, what), 1)]


def check_tree(one: Exported, source: Source) -> list[str]:
    """What ROOT reads of a tree that differs from what Tupelo reads of the source."""
    found: list[str] = []
    tops = {leaf.path.split(".")[0] for leaf in source.leaves}
    lines = one.lines.read_text("utf-8", errors="surrogateescape").splitlines()
    formulas = dict(zip(one.expressions, map(parse, lines), strict=False))
    branches = {name.rstrip("."): entries for name, entries in map(parse, lines[len(formulas) :])}
    copies = {without_bases(leaf.path): leaf.path for leaf in one.leaves}
    hidden = hidden_by_bases(source.leaves)
    for leaf in source.leaves:
        if any(f"{leaf.path}.".startswith(f"{name}.") for name in one.written.skipped) or leaf.path in hidden:
            continue
        copy = copy_of(without_bases(leaf.path), set(copies), tops)
        top = next((top for top in tops_of(copy) if top in branches), "")
        if copy not in copies or not top:
            found.append(f"{leaf.path} is neither written nor left out with a warning")
            continue
        if branches[top] is None:
            # ROOT needs a dictionary of the container.
            continue
        below = [PARTS.get(part, part) for part in copy.removeprefix(top).split(".") if part]
        expected, theirs = columns(source.entries, leaf.path.split(".")), columns(branches[top], below)
        if isinstance(judged := formulas.get(copies[copy], expected), str):
            found.append(judged)
        else:
            found += first_difference(expected, judged, f"{leaf.path} in formulas")
        if leaf.is_char:
            expected, theirs = chars(expected), chars(theirs)
        if leaf.is_hidden:
            # Sets without an order.
            expected, theirs = ([sorted(entry, key=str) for entry in one] for one in (expected, theirs))
        found += first_difference(expected, theirs, f"{leaf.path} in branches")
    return found


def chars(entries: list[list[Any]]) -> list[list[int]]:
    """Chars but zeros: ROOT's JSON has texts for several, which end at a zero."""
    return [
        [code for value in entry for code in (codes(value) if isinstance(value, str) else [value]) if code]
        for entry in entries
    ]


def codes(text: str) -> list[int]:
    return [(byte + 128) % 256 - 128 for byte in text.encode("utf-8", errors="surrogateescape")]


def without_bases(path: str) -> str:
    """A path without base classes, whose members ROOT shows beside those of the class."""
    return ".".join(part for part in path.split(".") if not part.startswith(":_"))


def hidden_by_bases(leaves: list[Leaf]) -> set[str]:
    """Paths below members with the same name in several bases. ROOT's JSON has only one of them."""
    known: dict[str, set[str]] = {}
    for leaf in leaves:
        parts = leaf.path.split(".")
        for count, part in enumerate(parts, 1):
            if not part.startswith(":_"):
                path = ".".join(parts[:count])
                known.setdefault(without_bases(path), set()).add(path)
    twice = {path for path, originals in known.items() if len(originals) > 1}
    return {leaf.path for leaf in leaves if any(top in twice for top in tops_of(without_bases(leaf.path)))}


def tops_of(path: str) -> Iterator[str]:
    """What the branch of a leaf may be called: a part of its path."""
    parts = path.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def copy_of(path: str, copies: set[str], tops: set[str]) -> str:
    """What a leaf is called in a tree: auxiliary stores have dots, parts of pairs have names, and members of the items
    of lists become branches whose names no field has."""
    top, _, below = path.partition(".")
    if "Aux:" in top or "AuxDyn:" in top:
        path = ".".join(part for part in (top.replace(":", "."), below) if part).replace("..", ".")
    named = ".".join(PARTS.get(part, part) for part in path.split("."))
    for same in (path, named):
        if same in copies:
            return same
    return next((copy for copy in (member_of(path, tops), member_of(named, tops)) if copy in copies), "")


def member_of(path: str, tops: set[str]) -> str:
    """The branch of a member of the items of a list."""
    top, _, below = path.partition(".")
    member, *rest = below.split(".")
    copy = f"{top}_{member}"
    while copy in tops:
        copy += "_"
    return ".".join([copy, *rest])


def judge_trees(trees: list[Exported], folder: Path) -> list[list[str]]:
    """What ROOT complains about in each tree."""

    def part(number: int) -> list[list[str]]:
        jobs = [
            {
                "file": str(one.written.out),
                "tree": "N",
                "expressions": one.expressions,
                "entries": ENTRIES,
                "out": str(one.lines),
            }
            for one in trees[number::PROCESSES]
        ]
        listing, reports = folder / f"jobs{number}.json", folder / f"reports{number}.json"
        listing.write_text(json.dumps(jobs))
        command = [sys.executable, "-W", "ignore", str(JUDGES / "root_trees.py"), str(listing), str(reports)]
        # ROOT prints some complaints to standard output.
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return [
            [*([report["error"]] if report["error"] else []), *report["messages"]]
            for report in json.loads(reports.read_text())
        ]

    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = list(pool.map(part, range(PROCESSES)))
    return [parts[number % PROCESSES][number // PROCESSES] for number in range(len(trees))]


SOURCES: dict[str, Source] = {}
"""What the processes that compare have in common."""


def faults_of(tree: Exported, complaints: list[str]) -> list[str]:
    return complaints or check_tree(tree, SOURCES[tree.written.source])


@pytest.mark.parametrize("kind", ["trees", "ntuples"])
def test_root_reads_every_real_tree_and_ntuple_as_a_tree(kind: str, summary: list[str]) -> None:
    """ROOT reads the values of the source, in formulas and as objects; what it could not read is left out by name."""
    uris = real_objects(kind)
    needs(summary, uris, "exports of real files")
    with ThreadPoolExecutor(PROCESSES) as threads:
        SOURCES.update({one.uri: one for one in threads.map(source_of, uris)})
    faults: dict[str, list[str]] = {}
    trees: list[Exported] = []
    labels: list[str] = []
    for jagged in ("counter", "vector"):
        written, wrong = write("export", uris, WORK / "written" / f"{kind}_{jagged}", "--jagged", jagged)
        with ThreadPoolExecutor(PROCESSES) as threads:
            found = threads.map(lambda one: list(leaves(fields(f"{one.out}:N"))), written)
            trees += [Exported(*pair, pair[0].out.with_suffix(".jsonl")) for pair in zip(written, found, strict=True)]
        labels += [f"{one.source} --jagged {jagged}" for one in written]
        faults |= {f"{uri} --jagged {jagged}": lines for uri, lines in wrong.items()}
        summary.append(f"ROOT read {len(written)} real {kind} that were exported with --jagged {jagged}")
    # ROOT is started once for both ways, which takes as long as dozens of trees.
    complaints = judge_trees(trees, WORK / "written")
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork")) as processes:
        for label, lines in zip(labels, processes.map(faults_of, trees, complaints), strict=True):
            if lines:
                faults[label] = lines
    SOURCES.clear()
    report(faults)
