"""What `tupelo merge` writes: ROOT and uproot read ntuples like their parts, and histograms like sums of `hadd`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from panel import TUPELO, WORK, agree, judge, real_ntuples, report, root_error, tupelo_dump

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


WRITE = """
import sys, ROOT
folder = sys.argv[1]
ROOT.TH1.AddDirectory(False)
for number in (1, 2, 3):
    ROOT.gRandom.SetSeed(number)
    file = ROOT.TFile(f"{folder}/h{number}.root", "recreate")
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
    file.cd()
    for histogram in made[:-1]:
        histogram.Write()
    file.mkdir("deep/er").cd()
    made[-1].Write()
    labelled = ROOT.TH1D("labels", "labels", 2, 0, 2)
    labelled.GetXaxis().SetBinLabel(1, "one")
    labelled.GetXaxis().SetBinLabel(2, "two")
    labelled.Fill("one", number)
    labelled.Write()
    file.cd()
    ROOT.TNamed("about", f"file {number}").Write()
    file.Close()
merger = ROOT.TFileMerger(False)
merger.SetPrintLevel(0)
merger.OutputFile(f"{folder}/hadd.root", True)
for number in (1, 2, 3):
    merger.AddFile(f"{folder}/h{number}.root")
assert merger.Merge()
"""

COMPARE = """
import sys, ROOT
import numpy as np
folder = sys.argv[1]
ours, theirs = (ROOT.TFile(f"{folder}/{name}.root") for name in ("ours", "hadd"))

def numbers(histogram):
    cells = range(histogram.GetNcells())
    stats = np.zeros(20)
    histogram.GetStats(stats)
    found = {what: [getattr(histogram, what)(c) for c in cells] for what in ("GetBinContent", "GetBinError")}
    if hasattr(histogram, "GetBinEntries"):
        found["entries of bins"] = [histogram.GetBinEntries(c) for c in cells]
    return found | {"stats": list(stats), "entries": [histogram.GetEntries()], "squares": [histogram.GetSumw2().fN]}

names = ["f", "d", "i", "c", "d2", "d3", "p", "deep/er/p2", "deep/er/labels"]
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


def test_histograms_are_summed_as_by_hadd(tmp_path: Path, summary: list[str]) -> None:
    """Contents, errors, statistics and labels are those of ROOT's merger."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    subprocess.run([sys.executable, "-W", "ignore", "-c", WRITE, str(tmp_path)], check=True)
    files = [str(tmp_path / f"h{number}.root") for number in (1, 2, 3)]
    done = subprocess.run([str(TUPELO), "merge", str(tmp_path / "ours.root"), *files], capture_output=True, text=True)
    # Of objects that are not histograms, the first one stays, which is said.
    assert done.returncode == 1, done.stderr
    assert "'about'" in done.stderr
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPARE, str(tmp_path)], check=True, capture_output=True, text=True
    )
    summary.append(f"{found.stdout.strip()} kinds of histograms are summed as by ROOT")
