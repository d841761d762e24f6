"""`tupelo diff` of trees that ROOT wrote: what belongs to all entries."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from panel import TUPELO, WORK, root_error

FOLDER = WORK / "diff"
WRITE = """
import sys, ROOT
folder = sys.argv[1]
def write(name, alias, value, unique):
    with ROOT.TFile(f"{folder}/{name}.root", "RECREATE") as file:
        tree = ROOT.TTree("events", "events")
        tree.SetAlias("twice", alias)
        text, number = ROOT.TNamed("generator", value), ROOT.TParameter["double"]("scale", float("nan"))
        text.SetUniqueID(unique)
        for item in (text, number):
            ROOT.SetOwnership(item, False)
            tree.GetUserInfo().Add(item)
        file.WriteObject(tree, "events")
write("one", "x * 2", "pythia", 0)
write("same", "x * 2", "pythia", 7)
write("other", "x + x", "herwig", 0)
"""


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and output of `tupelo diff`."""
    found = subprocess.run([str(TUPELO), "diff", *arguments], capture_output=True, text=True, cwd=FOLDER)
    assert not found.stderr or found.returncode == 0, found.stderr
    return found.returncode, found.stdout


def test_aliases_and_user_information() -> None:
    """Regression: trees with other aliases and user information were equal."""
    if root_error():
        pytest.skip("ROOT cannot be imported")
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", WRITE, str(FOLDER)], check=True, capture_output=True)
    assert run("one.root", "same.root") == (0, "")
    status, text = run("one.root", "other.root")
    alias, info = text.splitlines()
    assert (status, alias) == (1, "alias 'twice': 'x * 2' and 'x + x'")
    assert info.startswith("user information 'generator': {")
    status, text = run("one.root", "other.root", "--json")
    found = json.loads(text)
    assert (status, found["equal"], found["fields"], found["attribute_sets"]) == (1, False, [], [])
    assert found["aliases"] == [{"key": "twice", "values": ["x * 2", "x + x"]}]
    (difference,) = found["user_info"]
    assert [[one["fTitle"] for one in side] for side in difference["values"]] == [["pythia"], ["herwig"]]
