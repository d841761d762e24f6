"""Trees by uproot's interface, compared with uproot."""

import math
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo
import tupelo.uproot_compat as compat

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
REAL = [
    ("trees/uproot-HZZ-zstd.root", "events"),
    ("trees/uproot-Zmumu-zlib.root", "events"),
    ("trees/uproot-sample-6.20.04-zlib.root", "sample"),
    ("trees/uproot-stl_containers.root", "tree"),
    ("trees/uproot-issue-214.root", "E"),
    ("trees/uproot-mc10events.root", "Events"),
    ("trees/uproot-small-evnt-tree-nosplit.root", "tree"),
    ("cms_nanoaod_2015_ttbar_tree.root", "Events"),
    ("atlas_daod_physlite_tree.root", "CollectionTree"),
]
PLAIN = ("float", "double", "int32_t", "float[]", "double[]", "bool")


@pytest.fixture
def trees() -> tuple[Any, Any]:
    """The same tree by Tupelo and by uproot."""
    with uproot.recreate("tree.root") as file:
        types = {"run": "int64", "p": np.dtype(("f4", (3,))), "pt": "var * float64", "x": "float32"}
        tree = file.mktree("dir/Events", types, title="simulated")
        for first in range(0, 60, 20):
            numbers = np.arange(first, first + 20)
            lists = ak.Array([[0.5 * n for n in range(number % 4)] for number in numbers])
            p = np.stack([numbers] * 3, axis=1).astype("f4")
            tree.extend({"run": numbers, "p": p, "pt": lists, "x": numbers.astype("f4") / 4})
    return compat.open("tree.root:dir/Events"), uproot.open("tree.root:dir/Events")


def same(ours: Any, theirs: Any) -> bool:
    return bool(ak.array_equal(ours, theirs, dtype_exact=False, check_parameters=False, equal_nan=True))


def test_trees_have_the_words_of_uproot(trees: tuple[Any, Any]) -> None:
    ours, theirs = trees
    assert isinstance(ours, compat.TTree | compat.behaviors.TTree.TTree)
    assert isinstance(ours, uproot.TTree)
    assert isinstance(ours["pt"], uproot.TBranch)
    assert not isinstance(ours, compat.HasFields | uproot.behaviors.RNTuple.HasFields)
    for word in ("name", "title", "num_entries", "typename", "classname", "aliases", "compressed_bytes"):
        if hasattr(theirs, word):
            assert getattr(ours, word) == getattr(theirs, word), word
    assert ours.keys() == theirs.keys()
    assert ours.typenames() == theirs.typenames()
    assert ours.keys(filter_typename="/float.*/") == theirs.keys(filter_typename="/float.*/")
    assert ours.keys(filter_branch=lambda one: one.num_baskets > 2) == theirs.keys()
    assert [branch.name for branch in ours] == [branch.name for branch in theirs]
    assert ours.common_entry_offsets() == theirs.common_entry_offsets()
    assert "pt" in ours
    assert "pq" not in ours
    for name in theirs:
        mine, other = ours[name.name], theirs[name.name]
        words = ("name", "title", "typename", "top_level", "index", "num_entries", "num_baskets", "entry_offsets")
        for word in (*words, "uncompressed_bytes", "compressed_bytes"):
            assert list(np.ravel(getattr(mine, word))) == list(np.ravel(getattr(other, word))), (name, word)
        assert mine.basket_entry_start_stop(1) == other.basket_entry_start_stop(1)
        assert repr(mine.compression) == repr(other.compression)
        assert repr(mine).split(" at ")[0] == repr(other).split(" at ")[0]
    assert ours["pt"].count_branch is ours["npt"]
    assert ours["pt"].tree is ours
    again = pickle.loads(pickle.dumps(ours["pt"]))
    assert again.array().tolist() == theirs["pt"].array().tolist()


def test_entries_are_those_of_uproot(trees: tuple[Any, Any]) -> None:
    ours, theirs = trees
    for which in ({}, {"entry_start": 15, "entry_stop": 45}, {"entry_start": -3}):
        assert same(ours.arrays(**which), theirs.arrays(**which))
        for name in theirs.keys():  # noqa: SIM118
            assert same(ours[name].array(**which), theirs[name].array(**which))
            mine, other = (one[name].array(**which, library="np") for one in (ours, theirs))
            assert [list(np.ravel(item)) for item in mine] == [list(np.ravel(item)) for item in other]
    assert list(ours.arrays(library="np")) == list(theirs.arrays(library="np"))
    assert ours.arrays(["run", "x"], library="pd").equals(theirs.arrays(["run", "x"], library="pd"))
    for how in (dict, list, tuple):
        assert type(ours.arrays(["run"], how=how)) is how
    assert ours.num_entries_for("1 kB") == theirs.num_entries_for("1 kB")
    batches = [(len(batch), report.start, report.stop) for batch, report in ours.iterate(step_size=25, report=True)]
    assert batches == [(len(b), r.start, r.stop) for b, r in theirs.iterate(step_size=25, report=True)]
    virtual = ours.arrays(virtual=True)
    assert virtual.pt.tolist() == theirs["pt"].array().tolist()
    assert same(ours["pt"].array(virtual=True), theirs["pt"].array())


def test_expressions_are_those_of_uproot(trees: tuple[Any, Any]) -> None:
    ours, theirs = trees
    for expressions, how in (
        (["run", "x * 2"], {"cut": "run > 30"}),
        ("double", {"aliases": {"double": "x + half", "half": "run / 2"}}),
        (["pt + 1"], {"cut": "x > 3"}),
    ):
        mine, other = ours.arrays(expressions, **how), theirs.arrays(expressions, **how)
        assert mine.fields == other.fields
        assert mine.tolist() == other.tolist()
    assert ours.arrays("p*").fields == ["p", "pt"]
    with pytest.raises(KeyError, match=r"no branch is named 'ptt' \(similar branches: 'pt', 'npt'\)"):
        ours.arrays("ptt")
    with pytest.raises(KeyError, match="none of 5 branches matches"):
        ours.arrays(filter_name="nothing*")
    with pytest.raises(tupelo.NotFoundError, match="nowhere"):
        ours.arrays("run + nowhere")


def test_many_files_of_trees(trees: tuple[Any, Any]) -> None:
    theirs = trees[1]
    files = ["tree.root:dir/Events"] * 2
    assert same(compat.concatenate(files, ["run", "pt"]), uproot.concatenate(files, ["run", "pt"]))
    assert sum(len(batch) for batch in compat.iterate(files, step_size=7)) == 120
    assert next(iter(compat.num_entries(files)))[2] == 60
    with compat.recreate("other.root") as file:
        file.mktree("dir/Events", {"run": "int64", "new": "float32"}).extend({"run": [1], "new": [2.5]})
    with pytest.warns(tupelo.TupeloWarning, match="skipped the fields"):
        assert compat.concatenate([files[0], "other.root:dir/Events"]).fields == ["run"]
    union = compat.concatenate([files[0], "other.root:dir/Events"], fields="union")
    assert union[["new", "x"]].tolist()[-2:] == [{"new": None, "x": 14.75}, {"new": 2.5, "x": None}]
    lazy = compat.dask({"tree.root": "dir/Events"}, step_size=20)
    assert lazy.npartitions == 3
    assert lazy.pt.compute().tolist() == theirs["pt"].array().tolist()
    assert ak.sum(lazy.x[lazy.run > 3].compute()) == np.sum(np.arange(4, 60) / 4)
    import dask_awkward as dak

    assert list(dak.necessary_columns(lazy.x[lazy.run > 3]).values()) == [frozenset({"x", "run"})]


@pytest.mark.parametrize("place", REAL, ids=lambda place: str(place[0]))
def test_real_trees_have_the_branches_of_uproot(place: tuple[str, str]) -> None:
    if not (DATA / place[0]).exists():
        pytest.skip(f"no file {place[0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (module.open({DATA / place[0]: place[1]}) for module in (compat, uproot))
    assert ours.keys() == theirs.keys()
    assert ours.keys(recursive=False) == theirs.keys(recursive=False)
    assert math.isclose(ours.compression_ratio, theirs.compression_ratio, rel_tol=0.2)
    count = 0
    for key, branch in list(theirs.items())[::3]:
        assert ours[key].num_baskets == branch.num_baskets, key
        assert ours[key].top_level == branch.top_level
        if len(branch.branches) == 0 and branch.typename in (
            "float",
            "double",
            "int32_t",
            "float[]",
            "double[]",
            "bool",
        ):
            assert ours[key].typename == branch.typename
            assert same(ours[key].array(), branch.array()), key
            count += 1
    assert count or place[1] in ("tree", "E", "CollectionTree", "Events")
    if place[0] == "trees/uproot-mc10events.root":
        # One branch has fewer bytes than its type needs.
        return
    everything = ours.arrays(entry_stop=3)
    assert len(everything) == min(3, theirs.num_entries)
    assert set(everything.fields) <= {branch.name for branch in ours.itervalues()}


def test_objects_of_files_with_trees() -> None:
    with compat.recreate("objects.root") as file:
        file["h"] = np.histogram([0.5, 1.5, 1.5], bins=2)
        tree = file.mktree("dir/t", {"n": "int32", "pt": "var * float32"})
        assert file["dir/t"] is tree
        tree.extend({"n": [1, 2], "pt": [[0.5], []]})
        assert (tree.num_entries, tree.name, repr(tree)) == (2, "t", "<WritableTree '/dir/t'>")
    for module in (compat, uproot):
        with module.open("objects.root") as file:
            assert file["h"].values().tolist() == [1, 2]
            assert file["dir/t"].arrays(["n"]).tolist() == [{"n": 1}, {"n": 2}]
            assert file["dir/t"].num_entries == 2
    assert compat.open("objects.root:dir/t/n").array().tolist() == [1, 2]


def test_split_objects_are_branches() -> None:
    """Branches below others, which are one field for `tupelo.open`."""
    hits = ak.Array([{"hit": {"x": 1.5, "y": {"z": n}}, "n": n} for n in range(4)])
    with tupelo.recreate("split.root") as file:
        file.mktree("t", hits)
    tree, theirs = compat.open("split.root:t"), uproot.open("split.root:t")
    assert tree.keys() == theirs.keys()
    assert tree.arrays().fields == theirs.arrays().fields
    hit = tree["hit."]
    assert (len(hit), hit.parent is tree, hit.branches[0].parent is hit) == (2, True, True)
    assert tree["hit./hit.x"] is tree["hit.x"] is hit["hit.x"]
    found = tree.arrays(["hit./hit.x", "hit.y.z"], cut="hit.y.z > 1 and hit.x > 0")
    assert found.tolist() == [{"hit./hit.x": 1.5, "hit.y.z": n} for n in (2, 3)]
    assert hit.array().tolist()[3] == {"hit.x": 1.5, "hit.y": {"hit.y.z": 3}}
    assert hit.arrays().tolist()[3] == {"hit.x": 1.5, "hit.y.z": 3}
    assert tree.arrays(filter_name="hit.").tolist()[3] == {"hit.": {"hit.x": 1.5, "hit.y": {"hit.y.z": 3}}}
    assert tree.arrays(filter_name=["hit.", "hit.x", "hit.y.z"]).fields == ["hit.x", "hit.y.z"]
    assert tree["hit.x"].interpretation.awkward_form(None).primitive == "float64"
    assert tree["hit.x"].array(tree["hit.x"].interpretation).tolist() == [1.5] * 4
    with pytest.raises(tupelo.UnsupportedError, match="interpretation="):
        tree["hit.x"].array(">i8")
    with pytest.raises(KeyError, match=r"similar branches: 'hit\."):
        tree["hit"]
