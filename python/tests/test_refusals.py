"""Rejected arguments change nothing and raise errors of the package, not of NumPy, PyArrow or codecs."""

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tupelo

LONE = "key\ud800"
"""A string that is not valid UTF-8, as returned by `os.fsdecode` for such bytes."""


def opened(where: str = "f.root:Events") -> tupelo.Ntuple:
    ntuple = tupelo.open(where)
    assert isinstance(ntuple, tupelo.Ntuple)
    return ntuple


# Data that do not fit add no fields.


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"x": ["text"], "new": [1]}, "'x'"),
        ({"x": [1.5], "new": [1]}, "truncated"),
        ({"new": [1]}, "missing: 'x'"),
        ({"x": [1], "new": [1, 2]}, "different lengths"),
        ({"x": [1], "new": [None]}, "all data are empty or missing"),
        ({"x": [1], "new": [object()]}, "'new' cannot be written"),
        ({"x": [1], "a.b": [1]}, "the format forbids"),
        ({"x": [None], "new": [1]}, "not declared as std::optional"),
        ({"x": [1], "text": [1], "new": [1]}, "'text'"),
    ],
)
def test_rejected_data_add_no_fields(bad: Any, text: str) -> None:
    """Regression: the new field stayed in the schema."""
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int", **({"text": "std::string"} if "text" in bad else {})})
        good = {"x": [1], **({"text": ["a"]} if "text" in bad else {})}
        events.extend(good)
        before = events.arrow_schema
        with pytest.raises(tupelo.Error, match=text):
            events.extend(bad, accept_new_fields=True)
        assert events.arrow_schema == before
        assert events.num_entries == 1
        events.extend({**good, "later": [[1, 2]]}, accept_new_fields=True)
    assert opened().keys() == [*good, "later"]
    assert opened()["later"].array().tolist() == [[], [1, 2]]


def test_strings_are_not_lists_of_numbers() -> None:
    """Regression: the engine wrote a partial entry and could not finish the ntuple."""
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "std::vector<int>", "b": "std::vector<std::byte>"})
        for bad in ({"x": ["ab"], "b": [b""]}, {"x": [b"ab"], "b": [b""]}, {"x": [[1]], "b": ["ab"]}):
            with pytest.raises(tupelo.InvalidArgumentError, match="do not fit the declared type large_list"):
                events.extend(bad)
        events.extend({"x": [[1]], "b": [b"ab"]})
    assert opened().arrays().tolist() == [{"x": [1], "b": [97, 98]}]


# Options.


@pytest.mark.parametrize("value", [-1, 2**63, "1 kB", 1.5, "many"])
def test_counts_are_not_sizes(value: Any) -> None:
    """Regression: the message said "bytes", and "1 kB" meant a thousand clusters."""
    text = r"expected checkpoint_clusters as a number of clusters from 0 \(never\) to 2⁶³−1, not "
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        tupelo.recreate("f.root", checkpoint_clusters=value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"description": 3}, "expected the description to be a string, not 3"),
        ({"description": LONE}, "the description is not valid UTF-8: .*lone surrogate at character 3"),
        ({"compression": LONE}, "compression is not valid UTF-8"),
        ({"encodings": ["x"]}, r"expected encodings to be a mapping \{name: value\}, not \['x'\]"),
        ({"encodings": {3: "Real16"}}, "expected a name in the encodings to be a string, not 3"),
        ({"encodings": {LONE: "Real16"}}, "a name in the encodings is not valid UTF-8"),
        ({"encodings": {"x": LONE}}, "encodings of 'x' is not valid UTF-8"),
        ({"compressions": "lzma"}, "expected compressions to be a mapping"),
        ({"compressions": {"x": LONE}}, "compressions of 'x' is not valid UTF-8"),
        ({"projections": ["x"]}, "expected projections to be a mapping"),
        ({"projections": {LONE: "x"}}, "a name in the projections is not valid UTF-8"),
        ({"projections": {"y": LONE}}, "projection 'y': its source is not valid UTF-8"),
    ],
)
def test_invalid_options(options: Any, text: str) -> None:
    with tupelo.recreate("f.root") as file, pytest.raises(tupelo.InvalidArgumentError, match=text):
        file.mkrntuple("Events", {"x": "float"}, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compression": "foo"}, "unknown compression"),
        ({"compression": "zstd:10"}, "levels are 1 to 9"),
        ({"compression": 999}, "999"),
        ({"page_bytes": 0}, "page size of 0 bytes"),
        ({"page_bytes": "1025 MiB"}, "page size of 1074790400 bytes"),
        ({"cluster_bytes": 0}, "cluster size of 0 bytes"),
        ({"checkpoint_seconds": -1}, "checkpoint interval of -1 seconds"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint interval of NaN seconds"),
    ],
)
def test_invalid_options_are_rejected_immediately(options: Any, text: str) -> None:
    """Regression: errors were raised by the first ntuple, after the file was created."""
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        tupelo.recreate("g.root", **options)
    assert not pathlib.Path("g.root").exists()
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1]}
    before = pathlib.Path("f.root").read_bytes()
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        tupelo.update("f.root", **options)
    assert [path.name for path in pathlib.Path().iterdir()] == ["f.root"]
    assert pathlib.Path("f.root").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compression": "foo"}, "unknown compression"),
        ({"compressions": {"x": "foo"}}, "unknown compression"),
        ({"encodings": {"x": "Real17"}}, "'Real17' is not a column encoding"),
    ],
)
def test_invalid_options_are_rejected_before_a_stream_is_read(options: Any, text: str) -> None:
    """Regression: the stream was read before the error."""
    batches = iter([pa.record_batch({"x": [0.5]})])
    stream = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches)
    with tupelo.recreate("f.root") as file:
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            file.mkrntuple("Events", stream, **options)
        file["Events"] = stream
    assert opened().arrays().tolist() == [{"x": 0.5}]


@pytest.mark.parametrize("size", [2**63, "9e99 TB", "1e400 B"])
def test_too_large_steps(size: Any) -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1]}
    with pytest.raises(tupelo.InvalidArgumentError, match="2⁶³−1"):
        opened().iterate(step_size=size)
    assert len(list(opened().iterate(step_size=sys.maxsize))) == 1


# Strings without UTF-8.


def test_metadata_without_utf_8_are_rejected() -> None:
    with tupelo.recreate("f.root") as file:
        metadata = file.mkrntuple("Events", {"x": "int"}).metadata
        text = r"'Events': a key of the metadata is not valid UTF-8: 'key\\ud800' has a lone surrogate at character 3"
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            metadata[LONE] = "value"
        with pytest.raises(tupelo.InvalidArgumentError, match="the metadata of the key 'tune' is not valid UTF-8"):
            metadata["tune"] = LONE
        assert LONE not in metadata
        with pytest.raises(tupelo.NotFoundError, match=r"no metadata key 'tune' \(existing keys: none\)"):
            metadata["tune"]
        metadata["tune"] = "CP5"
    assert opened().metadata == {"tune": "CP5"}


@pytest.mark.parametrize(
    "call",
    [
        lambda file, events: file.mkrntuple(LONE, {"x": "int"}),
        lambda file, events: file.__setitem__(LONE, {"x": [1]}),
        lambda file, events: file[LONE],
        lambda file, events: file.mkrntuple("n", {LONE: "int"}),
        lambda file, events: file.mkrntuple("n", {LONE: [1]}),
        lambda file, events: file.mkrntuple("n", np.dtype([(LONE, "i4")])),
        lambda file, events: file.mkrntuple("n", {"r": np.dtype([(LONE, "i4")])}),
        lambda file, events: file.mkrntuple("n", ak.zip({LONE: ak.Array([1])})),
        lambda file, events: events.extend({"x": [1], LONE: [1]}, accept_new_fields=True),
        lambda file, events: events.add_fields({LONE: "int"}),
        lambda file, events: events.add_members(LONE, {"y": "int"}),
        lambda file, events: events.attribute_set(LONE, {"q": "int"}),
        lambda file, events: events.attribute_set("set", {LONE: "int"}),
        lambda file, events: tupelo.record(LONE, {"x": "int"}),
        lambda file, events: tupelo.record("C", {LONE: "int"}),
        lambda file, events: tupelo.recreate(LONE),
        lambda file, events: tupelo.update(LONE),
        lambda file, events: tupelo.open(LONE),
        lambda file, events: tupelo.open({"g.root": LONE}),
        lambda file, events: opened("g.root:Events")[LONE],
        lambda file, events: opened("g.root:Events").arrays(LONE),
        lambda file, events: opened("g.root:Events").arrays(schema={LONE: "int"}),
        lambda file, events: opened("g.root:Events").attributes(LONE),
    ],
)
def test_names_without_utf_8_are_rejected(call: Callable[[tupelo.WritableFile, tupelo.NtupleWriter], Any]) -> None:
    with tupelo.recreate("g.root") as file:
        file["Events"] = {"x": [1]}
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int"})
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"is not valid UTF-8: '.*\\ud800' has a lone surrogate at"
        ):
            call(file, events)


# Invalid names and files.


@pytest.mark.parametrize("path", [None, 7, b"f.root"])
def test_invalid_file_names(path: Any) -> None:
    for begin in (tupelo.recreate, tupelo.update, tupelo.open):
        with pytest.raises(tupelo.InvalidArgumentError, match="expected a file name as a string or a path, not"):
            begin(path)


def test_unknown_schemes_are_not_written() -> None:
    with pytest.raises(tupelo.UnsupportedError, match="its scheme is not supported"):
        tupelo.recreate("xyz://host/f.root")
    assert not list(pathlib.Path().iterdir())


def test_fields_are_indexed_by_names() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [{"a": 1}]}
        for name, text in ((7, "expected the name of a field to be a string, not 7"), ("a\0b", "contains")):
            with pytest.raises(tupelo.InvalidArgumentError, match=text):
                file["Other"] = {name: [1]}
            with pytest.raises(tupelo.InvalidArgumentError, match=text):
                file.mkrntuple("Other", {name: "int"})
    ntuple = opened()
    for number in (0, slice(3), ["x"], ("x", "x")):
        with pytest.raises(tupelo.InvalidArgumentError, match="expected the name of a field, not"):
            ntuple[number]  # type: ignore[index]
        with pytest.raises(tupelo.InvalidArgumentError, match="expected the name of a subfield, not"):
            ntuple["x"][number]  # type: ignore[index]
        assert number not in ntuple
    with pytest.raises(
        tupelo.InvalidArgumentError, match="expected the name of an attribute set to be a string, not 3"
    ):
        ntuple.attributes(3)  # type: ignore[arg-type]
    with pytest.raises(tupelo.UnsupportedError, match=r"unknown library=\['ak'\]"):
        ntuple.arrays(library=["ak"])  # type: ignore[arg-type]
    with pytest.raises(tupelo.NotFoundError, match="pass regular expressions as `filter_name`"):
        ntuple.arrays("/x.*/")


# Invalid columns.


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (np.zeros(2, complex), "not values of type complex128"),
        (np.zeros(2, np.longdouble), "not values of type (longdouble|float128); convert them first"),
        (ak.Array(np.zeros(2, complex)), r"not values of type 2 \* complex128"),
        ({"a": 1}, "it is a dict; expected"),
        ({1, 2}, "it is a set; expected"),
        ([-(2**63) - 1], "too large"),
        ([LONE], "surrogates not allowed"),
    ],
)
def test_invalid_columns(column: Any, text: str) -> None:
    with tupelo.recreate("f.root") as file, pytest.raises(tupelo.InvalidArgumentError, match=text):
        file["Events"] = {"x": column}


def test_an_array_is_not_a_table() -> None:
    with tupelo.recreate("f.root") as file:
        for data in (pa.array([1]), pa.chunked_array([[1]])):
            with pytest.raises(tupelo.InvalidArgumentError, match="Array have no named columns"):
                file["Events"] = data


def test_errors_of_streams_are_not_replaced() -> None:
    with tupelo.recreate("g.root") as file:
        file["Events"] = {"x": [1]}
    ntuple = opened("g.root:Events")
    ntuple.close()
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int"})
        for take in (events.extend, lambda data: file.mkrntuple("Other", data)):
            with pytest.raises(tupelo.InvalidArgumentError, match=r"^g\.root: ntuple 'Events' is closed"):
                take(ntuple)


def test_dicts_are_maps() -> None:
    """Regression: dicts were rejected, because Awkward treats them as records."""
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"m": "std::map<int, float>", "s": "std::map<std::string, int>"})
        events.extend({"m": [{1: 1.5, 2: 2.5}, {}], "s": [{"a": 1}, [("b", 2)]]})
    assert opened().arrays().tolist() == [{"m": [(1, 1.5), (2, 2.5)], "s": [("a", 1)]}, {"m": [], "s": [("b", 2)]}]
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"m": "std::map<std::string, int>"})
        with pytest.raises(tupelo.InvalidArgumentError, match="column 'm' cannot be written"):
            events.extend({"m": [{LONE: 1}]})


# Objects that look like arrays.


def test_fields_are_arrays_but_ntuples_are_not() -> None:
    """Regression: NumPy and pandas used the names of the fields as values."""
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1.5, 2.5], "v": [[1], [2, 3]], "r": [{"a": 1}, {"a": 2}]}
    ntuple = opened()
    assert np.mean(ntuple["x"]) == 2.0
    assert np.asarray(ntuple["x"], "f4").dtype == np.float32
    assert np.asarray(ntuple["r"])["a"].tolist() == [1, 2]
    assert [item.tolist() for item in np.asarray(ntuple["v"])] == [[1], [2, 3]]
    for take in (np.asarray, np.mean, pd.DataFrame):
        with pytest.raises(tupelo.InvalidArgumentError, match="ntuple 'Events' is not an array; read one field with"):
            take(ntuple)
    assert pd.DataFrame.from_arrow(ntuple)["x"].tolist() == [1.5, 2.5]
    assert pl.DataFrame(ntuple)["x"].to_list() == [1.5, 2.5]


def test_a_thousand_nested_types_are_rejected() -> None:
    nested = "std::vector<" * 1000 + "int" + ">" * 1000
    with pytest.raises(tupelo.InvalidArgumentError, match="types in 1000 levels of <…>; at most 64 are supported"):
        tupelo.record("Deep", {"x": nested})


def test_unions_with_unknown_type_ids_are_rejected() -> None:
    """Regression: an unknown type id was written as the first value of the first alternative."""
    children = [pa.array([1.5, 2.5]), pa.array(["a"])]
    good = pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), children)
    for tags, places, why in (
        ([0, 5], [0, 0], "type id 5"),
        ([0, -1], [0, 0], "type id -1"),
        ([0, 0], [0, 2], "out of bounds|item 2"),
        ([0, 1], [-1, 0], "out of bounds|item -1"),
    ):
        bad = pa.UnionArray.from_dense(pa.array(tags, pa.int8()), pa.array(places, pa.int32()), children)
        for declared in (pa.schema([pa.field("v", good.type)]), {"v": "std::variant<double,std::string>"}):
            with tupelo.recreate("f.root") as file:
                ntuple = file.mkrntuple("Events", declared)
                with pytest.raises(tupelo.Error, match=why):
                    ntuple.extend(pa.table({"v": bad}))
                ntuple.extend(pa.table({"v": good}))
            opened = tupelo.open("f.root:Events")
            assert isinstance(opened, tupelo.Ntuple)
            assert opened["v"].array(library="arrow").to_pylist() == [1.5, "a"]
        with tupelo.recreate("f.root") as file, pytest.raises(tupelo.Error, match=why):
            file["Events"] = pa.table({"v": bad})
