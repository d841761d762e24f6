"""Friends of trees: Tupelo joins them as ROOT does."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from pathlib import Path

import pytest
from panel import TUPELO, WORK, root_error, run
from root_programs import root

import tupelo

FOLDER = WORK / "friends"
WRITE = """
import sys, json, ROOT
import numpy as np
folder = sys.argv[1]
order = np.random.default_rng(3).permutation(200)
def tree(path, name, columns, prepare=lambda tree: None):
    with ROOT.TFile(path, "RECREATE") as file:
        tree = ROOT.TTree(name, name)
        places = {column: np.zeros(1, values.dtype) for column, values in columns.items()}
        for column, place in places.items():
            tree.Branch(column, place, f"{column}/{'I' if place.dtype == np.int32 else 'D'}")
        for entry in range(len(next(iter(columns.values())))):
            for column, values in columns.items():
                places[column][0] = values[entry]
            tree.Fill()
        prepare(tree)
        file.WriteObject(tree, name)
run = np.repeat(np.arange(2, dtype=np.int32), 100)
event = np.tile(np.arange(100, dtype=np.int32), 2)
x = np.arange(200.0)
def befriend(tree):
    tree.AddFriend("scores", f"{folder}/b.root")
    tree.AddFriend("more", "c.root").SetName("m")
tree(f"{folder}/b.root", "scores", {"run": run[order], "event": event[order], "y": x[order] * 2},
     lambda tree: tree.BuildIndex("run", "event"))
tree(f"{folder}/c.root", "more", {"z": x * 3})
tree(f"{folder}/a.root", "events", {"run": run, "event": event, "x": x}, befriend)
"""
READ = """
import sys, json, ROOT
file = ROOT.TFile(f"{sys.argv[1]}/a.root")
tree = file.Get("events")
found = []
for entry in range(tree.GetEntries()):
    tree.GetEntry(entry)
    friend = tree.GetFriend("scores")
    found.append([tree.x, friend.GetLeaf("y").GetValue(), tree.GetFriend("m").GetLeaf("z").GetValue()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def values() -> list[list[float]]:
    """What ROOT reads of the trees that it wrote."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    root(WRITE, FOLDER, folder=FOLDER)
    found: list[list[float]] = json.loads(root(READ, FOLDER, folder=FOLDER).splitlines()[-1])
    return found


def test_friends_are_joined_as_in_root(values: list[list[float]], tmp_path: Path) -> None:
    """By the index of a friend, or else by entry; files beside that of the tree are found from everywhere."""
    tree = tupelo.open(FOLDER / "a.root")["events"]
    assert [alias for alias, _, _ in tree.friends] == ["scores", "m"]
    joined = tree.with_friends()
    assert joined.keys() == ["run", "event", "x", "scores_y", "m_z"]
    columns = ["x", "scores_y", "m_z"]
    arrays = joined.arrays(columns, library="np")
    assert [list(row) for row in zip(*(arrays[name].tolist() for name in columns), strict=True)] == values
    assert pickle.loads(pickle.dumps(joined)).arrays("x", cut="scores_y == 14", library="np")["x"].tolist() == [7.0]
    command = [str(TUPELO), "dump", f"{FOLDER}/a.root:events", "--friends", "--fields", ",".join(columns)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [list(json.loads(line).values()) for line in lines] == values
    joined.copy(tmp_path / "one.root")
    assert (
        tupelo.open(tmp_path / "one.root").only().arrays("m_z", library="np")["m_z"].tolist() == arrays["m_z"].tolist()
    )
    run("join", tmp_path / "two.root", f"{FOLDER}/a.root:events", "--friends")
    run("diff", tmp_path / "one.root", tmp_path / "two.root")
    # Defect: the error did not say whose friend the missing file is.
    alone = tmp_path / "a.root"
    shutil.copy(FOLDER / "a.root", alone)
    shutil.copy(FOLDER / "b.root", tmp_path)
    with pytest.raises(tupelo.MissingFileError, match=r"friend 'm' of .*a\.root"):
        tupelo.open(f"{alone}:events").with_friends()
    command = [str(TUPELO), "dump", f"{alone}:events", "--friends"]
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert f"friend 'm' of {alone}" in refused.stderr


def test_commands_without_friends_say_how_to_join_them(values: list[list[float]], tmp_path: Path) -> None:
    place = f"{FOLDER}/a.root:events"
    commands = [["import", place, "-o", f"{tmp_path}/a.root"], ["join", f"{tmp_path}/b.root", place]]
    for command in commands:
        done = subprocess.run([str(TUPELO), *command], check=False, capture_output=True, text=True)
        assert done.returncode == 1
        assert f"`tupelo join OUT {place} --friends`" in done.stderr
