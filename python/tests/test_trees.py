"""TTrees, by the same calls as ntuples."""

import json
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot
from http_server import Server

import tupelo

PT = [[31.5, 7.25], [], [12.0], [5.0, 4.0, 3.0]]


def write(path: Path, first: int = 0, entries: int = 400, **options: Any) -> Path:
    """A tree of several baskets: numbers, arrays with a shared counter, fixed arrays."""
    run = np.arange(first, first + entries, dtype=np.int64)
    lists = ak.Array([PT[entry % 4] for entry in run])
    with uproot.recreate(path, **options) as file:
        tree = file.mktree(
            "Events",
            {"run": np.dtype("int64"), "ok": np.dtype("bool"), "p": np.dtype(("f4", (3,))), "pt": "var * float64"},
            title="simulated",
        )
        for part in np.array_split(np.arange(entries), 4):
            tree.extend(
                {
                    "run": run[part],
                    "ok": run[part] % 3 == 0,
                    "p": np.stack([run[part]] * 3, axis=1).astype("f4"),
                    "pt": lists[part],
                }
            )
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "run1.root")


def test_a_tree_is_a_table(path: Path) -> None:
    with tupelo.open(path) as file:
        assert file.keys() == ["Events"]
        assert "Events" in file
        assert file.only() == file["Events"] or file.only().num_entries == 400
    tree = tupelo.open(f"{path}:Events")
    assert isinstance(tree, tupelo.Tree)
    assert repr(tree) == "<tupelo.Tree 'Events' (5 fields, 400 entries)>"
    assert (tree.class_name, tree.num_entries, tree.description) == ("TTree", 400, "simulated")
    assert tree.typenames()["pt"] == "ROOT::VecOps::RVec<double>"
    assert tree.branches == {name: name for name in tree}
    assert (tree.unreadable, tree.friends, tree.index, tree.aliases) == ({}, [], None, {})
    assert tree.arrays(["pt"], entry_stop=2).tolist() == [{"pt": [31.5, 7.25]}, {"pt": []}]


@pytest.mark.parametrize("compression", [None, uproot.ZLIB(1), uproot.LZMA(1), uproot.LZ4(1), uproot.ZSTD(1)])
def test_every_range_is_that_of_uproot(tmp_path: Path, compression: Any) -> None:
    path = write(tmp_path / "tree.root", compression=compression)
    ours, theirs = tupelo.open(f"{path}:Events"), uproot.open(f"{path}:Events")
    for start, stop in [(0, 400), (0, 1), (99, 101), (100, 200), (150, 399), (399, 400), (7, 7)]:
        found = ours.arrays(entry_start=start, entry_stop=stop)
        expected = theirs.arrays(entry_start=start, entry_stop=stop)
        assert ak.array_equal(found, expected, dtype_exact=False, check_parameters=False), (start, stop)
    assert ours["run"].array(library="np").tolist() == list(range(400))


def test_cuts_expressions_and_batches(path: Path) -> None:
    tree = tupelo.open(f"{path}:Events")
    assert tree.arrays("sum(pt)", cut="ok and run < 10")["sum(pt)"].tolist() == [38.75, 12.0, 12.0, 0.0]
    batches = list(tree.iterate(["run", "pt"], step_size=70))
    assert [len(batch) for batch in batches] == [70] * 5 + [50]
    assert ak.concatenate(batches).run.tolist() == list(range(400))
    assert tree.take([399, 0], ["run"]).run.tolist() == [399, 0]
    assert tree.hist("run", bins=4, range=(0, 400)).values().tolist() == [100] * 4
    assert tree.arrays(["p"], library="np")["p"].shape == (400, 3)


def test_many_trees_are_one_sequence(tmp_path: Path) -> None:
    for run in range(3):
        write(tmp_path / f"run{run}.root", first=400 * run)
    pattern = f"{tmp_path}/run*.root:Events"
    assert tupelo.concatenate(pattern, ["run"]).run.tolist() == list(range(1200))
    assert sum(len(batch) for batch in tupelo.iterate(pattern, ["pt"], step_size=500)) == 1200
    tree = pickle.loads(pickle.dumps(tupelo.open(f"{tmp_path}/run1.root:Events")))
    assert isinstance(tree, tupelo.Tree)
    assert tree["run"].array()[0] == 400


def test_trees_are_read_over_http(path: Path) -> None:
    server = Server(path.parent)
    try:
        tree = tupelo.open(f"{server.url}/run1.root:Events")
        assert tree.arrays().tolist() == tupelo.open(f"{path}:Events").arrays().tolist()
    finally:
        server.close()


def test_errors_name_the_branch(path: Path) -> None:
    tree = tupelo.open(f"{path}:Events")
    with pytest.raises(tupelo.NotFoundError, match=r"'pts'.*'pt'"):
        tree["pts"]
    with uproot.open(path) as file:
        branch = file["Events"]["pt"]
        at = branch.member("fBasketSeek")[1] + branch.basket_key(1).fKeylen + 40
    data = bytearray(path.read_bytes())
    data[at : at + 30] = bytes(30)
    path.write_bytes(data)
    with pytest.raises(tupelo.CorruptError, match="tree 'Events': branch 'pt': basket 1: "):
        tupelo.open(f"{path}:Events")["pt"].array()
    assert len(tupelo.open(f"{path}:Events")["run"].array()) == 400


def test_the_command_lists_and_imports(path: Path, command: str) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    listed = json.loads(run("ls", "--json", str(path)))
    assert [(tree["name"], tree["entries"], tree["fields"]) for tree in listed["trees"]] == [("Events", 400, 5)]
    branches = json.loads(run("ls", "--json", f"{path}:Events"))
    assert [field["name"] for field in branches["fields"]] == ["run", "ok", "p", "npt", "pt"]
    assert [field["baskets"] for field in branches["fields"]] == [4] * 5
    assert json.loads(run("dump", f"{path}:Events", "--entries", "0").strip()) == {
        "run": 0, "ok": True, "p": [0, 0, 0], "npt": 2, "pt": [31.5, 7.25],
    }  # fmt: skip
    told = run(
        "import", f"{path}:Events", "ntuple.root", "--rename", "run=number", "--validate", "full", "--report", "r.json"
    )
    assert "compared" in told
    assert "equal" in told
    report = json.loads(Path("r.json").read_text())[0]
    assert report["equal"]
    assert report["entries"] == 400
    assert sum(report["fields"][0]["histogram"]["tree"]) == 400
    ntuple = tupelo.open("ntuple.root:Events")
    tree = tupelo.open(f"{path}:Events")
    assert ntuple.keys(recursive=False) == ["number", "ok", "p", "npt", "pt"]
    assert ntuple["pt"].array().tolist() == tree["pt"].array().tolist()
    assert ntuple["npt"].array().tolist() == tree["npt"].array().tolist()
    assert "_collection0" in ntuple


def test_imports_that_cannot_be_are_refused(path: Path, command: str) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([command, "import", *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    status, text = run(f"{path}:Events", "n.root", "--rename", "rum=x")
    assert status == 1
    assert "'rum'" in text
    assert "'run'" in text
    status, text = run(f"{path}:Events", "n.root", "--rename", "run=ok")
    assert status == 2
    assert "two fields would have the name 'ok'" in text
    assert run(f"{path}:Events")[0] == 2
    assert run(f"{path}:Events", "n.root")[0] == 0
    status, text = run("n.root:Events", "again.root")
    assert status == 2
    assert "is an ntuple" in text
    assert not Path("again.root").exists()


def test_many_files_become_one_ntuple(tmp_path: Path, command: str) -> None:
    for run in range(3):
        write(tmp_path / f"run{run}.root", first=400 * run)
    arguments = [command, "import", f"{tmp_path}/run*.root:Events", "all.root", "--validate", "full"]
    subprocess.run(arguments, check=True, capture_output=True)
    assert tupelo.open("all.root:Events")["run"].array().tolist() == list(range(1200))


def test_the_cache_decides_how_many_requests_there_are(path: Path) -> None:
    tree = tupelo.open(f"{path}:Events", metrics=True)
    expected = tree.arrays()
    requests = {}
    for how in ((0, 0), ("30 MB", 0), ("30 MB", 200), (None, 0)):
        before = tree.metrics.requests
        cached = tree.with_cache(how[0], learn_entries=how[1])
        assert ak.array_equal(cached.arrays(), expected)
        requests[how] = tree.metrics.requests - before
        assert ak.array_equal(pickle.loads(pickle.dumps(cached)).arrays(), expected)
    assert requests[0, 0] == 20
    assert requests["30 MB", 0] < requests["30 MB", 200] < 20
    with pytest.raises(tupelo.InvalidArgumentError, match="learn_entries"):
        tree.with_cache(learn_entries=-1)


def test_manifests_and_partitions_have_trees(tmp_path: Path) -> None:
    for first in (0, 400):
        write(tmp_path / f"part{first}.root", first=first)
    manifest = tupelo.index(str(tmp_path / "part*.root"))
    assert [(one["ntuple"], one["entries"]) for one in manifest["files"]] == [("Events", 400)] * 2
    tree = tupelo.open(f"{tmp_path / 'part0.root'}:Events")
    stored = sum(size for _, _, size in manifest["files"][0]["clusters"])
    assert stored == sum(manifest["files"][0]["field_bytes"]) > 0
    for source in (str(tmp_path / "part*.root:Events"), None):
        plan = tupelo.partitions(source, manifest=None if source else manifest, step_size=150, names=["run", "pt"])
        assert ak.concatenate([part.arrays() for part in plan]).run.tolist() == list(range(800))
    events = tupelo.dask(str(tmp_path / "part*.root:Events"), step_size=150)
    assert events.run.compute().tolist() == list(range(800))
    assert ak.array_equal(events.pt.compute()[:400], tree["pt"].array())


def test_a_nul_in_a_name_is_refused_by_name(tmp_path: Path) -> None:
    """Regression: it was a plain Exception."""
    path = tmp_path / "nul.root"
    with tupelo.recreate(path, compression="none") as file:
        file.mktree("tree", {"aXXXXb": "int32"}).extend({"aXXXXb": np.arange(3, dtype="i4")})
    path.write_bytes(path.read_bytes().replace(b"aXXXXb", b"a\0XXXb"))
    tree = tupelo.open(f"{path}:tree")
    assert isinstance(tree, tupelo.Tree)
    assert tree.keys() == ["a\0XXXb"]
    calls: list[Callable[[], object]] = [
        tree.arrays,
        tree["a\0XXXb"].array,
        lambda: next(tree.iterate()),
        lambda: tupelo.concatenate(f"{path}:tree"),
        lambda: tree.arrow_schema,
    ]
    for call in calls:
        with pytest.raises(tupelo.UnsupportedError, match=r"field 'a\\0XXXb' has a NUL character in its name"):
            call()
