"""Optional records without a C++ class: all readers see the same collections of at most one record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import awkward as ak
import pytest
import uproot
from panel import root_error
from root_programs import root

import tupelo

MUONS = ak.Array([[{"pt": 1.5, "q": 1}, {"pt": 0.5, "q": -1}], [], [{"pt": 2.5, "q": -1}]])
COLUMNS = {
    "first": ak.firsts(MUONS),
    "masked": MUONS.mask[MUONS.pt > 1],
    "best": MUONS[ak.argmax(MUONS.pt, axis=1, keepdims=True)],
    "lists": MUONS.mask[ak.num(MUONS) > 0],
}
SHOW = """
import ROOT, sys
reader = ROOT.RNTupleReader.Open("Events", sys.argv[1])
for entry in range(reader.GetNEntries()):
    reader.Show(entry)
"""


def as_lists(values: Any, is_optional: bool) -> Any:
    """Values with optional records as lists of at most one."""
    return values if not is_optional else [[] if value is None else [value] for value in values]


EXPECTED = {
    "first": as_lists(COLUMNS["first"].tolist(), True),
    "masked": [as_lists(muons, True) for muons in COLUMNS["masked"].tolist()],
    "best": [as_lists(muons, True) for muons in COLUMNS["best"].tolist()],
    "lists": as_lists(COLUMNS["lists"].tolist(), True),
}


def test_optional_records_are_read_by_all(tmp_path: Path, summary: list[str]) -> None:
    path = tmp_path / "optional.root"
    with tupelo.recreate(path) as file:
        file["Events"] = COLUMNS
    with tupelo.update(path) as file:
        file["Events"].extend(COLUMNS)
    for reader in (tupelo, uproot):
        with reader.open(path) as file:
            arrays = file["Events"].arrays()
        assert {name: arrays[name].tolist() for name in COLUMNS} == {name: two * 2 for name, two in EXPECTED.items()}
    assert ak.firsts(arrays["first"]).tolist() == COLUMNS["first"].tolist() * 2
    if root_error():
        summary.append(f"ROOT did not read optional records: {root_error()}")
        pytest.skip("ROOT cannot be imported")
    shown = json.loads("[" + root(SHOW, path).strip().replace("}\n{", "},{") + "]")
    assert shown == [dict(zip(EXPECTED, row, strict=True)) for row in zip(*EXPECTED.values(), strict=True)] * 2


def test_records_with_a_class_name_are_optional(tmp_path: Path) -> None:
    import pyarrow as pa

    muon = tupelo.record("Muon", {"pt": "double", "q": "std::int64_t"}).with_nullable(True).with_name("first")
    with tupelo.recreate(tmp_path / "class.root") as file:
        made = file.mkrntuple("Events", pa.schema([muon]))
        made.extend({"first": COLUMNS["first"]})
    with tupelo.open({tmp_path / "class.root": "Events"}) as events:
        assert events.typenames(recursive=False) == {"first": "std::optional<Muon>"}
        assert events["first"].array().tolist() == COLUMNS["first"].tolist()
