"""What `tupelo merge` and `tupelo copy` make of trees: entries, references and indices stay as they were."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import uproot
from panel import REAL_DATA, TUPELO, report, root_error, run
from root_programs import root, root_without_errors

import tupelo


def real_trees() -> list[Path]:
    """Real files that have trees."""
    return sorted(path for folder in ("", "trees", "wild", "reports") for path in (REAL_DATA / folder).glob("*.root"))


NOT_MERGED = re.compile("before 3|object of an unknown class|its index, which was written by an old version")
"""Why trees are left out."""


def differing_trees(out: Path, original: str) -> tuple[int, list[str]]:
    """The number of trees in a file, and those that are not equal to the ones of the same names in other files."""
    differing = []
    trees = json.loads(run("ls", str(out), "--json"))["trees"]
    for name in (tree["name"] for tree in trees):
        differences = subprocess.run(
            [str(TUPELO), "diff", f"{out}:{name}", f"{original}:{name}"], capture_output=True, text=True
        )
        # Branches that cannot be read in either file make a warning and status 2.
        if differences.returncode and (differences.stdout or "is left out" not in differences.stderr):
            differing.append(f"{name}: {differences.stdout}{differences.stderr}")
    return len(trees), differing


def test_merged_trees_have_the_entries_of_their_files(tmp_path: Path, summary: list[str]) -> None:
    """Every tree of the real files merged with a copy of itself, beside both files as one."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real files")
    found, merged = {}, 0
    for path in real_trees():
        halves = [tmp_path / f"half{number}.root" for number in (1, 2)]
        for half in halves:
            shutil.copy(path, half)
        out = tmp_path / "out.root"
        done = subprocess.run(
            [str(TUPELO), "merge", str(out), *map(str, halves), "--force"], capture_output=True, text=True
        )
        refused = [line for line in done.stderr.splitlines() if "not merged: tree" in line]
        found[str(path)] = [line for line in refused if not NOT_MERGED.search(line)]
        if not out.exists():
            continue
        trees, differing = differing_trees(out, f"{tmp_path}/half?.root")
        merged += trees
        found[str(path)] += differing
        out.unlink()
    report(found)
    summary.append(f"{merged} real trees merged, and equal to their files one after the other")


NOT_RECUT = re.compile(f"{NOT_MERGED.pattern}|references between its objects cannot be moved: a part")
"""Why the entries of trees are not moved to other baskets."""


def test_trees_in_other_baskets_have_the_same_entries(tmp_path: Path, summary: list[str]) -> None:
    """Every tree of the real files with baskets and clusters of other sizes, in another codec."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real files")
    found, copied = {}, 0
    for path in real_trees():
        out = tmp_path / "out.root"
        options = ["--auto-flush", "13", "--basket-bytes", "2kB", "--compression", "lz4:4"]
        done = subprocess.run(
            [str(TUPELO), "copy", str(path), "-o", str(out), "--force", *options], capture_output=True, text=True
        )
        refused = [line for line in done.stderr.splitlines() if "not copied: tree" in line]
        found[str(path)] = [line for line in refused if not NOT_RECUT.search(line)]
        if not out.exists():
            continue
        trees, differing = differing_trees(out, str(path))
        copied += trees
        found[str(path)] += differing
        out.unlink()
    report(found)
    summary.append(f"{copied} real trees in other baskets, equal to the originals")


READ_TREES = """
import sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
original, merged = (ROOT.TFile.Open(path) for path in sys.argv[1:3])
count = 0
for key in original.GetListOfKeys():
    if key.GetClassName() not in ("TTree", "TNtuple", "TNtupleD"):
        continue
    one, two = original.Get(key.GetName()), merged.Get(key.GetName())
    entries = one.GetEntries()
    times = int(sys.argv[3])
    assert two.GetEntries() == times * entries, (key.GetName(), entries, two.GetEntries())
    sizes = [one.GetEntry(entry) for entry in range(entries)]
    assert [two.GetEntry(entry) for entry in range(times * entries)] == times * sizes, key.GetName()
    names = [[leaf.GetName() for leaf in tree.GetListOfLeaves()] for tree in (one, two)]
    assert names[0] == names[1]
    count += 1
print("trees:", count)
"""


def test_root_reads_merged_trees(tmp_path: Path, summary: list[str]) -> None:
    """Each entry of a merged tree has as many bytes for ROOT as in its file, without errors."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    read = 0
    # ROOT cannot read all of the others, nor their originals, without the libraries of their classes.
    names = (
        "HZZ-zstd",
        "HZZ-lz4",
        "HZZ-uncompressed",
        "Zmumu-lzma",
        "Zmumu-zlib",
        "small-evnt-tree-nosplit",
    )
    paths = [REAL_DATA / "trees" / f"uproot-{name}.root" for name in names]
    paths.append(REAL_DATA / "cms_nanoaod_2015_ttbar_tree.root")
    for path in filter(Path.exists, paths):
        out = tmp_path / "out.root"
        for times, command in [
            ("2", ["merge", "-q", str(out), str(path), str(path), "--force"]),
            ("1", ["copy", "-q", str(path), "-o", str(out), "--force", "--auto-flush", "50", "--basket-bytes", "1kB"]),
        ]:
            run(*command)
            read += int(root_without_errors(READ_TREES, path, out, times).split()[-1])
    if not read:
        pytest.skip("no real files")
    summary.append(f"{read} merged trees, and trees in other baskets, read by ROOT")


INDEXED = """
import sys, ROOT
from array import array
for number, order in ((2, "run event x"), (1, "x event run")):
    file = ROOT.TFile(f"{sys.argv[1]}/i{number}.root", "recreate")
    tree = ROOT.TTree("t", "with an index")
    values = {"run": array("i", [number]), "event": array("l", [0]), "x": array("d", [0])}
    for name in order.split():
        tree.Branch(name, values[name], f"{name}/{ {'run': 'I', 'event': 'L', 'x': 'D'}[name]}")
    for entry in range(50):
        values["event"][0], values["x"][0] = entry * 37 % 50, entry
        tree.Fill()
    empty = ROOT.TFile(f"{sys.argv[1]}/empty.root", "recreate")
    tree.CloneTree(0).Write()
    empty.Close()
    file.cd()
    tree.BuildIndex("run", "event")
    tree.Write()
    file.Close()
"""

READ_INDEX = """
import sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get("t")
entries = tree.GetEntries()
assert tree.GetTreeIndex().GetN() == entries
for entry in range(entries):
    tree.GetEntry(entry)
    assert tree.GetEntryNumberWithIndex(tree.run, tree.event) == entry, entry
    assert tree.x * 37 % 50 == tree.event
print(entries)
"""


def test_root_finds_entries_by_the_index_of_merged_trees(tmp_path: Path) -> None:
    """The index of several trees, whose branches have another order, and that of chosen entries."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    root(INDEXED, tmp_path)
    parts = [str(tmp_path / f"i{number}.root") for number in (2, 1)]
    out = tmp_path / "out.root"
    run("merge", "-q", str(out), *parts)
    run("diff", str(out), *(["--on", "run,event"]), f"{tmp_path}/i?.root")
    assert root(READ_INDEX, out) == "100\n"
    # Defect: a tree without entries and index took it away from the others.
    run("merge", "-q", "--force", str(out), parts[0], str(tmp_path / "empty.root"), parts[1])
    assert root(READ_INDEX, out) == "100\n"
    empty_first = [str(TUPELO), "merge", "--force", str(out), str(tmp_path / "empty.root"), *parts]
    done = subprocess.run(empty_first, capture_output=True, text=True)
    assert (done.returncode, "its index, which some of the trees lack" in done.stderr) == (1, True), done.stderr
    run("copy", "-q", *parts, "-o", str(out), "--force", "--cut", "x % 3 == 1")
    assert root(READ_INDEX, out) == "34\n"
    assert json.loads(run("ls", str(out), "--json"))["trees"][0]["entries"] == 34


WRITE_TREES = """
import sys, ROOT
from array import array
folder = sys.argv[1]
for number, code, others in ((1, "I", []), (2, "L", ["w"])):
    file = ROOT.TFile(f"{folder}/w{number}.root", "recreate")
    tree = ROOT.TTree("t", "t")
    buffers = {"x": array({"I": "i", "L": "q"}[code], [0]), "y": array("f", [0])}
    tree.Branch("x", buffers["x"], f"x/{code}")
    tree.Branch("y", buffers["y"], "y/F")
    for name in others:
        buffers[name] = array("d", [0])
        tree.Branch(name, buffers[name], f"{name}/D")
    for i in range(5):
        buffers["x"][0], buffers["y"][0] = number * 10 + i, i / 2
        tree.Fill()
    tree.SetWeight(number)
    tree.SetAlias("z", "x + y" if number == 1 else "x - y")
    note = ROOT.TNamed("note", f"file {number}")
    ROOT.SetOwnership(note, False)
    tree.GetUserInfo().Add(note)
    tree.Write()
    file.Close()
"""


def test_common_branches_get_the_wider_type_and_losses_are_named(tmp_path: Path) -> None:
    """As the help of ``--mode intersect`` says; aliases and user information of later trees have no place."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    root(WRITE_TREES, tmp_path)
    first, second, out = (str(tmp_path / name) for name in ("w1.root", "w2.root", "out.root"))
    lost = [f"alias 'z' of {tmp_path}/", f"user information 'note' of {tmp_path}/", f"weight 2 of {tmp_path}/"]
    intersect = ["merge", out, first, second, "--mode", "intersect", "--skip-unmergeable"]
    done = subprocess.run([str(TUPELO), *intersect], capture_output=True, text=True, check=True)
    # Regression: where entries are decoded, those of later trees were lost without a word.
    assert all(f"not merged: tree 't': {what}w2.root" in done.stderr for what in lost), done.stderr
    with tupelo.open(f"{out}:t") as tree:
        assert tree.keys() == ["x", "y"]
        assert tree["x"].array().tolist() == [*range(10, 15), *range(20, 25)]
    # The same where baskets are moved.
    one, other = str(tmp_path / "one.root"), str(tmp_path / "other.root")
    run("copy", "-q", first, "-o", one, "--exclude", "x")
    run("copy", "-q", second, "-o", other, "--exclude", "w,x")
    done = subprocess.run([str(TUPELO), "merge", out, one, other, "--force"], capture_output=True, text=True)
    assert done.returncode == 1
    assert all(f"not merged: tree 't': {what}other.root" in done.stderr for what in lost), done.stderr
    run("merge", "-q", out, other, other, "--force")


REFERENCES = """
import sys, ROOT
ROOT.gInterpreter.Declare('''
void write(const char *name, int count) {
   TFile file(name, "recreate");
   TTree tree("R", "references");
   auto named = new TNamed("x", "y");
   auto reference = new TRef;
   tree.Branch("named", &named, 32000, 0);
   tree.Branch("reference", &reference, 32000, 0);
   for (int number = 0; number < count; ++number) {
      named->SetName(TString::Format("%s%d", name, number));
      *reference = named;
      tree.Fill();
   }
   tree.Write();
}
int read(const char *name) {
   TFile file(name);
   auto tree = file.Get<TTree>("R");
   TNamed *named = nullptr;
   TRef *reference = nullptr;
   tree->SetBranchAddress("named", &named);
   tree->SetBranchAddress("reference", &reference);
   int found = 0;
   for (int entry = 0; entry < tree->GetEntries(); ++entry) {
      tree->GetEntry(entry);
      found += reference->GetObject() == named;
   }
   return found;
}
''')
"""
WRITE_REFERENCES = REFERENCES + "ROOT.write(sys.argv[1], int(sys.argv[2]))"
COUNT_REFERENCES = (
    REFERENCES
    + """
file = ROOT.TFile.Open(sys.argv[1])
ids = [key.GetTitle() for key in file.GetListOfKeys() if key.GetClassName() == "TProcessID"]
print(ROOT.read(sys.argv[1]), file.Get("R").GetEntries(), len(ids), len(set(ids)))
"""
)
MERGE = """
import sys, ROOT
merger = ROOT.TFileMerger(False)
merger.OutputFile(sys.argv[1])
for file in sys.argv[2:]:
    merger.AddFile(file)
merger.Merge()
"""


def test_references_between_objects_are_kept(tmp_path: Path) -> None:
    """Defect: the identities of processes were not copied, so that no reference was resolved."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")

    def words(script: str, *arguments: object) -> list[str]:
        return root(script, *arguments).split()

    # Forks of one process have its identity.
    python = [sys.executable, "-W", "ignore", "-c"]
    files = [tmp_path / f"{number}.root" for number in (1, 2, 3)]
    for count, file in enumerate(files, start=5):
        subprocess.run([*python, WRITE_REFERENCES, file, str(count)], check=True, capture_output=True)
    assert words(COUNT_REFERENCES, files[0]) == ["5", "5", "1", "1"]
    out, both = tmp_path / "out.root", tmp_path / "both.root"
    for options in ([], ["--compression", "lz4:4"], ["--auto-flush", "2"], ["--basket-bytes", "100"]):
        run("copy", f"{files[0]}:R", "-o", out, "--force", *options)
        assert words(COUNT_REFERENCES, out) == ["5", "5", "1", "1"], options
    run("merge", "--force", out, *files)
    assert words(COUNT_REFERENCES, out) == ["18", "18", "3", "3"]
    # ROOT's own merger adds to the numbers of processes in the keys of baskets.
    words(MERGE, both, *files[:2])
    assert words(COUNT_REFERENCES, both) == ["11", "11", "2", "2"]
    run("copy", both, "-o", out, "--force")
    assert words(COUNT_REFERENCES, out) == ["11", "11", "2", "2"]
    run("merge", "--force", out, files[2], both, files[0])
    found, entries, identities, different = words(COUNT_REFERENCES, out)
    assert (found, entries, different) == ("23", "23", "3"), identities
    run("repack", out)
    assert words(COUNT_REFERENCES, out)[:2] == ["23", "23"]
    for options in (["--auto-flush", "7"], ["--basket-bytes", "400"], ["--compression", "none"]):
        run("copy", both, "-o", out, "--force", *options)
        assert words(COUNT_REFERENCES, out) == ["11", "11", "2", "2"], options
    chosen = tmp_path / "chosen.root"
    run("copy", files[2], both, "-o", f"{chosen}:R", "--force", "--entries", "2:15", "--basket-bytes", "400")
    found, entries, _, different = words(COUNT_REFERENCES, chosen)
    assert (found, entries, different) == ("13", "13", "3")


OBJECTS = """
import sys, ROOT
ROOT.gInterpreter.Declare(r'''
// Lists of objects of several classes, some of them twice. In a circular tree ROOT moves the entries in their basket.
void write(const char *name, int circular) {
   TFile file(name, "recreate");
   if (circular) gROOT->cd();
   TTree tree("t", "objects of any class");
   auto array = new TObjArray;
   auto list = new TList;
   int number = 0;
   tree.Branch("array", "TObjArray", &array, 4000, 0);
   tree.Branch("list", "TList", &list, 2000, 0);
   tree.Branch("number", &number);
   if (circular) tree.SetCircular(circular);
   for (number = 0; number < 50; ++number) {
      array->Clear();
      list->Clear();
      for (int item = 0; item < number % 7; ++item) {
         auto named = new TNamed(TString::Format("%d of %d", item, number), TString("named"));
         array->Add(named);
         array->Add(new TObjString(named->GetName()));
         list->Add(new TNamed("listed", named->GetName()));
         if (item == 3) array->Add(array->First());
      }
      tree.Fill();
   }
   file.cd();
   tree.Write();
}
void read(const char *name) {
   TFile file(name);
   auto tree = file.Get<TTree>("t");
   TObjArray *array = nullptr;
   TList *list = nullptr;
   tree->SetBranchAddress("array", &array);
   tree->SetBranchAddress("list", &list);
   for (int entry = 0; entry < tree->GetEntries(); ++entry) {
      tree->GetEntry(entry);
      for (TCollection *all : std::initializer_list<TCollection *>{array, list})
         for (auto object : *all) {
            auto names = TString(object->ClassName()) + "," + object->GetName() + "," + object->GetTitle();
            printf("%s,%d;", names.Data(), object == array->First());
         }
      printf("\\n");
   }
}
''')
"""
WRITE_OBJECTS = OBJECTS + "ROOT.write(sys.argv[1], int(sys.argv[2]))"
READ_OBJECTS = OBJECTS + "ROOT.read(sys.argv[1])"


def test_objects_keep_their_classes_in_other_baskets(tmp_path: Path) -> None:
    """Defect: branches of objects that name their classes were refused where entries were moved to other baskets."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")

    def titles(path: Path) -> list[list[str]]:
        with uproot.open(f"{path}:t") as tree:
            return [[str(it.member("fTitle")) for it in items] for items in tree["list"].array(library="np")]

    whole, out, again = (tmp_path / name for name in ("whole.root", "out.root", "again.root"))
    root(WRITE_OBJECTS, whole, 0)
    objects = root(READ_OBJECTS, whole).splitlines()
    assert len(objects) == 50
    assert max(line.count("TObjString") for line in objects) == 6
    for source, options in (
        (whole, ["--auto-flush", "7"]),
        (whole, ["--basket-bytes", "1kB", "--compression", "zstd:3"]),
        (out, ["--auto-flush", "11"]),
    ):
        run("copy", source, "-o", again, "--force", *options)
        shutil.move(again, out)
        assert root(READ_OBJECTS, out).splitlines() == objects, options
        assert titles(out) == titles(whole)
        run("diff", whole, out)
        run("verify", out)
    run("copy", out, "-o", again, "--force", "--entries", "17:")
    assert root(READ_OBJECTS, again).splitlines() == objects[17:]
    # A basket whose entries ROOT itself has moved, once: it forgets where they were when it moves them again.
    circular = tmp_path / "circular.root"
    root(WRITE_OBJECTS, circular, 48)
    last = root(READ_OBJECTS, circular).splitlines()
    assert 0 < len(last) < 50
    assert last == objects[-len(last) :]
    run("copy", whole, "-o", again, "--force", "--entries", f"{50 - len(last)}:")
    run("diff", circular, again)
    for options in ([], ["--auto-flush", "5"]):
        run("copy", circular, "-o", again, "--force", *options)
        assert root(READ_OBJECTS, again).splitlines() == last, options


def test_parts_of_split_vectors_are_left_out_alone(tmp_path: Path) -> None:
    """Defect: the branch that counts the items of the other parts brought all parts with it, damaged ones too."""
    path, out = tmp_path / "in.root", tmp_path / "out.root"
    hits = [[{"x": number, "y": 0.5 * item} for item in range(number % 4)] for number in range(60)]
    with tupelo.recreate(path, compression="none") as file:
        file.mktree("t", {"hits": hits}, jagged="vector")
    kept = [[{"x": item["x"]} for item in items] for items in hits]
    run("copy", path, "-o", out, "--exclude", "hits.y")
    assert tupelo.open(f"{out}:t").arrays()["hits"].tolist() == kept
    with uproot.open(f"{out}:t") as tree:
        assert tree.arrays().fields == ["hits.x"]
        assert tree["hits.x"].array().tolist() == [[item["x"] for item in items] for items in hits]
    run("verify", out)
    # A basket that claims more bytes than it has.
    regions = json.loads(run("layout", path, "--json"))["regions"]
    offset = next(region["offset"] for region in regions if region.get("name") == "hits.y")
    data = bytearray(path.read_bytes())
    data[offset + 6 : offset + 10] = (1 << 20).to_bytes(4, "big")
    path.write_bytes(data)
    done = subprocess.run(
        [str(TUPELO), "verify", f"{path}:t", "--salvage", str(out), "--force"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "hits.y" in done.stdout + done.stderr
    run("verify", out)
    assert tupelo.open(f"{out}:t").arrays()["hits"].tolist() == kept


def test_classes_that_only_a_later_tree_has_keep_their_names(tmp_path: Path) -> None:
    """Defect: where branches are missing, the names of classes were those that the first file has."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real files")
    objects, numbers = REAL_DATA / "trees" / "uproot-issue-214.root", tmp_path / "numbers.root"
    with tupelo.recreate(numbers) as file:
        file.mktree("E", {"x": [1, 2, 3]})

    def classes_of(*inputs: Path) -> list[str]:
        out = tmp_path / "out.root"
        command = [str(TUPELO), "merge", "--mode", "union", str(out), *map(str, inputs), "--force"]
        # The class of some pointers is not in the file.
        done = subprocess.run([*command, "--skip-unmergeable"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with uproot.open(out) as file:
            # The name of what lacks a member tells which one.
            return sorted({name for name in file.file.streamers if name[0] != "T" or name == "TTimeStamp"})

    found = [classes_of(objects, numbers), classes_of(numbers, objects)]
    assert found[0] == found[1]
    assert "TTimeStamp" in found[0]
