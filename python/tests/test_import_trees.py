"""`tupelo.import_trees`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot

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
        (tupelo.InvalidArgumentError, "is an ntuple; use Ntuple.copy", {"files": "ntuple.root"}),
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
