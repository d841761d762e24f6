"""Many files with different fields, such as NanoAOD's trigger paths."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import tupelo

BOTH = [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}]
UNION = [
    {"x": 1, "old": True, "v": [1], "new": None},
    {"x": 2, "old": False, "v": [], "new": None},
    {"x": 3, "old": None, "v": None, "new": 0.5},
    {"x": 4, "old": None, "v": None, "new": 1.5},
]
LEFT_OUT = "some files lack: old, v, new"


@pytest.fixture
def files(tmp_path: Path) -> str:
    with tupelo.recreate(tmp_path / "run1.root") as file:
        file["Events"] = {"x": [1, 2], "old": [True, False], "v": [[1], []]}
    with tupelo.recreate(tmp_path / "run2.root") as file:
        file["Events"] = {"new": [0.5, 1.5], "x": [3, 4]}
    return f"{tmp_path}/run?.root:Events"


def test_common_fields_are_read(files: str) -> None:
    # Regression: the second file raised an error.
    with pytest.warns(tupelo.TupeloWarning, match=LEFT_OUT) as told:
        assert tupelo.concatenate(files).tolist() == BOTH
    assert len(told) == 1
    with pytest.warns(tupelo.TupeloWarning, match=LEFT_OUT):
        assert [entry for piece in tupelo.iterate(files) for entry in piece.tolist()] == BOTH
    with pytest.warns(tupelo.TupeloWarning, match=LEFT_OUT):
        assert tupelo.scan(files).collect().to_dicts() == BOTH
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tupelo.concatenate(files, "x").tolist() == BOTH
        assert tupelo.hist(files, "x", bins=4).values().tolist() == [1, 1, 1, 1]


def test_a_union_has_missing_values(files: str) -> None:
    assert tupelo.concatenate(files, fields="union").tolist() == UNION
    assert [entry for piece in tupelo.iterate(files, fields="union", step_size=1) for entry in piece.tolist()] == UNION
    assert tupelo.scan(files, fields="union").collect().to_dicts() == UNION
    assert tupelo.concatenate(files, fields="union", cut="x > 2").tolist() == UNION[2:]
    arrays = tupelo.concatenate(files, fields="union", library="np")
    assert arrays["x"].dtype == np.int64
    assert arrays["old"].tolist() == [True, False, None, None]
    assert [None if value is None else value.tolist() for value in arrays["v"]] == [[1], [], None, None]
    pieces = list(tupelo.iterate(files, fields="union", library="arrow"))
    assert pieces[0].schema == pieces[1].schema
    only = tupelo.concatenate(files, filter_name="old", fields="union")
    assert only.tolist() == [{"old": True}, {"old": False}, {"old": None}, {"old": None}]


def test_lists_of_different_cpp_types_are_one_column(tmp_path: Path) -> None:
    # Regression: a union refused files of ROOT (RVec) and of Tupelo (std::vector) together.
    for name, type_name in ("a", "std::vector<float>"), ("b", "ROOT::VecOps::RVec<float>"):
        with tupelo.recreate(tmp_path / f"{name}.root") as file:
            file.mkrntuple("Events", {"v": type_name, name: "int32_t"}).extend({"v": [[1.5], []], name: [1, 2]})
    read = tupelo.concatenate(f"{tmp_path}/?.root", fields="union")
    assert read.v.tolist() == [[1.5], [], [1.5], []]
    assert read.b.tolist() == [None, None, 1, 2]
    with pytest.warns(tupelo.TupeloWarning, match="some files lack: a, b"):
        assert tupelo.concatenate(f"{tmp_path}/?.root").v.tolist() == [[1.5], [], [1.5], []]


def test_members_of_some_files_are_skipped(tmp_path: Path) -> None:
    for name, jets in ("a", [{"pt": 1.0, "eta": 2.0}]), ("b", [{"pt": 3.0}]):
        with tupelo.recreate(tmp_path / f"{name}.root") as file:
            file["Events"] = {"jets": [jets]}
    with pytest.warns(tupelo.TupeloWarning, match="some files lack: jets.eta"):
        read = tupelo.concatenate(f"{tmp_path}/*.root")
    assert read.tolist() == [{"jets": [{"pt": 1.0}]}, {"jets": [{"pt": 3.0}]}]
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'jets' has type struct of pt in .*b\.root"):
        tupelo.concatenate(f"{tmp_path}/*.root", fields="union")


def test_errors_name_the_file_that_lacks_a_field(files: str) -> None:
    for call in (
        lambda: tupelo.concatenate(files, "old"),
        lambda: tupelo.concatenate(files, "x", cut="old"),
        lambda: tupelo.concatenate(files, ["x + old"], fields="union"),
        lambda: list(tupelo.iterate(files, "old")),
        lambda: tupelo.scan(files, "old"),
        lambda: tupelo.hist(files, "old"),
    ):
        with pytest.raises(
            tupelo.NotFoundError, match=r"'old' is not in all files: .*run2\.root|run2\.root has no .*'old'"
        ):
            call()
    with pytest.raises(tupelo.NotFoundError, match="matches the filters"):
        tupelo.concatenate(files, filter_name="nothing*", fields="union")
    with pytest.raises(tupelo.NotFoundError, match="some files lack old, v, new, which fields='union' reads"):
        tupelo.concatenate(files, filter_name="/old|new/")
    with pytest.raises(tupelo.InvalidArgumentError, match="expected 'common'"):
        tupelo.concatenate(files, fields="all")  # type: ignore[arg-type]


def test_a_union_of_names_and_globs_has_missing_values(files: str) -> None:
    """Regression: a name had to exist in every file even with a union."""
    for wanted, expected in (
        (["old", "x"], [{"old": entry["old"], "x": entry["x"]} for entry in UNION]),
        (["x", "ne*"], [{"x": entry["x"], "new": entry["new"]} for entry in UNION]),
        ("v", [{"v": entry["v"]} for entry in UNION]),
        (["twice", "new", "x + 1"], [{"twice": 2 * e["x"], "new": e["new"], "x + 1": e["x"] + 1} for e in UNION]),
    ):
        how = {"fields": "union", "aliases": {"twice": "2 * x"}}
        got = tupelo.concatenate(files, wanted, **how)
        assert got.tolist() == expected
        assert got.fields == list(expected[0])
        assert tupelo.concatenate(files, wanted, "x % 2 == 0", **how).tolist() == expected[1::2]
        for size in (1, 1000, "1 MiB"):
            pieces = list(tupelo.iterate(files, wanted, step_size=size, **how))
            assert [entry for piece in pieces for entry in piece.tolist()] == expected
            assert len({str(piece.type.content) for piece in pieces}) == 1
    assert tupelo.scan(files, ["old", "x"], fields="union").collect().to_dicts()[2] == {"old": None, "x": 3}
    assert tupelo.scan(files, "old", fields="union").collect()["old"].to_list() == [True, False, None, None]
    assert tupelo.concatenate(files, ["new", "x"], fields="union", how=tuple)[0].tolist() == [None, None, 0.5, 1.5]


def test_limits_of_unions_are_reported(files: str) -> None:
    text = r"run2\.root has no field 'old' of .*: missing fields are null where they are read, and not within"
    for expressions, cut in ((["x + v[0]"], None), (["x", "x * old"], None), ("x", "old"), (None, "old")):
        with pytest.raises(tupelo.NotFoundError, match=text.replace("'old'", "'(old|v)'")):
            tupelo.concatenate(files, expressions, cut, fields="union")
        with pytest.raises(tupelo.NotFoundError, match=text.replace("'old'", "'(old|v)'")):
            tupelo.iterate(files, expressions, cut, fields="union")
    for wanted in ("nothing", ["x", "noth*"]):
        with pytest.raises(tupelo.NotFoundError, match=r"run1.*noth") as caught:
            tupelo.concatenate(files, wanted, fields="union")
        assert "fields=" not in str(caught.value)
    with pytest.raises(tupelo.InvalidArgumentError, match="give expressions or filters"):
        tupelo.concatenate(files, "x", filter_name="x", fields="union")


def test_steps_select_entries_of_each_file(files: str) -> None:
    folder = files.removesuffix("/run?.root:Events")
    spec = {
        f"{folder}/run1.root": {"object_path": "Events", "steps": [[1, 2]], "num_entries": 2, "uuid": "x"},
        f"{folder}/run2.root": "Events",
    }
    assert tupelo.concatenate(spec, "x").x.tolist() == [2, 3, 4]
    assert tupelo.concatenate(spec, "x", library="pd").index.tolist() == [1, 2, 3]
    assert tupelo.concatenate(spec, "x", entry_start=2).x.tolist() == [3, 4]
    reports = [(report.start, report.stop) for _, report in tupelo.iterate(spec, "x", report=True)]
    assert reports == [(1, 2), (2, 4)]
    assert tupelo.hist(spec, "x", bins=4, range=(1, 5)).values().tolist() == [0, 1, 1, 1]
    assert tupelo.scan(spec, "x").collect()["x"].to_list() == [2, 3, 4]
    two = {f"{folder}/run1.root": {"object_path": "Events", "steps": [[0, 1], [1, 2]]}}
    assert [piece.tolist() for piece in tupelo.iterate(two, "x")] == [[{"x": 1}], [{"x": 2}]]
    for steps in ([[0, 3]], [[1, 0]], [[-1, 1]], [[1, 2], [0, 1]], [[0]], [[0, 1.5]], "01", [["0", "1"]], 7):
        with pytest.raises(tupelo.InvalidArgumentError, match="step"):
            tupelo.concatenate({f"{folder}/run1.root": {"object_path": "Events", "steps": steps}}, "x")
    with pytest.raises(tupelo.InvalidArgumentError, match="unknown key 'object_paht'"):
        tupelo.concatenate({f"{folder}/run1.root": {"object_paht": "Events"}}, "x")


def test_progress_counts_the_entries_of_all_files(files: str) -> None:
    told: list[tuple[int, int]] = []
    list(tupelo.iterate(files, "x", step_size=1, progress=lambda done, total: told.append((done, total))))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    told.clear()
    tupelo.hist(files, "x", bins=4, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 8)
    assert told[-1] == (8, 8)
