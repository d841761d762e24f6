"""polars data frames, and queries over ntuples compared with polars."""

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tupelo
from tupelo._queries.columns import ColumnReader
from tupelo._queries.polars import _Source
from tupelo.fields import _select

ENTRIES = 4000
DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    rng = np.random.default_rng(5)
    pt = ak.unflatten(rng.exponential(30, 2 * ENTRIES), np.full(ENTRIES, 2))
    data = {
        "i": np.arange(ENTRIES, dtype="i4"),
        "x": np.where(rng.integers(0, 9, ENTRIES) == 0, np.nan, rng.normal(0, 1, ENTRIES)),
        "flag": np.arange(ENTRIES) % 3 == 0,
        "name": [f"entry {i % 100}" for i in range(ENTRIES)],
        "matrix": np.arange(ENTRIES * 6, dtype="f4").reshape(ENTRIES, 2, 3),
        "jets": ak.zip({"pt": pt, "hits": ak.local_index(pt)}),
        "maybe": ak.Array([None if i % 5 == 0 else i % 17 for i in range(ENTRIES)]),
        "small": (np.arange(ENTRIES) % 200).astype("i1"),
    }
    with tupelo.recreate("events.root", cluster_bytes=20_000, page_bytes=512) as file:
        file["Events"] = data
    opened = tupelo.open("events.root:Events", metrics=True)
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 3
    return opened


def whole(ntuple: tupelo.Ntuple) -> pl.DataFrame:
    """The same entries as a polars data frame."""
    frame = pl.from_arrow(ntuple.arrays(library="arrow"))
    assert isinstance(frame, pl.DataFrame)
    return frame


def test_frames(ntuple: tupelo.Ntuple) -> None:
    frame = ntuple.arrays(library="pl")
    assert frame.schema == {
        "i": pl.Int32,
        "x": pl.Float64,
        "flag": pl.Boolean,
        "name": pl.String,
        "matrix": pl.Array(pl.Float32, (2, 3)),
        "jets": pl.List(pl.Struct({"pt": pl.Float64, "hits": pl.Int64})),
        "maybe": pl.Int64,
        "small": pl.Int8,
    }
    assert frame.equals(whole(ntuple))
    assert frame.get_column("jets").to_list() == ntuple["jets"].array().tolist()
    assert frame.get_column("maybe").null_count() == ENTRIES / 5
    assert frame.get_column("matrix").to_numpy().tolist() == ntuple["matrix"].array(library="np").tolist()


def test_other_reading_methods(ntuple: tupelo.Ntuple) -> None:
    frame = whole(ntuple)
    pieces = list(ntuple.iterate(["i", "jets"], step_size=999, library="pl"))
    assert [piece.height for piece in pieces] == [999, 999, 999, 999, 4]
    assert pl.concat(pieces).equals(frame.select("i", "jets"))
    assert ntuple.take([7, 3, -1, 7], "name", library="pl").equals(frame.select("name")[[7, 3, -1, 7]])
    pt = ntuple["jets.pt"].array(library="pl")
    assert pt.name == "jets.pt"
    assert pt.to_list() == ntuple["jets.pt"].array().tolist()
    assert ntuple.arrays(library="pl", entry_stop=0).schema == frame.schema


def test_variants_are_rejected_by_name() -> None:
    tags, places = pa.array([1, 0], pa.int8()), pa.array([0, 0], pa.int32())
    one = pa.UnionArray.from_dense(tags, places, [pa.array([7]), pa.array(["a"])])
    many = pa.LargeListArray.from_arrays(pa.array([0, 2, 2]), one)
    with tupelo.recreate("f.root") as file:
        file["Events"] = pa.table({"x": [1, 2], "one": one, "many": many})
    ntuple = tupelo.open("f.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    for field in ("one", "many"):
        with pytest.raises(tupelo.UnsupportedError, match=f"field '{field}' holds variants, which polars does not"):
            ntuple.arrays(["x", field], library="pl")
    with pytest.raises(tupelo.UnsupportedError, match="field 'one' holds variants"):
        ntuple.scan()
    assert ntuple.scan(["x"]).collect().rows() == [(1,), (2,)]


def test_polars_is_optional(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    for use in (lambda: ntuple.arrays(library="pl"), ntuple.scan):
        with pytest.raises(ImportError, match=r"needs polars.*pip install polars"):
            use()


x, i, maybe, small = pl.col("x"), pl.col("i"), pl.col("maybe"), pl.col("small")

QUERIES: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "all": lambda frame: frame,
    "columns": lambda frame: frame.select("name", "i"),
    "count": lambda frame: frame.select(pl.len()),
    "nothing": lambda frame: frame.select(pl.lit(1)),
    "few": lambda frame: frame.filter(i.is_in([5, 1234, 3999])),
    "few of few columns": lambda frame: frame.filter(i % 1000 == 7).select("jets", "name"),
    "most": lambda frame: frame.filter(i % 10 != 7),
    "none": lambda frame: frame.filter(i < 0),
    "none counted": lambda frame: frame.filter(i < 0).select(pl.len()),
    "end": lambda frame: frame.filter(i >= 3900).select("matrix", "maybe"),
    # NaN is equal to itself and larger than all numbers.
    "nan is large": lambda frame: frame.filter(x > 1).select("i"),
    "nan is itself": lambda frame: frame.filter(x == float("nan")).select("i"),
    "nan": lambda frame: frame.filter(x.is_nan() | (x < -1)),
    "missing": lambda frame: frame.filter(maybe.is_null()),
    "missing is not kept": lambda frame: frame.filter(~(maybe > 3)).select("maybe"),
    "missing, three truths": lambda frame: frame.filter((maybe > 3) | pl.col("flag")).select("maybe"),
    "integers that wrap around": lambda frame: frame.filter(small + small > 0).select("i", "small"),
    "integers beside floats": lambda frame: frame.filter(i * 0.5 > small).select("i"),
    "truths": lambda frame: frame.filter("flag").select("name"),
    "texts": lambda frame: frame.filter(pl.col("name").str.ends_with("7") & ~pl.col("flag")),
    "lists": lambda frame: frame.filter(pl.col("jets").list.len() == 2).select("i"),
    "items": lambda frame: frame.filter(pl.col("jets").list.first().struct.field("pt") > 100).select("jets", "x"),
    "arrays": lambda frame: frame.filter(pl.col("matrix").arr.first().arr.last() < 100),
    "two columns": lambda frame: frame.filter(x > i / ENTRIES).select("name", "x"),
    "two filters": lambda frame: frame.filter(x > 0).filter(small > 100).select("jets"),
    "always": lambda frame: frame.filter(pl.lit(True)).select("i"),
    "never": lambda frame: frame.filter(pl.lit(False)).select("i"),
    "mean of all": lambda frame: frame.filter(i > i.mean()).select("i"),
    "running": lambda frame: frame.filter(i.cum_sum() > 10_000).select("i"),
    "python": lambda frame: frame.filter(i.map_batches(lambda values: values > 3000, return_dtype=pl.Boolean)),
    "head": lambda frame: frame.head(10),
    "head of some": lambda frame: frame.filter(x > 1).head(10).select("i", "name"),
    "some of head": lambda frame: frame.head(1000).filter(x > 1).select("i", "name"),
    "slice": lambda frame: frame.slice(1000, 50).filter(x > 0),
    "tail": lambda frame: frame.tail(3),
    "numbered": lambda frame: frame.with_row_index().filter(pl.col("index") > 3990).select("index", "i"),
    "computed": lambda frame: frame.with_columns(y=x * 2).filter(pl.col("y") > 3).select("y", "i"),
    "renamed": lambda frame: frame.rename({"i": "j"}).filter(pl.col("j") > 3990).select("j", "x"),
    "groups": lambda frame: frame.filter(i > 10).group_by("name").agg(x.count(), i.sum()).sort("name"),
    "join": lambda frame: frame.filter(i < 50).join(frame.select("i", "x"), on="i").sort("i"),
    "other frame": lambda frame: pl.concat([frame.filter(i < 10), frame.filter(i > 3990)]),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_exact(ntuple: tupelo.Ntuple, query: str, engine: Any) -> None:
    expected = QUERIES[query](whole(ntuple).lazy()).collect()
    found = QUERIES[query](ntuple.scan()).collect(engine=engine)
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_sparse_and_dense_selections_are_equal(ntuple: tupelo.Ntuple) -> None:
    for keep in (i % 3 == 1, i == 2000, (i > 100) & (i < 300), x > 1, i % 100 == 7):
        assert ntuple.scan().filter(keep).collect().equals(whole(ntuple).filter(keep))


def test_requests_of_polars_are_honored(ntuple: tupelo.Ntuple) -> None:
    """Calls the source without the optimizer of polars."""
    request = _select.Request(["i", "x", "name"], entry_start=10, entry_stop=3000)
    source = _Source(ColumnReader(ntuple, request, [request]))
    frame = whole(ntuple)[10:3000].select("i", "x", "name")
    assert [piece.height for piece in source.frames(None, None, None, 1000)] == [1000, 1000, 990]
    assert pl.concat(source.frames(["name", "i"], None, 77, 10)).equals(frame.head(77).select("name", "i"))
    assert [piece.height for piece in source.frames(["i"], None, 77, 10)] == [10] * 7 + [7]
    # The number is that of entries before the predicate.
    some = pl.concat(source.frames(["name"], i % 2 == 0, 100, 7))
    assert some.equals(frame.head(100).filter(i % 2 == 0).select("name"))
    assert pl.concat(source.frames(None, i % 2 == 0, None, None)).equals(frame.filter(i % 2 == 0))
    assert list(source.frames(["i"], None, 0, None)) == []


def unpacked(ntuple: tupelo.Ntuple, read: Callable[[], Any]) -> int:
    """Bytes of the pages that a call decodes."""
    assert ntuple.metrics is not None
    before = ntuple.metrics.unpacked_bytes
    read()
    return ntuple.metrics.unpacked_bytes - before


def test_only_necessary_columns_are_read(ntuple: tupelo.Ntuple) -> None:
    frame = ntuple.scan()
    assert unpacked(ntuple, ntuple.scan) == 0
    assert unpacked(ntuple, lambda: frame.collect_schema()) == 0
    assert unpacked(ntuple, lambda: frame.select("i").collect()) == 4 * ENTRIES
    assert unpacked(ntuple, lambda: frame.filter(i < 0).collect()) == 4 * ENTRIES
    everything = unpacked(ntuple, lambda: frame.collect())
    # One page, of 512 bytes, of each column.
    one = unpacked(ntuple, lambda: frame.filter(i == 2000).select("x").collect())
    assert 4 * ENTRIES < one <= 4 * ENTRIES + 512
    few = unpacked(ntuple, lambda: frame.filter(i == 2000).collect())
    assert few < 4 * ENTRIES + 10_000 < everything / 4
    assert unpacked(ntuple, lambda: frame.head(100).select("i").collect()) <= 512
    # Columns of the predicate are not read again.
    assert unpacked(ntuple, lambda: frame.filter(i >= 0).select("i").collect()) == 4 * ENTRIES


def test_names_ranges_and_filters(ntuple: tupelo.Ntuple) -> None:
    frame = whole(ntuple)
    assert ntuple.scan("i").collect().equals(frame.select("i"))
    assert ntuple.scan(["n*", "x"], entry_start=-5).collect().equals(frame.select("x", "name").tail(5))
    assert ntuple.scan(entry_start=5, entry_stop=5).collect().equals(frame.clear())
    assert ntuple.scan(filter_typename="*int*").collect_schema().names() == ["i", "jets", "maybe", "small"]
    pt = ntuple.scan(["jets.pt", "i"]).filter(i > 3000).select("jets").collect()
    assert pt.schema == {"jets": pl.List(pl.Struct({"pt": pl.Float64}))}
    assert pt.get_column("jets").list.eval(pl.element().struct.field("pt")).to_list() == (
        ntuple["jets.pt"].array()[3001:].tolist()
    )
    both = ntuple.scan(["jets.pt", "jets.hits"])
    assert both.collect().equals(frame.select("jets"))
    # A glob selects columns, which are read separately.
    assert unpacked(ntuple, lambda: ntuple.scan("*").select("i").collect()) == 4 * ENTRIES
    with pytest.raises(tupelo.NotFoundError, match="no field named 'y'"):
        ntuple.scan("y")
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        ntuple.scan().select("y").collect()


def test_names_with_wildcards_in_them() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"a[0]": [1, 2, 3], "a0": [4, 5, 6], "{b}": [7, 8, 9]}
    ntuple = tupelo.open("f.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    found = ntuple.scan().filter(pl.col("a[0]") > 1).select("{b}", "a0").collect()
    assert found.rows() == [(8, 5), (9, 6)]


def test_strings_that_are_not_utf8() -> None:
    with tupelo.recreate("f.root") as file, file.mkrntuple("Events", {"i": "int", "s": "std::string"}) as out:
        out.extend({"i": [1, 2, 3], "s": [b"a", b"\xff", b"c"]})
    ntuple = tupelo.open("f.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    frame = ntuple.scan(binary_strings=True)
    assert frame.collect().rows() == [(1, b"a"), (2, b"\xff"), (3, b"c")]
    assert frame.filter(i == 3).collect().rows() == [(3, b"c")]
    assert ntuple.scan().filter(i == 3).collect().rows() == [(3, "c")]
    assert ntuple.scan().select("i").collect().height == 3
    with pytest.raises(tupelo.UnsupportedError, match="not UTF-8; read them with binary strings"):
        ntuple.scan().collect()
    with pytest.raises(tupelo.UnsupportedError, match="not UTF-8; read them with binary strings"):
        ntuple.scan().filter(i > 1).collect()


def test_damage_is_reported(ntuple: tupelo.Ntuple) -> None:
    content = bytearray(Path("events.root").read_bytes())
    for at in range(1000, len(content) // 2):
        content[at] ^= 0xFF
    Path("damaged.root").write_bytes(content)
    damaged = tupelo.open("damaged.root:Events")
    assert isinstance(damaged, tupelo.Ntuple)
    for engine in ("in-memory", "streaming"):
        with pytest.raises(tupelo.CorruptError, match=r"damaged\.root: ntuple 'Events': field"):
            damaged.scan().collect(engine=engine)


def test_a_query_can_be_pickled(ntuple: tupelo.Ntuple) -> None:
    request = _select.Request(["i"], entry_stop=100)
    source = pickle.loads(pickle.dumps(_Source(ColumnReader(ntuple, request, [request]))))
    assert pl.concat(source.frames(None, i > 90, None, None)).get_column("i").to_list() == list(range(91, 100))


def test_real_files() -> None:
    """All fields that polars supports equal Arrow, in frames and in queries."""
    for path in sorted(DATA.glob("*ntuple*.root")):
        with tupelo.open(path) as file:
            for ntuple in file.values():
                names = [name for name, kind in ntuple.typenames(recursive=False).items() if "variant" not in kind]
                names = [_select.escape_glob(name) for name in names]
                if not names:
                    continue
                frame = pl.from_arrow(ntuple.arrays(names, library="arrow"))
                assert isinstance(frame, pl.DataFrame)
                assert ntuple.arrays(names, library="pl").equals(frame)
                assert ntuple.scan(names).collect().equals(frame)
                index = pl.int_range(pl.len()) % 3 == 1
                some = ntuple.scan(names).select(pl.all().filter(index)).collect()
                assert some.equals(frame.filter(index))
