"""Arguments that are too large, too deep or not numbers raise errors of Tupelo immediately and leave no file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tupelo

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tupelo.Ntuple:
    monkeypatch.chdir(tmp_path)
    with tupelo.recreate("limits.root") as file:
        file["Events"] = {"x": np.arange(10.0)}
    return tupelo.open("limits.root:Events")  # type: ignore[return-value]


@pytest.mark.parametrize("threads", [-1, 2**16, 2**40, 2**64, True, 1.5, "2", None])
def test_invalid_numbers_of_threads_are_rejected(threads: Any) -> None:
    # Regression: -1 raised OverflowError, and 2⁴⁰ threads were started.
    before = tupelo.threads()
    with pytest.raises(tupelo.InvalidArgumentError, match="expected threads as a number of threads from 0"):
        tupelo.set_threads(threads)
    assert tupelo.threads() == before
    tupelo.set_threads(np.int64(before))


@pytest.mark.parametrize("bins", [2**27 + 1, 2**31 - 3, 2**31, 2**40, 10**30])
def test_too_large_histograms_are_rejected(events: tupelo.Ntuple, bins: int) -> None:
    with pytest.raises(tupelo.LimitError, match="the limit of 134217728 bins"):
        events.hist("x", bins=bins, range=(0, 1))
    with pytest.raises(tupelo.LimitError, match="the limit of 134217728 bins"):
        tupelo.hist("limits.root", "x", bins=bins)


def test_axes_with_too_many_bins_together_are_rejected(events: tupelo.Ntuple) -> None:
    with pytest.raises(tupelo.LimitError, match="the limit of 134217728 bins"):
        events.hist("x", "x", bins=2**20, range=[(0, 1), (0, 1)])


@pytest.mark.parametrize("limits", [(0, 10**400), (-1e308, 1e308), (0, float("inf")), (1, 0), (0, 0), 7])
def test_ranges_of_histograms_are_finite(events: tupelo.Ntuple, limits: Any) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match="range of 'x': expected"):
        events.hist("x", bins=3, range=limits)


@pytest.mark.parametrize("step", [0, -1, 2**63, 10**30, True, np.bool_(True), 1.5, None, "-1 MB", "nan MB", "1e400 MB"])
def test_invalid_steps_are_rejected(events: tupelo.Ntuple, step: Any) -> None:
    for call in (events.iterate, lambda **how: tupelo.iterate("limits.root", **how)):
        with pytest.raises(tupelo.InvalidArgumentError):
            call(step_size=step)
    if step is not None:
        with pytest.raises(tupelo.InvalidArgumentError):
            tupelo.partitions("limits.root", step_size=step)


def test_entries_beyond_64_bits_behave_like_slices(events: tupelo.Ntuple) -> None:
    for far in 2**63, 2**64, 10**30:
        assert len(events.arrays(entry_start=far)) == 0
        assert len(events.arrays(entry_start=-far, entry_stop=far)) == 10
        for entries in [far], [-far], np.array([far], dtype=object):
            with pytest.raises(tupelo.InvalidArgumentError, match="the ntuple has 10 entries"):
                events.take(entries)
    with pytest.raises(tupelo.InvalidArgumentError, match="entry 18446744073709551615 is out of range"):
        events.take(np.array([2**64 - 1], dtype=np.uint64))
    for wrong in True, np.bool_(True), 1.5, "1":
        with pytest.raises(tupelo.InvalidArgumentError, match="expected entry_start and entry_stop as integers"):
            events.arrays(entry_start=wrong)  # type: ignore[arg-type]


def test_take_needs_integers(events: tupelo.Ntuple) -> None:
    good: list[Any] = [
        [3, -1], (3, -1), np.array([3, -1]), np.array([3, 9], np.uint8), [np.int8(3), 9], iter([3, -1]),
        pa.array([3, 9]),
    ]  # fmt: skip
    for entries in good:
        assert events.take(entries, library="np")["x"].tolist() == [3, 9]
    assert events.take(range(8, 2, -3), library="np")["x"].tolist() == [8, 5]
    assert events.take([], library="np")["x"].tolist() == []
    assert events.take(np.array([], dtype=np.int64), library="pd").index.tolist() == []
    bad: list[Any] = [[True], [1.0], ["1"], [None], [[1]], np.array([True] * 10), np.array([1.0]), np.ones((2, 2), int)]
    for entries in bad:
        with pytest.raises(tupelo.InvalidArgumentError, match="expected entries as integers"):
            events.take(entries)
    for wrong in "12", 7, None:
        with pytest.raises(tupelo.InvalidArgumentError, match="expected entries as a list of integers"):
            events.take(wrong)  # type: ignore[arg-type]


def test_take_without_fields() -> None:
    ntuple = tupelo.open(Path(__file__).parents[2] / "conformance" / "bad" / "64-entries-without-fields.root").only()
    assert ntuple.keys() == []
    assert ntuple.take([0, -1]).tolist() == [{}, {}]
    assert ntuple.take([5], library="pd").shape == (1, 0)
    with pytest.raises(tupelo.InvalidArgumentError, match=f"the ntuple has {ntuple.num_entries} entries"):
        ntuple.take([ntuple.num_entries])


def lists(depth: int) -> str:
    return "std::vector<" * depth + "int" + ">" * depth


def test_types_too_deep_for_pyarrow_are_rejected() -> None:
    # Regression: it raised an error of PyArrow, "Recursion level in ArrowSchema struct exceeded".
    for name, depth in ("deep62.root", 62), ("deep63.root", 63):
        with tupelo.recreate(name) as file:
            file.mkrntuple("Events", {"a": lists(depth), "b": "int"}).extend({"a": [[]], "b": [1]})
    assert tupelo.open("deep62.root")["Events"].arrays("a").fields == ["a"]
    found = [tupelo.open("deep63.root")["Events"]]
    if (hostile := DATA / "hostile" / "deep63.root").exists():
        found.append(tupelo.open(hostile).only())
    for ntuple in found:
        calls: list[Callable[[], Any]] = [
            ntuple.arrays,
            lambda ntuple=ntuple: ntuple["a"].array(library="np"),
            lambda ntuple=ntuple: list(ntuple.iterate()),
            lambda ntuple=ntuple: ntuple.take([]),
            lambda ntuple=ntuple: ntuple.arrow_schema,
            lambda ntuple=ntuple: pa.table(ntuple),
            lambda ntuple=ntuple: ntuple.hist("a"),
            lambda ntuple=ntuple: tupelo.concatenate(ntuple),
        ]
        for call in calls:
            with pytest.raises(tupelo.UnsupportedError, match="field 'a' has 64 levels of nested types, and PyArrow"):
                call()
        assert ntuple.keys()[0] == "a"
    assert found[0].arrays("b").fields == ["b"]


@pytest.mark.parametrize("depth", [65, 1000, 100_000])
@pytest.mark.parametrize(
    "kind", ["vector<{}>", "array<{},1>", "optional<{}>", "pair<int,{}>", "atomic<{}>", "map<int,{}>"]
)
def test_too_deep_cpp_types_are_rejected(events: tupelo.Ntuple, kind: str, depth: int) -> None:
    # Regression: 1000 took seconds and raised RecursionError.
    before, _, after = f"std::{kind}".partition("{}")
    declared = before * depth + "int" + after * depth
    with (
        pytest.raises(tupelo.InvalidArgumentError, match=f"types in {depth} levels"),
        tupelo.recreate("w.root") as file,
    ):
        file.mkrntuple("Events", {"x": declared})
    with pytest.raises(tupelo.InvalidArgumentError, match=f"types in {depth} levels"):
        events.arrays(schema={"x": declared})
    assert os.listdir() == ["limits.root"]


@pytest.mark.parametrize("depth", [66, 1000])
def test_too_deep_arrow_types_and_data_are_rejected(events: tupelo.Ntuple, depth: int) -> None:
    kind, value = pa.int32(), 1
    for _ in range(depth):
        kind, value = pa.large_list(kind), [value]  # type: ignore[assignment]
    for what in kind, [value]:
        with (
            pytest.raises(tupelo.InvalidArgumentError, match="nests types more than"),
            tupelo.recreate("w.root") as file,
        ):
            file.mkrntuple("Events", {"x": what})
    assert os.listdir() == ["limits.root"]


def test_array_sizes_have_31_bits() -> None:
    for size in "0", "2147483648", "9" * 5000, "٣", "-1", "x":
        with pytest.raises(tupelo.InvalidArgumentError, match="needs a size from 1"), tupelo.recreate("w.root") as file:
            file.mkrntuple("Events", {"x": f"std::array<int,{size}>"})
