"""Virtual arrays: when they are read, equality with eager arrays, and cost for many fields."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import awkward as ak
import numpy as np
import pytest

import tupelo
from tupelo.fields._virtual import Accessed

WIDE = 1500
"""Fields of the wide ntuple: NanoAOD has as many."""
MAX_CALLS = 300
"""Maximum number of calls for each of them, of functions of Python and C: with Awkward 2.14 it takes 132."""


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    jets = ak.Array([[{"pt": 1.5, "hits": [1, 2]}, {"pt": 2.5, "hits": []}], [], [{"pt": 3.5, "hits": [3]}]] * 4)
    with tupelo.recreate("v.root", page_bytes=64) as file:
        events = file.mkrntuple(
            "Events",
            {
                "jets": jets,
                "x": np.arange(12.0),
                "text": [f"n{i}" for i in range(12)],
                "maybe": [None if i % 3 else i for i in range(12)],
                "record": [{"a": i, "b": {"c": [i] * (i % 2)}} for i in range(12)],
                "matrix": np.arange(72).reshape(12, 2, 3),
            },
        )
        events.flush_cluster()
    opened = tupelo.open("v.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


def fields(log: list[Accessed]) -> set[str]:
    return {one.field_name for one in log}


def test_nothing_is_read_before_first_use(ntuple: tupelo.Ntuple) -> None:
    log: list[Accessed] = []
    events = ntuple.arrays(virtual=True, access_log=log)
    assert (len(events), events.fields) == (12, ntuple.keys(recursive=False))
    assert str(events.type) == str(ntuple.arrays().type)
    assert log == []
    assert ak.sum(events.x) == 66.0
    assert log == [Accessed("x", "data", 0, 12)]
    assert ak.sum(events.x * 2) == 132.0
    assert len(log) == 1


def test_members_are_read_separately(ntuple: tupelo.Ntuple) -> None:
    log: list[Accessed] = []
    events = ntuple.arrays(virtual=True, access_log=log)
    assert ak.sum(events.record.a) == 66
    assert fields(log) == {"record.a"}
    assert ak.num(events.jets).tolist() == [2, 0, 1] * 4
    assert fields(log) == {"record.a", "jets.pt"}
    assert ak.sum(events.jets.pt) == 30.0
    assert fields(log) == {"record.a", "jets.pt"}
    assert ak.sum(events.jets.hits) == 24
    assert fields(log) == {"record.a", "jets.pt", "jets.hits"}
    # The offsets of lists came with their first member.
    assert [one.buffer for one in log if one.field_name == "jets.hits"] == ["offsets", "data"]


@pytest.mark.parametrize("selection", [None, ["jets.pt", "record.b"], "jets.hits", ["x", "m*"]])
@pytest.mark.parametrize("entries", [(None, None), (2, 7), (-3, None), (5, 5)])
def test_virtual_arrays_equal_eager_ones(ntuple: tupelo.Ntuple, selection: Any, entries: tuple[int, int]) -> None:
    how: dict[str, Any] = {"expressions": selection, "entry_start": entries[0], "entry_stop": entries[1]}
    eager, virtual = ntuple.arrays(**how), ntuple.arrays(**how, virtual=True)
    assert str(virtual.type) == str(eager.type)
    assert ak.materialize(virtual).layout.form == eager.layout.form
    assert virtual.tolist() == eager.tolist()


def test_operations_of_awkward(ntuple: tupelo.Ntuple) -> None:
    eager, virtual = ntuple.arrays(), ntuple.arrays(virtual=True)
    assert virtual[virtual.x > 5].tolist() == eager[eager.x > 5].tolist()
    assert virtual[3].tolist() == eager[3].tolist()
    assert ak.to_packed(virtual[["x", "maybe"]]).tolist() == eager[["x", "maybe"]].tolist()
    zipped = ak.zip({"pt": virtual.jets.pt, "n": ak.num(virtual.jets.hits, axis=2)})
    assert zipped.n.tolist() == ak.num(eager.jets.hits, axis=2).tolist()
    assert ak.concatenate([virtual, eager]).tolist() == eager.tolist() * 2


def test_single_fields(ntuple: tupelo.Ntuple) -> None:
    for path in ntuple:
        log: list[Accessed] = []
        values = ntuple[path].array(virtual=True, access_log=log)
        # To access a list, Awkward needs its offsets.
        assert (len(values), {one.buffer for one in log} - {"offsets"}) == (12, set())
        assert values.tolist() == ntuple[path].array().tolist()
        assert all(field.startswith(path) for field in fields(log))
    assert ntuple["x"].array(ak_add_doc={"typename": "typename"}).layout.parameters == {"typename": "double"}


def test_variants_may_be_missing() -> None:
    with tupelo.recreate("variants.root") as file:
        file["Events"] = {"v": ak.Array([1, "two", 3]), "x": np.array([1, 2, 3], dtype="i4")}
    ntuple = tupelo.open("variants.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    log: list[Accessed] = []
    events = ntuple.arrays(virtual=True, access_log=log)
    assert str(events.type) == "3 * {v: union[?unknown, ?int64, ?string], x: int32}"
    assert log == []
    assert events.v.tolist() == [1, "two", 3]
    assert fields(log) == {"v"}


def test_damage_is_found_on_first_use() -> None:
    with tupelo.recreate("damaged.root", compression="none") as file:
        file["Events"] = {"x": np.arange(1000, dtype="i8"), "y": np.full(1000, 0xEFEFEFEFEFEFEFEF, dtype="u8")}
    content = bytearray(Path("damaged.root").read_bytes())
    content[content.index(b"\xef" * 8000)] ^= 1
    Path("damaged.root").write_bytes(content)
    ntuple = tupelo.open("damaged.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    events = ntuple.arrays(virtual=True)
    assert ak.sum(events.x) == 499_500
    with pytest.raises(tupelo.CorruptError, match="checksum"):
        ak.sum(events.y)


def calls(work: Callable[[], object]) -> int:
    """The number of functions that are called."""
    count = 0

    def notice(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(notice)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_many_fields_are_cheap() -> None:
    def look_at_five(fields: int) -> None:
        ntuple = tupelo.open(f"{fields}.root:Events", metrics=True)
        assert isinstance(ntuple, tupelo.Ntuple)
        events = ntuple.arrays(virtual=True)
        five = range(0, fields, fields // 5)
        assert [ak.sum(events[f"f{i}"]) for i in five] == [16 * i for i in five]
        assert ntuple.metrics is not None
        assert ntuple.metrics.pages == 5

    counts = []
    for fields in (WIDE // 2, WIDE):
        with tupelo.recreate(f"{fields}.root") as file:
            file["Events"] = {f"f{i}": np.full(16, i, dtype="f4") for i in range(fields)}
        counts.append(calls(partial(look_at_five, fields)))
    half, whole = counts
    assert whole < 2.2 * half
    assert whole < MAX_CALLS * WIDE


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("'how' cannot be used", {"how": dict}),
        ("'library' cannot be used", {"library": "np"}),
        ("'cut' cannot be used", {"cut": "x > 1"}),
        ("'aliases' cannot be used", {"aliases": {"y": "x"}}),
        ("'schema' cannot be used", {"schema": {"x": "float"}}),
        ("'x \\* 2' is an expression", {"expressions": "x * 2"}),
        ("access_log", {"access_log": 5}),
    ],
)
def test_incompatible_keywords(ntuple: tupelo.Ntuple, text: str, keywords: dict[str, Any]) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match=text):
        ntuple.arrays(virtual=True, **keywords)
