"""What `tupelo merge` writes: ROOT and uproot read ntuples like their parts, and histograms like sums of `hadd`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from panel import REAL_DATA, TUPELO, WORK, agree, judge, real_ntuples, report, root_error, tupelo_dump

import tupelo

FOLDER = WORK / "merged"
NOT_FOR_UPROOT = {
    "test_stl_containers_rntuple_v1-0-0-0.root": "uproot 5.7 counts the elements of variants from the file's start",
}


def run(*arguments: str) -> str:
    """Runs the command; returns its output."""
    return subprocess.run([str(TUPELO), *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def merged() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and the files to which their halves are merged."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        count = int(run("count", uri))
        halves = [FOLDER / f"{number}-{half}.root" for half in (1, 2)]
        for half, entries in zip(halves, (f":{count // 2}", f"{count // 2}:"), strict=True):
            run("copy", "-q", uri, "-o", str(half), "--force", "--entries", entries)
        out = FOLDER / f"{number}.root"
        run("merge", "-q", str(out), *map(str, halves), "--force")
        for half in halves:
            half.unlink()
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_merged_ntuples_are_read_by_others(merged: dict[str, tuple[str, Path]], tool: str, summary: list[str]) -> None:
    """The judge reads the values of the original from its merged halves."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    jobs = [{"file": str(out), "ntuple": name} for name, out in merged.values()]
    dumps = judge(tool, jobs, "merged")
    found = {}
    for uri, dump in zip(merged, dumps, strict=True):
        ours = tupelo_dump(uri, "merged")
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(ours, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples merged from their halves, read by {tool}")


@pytest.fixture(scope="module")
def mixed() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and files to which each is merged with one that is stored in another way, and itself again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        codecs = stored(uri)
        # Only pages that are compressed are encoded for it, too.
        other, out = FOLDER / f"{number}-other.root", FOLDER / f"{number}-mixed.root"
        codec = "zstd" if codecs == {"none"} else "none"
        run("copy", "-q", uri, "-o", str(other), "--force", "--compression", codec)
        run("merge", "-q", str(out), uri, str(other), uri, "--force")
        run("verify", "-q", str(out))
        # All pages stay as they are.
        assert stored(f"{out}:{name}") == codecs | stored(f"{other}:{name}"), uri
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


def stored(uri: str) -> set[str]:
    """The codecs of the pages of an ntuple."""
    found = re.findall(r'"codec": "([^"]*)"', run("ls", "--json", uri))
    return {codec for codecs in found for codec in codecs.split(", ") if codec}


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_other_representations_are_read_by_others(
    mixed: dict[str, tuple[str, Path]], tool: str, summary: list[str]
) -> None:
    """The judge reads the entries of the original three times, with pages of two codecs and encodings."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    dumps = judge(tool, [{"file": str(out), "ntuple": name} for name, out in mixed.values()], "mixed")
    found = {}
    for uri, dump in zip(mixed, dumps, strict=True):
        one = tupelo_dump(uri, "mixed")
        thrice = one.with_suffix(".thrice")
        thrice.write_bytes(one.read_bytes() * 3)
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(thrice, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples merged with pages that are stored in two ways, read by {tool}")


def test_rounded_encodings_are_not_mixed(tmp_path: Path, summary: list[str]) -> None:
    """Defect: ROOT took the bits and the range of one encoding for those of all, and aborted or read other values."""
    encodings = [
        None,
        "Real32Trunc(14)",
        "Real32Trunc(20)",
        "Real32Quant(16,-10,10)",
        "Real32Quant(16,-20,20)",
        "Real16",
    ]
    files = []
    for number, encoding in enumerate(encodings):
        file = tmp_path / f"{number}.root"
        with tupelo.recreate(file) as out:
            ntuple = out.mkrntuple("n", {"x": "float"}, encodings={"x": encoding} if encoding else {})
            ntuple.extend({"x": [number + 0.1, -0.7, 3.14159]})
        files.append(file)
    pairs = [(one, other) for one in files for other in files]
    merged, expected = [], []
    for number, (one, other) in enumerate(pairs):
        out = tmp_path / f"merged{number}.root"
        run("merge", "-q", str(out), str(one), str(other))
        merged.append({"file": str(out), "ntuple": "n"})
        expected.append(
            [x for file in (one, other) for x in tupelo.open(f"{file}:n")["x"].array(library="np").tolist()]
        )
        assert tupelo.open(f"{out}:n")["x"].array(library="np").tolist() == expected[-1], (one, other)
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    found = {}
    for one, dump in zip(merged, judge("root", merged, "rounded"), strict=True):
        found[one["file"]] = dump.messages + agree(tupelo_dump(f"{one['file']}:n", "rounded"), dump)
    report(found)
    summary.append(f"{len(found)} pairs of encodings of floating-point numbers merged, read by root")


@pytest.fixture(scope="module")
def widened() -> dict[str, tuple[str, Path]]:
    """Real ntuples, and files with the first half of their fields to which the others were added."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, (path, name) in enumerate(real_ntuples()):
        uri = f"{path}:{name}"
        fields = list(tupelo.open(path)[name].keys(recursive=False))
        if len(fields) < 2:
            continue
        out = FOLDER / f"{number}-wide.root"
        run("copy", "-q", uri, "-o", str(out), "--force", "--fields", ",".join(fields[: len(fields) // 2]))
        if len(tupelo.open(out)[name].keys(recursive=False)) != len(fields) // 2:
            # The counters of lists came along; projected fields become stored ones, in another order.
            continue
        others = ",".join(fields[len(fields) // 2 :])
        run("append", "-q", f"{out}:{name}", uri, "--as-fields", "--fields", others)
        run("verify", "-q", str(out))
        made[uri] = (name, out)
    if not made:
        pytest.skip("no real files")
    return made


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_late_fields_are_read_by_others(widened: dict[str, tuple[str, Path]], tool: str, summary: list[str]) -> None:
    """The judge reads the values of the original, in which all fields were written together."""
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    dumps = judge(tool, [{"file": str(out), "ntuple": name} for name, out in widened.values()], "widened")
    found = {}
    for uri, dump in zip(widened, dumps, strict=True):
        ours = tupelo_dump(uri, "widened")
        if tool != "uproot" or Path(uri.rpartition(":")[0]).name not in NOT_FOR_UPROOT:
            found[uri] = dump.messages + agree(ours, dump)
    report(found)
    summary.append(f"{len(found)} real ntuples whose fields were added in two steps, read by {tool}")


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


NOT_RECUT = re.compile(f"{NOT_MERGED.pattern}|its entries (are not stored|of different forms)|with their classes")
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
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", READ_TREES, str(path), str(out), times],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, (path, done.stderr[-2000:])
            assert "Error" not in done.stderr, (path, done.stderr[-2000:])
            read += int(done.stdout.split()[-1])
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

    def root(program: str, argument: Path) -> str:
        command = [sys.executable, "-W", "ignore", "-c", program, str(argument)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

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

names = ["f", "d", "i", "c", "d2", "d3", "p", "deep/er/p2", "deep/er/labels", "TH1C_edge"]
names += [key.GetName() for key in theirs.GetListOfKeys() if key.GetName().endswith(("_set", "_range", "_overflows"))]
assert len(names) == 26, names
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

    def root(program: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", program, str(folder)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    root(write)
    root(MERGE_BY_ROOT)
    files = [str(folder / f"part{number}.root") for number in (1, 2, 3)]
    done = subprocess.run([str(TUPELO), "merge", str(folder / "ours.root"), *files], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return done.stderr, root(OPEN_BOTH + compare)


def test_histograms_are_summed_as_by_hadd(tmp_path: Path, summary: list[str]) -> None:
    """Contents, errors, statistics and labels are those of ROOT's merger."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    said, found = merged_by_both(tmp_path, WRITE, COMPARE)
    # Of objects that are not histograms, the first one stays, which is said.
    assert "'about'" in said
    assert "'same'" not in said
    summary.append(f"{found} kinds of histograms are summed as by ROOT")


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
        return one.GetWeight(), [[h.GetBinContent(i) for i in range(h.GetNcells())] for h in histograms], [
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
    subprocess.run([sys.executable, "-W", "ignore", "-c", TREE_IN_LIST, str(file)], check=True)
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
    subprocess.run([sys.executable, "-W", "ignore", "-c", WRITE_TREES, str(tmp_path)], check=True)
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

    def root(script: str, *arguments: object) -> list[str]:
        command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def tupelo(*arguments: object) -> None:
        done = subprocess.run([str(TUPELO), *map(str, arguments)], capture_output=True, text=True)
        assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr

    files = [tmp_path / f"{number}.root" for number in (1, 2, 3)]
    for count, file in enumerate(files, start=5):
        root(WRITE_REFERENCES, file, count)
    assert root(COUNT_REFERENCES, files[0]) == ["5", "5", "1", "1"]
    out, both = tmp_path / "out.root", tmp_path / "both.root"
    for options in ([], ["--compression", "lz4:4"], ["--auto-flush", "2"], ["--basket-bytes", "100"]):
        tupelo("copy", f"{files[0]}:R", "-o", out, "--force", *options)
        assert root(COUNT_REFERENCES, out) == ["5", "5", "1", "1"], options
    tupelo("merge", "--force", out, *files)
    assert root(COUNT_REFERENCES, out) == ["18", "18", "3", "3"]
    # ROOT's own merger adds to the numbers of processes in the keys of baskets.
    root(MERGE, both, *files[:2])
    assert root(COUNT_REFERENCES, both) == ["11", "11", "2", "2"]
    tupelo("copy", both, "-o", out, "--force")
    assert root(COUNT_REFERENCES, out) == ["11", "11", "2", "2"]
    tupelo("merge", "--force", out, files[2], both, files[0])
    found, entries, identities, different = root(COUNT_REFERENCES, out)
    assert (found, entries, different) == ("23", "23", "3"), identities
    tupelo("repack", out)
    assert root(COUNT_REFERENCES, out)[:2] == ["23", "23"]
