"""Files whose objects were removed, renamed and repacked: ROOT and uproot list and read what is left."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import uproot
from panel import agree, judge, report, root_error, run, tupelo_dump
from root_programs import root_without_errors

import tupelo

LIST = """
import json, sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kWarning

def paths(directory, above):
    found = {}
    for key in directory.GetListOfKeys():
        path = above + key.GetName()
        if key.IsFolder() and key.GetClassName().startswith("TDirectory"):
            found[path] = "TDirectory"
            found |= paths(key.ReadObj(), path + "/")
        elif key.GetClassName() == "ROOT::RNTuple":
            found[path] = [key.GetClassName(), ROOT.RNTupleReader.Open(path, sys.argv[1]).GetNEntries()]
        else:
            thing = key.ReadObj()
            size = thing.GetEntries() if hasattr(thing, "GetEntries") else None
            if isinstance(thing, ROOT.TTree):
                size = sum(thing.GetEntry(entry) > 0 for entry in range(size))
            found[path] = [thing.ClassName(), size, thing.GetName()]
    return found

file = ROOT.TFile.Open(sys.argv[1], "update" if "update" in sys.argv else "read")
found = paths(file, "")
if "update" in sys.argv:
    ROOT.TNamed("written_by_root", "t" * 2000).Write()
file.Close()
print("LISTED" + json.dumps(found))
"""


def listed_by_root(path: Path, *options: str) -> dict[str, object]:
    """What ROOT lists, with entries and names of objects; every entry of trees is read."""
    found: dict[str, object] = json.loads(root_without_errors(LIST, path, *options).rpartition("LISTED")[2])
    return found


def write(path: Path) -> None:
    """Two ntuples with metadata, a tree, histograms, and directories."""
    numbers = np.arange(5000)
    with tupelo.recreate(path, cluster_bytes="20 kB", page_bytes="2 kB") as file:
        for name in ("first", "dir/second"):
            events = file.mkrntuple(name, {"i": numbers, "v": [[n] * (n % 3) for n in numbers.tolist()]})
            events.metadata["name"] = name
        file["h"] = np.histogram([1.5, 2.5], bins=4, range=(0, 4))
        file["dir/h2"] = np.histogram([1.5, 2.5, 3.5], bins=4, range=(0, 4))
        tree = file.mktree("dir/tree", {"x": "float", "n": "int"})
        tree.extend({"x": numbers.astype("f4"), "n": numbers.astype("i4")})
        file.mkdir("empty")


def change(path: Path, repacked: bool) -> None:
    """Moves, removes and makes objects."""
    run("mv", f"{path}:first", f"{path}:dir/renamed")
    run("mv", f"{path}:h", f"{path}:dir/a_longer_name")
    run("mv", f"{path}:dir/tree", f"{path}:tree_of_numbers")
    run("mkdir", f"{path}:new/inner")
    run("rm", f"{path}:dir/second", f"{path}:dir/h2")
    run("rm", "-r", f"{path}:empty")
    if repacked:
        run("repack", str(path))
    run("verify", str(path))


EXPECTED = {
    "dir": "TDirectory",
    "dir/renamed": ["ROOT::RNTuple", 5000],
    "dir/a_longer_name": ["TH1I", 2, "a_longer_name"],
    "tree_of_numbers": ["TTree", 5000, "tree_of_numbers"],
    "new": "TDirectory",
    "new/inner": "TDirectory",
}


@pytest.fixture(params=[False, True], ids=["changed", "repacked"])
def changed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A changed file, and the same repacked."""
    path = tmp_path / "file.root"
    write(path)
    change(path, request.param)
    return path


def test_root_reads_what_is_left(changed: Path) -> None:
    """ROOT lists and reads the objects under their new names, also after it has written into the free space."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    assert listed_by_root(changed) == EXPECTED
    listed_by_root(changed, "update")
    run("verify", str(changed))
    found = listed_by_root(changed)
    assert found.pop("written_by_root", None) is not None
    assert found == EXPECTED


def test_uproot_reads_what_is_left(changed: Path) -> None:
    """uproot lists the same, and reads the tree and the histogram."""
    with uproot.open(changed) as file:
        assert set(file.keys(cycle=False)) == set(EXPECTED)
        assert file["tree_of_numbers"].name == "tree_of_numbers"
        assert file["tree_of_numbers"]["n"].array(library="np").tolist() == list(range(5000))
        assert file["dir/a_longer_name"].values().tolist() == [0, 1, 1, 0]
        assert file["dir/a_longer_name"].name == "a_longer_name"


WRITE = """
import array, sys, ROOT
ROOT.gROOT.SetBatch(True)
ROOT.TH1.AddDirectory(False)
file = ROOT.TFile(sys.argv[1], "recreate", "a file title")
directory = file.mkdir("dir", "a directory title")
file.mkdir("none")
file.cd()
histogram, function = ROOT.TH1D("h", "t", 10, 0, 1), ROOT.TF1("fit", "[0]*x", 0, 1)
histogram.FillRandom("gaus", 100)
ROOT.SetOwnership(function, False)
histogram.GetListOfFunctions().Add(function)
histogram.Write()
items, inner = ROOT.TList(), [ROOT.TNamed("one", "1"), ROOT.TH1F("two", "2", 3, 0, 1)]
for item in inner:
    items.Add(item)
items.Write("list", ROOT.TObject.kSingleKey)
directory.cd()
ROOT.TObjString("some text").Write("text")
tree, x, v = ROOT.TTree("t", "a tree"), array.array("f", [0.0]), ROOT.std.vector("float")()
tree.Branch("x", x, "x/F")
tree.Branch("v", v)
for entry in range(20000):
    x[0] = entry
    v.clear()
    for _ in range(entry % 3):
        v.push_back(entry)
    tree.Fill()
    if entry == 10000:
        tree.AutoSave()
tree.Write()
file.Close()
"""
READ = """
import json, sys, ROOT
file = ROOT.TFile.Open(sys.argv[1])
histogram, tree, directory = file.Get("dir/histogram"), file.Get("the_tree"), file.Get("dir")
print("READ" + json.dumps([
    file.GetTitle(), directory.GetTitle(), histogram.GetName(), histogram.GetEntries(),
    histogram.GetListOfFunctions().At(0).GetName(), [item.GetName() for item in file.Get("l")],
    str(file.Get("string").GetString()), tree.GetName(), sum(tree.GetEntry(entry) > 0 for entry in range(20000)),
    tree.GetMaximum("x"), bool(file.Get("none")),
]))
"""


def test_objects_of_root_are_renamed_and_repacked(tmp_path: Path) -> None:
    """Objects with references, a list with names in it, and a tree with baskets in its record and an older cycle."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    path = tmp_path / "root.root"
    root_without_errors(WRITE, path)
    moves = {"h": "dir/histogram", "list": "l", "dir/text": "string", "dir/t": "the_tree"}
    for old, new in moves.items():
        run("mv", f"{path}:{old}", f"{path}:{new}")
    run("verify", str(path))
    expected = ["a file title", "a directory title", "histogram", 100, "fit", ["one", "two"], "some text", "the_tree"]
    expected += [20000, 19999, True]
    assert json.loads(root_without_errors(READ, path).rpartition("READ")[2]) == expected
    # Baskets of the older cycle are those of the newer one.
    run("rm", f"{path}:the_tree;1")
    assert json.loads(root_without_errors(READ, path).rpartition("READ")[2]) == expected
    size = path.stat().st_size
    run("repack", str(path))
    assert path.stat().st_size < size
    assert json.loads(root_without_errors(READ, path).rpartition("READ")[2]) == expected


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_entries_are_as_before(changed: Path, tool: str) -> None:
    """The judges read the values of the renamed ntuple."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    (dump,) = judge(tool, [{"file": str(changed), "ntuple": "dir/renamed"}], "file-operations")
    ours = tupelo_dump(f"{changed}:dir/renamed", "file-operations")
    report({tool: dump.messages + agree(ours, dump)})
    ntuple = tupelo.open(f"{changed}:dir/renamed")
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.metadata["name"] == "first"
