"""Files keep their location when the working directory changes."""

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import tupelo


@pytest.fixture
def folders() -> tuple[Path, Path]:
    """Two directories with files of the same names and different values; the process is in the first."""
    made = []
    for number, name in enumerate(["here", "there"]):
        folder = Path(name).absolute()
        folder.mkdir()
        for run in 1, 2:
            with tupelo.recreate(folder / f"run{run}.root") as file:
                file["Events"] = {"x": [10 * number + run]}
        made.append(folder)
    os.chdir(made[0])
    return made[0], made[1]


def values(ntuple: Any) -> list[int]:
    return ntuple["x"].array().tolist()  # type: ignore[no-any-return]


def test_open_files_keep_their_location(folders: tuple[Path, Path]) -> None:
    """Regression: a file of the same name in the new directory was read."""
    opened: list[Any] = [tupelo.open("run1.root"), tupelo.open("run1.root:Events"), tupelo.open("run1.root:Events/x")]
    os.chdir(folders[1])
    for again in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        file, ntuple, field = map(again, opened)
        assert values(file["Events"]) == values(ntuple) == field.array().tolist() == [1]
        assert values(again(file["Events"])) == [1]
        assert ntuple.file_path == str(folders[0] / "run1.root")
    assert opened[1].file_path == "run1.root"


def test_many_files_keep_their_location(folders: tuple[Path, Path]) -> None:
    """Regression: files were opened later, in the new directory."""
    here, there = folders
    not_begun = tupelo.iterate("run?.root:Events", "x")
    begun = tupelo.iterate("run?.root:Events", "x")
    counts = tupelo.num_entries(["run1.root", "run2.root"])
    first = next(begun).x.tolist()
    os.chdir(there)
    assert [first, *(piece.x.tolist() for piece in begun)] == [[1], [2]]
    assert [piece.x.tolist() for piece in not_begun] == [[1], [2]]
    assert [place for place, *_ in counts] == [str(here / "run1.root"), str(here / "run2.root")]
    os.chdir(here)
    _, report = next(tupelo.iterate("run?.root:Events", "x", report=True))
    assert report.file_path == "run1.root"


def test_a_written_file_keeps_its_location(folders: tuple[Path, Path]) -> None:
    """Regression: the finished file was moved into the new directory."""
    here, there = folders
    with tupelo.recreate("new.root") as file:
        os.chdir(there)
        file["Events"] = {"x": [7]}
    os.chdir(here)
    with tupelo.update("run1.root") as file:
        file["Events"].extend({"x": [8]})
        os.chdir(there)
        file["Events"].checkpoint()
        file["Events"].extend({"x": [9]})
    os.chdir(here)
    written = {name: values(tupelo.open({here / name: "Events"})) for name in ("new.root", "run1.root")}
    assert written == {"new.root": [7], "run1.root": [1, 8, 9]}
    assert values(tupelo.open({there / "run1.root": "Events"})) == [11]
    assert {path.name for path in there.iterdir()} == {"run1.root", "run2.root"}


def test_a_copy_compares_files_and_not_names(folders: tuple[Path, Path]) -> None:
    """Regression: a file of the same name in another directory was considered the input."""
    here, there = folders
    ntuple = tupelo.open("run1.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    os.chdir(there)
    assert ntuple.copy("run1.root") == 1
    assert values(tupelo.open("run1.root:Events")) == [1]
    os.link(here / "run1.root", "link.root")
    for same in (here / "run1.root", "link.root"):
        with pytest.raises(tupelo.InvalidArgumentError, match="is the input file"):
            ntuple.copy(same)
