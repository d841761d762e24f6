"""Trees whose entries are written again at another split level: ROOT reads the same objects of the same classes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from panel import REAL_DATA, TUPELO, root_error
from root_programs import BRANCHES, root

CLASSES = """
import sys, ROOT
ROOT.gInterpreter.Declare('''
struct SplitInterface { virtual ~SplitInterface() {} };
struct SplitFirst : public SplitInterface { int one = 1; std::vector<float> floats; };
struct SplitSecond { double two = 2; };
struct SplitDerived : public SplitFirst, public SplitSecond {
    float own = 3; std::vector<int> numbers; SplitSecond inner;
};
struct SplitBase { int based = 5; };
struct SplitItem : public SplitBase { int value = 4; };
''')
"""

WRITE = (
    CLASSES
    + """
level = int(sys.argv[2])
file = ROOT.TFile(sys.argv[1], "recreate")
tree = ROOT.TTree("t", "objects")
derived, item, items = ROOT.SplitDerived(), ROOT.SplitItem(), ROOT.std.vector("SplitItem")()
tree.Branch("derived.", derived, 32000, level)
tree.Branch("item.", item, 32000, level)
tree.Branch("items", items, 32000, level)
for entry in range(5):
    derived.one, derived.two, derived.own, derived.inner.two = entry, 2 * entry, 3 * entry, -entry
    derived.floats.push_back(entry / 2)
    derived.numbers.push_back(entry * entry)
    item.value, item.based = entry, -entry
    one = ROOT.SplitItem()
    one.value, one.based = entry, -entry
    items.push_back(one)
    tree.Fill()
tree.Write()
file.Close()
"""
)

READ = (
    CLASSES
    + """
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get("t")
for entry in range(tree.GetEntries()):
    tree.GetEntry(entry)
    derived, item = getattr(tree, "derived."), getattr(tree, "item.")
    print(derived.one, list(derived.floats), derived.two, derived.own, list(derived.numbers), derived.inner.two)
    print(item.value, item.based, [(it.value, it.based) for it in tree.items])
"""
)

VALUES = """
import json, sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get(sys.argv[2])
found = {}
for expression in sys.argv[3:]:
    count = tree.Draw(expression, "", "goff")
    found[expression] = [tree.GetV1()[place] for place in range(count)]
print(json.dumps(found))
"""


MAPS = Path(__file__).resolve().parent / "tree_writers" / "maps.py"


def maps(*arguments: str) -> str:
    """What ROOT prints, with the classes of maps.hxx."""
    command = [sys.executable, "-W", "ignore", str(MAPS), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def rewritten(source: str, out: Path, level: int, *options: str) -> list[str]:
    """Writes a tree with another split level; returns the messages."""
    command = [str(TUPELO), "copy", source, "-o", str(out), "--force", "--split-level", str(level), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()


def test_objects_with_bases_are_read_with_their_classes(tmp_path: Path) -> None:
    """ROOT has the classes: it compares their checksums with those that were written."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    for level in (0, 1, 99):
        root(WRITE, str(tmp_path / f"level{level}.root"), str(level))
    expected = root(READ, str(tmp_path / "level0.root"))
    assert len(expected.splitlines()) == 10
    for before in (0, 1, 99):
        for after in (0, 1, 2, 99):
            out = tmp_path / "out.root"
            said = rewritten(str(tmp_path / f"level{before}.root"), out, after)
            assert not [line for line in said if "warning" in line]
            assert root(READ, str(out)) == expected, (before, after)


def test_classes_of_athena_keep_their_names(tmp_path: Path, summary: list[str]) -> None:
    """Names, checksums and versions of the classes of all branches, and values that ROOT reads without the classes."""
    path = REAL_DATA / "atlas_daod_physlite_tree.root"
    if not path.exists():
        pytest.skip("no real files")
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    expressions = [
        "AnalysisElectronsAuxDyn.trackParticleLinks.m_persIndex",
        "AnalysisLargeRJetsAuxDyn.Parent.m_persKey",
        "EventInfoAuxDyn.mcEventWeights",
        "EventInfoAux.eventNumber",
        "AnalysisJetsAuxDyn.NumTrkPt500",
    ]
    tree = "CollectionTree"
    original = json.loads(root(BRANCHES, str(path), tree))
    values = root(VALUES, str(path), tree, *expressions)
    for level in (0, 99):
        out = tmp_path / "out.root"
        said = rewritten(f"{path}:{tree}", out, level, "--skip-unreadable")
        branches = json.loads(root(BRANCHES, str(out), tree))
        assert not [line for line in said if "is stored as" in line]
        same = {name for name, about in branches.items() if original[name] == about}
        assert same == set(branches)
        assert len(same) > 1100
        missing = set(original) - set(branches)
        left_out = [line for line in said if "not copied" in line]
        assert all(any(f"'{name}" in line for line in left_out) for name in missing)
        assert root(VALUES, str(out), tree, *expressions) == values
        summary.append(f"{len(same)} branches of an ATLAS tree at split level {level} have the classes of the original")


def test_maps_of_objects_are_read_with_their_classes(tmp_path: Path, summary: list[str]) -> None:
    """Each object in a map has a head, texts are ``TString`` where they were, and containers are of the same kind."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    folder, out = str(tmp_path), tmp_path / "out.root"
    maps(folder, "build")
    for before in (0, 99):
        source = tmp_path / f"level{before}.root"
        maps(folder, "write", str(source), str(before))
        expected = json.loads(maps(folder, "read", str(source)))
        assert len(expected) == 22
        for after in (0, 99):
            command = [str(TUPELO), "copy", str(source), "-o", str(out), "--force", "--split-level", str(after)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            subprocess.run([str(TUPELO), "verify", str(out)], check=True, capture_output=True)
            found = json.loads(maps(folder, "read", str(out)))
            named = {name for name in expected if f"'{name.rstrip('.')}" in done.stderr or f"{name}_rec" in done.stderr}
            assert done.returncode == (1 if named else 0)
            # A split collection of objects with objects is not read.
            assert before == 99 or not named
            assert {name: found.get(name) for name in expected if name not in named} == {
                name: value for name, value in expected.items() if name not in named
            }
            summary.append(f"{len(expected) - len(named)} branches of maps are equal at split levels {before}, {after}")


CLONES = """
import sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
ROOT.gInterpreter.Declare('''
#include "TBufferJSON.h"
#include "TClonesArray.h"
struct ClonesPlace { float x = 0, y = 0; virtual ~ClonesPlace() {} ClassDefInline(ClonesPlace, 2) };
struct ClonesBase : public TObject { int based = 0; ClassDefInlineOverride(ClonesBase, 4) };
struct ClonesHit : public ClonesBase {
    float value = 0; double numbers[3] = {}; ClonesPlace place, places[2]; std::string text; TString root;
    std::vector<float> list; std::vector<ClonesPlace> objects;
    int count = 0;
    float *pointed = nullptr; //[count]
    ClassDefInlineOverride(ClonesHit, 2)
};
struct ClonesMember { int n = 0; TClonesArray hits{"ClonesHit"}; float z = 0; ClassDefInline(ClonesMember, 2) };
struct ClonesPointer {
    TClonesArray *hits = new TClonesArray("ClonesHit");
    ClassDefInline(ClonesPointer, 2)
};
struct ClonesArrow {
    TClonesArray *hits = new TClonesArray("ClonesHit"); //->
    int n = 0;
    double *pointed = nullptr; //[n]
    ClassDefInline(ClonesArrow, 2)
};
struct ClonesCounted { int m = 0; virtual ~ClonesCounted() {} ClassDefInline(ClonesCounted, 2) };
struct ClonesHeir : public ClonesCounted {
    ClonesCounted other;
    double *far = nullptr; //[m]
    ClassDefInlineOverride(ClonesHeir, 2)
};
void fill(TClonesArray &all, int count, int entry) {
    all.Clear("C");
    for (int k = 0; k < count; ++k) {
        auto *hit = static_cast<ClonesHit *>(all.ConstructedAt(k));
        hit->based = k; hit->value = entry + k * 0.5f; hit->numbers[1] = entry;
        hit->place.x = k; hit->places[1].y = entry;
        hit->text = std::string(k + entry % 3, 'q'); hit->root = TString('r', k); hit->list.assign(k, entry);
        hit->objects.resize(k); hit->count = k;
        delete[] hit->pointed;
        hit->pointed = new float[k];
        for (int place = 0; place < k; ++place) hit->pointed[place] = entry + place;
        hit->SetUniqueID(k == 1 ? 7 : 0);
        hit->SetBit(1 << 14, k == 2);
    }
}
void write_clones(const char *path, int level) {
    TFile file(path, "recreate");
    TTree tree("t", "clones");
    auto *hits = new TClonesArray("ClonesHit"); auto *counted = new ClonesCounted; auto *heir = new ClonesHeir;
    auto *member = new ClonesMember; auto *pointer = new ClonesPointer; auto *arrow = new ClonesArrow;
    tree.Branch("hits", &hits, 32000, level); tree.Branch("dotted.", &hits, 32000, level);
    tree.Branch("counted.", &counted, 32000, level); tree.Branch("heir.", &heir, 32000, level);
    tree.Branch("member.", &member, 32000, level);
    tree.Branch("pointer.", &pointer, 32000, level); tree.Branch("arrow.", &arrow, 32000, level);
    for (int entry = 0; entry < 20; ++entry) {
        fill(*hits, entry % 5, entry); fill(member->hits, entry % 3, entry); fill(*pointer->hits, entry % 4, entry);
        fill(*arrow->hits, (entry + 1) % 3, entry);
        member->n = entry; member->z = -entry; arrow->n = entry % 4;
        delete[] arrow->pointed;
        arrow->pointed = new double[arrow->n];
        for (int place = 0; place < arrow->n; ++place) arrow->pointed[place] = entry * place;
        counted->m = 9; heir->m = entry % 3; heir->other.m = entry % 2;
        delete[] heir->far;
        heir->far = new double[heir->m];
        for (int place = 0; place < heir->m; ++place) heir->far[place] = entry - place;
        tree.Fill();
    }
    tree.Write();
}
std::string text_of(TBranch &branch, int entry) {
    TClass *type = TClass::GetClass(branch.GetClassName());
    void *object = nullptr;
    branch.GetTree()->SetBranchAddress(branch.GetName(), &object, nullptr, type, kOther_t, true);
    branch.GetEntry(entry);
    return TBufferJSON::ConvertToJSON(object, type).Data();
}
''')
"""

WRITE_CLONES = CLONES + "ROOT.write_clones(sys.argv[1], int(sys.argv[2]))"

READ_CLONES = (
    CLONES
    + """
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get("t")
for branch in tree.GetListOfBranches():
    for entry in range(tree.GetEntries()):
        print(branch.GetName(), branch.GetClassName(), entry, ROOT.text_of(branch, entry))
"""
)


def test_arrays_of_clones_and_behind_pointers_stay_what_they_are(tmp_path: Path) -> None:
    """Defects: a ``TClonesArray`` became a vector of another class; ROOT read no numbers behind a pointer."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    source, out, again = (tmp_path / name for name in ("source.root", "out.root", "again.root"))
    root(WRITE_CLONES, str(source), "99")
    expected = root(READ_CLONES, str(source))
    assert len(expected.splitlines()) > 3000
    for level in (0, 1, 2, 99):
        said = rewritten(f"{source}:t", out, level)
        assert not [line for line in said if "warning" in line]
        assert root(READ_CLONES, str(out)) == expected, level
        subprocess.run([str(TUPELO), "verify", str(out)], check=True, capture_output=True)
    assert json.loads(root(BRANCHES, str(out), "t")).keys() == json.loads(root(BRANCHES, str(source), "t")).keys()
    subprocess.run([str(TUPELO), "diff", f"{source}:t", f"{out}:t"], check=True)
    # What was written with arrays of clones can be read, and written, as the original.
    assert not [line for line in rewritten(f"{out}:t", again, 0) if "warning" in line]
    assert root(READ_CLONES, str(again)) == expected


UNDOTTED = (
    CLASSES
    + """
file = ROOT.TFile(sys.argv[1], "recreate")
tree = ROOT.TTree("t", "objects")
derived, other = ROOT.SplitDerived(), ROOT.SplitBase()
tree.Branch("derived", derived, 32000, int(sys.argv[2]))
tree.Branch("other", other, 32000, int(sys.argv[2]))
for entry in range(5):
    derived.one, derived.own, derived.inner.two, other.based = entry, 3 * entry, -entry, entry * entry
    tree.Fill()
tree.SetAlias("twice", "own * 2")
tree.SetWeight(2.5)
tree.BuildIndex("based")
nested = ROOT.TList()
counts = ROOT.TH1D("counts", "", 3, 0, 3)
counts.SetDirectory(ROOT.nullptr)
counts.Fill(1)
for one in (ROOT.TNamed("note", "text"), ROOT.TParameter("double")("sum", 0.5), counts, ROOT.TObjString("alone")):
    ROOT.SetOwnership(one, False)
    (tree.GetUserInfo() if one.GetName() == "note" else nested).Add(one)
ROOT.SetOwnership(nested, False)
tree.GetUserInfo().Add(nested)
friend = ROOT.TFile(sys.argv[1] + ".friend", "recreate")
some = ROOT.TTree("some", "")
some.Fill()
some.Write()
friend.Close()
tree.AddFriend("alias = some", sys.argv[1] + ".friend")
file.cd()
tree.Write()
file.Close()
"""
)

READ_UNDOTTED = (
    CLASSES
    + """
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get("t")
print([branch.GetName() for branch in tree.GetListOfBranches()], tree.GetWeight(), tree.GetAlias("twice"))
for entry in range(tree.GetEntries()):
    tree.GetEntry(entry)
    print(tree.derived.one, tree.derived.own, tree.derived.inner.two, tree.other.based)
first = tree.GetUserInfo().FindObject("note").GetTitle()
found = [tree.GetEntryNumberWithIndex(number * number) for number in range(6)]
print(found, [(it.GetName(), it.GetTitle(), it.GetTreeName()) for it in tree.GetListOfFriends()])
print([ROOT.TBufferJSON.ToJSON(one) for one in tree.GetUserInfo()])
"""
)


def test_all_that_a_tree_has_is_kept(tmp_path: Path) -> None:
    """Defects: a dot was added to names, and weight, aliases, index, friends and user information were lost."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    out = tmp_path / "out.root"
    for before in (0, 99):
        source = tmp_path / f"level{before}.root"
        root(UNDOTTED, str(source), str(before))
        expected = root(READ_UNDOTTED, str(source))
        assert expected.startswith("['derived', 'other'] 2.5 own * 2")
        assert f"[0, 1, 2, 3, 4, -1] [('alias', '{source}.friend', 'some')]" in expected, expected
        for after in (0, 1, 99):
            said = rewritten(str(source), out, after)
            assert not [line for line in said if "warning" in line]
            assert root(READ_UNDOTTED, str(out)) == expected, (before, after)


WRITE_TEXT = """
import sys, ROOT
file = ROOT.TFile(sys.argv[1], "recreate")
tree, text = ROOT.TTree("t", "texts"), ROOT.std.string()
tree.Branch("s", text)
for value in ("hello", "", "w" * 300):
    text.assign(value)
    tree.Fill()
tree.Write()
file.Close()
"""

READ_TEXT = """
import sys, ROOT
file = ROOT.TFile.Open(sys.argv[1])
tree, text = file.Get("t"), ROOT.std.string()
branch = tree.GetBranch("s")
print(branch.GetClassName(), branch.GetClassVersion(), branch.GetCheckSum(), tree.SetBranchAddress("s", text) >= 0)
for entry in range(tree.GetEntries()):
    tree.GetEntry(entry)
    print(str(text))
"""


def test_texts_stay_objects(tmp_path: Path) -> None:
    """Defect: they became leaves of characters, which do not take the address of a string."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    source, out = tmp_path / "in.root", tmp_path / "out.root"
    root(WRITE_TEXT, str(source))
    expected = root(READ_TEXT, str(source))
    assert expected.splitlines()[1:] == ["hello", "", "w" * 300]
    assert expected.startswith("string ")
    assert "True" in expected
    for level in (0, 99):
        assert not [line for line in rewritten(str(source), out, level) if "warning" in line]
        assert root(READ_TEXT, str(out)) == expected, level


def test_the_index_follows_the_entries(tmp_path: Path) -> None:
    """Some entries keep their index under new numbers; a condition leaves none, and this is named."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    source, out = tmp_path / "source.root", tmp_path / "out.root"
    root(UNDOTTED, str(source), "99")

    def copied(*options: str) -> tuple[str, int, str]:
        command = [str(TUPELO), "copy", str(source), "-o", str(out), "--force", "--split-level", "0", *options]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return root(READ_UNDOTTED, str(out)), done.returncode, done.stderr

    read, status, _ = copied("--entries", "1:4")
    assert (status, "[-1, 0, 1, 2, -1, -1]" in read) == (0, True), read
    read, status, said = copied("--cut", "other.based > 3")
    assert (status, "[-1, -1, -1, -1, -1, -1]" in read) == (1, True), read
    assert "not copied: tree 't': its index, because entries are chosen by a condition" in said


def test_real_maps_of_objects_are_read(tmp_path: Path) -> None:
    """Defect: the objects in these maps had one head, which no reader could read."""
    names = ("trees/uproot-issue403.root", "trees/uproot-issue494.root", "wild/*KGrec.root")
    files = [file for name in names for file in sorted(REAL_DATA.glob(name))]
    if not files:
        pytest.skip("no real files")
    out = tmp_path / "out.root"
    for file in files:
        for level in (0, 1, 99):
            rewritten(str(file), out, level, "--skip-unreadable")
            subprocess.run([str(TUPELO), "verify", str(out)], check=True, capture_output=True)
