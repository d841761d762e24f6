"""Trees that Tupelo writes, judged by ROOT, by uproot and by its own reader."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot
from programs import run_root

import tupelo

CODECS = [f"{codec}:{level}" for codec in ("zlib", "lzma", "lz4", "zstd") for level in (1, 5, 9)]

# Prints, as JSON, the values of all branches of a tree as RDataFrame reads them, and what ROOT says of the tree.
JUDGE = """
import json, sys
import ROOT
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get(sys.argv[2])
clusters, iterator = [], tree.GetClusterIterator(0)
while (entry := iterator()) < tree.GetEntries():
    clusters.append(int(entry))
def plain(value):
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, ROOT.std.string):
        return str(value)
    return [plain(item) for item in value] if hasattr(value, "__len__") else value.item()
frame = ROOT.RDataFrame(tree)
columns = {name: [plain(value) for value in values] for name, values in frame.AsNumpy(sys.argv[3:]).items()}
drawn = int(tree.Draw(sys.argv[3], "", "goff")) if tree.GetEntries() else 0
sizes = [branch.GetBasketSize() for branch in tree.GetListOfBranches()]
print("JSON", json.dumps([tree.GetEntries(), tree.GetTitle(), tree.GetAutoFlush(), clusters, drawn, sizes, columns]))
"""


def by_root(path: Path, tree: str, *columns: str) -> list[Any]:
    """What ROOT says of a tree."""
    answer: list[Any] = run_root(JUDGE, path, tree, *columns)
    return answer


def events(count: int = 1000) -> dict[str, Any]:
    random = np.random.default_rng(5)
    counts = random.poisson(2, count)
    floats = ak.unflatten(random.normal(size=counts.sum()).astype("f4"), counts)
    return {
        "b": random.random(count) > 0.5,
        "i": random.integers(-(2**31), 2**31, count).astype("i4"),
        "u": random.integers(0, 2**16, count).astype("u2"),
        "l": random.integers(-(2**62), 2**62, count),
        "d": random.normal(size=count),
        "a": random.normal(size=(count, 2, 3)).astype("f4"),
        "s": ak.Array(["text " * (number % 60) for number in range(count)]),
        "x": floats,
        "Muon": ak.zip({"pt": floats, "q": ak.values_astype(floats > 0, "i4")}),
        "names": ak.Array([[f"n{item}" for item in range(number % 3)] for number in range(count)]),
    }


def write(path: Path, what: Any, **options: Any) -> Path:
    with tupelo.recreate(path) as file:
        file.mktree("Events", what, "my events", **options)
    return path


def test_flat_and_counted_branches(tmp_path: Path) -> None:
    data = events()
    path = write(tmp_path / "t.root", data)
    own = tupelo.open(f"{path}:Events").arrays()
    with uproot.open(path) as file:
        tree = file["Events"]
        assert tree.title == "my events"
        for name in ("b", "i", "u", "l", "d", "a", "s", "x", "names"):
            expected = ak.to_list(ak.Array(data[name]))
            assert ak.to_list(tree[name].array()) == expected, name
            assert ak.to_list(own[name]) == expected, name
        for member in ("pt", "q"):
            assert ak.to_list(tree[f"Muon_{member}"].array()) == ak.to_list(data["Muon"][member])
        assert tree["nMuon"].array().tolist() == ak.num(data["x"]).tolist() == tree["nx"].array().tolist()
    names = ["d", "i", "l", "x", "Muon_pt", "Muon_q", "names"]
    entries, title, _, _, drawn, _, columns = by_root(path, "Events", *names)
    assert (entries, title, drawn) == (1000, "my events", 1000)
    for name in ("d", "i", "l", "x", "names"):
        assert columns[name] == ak.to_list(ak.Array(data[name])), name
    assert columns["Muon_pt"] == ak.to_list(data["Muon"].pt)


def test_vectors(tmp_path: Path) -> None:
    data = events()
    path = write(tmp_path / "t.root", data, jagged="vector")
    *_, columns = by_root(path, "Events", "d", "x", "names", "Muon.pt")
    assert columns["x"] == ak.to_list(data["x"])
    assert columns["Muon.pt"] == ak.to_list(data["Muon"].pt)
    own = tupelo.open(f"{path}:Events").arrays()
    assert own["Muon"].tolist() == data["Muon"].tolist()
    with uproot.open(path) as file:
        assert file["Events/x"].array().tolist() == data["x"].tolist()
        assert file["Events/Muon/Muon.q"].array().tolist() == data["Muon"].q.tolist()


@pytest.mark.parametrize("split_level", [0, 1, 2, 99])
def test_records_at_split_levels(tmp_path: Path, split_level: int) -> None:
    lists = events(100)["x"]
    record = ak.zip(
        {
            "id": np.arange(100, dtype="i4"),
            "v": lists,
            "s": ak.Array([f"t{number}" for number in range(100)]),
            "inner": ak.zip({"w": np.arange(100) / 8, "v": lists}, depth_limit=1),
        },
        depth_limit=1,
    )
    path = write(tmp_path / "t.root", {"rec": record}, split_level=split_level)
    assert tupelo.open(f"{path}:Events")["rec"].array().tolist() == record.tolist()
    members = {0: [], 1: ["rec.v", "rec.s", "rec.id"]}.get(split_level, ["rec.v", "rec.s", "rec.id", "rec.inner.w"])
    columns = by_root(path, "Events", *members)[-1] if members else {}
    for name in members:
        expected = record
        for member in name.split(".")[1:]:
            expected = expected[member]
        assert columns[name] == expected.tolist(), name
    with uproot.open(path) as file:
        keys = file["Events"].keys()
        assert ("rec./rec.inner/rec.inner.w" in keys) == (split_level > 1)
        if split_level == 0:
            assert keys == ["rec"]
            assert file["Events/rec"].array().tolist() == record.tolist()
        else:
            assert file["Events/rec./rec.v"].array().tolist() == lists.tolist()


@pytest.mark.parametrize("compression", [*CODECS, "none"])
def test_codecs(tmp_path: Path, compression: str) -> None:
    data = {"x": np.arange(5000, dtype="f4"), "s": ak.Array(["text"] * 5000)}
    path = write(tmp_path / "t.root", data, compression=compression)
    with uproot.open(path) as file:
        assert file["Events/x"].array(library="np").tolist() == data["x"].tolist()
        found = file["Events/x"].compression
        assert "none" if found is None else f"{found.name.lower()}:{found.level}" == compression
    assert tupelo.open(f"{path}:Events")["x"].array().tolist() == data["x"].tolist()


def test_every_codec_is_read_by_root(tmp_path: Path) -> None:
    for codec in ("zlib:1", "lzma:7", "lz4:4", "zstd:5", "none"):
        path = write(tmp_path / f"{codec.replace(':', '')}.root", {"x": np.arange(5000.0)}, compression=codec)
        assert by_root(path, "Events", "x")[-1]["x"] == list(range(5000))


@pytest.mark.parametrize(
    ("auto_flush", "expected", "clusters"),
    [
        (400, 400, [0, 400, 800]),
        (-7_000, 512, [0, 512]),
        (-30_000_000, -30_000_000, [0]),
        (0, 0, [0]),
    ],
)
def test_auto_flush(tmp_path: Path, auto_flush: int, expected: int, clusters: list[int]) -> None:
    data = {"x": np.random.default_rng(2).normal(size=1000), "y": np.random.default_rng(3).normal(size=1000)}
    path = write(tmp_path / "t.root", data, auto_flush=auto_flush, basket_bytes=1000, compression="none")
    _, _, found, starts, _, sizes, columns = by_root(path, "Events", "x", "y")
    assert (found, starts) == (expected, clusters)
    assert columns["y"] == data["y"].tolist()
    is_optimised = len(clusters) > 1
    assert all((size > 1000) == is_optimised for size in sizes)
    with uproot.open(path) as file:
        baskets = file["Events/x"].num_baskets
    # Of about 113 entries each before the first flush, one in a cluster after it.
    assert baskets == {400: 4 + 2, -7_000: 5 + 1}.get(auto_flush, 9)


def test_result_does_not_depend_on_batches(tmp_path: Path) -> None:
    data = events(3000)
    table = {name: data[name] for name in ("d", "x", "s")}
    paths = []
    for size in (3000, 700, 13):
        paths.append(tmp_path / f"{size}.root")
        with tupelo.recreate(paths[-1]) as file:
            tree = file.mktree(
                "Events",
                {"d": "double", "x": "std::vector<float>", "s": "std::string"},
                auto_flush=-30_000,
                basket_bytes=2000,
            )
            for start in range(0, 3000, size):
                tree.extend({name: column[start : start + size] for name, column in table.items()})
            assert tree.num_entries == 3000
    baskets = []
    for path in paths:
        with uproot.open(path) as file:
            tree = file["Events"]
            baskets.append([branch.entry_offsets for branch in tree.branches])
    assert baskets[0] == baskets[1] == baskets[2]


def test_flushed_clusters_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        tree = file.mktree("Events", {"x": "int"}, auto_flush=0)
        for size in (10, 20, 30):
            file["Events"].extend({"x": range(size)})
            tree.flush_cluster()
    assert by_root(path, "Events", "x")[3] == [0, 10, 30]
    assert tupelo.open(f"{path}:Events").num_entries == 60


def test_trees_beside_ntuples_and_updates(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        file["ntuple"] = {"x": [1, 2]}
        file.mktree("dir/empty", {"x": "float", "s": "std::string", "v": "std::vector<int>"})
    with tupelo.update(path) as file:
        file.mktree("tree", tupelo.open(f"{path}:ntuple"))
        with pytest.raises(tupelo.InvalidArgumentError, match="ROOT::RNTuple of that name"):
            file.mktree("ntuple", {"x": "int"})
    opened = tupelo.open(path)
    assert opened["ntuple"].arrays().tolist() == opened["tree"].arrays().tolist() == [{"x": 1}, {"x": 2}]
    assert opened["dir/empty"].num_entries == 0
    assert by_root(path, "dir/empty", "x")[0] == 0
    assert by_root(path, "tree", "x")[-1]["x"] == [1, 2]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"m": "std::map<int, float>"}, "field 'm'.* dictionary to read a std::map"),
        ({"o": "std::optional<float>"}, "field 'o'.* optional"),
        ({"v": "std::variant<int, float>"}, "field 'v'.* variant"),
        ({"a": "std::array<std::string, 2>"}, "field 'a'.* fixed array"),
    ],
)
def test_what_has_no_branch_is_refused(tmp_path: Path, what: dict[str, str], message: str) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        with pytest.raises(tupelo.UnsupportedError, match=message):
            file.mktree("Events", what)
        file.mktree("Events", {"x": [1.5]})
    assert tupelo.open(f"{path}:Events").num_entries == 1


@pytest.mark.parametrize(
    "options", [{"split_level": 100}, {"jagged": "list"}, {"basket_bytes": 0}, {"auto_flush": "often"}]
)
def test_invalid_options(tmp_path: Path, options: dict[str, Any]) -> None:
    with tupelo.recreate(tmp_path / "t.root") as file, pytest.raises(tupelo.InvalidArgumentError):
        file.mktree("Events", {"x": "int"}, **options)


def test_data_that_do_not_fit_leave_the_tree_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        tree = file.mktree("Events", {"x": "int"})
        tree.extend({"x": [1]})
        for wrong in ({"x": ["a"]}, {"y": [1]}, {"x": [None]}):
            with pytest.raises(tupelo.InvalidArgumentError):
                tree.extend(wrong)
        tree.extend({"x": [2]})
    assert tupelo.open(f"{path}:Events")["x"].array().tolist() == [1, 2]


def test_export_command(tmp_path: Path) -> None:
    source, path = tmp_path / "n.root", tmp_path / "t.root"
    data = events(500)
    with tupelo.recreate(source) as file:
        file["Events"] = data
    command = [sys.executable, "-m", "tupelo", "export", str(source), str(path), "--to", "ttree"]
    chosen = ["--fields", "x,i,Muon", "--cut", "len(x) > 1", "--entries", ":400", "--compression", "lz4:4"]
    subprocess.run([*command, *chosen, "--auto-flush", "-1000", "--split-level", "0"], check=True)
    x = data["x"][:400]
    kept = x[ak.num(x) > 1]
    assert tupelo.open(f"{path}:Events")["x"].array().tolist() == kept.tolist()
    assert by_root(path, "Events", "x")[-1]["x"] == kept.tolist()
