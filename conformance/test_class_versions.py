"""Objects of an older version of their class than the newest one in the file, and objects without a head."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from panel import root_error
from root_programs import root

import tupelo

WRITER = Path(__file__).resolve().parent / "tree_writers" / "write_versions.py"
WISE = pytest.mark.parametrize("wise", ["object", "member"])


@pytest.fixture(scope="module")
def written(summary: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files with a tree of each version: ``old`` and ``new``."""
    if root_error():
        summary.append(f"no objects of several versions were read: ROOT cannot be imported ({root_error()})")
        pytest.skip("ROOT cannot be imported")
    folder = tmp_path_factory.mktemp("versions")
    for version in ("1", "2"):
        done = subprocess.run(
            [sys.executable, str(WRITER), version, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def filled(i: int, tree: str) -> dict[str, Any]:
    """The object that was filled with a number, as version 2 has it; members that version 1 lacks are zero."""
    is_new = tree == "new"
    return {
        "kept": 10 + i,
        "fresh": 7.0 if is_new else 0.0,
        "b": i / 2,
        "added": "text" if is_new else "",
        "list": [i] * (i % 3),
        "a": -i,
        "flag": i % 2,
        "sizes": [i, 2 * i],
    }


def flat(value: dict[str, Any]) -> dict[str, Any]:
    """An object with the members of its base beside its own ones."""
    return value.get(":_0", {}) | {name: member for name, member in value.items() if name != ":_0"}


@WISE
@pytest.mark.parametrize("name", ["old", "new"])
def test_objects_of_older_versions_are_read_as_the_newest(written: Path, wise: str, name: str) -> None:
    tree = tupelo.open(written / f"{wise}_wise.root")[name]
    rows = tree.arrays(["many", "split.one", "split.many"]).to_list()
    for i, row in enumerate(rows):
        many = [filled(10 * i + k, name) for k in range(i % 3)]
        assert [flat(one) for one in row["many"]] == many
        assert [flat(one) for one in row["split"]["many"]] == many
        assert flat(row["split"]["one"]) == filled(i + 100, name)
    assert len(rows) == 6


@WISE
def test_whole_objects_have_the_version_that_their_branch_states(written: Path, wise: str) -> None:
    old, new = (tupelo.open(written / f"{wise}_wise.root")[name]["one"].array().to_list() for name in ("old", "new"))
    assert [flat(one) for one in new] == [filled(i, "new") for i in range(6)]
    for i, one in enumerate(old):
        expected = {key: value for key, value in filled(i, "old").items() if key not in ("fresh", "added")}
        assert flat(one) == expected | {"dropped": 3.0}


@WISE
def test_objects_without_a_head_are_read_as_root_reads_them(written: Path, wise: str) -> None:
    path = written / f"{wise}_wise.root"
    code = (
        "import json, sys, ROOT\n"
        "file = ROOT.TFile(sys.argv[1])\n"
        "tree = file.Get('new')\n"
        "count = tree.Draw('split.headless.x', '', 'goff')\n"
        "print(json.dumps([tree.GetV1()[i] for i in range(count)]))"
    )
    ours = tupelo.open(path)["new"]["split.headless.x"].array().to_list()
    assert ours == list(range(70000, 70006)) == json.loads(root(code, path))


@WISE
def test_what_custom_streamers_add_is_no_damage(written: Path, wise: str) -> None:
    file = tupelo.open(written / f"{wise}_wise.root")
    with pytest.raises(tupelo.UnsupportedError, match="class Custom has a custom format, which is not supported"):
        file["new"]["split.custom"].array()
