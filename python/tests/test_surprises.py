"""What people tried and got, without a word, something else than they meant."""

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
import tupelo.uproot_compat as compat


def written(data: Any) -> tupelo.Ntuple:
    with tupelo.recreate("f.root") as file:
        file["E"] = data
    opened = tupelo.open("f.root:E")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


@pytest.mark.parametrize("take", [list, len, iter, pd.Series])
def test_a_field_without_subfields_is_no_empty_mapping(take: Callable[[Any], object]) -> None:
    """Such a field was an empty mapping, so that what takes sequences found no values, and said nothing."""
    field = written({"x": [1.5, 2.5]})["x"]
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'x' has no subfields.*\.array\(\)"):
        take(field)
    assert field
    assert field.keys() == []


def test_a_field_is_an_array_to_arrow() -> None:
    """`pyarrow.array(field)` was an empty array."""
    field = written({"x": [1.5, 2.5]})["x"]
    assert pa.array(field).to_pylist() == pa.chunked_array(field).to_pylist() == [1.5, 2.5]
    assert pa.array(field, pa.float32()).type == pa.float32()
    assert pl.Series(field).to_list() == np.asarray(field).tolist() == [1.5, 2.5]
    assert written({"y": field}).arrays().tolist() == [{"y": 1.5}, {"y": 2.5}]


def test_subfields_are_a_whole_mapping() -> None:
    """A field had keys, but neither items nor values, which uproot's have."""
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


def test_maps_have_types_in_uproots_words() -> None:
    """`typenames` and `show` died of a KeyError('_0'): Arrow calls the members of a map key and value."""
    with tupelo.recreate("map.root") as file:
        file.mkrntuple("E", {"m": "std::map<int,float>", "x": "int"}).extend({"m": [{1: 2.5}], "x": [1]})
    ntuple = compat.open("map.root:E")
    types = ntuple.typenames()
    assert types["m"] == "std::map<std::int32_t,float>"
    assert {types[name] for name in types if name.startswith("m.")} == {"std::int32_t", "float"}
    ntuple.show()
    assert ntuple.keys(filter_typename="float") == [name for name in types if types[name] == "float"]


@pytest.mark.parametrize("data", [pd.DataFrame({"x": [1, np.nan]}), {"x": pd.Series([1, np.nan])}])
def test_nan_of_numpy_is_a_value(data: Any) -> None:
    """NaN in a data frame was taken for missing, and the field for std::optional<double>."""
    ntuple = written(data)
    assert ntuple["x"].typename == "double"
    assert np.isnan(ntuple["x"].array(library="np")).tolist() == [False, True]


def test_nan_of_numpy_under_names_that_are_alike_and_in_the_index() -> None:
    """As above, for floats of other sizes, and for levels of the index."""
    frame = pd.DataFrame({"s": ["a", None], "f": np.array([1, np.nan], "f4")}).set_index(
        pd.Index([np.nan, 2.5], name="at")
    )
    assert written(frame).typenames() == {"s": "std::optional<std::string>", "f": "float", "at": "double"}


@pytest.mark.parametrize("kind", ["Float64", "Int64", "double[pyarrow]"])
def test_what_is_missing_in_pandas_own_types_stays_missing(kind: str) -> None:
    """These types have a value for what is missing besides NaN."""
    column = pd.Series([1, None], dtype=kind)  # type: ignore[call-overload]
    for data in pd.DataFrame({"x": column}), {"x": column}:
        assert written(data).arrays().tolist() == [{"x": 1}, {"x": None}]


def test_entries_that_a_cut_keeps_are_signed() -> None:
    """The index was uint64, so that differences of entries were huge."""
    ntuple = written({"x": [1, 2, 3]})
    frame = ntuple.arrays("x", cut="x > 1", library="pd")
    assert frame.index.dtype == np.dtype("int64")
    assert frame.index.tolist() == [1, 2]
    assert [piece.index.dtype for piece in ntuple.iterate("x", cut="x > 1", library="pd")] == [np.dtype("int64")]


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text "~/f.root" was a file in a folder called ~."""
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
    with pytest.raises(FileExistsError):
        compat.create("~/f.root")
    with pytest.raises(tupelo.MissingFileError):
        tupelo.open(Path("~/f.root"))


@pytest.mark.parametrize(("module", "library"), [("pandas", "pd"), ("polars", "pl")])
def test_why_a_package_cannot_be_loaded(module: str, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed and does not work was said to be not installed."""
    ntuple = written({"x": [1]})
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr("tupelo._optional.import_module", broken)
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
def test_errors_do_not_show_megabytes(call: Callable[[Any], object]) -> None:
    """Errors had the whole of an argument in them: of the bytes of a file for instance."""
    with pytest.raises(tupelo.Error) as caught:
        call(b"root" * 100_000)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("library", ["ak", "np", "arrow", "pd", "pl"])
def test_columns_come_in_the_order_asked_for(library: Any) -> None:
    """They came in the order of the file, so that ``b, a = arrays(["b", "a"], how=tuple)`` exchanged them."""
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


def test_virtual_columns_come_in_the_order_asked_for() -> None:
    """As above, and nothing is read for it."""
    log: list[Any] = []
    array = written({"a": [1, 2], "b": [3, 4]}).arrays(["b", "a"], virtual=True, access_log=log)
    assert array.fields == ["b", "a"]
    assert log == []
    assert array.b.tolist() == [3, 4]
