"""Trees that are imported and exported keep their classes: ROOT makes objects of them if it has the classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from panel import REAL_DATA, root_error, run
from root_programs import BRANCHES, root

CLASSES = """
import os, sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
ROOT.gInterpreter.Declare('''
enum class NameColour : int { kRed, kBlue };
struct NameBase { int based = 5; };
struct NameItem : public NameBase { int value = 4; };
struct NameHolder : public NameBase {
    std::vector<NameItem> items; NameItem one; float x[3] = {1, 2, 3}; std::string text = "t";
};
struct NamePaint { NameColour colour; };
struct NameHeir : public TObject { int own = 1; };
''')
"""

WRITE = (
    CLASSES
    + """
file = ROOT.TFile(sys.argv[1], "recreate")
tree = ROOT.TTree("t", "objects")
items, holder, heir, other = ROOT.std.vector("NameItem")(), ROOT.NameHolder(), ROOT.NameHeir(), ROOT.NameHeir()
paint = ROOT.NamePaint()
level = int(sys.argv[2])
tree.Branch("items", items, 32000, level)
tree.Branch("holder.", holder, 32000, level)
tree.Branch("heir.", heir, 32000, level)
tree.Branch("referenced.", other, 32000, level)
tree.Branch("paint.", paint, 32000, level)
reference = ROOT.TRef(other)
for entry in range(4):
    one = ROOT.NameItem()
    one.value, one.based = entry, -entry
    items.push_back(one)
    holder.items.push_back(one)
    holder.one.value, holder.based, heir.own = 10 * entry, 7 * entry, entry
    paint.colour = ROOT.NameColour.kBlue if entry % 2 else ROOT.NameColour.kRed
    heir.SetUniqueID(entry)
    tree.Fill()
tree.Write()
file.Close()
"""
)

READ = (
    CLASSES
    + """
reader = ROOT.RNTupleReader.Open("t", sys.argv[1])
items = reader.GetView["std::vector<NameItem>"]("items")
holders = reader.GetView["NameHolder"]("holder")
heirs = reader.GetView["NameHeir"]("heir")
colours = reader.GetView["std::int32_t"]("paint.colour")
for entry in range(4):
    holder, heir = holders(entry), heirs(entry)
    print([(one.value, one.based) for one in items(entry)])
    print([(one.value, one.based) for one in holder.items], holder.one.value, holder.based, list(holder.x), holder.text)
    print(colours(entry), heir.own, heir.GetUniqueID())
sys.stdout.flush()
# Views that outlive their reader crash.
os._exit(0)
"""
)

COLUMNS = """
import json, sys, ROOT
frame = ROOT.RDataFrame(sys.argv[2], sys.argv[1])
names = sys.argv[3:]
found = frame.AsNumpy(names)
def shown(value):
    return [shown(one) for one in value] if hasattr(value, "__len__") else float(value)
print(json.dumps({name: [shown(value) for value in found[name]] for name in names}))
"""


@pytest.mark.parametrize("level", [0, 1, 99])
def test_root_makes_objects_of_imported_records(tmp_path: Path, level: int) -> None:
    """Also of items of split collections, which have the members of bases beside their own."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    tree, ntuple, report = tmp_path / "tree.root", tmp_path / "ntuple.root", tmp_path / "report.json"
    root(WRITE, str(tree), str(level))
    run("import", f"{tree}:t", str(ntuple), "--report", str(report))
    # References point to objects of one, which ROOT would refuse to read, and the other has an enum.
    assert json.loads(report.read_text())[0]["renamed"] == {"NameHeir": "", "NamePaint": ""}
    run("import", f"{tree}:t", "-o", str(ntuple), "--force", "--exclude", "referenced", "--report", str(report))
    assert json.loads(report.read_text())[0]["renamed"] == {"NamePaint": ""}
    expected = []
    for entry in range(4):
        items = [(value, -value) for value in range(entry + 1)]
        expected.append(str(items))
        expected.append(f"{items} {10 * entry} {7 * entry} [1.0, 2.0, 3.0] t")
        expected.append(f"{entry % 2} {entry} {entry}")
    assert root(READ, str(ntuple)).splitlines() == expected
    run("import", f"{tree}:t", "-o", str(ntuple), "--force", "--no-class-names")
    fields = json.loads(run("schema", "--json", str(ntuple)))["fields"]
    assert {field["name"]: field["type"] for field in fields} == dict.fromkeys(
        ["items", "holder", "heir", "referenced", "paint"], ""
    )


def test_trees_of_athena_come_back_from_ntuples(tmp_path: Path) -> None:
    """The tree as an ntuple, as a tree again, and as an ntuple again: containers, classes and values are the same, but
    for sets that ROOT has no dictionary for."""
    path = REAL_DATA / "atlas_daod_physlite_tree.root"
    if not path.exists():
        pytest.skip("no real files")
    first, tree, second, report = (tmp_path / name for name in ("1.root", "2.root", "3.root", "report.json"))
    left_out = "McEventInfo"
    source = f"{path}:CollectionTree"
    run("import", source, str(first), "--as", "EventData", "--exclude", left_out, "--report", str(report))
    checked = json.loads(report.read_text())[0]
    assert (checked["equal"], checked["skipped"], len(checked["fields"])) == (True, [], 1394)
    assert checked["renamed"] == {
        "std::set<std::uint32_t>": "std::vector<std::uint32_t>",
    }
    run("export", f"{first}:EventData", str(tree), "--as", "CollectionTree")
    run("import", f"{tree}:CollectionTree", str(second), "--as", "EventData", "--report", str(report))
    assert json.loads(report.read_text())[0]["renamed"] == {}
    assert run("diff", f"{first}:EventData", f"{second}:EventData") == ""
    types = {field["name"]: field["type"] for field in json.loads(run("schema", "--json", str(first)))["fields"]}
    assert types["AnalysisJets"] == "DataVector<xAOD::Jet_v1>"
    assert types["METAssoc_AnalysisMET"] == "xAOD::MissingETAssociationMap_v1"
    assert types["EventInfo"] == "xAOD::EventInfo_v1"
    links = "std::vector<std::vector<ElementLink<DataVector<xAOD::TrackParticle_v1>>>>"
    assert types["AnalysisElectronsAuxDyn:trackParticleLinks"] == links
    sizes = [len(entry["AnalysisJets"]) for entry in jsonl(first, "AnalysisJets")]
    momenta = [entry["AnalysisJetsAuxDyn:pt"] for entry in jsonl(first, "AnalysisJetsAuxDyn:pt")]
    assert sizes == [len(entry) for entry in momenta]
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    original = json.loads(root(BRANCHES, str(path), "CollectionTree"))
    again = json.loads(root(BRANCHES, str(tree), "CollectionTree"))
    assert set(original) - set(again) == {left_out}
    # The sets, and what has a `long` or a `long long`, which ntuples do not tell apart.
    changed = {"EventInfoAuxDyn.streamTagRobs", "EventInfoAuxDyn.streamTagDets", "METAssoc_AnalysisMETAux"}
    long = {name for name, (class_name, *_) in original.items() if "unsigned long" in class_name}
    assert {name for name, about in again.items() if original[name] != about} <= changed | long
    names = ["AnalysisJetsAuxDyn:pt", "AnalysisJetsAuxDyn:btaggingLink.:_0.m_persIndex"]
    columns = json.loads(root(COLUMNS, str(first), "EventData", *names))
    # Ours are the shortest texts of the floats.
    assert [pytest.approx(entry, rel=1e-6) for entry in momenta] == columns[names[0]]
    found = [entry[names[1].split(".")[0]] for entry in jsonl(first, names[1].split(".")[0])]
    indices = [[link[":_0"]["m_persIndex"] for link in entry] for entry in found]
    assert columns[names[1]] == indices


def jsonl(path: Path, field: str) -> list[dict[str, list]]:
    return [json.loads(line) for line in run("dump", f"{path}:EventData", "--fields", field).splitlines()]


def test_what_root_makes_of_names_without_dictionaries(tmp_path: Path) -> None:
    """It reads columns of members, as of ntuples of ATLAS."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    tree, ntuple = tmp_path / "tree.root", tmp_path / "ntuple.root"
    root(WRITE, str(tree), "99")
    run("import", f"{tree}:t", str(ntuple), "--exclude", "referenced")
    columns = json.loads(root(COLUMNS, str(ntuple), "t", "items.value", "items.:_0.based", "heir.own"))
    assert columns["items.value"] == [[float(value) for value in range(entry + 1)] for entry in range(4)]
    assert columns["items.:_0.based"] == [[float(-value) for value in range(entry + 1)] for entry in range(4)]
    assert columns["heir.own"] == [0.0, 1.0, 2.0, 3.0]
    assert "unknown type" in root(MODEL, ntuple)


MODEL = """
import sys, ROOT
try:
    ROOT.RNTupleReader.Open("t", sys.argv[1]).GetModel()
except Exception as error:
    print(str(error))
"""
