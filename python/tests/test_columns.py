"""Ntuples with additional columns, and copies of ntuples."""

import os
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import tupelo

ENTRIES = 5000


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, ENTRIES)
    with tupelo.recreate("in.root") as file:
        events = file.mkrntuple(
            "dir/Events",
            {"run": "std::uint32_t", "met": "double", "jets": "std::vector<float>"},
            description="what it is",
            cluster_bytes=20_000,
            page_bytes=2_000,
            projections={"n_jets": "#jets"},
            encodings={"met": "Real32"},
        )
        events.metadata["generator"] = "pythia"
        good = events.attribute_set("good", {"flag": "bool"})
        for start in range(0, ENTRIES, 500):
            part = counts[start : start + 500]
            events.extend(
                {
                    "run": np.arange(start, start + 500) // 100,
                    "met": rng.exponential(30, 500).astype("f4").astype("f8"),
                    "jets": ak.unflatten(rng.exponential(20, part.sum()).astype("f4"), part),
                }
            )
        good.extend([(0, 1000), (3000, 4000)], {"flag": [True, False]})
    opened = tupelo.open("in.root:dir/Events")
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 2
    return opened


def values_of(kind: str) -> Any:
    numbers = np.arange(ENTRIES)
    return {
        "float": numbers.astype("f4") / 7,
        "jagged": ak.unflatten(np.arange(ENTRIES * 2), np.full(ENTRIES, 2)),
        "records": ak.zip({"a": ak.unflatten(np.arange(ENTRIES * 2), np.full(ENTRIES, 2)), "b": numbers}),
        "fixed": np.arange(ENTRIES * 3).reshape(ENTRIES, 3),
        "texts": [f"t{i}" for i in numbers],
        "optional": pa.array([None if i % 3 else i for i in range(ENTRIES)]),
        "chunks": pa.chunked_array([np.arange(10.0), np.arange(ENTRIES - 10.0)]),
    }[kind]


@pytest.mark.parametrize("kind", ["float", "jagged", "records", "fixed", "texts", "optional", "chunks"])
def test_column_values_match_their_entries(ntuple: tupelo.Ntuple, kind: str) -> None:
    values = values_of(kind)
    is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
    wanted = values.to_pylist() if is_arrow else ak.to_list(ak.Array(values))
    more = ntuple.with_columns({"new": values, "twice": "met * 2"})
    assert more.column_names == ["new", "twice"]
    assert more.write("all.root") == ENTRIES
    written = tupelo.open("all.root:dir/Events")
    assert {*written} >= {*ntuple, "new", "twice"}
    whole = ntuple.arrays()
    assert written.arrays("new").new.tolist() == wanted
    assert written.arrays("twice").twice.tolist() == (whole.met * 2).tolist()
    assert written.arrays(list(whole.fields)).tolist() == whole.tolist()
    # With a cut, and a range that is not a multiple of the batch size.
    kept = (whole.met > 60) & (np.arange(ENTRIES) >= 123) & (np.arange(ENTRIES) < 4567)
    cut = {"cut": "met > 60", "entry_start": 123, "entry_stop": 4567}
    assert more.copy("some.root", **cut) == ak.sum(kept)
    some = tupelo.open("some.root:dir/Events").arrays()
    assert some.new.tolist() == [value for value, keep in zip(wanted, kept, strict=True) if keep]
    assert some.met.tolist() == whole.met[kept].tolist()
    assert more.arrays(["run", "new"], **cut).new.tolist() == some.new.tolist()
    pieces = list(more.iterate("new", step_size=777, **cut))
    assert ak.concatenate(pieces).new.tolist() == some.new.tolist()


def test_expressions_and_cuts_use_the_columns(ntuple: tupelo.Ntuple) -> None:
    score = np.linspace(0, 1, ENTRIES)
    more = ntuple.with_columns({"score": score, "hard": "score > 0.9"}).with_columns({"w": "score * met"})
    assert repr(more) == "<tupelo.NtupleWithColumns 'dir/Events' with 'score', 'hard', 'w'>"
    got = more.arrays(["w", "score", "s2"], "hard and run > 0", aliases={"s2": "score**2"})
    assert got.fields == ["w", "score", "s2"]
    assert got.score.tolist() == score[score > 0.9].tolist()
    assert np.allclose(got.w, got.score * ntuple.arrays("met").met[score > 0.9])
    assert more.copy("hard.root", "hard", fields=["run"]) == (score > 0.9).sum()
    assert tupelo.open("hard.root:dir/Events").keys() == ["run", "score", "hard", "w"]


def test_a_copy_is_complete(ntuple: tupelo.Ntuple) -> None:
    seen: list[tuple[int, int]] = []
    copied = ntuple.copy(
        "out.root",
        cut="met > 20",
        name="Skim",
        compression="lzma",
        progress=lambda done, total: seen.append((done, total)),
    )
    skim = tupelo.open("out.root:Skim")
    assert skim.num_entries == copied
    assert (skim.description, skim.metadata) == ("what it is", {"generator": "pythia"})
    assert skim.typenames() == ntuple.typenames()
    assert skim.arrow_schema.field("met").metadata == ntuple.arrow_schema.field("met").metadata
    assert skim.arrow_schema.field("n_jets").metadata[b"rntuple.projected"] == b"jets"
    met = ntuple.arrays("met").met
    before = np.concatenate([[0], np.cumsum(np.asarray(met > 20))])
    starts, stops = skim._core.attributes("good").ranges()
    assert list(starts) == [before[0], before[3000]]
    assert list(stops) == [before[1000], before[4000]]
    assert seen[0] == (0, ENTRIES)
    assert seen[-1] == (ENTRIES, ENTRIES)
    assert ak.sum(met > 20) == copied


def test_a_copy_has_new_names(ntuple: tupelo.Ntuple) -> None:
    """Swapped names too; projected fields follow."""
    assert ntuple.copy("out.root", rename={"met": "run", "run": "met", "jets": "Jet"}) == ENTRIES
    renamed = tupelo.open("out.root:dir/Events")
    before, after = ntuple.arrays(["met", "run"]), renamed.arrays(["met", "run"])
    assert after.run.tolist() == before.met.tolist()
    assert after.met.tolist() == before.run.tolist()
    assert renamed.arrow_schema.field("n_jets").metadata[b"rntuple.projected"] == b"Jet"
    assert renamed.arrays("n_jets").n_jets.tolist() == ntuple.arrays("n_jets").n_jets.tolist()
    some = ntuple.with_columns({"twice": "met * 2"})
    assert some.copy("some.root", "met > 20", fields=["run"], rename={"twice": "x"}) > 0
    assert tupelo.open("some.root:dir/Events").keys() == ["run", "x"]
    for error, what, rename in (
        (tupelo.NotFoundError, "no field named 'mett'", {"mett": "x"}),
        (tupelo.InvalidArgumentError, "two fields would have the name 'run'", {"met": "run"}),
        (tupelo.InvalidArgumentError, "a mapping of old to new names", ["met"]),
        (tupelo.InvalidArgumentError, "a name in rename", {"met": 1}),
    ):
        with pytest.raises(error, match=what):
            ntuple.copy("out.root", rename=rename)  # type: ignore[arg-type]
    assert tupelo.open("out.root:dir/Events").num_entries == ENTRIES


def test_invalid_columns_are_rejected(ntuple: tupelo.Ntuple) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match="has 5000 entries, but column 'score' has 4999 values"):
        ntuple.with_columns({"score": np.zeros(ENTRIES - 1)})
    with pytest.raises(tupelo.InvalidArgumentError, match="the field 'met' already exists"):
        ntuple.with_columns({"met": "met * 2"})
    with pytest.raises(tupelo.InvalidArgumentError, match="the column 's' already"):
        ntuple.with_columns({"s": "met"}).with_columns({"s": "run"})
    with pytest.raises(tupelo.NotFoundError, match="no field named 'mett'"):
        ntuple.with_columns({"s": "mett + 1"})
    with pytest.raises(
        tupelo.InvalidArgumentError, match="is an expression, not a field; give it a name: with_columns"
    ):
        ntuple.copy("x.root", fields=["met * 2"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'compresion'"):
        ntuple.copy("x.root", compresion="lz4")
    assert not Path("x.root").exists()


def test_a_copy_never_replaces_its_input(ntuple: tupelo.Ntuple) -> None:
    before = Path("in.root").read_bytes()
    os.symlink("in.root", "link.root")
    os.link("in.root", "hard.root")
    Path("sub").mkdir()
    for path in ["in.root", "link.root", "hard.root", "sub/../in.root", os.path.abspath("in.root")]:
        with pytest.raises(tupelo.InvalidArgumentError, match="is the input file"):
            ntuple.copy(path)
    assert Path("in.root").read_bytes() == before


def test_a_failed_copy_changes_nothing(ntuple: tupelo.Ntuple) -> None:
    Path("out.root").write_bytes(b"precious")

    def fail(done: int, total: int) -> None:
        if done:
            raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        ntuple.copy("out.root", progress=fail)
    with pytest.raises(tupelo.InvalidArgumentError):
        ntuple.copy("out.root", cut="run * 9223372036854775807 > 0")
    assert Path("out.root").read_bytes() == b"precious"
    assert sorted(os.listdir(".")) == ["in.root", "out.root"]


def test_add_fields_with_values_suggests_with_columns() -> None:
    with tupelo.recreate("f.root") as file:
        events = file.mkrntuple("Events", {"x": [1.0, 2.0]})
        with pytest.raises(tupelo.InvalidArgumentError, match="with_columns"):
            events.add_fields({"score": np.array([0.5, 0.6])})
