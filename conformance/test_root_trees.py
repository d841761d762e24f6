"""Trees that ROOT writes with each feature of its writer, compared with the values that were filled."""

from __future__ import annotations

import fcntl
import fnmatch
import functools
import hashlib
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from branches import plain, same
from panel import WORK, root_error

import tupelo

HERE = Path(__file__).resolve().parent
FOLDER = WORK / "root_trees"
REFUSED = {
    "*_wise:vector_enum:x": "bytes: nothing says that the items are integers",
    "objects_0:clones:x": "bytes: an old branch of objects",
    "linked:linked_0:x": "bytes: an old branch of objects",
    "*_wise:loops_*:x": "bytes: pointers to several objects are not supported, and a counter in a base class",
}
"""What is left as bytes, and why."""


@pytest.fixture(scope="session")
def written(summary: list[str]) -> Path:
    """The folder of the files of tree_writers/, which are written unless they exist."""
    if root_error():
        summary.append(f"no trees of ROOT were read: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = sorted((HERE / "tree_writers").glob("*.[hp]*"))
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    with (WORK / "root_trees.lock").open("w") as lock:
        # Parallel workers use the same files.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (FOLDER / "stamp").exists() or (FOLDER / "stamp").read_text() != stamp:
            command = [sys.executable, str(HERE / "tree_writers" / "write_trees.py"), str(FOLDER)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            (FOLDER / "stamp").write_text(stamp)
    return FOLDER


@functools.cache
def opened(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tupelo.open(path)


def expectations(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(f"{path}.json").read_text().splitlines()]


def check(path: Path, expected: dict[str, Any]) -> str | None:
    """What is wrong with a field, if anything is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = plain(opened(path)[expected["tree"]][expected["field"]].array().tolist())
    except (tupelo.Error, KeyError) as error:
        return str(error)
    return None if same(found, expected["values"]) else f"{str(found)[:300]} is not {str(expected['values'])[:300]}"


def is_left_as_bytes(path: Path, expected: dict[str, Any]) -> bool:
    schema = opened(path)[expected["tree"]].arrow_schema
    return "binary" in str(schema.field(expected["field"]).type)


def test_trees_have_the_values_that_root_filled(written: Path, summary: list[str]) -> None:
    wrong, count, unused = [], 0, set(REFUSED)
    for listed in sorted(written.glob("*.root.json")):
        path = listed.with_suffix("")
        for expected in expectations(path):
            count += 1
            place = f"{path.stem}:{expected['tree']}:{expected['field']}"
            known = {pattern for pattern in REFUSED if fnmatch.fnmatch(place, pattern)}
            problem = check(path, expected)
            if problem and known and is_left_as_bytes(path, expected):
                unused -= known
            elif problem:
                wrong.append(f"{place}: {problem}")
    assert not wrong, "\n".join(wrong)
    assert not unused, f"these are read now: {sorted(unused)}"
    summary.append(f"{count} fields of trees by ROOT were compared with the values that were filled")


def test_an_index_is_listed(written: Path) -> None:
    assert opened(written / "structure.root")["extras"].index == ("v", "0")
    assert opened(written / "structure.root")["extras"].friends
    assert opened(written / "structure.root")["extras"].aliases == {"double": "v*2"}
