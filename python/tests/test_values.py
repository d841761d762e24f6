"""Python values, and slices of Arrow data, in declared fields: values round-trip."""

from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tupelo


def again(declared: Any, values: Any) -> Any:
    """Writes values in one call and reads them."""
    with tupelo.recreate("v.root") as file:
        file.mkrntuple("Events", {"x": declared}).extend({"x": values})
    ntuple = tupelo.open("v.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    return ntuple["x"].array().tolist()


VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    # Regression: these values raised various errors or changed.
    "std::pair<float,std::vector<int>>": ([(1.0, [])], [(1.0, [])]),
    "std::tuple<float,double,std::optional<bool>>": ([(0.5, 2.0, None)], [(0.5, 2.0, None)]),
    "std::map<std::string,std::vector<int>>": ([{"a": []}, {}], [[("a", [])], []]),
    "std::optional<std::pair<float,std::pair<std::string,int>>>": ([(0.5, ("a", 5)), None], [(0.5, ("a", 5)), None]),
    "std::optional<std::array<int,2>>": ([None, [1, 2], None], [None, [1, 2], None]),
    "std::optional<std::array<std::string,2>>": ([["a", "b"], None], [["a", "b"], None]),
    "std::optional<std::array<float,3>>": ([None], [None]),
    "std::vector<std::map<std::string,int>>": ([[{"a": 1}, {}], []], [[[("a", 1)], []], []]),
    "std::pair<std::map<int,int>,int>": ([({1: 2}, 3)], [([(1, 2)], 3)]),
    "std::map<int,std::map<int,int>>": ([{1: {2: 3}}], [[(1, [(2, 3)])]]),
    "std::variant<int,std::map<std::string,int>>": ([{"a": 1}, 7], [[("a", 1)], 7]),
    "std::pair<int,std::tuple<int,int,int>>": ([(1, (1, 2, 3))], [(1, (1, 2, 3))]),
    "std::vector<std::uint64_t>": ([[2**63], [1]], [[2**63], [1]]),
    "std::pair<std::uint64_t,int>": ([(2**63 + 1, 1)], [(2**63 + 1, 1)]),
    "std::pair<std::int64_t,int>": ([(2**53 + 1, 1), (1, 1)], [(2**53 + 1, 1), (1, 1)]),
    "std::variant<std::int64_t,double>": ([2**53 + 1, 0.5], [2**53 + 1, 0.5]),
    "std::variant<int,double>": ([1, 2.5, 2**40], [1, 2.5, 2.0**40]),
    "std::variant<std::vector<int>,std::vector<double>>": ([[1], [1.5]], [[1], [1.5]]),
    "std::variant<float,double>": ([1.5, 1e300], [1.5, 1e300]),
    "std::variant<bool,int,std::string>": ([True, 1, "1"], [True, 1, "1"]),
    "std::set<int>": ([{1}, set()], [[1], []]),
    "std::vector<std::byte>": ([b"\xff\x00", b""], [[255, 0], []]),
}


@pytest.mark.parametrize("declared", VALUES)
def test_values_round_trip(declared: str) -> None:
    values, wanted = VALUES[declared]
    got = again(declared, values)
    assert got == wanted
    assert repr(got) == repr(wanted)


@pytest.mark.parametrize(
    ("declared", "values", "error"),
    [
        ("std::pair<std::int64_t,int>", [(2**53 + 1, 1), (1.0, 1)], "Integer value 9007199254740993 is outside"),
        ("std::pair<int,int>", [(1, 2), (3,)], r"field 'x': expected 2 members in \(3,\)"),
        ("std::pair<int,int>", [7], "field 'x': expected a mapping or tuple with .*, not 7"),
        ("std::vector<std::pair<int,int>>", [[(1, None)]], r"field 'x\._1': 1 values are missing"),
        ("std::array<std::string,2>", [["a"]], r"field 'x': expected a list of 2 items, not \['a'\]"),
        ("std::variant<std::int8_t,std::string>", [300], "field 'x': expected a value of int8.*, not 300"),
        ("std::vector<std::vector<int>>", [["a"]], "field 'x': values of the Arrow type string do not fit"),
    ],
)
def test_errors_locate_values_that_do_not_fit(declared: str, values: list[Any], error: str) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=error):
        again(declared, values)


def test_members_by_name() -> None:
    jet = tupelo.record("Jet", {"pt": "float", "hits": "std::vector<int>"})
    assert again(jet, [{"hits": [1], "pt": 2.5}, (3.5, [])]) == [{"pt": 2.5, "hits": [1]}, {"pt": 3.5, "hits": []}]
    with pytest.raises(tupelo.InvalidArgumentError, match="field 'x': unknown member 'px': expected "):
        again(jet, [{"px": 2.5}])
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'x\.hits': 1 values are missing"):
        again(jet, [{"pt": 2.5}])


ARRAYS = pa.struct({"a": pa.list_(pa.list_(pa.int32(), 2))})
NESTED = {
    "records": pa.array([{"a": {"b": i, "c": [i]}} for i in range(10)]),
    "lists": pa.array([[{"a": {"b": [j] * i}} for j in range(i % 3)] for i in range(10)]),
    "arrays": pa.array([{"a": [[i, -i]] * (i % 2)} for i in range(10)], ARRAYS),
    "missing": pa.array([{"a": {"b": None if i % 2 else i}} for i in range(10)]),
    "texts": pa.array([{"a": {"b": str(i)}} for i in range(10)]),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("piece", [slice(2, 5), slice(0, 4), slice(9, 10), slice(4, 4), slice(0, 10)])
def test_slices_of_arrow_data(kind: str, piece: slice) -> None:
    """Regression: records in records panicked, because the slice was applied twice."""
    array = NESTED[kind][piece]
    table = pa.table({"x": array})
    sources: list[Any] = [table, {"x": array}, table.to_batches()[0] if len(table) else table]
    sources.append(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    whole = pa.table({"x": NESTED[kind]})
    for source in sources:
        with tupelo.recreate("s.root") as file:
            ntuple = file.mkrntuple("Events", whole)
            ntuple.extend(source)
        got = tupelo.open("s.root:Events").arrays(library="arrow")["x"].to_pylist()
        assert got == whole["x"].to_pylist() + array.to_pylist()


def test_nulls_outside_of_a_slice_are_ignored() -> None:
    table = pa.table({"x": [[1.5], [None]]}).slice(0, 1)
    with tupelo.recreate("o.root") as file:
        file["Events"] = table
        file.mkrntuple("Declared", {"x": "std::vector<double>"}).extend(table)
    assert tupelo.open("o.root:Events")["x"].typename == "std::vector<double>"
    assert tupelo.open("o.root:Declared")["x"].array().tolist() == [[1.5]]


def test_missing_fixed_arrays_of_arrow() -> None:
    whole = pa.list_(pa.field("item", pa.int64(), False), 2)
    for array in (pa.array([None, [1, 2], None], whole), pa.array([None, [1, 2], None], pa.list_(pa.int8()))):
        assert again("std::optional<std::array<int,2>>", array) == [None, [1, 2], None]
    assert again("std::optional<std::array<int,2>>", pa.array([None], pa.list_(pa.int8(), 2))) == [None]


def test_objects_of_numpy_and_pandas() -> None:
    objects = np.empty(2, dtype=object)
    objects[:] = [(1, [2]), (3, [])]
    assert again("std::pair<int,std::vector<int>>", objects) == [(1, [2]), (3, [])]
    structured = np.array([(1, 2.5)], dtype=[("_0", "i4"), ("_1", "f8")])
    assert again("std::pair<int,double>", list(structured)) == [(1, 2.5)]
    series = pd.Series([{"a": 1}, {}])
    assert again("std::map<std::string,int>", series) == [[("a", 1)], []]
    assert again("std::vector<std::vector<float>>", [np.ones((1, 2)), ak.Array([[3.0]])]) == [[[1.0, 1.0]], [[3.0]]]
