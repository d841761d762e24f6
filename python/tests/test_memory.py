"""Returned arrays are writable and share no memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tupelo

SIZE = 1000


@pytest.fixture
def events(tmp_path: Path) -> tupelo.Ntuple:
    path = tmp_path / "memory.root"
    with tupelo.recreate(path) as file:
        writer = file.mkrntuple(
            "Events",
            {
                "x": "double",
                "flag": "bool",
                "name": "std::string",
                "lists": "std::vector<float>",
                "grid": "std::array<int, 3>",
                "optional": "std::optional<int>",
                "record": tupelo.record("Pair", {"a": "int", "b": "double"}),
                "words": "std::vector<std::string>",
            },
        )
        writer.extend(
            {
                "x": np.arange(SIZE, dtype=float),
                "flag": [i % 2 == 0 for i in range(SIZE)],
                "name": [str(i) for i in range(SIZE)],
                "lists": [[float(i)] * (i % 3) for i in range(SIZE)],
                "grid": [[i, i, i] for i in range(SIZE)],
                "optional": [None if i % 4 == 0 else i for i in range(SIZE)],
                "record": [{"a": i, "b": 0.5} for i in range(SIZE)],
                "words": [["a"] * (i % 2) for i in range(SIZE)],
            }
        )
        runs = writer.attribute_set("runs", {"number": "int"})
        runs.extend([(0, SIZE)], {"number": [7]})
    return tupelo.open(path)["Events"]


def overwrite(arrays: dict[str, np.ndarray]) -> None:
    """Changes every value."""
    for array in arrays.values():
        assert array.flags.writeable
        if array.dtype != object:
            array[...] = np.zeros((), array.dtype)
            continue
        for index, value in enumerate(array):
            if isinstance(value, np.ndarray):
                assert value.flags.writeable
                value[...] = "" if value.dtype == object else 0
            array[index] = None


def test_numpy_arrays_are_writable(events: tupelo.Ntuple) -> None:
    # Regression: they were views of immutable Arrow buffers.
    overwrite(events.arrays(library="np"))
    overwrite(events.take([5, 7, 5], library="np"))
    for piece in events.iterate(step_size=300, library="np"):
        overwrite(piece)
    overwrite({path: events[path].array(library="np") for path in events})
    overwrite(tupelo.concatenate(events, library="np"))
    overwrite(events.attributes("runs").arrays(library="np"))
    # It changes neither the file nor later reads.
    assert events["x"].array(library="np").tolist() == list(range(SIZE))
    assert events.attributes("runs").arrays(library="np")["number"].tolist() == [7]
    x = events["x"].array(library="np")
    x *= 2
    x[::-1].sort()
    assert x[0] == 2 * (SIZE - 1)
    np.asarray(events["x"])[0] = 1


def test_masks_of_optional_numbers_are_writable(events: tupelo.Ntuple) -> None:
    values = events["optional"].array(library="np")
    values[0] = 5
    values[1] = np.ma.masked
    assert values[:3].tolist() == [5, None, 2]


def test_data_frames_are_writable(events: tupelo.Ntuple) -> None:
    frame = events.arrays(["x", "flag", "name", "optional"], library="pd")
    frame.loc[0, "x"] = 1
    frame.loc[0, "flag"] = False
    frame.loc[0, "name"] = "zero"
    frame.loc[0, "optional"] = 7
    frame.fillna(0, inplace=True)
    frame["x"] *= 2
    assert frame.iloc[0].tolist() == [2.0, False, "zero", 7]
    assert frame["optional"].isna().sum() == 0
    assert isinstance(events["x"].array(library="pd"), pd.Series)


def test_no_two_arrays_share_memory(events: tupelo.Ntuple) -> None:
    # An alias of a single field shares its buffer.
    wanted = ["x", "lists", "grid", "x1", "x2", "lists1", "grid1"]
    aliases = {"x1": "x", "x2": "x1", "lists1": "lists", "grid1": "grid"}
    for cut in None, "x >= 0":
        arrays = events.arrays(wanted, cut, aliases=aliases, library="np")
        before = {name: array.tolist() for name, array in arrays.items() if array.dtype != object}
        for name in before:
            arrays[name][...] = -1
            for other in before:
                if other != name:
                    assert arrays[other].tolist() == before[other], (name, other)
            arrays[name][...] = before[name]
        for a, b in ("lists", "lists1"), ("lists1", "lists"):
            arrays[a][2][0] = 99
            assert arrays[b][2][0] == 2
            arrays[a][2][0] = 2
        frame = events.arrays(["x", "x1", "x2"], cut, aliases=aliases, library="pd")
        frame.loc[0, "x"] = -5
        frame["x2"].to_numpy()
        assert frame.loc[0].tolist() == [-5, 0, 0]


def test_batches_share_no_memory(events: tupelo.Ntuple) -> None:
    # Batches are slices of a larger decoded chunk.
    pieces = list(events.iterate(["x", "lists"], step_size=7, library="np"))
    for piece in pieces[::2]:
        overwrite(piece)
    rest = np.concatenate([piece["x"] for piece in pieces[1::2]])
    assert rest.tolist() == [i for i in range(SIZE) if i // 7 % 2 == 1]
    assert [v[0] for piece in pieces[1::2] for v in piece["lists"] if len(v)] == [i for i in rest if i % 3]


def test_arrays_kept_by_rules_do_not_change(tmp_path: Path) -> None:
    kept: list[pa.Array] = []

    def same(a: pa.Array) -> pa.Array:
        kept.append(a)
        return a

    path = tmp_path / "rules.root"
    with tupelo.recreate(path) as file:
        pair = tupelo.record("Pair", {"a": "double"})
        file.mkrntuple("Events", {"record": pair}).extend({"record": [{"a": 1.5}, {"a": 2.5}]})
    rule = tupelo.ReadRule("Pair", ["a"], {"b": "double"}, same)
    ruled = tupelo.open(path)["Events"].with_rules(rule)
    for name in "record.a", "record.b":
        ruled.arrays(name, library="np")
        values = ruled[name].array(library="np")
        values[...] = 0
    assert all(array.to_pylist() == [1.5, 2.5] for array in kept)
