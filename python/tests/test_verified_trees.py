"""Trees with lost branches or entries, and files that cannot be named, are reported by the commands."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tupelo

ENTRIES = 997


@pytest.fixture
def tree() -> bytearray:
    with tupelo.recreate("f.root", compression="none") as file:
        file.mktree("Events", {"x": "f4", "y": "f4"}).extend({name: np.ones(ENTRIES, "f4") for name in "xy"})
    return bytearray(Path("f.root").read_bytes())


def run(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def verify(command: str) -> tuple[int, Any]:
    done = run(command, "verify", "--json", "f.root")
    return done.returncode, json.loads(done.stdout)


def with_entries(tree: bytearray, entries: int) -> bytearray:
    """The tree as one that claims a number of entries: the first of its members with that number."""
    at = tree.index(ENTRIES.to_bytes(8, "big"))
    tree[at : at + 8] = entries.to_bytes(8, "big")
    return tree


def test_a_tree_with_more_entries_than_its_branches_is_damaged(tree: bytearray, command: str) -> None:
    """Regression: `verify` called it intact, and `dump` printed an empty object for each entry."""
    Path("f.root").write_bytes(with_entries(tree, ENTRIES + 1))
    status, report = verify(command)
    assert status == 1
    assert "its branches have 997 entries, but the tree says 998" in [damage["what"] for damage in report["damages"]]
    dump = run(command, "dump", "f.root")
    assert (dump.returncode, dump.stdout) == (1, "")
    assert "none of the fields can be read: branch 'x' has no entry 997" in dump.stderr


def test_a_tree_with_fewer_entries_than_its_branches_has_a_warning(tree: bytearray, command: str) -> None:
    Path("f.root").write_bytes(with_entries(tree, 100))
    status, report = verify(command)
    assert (status, report["damages"]) == (0, [])
    assert report["warnings"] == ["tree 'Events': its branches have 997 entries, but the tree says 100"]
    assert tupelo.open("f.root:Events").num_entries == 100


def test_branches_that_cannot_be_read_are_not_called_intact(tree: bytearray, command: str) -> None:
    """Regression: with one changed bit a branch was gone, and `verify` called the tree intact."""
    tree[tree.index(b"TBranch\0") + len(b"TBranch\0") + 3] ^= 1
    Path("f.root").write_bytes(tree)
    status, report = verify(command)
    assert status == 1
    assert report["num_damages"] + report["num_unsupported"] == 1
    dump = run(command, "dump", "f.root")
    assert dump.stdout.startswith('{"y":1.0}')


def test_files_whose_names_are_not_text_are_named(command: str) -> None:
    """Regression: wildcards and listings skipped them."""
    with tupelo.recreate("ok.root") as file:
        file["Events"] = {"x": [1.0]}
    try:
        Path(b"bad\xff.root".decode(errors="surrogateescape")).write_bytes(Path("ok.root").read_bytes())
    except OSError:
        pytest.skip("the file system has only names that are text")
    for arguments in (["count", "*.root"], ["verify", "*.root"], ["ls", "."]):
        done = run(command, *arguments)
        assert done.returncode == 1, arguments
        assert "bad\ufffd.root" in done.stderr, done.stderr
