"""`tupelo.import_trees`."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot
from programs import run_root

import tupelo


@pytest.fixture
def trees() -> list[str]:
    """Two files with the same tree, of 5 and 3 entries."""
    for number, entries in enumerate([5, 3]):
        run = np.arange(entries) + 5 * number
        with uproot.recreate(f"run{number}.root") as file:
            tree = file.mktree(
                "dir/Events", {"pt": "var * float64", "run": "int64", "a.b": "float32"}, title="simulated"
            )
            tree.extend({"pt": [[0.5] * (n % 3) for n in run], "run": run, "a.b": run / 2})
    return ["run0.root:dir/Events", "run1.root:dir/Events"]


def test_trees_become_one_ntuple(trees: list[str]) -> None:
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {"rename": {"run": "runNumber"}, "dots": ":", "compression": "lz4"}
    report = tupelo.import_trees(
        trees, "out.root", validate="full", progress=lambda done, total: seen.append((done, total)), **options
    )
    assert (report.num_entries, report.num_compared, report.skipped) == (8, 8, {})
    assert {(field.branch, field.field) for field in report.fields} >= {
        ("run", "runNumber"),
        ("pt", "pt"),
        ("a.b", "a:b"),
    }
    assert all(field.first_difference is None and field.num_values for field in report.fields)
    assert (seen[0], seen[-1]) == ((0, 8), (8, 8))
    ntuple = tupelo.open("out.root:dir/Events")
    assert ntuple.description == "simulated"
    assert ntuple.arrays(["runNumber", "npt", "a:b"]).tolist() == [
        {"runNumber": n, "npt": n % 3, "a:b": n / 2} for n in range(8)
    ]
    assert ntuple["pt"].array().tolist() == [[0.5] * (n % 3) for n in range(8)]


def test_selections_of_trees(trees: list[str]) -> None:
    steps = {"run0.root": {"object_path": "dir/Events", "steps": [[0, 1], [3, 5]]}}
    report = tupelo.import_trees(steps, "out.root", name="other", fields=["run"], validate="none")
    assert (report.num_entries, report.num_compared, report.fields) == (3, 0, ())
    assert tupelo.open("out.root:other").arrays().tolist() == [{"run": 0}, {"run": 3}, {"run": 4}]
    tree = tupelo.open(trees[1])
    assert isinstance(tree, tupelo.Tree)
    assert tupelo.import_trees(tree, "out.root", collections=False).num_compared == 3
    assert tupelo.open("out.root").only().keys() == ["npt", "pt", "run", "a_b"]


def test_refused_imports_leave_files_alone(trees: list[str]) -> None:
    Path("out.root").write_bytes(b"before")
    with tupelo.recreate("ntuple.root") as file:
        file["Events"] = {"x": [1]}

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    for error, what, arguments in (
        (tupelo.InvalidArgumentError, "an ntuple cannot be imported; copy it", {"files": "ntuple.root"}),
        (tupelo.InvalidArgumentError, "'sample', 'full', 'none'", {"validate": "some"}),
        (tupelo.InvalidArgumentError, "one character", {"dots": "::"}),
        (tupelo.InvalidArgumentError, "two fields would have the name 'pt'", {"rename": {"run": "pt"}}),
        (tupelo.InvalidArgumentError, "the input file", {"path": "run0.root"}),
        (tupelo.NotFoundError, "'runs'", {"fields": "runs"}),
        (TypeError, "import_trees", {"colour": "red"}),
        (tupelo.MissingFileError, "nowhere", {"files": "nowhere.root"}),
        (tupelo.InvalidArgumentError, "empty", {"files": []}),
        (KeyboardInterrupt, None, {"progress": stop}),
    ):
        with pytest.raises(error, match=what):
            tupelo.import_trees(**{"files": trees, "path": "out.root", **arguments})
        assert Path("out.root").read_bytes() == b"before"


def test_branches_of_several_files_are_matched_by_name() -> None:
    for path, columns in {
        "a.root": {"pt": [1.0, 2.0], "n": [1, 2]},
        "b.root": {"n": [3, 4], "pt": [5.0, 6.0]},
        "c.root": {"pt": [7.0], "m": [1]},
        "d.root": {"pt": [7.0], "n": [1.5]},
    }.items():
        with uproot.recreate(path) as file:
            arrays = {name: np.array(values) for name, values in columns.items()}
            file.mktree("t", {name: array.dtype for name, array in arrays.items()}).extend(arrays)
    tupelo.import_trees(["a.root:t", "b.root:t"], "out.root", validate="full")
    assert tupelo.open("out.root:t").arrays(library="np")["pt"].tolist() == [1, 2, 5, 6]
    for other, difference in {
        "c": "some files lack the fields n, m",
        "d": r"field 'n' has type double in .*d\.root, expected std::int64_t as in .*a\.root",
    }.items():
        with pytest.raises(tupelo.InvalidArgumentError, match=f"{other}.root: {difference}"):
            tupelo.import_trees(["a.root:t", f"{other}.root:t"], "never.root")
    assert not Path("never.root").exists()


WRITE = """
import ROOT, sys
for number, path in enumerate(sys.argv[1:]):
    file = ROOT.TFile(path, "RECREATE")
    tree = ROOT.TTree("t", "")
    tree.Branch("x", ROOT.std.vector("int")())
    tree.Fill()
    tree.Write()
    below = file.mkdir("plots/muons")
    below.cd()
    histogram = ROOT.TH1D("pt", "momentum", 4, 0, 4)
    histogram.SetDirectory(0)
    histogram.Fill(2.5, 3 + number)
    # Both functions are of a class that the record names once: the second one refers to the first.
    for name in ("f", "g"):
        histogram.GetListOfFunctions().Add(ROOT.TF1(name, "[0]+x", 0, 4))
    below.WriteObject(histogram, "pt")
    file.WriteObject(ROOT.TObjString("2024"), "year")
    file.Close()
print("JSON null")
"""

READ = """
import json, ROOT, sys
file = ROOT.TFile(sys.argv[1])
histogram = file.Get("plots/muons/pt")
functions = [function.GetName() for function in histogram.GetListOfFunctions()]
year = file.Get("year").GetString().Data()
print("JSON", json.dumps([histogram.GetBinContent(3), histogram.GetTitle(), functions, year]))
"""


def test_objects_are_copied_with_trees(command: str) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stderr

    run_root(WRITE, "a.root", "b.root")
    report = tupelo.import_trees(["a.root:t", "b.root:t"], "out.root", objects=True)
    assert set(report.skipped) == {"plots/muons/pt", "year"}
    expected = [3.0, "momentum", ["f", "g"], "2024"]
    assert run_root(READ, "out.root") == expected
    file = tupelo.open("out.root")
    assert file["plots/muons/pt"].values().tolist() == [0, 0, 3, 0]
    assert file["t"].num_entries == 2
    assert "'year' is not copied: another input" in run("import", "a.root", "b.root", "made.root", "--objects")
    assert run_root(READ, "made.root") == expected
    run("import", "a.root:t", "plots.root", "--objects=plots/**")
    assert sorted(tupelo.open("plots.root").classnames().values()) == [
        "ROOT::RNTuple",
        "TDirectory",
        "TDirectory",
        "TH1D",
    ]
    tupelo.import_trees("b.root:t", "part.root", objects=["plots/**"])
    assert {name.partition(";")[0] for name in tupelo.open("part.root").classnames()} >= {"t", "plots/muons/pt"}
    assert "year" not in tupelo.open("part.root")
    with pytest.raises(tupelo.NotFoundError, match=r"no object named 'yaer' \(available: 'year'"):
        tupelo.import_trees("b.root:t", "never.root", objects="yaer")
    assert not Path("never.root").exists()
