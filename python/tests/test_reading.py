"""Files, names, ranges, libraries."""

import io
import pathlib
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import tupelo

ENTRIES = 1000


def jets() -> ak.Array:
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 5, ENTRIES)
    total = int(counts.sum())
    pt = ak.unflatten(rng.exponential(30, total).astype("f4"), counts)
    return ak.zip({"pt": pt, "hits": ak.local_index(pt)})


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    data = {
        "i": np.arange(ENTRIES, dtype="i4"),
        "x": np.linspace(0, 1, ENTRIES),
        "flag": np.arange(ENTRIES) % 3 == 0,
        "name": [f"entry {i}" for i in range(ENTRIES)],
        "matrix": np.arange(ENTRIES * 6, dtype="f4").reshape(ENTRIES, 2, 3),
        "jets": jets(),
        "pair": ak.zip((np.arange(ENTRIES), np.arange(ENTRIES) * 0.5)),
        "maybe": ak.Array([None if i % 2 else i for i in range(ENTRIES)]),
    }
    with tupelo.recreate("events.root", cluster_bytes=4000, page_bytes=512) as file:
        file["dir/Events"] = data
    opened = tupelo.open("events.root:dir/Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 3
    return opened


def test_ways_to_open(ntuple: tupelo.Ntuple) -> None:
    path = pathlib.Path("events.root")
    for where in ("events.root:dir/Events", {"events.root": "dir/Events"}, {path: "/dir/Events"}):
        with tupelo.open(where) as opened:
            assert isinstance(opened, tupelo.Ntuple)
            assert (opened.name, opened.object_path, opened.num_entries) == ("Events", "dir/Events", ENTRIES)
    for where in ("events.root", path, {path: None}, "file:events.root"):
        with tupelo.open(where) as file:
            assert isinstance(file, tupelo.File)
            assert (list(file), len(file), "dir/Events" in file, "Events" in file) == (["dir/Events"], 1, True, False)
            assert file["dir/Events;1"].num_entries == ENTRIES
            assert file.size_bytes == path.stat().st_size
            assert file.classnames()["dir/Events"] == "ROOT::RNTuple"
            assert file.classnames(cycle=True)["dir/Events;1"] == "ROOT::RNTuple"


def test_a_closed_file_raises(ntuple: tupelo.Ntuple) -> None:
    with tupelo.open("events.root") as file:
        other = file["dir/Events"]
    assert other.num_entries == ENTRIES
    with pytest.raises(tupelo.InvalidArgumentError, match=r"events\.root is closed"):
        file.keys()
    other.close()
    with pytest.raises(tupelo.InvalidArgumentError, match=r"ntuple 'dir/Events' is closed"):
        other.arrays()
    assert repr(other) == "<tupelo.Ntuple 'dir/Events' (closed)>"


def test_keys_and_filters(ntuple: tupelo.Ntuple) -> None:
    top = ["i", "x", "flag", "name", "matrix", "jets", "pair", "maybe"]
    assert ntuple.keys(recursive=False) == top
    assert ntuple.keys() == list(ntuple) == ntuple._ipython_key_completions_()
    assert [key for key in ntuple if "." in key] == ["jets.pt", "jets.hits", "pair._0", "pair._1"]
    assert len(ntuple) == 12
    assert ntuple.keys(filter_name="jet*") == ["jets", "jets.pt", "jets.hits"]
    assert ntuple.keys(filter_name="/^J.*T$/i") == ["jets.pt"]
    assert ntuple.keys(filter_name=["i", lambda name: name.endswith("_1")]) == ["i", "pair._1"]
    assert ntuple.keys(filter_typename="std::int*") == ["i", "jets.hits", "pair._0"]
    assert ntuple.typenames(filter_name="m*") == {
        "matrix": "std::array<std::array<float,3>,2>",
        "maybe": "std::optional<std::int64_t>",
    }
    assert dict(ntuple.items()).keys() == {field.path for field in ntuple.values()}
    assert "jets.pt" in ntuple
    assert "jets.eta" not in ntuple
    assert ntuple.get("nothing") is None


def test_fields(ntuple: tupelo.Ntuple) -> None:
    field = ntuple["jets"]["pt"]
    assert (field.path, field.name, field.typename, field.num_entries) == ("jets.pt", "pt", "float", ENTRIES)
    assert field.parent is not None
    assert field.parent.keys() == ["pt", "hits"]
    assert repr(field) == "<tupelo.Field 'jets.pt': float>"
    assert field.array().tolist() == jets()["pt"].tolist()
    assert str(field.array().type) == f"{ENTRIES} * var * float32"
    assert field.array(library="arrow").type == pa.large_list(pa.field("item", pa.float32(), nullable=False))
    assert [list(v) for v in field.array(-2, library="np")] == jets()["pt"].tolist()[-2:]
    assert ntuple["pair._1"].array(1, 3, library="np").tolist() == [0.5, 1.0]
    assert ntuple["x"].array(library="pd").name == "x"


def test_show(ntuple: tupelo.Ntuple) -> None:
    out = io.StringIO()
    ntuple.show(stream=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Events (RNTuple, 1000 entries)"
    assert lines[6:9] == ["├─ jets (collection)", "│  ├─ pt (float)", "│  └─ hits (std::int64_t)"]
    assert lines[-1] == "└─ maybe (std::optional<std::int64_t>)"
    out = io.StringIO()
    ntuple.show(stream=out, filter_name="jets.p*", filter_typename="float")
    assert out.getvalue().splitlines()[1:] == ["└─ jets (collection)", "   └─ pt (float)"]


def test_projection_keeps_parents(ntuple: tupelo.Ntuple) -> None:
    arrays = ntuple.arrays(["jets.pt", "i"])
    assert str(arrays.type) == f"{ENTRIES} * {{jets: var * {{pt: float32}}, i: int32}}"
    assert ntuple.arrays("j*").fields == ["jets"]
    assert ntuple.arrays(filter_name=["x", "maybe"], entry_stop=1).tolist() == [{"x": 0.0, "maybe": 0}]


@pytest.mark.parametrize(
    ("start", "stop"), [(None, None), (0, 0), (3, 8), (-3, None), (None, -990), (990, 10**9), (8, 3)]
)
def test_entries_as_in_slices(ntuple: tupelo.Ntuple, start: int | None, stop: int | None) -> None:
    expected = list(range(ENTRIES))[start:stop]
    for library in ("ak", "np", "arrow", "pd"):
        column = ntuple.arrays("i", entry_start=start, entry_stop=stop, library=library)["i"]
        assert (column.to_pylist() if library == "arrow" else column.tolist()) == expected
    assert ntuple["i"].array(np.int64(3), np.int64(5)).tolist() == [3, 4]


def test_awkward_types_have_no_unnecessary_options(ntuple: tupelo.Ntuple) -> None:
    assert str(ntuple.arrays().type) == (
        "1000 * {i: int32, x: float64, flag: bool, name: string, matrix: 2 * 3 * float32, "
        "jets: var * {pt: float32, hits: int64}, pair: (int64, float64), maybe: ?int64}"
    )


def test_numpy(ntuple: tupelo.Ntuple) -> None:
    arrays = ntuple.arrays(library="np", entry_stop=4)
    assert {name: (array.dtype.kind, array.shape) for name, array in arrays.items()} == {
        "i": ("i", (4,)),
        "x": ("f", (4,)),
        "flag": ("b", (4,)),
        "name": ("O", (4,)),
        "matrix": ("f", (4, 2, 3)),
        "jets": ("O", (4,)),
        "pair": ("V", (4,)),
        "maybe": ("i", (4,)),
    }
    assert arrays["maybe"].tolist() == [0, None, 2, None]
    assert arrays["pair"]["_1"].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert arrays["matrix"][1].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert arrays["jets"][0].dtype.names == ("pt", "hits")


def test_numbers_are_not_copied(ntuple: tupelo.Ntuple) -> None:
    x = ntuple.arrays("x", library="np")["x"]
    assert x.base is not None
    assert not x.flags.owndata


def test_pandas(ntuple: tupelo.Ntuple) -> None:
    frame = ntuple.arrays(library="pd", entry_start=10, entry_stop=14)
    assert frame.index.tolist() == [10, 11, 12, 13]
    kinds = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert (kinds["i"], kinds["x"], kinds["flag"], kinds["maybe"]) == ("int32", "float64", "bool", "int64[pyarrow]")
    assert frame["name"].tolist() == ["entry 10", "entry 11", "entry 12", "entry 13"]
    assert frame["matrix"].iloc[0][0] == [60.0, 61.0, 62.0]


def test_pandas_is_optional(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"library='pd' needs pandas.*pip install pandas"):
        ntuple.arrays(library="pd")


@pytest.mark.parametrize("step", [1, 7, 999, 1000, 10**9, "1 kB", "1 MB", "64 KiB"])
@pytest.mark.parametrize("library", ["ak", "np", "arrow", "pd"])
def test_iterate(ntuple: tupelo.Ntuple, step: int | str, library: Any) -> None:
    if step == 1 and library == "pd":
        return
    seen = 0
    fields = ["i", "jets.pt", "maybe"]
    for piece, report in ntuple.iterate(fields, step_size=step, library=library, report=True, entry_start=1):
        column = piece["i"].to_pylist() if library == "arrow" else piece["i"].tolist()
        assert report.start == seen + 1
        assert column == list(range(report.start, report.stop))
        assert isinstance(step, str) or len(column) == min(step, ENTRIES - report.start)
        assert (report.file_path, report.object_path) == ("events.root", "dir/Events")
        seen += len(column)
    assert seen == ENTRIES - 1


def test_sizes_in_bytes_mean_memory(ntuple: tupelo.Ntuple) -> None:
    pieces = [len(piece) for piece in ntuple.iterate("x", step_size="1 kB")]
    # A batch may end at a page boundary.
    assert sum(pieces) == ENTRIES
    assert all(abs(size - 125) < 10 for size in pieces[:-1]), pieces


def test_arrow_streams(ntuple: tupelo.Ntuple) -> None:
    import pandas as pd
    import polars as pl

    table = pa.table(ntuple)
    assert table.equals(ntuple.arrays(library="arrow"))
    assert table.schema.metadata[b"rntuple.name"] == b"Events"
    assert pa.schema(ntuple).equals(ntuple.arrow_schema, check_metadata=True)
    assert pl.DataFrame(ntuple).get_column("i").to_list() == list(range(ENTRIES))
    assert pl.from_arrow(ntuple).struct.field("jets").struct is not None
    assert pd.DataFrame.from_arrow(ntuple).shape == (ENTRIES, 8)


def test_duckdb_reads_it(ntuple: tupelo.Ntuple) -> None:
    try:
        import duckdb
    except ImportError:
        return
    assert duckdb.from_arrow(ntuple).aggregate("sum(i)").fetchall() == [(ENTRIES * (ENTRIES - 1) // 2,)]


def test_threads_share_an_ntuple(ntuple: tupelo.Ntuple) -> None:
    expected = ntuple.arrays().tolist()
    barrier = threading.Barrier(8)

    def read(thread: int) -> bool:
        barrier.wait()
        start = thread * 100
        whole = ntuple.arrays().tolist() == expected
        return (
            whole and ntuple.arrays(entry_start=start, entry_stop=start + 77).tolist() == expected[start : start + 77]
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


def test_pickles(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    pickled = pickle.dumps((ntuple, tupelo.open("events.root")))
    monkeypatch.chdir("elsewhere")
    again, file = pickle.loads(pickled)
    assert again["i"].array(entry_stop=2).tolist() == [0, 1]
    assert file.keys() == ["dir/Events"]


def test_strings_that_are_not_utf8() -> None:
    text = pa.field("s", pa.large_binary(), nullable=False, metadata={"rntuple.type": "std::string"})
    with tupelo.recreate("f.root") as file:
        file.mkrntuple("Events", pa.schema([text])).extend({"s": [b"plain", b"\xff\xfe"]})
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert opened["s"].typename == "std::string"
    assert opened["s"].array(entry_stop=1).tolist() == ["plain"]
    assert opened["s"].array().tolist() == [b"plain", b"\xff\xfe"]
    with pytest.raises(tupelo.UnsupportedError, match="binary strings"):
        list(opened.iterate(step_size=2))
    pieces = opened.iterate(step_size=1, library="np", binary_strings=True)
    assert [piece["s"][0] for piece in pieces] == [b"plain", b"\xff\xfe"]


def test_names_with_wildcards_in_them() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"a[0]{b}*?": [1, 2], "a0": [3, 4], "größe": [5, 6]}
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert [opened[name].array().tolist() for name in opened] == [[1, 2], [3, 4], [5, 6]]
    assert opened.arrays("a[0]{b}*?").fields == ["a[0]{b}*?"]
    assert opened.arrays("a*").fields == ["a[0]{b}*?", "a0"]
    assert opened.arrays(filter_name="*{b}*").fields == ["a[0]{b}*?"]


def test_variants_keep_the_types_of_their_values() -> None:
    values = [pa.nulls(1), pa.array([1.5], pa.float32()), pa.array([2**31 - 1], pa.int32()), pa.array([True])]
    tags, places = pa.array([1, 2, 0, 3], pa.int8()), pa.array([0, 0, 0, 0], pa.int32())
    with tupelo.recreate("f.root") as file:
        file["Events"] = pa.table({"v": pa.UnionArray.from_dense(tags, places, values)})
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert opened["v"].typename == "std::variant<float,std::int32_t,bool>"
    for library in ("ak", "np"):
        assert repr(opened["v"].array(library=library).tolist()) == "[1.5, 2147483647, None, True]"
    assert opened["v"].array(library="arrow").to_pylist() == [1.5, 2147483647, None, True]
    assert str(opened["v"].array(0, 2).type) == "2 * union[float32, int32, bool]"


def test_alternatives_of_variants_are_read_together() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"v": ak.Array([1, "two", 3])}
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.keys() == ["v"]
    assert opened["v"].array(library="np").tolist() == [1, "two", 3]
    with pytest.raises(tupelo.NotFoundError, match=r"no field named 'v\._0'"):
        opened.arrays("v._0")


def test_attribute_sets_are_a_mapping(ntuple: tupelo.Ntuple) -> None:
    assert ntuple.attribute_sets == {}


def test_single_entries(ntuple: tupelo.Ntuple) -> None:
    whole = ntuple.arrays(library="arrow")
    last = ntuple.num_entries - 1
    for entries in ([0], [last, 0, 0], [], [-1, -ntuple.num_entries], np.array([1, 0], np.uint8)):
        places = [int(entry) % ntuple.num_entries for entry in entries]
        expected = whole.take(pa.array(places, pa.int64()))
        assert ntuple.take(entries, library="arrow").equals(expected)
    names = ntuple.keys(recursive=False)[:1]
    frame = ntuple.take([last, 0], names, library="pd")
    assert (list(frame.columns), list(frame.index)) == (names, [last, 0])
    for wrong in ([ntuple.num_entries], [-1 - ntuple.num_entries], [True], [1.0], "1", 3):
        with pytest.raises(tupelo.InvalidArgumentError, match="entr"):
            ntuple.take(wrong)  # type: ignore[arg-type]
    with pytest.raises(tupelo.NotFoundError, match="nearest"):
        ntuple.take([0], names[0] + "x")


def test_the_number_of_threads() -> None:
    before = tupelo.threads()
    tupelo.set_threads(3)
    assert tupelo.threads() == 3
    tupelo.set_threads(0)
    assert tupelo.threads() == before


def test_a_forked_child_has_its_own_threads(tmp_path: pathlib.Path) -> None:
    code = """if True:
        import multiprocessing, sys
        import numpy as np, tupelo
        tupelo.set_threads(2)
        with tupelo.recreate(sys.argv[1]) as file:
            file["n"] = {"x": np.arange(1_000_000), "y": np.arange(1_000_000) / 3}
        def total(_=None):
            return sum(int(v.sum()) for v in tupelo.open(sys.argv[1] + ":n").arrays(library="np").values())
        expected = total()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(total, range(4)) == [expected] * 4
        print("same")
    """
    command = [sys.executable, "-c", code, str(tmp_path / "f.root")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "same\n"


def test_the_memory_budget_is_an_option() -> None:
    with tupelo.recreate("budget.root") as file:
        file["Events"] = {f"x{k}": [k] for k in range(200)}
    for budget in (4096, "4 kB"):
        with pytest.raises(tupelo.LimitError, match=r"larger memory budget \(memory_budget\)"):
            tupelo.open("budget.root:Events", memory_budget=budget)
    ntuple = tupelo.open("budget.root:Events", memory_budget="64 MiB")
    again = pickle.loads(pickle.dumps(ntuple))
    assert again.arrays().tolist() == ntuple.arrays().tolist()
    with pytest.raises(tupelo.InvalidArgumentError, match="expected memory_budget as a number of bytes"):
        tupelo.open("budget.root", memory_budget=-1)


def test_awkward_does_not_use_names_as_values() -> None:
    """Regression: `ak.Array(ntuple)` was the list of its field names."""
    with tupelo.recreate("names.root") as file:
        jets = ak.Array([[{"pt": 1.5, "n": 2}], []])
        file["Events"] = {"x": [1.5, 2.5], "jets": jets, "ok": np.array([True, False]), "grid": np.ones((2, 3))}
    ntuple = tupelo.open("names.root:Events")
    assert ak.Array(ntuple["x"]).tolist() == [1.5, 2.5]
    assert ak.Array(ntuple["ok"]).tolist() == [True, False]
    assert ak.sum(ntuple["grid"]) == 6
    for other in (ntuple, ntuple["jets"]):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"read (one field|it)"):
            ak.Array(other)


def test_reads_without_pandas_do_not_import_it(tmp_path: pathlib.Path) -> None:
    """Importing pandas takes longer than reading."""
    path = tmp_path / "p.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": [1.5, 2.5], "ok": np.array([True, False]), "j": [[1], []], "m": ak.Array([1, None])}
    program = (
        "import sys, tupelo; n = tupelo.open(sys.argv[1])['Events']; n.arrays(); n.arrays(library='np'); "
        "n.arrays('x', 'x > 2'); n['x'].array(library='np'); sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 0


def test_a_path_may_name_a_field() -> None:
    """Regression: ntuples in directories, and fields of ntuples, were not found."""
    with tupelo.recreate("fields.root") as file:
        file["dir/Events"] = {"jets": ak.Array([[{"pt": 1.5, "n": 2}], []]), "x": [0.5, 1.5]}
    ntuple = tupelo.open("fields.root:dir/Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    for path, expected in (("x", [0.5, 1.5]), ("jets/pt", [[1.5], []]), ("jets.n", [[2], []])):
        field = tupelo.open(f"fields.root:dir/Events/{path}")
        assert isinstance(field, tupelo.Field)
        assert field.array().tolist() == expected
    with pytest.raises(tupelo.NotFoundError, match="jets"):
        tupelo.open("fields.root:dir/Events/jet")
