"""What `tupelo merge` makes of histograms and other objects: the sums of `hadd`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from panel import REAL_DATA, TUPELO, root_error, run
from root_programs import root

WRITE = """
import sys, ROOT
folder = sys.argv[1]
ROOT.TH1.AddDirectory(False)
for number in (1, 2, 3):
    ROOT.gRandom.SetSeed(number)
    file = ROOT.TFile(f"{folder}/part{number}.root", "recreate")
    made = [
        ROOT.TH1F("f", "floats", 20, -3, 3), ROOT.TH1D("d", "doubles", 20, -3, 3), ROOT.TH1I("i", "ints", 5, 0, 5),
        ROOT.TH1C("c", "characters", 5, 0, 5), ROOT.TH2D("d2", "two", 5, -3, 3, 4, -2, 2),
        ROOT.TH3F("d3", "three", 3, -3, 3, 2, -2, 2, 2, -1, 1), ROOT.TProfile("p", "profile", 10, -3, 3),
        ROOT.TProfile2D("p2", "profile", 4, -3, 3, 3, -2, 2),
    ]
    if number != 2:
        made[1].Sumw2()
    for _ in range(1000):
        x, y, z = (ROOT.gRandom.Gaus() for _ in range(3))
        weight = 1 if number == 2 else 0.5 + abs(z)
        made[0].Fill(x)
        made[1].Fill(x, weight)
        made[2].Fill(abs(x))
        made[3].Fill(abs(x))
        made[4].Fill(x, y, weight)
        made[5].Fill(x, y, z)
        # ROOT's merger mixes up contents and entries where only some profiles have weights.
        made[6].Fill(x, y, 0.5 + abs(z))
        made[7].Fill(x, y, z)
    # Statistics are those of the bins where these were set, or where an axis has a range.
    for kind, axes in (("TH1F", 1), ("TH2D", 2), ("TH3I", 3), ("TProfile", 1), ("TProfile2D", 2), ("TH1L", 1)):
        for state in ("set", "range", "overflows"):
            if state == "set" and "Profile" in kind:
                continue
            one = getattr(ROOT, kind)(f"{kind}_{state}", state, *[4, 0, 4] * axes)
            values = [number / 2, 1.5, number][:axes]
            if state == "set":
                one.SetBinContent(*[number] * axes, 5 * number) if number < 3 else one.Fill(*values)
            else:
                one.Fill(*values, *[2.5] * ("Profile" in kind))
                one.Fill(*[3.5] * axes, *[0.5] * ("Profile" in kind))
            if state == "range":
                one.GetXaxis().SetRange(1, 2)
            if state == "overflows":
                one.SetStatOverflows(ROOT.TH1.kConsider)
                one.Fill(*[9] * axes, *[1] * ("Profile" in kind))
            made.insert(0, one)
    edge = ROOT.TH1C("TH1C_edge", "limits", 2, 0, 2)
    edge.SetBinContent(1, -100)
    edge.SetBinContent(2, 100)
    made.insert(0, edge)
    file.cd()
    for histogram in made[:-1]:
        histogram.Write()
    file.mkdir("deep/er", "a title").cd()
    made[-1].Write()
    file.mkdir(f"empty{number}", "nothing in it")
    labelled = ROOT.TH1D("labels", "labels", 2, 0, 2)
    labelled.GetXaxis().SetBinLabel(1, "one")
    labelled.GetXaxis().SetBinLabel(2, "two")
    labelled.Fill("one", number)
    labelled.Write()
    file.cd()
    # Its box of statistics points to it.
    drawn = ROOT.TH1D("drawn", "drawn", 4, 0, 4)
    drawn.Fill(number)
    canvas = ROOT.TCanvas()
    drawn.Draw()
    canvas.Update()
    drawn.Write()
    ROOT.TNamed("about", f"file {number}").Write()
    ROOT.TNamed("same", "in all files").Write()
    file.Close()
"""

COMPARE = """
import numpy as np

def numbers(histogram):
    cells = range(histogram.GetNcells())
    stats = np.zeros(20)
    histogram.GetStats(stats)
    found = {what: [getattr(histogram, what)(c) for c in cells] for what in ("GetBinContent", "GetBinError")}
    if hasattr(histogram, "GetBinEntries"):
        found["entries of bins"] = [histogram.GetBinEntries(c) for c in cells]
    return found | {"stats": list(stats), "entries": [histogram.GetEntries()], "squares": [histogram.GetSumw2().fN]}

names = ["f", "d", "i", "c", "d2", "d3", "p", "deep/er/p2", "deep/er/labels", "TH1C_edge", "drawn"]
names += [key.GetName() for key in theirs.GetListOfKeys() if key.GetName().endswith(("_set", "_range", "_overflows"))]
assert len(names) == 27, names
for path in ("empty1", "empty2", "empty3", "deep/er"):
    own, expected = (file.GetDirectory(path) for file in (ours, theirs))
    assert own.GetTitle() == expected.GetTitle() and own.GetNkeys() == expected.GetNkeys(), path
for name in names:
    one, other = ours.Get(name), theirs.Get(name)
    assert one.ClassName() == other.ClassName() and one.GetTitle() == other.GetTitle(), name
    own, expected = numbers(one), numbers(other)
    for what in expected:
        assert np.allclose(own[what], expected[what], rtol=1e-12, atol=0), (name, what, own[what], expected[what])
assert ours.Get("deep/er/labels").GetXaxis().GetBinLabel(1) == "one"
for file in (ours, theirs):
    drawn = file.Get("drawn")
    assert drawn.GetListOfFunctions().FindObject("stats").GetParent() == drawn, file.GetName()
assert ours.Get("about").GetTitle() == "file 1"
print(len(names))
"""


MERGE_BY_ROOT = """
import sys, ROOT
folder = sys.argv[1]
merger = ROOT.TFileMerger(False)
merger.SetPrintLevel(0)
merger.OutputFile(f"{folder}/hadd.root", True)
for number in (1, 2, 3):
    merger.AddFile(f"{folder}/part{number}.root")
assert merger.Merge()
"""

OPEN_BOTH = """
import sys, ROOT
folder = sys.argv[1]
ours, theirs = (ROOT.TFile(f"{folder}/{name}.root") for name in ("ours", "hadd"))
"""


def merged_by_both(folder: Path, write: str, compare: str) -> tuple[str, str]:
    """Lets Tupelo and ROOT merge what a program writes, and another one compare both.

    Returns what Tupelo said, with its exit status 1, and the program.
    """

    root(write, folder)
    root(MERGE_BY_ROOT, folder)
    files = [str(folder / f"part{number}.root") for number in (1, 2, 3)]
    done = subprocess.run([str(TUPELO), "merge", str(folder / "ours.root"), *files], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return done.stderr, root(OPEN_BOTH + compare, folder).strip()


def test_histograms_are_summed_as_by_hadd(tmp_path: Path, summary: list[str]) -> None:
    """Contents, errors, statistics and labels are those of ROOT's merger."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    said, found = merged_by_both(tmp_path, WRITE, COMPARE)
    # Of objects that are not histograms, the first one stays, which is said.
    assert "'about'" in said
    assert "'same'" not in said
    summary.append(f"{found} kinds of histograms are summed as by ROOT")


WRITE_AXES = """
import sys, ROOT
from array import array
folder = sys.argv[1]
ROOT.TH1.AddDirectory(False)
cuts = {1: ["all", "trigger", "two muons"], 2: ["all", "mass", "trigger"], 3: ["vertex", "all", "a", "b", "c", "d"]}
for number in (1, 2, 3):
    ROOT.gRandom.SetSeed(number)
    file = ROOT.TFile(f"{folder}/part{number}.root", "recreate")
    made = []

    def book(kind, name, *axes):
        made.append(getattr(ROOT, kind)(name, name, *axes))
        return made[-1]

    # Counters of events after each cut, which get a bin for each label.
    for kind in ("TH1D", "TH1F", "TH1I", "TH1C"):
        flow = book(kind, f"{kind}_flow", 2, 0, 2)
        for place, name in enumerate(cuts[number]):
            flow.Fill(name, number + place)
    weighted = book("TH1D", "weighted", 4, 1, 9)
    weighted.Sumw2() if number > 1 else None
    for place, name in enumerate(cuts[number]):
        weighted.Fill(name, 0.5 * number + place)
    table = book("TH2F", "table", 2, 0, 2, 3, 0, 3)
    for place, name in enumerate(cuts[number]):
        table.Fill(name, cuts[number][-1 - place], number)
        table.Fill(cuts[number][0], name, 10)
    # Not filled in the first file, or not in the second.
    for name, empty in ("late", 1), ("early", 2):
        one = book("TH1D", name, 3, 0, 3)
        if number != empty:
            one.Fill("found", number)
            one.Fill(f"found {number}", number)
    same = book("TH1D", "same", 3, 0, 3)
    for name in "xyz":
        same.Fill(name, number)
    # Limits that fit each other.
    limits = {1: (10, 0, 10), 2: (20, -10, 10), 3: (5, 10, 20)}[number]
    for kind in ("TH1D", "TH1I", "TH1C", "TProfile"):
        one = book(kind, f"{kind}_limits", *limits)
        for _ in range(200):
            x = ROOT.gRandom.Uniform(*limits[1:])
            one.Fill(x, *[x * x] * (kind == "TProfile"))
    two = book("TH2D", "two", *limits, 4, 0, 4)
    three = book("TH3F", "three", 2, 0, 2, *limits, *{1: (2, 0, 2), 2: (2, 0, 2), 3: (4, -2, 2)}[number])
    profile = book("TProfile2D", "profile", *limits, 2, 0, 2)
    for _ in range(200):
        x = ROOT.gRandom.Uniform(*limits[1:])
        two.Fill(x, ROOT.gRandom.Uniform(-1, 5), number)
        three.Fill(ROOT.gRandom.Uniform(-1, 3), x, ROOT.gRandom.Uniform(0, 2))
        profile.Fill(x, ROOT.gRandom.Uniform(0, 2), x)
    # Overflows that stay outside, and edges one by one that have the same width.
    outside = book("TH1D", "outside", *{1: (10, 0, 10), 2: (5, 0, 10), 3: (10, 0, 10)}[number])
    edges = array("d", [0, 2, 4, 6]) if number < 3 else array("d", [6, 8, 10])
    steps = book("TH1D", "steps", len(edges) - 1, edges)
    for k in range(50):
        outside.Fill(k - 20)
        steps.Fill(edges[0] + k % 4)
    rounded = book("TH1D", "rounded", 7, 0, 0.7 if number == 1 else sum([0.1] * 7))
    rounded.Fill(0.05 * number)
    # What cannot be summed: other widths, entries that would be inside, edges that differ, labels of some only.
    book("TH1D", "widths", 10 + number, 0, 10).Fill(number)
    for place in (-5, 5, 15):
        book("TH1D", f"inside{place}", *limits).Fill(place, number)
    book("TH1D", "edges", 2, array("d", [0, number, 10])).Fill(1)
    some = book("TH1D", "some", 2, 0, 2)
    some.Fill("one", number) if number == 2 else some.Fill(0.5)
    # A bin with contents and no label, where the next label would be.
    between = book("TH1D", "between", 3, 0, 3)
    for bin in (1, 2, 3)[:number]:
        between.GetXaxis().SetBinLabel(bin, f"bin {bin}")
    between.SetCanExtend(ROOT.TH1.kAllAxes)
    between.SetBinContent(number, number)
    between.SetBinContent(2, 1) if number == 1 else None
    fixed = book("TH1D", "fixed", 2, 0, 2)
    for bin in (1, 2):
        fixed.GetXaxis().SetBinLabel(bin, f"bin {bin * number}")
    fixed.GetXaxis().SetCanExtend(False)
    fixed.SetBinContent(1, number)
    for one in made:
        one.Write()
    file.Close()
"""

COMPARE_AXES = (
    COMPARE.partition("names = [")[0]
    + """

def axes(histogram):
    found = []
    for axis in (histogram.GetXaxis(), histogram.GetYaxis(), histogram.GetZaxis())[:histogram.GetDimension()]:
        labels = [axis.GetBinLabel(bin) for bin in range(1, axis.GetNbins() + 1)]
        found.append((axis.GetNbins(), labels, [axis.GetBinLowEdge(bin) for bin in range(1, axis.GetNbins() + 2)]))
    return found

kept = set(sys.argv[2:])
names = [key.GetName() for key in theirs.GetListOfKeys() if key.GetName() not in kept]
for name in names:
    one, other = ours.Get(name), theirs.Get(name)
    assert one.ClassName() == other.ClassName(), name
    for own, expected in zip(axes(one), axes(other), strict=True):
        assert own[:2] == expected[:2], (name, own, expected)
        assert np.allclose(own[2], expected[2], rtol=1e-12), (name, own, expected)
    own, expected = numbers(one), numbers(other)
    for what in expected:
        assert np.allclose(own[what], expected[what], rtol=1e-6 if "TH1F" in name else 1e-12, atol=0), (
            name, what, own[what], expected[what])
    # It still gets bins for other labels.
    if one.GetXaxis().GetLabels() and name != "same":
        bins = one.GetNbinsX()
        one.Fill(*["another label"] * one.GetDimension(), 1)
        assert "another label" in axes(one)[0][1], name
print(len(names))
"""
)


def test_histograms_with_other_axes_are_summed_as_by_hadd(tmp_path: Path, summary: list[str]) -> None:
    """Bins with equal labels are one bin, and limits become those of all where the bins fit each other."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    refused = ["widths", "inside-5", "inside5", "inside15", "edges", "some", "between", "fixed"]
    said, found = merged_by_both(tmp_path, WRITE_AXES, COMPARE_AXES.replace("sys.argv[2:]", repr(refused)))
    named = re.findall(r"not merged: '([^']*)'", said)
    assert sorted(named) == sorted(refused), said
    summary.append(f"{found} histograms with other axes are summed as by ROOT")


WRITE_OTHERS = """
import sys, ROOT
from array import array
folder = sys.argv[1]
ROOT.TH1.AddDirectory(False)
types = {"int": -3, "Long64_t": 1 << 40, "float": 0.3, "double": 0.1, "bool": True}
bits = {"sum": 0, "multiply": 1 << 16, "max": 1 << 17, "min": 1 << 18, "first": 1 << 19, "last": 1 << 20}
for number in (1, 2, 3):
    file = ROOT.TFile(f"{folder}/part{number}.root", "recreate")
    for type_name, value in types.items():
        for rule, bit in bits.items():
            value_here = number % 2 == 0 if type_name == "bool" else value + number * (1 if rule != "multiply" else 0)
            parameter = ROOT.TParameter[type_name](f"{type_name}_{rule}", value_here)
            parameter.SetBit(bit) if bit else None
            parameter.Write()
    constant = ROOT.TParameter["int"]("constant", 7)
    constant.SetBit(1 << 21)
    constant.Write()
    # Equal in all files, as counters of events often are.
    ROOT.TParameter["Long64_t"]("events", 1000).Write()
    x, y, e = (array("d", [number + 10 * k + i for i in range(number)]) for k in (0, 1, 2))
    graphs = [
        ROOT.TGraph(number, x, y), ROOT.TGraphErrors(number, x, y, e, x),
        ROOT.TGraphAsymmErrors(number, x, y, e, x, y, e),
        ROOT.TGraphBentErrors(number, x, y, e, x, y, e, x, y, e, x), ROOT.TGraph(),
    ]
    for place, graph in enumerate(graphs):
        graph.SetName(f"graph{place}")
        graph.SetTitle(f"graph of file {number}")
        graph.Write()
    efficiency = ROOT.TEfficiency("efficiency", "title", 4, 0, 4)
    for i in range(10 * number):
        efficiency.Fill(i % 3 > 0, i % 4)
    for bin in range(1, 5):
        efficiency.SetBetaBinParameters(bin, bin + 0.5, 2.5)
    efficiency.Write()
    for kind in ("THnSparseD", "THnSparseF", "THnSparseI", "THnSparseL", "THnD", "THnF", "THnI", "THnL"):
        for weighted in (False, True):
            axes = array("i", [3, 40, 5]), array("d", [0, 0, 0]), array("d", [1, 1, 1])
            # The bins of the first file fill its chunk, so that others begin a new one.
            chunk = [4] if "Sparse" in kind else []
            many = getattr(ROOT, kind)(f"{kind}_{weighted}", "many", 3, *axes, *chunk)
            many.Sumw2() if weighted else None
            for i in range(5):
                many.Fill(array("d", [0.1 * i * number, 0.2 * i, 0.9]), number)
            many.Write()
            # Without any bin in the first file.
            none = getattr(ROOT, kind)(f"{kind}_{weighted}_late", "late", 3, *axes, *chunk)
            none.Sumw2() if weighted else None
            none.Fill(array("d", [0.5, -1, 0.5])) if number > 1 else None
            none.Write()
    names = ROOT.TList()
    name = ROOT.TNamed("one", "title")
    names.Add(name)
    names.Write("names", ROOT.TObject.kSingleKey)
    ROOT.TNamed("same", "in all files").Write()
    file.Close()
"""

COMPARE_OTHERS = """

def told(one):
    if one.InheritsFrom("TGraph"):
        points = [tuple(getattr(one, name)(i) for name in ("GetPointX", "GetPointY", "GetErrorXlow", "GetErrorXhigh",
                  "GetErrorYlow", "GetErrorYhigh")) for i in range(one.GetN())]
        return one.GetTitle(), points
    if one.InheritsFrom("TEfficiency"):
        histograms = [one.GetPassedHistogram(), one.GetTotalHistogram()]
        bins = [(one.GetBetaAlpha(bin), one.GetBetaBeta(bin)) for bin in range(1, 5)]
        return one.GetWeight(), bins, [[h.GetBinContent(i) for i in range(h.GetNcells())] for h in histograms], [
            h.GetEntries() for h in histograms]
    if one.InheritsFrom("THnBase"):
        return str(ROOT.TBufferJSON.ToJSON(one))
    return one.GetVal(), [one.TestBit(1 << bit) for bit in range(16, 22)]

left = {"names", "same"}
names = [key.GetName() for key in theirs.GetListOfKeys() if key.GetName() not in left]
for name in names:
    own, expected = ours.Get(name), theirs.Get(name)
    assert own.ClassName() == expected.ClassName(), name
    assert told(own) == told(expected), (name, told(own), told(expected))
print(len(names))
"""


def test_other_objects_are_added_up_as_by_hadd(tmp_path: Path, summary: list[str]) -> None:
    """Parameters, graphs, efficiencies, histograms of many axes. What ROOT adds up and Tupelo does not is named."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    said, found = merged_by_both(tmp_path, WRITE_OTHERS, COMPARE_OTHERS)
    named = re.findall(r"not merged: '([^']*)'", said)
    assert named == ["names"], said
    assert "and 1 more file" in said
    summary.append(f"{found} objects besides histograms are added up as by ROOT")


TREE_IN_LIST = """
import sys, ROOT
file = ROOT.TFile(sys.argv[1], "recreate")
tree = ROOT.TTree("inner", "a tree")
tree.SetDirectory(ROOT.nullptr)
both = ROOT.TList()
both.Add(tree)
both.Write("both", ROOT.TObject.kSingleKey)
ROOT.TNamed("TTree", "").Write()
file.Close()
"""


def test_objects_with_trees_in_them_are_named(tmp_path: Path) -> None:
    """The baskets of a tree in another object would be lost, so `merge` leaves it out and `repack` refuses the file."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    file, out = tmp_path / "list.root", tmp_path / "out.root"
    root(TREE_IN_LIST, file)
    merge, repack = (
        subprocess.run([str(TUPELO), *command], capture_output=True, text=True)
        for command in (["merge", str(out), str(file)], ["repack", str(file)])
    )
    assert merge.returncode == 1
    assert "'both'" in merge.stderr
    assert "TList with a TTree in it" in merge.stderr
    assert [found["path"] for found in json.loads(run("ls", str(out), "--json"))["objects"]] == ["TTree"]
    assert repack.returncode == 1
    assert "TList with a TTree in it" in repack.stderr


COMPARE_REAL = """
import json
compared = 0
for key in theirs.GetListOfKeys():
    own, expected = (json.loads(str(ROOT.TBufferJSON.ToJSON(file.Get(key.GetName())))) for file in (ours, theirs))
    assert own == expected, (key.GetName(), own, expected)
    compared += 1
assert compared, "no objects"
"""


REAL_OBJECTS = {
    "uproot-issue-181.root": "histograms with functions of an old version of ROOT",
    "uproot-issue38c.root": "an efficiency with parameters for each bin",
}


@pytest.mark.parametrize("name", REAL_OBJECTS, ids=REAL_OBJECTS.get)
def test_real_objects_are_added_up(name: str, tmp_path: Path) -> None:
    """Defect: objects with arrays of strings, or with pairs in them, were left out."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    original = REAL_DATA / "uproot" / name
    if not original.exists():
        pytest.skip("no real files")
    files = [tmp_path / f"part{number}.root" for number in (1, 2, 3)]
    for file in files:
        shutil.copy(original, file)
    run("merge", str(tmp_path / "ours.root"), *map(str, files))
    compare = MERGE_BY_ROOT + OPEN_BOTH + COMPARE_REAL
    root(compare, tmp_path)
