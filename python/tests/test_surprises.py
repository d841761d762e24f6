"""Calls that silently did something unexpected."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tupelo


def written(data: Any) -> tupelo.Ntuple:
    with tupelo.recreate("f.root") as file:
        file["E"] = data
    opened = tupelo.open("f.root:E")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


@pytest.mark.parametrize("take", [list, len, iter, pd.Series])
def test_a_field_without_subfields_is_not_an_empty_mapping(take: Callable[[Any], object]) -> None:
    """Regression: such a field was an empty mapping, so sequences of it were empty."""
    field = written({"x": [1.5, 2.5]})["x"]
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'x' has no subfields.*\.array\(\)"):
        take(field)
    assert field
    assert field.keys() == []


def test_a_field_is_an_array_to_arrow() -> None:
    """Regression: `pyarrow.array(field)` was empty."""
    field = written({"x": [1.5, 2.5]})["x"]
    assert pa.array(field).to_pylist() == pa.chunked_array(field).to_pylist() == [1.5, 2.5]
    assert pa.array(field, pa.float32()).type == pa.float32()
    assert pl.Series(field).to_list() == np.asarray(field).tolist() == [1.5, 2.5]
    assert written({"y": field}).arrays().tolist() == [{"y": 1.5}, {"y": 2.5}]


def test_subfields_are_a_whole_mapping() -> None:
    """Regression: a field had keys, but neither items nor values."""
    jets = written({"jets": ak.Array([[{"pt": 1.5, "n": 1}], []])})["jets"]
    assert list(jets) == jets.keys() == jets._ipython_key_completions_() == ["pt", "n"]
    assert [(name, field.path) for name, field in jets.items()] == [("pt", "jets.pt"), ("n", "jets.n")]
    assert [field.path for field in jets.values()] == ["jets.pt", "jets.n"]
    found = jets.get("pt")
    assert found is not None
    assert found.path == "jets.pt"
    assert jets.get("eta") is None
    assert jets["pt"].get("x", jets) is jets
    assert [name in jets for name in ("pt", "eta")] == [True, False]
    assert "x" not in jets["pt"]


def test_maps_have_types_of_uproot() -> None:
    """Regression: `typenames` and `show` raised KeyError('_0'), as Arrow names the members of a map key and value."""
    with tupelo.recreate("map.root") as file:
        file.mkrntuple("E", {"m": "std::map<int,float>", "x": "int"}).extend({"m": [{1: 2.5}], "x": [1]})
    ntuple = tupelo.open("map.root:E")
    types = ntuple.typenames()
    assert types["m"] == "std::map<std::int32_t,float>"
    assert {types[name] for name in types if name.startswith("m.")} == {"std::int32_t", "float"}
    ntuple.show()
    assert ntuple.keys(filter_typename="float") == [name for name in types if types[name] == "float"]


@pytest.mark.parametrize("data", [pd.DataFrame({"x": [1, np.nan]}), {"x": pd.Series([1, np.nan])}])
def test_nan_of_numpy_is_a_value(data: Any) -> None:
    """Regression: NaN in a data frame was a missing value of a std::optional<double>."""
    ntuple = written(data)
    assert ntuple["x"].typename == "double"
    assert np.isnan(ntuple["x"].array(library="np")).tolist() == [False, True]


def test_nan_of_numpy_with_duplicate_names_and_in_the_index() -> None:
    """As above, for floats of other sizes, and for levels of the index."""
    frame = pd.DataFrame({"s": ["a", None], "f": np.array([1, np.nan], "f4")}).set_index(
        pd.Index([np.nan, 2.5], name="at")
    )
    assert written(frame).typenames() == {"s": "std::optional<std::string>", "f": "float", "at": "double"}


@pytest.mark.parametrize("kind", ["Float64", "Int64", "double[pyarrow]"])
def test_missing_values_of_pandas_types_stay_missing(kind: str) -> None:
    """These types have a missing value besides NaN."""
    column = pd.Series([1, None], dtype=kind)  # type: ignore[call-overload]
    for data in pd.DataFrame({"x": column}), {"x": column}:
        assert written(data).arrays().tolist() == [{"x": 1}, {"x": None}]


def test_entry_numbers_after_a_cut_are_signed() -> None:
    """Regression: the index was uint64, so negative differences were huge."""
    ntuple = written({"x": [1, 2, 3]})
    frame = ntuple.arrays("x", cut="x > 1", library="pd")
    assert frame.index.dtype == np.dtype("int64")
    assert frame.index.tolist() == [1, 2]
    assert [piece.index.dtype for piece in ntuple.iterate("x", cut="x > 1", library="pd")] == [np.dtype("int64")]


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Regression: "~/f.root" was a file in a directory named ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with tupelo.recreate("~/f.root") as file:
        file["E"] = {"x": [1]}
    with tupelo.update("~/f.root") as file:
        file["E"].extend({"x": [2]})
    assert (tmp_path / "f.root").exists()
    assert tupelo.open("~/f.root:E").num_entries == tupelo.open({"~/f.root": "E"}).num_entries == 2
    assert tupelo.concatenate("~/*.root:E", library="np")["x"].tolist() == [1, 2]
    (tmp_path / "m.json").write_text(json.dumps(tupelo.index("~/f.root:E")))
    assert [part.num_entries for part in tupelo.partitions(manifest="~/m.json")] == [2]
    with pytest.raises(tupelo.MissingFileError):
        tupelo.open(Path("~/f.root"))


@pytest.mark.parametrize(("module", "library"), [("pandas", "pd"), ("polars", "pl")])
def test_why_a_package_cannot_be_loaded(module: str, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a broken package was reported as not installed."""
    ntuple = written({"x": [1]})
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr("tupelo._base.optional.import_module", broken)
    with pytest.raises(ImportError, match=rf"cannot be loaded \(libfoo is too old\): pip install {module}"):
        ntuple.arrays(library=library)
    with pytest.raises(ImportError, match=r"hist\(\) needs boost_histogram.*libfoo is too old"):
        ntuple.hist("x")


def broken(module: str) -> None:
    raise ImportError("libfoo is too old")


@pytest.mark.parametrize(
    "call",
    [
        lambda given: tupelo.open(given),
        lambda given: written({"x": [1]}).arrays(given),
        lambda given: written({"x": [1]}).arrays(cut=[given]),
        lambda given: written({"x": [1]}).arrays(library=[given] * 9),
        lambda given: written({"x": [1]})[given],
        lambda given: tupelo.partitions(manifest=[given]),
    ],
)
def test_error_messages_are_short(call: Callable[[Any], object]) -> None:
    """Regression: errors contained whole arguments, such as the bytes of a file."""
    with pytest.raises(tupelo.Error) as caught:
        call(b"root" * 100_000)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("library", ["ak", "np", "arrow", "pd", "pl"])
def test_columns_come_in_the_requested_order(library: Any) -> None:
    """Regression: they came in the order of the file, so ``b, a = arrays(["b", "a"], how=tuple)`` swapped them."""
    ntuple = written({"a": [1, 2], "b": [3, 4], "j": ak.Array([[{"pt": 5, "n": 1}], []])})
    for wanted, names in [
        (["b", "a"], ["b", "a"]),
        (["b", "a + b", "a", "b"], ["b", "a + b", "a"]),
        (["twice", "a"], ["twice", "a"]),
        (["j.n", "b", "j.pt", "a"], ["j", "b", "a"]),
        (["b", "[a]"], ["a", "b"]),
    ]:
        how: dict[str, Any] = {"aliases": {"twice": "a * 2"}, "library": library}
        expected = [ntuple.arrays(wanted, how=dict, **how)[name] for name in names]
        for cut in None, "a > 0":
            assert list(ntuple.arrays(wanted, cut, how=dict, **how)) == names
            (piece,) = ntuple.iterate(wanted, cut, how=dict, **how)
            assert list(piece) == names
            assert list(tupelo.concatenate(ntuple, wanted, cut, how=dict, **how)) == names
        columns = ntuple.arrays(wanted, how=tuple, **how)
        assert [list(map(str, column)) for column in columns] == [list(map(str, column)) for column in expected]
        taken = ntuple.take([0], wanted, **how)
        spelling = {"ak": "fields", "arrow": "column_names", "pd": "columns", "pl": "columns"}
        assert list(taken if library == "np" else getattr(taken, spelling[library])) == names


def test_virtual_columns_come_in_the_requested_order() -> None:
    """As above, without reading."""
    log: list[Any] = []
    array = written({"a": [1, 2], "b": [3, 4]}).arrays(["b", "a"], virtual=True, access_log=log)
    assert array.fields == ["b", "a"]
    assert log == []
    assert array.b.tolist() == [3, 4]


def test_setting_an_attribute_of_a_file_is_an_error() -> None:
    """Regression: ``file.Events = data`` set an attribute and wrote nothing."""
    text = r"no attribute 'Events'; file\['Events'\] = "
    with tupelo.recreate("f.root") as file, pytest.raises(tupelo.InvalidArgumentError, match=text):
        file.Events = {"x": [1]}  # type: ignore[attr-defined]


def test_the_name_of_a_new_file_has_no_ntuple() -> None:
    """Regression: a file named "f.root:E" was created."""
    for begin, name in ((tupelo.recreate, "recreate"), (tupelo.update, "update")):
        with pytest.raises(tupelo.InvalidArgumentError, match=rf"use {name}\('f\.root'\) and file\['E'\] = "):
            begin("f.root:E")
    ntuple = written({"x": [1]})
    for call in (ntuple.copy, ntuple.with_columns({"y": "x"}).write):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"use the path 'g\.root' and name='New'"):
            call("g.root:New")
    assert [path.name for path in Path().iterdir()] == ["f.root"]
    # A path, and the name of an existing file, are complete file names.
    for _ in range(2):
        with tupelo.recreate(Path("g.root:New")) as file:
            file["E"] = {"x": [2]}
    with tupelo.update("g.root:New") as file:
        file["E"].extend({"x": [3]})
    assert tupelo.concatenate(Path("g.root:New")).x.tolist() == [2, 3]


def test_several_names_in_one_string() -> None:
    ntuple = written({"Muon_pt": [1], "Muon_eta": [2], "MET_pt": [3]})
    for text in ("Muon_*,MET_pt", "Muon_pt, Muon_eta"):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"names several fields; pass them as a list: \['Muon_"):
            ntuple.arrays(text)
    assert ntuple.arrays("Muon_{pt,eta}").fields == ["Muon_pt", "Muon_eta"]
    assert ntuple.arrays("maximum(Muon_pt, MET_pt)").tolist() == [{"maximum(Muon_pt, MET_pt)": 3}]


def test_file_objects_without_bytes() -> None:
    """Regression: a text file raised UnicodeDecodeError, and an fsspec file was an invalid file name."""
    import fsspec

    written({"x": [1]})
    with open("f.root", encoding="utf-8") as text, pytest.raises(tupelo.InvalidArgumentError, match="binary mode"):
        tupelo.open(text)  # type: ignore[arg-type]
    waiting = fsspec.open("f.root")
    with pytest.raises(tupelo.InvalidArgumentError, match=r"OpenFile .*f\.root'.*result of its method open"):
        tupelo.open(waiting)
    with waiting.open() as stream:
        assert tupelo.open(stream).keys() == ["E"]


def test_fields_are_not_a_cut() -> None:
    """Regression: ``copy(path, "MET_*")`` raised a misleading error about an expression."""
    ntuple = written({"MET_pt": [1.5, 2.5], "good": [True, False]})
    for cut, why in (
        ("MET_*", "is a glob|expected a value"),
        ("MET_pt", "is a field of type double, not a condition"),
        ("MET_pt >", "expected a value at the end"),
        (["MET_pt"], "is a list, not an expression"),
    ):
        for call in (ntuple.copy, ntuple.with_columns({"y": "MET_pt"}).copy):
            with pytest.raises(tupelo.InvalidArgumentError, match=why) as caught:
                call("g.root", cut)  # type: ignore[arg-type]
            assert f"the cut; select fields with fields={cut!r}" in str(caught.value)
    assert not Path("g.root").exists()
    assert ntuple.copy("g.root", "good") == ntuple.copy("g.root", "high", aliases={"high": "MET_pt > 2"}) == 1
    assert ntuple.with_columns({"low": "MET_pt < 2"}).copy("g.root", "low") == 1


def test_columns_must_be_a_mapping() -> None:
    ntuple = written({"x": [1]})
    scored = ntuple.with_columns({"y": "x"})
    for call in (ntuple.with_columns, scored.with_columns):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"\{'score': values\}\), not the keyword 'score'"):
            call(score=[1])
        with pytest.raises(tupelo.InvalidArgumentError, match="not a DataFrame") as caught:
            call(pd.DataFrame({"z": range(1000)}))  # type: ignore[arg-type]
        assert len(str(caught.value)) < 150


def test_an_ntuple_with_columns_cannot_be_assigned() -> None:
    scored = written({"x": [1]}).with_columns({"y": "x"})
    with tupelo.recreate("g.root") as file:
        events = file.mkrntuple("A", {"x": "int", "y": "int"})
        for call in (lambda: file.__setitem__("E", scored), lambda: events.extend(scored)):
            with pytest.raises(tupelo.InvalidArgumentError, match=r"cannot be appended.*data\.write\('out\.root'\)"):
                call()


def test_projected_fields_cannot_be_filled() -> None:
    """Regression: they were reported as unknown, although the ntuple lists them."""
    jets = [[{"pt": 1.5, "eta": 0.5}], []]
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("E", {"jets": jets, "a": [1, 2]}, projections={"jet_pt": "jets.pt", "n": "#jets"})
        text = "'jet_pt' projects 'jets.pt', 'n' projects 'jets'; give 'jets' instead"
        for data in (
            {"jet_pt": [[1.5]], "n": [1], "a": [1]},
            {"a": [1], "jet_pt": [[1.5]], "jets": jets[:1], "n": [1]},
        ):
            for accept in (False, True):
                with pytest.raises(tupelo.InvalidArgumentError, match=text):
                    events.extend(data, accept_new_fields=accept)
        events.add_fields(projections={"b": "a"})
        with pytest.raises(tupelo.InvalidArgumentError, match="'b' projects 'a'; give 'a' instead"):
            events.extend({"jets": jets, "b": [1, 2]})
    with tupelo.update("f.root") as file:
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            file["E"].extend({"jet_pt": [[1.5]], "n": [1], "a": [1]})
        with pytest.raises(tupelo.InvalidArgumentError, match="unknown: 'other'"):
            file["E"].extend({"jets": jets, "a": [1, 2], "other": [1, 2]})
        file["E"].extend({"jets": jets, "a": [1, 2]})


def test_a_file_says_whose_methods_are_missing() -> None:
    with tupelo.recreate("methods.root") as out:
        out["dir/Events"] = out["Scores"] = {"x": [1]}
    file = tupelo.open("methods.root")
    message = r"no attribute '{0}'; .* file\['dir/Events'\]\.{0}; it contains \['dir/Events', 'Scores'\]"
    for name in "dataset", "arrays":
        with pytest.raises(AttributeError, match=message.format(name)):
            getattr(file, name)
    for name in "num_entries", "datasets", "_core_", "__array__":
        assert not hasattr(file, name)
    file.close()
    assert not hasattr(file, "dataset")
