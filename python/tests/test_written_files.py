"""New files, directories in them, counters of lists, and what trees become."""

from pathlib import Path

import numpy as np
import pytest
import uproot

import tupelo


def test_create_refuses_files_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "new.root"
    with tupelo.create(path) as file:
        file["Events"] = {"x": [1.5]}
    for error in (FileExistsError, tupelo.ExistingFileError):
        with pytest.raises(error, match="exists; recreate"):
            tupelo.create(path)
    assert tupelo.open(f"{path}:Events").arrays().tolist() == [{"x": 1.5}]


def test_parents_are_made_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new.root"
    with pytest.raises(tupelo.MissingFileError):
        tupelo.recreate(path)
    assert not (tmp_path / "a").exists()
    with tupelo.recreate(path, parents=True) as file:
        file["Events"] = {"x": [1.5]}
    assert path.exists()


def test_directories_without_objects_stay(tmp_path: Path) -> None:
    path = tmp_path / "new.root"
    with tupelo.recreate(path) as file:
        file.mkdir("a/b")
        file.mkdir("a")
        file["c/Events"] = {"x": [1.5]}
        file.mkdir("c")
        with pytest.raises(tupelo.InvalidArgumentError, match="c/Events"):
            file.mkdir("c/Events")
        with pytest.raises(tupelo.InvalidArgumentError, match="directory"):
            file.mkrntuple("a/b", {"x": "int"})
    with tupelo.update(path) as file:
        file.mkdir("a/b/d")
    with uproot.open(path) as file:
        assert file.classnames(cycle=False) == {
            "a": "TDirectory",
            "a/b": "TDirectory",
            "a/b/d": "TDirectory",
            "c": "TDirectory",
            "c/Events": "ROOT::RNTuple",
        }


def test_a_field_with_the_name_of_a_counter_must_agree_with_its_list(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    jets = [{"pt": 1.5}, {"pt": 2.5}]
    with tupelo.recreate(path) as file:
        file.mktree(
            "Events", {"nx": np.array([2, 0], dtype="u4"), "x": [[1, 2], []], "njets": [2, 0], "jets": [jets, []]}
        )
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"nx.*entry 1: it counts the items of 'x', but is 3 while"
        ):
            file.mktree("wrong", {"nx": [2, 3], "x": [[1, 2], [1]]})
        file.mktree("vectors", {"nx": [2, 3], "x": [[1, 2], [1]]}, jagged="vector")
    with uproot.open(path) as file:
        tree = file["Events"]
        assert tree.keys() == ["nx", "x", "njets", "jets_pt"]
        assert (tree["nx"].typename, tree["njets"].typename) == ("uint32_t", "int32_t")
        assert tree["jets_pt"].array().tolist() == [[1.5, 2.5], []]


def test_branches_are_found_by_their_own_names(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        file.mktree("Events", {"rec": [{"a": [1, 2], "b": 1.5}], "x": [1]})
    tree = tupelo.open(f"{path}:Events")
    for name in ("rec.", "rec"):
        assert tree[name].array().tolist() == [{"a": [1, 2], "b": 1.5}]
        assert tree.arrays([name, "x"]).fields == ["rec", "x"]
        assert name in tree
    assert tree["rec.b"].array().tolist() == [1.5]


def test_copies_of_trees_say_that_they_are_ntuples(tmp_path: Path) -> None:
    path = tmp_path / "t.root"
    with tupelo.recreate(path) as file:
        file.mktree("Events", {"x": [[1.5], []], "y": [1, 2]})
    tree = tupelo.open(f"{path}:Events")
    with pytest.warns(tupelo.TupeloWarning, match="copied as an ntuple"):
        assert tree.copy(tmp_path / "copy.root", fields=["x"]) == 2
    assert tupelo.open(f"{tmp_path}/copy.root:Events").arrays().tolist() == [
        {"nx": 1, "x": [1.5]},
        {"nx": 0, "x": []},
    ]
