"""Extending ntuples: entries, fields, attributes, metadata, checkpoints, threads, and ntuples of other programs."""

import pathlib
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import awkward as ak
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import uproot

import tupelo


def opened(where: str = "f.root:Events") -> tupelo.Ntuple:
    ntuple = tupelo.open(where)
    assert isinstance(ntuple, tupelo.Ntuple)
    return ntuple


def write(data: Any = None) -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [0.5, 1.5]} if data is None else data


# Continuing existing ntuples.


def test_an_assigned_ntuple_can_be_extended() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1, 2]}
        file["Events"].extend({"x": [3]})
        assert file.keys() == ["Events"]
        assert "Events" in file
        assert "other" not in file
        assert len(file) == 1
        assert list(file) == ["Events"]
    assert opened()["x"].array().tolist() == [1, 2, 3]


def test_an_existing_ntuple_can_be_extended() -> None:
    write()
    for number in range(3):
        with tupelo.update("f.root") as file:
            assert file.keys() == ["Events"]
            assert "Events" in file
            events = file["Events"]
            assert events is file["Events"]
            assert (events.num_entries, events.arrow_schema.names) == (2 + number, ["x"])
            events.extend({"x": [2.5 + number]})
    assert opened()["x"].array().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    with tupelo.open("f.root") as reading:
        assert list(reading.classnames(cycle=True)) == ["Events;1"]
    assert uproot.open("f.root")["Events"].arrays()["x"].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_an_ntuple_of_uproot_can_be_extended() -> None:
    with uproot.recreate("f.root") as theirs:
        theirs.mkrntuple("Events", {"x": np.array([1.5, 2.5]), "v": ak.Array([[1], [2, 3]])})
    with tupelo.update("f.root") as file:
        file["Events"].extend({"x": [3.5], "v": [[4, 5, 6]]})
    for arrays in (opened().arrays(), uproot.open("f.root")["Events"].arrays()):
        assert arrays["x"].tolist() == [1.5, 2.5, 3.5]
        assert arrays["v"].tolist() == [[1], [2, 3], [4, 5, 6]]


def test_the_same_name_may_be_assigned_again() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1]}
        with pytest.warns(tupelo.TupeloWarning, match="hides"):
            file["Events"] = {"y": [2]}
    assert opened().keys() == ["y"]
    assert opened("f.root:Events;1").keys() == ["x"]


def test_an_assignment_that_hides_entries_warns() -> None:
    """Regression: hiding earlier entries gave no warning."""
    text = r"f\.root: the new ntuple 'Events' hides the existing one, with {} entries, .*file\['Events'\]\.extend"
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1, 2]}
        with pytest.warns(tupelo.TupeloWarning, match=text.format(2)) as told:
            file["Events"] = {"x": [3]}
        assert told[0].filename == __file__
        file["Other"] = {"x": [3]}
    with tupelo.update("f.root") as file, pytest.warns(tupelo.TupeloWarning, match=text.format(1)):
        file["Events"] = {"x": [4, 5, 6]}
    with tupelo.update("f.root") as file:
        file["Events"].extend({"x": [7]})
        with pytest.warns(tupelo.TupeloWarning, match=text.format(4)):
            file["Events"] = {"x": [8]}
        with pytest.raises(tupelo.InvalidArgumentError):
            file["Events"] = {"x": [1], "y": [1, 2]}
    assert opened()["x"].array().tolist() == [8]


def test_an_empty_update_changes_nothing() -> None:
    write()
    with tupelo.update("f.root") as file:
        file["Events"].close()
    assert opened()["x"].array().tolist() == [0.5, 1.5]


# Fields.


def test_fields_are_added() -> None:
    write()
    with tupelo.update("f.root") as file:
        events = file["Events"]
        events.extend({"x": [2.5]})
        events.add_fields({"n": "int", "o": "std::optional<float>", "s": "std::string", "v": ("f4", 2)})
        assert events.arrow_schema.names == ["x", "n", "o", "s", "v"]
        with pytest.raises(tupelo.InvalidArgumentError, match="missing: 'n', 'o', 's', 'v'"):
            events.extend({"x": [3.5]})
        events.extend({"x": [3.5], "n": [7], "o": [1.5], "s": ["late"], "v": np.array([[1.0, 2.0]])})
        events.add_fields(pa.schema([pa.field("last", pa.large_list(pa.int8()), nullable=False)]))
        events.extend({"x": [4.5], "n": [8], "o": [None], "s": [""], "v": [[3.0, 4.0]], "last": [[1, 2]]})
    assert opened().arrays().tolist() == [
        {"x": 0.5, "n": 0, "o": None, "s": "", "v": [0.0, 0.0], "last": []},
        {"x": 1.5, "n": 0, "o": None, "s": "", "v": [0.0, 0.0], "last": []},
        {"x": 2.5, "n": 0, "o": None, "s": "", "v": [0.0, 0.0], "last": []},
        {"x": 3.5, "n": 7, "o": 1.5, "s": "late", "v": [1.0, 2.0], "last": []},
        {"x": 4.5, "n": 8, "o": None, "s": "", "v": [3.0, 4.0], "last": [1, 2]},
    ]


def test_new_fields_are_taken_from_data() -> None:
    write()
    with tupelo.update("f.root") as file:
        with pytest.raises(tupelo.InvalidArgumentError, match="unknown: 'z'"):
            file["Events"].extend({"x": [2.5], "z": [7]})
        file["Events"].extend({"x": [2.5], "z": [[7]]}, accept_new_fields=True)
    assert opened()["z"].array().tolist() == [[], [], [7]]


def test_members_are_added() -> None:
    with tupelo.recreate("f.root") as file:
        inner = np.dtype([("a", "i4")])
        events = file.mkrntuple("Events", {"r": np.dtype([("p", inner)]), "c": tupelo.record("C", {"a": "int"})})
        events.extend({"r": [{"p": {"a": 1}}], "c": [{"a": 1}]})
        events.add_members("r.p", {"b": "std::vector<float>"})
        assert events.arrow_schema.field("r").type.field("p").type.names == ["a", "b"]
        events.extend({"r": [{"p": {"a": 2, "b": [0.5]}}], "c": [{"a": 2}]})
        for path, text in (("c", "untyped records"), ("r.q", "no field named 'r.q'"), (7, "dotted path")):
            with pytest.raises(tupelo.Error, match=text):
                events.add_members(path, {"b": "int"})  # type: ignore[arg-type]
    assert opened()["r"].array().tolist() == [{"p": {"a": 1, "b": []}}, {"p": {"a": 2, "b": [0.5]}}]


def test_rejected_fields_change_nothing() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int"})
        for what, text in (
            ({"x": "int"}, "field 'x' already exists"),
            ({"a b": "int"}, "the name 'a b' contains ' '"),
            ({"y": [1, 2]}, "not data"),
            ({"y": "nonsense"}, "unknown type 'nonsense'"),
        ):
            with pytest.raises(tupelo.InvalidArgumentError, match=re.escape(text)):
                events.add_fields(what)
        events.extend({"x": [1]})
    assert opened().keys() == ["x"]


# Projections.


def test_projections() -> None:
    jets = ak.Array([[{"pt": 1.5, "eta": 0.5}], [], [{"pt": 2.5, "eta": 1.5}, {"pt": 3.5, "eta": 2.5}]])
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple(
            "Events",
            {"jets": jets, "a": [1.0, 2.0, 3.0], "l": [[1], [2, 3], []]},
            projections={
                "n_jets": "#jets",
                "jet_pt": "jets.pt",
                "b": "a",
                "s": ("l", "std::set<std::int64_t>"),
                "n": ("#l", "ROOT::RNTupleCardinality<std::uint32_t>"),
                "r": ("jets.eta", "ROOT::VecOps::RVec<double>"),
            },
        )
        assert events.arrow_schema.names == ["jets", "a", "l"]
        events.extend({"jets": jets[:1], "a": [4.0], "l": [[5]]})
        events.add_fields(projections={"late": "a"})
        events.extend({"jets": jets[1:2], "a": [5.0], "l": [[6]]})
    ntuple = opened()
    assert ntuple.typenames(recursive=False) == {
        "jets": "collection",
        "a": "double",
        "l": "std::vector<std::int64_t>",
        "n_jets": "ROOT::RNTupleCardinality<std::uint64_t>",
        "jet_pt": "std::vector<double>",
        "b": "double",
        "s": "std::set<std::int64_t>",
        "n": "ROOT::RNTupleCardinality<std::uint32_t>",
        "r": "ROOT::VecOps::RVec<double>",
        "late": "double",
    }
    arrays = ntuple.arrays()
    assert arrays["n_jets"].tolist() == [1, 0, 2, 1, 0]
    assert arrays["jet_pt"].tolist() == [[1.5], [], [2.5, 3.5], [1.5], []]
    assert arrays["r"].tolist() == [[0.5], [], [1.5, 2.5], [0.5], []]
    assert arrays["b"].tolist() == arrays["late"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert arrays["s"].tolist() == [[1], [2, 3], [], [5], [6]]
    assert arrays["n"].tolist() == [1, 2, 0, 1, 1]
    with tupelo.update("f.root") as file:
        assert file["Events"].arrow_schema.names == ["jets", "a", "l"]
        file["Events"].extend({"jets": jets[:1], "a": [6.0], "l": [[7]]})
    assert opened()["b"].array().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("none", "no field named 'none'"),
        (("a", "double"), "'a' is a float and cannot be shown as double"),
        ("#a", "without a number of items"),
        ("p", "fields cannot be projected from fixed arrays"),
        (7, "expected the source as a dotted path"),
        (("a", "b", "c"), "expected the source as a dotted path"),
    ],
)
def test_projections_that_the_format_forbids(source: Any, text: str) -> None:
    with tupelo.recreate("f.root") as file:
        with pytest.raises(tupelo.Error, match=f"projec.* '?new.*{text}"):
            file.mkrntuple("Events", {"a": "float", "p": ("f4", 3)}, projections={"new": source})
        events = file.mkrntuple("Events", {"a": "float", "p": ("f4", 3)})
        with pytest.raises(tupelo.Error, match=text):
            events.add_fields(projections={"new": source})


# Attributes and metadata.


def test_attribute_sets() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": np.arange(10.0)})
        runs = events.attribute_set("runs", {"run": "int", "tags": "std::vector<std::string>"})
        runs.extend([(0, 4), (4, 10)], {"run": [1, 2], "tags": [["a"], []]})
        runs.add(2, 6, run=3, tags=["b", "c"])
        runs.extend(np.zeros((0, 2), int), {"run": [], "tags": []})
        assert (runs.name, runs.arrow_schema.names) == ("runs", ["run", "tags"])
    with tupelo.update("f.root") as file:
        events = file["Events"]
        events.extend({"x": [10.0]})
        events.attribute_set("runs", {"run": "int", "tags": "std::vector<std::string>"}).add(10, 11, run=4, tags=[])
        with pytest.raises(tupelo.InvalidArgumentError, match="already being written"):
            events.attribute_set("runs", {"run": "int"})
    ntuple = opened()
    assert list(ntuple.attribute_sets) == ["runs"]
    rows = ntuple.attributes("runs")
    assert repr(rows) == "<tupelo.AttributeSet 'runs' (4 entries)>"
    assert (rows.ranges.dtype, rows.ranges.shape) == (np.uint64, (4, 2))
    assert rows.ranges.tolist() == [[0, 4], [4, 10], [2, 6], [10, 11]]
    assert rows.arrays(library="np")["run"].tolist() == [1, 2, 3, 4]
    assert rows.arrays(library="arrow")["tags"].to_pylist() == [["a"], [], ["b", "c"], []]
    assert rows.arrays(library="pd")["run"].tolist() == [1, 2, 3, 4]

    def numbers(chosen: tupelo.AttributeSet) -> list[int]:
        return chosen.arrays()["run"].tolist()  # type: ignore[no-any-return]

    assert numbers(rows.of_entry(3)) == [1, 3]
    assert numbers(rows.containing(4, 6)) == [2, 3]
    assert numbers(rows.overlapping(0, 5)) == [1, 2, 3]
    assert numbers(rows.within(2, 10)) == [2, 3]
    assert len(rows.of_entry(11)) == 0
    assert rows.of_entry(11).ranges.shape == (0, 2)
    assert rows.ntuple.keys()[:2] == ["_rangeStart", "_rangeLen"]
    with pytest.raises(tupelo.NotFoundError, match="'runs'"):
        ntuple.attributes("run")
    for call in (rows.of_entry, lambda entry: rows.within(0, entry)):
        with pytest.raises(tupelo.InvalidArgumentError, match="counted"):
            call(-1)
        with pytest.raises(tupelo.InvalidArgumentError, match="expected an entry number as an integer"):
            call(1.5)


@pytest.mark.parametrize(
    ("ranges", "data", "text"),
    [
        ([(0, 1)], {"q": [1, 2]}, "1 ranges for 2 entries"),
        ([(3, 2)], {"q": [1]}, "end at or after their start"),
        ([(-1, 2)], {"q": [1]}, "start at entry 0"),
        ([(0.5, 2)], {"q": [1]}, "pairs of entries"),
        ([0, 1], {"q": [1, 2]}, "pairs of entries"),
        ([(0, 1)], {"r": [1]}, "unknown: 'r'"),
        ([(0, 1)], {"q": ["text"]}, "do not fit"),
    ],
)
def test_invalid_attribute_entries(ranges: Any, data: Any, text: str) -> None:
    with tupelo.recreate("f.root") as file:
        rows = file.mkrntuple("Events", {"x": [1.0]}).attribute_set("s", {"q": "int"})
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            rows.extend(ranges, data)
        rows.add(0, 1, q=7)
    assert opened().attributes("s").arrays().tolist() == [{"q": 7}]


def test_metadata_are_a_mapping() -> None:
    write()
    assert opened().metadata == {}
    with tupelo.update("f.root") as file:
        metadata = file["Events"].metadata
        metadata.update({"generator": "pythia", "tune": "4C", "größe": "ä"})
        metadata["tune"] = "CP5"
        assert dict(metadata) == {"generator": "pythia", "tune": "CP5", "größe": "ä"}
    assert opened().metadata == {"generator": "pythia", "tune": "CP5", "größe": "ä"}
    with tupelo.update("f.root") as file:
        metadata = file["Events"].metadata
        assert metadata.pop("tune") == "CP5"
        with pytest.raises(KeyError, match="no metadata key 'tune'"):
            del metadata["tune"]
        with pytest.raises(tupelo.InvalidArgumentError, match="expected metadata keys and values as strings"):
            metadata["n"] = 7  # type: ignore[assignment]
        file["Events"].extend({"x": [2.5]})
    assert opened().metadata == {"generator": "pythia", "größe": "ä"}
    assert opened().attributes("metadata").ranges.tolist() == [[0, 3], [0, 3]]
    with tupelo.update("f.root") as file:
        file["Events"].metadata.clear()
    assert opened().metadata == {}


def test_metadata_of_another_program_are_kept() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": [1.0]})
        events.attribute_set("metadata", {"key": "std::string", "unit": "int"}).add(0, 1, key="a", unit=3)
    with pytest.raises(tupelo.UnsupportedError, match="of another program"):
        _ = opened().metadata
    with tupelo.update("f.root") as file:
        file["Events"].extend({"x": [2.0]})
        with pytest.raises(tupelo.InvalidArgumentError, match="of another program"):
            file["Events"].metadata["a"] = "b"
    assert opened().attributes("metadata").arrays().tolist() == [{"key": "a", "unit": 3}]
    assert opened().num_entries == 2


# Checkpoints and ends.


def test_a_checkpoint_of_an_update_is_visible_immediately() -> None:
    write()
    with tupelo.update("f.root") as file:
        file["Events"].extend({"x": [2.5]})
        assert opened().num_entries == 2
        file["Events"].checkpoint()
        assert opened().num_entries == 3
        file["Events"].extend({"x": [3.5]})
        assert file.abort() is None
    assert opened()["x"].array().tolist() == [0.5, 1.5, 2.5]


def test_a_checkpoint_of_a_new_file_is_kept() -> None:
    def fail() -> None:
        with tupelo.recreate("f.root") as file:
            file["Events"] = {"x": [0.5]}
            file["Events"].checkpoint()
            shutil.copy(next(pathlib.Path().glob("f.root.tmp-*")), "then.root")
            file["Events"].extend({"x": [1.5]})
            raise RuntimeError("enough")

    said = r"f\.root was discarded.*tupelo verify --repair .*f\.root\.tmp-"
    with pytest.warns(tupelo.TupeloWarning, match=said) as caught, pytest.raises(RuntimeError, match="enough"):
        fail()
    (temporary,) = pathlib.Path().glob("f.root.tmp-*")
    assert str(temporary) in str(caught[0].message)
    assert not pathlib.Path("f.root").exists()
    for name in (str(temporary), "then.root"):
        assert opened(f"{name}:Events")["x"].array().tolist() == [0.5]


@pytest.mark.parametrize(
    ("options", "checkpoints"),
    [
        ({"checkpoint_clusters": 1}, True),
        ({"checkpoint_bytes": 1}, True),
        ({"checkpoint_bytes": "1 B"}, True),
        ({"checkpoint_seconds": 1e-9}, True),
        ({}, False),
        ({"checkpoint_bytes": 0, "checkpoint_seconds": 0}, False),
        ({"checkpoint_bytes": None, "checkpoint_seconds": None, "checkpoint_clusters": None}, False),
    ],
)
def test_checkpoints_are_made_when_they_are_due(options: dict[str, Any], checkpoints: bool) -> None:
    for of_file in (True, False):
        write()
        if not of_file:
            options = {name: 0 if value is None else value for name, value in options.items()}
        with tupelo.update("f.root", **options if of_file else {}) as file:
            events = file.append("Events", **{} if of_file else options)
            events.extend({"x": [2.5]})
            events.extend({"x": [3.5]})
            events.flush_cluster()
            assert (opened().num_entries > 2) == checkpoints
            file.abort()


def test_from_four_threads() -> None:
    chunk = 5_000

    def fill(first: int) -> None:
        with events.fill_context() as context:
            for start in range(first, first + 10 * chunk, chunk):
                numbers = np.arange(start, start + chunk)
                context.extend({"i": numbers, "v": ak.unflatten(numbers, 2)[: chunk // 2].to_list() * 2})
                if start % (3 * chunk) == 0:
                    context.flush_cluster()

    with tupelo.recreate("f.root", cluster_bytes="50 kB", checkpoint_clusters=3) as file:
        events = file.mkrntuple("Events", {"i": "std::int64_t", "v": "std::vector<int>"})
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fill, range(0, 40 * chunk, 10 * chunk)))
    arrays = opened().arrays()
    assert sorted(arrays["i"]) == list(range(40 * chunk))
    theirs = uproot.open("f.root")["Events"].arrays()
    assert theirs["i"].tolist() == arrays["i"].tolist()
    assert theirs["v"].tolist() == arrays["v"].tolist()


def test_unclosed_contexts() -> None:
    file = tupelo.recreate("f.root")
    events = file.mkrntuple("Events", {"x": "int"})
    context = events.fill_context()
    context.extend({"x": [1]})
    with pytest.raises(tupelo.InvalidArgumentError, match="fill contexts"):
        events.add_fields({"y": "int"})
    with pytest.raises(tupelo.InvalidArgumentError, match="1 fill contexts are not finished"):
        file.close()
    assert not pathlib.Path("f.root").exists()


def test_an_ntuple_waits_for_its_contexts() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int"})
        context = events.fill_context()
        context.extend({"x": [1]})
        with pytest.raises(tupelo.InvalidArgumentError, match="1 fill contexts are not finished"):
            events.close()
        context.extend({"x": [2]})
        context.close()
        events.extend({"x": [3]})
    assert opened()["x"].array().tolist() == [1, 2, 3]


def test_a_context_that_fails_after_a_flush_keeps_its_clusters() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "int"})

        def fail() -> None:
            with events.fill_context() as context:
                context.extend({"x": [1, 2]})
                context.flush_cluster()
                raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            fail()
    assert opened()["x"].array().tolist() == [1, 2]


def test_nothing_is_accepted_after_the_end() -> None:
    file = tupelo.recreate("f.root")
    events = file.mkrntuple("Events", {"x": "int"})
    events.extend({"x": [1]})
    file.abort()
    with pytest.raises(tupelo.InvalidArgumentError, match="the file was aborted"):
        events.extend({"x": [1]})


def test_values_out_of_range_are_rejected_immediately() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": "float"}, encodings={"x": "Real32Quant(12,0,1)"})
        events.extend({"x": [0.0]})
        chunks = pa.table({"x": pa.chunked_array([[0.5], [7.0]], pa.float32())})
        with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'x': value 7 is outside the range"):
            events.extend(chunks)
        events.extend({"x": [1.0]})
    assert opened()["x"].array().tolist() == [0.0, 1.0]


def test_aborted_contexts() -> None:
    file = tupelo.recreate("f.root")
    events = file.mkrntuple("Events", {"x": "int"})

    def fail(context: tupelo.FillContext) -> None:
        with context:
            context.extend({"x": [1]})
            raise RuntimeError("enough")

    context = events.fill_context()
    with pytest.raises(RuntimeError, match="enough"):
        fail(context)
    with pytest.raises(tupelo.InvalidArgumentError, match="the fill context is closed"):
        context.extend({"x": [1]})
    with pytest.raises(tupelo.InvalidArgumentError, match="dropped with 1 unwritten entries"):
        file.close()
    assert not pathlib.Path("f.root").exists()


# Classes.


def test_records_have_names_and_versions() -> None:
    base = tupelo.record("Base", {"id": "int"}, version=2)
    jet = tupelo.record("Jet", {":_0": base, "pt": "float"}, version=3, checksum=77)
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple(
            "Events",
            {"lead": jet, "jets": pa.large_list(jet), "two": pa.list_(jet, 2), "maybe": jet.with_nullable(True)},
        )
        one = {":_0": {"id": 7}, "pt": 1.5}
        events.extend({"lead": [one], "jets": [[one, one]], "two": [[one, one]], "maybe": [None]})
    ntuple = opened()
    assert ntuple.typenames(recursive=False) == {
        "lead": "Jet",
        "jets": "std::vector<Jet>",
        "two": "std::array<Jet,2>",
        "maybe": "std::optional<Jet>",
    }
    field = ntuple.arrow_schema.field("lead")
    assert (field.metadata[b"rntuple.version"], field.metadata[b"rntuple.checksum"]) == (b"3", b"77")
    assert field.type.field(":_0").metadata == {b"rntuple.type": b"Base", b"rntuple.version": b"2"}
    assert ntuple["jets"].array().tolist() == [[one, one]]
    records = {record.field_name: record for record in uproot.open("f.root")["Events"].field_records}
    assert (records["lead"].type_name, records["lead"].type_version) == ("Jet", 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tupelo.record("", {"x": "int"}), "expected the name of a C\\+\\+ class"),
        (lambda: tupelo.record("C", ["x"]), "a mapping of names to types"),  # type: ignore[arg-type]
        (lambda: tupelo.record("C", {"x": "int"}, version=-1), "expected the version of C as an integer"),
        (lambda: tupelo.record("C", {"x": "int"}, checksum=2**32), "expected the checksum of C as an integer"),
        (lambda: tupelo.record("C", {"x": "what"}), "field 'x': unknown type 'what'"),
    ],
)
def test_invalid_records(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        call()


# Error messages.


def test_names_of_other_objects_are_rejected() -> None:
    with uproot.recreate("f.root") as theirs:
        theirs.mktree("tree", {"x": "f4"})
        theirs["dir/h"] = np.histogram([1.0, 2.0])
    before = pathlib.Path("f.root").read_bytes()
    with tupelo.update("f.root") as file:
        assert file.keys() == []
        for name, text in (
            ("tree", "a TTree of that name"),
            ("dir/h", "a TH1D of that name"),
            ("dir", "a directory of that name"),
            ("tree/x", "'tree' is a TTree, not a directory"),
        ):
            with pytest.raises(tupelo.InvalidArgumentError, match=text):
                file[name] = {"x": [1]}
        file.abort()
    assert pathlib.Path("f.root").read_bytes() == before


def test_unknown_names() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"x": [1.5]}
        with pytest.raises(tupelo.NotFoundError, match=r"no ntuple named 'Event' .*'Events'"):
            file["Event"]
    with tupelo.update("f.root") as file:
        with pytest.raises(tupelo.NotFoundError, match=r"no ntuple named 'Event' .*'Events'"):
            file["Event"].extend({"x": [1.5]})
        with pytest.raises(tupelo.InvalidArgumentError, match="the name of an ntuple to be a string, not 7"):
            file[7]  # type: ignore[index]
        file["Events"].close()
        with pytest.raises(tupelo.InvalidArgumentError, match="closed; append to it in an update"):
            file["Events"].extend({"x": [1.5]})


@pytest.mark.parametrize("option", ["page_bytes", "cluster_bytes", "checkpoint_bytes", "checkpoint_clusters"])
@pytest.mark.parametrize("value", [-1, 2**64, 1.5, "many", [1]])
def test_invalid_sizes(option: str, value: Any) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=f"{option}|not a size"):
        tupelo.recreate("f.root", **{option: value})
    with tupelo.recreate("f.root") as file, pytest.raises(tupelo.InvalidArgumentError, match=f"{option}|not a size"):
        file.mkrntuple("Events", {"x": "int"}, **{option: value})


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "soon"])
def test_invalid_times(value: Any) -> None:
    with tupelo.recreate("f.root") as file, pytest.raises(tupelo.InvalidArgumentError, match="seconds"):
        file.mkrntuple("Events", {"x": "int"}, checkpoint_seconds=value)


def test_fields_are_not_indexed_by_numbers() -> None:
    write()
    with pytest.raises(tupelo.InvalidArgumentError, match="expected expressions as strings, not 5"):
        opened().arrays(5)  # type: ignore[arg-type]


def test_the_same_name_twice() -> None:
    array = pa.array([1])
    for names in (["x", "x"], ["x", "y"]):
        twice = pa.StructArray.from_arrays([array, array], names=["m", "m"])
        columns = [array, array] if names == ["x", "x"] else [array, twice]
        with (
            tupelo.recreate("f.root") as file,
            pytest.raises(tupelo.InvalidArgumentError, match=r"same name|already|twice"),
        ):
            file["Events"] = pa.Table.from_arrays(columns, names=names)


def test_categories_of_polars() -> None:
    frame = pl.DataFrame({"c": pl.Series(["a", "b", None, "a"], dtype=pl.Categorical), "e": [1, 2, 3, 4]})
    write(frame)
    assert opened()["c"].array().tolist() == ["a", "b", None, "a"]
    write({"c": pa.array(["a", "b", "a"], pa.string_view()).dictionary_encode()})
    assert opened()["c"].array().tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("entries", [1, 300_000])
def test_values_out_of_range_name_their_field(entries: int) -> None:
    encodings = {"v.q": "Real32Quant(8,0,1)"}
    record = np.dtype([("p", "f4"), ("q", "f4")])

    def write_all() -> None:
        with tupelo.recreate("f.root") as file:
            events = file.mkrntuple("Events", {"a": "int", "v": record}, encodings=encodings)
            events.extend({"a": np.arange(entries), "v": np.full(entries, 7, record)})

    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'v\.q': value 7 is outside the range"):
        write_all()


def test_fields_are_added_with_values(tmp_path):
    """Late fields have values for entries that were written before, in all clusters."""
    path = tmp_path / "late.root"
    with tupelo.recreate(path) as file:
        events = file.mkrntuple("Events", {"x": "int"})
        for first in range(0, 1000, 100):
            events.extend({"x": range(first, first + 100)})
            events.flush_cluster()
    size = path.stat().st_size
    with tupelo.update(path) as file:
        file.append_fields("Events", {"y": np.arange(1000.0), "hits": [[i] * (i % 3) for i in range(1000)]})
    events = tupelo.open(f"{path}:Events")
    assert events.num_clusters == 10
    assert path.stat().st_size < size + 20_000
    arrays = events.arrays(library="np")
    assert (arrays["x"] == arrays["y"]).all()
    assert [list(hits) for hits in arrays["hits"]] == [[i] * (i % 3) for i in range(1000)]
    # From a stream of itself, and entries after that.
    with tupelo.update(path) as file:
        file.append_fields("Events", events.stream("double", aliases={"double": "2 * x"}))
    with tupelo.update(path) as file:
        file["Events"].extend({"x": [1], "y": [2.0], "hits": [[3]], "double": [4]})
    events = tupelo.open(f"{path}:Events")
    assert events.arrays(["x", "double"], entry_start=-2).tolist() == [
        {"x": 999, "double": 1998},
        {"x": 1, "double": 4},
    ]
    for data, message in [
        ({"z": [1.0, 2.0]}, "values for 2 of its 1001 entries"),
        ({"z": np.zeros(1002)}, "more values than its 1001 entries"),
        ({"x": np.zeros(1001)}, "already exists|duplicate|x"),
        ({"z": "float"}, "expected data, not types"),
    ]:
        with tupelo.update(path) as file, pytest.raises(tupelo.InvalidArgumentError, match=message):
            file.append_fields("Events", data)
    assert tupelo.open(f"{path}:Events").keys() == ["x", "y", "hits", "double"]
    with tupelo.update(path) as file, pytest.raises(tupelo.NotFoundError, match="Evnts"):
        file.append_fields("Evnts", {"z": [1.0]})
    with tupelo.update(path) as file:
        file["Events"].add_fields({"late": "int"})
        file["Events"].extend({"x": [1], "y": [2.0], "hits": [[3]], "double": [4], "late": [5]})
    with tupelo.update(path) as file, pytest.raises(tupelo.UnsupportedError, match="copy the ntuple"):
        file.append_fields("Events", {"z": np.zeros(1002)})
    # The file goes on after that.
    with tupelo.update(path) as file:
        with pytest.raises(tupelo.UnsupportedError):
            file.append_fields("Events", {"z": np.zeros(1002)})
        file["other"] = {"n": [1]}
    with tupelo.update(path) as file:
        file.rename("Events", "moved/Events")
        with pytest.raises(tupelo.InvalidArgumentError, match="was renamed"):
            file["moved/Events"].extend({})
    assert tupelo.open(f"{path}:other").num_entries == 1
    assert tupelo.open(f"{path}:moved/Events").num_entries == 1002
