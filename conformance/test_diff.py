"""`tupelo diff` of trees that ROOT wrote: what belongs to all entries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from panel import REAL_DATA, TUPELO, WORK, root_error
from root_programs import root

FOLDER = WORK / "diff"
WRITE = """
import sys, ROOT
folder = sys.argv[1]
def write(name, alias, value, unique):
    with ROOT.TFile(f"{folder}/{name}.root", "RECREATE") as file:
        tree = ROOT.TTree("events", "events")
        tree.SetAlias("twice", alias)
        tree.SetWeight(2 if name == "other" else 1)
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
    root(WRITE, FOLDER)
    assert run("one.root", "same.root") == (0, "")
    status, text = run("one.root", "other.root")
    weight, alias, info = text.splitlines()
    assert (status, alias) == (1, "alias 'twice': 'x * 2' and 'x + x'")
    assert weight == "metadata 'weight': none and '2'"
    assert info.startswith("user information 'generator': {")
    status, text = run("one.root", "other.root", "--json")
    found = json.loads(text)
    assert (status, found["equal"], found["fields"], found["attribute_sets"]) == (1, False, [], [])
    assert found["aliases"] == [{"key": "twice", "values": ["x * 2", "x + x"]}]
    (difference,) = found["user_info"]
    assert [[one["fTitle"] for one in side] for side in difference["values"]] == [["pythia"], ["herwig"]]


def test_real_trees_equal_their_ntuples(tmp_path: Path, summary: list[str]) -> None:
    """Regression: counters, maps and objects without a class in ntuples differed from those in trees."""
    names = ("HZZ-lz4", "issue40", "sample-6.20.04-lz4", "stl_containers", "issue403.root:Geant4Data")
    files = [REAL_DATA / "trees" / f"uproot-{name}" for name in names] + [REAL_DATA / "trees" / "issue367b"]
    files.append(REAL_DATA / "wild" / "mrzimu+uproot-custom__tests_data_test_stl_seq_with_obj")
    inputs = [str(path) if ".root:" in path.name else f"{path}.root" for path in files]
    inputs = [one for one in inputs if Path(one.split(":")[0]).exists()]
    if not inputs:
        pytest.skip("no real files")
    out = tmp_path / "imported.root"
    for file in inputs:
        for options in ([], ["--no-class-names"]):
            command = [str(TUPELO), "import", file, "-o", str(out), "--force", "--skip-unreadable", *options]
            subprocess.run(command, check=True, capture_output=True)
            for pair in ([file, str(out)], [str(out), file]):
                found = subprocess.run([str(TUPELO), "diff", *pair], capture_output=True, text=True)
                assert (found.returncode, found.stdout) == (0, ""), (file, found.stdout, found.stderr)
    summary.append(f"{len(inputs)} real trees are equal to the ntuples made from them")
