"""Written data round-trip."""

import contextlib
import pathlib
import re
from collections.abc import Callable
from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import uproot

import tupelo


def written(data: Any, **options: Any) -> tupelo.Ntuple:
    with tupelo.recreate("f.root", **options) as file:
        file["Events"] = data
    return events()


def events() -> tupelo.Ntuple:
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


@pytest.mark.parametrize("compression", ["zstd:5", "lz4", "zlib:1", "lzma:7", "none", 505, None])
@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", ">i4", ">f8"])
def test_numpy_round_trips(kind: str, compression: Any) -> None:
    values = np.arange(1000).astype(kind)
    again = written({"x": values, "m": values.reshape(100, 10)[:, :6].repeat(10, 0)}, compression=compression)
    arrays = again.arrays(library="np")
    np.testing.assert_array_equal(arrays["x"], values)
    assert arrays["x"].dtype == values.dtype.newbyteorder("=")
    assert arrays["m"].shape == (1000, 6)
    theirs = uproot.open("f.root")["Events"].arrays(library="np")
    np.testing.assert_array_equal(theirs["x"], values)


AWKWARD = {
    "jagged": ak.Array([[1.5], [], [2.5, 3.5]]),
    "deep": ak.Array([[[1], []], [], [[2, 3]]]),
    "records": ak.Array([[{"a": 1, "b": [True]}], [], [{"a": 2, "b": []}, {"a": 3, "b": [False, True]}]]),
    "tuples": ak.Array([(1, "a"), (2, "bb"), (3, "")]),
    "strings": ak.Array(["héllo", "", "x"]),
    "lists_of_strings": ak.Array([["a", "b"], [], ["ccc"]]),
    "optional": ak.Array([1, None, 3]),
    "optional_inside": ak.Array([[1.5, None], [], [None]]),
    "optional_strings": ak.Array([None, "a", "b"]),
    "unions": ak.Array([1, "two", [3.5]]),
    "regular": ak.to_regular(ak.Array([[1, 2], [3, 4], [5, 6]])),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_round_trips(name: str) -> None:
    array = AWKWARD[name]
    again = written(ak.zip({"x": array}, depth_limit=1)).arrays()["x"]
    assert again.tolist() == array.tolist()
    assert again.type == array.type
    for piece in (array[1:], array[:0], array[::-1]):
        assert written({"x": piece})["x"].array().tolist() == piece.tolist()


def test_uproot_reads_awkward_as_well() -> None:
    # uproot makes all alternatives of a variant optional, so only values are compared.
    written(AWKWARD)
    theirs = uproot.open("f.root")["Events"].arrays()
    for name, array in AWKWARD.items():
        assert theirs[name].tolist() == array.tolist(), name


def test_records_of_different_kinds() -> None:
    rows = [{"x": 1.5, "v": [1]}, {"x": 2.5, "v": []}]
    assert written(ak.Array(rows)).arrays().tolist() == rows
    structured = np.array([(1.5, 2), (2.5, 3)], dtype=[("x", "f8"), ("n", "i2")])
    assert written(structured).arrays(library="np")["n"].dtype == np.int16
    nested = written({"r": structured})
    assert nested["r.n"].array().tolist() == [2, 3]
    assert nested.arrays(library="np")["r"].tolist() == structured.tolist()


ARROW = {
    "optional": (pa.array([1, None, 3], pa.int16()), "std::optional<std::int16_t>"),
    "full": (pa.array([1, 2, 3], pa.uint8()), "std::uint8_t"),
    "list": (pa.array([[1], [], [2]], pa.list_(pa.int32())), "std::vector<std::int32_t>"),
    "list_view": (pa.array([[1], [], [2]], pa.list_view(pa.int32())), "std::vector<std::int32_t>"),
    "map": (
        pa.array([[("a", 1)], [], [("b", 2)]], pa.map_(pa.string(), pa.int32())),
        "std::map<std::string,std::int32_t>",
    ),
    "dictionary": (pa.array(["a", "b", "a"]).dictionary_encode(), "std::string"),
    "string_view": (pa.array(["a", "", "a longer text than twelve"], pa.string_view()), "std::string"),
    "binary": (pa.array([b"a", b"", b"\xff"]), "std::vector<std::byte>"),
    "struct": (pa.array([{"a": 1}, {"a": 2}, {"a": 3}]), "struct"),
    "half": (pa.array([0.5, 1.5, 2.5], pa.float16()), "float"),
    "fixed": (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)), "std::array<std::int8_t,2>"),
    "chunked": (pa.chunked_array([[1.5], [2.5, 3.5]]), "double"),
}


@pytest.mark.parametrize("name", ARROW)
def test_arrow_round_trips(name: str) -> None:
    array, type_name = ARROW[name]
    ntuple = written(pa.table({"x": array}))
    assert ntuple["x"].typename == type_name
    expected = array.to_pylist()
    if name == "binary":
        expected = [list(text) for text in expected]
    given = ntuple["x"].array(library="arrow").to_pylist()
    if name == "map":
        given = [[tuple(pair.values()) for pair in pairs] for pairs in given]
    assert given == expected
    assert ntuple.num_entries == 3


def test_batches_streams_and_frames() -> None:
    table = pa.table({"x": [1, 2, 3], "s": ["a", None, "c"]})
    sources: list[Callable[[], Any]] = [
        lambda: table,
        lambda: table.to_batches()[0],
        lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        lambda: pl.DataFrame(table),
        lambda: pl.DataFrame(table).lazy().collect(),
        lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
    ]
    for source in sources:
        ntuple = written(source())
        assert ntuple.arrays(library="arrow").to_pylist() == table.to_pylist()
        assert ntuple.typenames() == {"x": "std::int64_t", "s": "std::optional<std::string>"}
        assert written(ntuple.arrays(library="arrow")).typenames() == ntuple.typenames()


def test_pandas_and_its_index() -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5], "s": ["a", "b"]})
    assert written(frame).arrays(library="pd").equals(frame)
    assert written(frame.set_index("s")).keys() == ["x", "s"]
    # A named index is data, even if pandas stores a range.
    assert written(frame.set_index(pd.RangeIndex(5, 7, name="event"))).keys() == ["x", "s", "event"]


PAIRS = pd.MultiIndex.from_tuples([(1, "a"), (2, "b")])


@pytest.mark.parametrize("kind", ["ntuple", "tree"])
@pytest.mark.parametrize(
    "index",
    [
        ["r", "s"],
        [2.5, float("nan")],
        pd.RangeIndex(5, 7),
        pd.RangeIndex(0, 4, 2),
        pd.CategoricalIndex(["b", "a"]),
        PAIRS,
        PAIRS.set_names(["event", None]),
    ],
    ids=str,
)
def test_an_unnamed_index_of_pandas_is_a_column(index: Any, kind: str) -> None:
    """Regression: it was left out."""
    frame = pd.DataFrame({"v": [1, 2]}, index=index)
    expected = frame.reset_index()
    with tupelo.recreate("f.root") as file:
        (file.mktree if kind == "tree" else file.mkrntuple)("Events", frame).extend(frame)
    again = events().arrays(library="pd")
    assert sorted(again.columns) == sorted(expected.columns)
    for name in expected.columns:
        assert repr(again[name].tolist()) == repr(expected[name].tolist() * 2)


def test_entry_numbers_after_a_cut_are_written_and_extended() -> None:
    source = written({"x": [0, 1, 2, 3, 4, 5]})
    cut = source.arrays("x", cut="x == 1 or x > 3", library="pd")
    with tupelo.recreate("g.root") as file:
        file["Events"] = cut
        # Whatever its index is, it is now wanted.
        file["Events"].extend(pd.DataFrame({"x": [7, 8]}))
    found = tupelo.open("g.root:Events").arrays(library="np")
    assert found["index"].tolist() == [1, 4, 5, 0, 1]
    assert written(cut.rename_axis("entry")).keys() == ["x", "entry"]
    assert written(cut.reset_index(drop=True)).keys() == ["x"]


def test_data_frames_of_later_entries_extend_without_their_index() -> None:
    source = written({"x": [0, 1, 2, 3, 4, 5]})
    with tupelo.recreate("g.root") as file:
        for number, frame in enumerate(source.iterate(library="pd", step_size=2)):
            if number == 0:
                file["Events"] = frame
                tree = file.mktree("Tree", frame)
            else:
                file["Events"].extend(frame)
                tree.extend(frame)
    for name in "Events", "Tree":
        assert tupelo.open(f"g.root:{name}").arrays().tolist() == [{"x": x} for x in range(6)]


def test_an_index_of_pandas_that_is_no_new_column() -> None:
    frame = pd.DataFrame({"index": [1, 2], "level_1": [3, 4]})
    assert written(frame).keys() == ["index", "level_1"]
    for index, name in (["r", "s"], "index"), (PAIRS, "level_1"), (pd.Index([1, 2], name="index"), "index"):
        with pytest.raises(tupelo.InvalidArgumentError, match=f"would be a column '{name}', which exists already"):
            written(frame.set_axis(index))
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple("Events", {"x": "int"})
        for options in {}, {"accept_new_fields": True}:
            with pytest.raises(tupelo.InvalidArgumentError, match="column 'index', which is not declared"):
                ntuple.extend(pd.DataFrame({"x": [1, 2]}, index=[3, 1]), **options)
    assert events().num_entries == 0


def test_an_ntuple_into_another_file() -> None:
    types = {"m": "std::map<int, std::string>", "o": "std::optional<float>", "e": "float"}
    with tupelo.recreate("from.root") as file:
        ntuple = file.mkrntuple("Events", types, description="a few", encodings={"e": "Real16"})
        ntuple.extend({"m": [[(1, "a")], []], "o": [1.5, 2.5], "e": [0.5, 1.5]})
    source = tupelo.open("from.root:Events")
    assert isinstance(source, tupelo.Ntuple)
    again = written(source)
    assert again.description == "a few"
    assert again.typenames() == source.typenames()
    assert again.arrays().tolist() == source.arrays().tolist()
    assert again.arrow_schema.equals(source.arrow_schema, check_metadata=True)


def test_optional_records_keep_their_members() -> None:
    types = {"x": "std::vector<std::optional<std::pair<std::string, int>>>"}
    with tupelo.recreate("from.root") as file:
        file.mkrntuple("Events", types).extend({"x": ak.Array([[("a", 1), None], [], [None]])})
    source = tupelo.open("from.root:Events")
    assert isinstance(source, tupelo.Ntuple)
    assert source["x"].array().tolist() == [[("a", 1), None], [], [None]]
    assert written(source.arrays(library="arrow")).typenames() == source.typenames()
    assert source["x._1"].array().tolist() == [[1, None], [], [None]]


def test_several_ntuples_in_directories_and_updates() -> None:
    with tupelo.recreate("f.root") as file:
        a = file.mkrntuple("a", {"x": "int"})
        b = file.mkrntuple("deep/er/b", {"y": "std::vector<double>"})
        for i in range(5):
            a.extend({"x": [i]})
            b.extend({"y": [[i / 2]] * 3})
        assert (a.num_entries, b.num_entries) == (5, 15)
        a.close()
        assert a.num_entries == 5
        assert file.keys() == ["a", "deep/er/b"]
    with tupelo.update("f.root") as file:
        file["deep/c"] = {"z": [True]}
    with tupelo.open("f.root") as opened:
        assert isinstance(opened, tupelo.File)
        assert sorted(opened.keys()) == ["a", "deep/c", "deep/er/b"]
        assert opened["a"]["x"].array().tolist() == list(range(5))
        assert opened["deep/er/b"].num_entries == 15
    assert uproot.open("f.root")["deep/er/b"].num_entries == 15


TYPES: dict[str, tuple[str, list[Any]]] = {
    "bool": ("bool", [True, False]),
    "char": ("char", [65, 66]),
    "std::byte": ("std::byte", [1, 255]),
    "unsigned int": ("std::uint32_t", [1, 2**32 - 1]),
    "long long": ("std::int64_t", [-(2**63), 2**63 - 1]),
    "std::uint64_t": ("std::uint64_t", [0, 2**64 - 1]),
    # Regression: these spellings were known to some parts of Tupelo and not to others.
    "short int": ("std::int16_t", [-1, 2**15 - 1]),
    "unsigned short int": ("std::uint16_t", [0, 2**16 - 1]),
    "long int": ("std::int64_t", [-(2**63), 2**63 - 1]),
    "Long_t": ("std::int64_t", [-1, 1]),
    "ULong_t": ("std::uint64_t", [0, 2**64 - 1]),
    "::std::vector<Byte_t>": ("std::vector<std::uint8_t>", [[0, 255], []]),
    "float": ("float", [0.5, -1.5]),
    "Double32_t": ("Double32_t", [0.5, 1.25]),
    "string": ("std::string", ["a", ""]),
    "float32": ("float", [0.5, 1.5]),
    "vector<vector<int>>": ("std::vector<std::vector<std::int32_t>>", [[[1], []], []]),
    "RVec<float>": ("ROOT::VecOps::RVec<float>", [[0.5], []]),
    "std::set<short>": ("std::set<std::int16_t>", [[1, 2], []]),
    "std::array<float, 2>": ("std::array<float,2>", [[1.0, 2.0], [3.0, 4.0]]),
    "std::bitset<9>": ("std::bitset<9>", [[True] * 9, [False] * 9]),
    "std::pair<int, std::string>": ("std::pair<std::int32_t,std::string>", [(1, "a"), (2, "b")]),
    "tuple<int,float,bool>": ("std::tuple<std::int32_t,float,bool>", [(1, 0.5, True), (2, 1.5, False)]),
    "map<string, vector<int>>": ("std::map<std::string,std::vector<std::int32_t>>", [[("a", [1])], []]),
    "unordered_map<int,int>": ("std::unordered_map<std::int32_t,std::int32_t>", [[(1, 2)], [(3, 4)]]),
    "optional<double>": ("std::optional<double>", [None, 1.5]),
    "optional<vector<int>>": ("std::optional<std::vector<std::int32_t>>", [None, [1, 2]]),
    "vector<optional<float>>": ("std::vector<std::optional<float>>", [[None, 1.5], []]),
    "optional<pair<int,int>>": ("std::optional<std::pair<std::int32_t,std::int32_t>>", [None, (1, 2)]),
    "variant<int,std::string>": ("std::variant<std::int32_t,std::string>", [1, "two"]),
    "vector<variant<bool,float>>": ("std::vector<std::variant<bool,float>>", [[True, 1.5], []]),
    "optional<variant<int,string>>": ("std::optional<std::variant<std::int32_t,std::string>>", [None, "two"]),
    "optional<optional<int>>": ("std::optional<std::optional<std::int32_t>>", [[], [1]]),
}


@pytest.mark.parametrize("declared", TYPES)
def test_cpp_types(declared: str) -> None:
    type_name, values = TYPES[declared]
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple("Events", {"x": declared})
        column: Any = values
        if "map" in declared or "pair" in declared or "tuple" in declared:
            column = ak.Array(values)
        ntuple.extend({"x": column})
        ntuple.extend({"x": column[:0]})
        ntuple.extend({"x": column[1:]})
    ntuple_again = events()
    assert ntuple_again["x"].typename == type_name
    expected = [None, 1] if declared == "optional<optional<int>>" else values
    assert ntuple_again["x"].array().tolist() == [*expected, expected[1]]
    assert len(ntuple_again["x"].array(library="np")) == 3


def test_variants_use_the_closest_alternative() -> None:
    """Whatever comes first in a batch: the order of alternatives in an Awkward array depends on it."""
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple("Events", {"x": "std::variant<double, std::int16_t, std::string, std::vector<float>>"})
        pieces: list[list[Any]] = [["two", 1], [[2.5], 0.5], [], [7, 8], ["a"], [None, 3, None]]
        for piece in pieces:
            ntuple.extend({"x": ak.Array(piece)})
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"field 'x': expected a value of double, int16.*, not True"
        ):
            ntuple.extend({"x": [True]})
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"field 'x': expected a value of double.*, not \[1, 'text'\]"
        ):
            ntuple.extend({"x": [[1, "text"]]})
    flat = [value for piece in pieces for value in piece]
    assert events()["x"].array().tolist() == flat
    assert [type(value) for value in events()["x"].array().tolist()] == [type(value) for value in flat]
    assert uproot.open("f.root")["Events"]["x"].array().tolist() == flat


@pytest.mark.parametrize(
    "declared",
    [
        "std::vector<Track>",
        "vector<int",
        "map<int>",
        "pair<int,int,int>",
        "array<int,0>",
        "bitset<x>",
        "",
        "vector<>",
        "c16",
        complex,
    ],
)
def test_other_types_are_rejected(declared: Any) -> None:
    with (
        pytest.raises(tupelo.InvalidArgumentError, match="field 'x'"),
        tupelo.recreate("f.root") as file,
    ):
        file.mkrntuple("Events", {"x": declared})
    assert not pathlib.Path("f.root").exists()


def test_declared_by_numpy_and_arrow() -> None:
    with tupelo.recreate("f.root") as file:
        file.mkrntuple("a", {"x": np.float32, "y": ("u2", 3), "z": "datetime64[s]"} | {"z": int}).close()
        file.mkrntuple("b", np.dtype([("x", "f4"), ("m", "i1", (2, 2)), ("r", [("s", "U5")])])).close()
        file.mkrntuple("c", pa.schema([pa.field("x", pa.float32()), pa.field("y", pa.int8(), nullable=False)])).close()
        file.mkrntuple("d", {"x": pa.list_(pa.field("item", pa.int32(), nullable=False)), "y": pa.float64()}).close()
    with tupelo.open("f.root") as opened:
        assert isinstance(opened, tupelo.File)
        types = {name: list(ntuple.typenames().values()) for name, ntuple in opened.items()}
    assert types == {
        "a": ["float", "std::array<std::uint16_t,3>", "std::int64_t"],
        "b": ["float", "std::array<std::array<std::int8_t,2>,2>", "struct", "std::string"],
        "c": ["std::optional<float>", "std::int8_t"],
        "d": ["std::vector<std::int32_t>", "double"],
    }


def test_numbers_are_converted_without_loss() -> None:
    types = {"i": "std::int8_t", "f": "float", "v": "std::vector<double>", "a": "std::array<float,2>"}
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple("Events", types)
        ntuple.extend({"v": [[1], [2, 3]], "a": [[1, 2], [3, 4]], "f": [1, 2], "i": [1.0, 2.0]})
        for wrong, text in [
            ({"i": [300]}, "field 'i': Integer value 300 not in range"),
            ({"i": [1.5]}, "field 'i': Float value 1.5"),
            ({"i": ["a"]}, "field 'i': values of the Arrow type string do not fit"),
            ({"i": [None]}, "field 'i': 1 values are missing, but the field is not declared as std::optional"),
            ({"v": [[1, None]]}, "field 'v': 1 values are missing"),
            ({"a": [[1, 2, 3]]}, "field 'a': expected a list of 2 items"),
            ({"z": [1]}, "unknown: 'z'"),
        ]:
            data = {"i": [1], "f": [1], "v": [[1]], "a": [[1, 2]]} | wrong
            with pytest.raises(tupelo.InvalidArgumentError, match=re.escape(text)):
                ntuple.extend(data)
        with pytest.raises(tupelo.InvalidArgumentError, match="missing: 'f', 'v', 'a'"):
            ntuple.extend({"i": [1]})
        ntuple.extend(ak.Array([{"i": 5, "f": 2.5, "v": [], "a": [5, 6]}]))
    assert events().arrays().tolist() == [
        {"i": 1, "f": 1.0, "v": [1.0], "a": [1.0, 2.0]},
        {"i": 2, "f": 2.0, "v": [2.0, 3.0], "a": [3.0, 4.0]},
        {"i": 5, "f": 2.5, "v": [], "a": [5.0, 6.0]},
    ]


def test_later_data_cannot_make_a_field_optional() -> None:
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple("Events", {"x": [1, 2]})
        with pytest.raises(tupelo.InvalidArgumentError, match="1 values are missing"):
            ntuple.extend({"x": [None]})
    assert events().num_entries == 2


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"x": [1], "y": [1, 2]}, "different lengths: 'x' 1, 'y' 2"),
        ({"x": np.array([1j])}, "column 'x' cannot be written: expected real numbers, booleans, strings, or lists or"),
        ({"x": [1j]}, "not values of type complex; write the real and the imaginary part as two columns"),
        (pd.DataFrame({"a": [1], "x": [1j]}), "column 'x' cannot be written: expected real numbers"),
        ({"x": "float"}, "expected data, not types"),
        ({"x": "float", "y": [1]}, "column 'x' cannot be written: it is a single string"),
        ({"x": 7}, "column 'x' cannot be written: it is a single value of type int; expected an array or a list with"),
        ({"x": 7}, "one value for each entry, such as [7]"),
        ({"x": None}, "column 'x' cannot be written: it is a single value of type NoneType"),
        ({"x": np.array(7)}, "column 'x' cannot be written: it is a single value of type int64"),
        ({1: [1]}, "expected the name of a field to be a string, not 1"),
        (7, "data of type int have no named columns"),
        (ak.Array([1, 2]), "expected an Awkward array of records with named fields"),
        (np.arange(3), "data of type ndarray have no named columns"),
        (pd.Series([1], name="a"), "type Series have no named columns; expected a dict of columns, such as {'a':"),
        (pl.Series([1]), "such as {'x': data}, an Awkward array of records, a data frame or an Arrow table"),
        ({}, "no columns: an ntuple needs at least one field"),
    ],
)
def test_invalid_data(data: Any, text: str) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=re.escape(text)):
        written(data)
    assert not pathlib.Path("f.root").exists()


def test_times_are_not_supported() -> None:
    with pytest.raises(tupelo.UnsupportedError, match="field 'x': Arrow type Timestamp"):
        written({"x": np.array(["2026-01-01"], "M8[s]")})


def test_compressions_of_uproot_stand_for_their_number() -> None:
    """Regression: the error was that "ZSTD(5)" is unknown."""
    data = {"x": np.arange(1000)}
    for setting in uproot.ZLIB(1), uproot.LZMA(2), uproot.LZ4(4), uproot.ZSTD(5), uproot.ZLIB(0):
        with tupelo.recreate("f.root", compression=setting) as file:
            file["Events"] = data
            file.mkrntuple("Other", data, compression="none", compressions={"x": setting})
            file.mktree("Tree", data, compression=setting)
        found = uproot.open("f.root")["Tree/x"].compression
        assert found == setting if setting.level else found is None
        assert len(pathlib.Path("f.root").read_bytes()) > 16000 or setting.level
    with pytest.raises(tupelo.InvalidArgumentError, match="zstd level 22 is out of range: levels are 1 to 9"):
        tupelo.recreate("f.root", compression=uproot.ZSTD(22))  # type: ignore[arg-type]


def test_options_are_checked() -> None:
    for options, text in [
        ({"compression": "brotli"}, "unknown compression"),
        ({"compression": "zstd:99"}, "levels are 1 to 9"),
        ({"page_bytes": 0}, "page size of 0 bytes"),
        ({"cluster_bytes": "many"}, "'many' is not a size"),
        ({"encodings": {"x": "Real17"}}, "'Real17' is not a column encoding"),
        ({"encodings": {"x": "Int32"}}, "'double' cannot be stored as Int32"),
    ]:
        with pytest.raises(tupelo.InvalidArgumentError, match=text), tupelo.recreate("f.root") as file:
            file.mkrntuple("Events", {"x": "double"}, **options)  # type: ignore[arg-type]
    with pytest.raises(tupelo.NotFoundError, match="no field named 'y'"), tupelo.recreate("f.root") as file:
        file.mkrntuple("Events", {"x": "double"}, encodings={"y": "Real16"})
    with pytest.raises(TypeError), tupelo.recreate("f.root", codec="zstd"):  # type: ignore[call-arg]
        pass
    assert list(pathlib.Path().iterdir()) == []


def test_encodings_have_their_precision() -> None:
    values = np.linspace(-1, 1, 1001)
    kinds = {
        "half": "Real16",
        "cut": "Real32Trunc(16)",
        "quant": "Real32Quant(8,-1,1)",
        "single": "Real32",
        "full": None,
    }
    with tupelo.recreate("f.root") as file:
        ntuple = file.mkrntuple(
            "Events",
            dict.fromkeys(kinds, "double"),
            encodings={name: encoding for name, encoding in kinds.items() if encoding},
            compressions={"half": "lzma:9", "cut": "none"},
        )
        ntuple.extend(dict.fromkeys(kinds, values))
    arrays = events().arrays(library="np")
    off = {name: float(np.abs(arrays[name] - values).max()) for name in kinds}
    assert off["full"] == 0
    assert 0 < off["single"] < 1e-7 < off["half"] < 1e-3 < off["quant"] < 1e-2
    assert 1e-7 < off["cut"] < 1e-2


def interrupted(file: tupelo.WritableFile) -> None:
    with file:
        file["more"] = {"x": np.arange(1000)}
        raise ZeroDivisionError


def test_an_exception_leaves_no_file() -> None:
    pathlib.Path("f.root").write_text("what was there before")
    with pytest.raises(ZeroDivisionError):
        interrupted(tupelo.recreate("f.root"))
    assert pathlib.Path("f.root").read_text() == "what was there before"
    assert [path.name for path in pathlib.Path().iterdir()] == ["f.root"]


def test_an_exception_does_not_change_an_updated_file() -> None:
    written({"x": [1]})
    before = pathlib.Path("f.root").read_bytes()
    with pytest.raises(ZeroDivisionError):
        interrupted(tupelo.update("f.root"))
    with tupelo.open("f.root") as opened:
        assert opened.keys() == ["Events"]
    assert pathlib.Path("f.root").read_bytes()[: len(before)] == before


def test_nothing_is_visible_before_the_end() -> None:
    file = tupelo.recreate("f.root")
    file["Events"] = {"x": [1]}
    assert not pathlib.Path("f.root").exists()
    file.close()
    file.close()
    assert events().num_entries == 1
    with pytest.raises(tupelo.InvalidArgumentError, match=r"f\.root is closed"):
        file["more"] = {"x": [1]}


def test_an_unreferenced_file_reports_lost_data(capsys: pytest.CaptureFixture[str]) -> None:
    file = tupelo.recreate("f.root")
    file["Events"] = {"x": [1, 2, 3]}
    del file
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for part in (
        "f.root was not closed",
        "no file was created",
        "'Events' (3 entries)",
        "with tupelo.recreate('f.root') as file:",
    ):
        assert part in said
    assert list(pathlib.Path().iterdir()) == []
    with tupelo.recreate("f.root") as whole:
        whole["Events"] = {"x": [1]}
    update = tupelo.update("f.root")
    update["more"] = {"x": [1]}
    del update
    said = capsys.readouterr().err
    assert "the file is unchanged" in said
    assert "'more' (1 entries)" in said
    del whole
    with contextlib.suppress(ZeroDivisionError), tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1 / 0]}
    del file
    assert capsys.readouterr().err == ""


def test_large_data_in_many_clusters() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, 50_000)
    jagged = ak.unflatten(rng.normal(size=int(counts.sum())).astype("f4"), counts)
    ntuple = written({"v": jagged, "i": np.arange(50_000)}, cluster_bytes="50 kB", page_bytes="8 KiB")
    assert ntuple.num_clusters > 3
    assert ak.array_equal(ntuple["v"].array(), jagged)
    assert ntuple["i"].array(-1)[0] == 49_999
    assert ak.array_equal(uproot.open("f.root")["Events"]["v"].array(), jagged)


def test_decreasing_offsets_are_rejected(tmp_path: pathlib.Path) -> None:
    """Regression: an Arrow array with decreasing offsets was written to an unreadable file."""
    offsets = pa.array([0, 5, 2], pa.int64()).buffers()[1]
    bad = pa.LargeListArray.from_buffers(
        pa.large_list(pa.int32()), 2, [None, offsets], children=[pa.array(range(5), pa.int32())]
    )
    path = tmp_path / "bad.root"
    with pytest.raises(tupelo.InvalidArgumentError, match="offsets of the Arrow array"), tupelo.recreate(path) as file:
        file["n"] = pa.table({"v": bad})
    assert not path.exists()


@pytest.mark.parametrize("data", [{"x": [[], []]}, {"x": [None, None]}, pl.DataFrame({"x": [[], []]})])
def test_first_data_without_a_type_give_a_hint(tmp_path: pathlib.Path, data: Any) -> None:
    """Regression: a first chunk without muons raised an error of PyArrow without the field."""
    with (
        pytest.raises(tupelo.InvalidArgumentError, match=r"'x'.*declare it"),
        tupelo.recreate(tmp_path / "f.root") as file,
    ):
        file["n"] = data


@pytest.mark.parametrize("declared", ["std::vector<double>", "std::vector<std::vector<float>>", "std::optional<int>"])
def test_collections_accept_index_encodings(tmp_path: pathlib.Path, declared: str) -> None:
    """Regression: the encoding was applied to the numbers, which cannot be indices."""
    with tupelo.recreate(tmp_path / "f.root", compression="none") as file:
        file.mkrntuple("n", {"v": declared}, encodings={"v": "Index32"})
    field = tupelo.open(tmp_path / "f.root")["n"].arrow_schema.field("v")
    assert field.metadata[b"rntuple.encoding"] == b"Index32"


def write_under(path: pathlib.Path, *names: str) -> None:
    """Ntuples of these names in one file."""
    with tupelo.recreate(path) as file:
        for name in names:
            file[name] = {"x": [1]}


@pytest.mark.parametrize("names", [("a/b", "a"), ("a", "a/b"), ("c", "a;3")])
def test_names_that_root_files_do_not_support(tmp_path: pathlib.Path, names: tuple[str, ...]) -> None:
    """Regression: a name with a cycle could be written but not read; an ntuple hid the directory of its name."""
    with pytest.raises(tupelo.Error):
        write_under(tmp_path / "f.root", *names)
    assert not (tmp_path / "f.root").exists()


@pytest.mark.parametrize(("declared", "values"), [("float", [1e300]), ("bool", [2, 0])])
def test_values_out_of_range_are_rejected(tmp_path: pathlib.Path, declared: str, values: list[float]) -> None:
    """Regression: 1e300 became infinite and 2 became true silently."""
    with tupelo.recreate(tmp_path / "f.root") as file:
        writer = file.mkrntuple("n", {"x": declared})
        with pytest.raises(tupelo.InvalidArgumentError, match=r"'x'.*do not fit"):
            writer.extend({"x": values})
        writer.extend({"x": [1, 0]})
    assert tupelo.open(tmp_path / "f.root")["n"].num_entries == 2
