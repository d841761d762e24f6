"""`tupelo.merge`: many files as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo


def write(path: Path, run: int, **columns: Any) -> None:
    """A file with two ntuples, metadata and a histogram."""
    with tupelo.recreate(path) as file:
        with file.mkrntuple("Events", {"x": "int32", **dict.fromkeys(columns, "float")}) as events:
            events.extend({"x": np.arange(3, dtype=np.int32) + 10 * run, **columns})
            events.metadata["run"] = str(run)
        file["dir/Runs"] = {"run": [run]}
        file["h"] = np.histogram(np.full(run, 0.5), bins=2, range=(0, 1))


def test_files_are_merged_object_by_object(tmp_path: Path) -> None:
    """Ntuples follow each other, histograms are summed."""
    paths = [tmp_path / f"{run}.root" for run in (1, 2, 3)]
    for run, path in enumerate(paths, 1):
        write(path, run)
    out = tmp_path / "out.root"
    steps: list[int] = []
    with pytest.warns(tupelo.TupeloWarning, match="metadata 'run': kept the value '1', '[23]' was not"):
        report = tupelo.merge(paths, out, progress=lambda done, total: steps.append(done))
    assert report == tupelo.MergeReport({"Events": 9, "dir/Runs": 3}, 1, 1, {})
    assert steps[-1] == 12
    with tupelo.open(out) as file:
        assert file["Events"].arrays(library="np")["x"].tolist() == [10, 11, 12, 20, 21, 22, 30, 31, 32]
        assert file["dir/Runs"].arrays(library="np")["run"].tolist() == [1, 2, 3]
        assert file["h"].values().tolist() == [0, 6]
    # Only what is named, from a pattern.
    with pytest.warns(tupelo.TupeloWarning, match="metadata 'run'"):
        assert tupelo.merge(f"{tmp_path}/[12].root:Events", out).num_objects == 0
    assert list(tupelo.open(out).classnames()) == ["Events"]
    with pytest.warns(tupelo.TupeloWarning, match="nor those of 1 more file"):
        assert tupelo.merge(paths, out, compression="lzma").num_entries["Events"] == 9


def test_the_mode_decides_about_missing_fields(tmp_path: Path) -> None:
    """They are refused, read as missing values, or dropped."""
    paths = [tmp_path / "1.root", tmp_path / "2.root"]
    write(paths[0], 1, y=np.ones(3, np.float32))
    write(paths[1], 1)
    out = tmp_path / "out.root"
    with pytest.raises(tupelo.InvalidArgumentError, match="some files lack the fields y; mode='union' keeps them"):
        tupelo.merge(paths, out)
    assert not out.exists()
    tupelo_warning = pytest.warns(tupelo.TupeloWarning, match="some files lack the fields y")
    with tupelo_warning:
        assert tupelo.merge(paths, out, mode="intersect").skipped == {"Events": "some files lack the fields y"}
    assert tupelo.open(f"{out}:Events").keys() == ["x"]
    assert tupelo.merge(paths, out, mode="union").skipped == {}
    assert tupelo.open(f"{out}:Events").arrays()["y"].tolist() == [1, 1, 1, 0, 0, 0]
    with pytest.raises(tupelo.InvalidArgumentError, match="expected mode as one of 'strict'"):
        tupelo.merge(paths, out, mode="all")  # type: ignore[arg-type]
    with pytest.raises(tupelo.InvalidArgumentError, match="is the input file"):
        tupelo.merge(paths, paths[0])


def write_tree(path: Path, **branches: Any) -> Path:
    """Writes a tree of numbers and lists of numbers."""
    types = {name: getattr(values, "dtype", "var * float64") for name, values in branches.items()}
    with uproot.recreate(path) as file:
        file.mktree("t", types).extend(branches)
    return path


def test_trees_are_merged(tmp_path: Path) -> None:
    """Their baskets are kept, and uproot reads the entries of all files."""
    x, v = np.arange(3, dtype=np.int32), ak.Array([[1.5], [], [2.5, 3.5]])
    files = [write_tree(tmp_path / f"{name}.root", x=x, v=v) for name in ("a", "b")]
    write(tmp_path / "c.root", 1)
    out = tmp_path / "out.root"
    report = tupelo.merge([*files, tmp_path / "c.root"], out)
    assert (dict(report.num_entries), report.skipped) == ({"t": 6, "Events": 3, "dir/Runs": 1}, {})
    with uproot.open(f"{out}:t") as tree:
        assert tree["x"].array().tolist() == 2 * x.tolist()
        assert tree["v"].array().tolist() == 2 * v.tolist()
    assert tupelo.open(f"{out}:t")["v"].array().tolist() == 2 * v.tolist()
    # A single tree of each file, and in another codec.
    tupelo.merge([f"{path}:t" for path in files], out, compression="lzma:5")
    assert tupelo.open(out).keys() == ["t"]
    assert uproot.open(f"{out}:t")["x"].compression.name == "LZMA"


def test_trees_with_other_branches_are_refused(tmp_path: Path) -> None:
    """The error names the file and the branch, and nothing is written."""
    x = np.arange(3, dtype=np.int32)
    a = write_tree(tmp_path / "a.root", x=x)
    others = {
        "it has branch 'y', which the first one lacks": {"x": x, "y": x},
        "it lacks branch 'x'": {"y": x},
        "branch 'x' has another type": {"x": x.astype(np.float32)},
    }
    for why, branches in others.items():
        b = write_tree(tmp_path / "b.root", **branches)
        with pytest.raises(tupelo.InvalidArgumentError, match=f"b.root: tree 't': does not fit the first tree: {why}"):
            tupelo.merge([a, b], tmp_path / "out.root")
        assert not (tmp_path / "out.root").exists()


def test_the_mode_decides_about_missing_branches(tmp_path: Path) -> None:
    """They are dropped, or filled with zeros; numbers of other types get the wider one."""
    x, v = np.arange(3, dtype=np.int32), ak.Array([[1.5], [], [2.5, 3.5]])
    a = write_tree(tmp_path / "a.root", x=x, v=v)
    b = write_tree(tmp_path / "b.root", y=x, x=x.astype(np.int64))
    c = write_tree(tmp_path / "c.root", x=x)
    out = tmp_path / "out.root"
    with pytest.warns(tupelo.TupeloWarning, match="some files lack the branches nv, v"):
        report = tupelo.merge([a, c], out, mode="intersect")
    assert uproot.open(f"{out}:t").keys() == ["x"]
    assert dict(report.num_entries) == {"t": 6}
    # Regression: with other types, the branches that some files lack were filled with zeros.
    with pytest.warns(tupelo.TupeloWarning, match="some files lack the branches"):
        report = tupelo.merge([a, b], out, mode="intersect")
    with uproot.open(f"{out}:t") as tree:
        assert tree.keys() == ["x"]
        assert tree["x"].typename == "int64_t"
        assert tree["x"].array().tolist() == 2 * x.tolist()
    report = tupelo.merge([a, b], out, mode="union")
    assert (dict(report.num_entries), report.skipped) == ({"t": 6}, {})
    with uproot.open(f"{out}:t") as tree:
        assert tree["x"].array().tolist() == 2 * x.tolist()
        assert tree["x"].typename == "int64_t"
        assert tree["v"].array().tolist() == [*v.tolist(), [], [], []]
        assert tree["y"].array().tolist() == [0, 0, 0, *x.tolist()]
    d = write_tree(tmp_path / "d.root", x=x > 1)
    for order in ([a, d], [d, a]):
        tupelo.merge(order, out, mode="union")
        with uproot.open(f"{out}:t") as tree:
            assert tree["x"].typename == "int32_t"
            assert sorted(tree["x"].array().tolist()) == [0, 0, 0, 1, 1, 2]


def test_copies_keep_pages(tmp_path: Path) -> None:
    """Without options, the codec of the input stays."""
    path = tmp_path / "a.root"
    with tupelo.recreate(path, compression="lz4:4") as file:
        file["Events"] = {"x": np.arange(100_000, dtype=np.int32)}
    events = tupelo.open(f"{path}:Events")
    events.copy(tmp_path / "kept.root")
    events.copy(tmp_path / "packed.root", compression="lzma:7")
    sizes = [(tmp_path / f"{name}.root").stat().st_size for name in ("a", "kept", "packed")]
    assert abs(sizes[1] - sizes[0]) < 1000
    assert sizes[2] < sizes[0] - 1000
    for name in ("kept", "packed"):
        copied = tupelo.open(f"{tmp_path}/{name}.root:Events")["x"].array(library="np")
        assert (copied == np.arange(100_000)).all()


def test_a_counter_of_a_list_that_a_file_lacks_is_a_field(tmp_path: Path) -> None:
    """Defect: the merge failed where the field counts other things, or lists of another file."""
    with tupelo.recreate(tmp_path / "a.root") as file:
        file.mktree("t", {"x": "std::vector<float>", "y": "int"}).extend({"x": [[1.5], [], [2.5, 3.5]], "y": [1, 2, 3]})
    with tupelo.recreate(tmp_path / "b.root") as file:
        file.mktree("t", {"nx": "int", "y": "int"}).extend({"nx": [2, 0], "y": [4, 5]})
    for first, second in ("a", "b"), ("b", "a"):
        out = tmp_path / f"{first}{second}.root"
        tupelo.merge([f"{tmp_path}/{first}.root", f"{tmp_path}/{second}.root"], out, mode="union")
        merged = {one["y"]: one for one in tupelo.open(out)["t"].arrays().tolist()}
        assert [merged[y]["x"] for y in range(1, 6)] == [[1.5], [], [2.5, 3.5], [], []]
        assert [merged[y]["nx"] for y in range(1, 6)] == [1, 0, 2, 2, 0]


def test_lists_that_a_file_lacks_have_as_many_zeros_as_their_counter_says(tmp_path: Path) -> None:
    """Defect: they were empty, and the array with a counter became a vector."""
    eta, pt = ak.Array([[1.5], [], [2.5, 3.5]]), ak.Array([[1], [], [3, 4]])
    a = {"Muon": ak.zip({"eta": eta, "pt": pt}), "x": eta}
    b = {"Muon": ak.zip({"eta": eta[::-1]})}
    for name, branches in {"a": a, "b": b}.items():
        with uproot.recreate(tmp_path / f"{name}.root") as file:
            file.mktree("t", {key: values.type.content for key, values in branches.items()}).extend(branches)
    for first, second in ("a", "b"), ("b", "a"):
        out = tmp_path / f"{first}{second}.root"
        report = tupelo.merge([f"{tmp_path}/{first}.root", f"{tmp_path}/{second}.root"], out, mode="union")
        assert report.skipped == {}
        with uproot.open(f"{out}:t") as tree, uproot.open(f"{tmp_path}/a.root:t") as original:
            merged = tree.arrays()
            assert tree["Muon_pt"].interpretation == original["Muon_pt"].interpretation
        of_a, of_b = merged[:3], merged[3:]
        if first == "b":
            of_a, of_b = of_b, of_a
        assert of_a["Muon_pt"].tolist() == pt.tolist()
        assert of_b["Muon_pt"].tolist() == [[0, 0], [], [0]]
        assert of_b["x"].tolist() == [[], [], []]
        assert merged["nMuon"].tolist() == ak.num(merged["Muon_eta"]).tolist()
