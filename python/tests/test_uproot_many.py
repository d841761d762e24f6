"""Many files with the interface of uproot: different fields, steps, partitions."""

import warnings
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo
import tupelo.uproot_compat as compat


@pytest.fixture
def files() -> list[str]:
    """Two files, each with a field and a member of a record that the other one lacks."""
    for name, own, start in (("a", "HLT_IsoMu24", 0), ("b", "HLT_IsoMu27", 10)):
        x = np.arange(start, start + 10)
        with compat.recreate(f"{name}.root") as file:
            file["Events"] = {"x": x, own: x % 2 == 0, "jet": ak.zip({"pt": x / 2, f"only_{name}": x})}
    return ["a.root:Events", "b.root:Events"]


def read(verb: str, files: Any, **how: Any) -> Any:
    """The result of a function for many files as one array."""
    if verb == "dask":
        return compat.dask(files, **how).compute(scheduler="sync")
    pieces = getattr(compat, verb)(files, **how)
    return ak.concatenate(list(pieces)) if verb == "iterate" else pieces


VERBS = ["iterate", "concatenate", "dask"]


@pytest.mark.parametrize("verb", VERBS)
def test_files_with_different_fields(verb: str, files: list[str]) -> None:
    with pytest.warns(tupelo.TupeloWarning, match="HLT_IsoMu24"):
        common = read(verb, files)
    assert (sorted(common.fields), common.jet.fields) == (["jet", "x"], ["pt"])
    assert common.x.tolist() == list(range(20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(verb, files, filter_name="x").fields == ["x"]
        union = read(verb, files, fields="union", filter_name=["x", "HLT_*"])
    assert sorted(union.fields) == ["HLT_IsoMu24", "HLT_IsoMu27", "x"]
    assert union.HLT_IsoMu27.tolist() == [None] * 10 + [at % 2 == 0 for at in range(10, 20)]
    with pytest.raises(tupelo.NotFoundError):
        read(verb, files, filter_name="nothing")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("steps", [[[0, 2], [5, 6]], [0, 2, 5]], ids=["pairs", "ends"])
def test_files_with_steps(verb: str, steps: Any, files: list[str]) -> None:
    spec = {
        "a.root": {"object_path": "Events", "steps": steps},
        "b.root": {"object_path": "Events", "steps": [[8, 10]]},
    }
    got = read(verb, spec, filter_name="x").x.tolist()
    assert got == ([0, 1, 5, 18, 19] if steps[0] == [0, 2] else [0, 1, 2, 3, 4, 18, 19])
    if verb == "iterate":
        assert len(list(compat.iterate(spec, filter_name="x"))) == 3
        reports = [report for _, report in compat.iterate(spec, filter_name="x", report=True)]
        assert (reports[-1].start, reports[-1].tree_entry_start) == (18, 8)
    if verb == "dask":
        assert compat.dask(spec, filter_name="x").npartitions == 3


def test_partitions_equal_uproot(files: list[str]) -> None:
    """Regression: files with one cluster were always one partition."""
    for how in ({}, {"steps_per_file": 3}, {"step_size": 4}, {"step_size": 7}):
        mine = compat.dask(files, filter_name="x", **how)
        theirs = uproot.dask(files, filter_name="x", **how)
        assert mine.npartitions == theirs.npartitions
        assert mine.x.compute(scheduler="sync").tolist() == list(range(20))
    assert compat.dask(files, filter_name="x", step_size="32 B").npartitions == 6
    assert len(list(compat.open("a.root:Events").iterate("x", step_size="32 B"))) == 3


def test_dask_writes_ntuples(files: list[str]) -> None:
    import dask_awkward as dak

    events = dak.from_awkward(ak.Array([{"x": at, "y": [at] * (at % 3)} for at in range(10)]), npartitions=3)
    assert compat.dask_write(events, "out", prefix="skim", tree_name="Events", title="a skim") is None
    written = sorted(Path("out").iterdir())
    assert [path.name for path in written] == ["skim-part0.root", "skim-part1.root", "skim-part2.root"]
    back = uproot.concatenate([f"{path}:Events" for path in written])
    assert back.tolist() == events.compute(scheduler="sync").tolist()
    assert compat.open({written[0]: "Events"}).description == "a skim"
    put_off = compat.dask_write(compat.dask(files, filter_name="x"), "later", compute=False)
    assert not Path("later").exists()
    assert len(put_off.compute(scheduler="sync")) == 2
    assert compat.concatenate("later/*.root:tree").x.tolist() == list(range(20))


def test_sizes_in_memory_equal_uproot(files: list[str]) -> None:
    """Columns count uncompressed. uproot counts reduced-precision numbers with their size in memory."""
    for module in (compat, uproot):
        with module.open(files[0]) as events:
            assert events.num_entries_for("80 B", filter_name="x") == 10
            assert events.num_entries_for("32 B", filter_name="jet.pt") == 4
            assert events.num_entries_for("10 B", filter_name="x") == 1
