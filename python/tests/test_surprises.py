"""What people tried and got, without a word, something else than they meant."""

from collections.abc import Callable
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


@pytest.mark.parametrize("take", [list, len, iter, pd.Series, ak.Array, ak.sum])
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
    assert found is not None and found.path == "jets.pt"
    assert jets.get("eta") is None and jets["pt"].get("x", jets) is jets
    assert "pt" in jets and "eta" not in jets and "x" not in jets["pt"]


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
