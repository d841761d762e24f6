"""Many files, file objects, and containers of columns."""

import io
import os
import pickle
from pathlib import Path
from typing import Any

import awkward as ak
import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import vector

import tupelo


@pytest.fixture
def files() -> list[str]:
    """Three files, one of them without entries."""
    for run, entries in enumerate((4, 0, 3)):
        with tupelo.recreate(f"run{run}.root") as file:
            events = file.mkrntuple("Events", {"x": "int", "y": "std::vector<float>"})
            events.extend({"x": [10 * run + i for i in range(entries)], "y": [[0.5] * i for i in range(entries)]})
    return [f"run{run}.root" for run in range(3)]


WHOLE = [0, 1, 2, 3, 20, 21, 22]


@pytest.mark.parametrize(
    "place",
    [
        "run*.root",
        "run?.root:Events",
        {"run*.root": "Events"},
        [{"run0.root": "Events"}, Path("run1.root"), "run2.root"],
    ],
)
def test_file_arguments(files: list[str], place: Any) -> None:
    assert tupelo.concatenate(place).x.tolist() == WHOLE
    assert [piece.x.tolist() for piece in tupelo.iterate(place, step_size=3)] == [[0, 1, 2], [3], [20, 21, 22]]
    assert list(tupelo.num_entries(place)) == [(file, "Events", n) for file, n in zip(files, (4, 0, 3), strict=True)]


def test_open_ntuples(files: list[str]) -> None:
    ntuples = [tupelo.open(f"{file}:Events") for file in files]
    assert tupelo.concatenate(ntuples, "x", library="np")["x"].tolist() == WHOLE  # type: ignore[arg-type]
    assert list(tupelo.num_entries(ntuples[0])) == [("run0.root", "Events", 4)]  # type: ignore[arg-type]


def test_reports_count_through_all_files(files: list[str]) -> None:
    reports = [report for _, report in tupelo.iterate(files, step_size=2, report=True)]
    assert [(one.start, one.stop, one.tree_entry_start, one.tree_entry_stop, one.file_path) for one in reports] == [
        (0, 2, 0, 2, "run0.root"),
        (2, 4, 2, 4, "run0.root"),
        (4, 6, 0, 2, "run2.root"),
        (6, 7, 2, 3, "run2.root"),
    ]
    assert {(one.global_entry_start, one.global_entry_stop) == (one.start, one.stop) for one in reports} == {True}


def test_frames_count_through_all_files(files: list[str]) -> None:
    assert list(tupelo.concatenate(files, library="pd").index) == list(range(7))
    assert list(tupelo.concatenate(files, cut="x % 2 == 1", library="pd").index) == [1, 3, 5]
    frames = list(tupelo.iterate(files, "x", library="pd", step_size=3))
    assert [list(frame.index) for frame in frames] == [[0, 1, 2], [3], [4, 5, 6]]
    pieces = tupelo.iterate(files, "x", library="pd", step_size=3, how=dict)
    assert [list(piece["x"].index) for piece in pieces] == [[0, 1, 2], [3], [4, 5, 6]]


@pytest.mark.parametrize("entries", [(None, None), (1, 5), (-2, None), (4, 4), (5, 100), (0, 2), (100, 200)])
def test_ranges_count_through_all_files(files: list[str], entries: tuple[int, int]) -> None:
    start, stop = entries
    got = tupelo.concatenate(files, ["x"], entry_start=start, entry_stop=stop, library="arrow")
    assert got["x"].to_pylist() == WHOLE[start:stop]


def test_cuts_and_expressions(files: list[str]) -> None:
    got = tupelo.concatenate(files, ["z", "sum(y)"], cut="len(y) > 1", aliases={"z": "x * 2"})
    assert got.tolist() == [
        {"z": 4, "sum(y)": 1.0},
        {"z": 6, "sum(y)": 1.5},
        {"z": 44, "sum(y)": 1.0},
    ]


def test_different_files(files: list[str]) -> None:
    with tupelo.recreate("run3.root") as file:
        file["Events"] = {"x": np.array([1.5]), "y": [[1.0]]}
    with pytest.raises(
        tupelo.InvalidArgumentError, match=r"'x' has type double in \S*run3\.root, expected std::int32_t"
    ):
        tupelo.concatenate("run*.root")
    with tupelo.recreate("run3.root") as file:
        file["Other"] = {"x": [1]}
    with pytest.raises(tupelo.NotFoundError, match="Events"):
        tupelo.concatenate("run*.root:Events")
    assert tupelo.concatenate("run*.root:Events", allow_missing=True).x.tolist() == WHOLE
    with pytest.raises(tupelo.MissingFileError):
        tupelo.concatenate(["nothing.root:Events"], allow_missing=True)
    with pytest.raises(tupelo.InvalidArgumentError, match="no ntuple"):
        tupelo.concatenate("run*.root:Nothing", allow_missing=True)


def test_several_files_open_as_one_chain(files: list[str]) -> None:
    """A chain has the verbs of one ntuple."""
    for place in ("run*.root:Events", files, dict.fromkeys(files, "Events"), [Path(file) for file in files]):
        chain = tupelo.open(place)
        assert isinstance(chain, tupelo.Chain)
        assert repr(chain) == "<tupelo.Chain 'Events' of 3 files (2 fields, 7 entries)>"
        assert chain.arrays("x", library="np")["x"].tolist() == WHOLE
    assert [(part.file_path, part.entry_start, part.entry_stop) for part in chain.parts] == [
        ("run0.root", 0, 4),
        ("run1.root", 4, 4),
        ("run2.root", 4, 7),
    ]
    assert [piece.x.tolist() for piece in chain.iterate("x", step_size=3)] == [[0, 1, 2], [3], [20, 21, 22]]
    assert chain.take([-1, 0, 4, 4], "x").x.tolist() == [22, 0, 20, 20]
    assert chain.hist("x", bins=2, range=(0, 40)).values().tolist() == [4.0, 3.0]
    assert chain.scan().collect()["x"].to_list() == WHOLE
    assert pa.table(chain)["x"].to_pylist() == WHOLE
    assert chain["x"].array(library="np").tolist() == WHOLE
    assert chain.arrays(["x", "n"], "x > 2", aliases={"n": "len(y)"}).n.tolist() == [3, 0, 1, 2]
    assert chain.arrays("y", virtual=True).y[-1].tolist() == [0.5, 0.5]
    assert chain.copy("copied.root", "x > 2") == 4
    assert tupelo.open("copied.root:Events").arrays("x").x.tolist() == [3, 20, 21, 22]  # type: ignore[union-attr]
    again = pickle.loads(pickle.dumps(chain))
    assert isinstance(again, tupelo.Chain)
    assert again.arrays("x", entry_start=3, entry_stop=5).x.tolist() == [3, 20]
    with pytest.raises(tupelo.InvalidArgumentError, match="metrics is for one file"):
        tupelo.open(files, metrics=True)
    with pytest.raises(tupelo.InvalidArgumentError, match="input file"):
        chain.copy("run2.root")


def test_chains_of_different_files_say_what_is_missing(files: list[str]) -> None:
    with tupelo.recreate("run3.root") as file:
        file["Events"] = {"x": np.array([30], "i4"), "z": [1.5]}
    with pytest.warns(tupelo.TupeloWarning, match=r"skipped the fields that some files lack: y, z"):
        chain = tupelo.open("run*.root:Events")
    assert isinstance(chain, tupelo.Chain)
    assert chain.keys() == ["x"]
    with pytest.raises(tupelo.NotFoundError, match=r"'y' is not in all files: \S*run3\.root lacks it"):
        chain.arrays("y")
    union = tupelo.open("run*.root:Events", fields="union")
    assert isinstance(union, tupelo.Chain)
    assert union.arrays(["z", "x"], entry_start=6).tolist() == [{"z": None, "x": 22}, {"z": 1.5, "x": 30}]
    with pytest.raises(tupelo.MissingFileError):
        tupelo.open("walk*.root:Events")


def test_file_objects(files: list[str]) -> None:
    content = Path("run0.root").read_bytes()
    stream = io.BytesIO(content)
    stream.seek(17)
    opened = tupelo.open(stream, metrics=True)
    assert isinstance(opened, tupelo.File)
    stream.close()
    assert opened["Events"].arrays().x.tolist() == [0, 1, 2, 3]
    assert opened.size_bytes == len(content)
    with open("run0.root", "rb") as own:
        assert repr(tupelo.open(own)) == "<tupelo.File 'run0.root'>"
    with open("run0.root", encoding="latin-1") as text, pytest.raises(tupelo.InvalidArgumentError, match="binary mode"):
        tupelo.open(text)  # type: ignore[arg-type]
    with pytest.raises(tupelo.CorruptError, match="memory:<BytesIO>"):
        tupelo.open(io.BytesIO(b"nothing at all"))


def test_file_objects_of_fsspec(files: list[str]) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/f.root", Path("run2.root").read_bytes())
    with memory.open("/f.root", "rb") as stream:
        opened = tupelo.open(stream)
    assert isinstance(opened, tupelo.File)
    # The file system reads ranges, also when the stream is closed.
    assert opened["Events"].arrays("x").x.tolist() == [20, 21, 22]
    memory.pipe("/f.root", Path("run2.root").read_bytes()[:500])
    with pytest.raises(tupelo.Error, match=r"f\.root"):
        opened["Events"].arrays("y")
    memory.rm("/f.root")
    with pytest.raises(tupelo.StorageError, match=r"f\.root.*FileNotFoundError"):
        opened["Events"].arrays("y")
    with fsspec.open("run2.root") as local:
        assert tupelo.open(local)["Events"].arrays("x").x.tolist() == [20, 21, 22]


KINDS = {"ak": ak.Array, "np": np.ndarray, "pd": pd.Series, "arrow": pa.ChunkedArray}


@pytest.mark.parametrize("library", list(KINDS))
def test_how(files: list[str], library: Any) -> None:
    ntuple = tupelo.open("run0.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    for columns in (
        ntuple.arrays(library=library, how=dict),
        next(ntuple.iterate(library=library, how=dict)),
        tupelo.concatenate("run0.root", library=library, how=dict),
    ):
        assert list(columns) == ["x", "y"]
        assert all(isinstance(column, KINDS[library]) for column in columns.values())
    for how in (list, tuple):
        pair = ntuple.arrays(library=library, how=how)
        assert type(pair) is how
        assert all(isinstance(column, KINDS[library]) for column in pair)


def test_fields_selected_by_a_function(files: list[str]) -> None:
    ntuple = tupelo.open("run0.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)

    def is_list(field: tupelo.Field) -> bool:
        return field.kind == "collection"

    assert ntuple.keys(filter_field=is_list) == ["y"]
    assert ntuple.arrays(filter_field=is_list).fields == ["y"]
    assert next(ntuple.iterate(filter_field=is_list)).fields == ["y"]
    assert ntuple.take([0], filter_field=is_list).fields == ["y"]
    assert tupelo.concatenate(files, filter_field=is_list).fields == ["y"]
    with pytest.raises(tupelo.InvalidArgumentError, match="expected filter_field as a function"):
        ntuple.keys(filter_field="y")  # type: ignore[arg-type]


def test_zip() -> None:
    with tupelo.recreate("zip.root") as file:
        file["Events"] = {
            "run": [1, 1],
            "Muon_pt": [[1.5, 2.5], []],
            "Muon_eta": [[0.5, 0.25], []],
            "Muon_hits": [[[1], [2, 3]], []],
            "Jet_pt": [[], [9.5]],
            "a": [[1], [1]],
            "b": [[2], [2]],
            "name": ["one", "two"],
        }
    ntuple = tupelo.open("zip.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    events = ntuple.arrays(how="zip")
    assert events.fields == ["run", "name", "Muon", "Jet", "jagged2"]
    assert events.Muon.fields == ["pt", "eta", "hits"]
    assert events.tolist()[0] == {
        "run": 1,
        "name": "one",
        "Muon": [{"pt": 1.5, "eta": 0.5, "hits": [1]}, {"pt": 2.5, "eta": 0.25, "hits": [2, 3]}],
        "Jet": [],
        "jagged2": [{"a": 1, "b": 2}],
    }


def test_record_names_select_behaviors() -> None:
    vector.register_awkward()
    momentum = tupelo.record("Momentum4D", {"pt": "float", "eta": "float", "phi": "float", "mass": "float"})
    muons = ak.zip({"pt": [[3.0, 4.0]], "eta": [[0.0, 0.0]], "phi": [[0.0, 0.0]], "mass": [[4.0, 3.0]]})
    with tupelo.recreate("vectors.root") as file:
        events = file.mkrntuple("Events", {"first": momentum, "muons": pa.large_list(momentum)})
        events.extend({"first": muons[:, 0], "muons": muons})
    ntuple = tupelo.open("vectors.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    for virtual in (False, True):
        named = ntuple.arrays(ak_add_doc={"__record__": "typename", "typename": "typename"}, virtual=virtual)
        assert named.muons.energy.tolist() == [[5.0, 5.0]]
        assert (named.first + named.muons[:, 1]).mass.tolist() == pytest.approx([51**0.5])
        assert named.muons.layout.parameters == {"typename": "std::vector<Momentum4D>"}
        assert ak.with_name(ntuple.arrays("muons").muons, "Momentum4D").energy.tolist() == [[5.0, 5.0]]


def test_descriptions() -> None:
    schema = pa.schema(
        [
            pa.field("x", pa.int32(), False, metadata={"rntuple.description": "a number"}),
            pa.field("y", pa.int32(), False),
        ]
    )
    with tupelo.recreate("described.root") as file:
        file.mkrntuple("Events", schema, description="what happened").extend({"x": [1], "y": [2]})
    ntuple = tupelo.open("described.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    for virtual in (False, True):
        events = ntuple.arrays(ak_add_doc=True, virtual=virtual)
        assert events.layout.parameters == {"__doc__": "what happened"}
        assert [content.parameters for content in events.layout.contents] == [{"__doc__": "a number"}, {}]
    assert ntuple.arrays().layout.parameters == {}


def test_many_small_files_stay_closed(tmp_path: Path) -> None:
    """Defect: scan() kept every file open."""
    import resource

    for number in range(60):
        with tupelo.recreate(tmp_path / f"{number:03}.root") as file:
            file["Events"] = {"x": [float(number), -1.0], "n": [number, 0]}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 30, hard))
    try:
        import polars as pl

        files = str(tmp_path / "*.root:Events")
        frame = tupelo.scan(files)
        assert frame.select(pl.col("x").sum()).collect().item() == sum(range(60)) - 60
        assert frame.filter(pl.col("n") == 7).select("x").collect()["x"].to_list() == [7.0]
        assert frame.head(3).collect()["x"].to_list() == [0.0, -1.0, 1.0]
        histogram = tupelo.hist(files, "x", bins=6, range=(0, 60))
        assert histogram.values().tolist() == [10.0] * 6
        # Strings, lists and files without entries are joined too.
        assert tupelo.hist(files, "n", bins=5, cut="n < 0").sum() == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_imports_of_many_trees_need_few_open_files(tmp_path: Path) -> None:
    """Defect: import_trees() kept every file open."""
    import resource

    for number in range(60):
        with tupelo.recreate(tmp_path / f"{number:03}.root") as file:
            file.mktree("Events", {"x": np.array([number, -1.0]), "n": np.array([number, 0])})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 30, hard))
    told: list[int] = []
    try:
        out = tmp_path / "all" / "out.root"
        out.parent.mkdir()
        files = str(tmp_path / "*.root:Events")
        report = tupelo.import_trees(files, out, validate="full", progress=lambda done, total: told.append(done))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (report.num_entries, report.num_compared, told[-1]) == (120, 120, 120)
    ntuple = tupelo.open(f"{out}:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.arrays(["n"], library="np")["n"][::2].tolist() == list(range(60))


def test_a_tree_that_changes_during_its_import_is_an_error(tmp_path: Path) -> None:
    def write(name: str, values: list[float]) -> None:
        with tupelo.recreate(tmp_path / name) as file:
            file.mktree("Events", {"x": np.array(values)})

    # Few files stay open after they were compared; those are read as they were.
    names = [f"{number}.root" for number in range(10)]
    for name in names:
        write(name, [1.0])

    def replaced(done: int, _: int) -> None:
        if done == 0:
            write(names[0], [2.0, 3.0])

    out = tmp_path / "out.root"
    with pytest.raises(tupelo.Error, match="the file has changed"):
        tupelo.import_trees([f"{tmp_path}/{name}:Events" for name in names], out, progress=replaced)
    assert not out.exists()


def test_index_lists_bad_files_and_replaces_no_input(tmp_path: Path) -> None:
    good, bad, other = (tmp_path / name for name in ("good.root", "bad.root", "other.root"))
    with tupelo.recreate(good) as file:
        file["Events"] = {"x": [1.5]}
    bad.write_text("text")
    before = good.read_bytes()
    (tmp_path / "link.root").symlink_to(good)
    for output in good, tmp_path / "link.root":
        with pytest.raises(tupelo.InvalidArgumentError, match="is the input file"):
            tupelo.index(good, output)
    assert good.read_bytes() == before
    with pytest.raises(tupelo.Error, match=r"2 of 3 files cannot be read:(?s:.*)bad\.root(?s:.*)other\.root"):
        tupelo.index([bad, good, other])
    with pytest.warns(tupelo.TupeloWarning, match="is left out") as warned:
        manifest = tupelo.index([bad, good, other], skip_errors=True)
    assert len(warned) == 2
    assert [Path(file["uri"]).name for file in manifest["files"]] == ["good.root"]
    assert [Path(file["uri"]).name for file in manifest["left_out"]] == ["bad.root", "other.root"]
    assert len(tupelo.partitions(manifest=manifest)) == 1
    with pytest.raises(tupelo.Error):
        tupelo.index([bad], skip_errors=True)
