"""Ntuples, trees and chains as datasets of PyArrow, compared with the same entries in memory."""

import os
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import awkward as ak
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from http_server import Server

import tupelo
from tupelo._queries import columns as reading

ENTRIES = 4000
DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")


def data() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    pt = ak.unflatten(rng.exponential(30, 2 * ENTRIES), np.full(ENTRIES, 2))
    return {
        "i": np.arange(ENTRIES, dtype="i4"),
        "x": np.where(rng.integers(0, 9, ENTRIES) == 0, np.nan, rng.normal(0, 1, ENTRIES)),
        "flag": np.arange(ENTRIES) % 3 == 0,
        "name": [f"entry {i % 100}" for i in range(ENTRIES)],
        "matrix": np.arange(ENTRIES * 6, dtype="f4").reshape(ENTRIES, 2, 3),
        "jets": ak.zip({"pt": pt, "hits": ak.local_index(pt)}),
        "maybe": ak.Array([None if i % 5 == 0 else i % 17 for i in range(ENTRIES)]),
        "small": (np.arange(ENTRIES) % 200).astype("i1"),
        "large": np.arange(ENTRIES, dtype="u8") * np.uint64(2**50) + np.uint64(2**63),
        "met": ak.zip({"pt": rng.normal(0, 1, ENTRIES), "phi": rng.normal(0, 1, ENTRIES).astype("f4")}),
    }


@pytest.fixture(scope="module")
def events_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.root"
    with tupelo.recreate(path, cluster_bytes=20_000, page_bytes=512) as file:
        file["Events"] = data()
    return path


@pytest.fixture
def ntuple(events_file: Path) -> tupelo.Ntuple:
    shutil.copy(events_file, "events.root")
    opened = tupelo.open("events.root:Events", metrics=True)
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 3
    return opened


def chain() -> Any:
    values = tupelo.open("events.root:Events").arrays()
    for name, part in ("a.root", values[:1500]), ("b.root", values[1500:1501]), ("c.root", values[1501:]):
        with tupelo.recreate(name, page_bytes=512) as file:
            file["Events"] = part
    return tupelo.open(["a.root:Events", "b.root:Events", "c.root:Events"])


def whole(ntuple: Any, *fields: str) -> pa.Table:
    """The same entries in memory."""
    return ntuple.arrays(list(fields) or None, library="arrow")


def queried(events: Any, query: str) -> Any:
    """The rows of a query of DuckDB, which finds the variable ``events``."""
    return duckdb.sql(query).fetchall()


def unpacked(ntuple: tupelo.Ntuple, read: Callable[[], Any]) -> int:
    """Bytes of the pages that a call decodes."""
    assert ntuple.metrics is not None
    before = ntuple.metrics.unpacked_bytes
    read()
    return ntuple.metrics.unpacked_bytes - before


x, i, maybe = pc.field("x"), pc.field("i"), pc.field("maybe")

FILTERS: dict[str, Any] = {
    "none": None,
    "few": i.isin([5, 1234, 3999]),
    "most": i != 7,
    "no entry": i < 0,
    "always": pc.scalar(True),
    "never": pc.scalar(False),
    # NaN is not equal to itself.
    "nan": x != x,
    "not nan": x == x,
    "greater than nan": ~(x <= 0),
    "missing": maybe.is_null(),
    "missing is not kept": ~(maybe > 3),
    "three truths": (maybe > 3) | pc.field("flag"),
    "truths": pc.field("flag"),
    "texts": pc.ends_with(pc.field("name"), "7") & ~pc.field("flag"),
    "unsigned": pc.field("large") > pa.scalar(2**63 + 3000 * 2**50, pa.uint64()),
    "lengths": pc.list_value_length(pc.field("jets")) == 2,
    "member": pc.field("met", "pt") > 1.5,
    "items": pc.list_element(pc.field("matrix"), 0).is_valid() & (i < 9),
    "two columns": x > i / ENTRIES,
    "by number": pc.field(0) > 3990,
}
PROJECTIONS: dict[str, Any] = {
    "all": None,
    "one": ["i"],
    "other order": ["name", "i", "jets"],
    "nested": ["jets", "met", "matrix"],
    "nothing": [],
    "computed": {"twice": x * 2, "i": i, "pt": pc.field("met", "pt")},
    "constant": {"one": pc.scalar(1)},
}


@pytest.mark.parametrize("columns", PROJECTIONS)
@pytest.mark.parametrize("name", FILTERS)
def test_scans_equal_those_of_arrow(ntuple: tupelo.Ntuple, name: str, columns: str) -> None:
    how = {"columns": PROJECTIONS[columns], "filter": FILTERS[name]}
    expected = ds.dataset(whole(ntuple)).to_table(**how)
    dataset = ntuple.dataset()
    found = dataset.to_table(**how)
    assert found.schema.equals(expected.schema)
    assert found.num_rows == expected.num_rows
    # NaN is written as one.
    assert repr(found.to_pydict()) == repr(expected.to_pydict())
    assert dataset.count_rows(filter=how["filter"]) == expected.num_rows
    pieces = list(dataset.to_batches(**how, batch_size=7))
    assert all(piece.num_rows <= 7 for piece in pieces)
    assert sum(piece.num_rows for piece in pieces) == expected.num_rows
    assert dataset.scanner(**how).to_reader().schema.equals(expected.schema)


@pytest.mark.parametrize("name", FILTERS)
def test_chains_and_trees(ntuple: tupelo.Ntuple, name: str) -> None:
    fields = ["i", "x", "flag", "name", "maybe", "large", "jets", "met", "matrix"]
    several = chain()
    columns = ["name", "x", "i"]
    for source in several, ntuple:
        expected = ds.dataset(whole(source, *fields)).to_table(filter=FILTERS[name], columns=columns)
        found = source.dataset(fields).to_table(filter=FILTERS[name], columns=columns)
        assert repr(found.to_pydict()) == repr(expected.to_pydict())
    fragments = list(several.dataset(fields).get_fragments(filter=FILTERS[name]))
    assert len(fragments) == 3
    parts = [fragment.to_table(several.dataset(fields).schema, columns, FILTERS[name]) for fragment in fragments]
    assert repr(pa.concat_tables(parts).to_pydict()) == repr(expected.to_pydict())


def test_a_tree() -> None:
    with tupelo.recreate("tree.root") as file:
        tree = file.mktree("Events", {"i": "int", "pt": "std::vector<float>"})
        tree.extend({"i": range(1000), "pt": [[k] * (k % 3) for k in range(1000)]})
    tree = tupelo.open("tree.root:Events")
    assert isinstance(tree, tupelo.Tree)
    events = tree.dataset()
    assert duckdb.sql("select sum(i), sum(len(pt)) from events where i < 500").fetchall() == [(124750, 499)]
    assert events.to_table(["i", "pt"], i == 4).to_pydict() == {"i": [4], "pt": [[4.0]]}


QUERIES = [
    "select count(*) from events",
    "select 1 as one from events limit 3",
    "select avg(x), count(x), max(i) from events",
    "select sum(small), sum(large::hugeint), bool_or(flag) from events",
    "from events limit 5",
    "from events where i % 1000 = 7",
    "select i, name from events where x > 1 order by i limit 10",
    "select i from events where x = 'nan'::double",
    "select i, x from events where x < 0 and i between 10 and 50",
    "select i, x from events where not (x < 0) and i between 10 and 50",
    "select i from events where maybe is null and i < 100",
    "select maybe, count(*) as n from events where maybe <> 3 group by all order by all",
    "select maybe, count(*) as n from events where maybe in (3, 4, null) group by all order by all",
    "select name, sum(i) as s from events where name in ('entry 7', 'entry 9') group by name order by name",
    "select i from events where name like 'entry 1%' and flag order by i",
    "select i from events where large > 12601071757382647808 order by i",
    "select i, jets[1].pt as pt from events where jets[1].pt > 100",
    "select met.pt from events where met.phi < -2 order by 1",
    "select i, jet.hits from (select i, unnest(jets) as jet from events where i < 5)",
    "select matrix[1][3] as m from events where i = 77",
    "select max(i) from events where i in (select i from events where x < -2)",
    "select count(*) from events a join events b on a.i = b.i + 1 where a.flag",
    "select a.i, b.x from events a left join events b on a.i = b.i * 2 where a.i < 10 order by a.i",
    "select i from events where i < 0",
    "select quantile_cont(x, 0.5) from events where x = x and i > 3000 and x < 1",
    "select i, row_number() over (order by x desc, i) as r from events where i < 20 order by r",
    "select * exclude (jets, matrix) from events where small = -3 order by i limit 2",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_duckdb(ntuple: tupelo.Ntuple, query: str) -> None:
    expected = queried(whole(ntuple), query)
    for source in ntuple, chain():
        dataset = source.dataset()
        assert repr(queried(dataset, query)) == repr(expected)
        assert repr(queried(dataset, query)) == repr(expected)
    # An ntuple is a stream, which is read completely.
    assert repr(queried(ntuple, query)) == repr(expected)


POLARS: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "columns": lambda frame: frame.select("name", "i"),
    "few": lambda frame: frame.filter(pl.col("i").is_in([5, 1234])),
    "texts": lambda frame: frame.filter(pl.col("name") == "entry 7").select("i", "jets"),
    "missing": lambda frame: frame.filter(pl.col("maybe").is_null()).select("i"),
    "count": lambda frame: frame.select(pl.len()),
    "head": lambda frame: frame.filter(pl.col("i") > 10).head(3),
    "groups": lambda frame: frame.filter(pl.col("i") < 100).group_by("maybe").agg(pl.col("i").sum()).sort("maybe"),
}


@pytest.mark.parametrize("query", POLARS)
def test_queries_of_polars(ntuple: tupelo.Ntuple, query: str) -> None:
    expected = POLARS[query](pl.from_arrow(whole(ntuple)).lazy()).collect()  # type: ignore[union-attr]
    assert POLARS[query](pl.scan_pyarrow_dataset(ntuple.dataset())).collect().equals(expected)


def test_only_necessary_columns_are_read(ntuple: tupelo.Ntuple) -> None:
    events = ntuple.dataset()
    column, page = 4 * ENTRIES, 512
    assert unpacked(ntuple, ntuple.dataset) == 0
    assert unpacked(ntuple, lambda: events.filter(i > 7).schema) == 0
    assert unpacked(ntuple, lambda: events.to_table(columns=["i"])) == column
    assert unpacked(ntuple, lambda: events.to_table(columns={"twice": i * 2})) == column
    assert unpacked(ntuple, events.count_rows) == 0
    assert unpacked(ntuple, lambda: events.count_rows(filter=i > 7)) == column
    assert unpacked(ntuple, lambda: events.head(10, columns=["i"])) <= page
    assert unpacked(ntuple, lambda: events.take([0, 1], columns=["i"])) <= page
    # Columns of the filter are not read again.
    assert unpacked(ntuple, lambda: events.to_table(columns=["i"], filter=i >= 0)) == column
    everything = unpacked(ntuple, events.to_table)
    assert column < unpacked(ntuple, lambda: events.to_table(filter=i == 2000)) < column + 10_000 < everything / 4
    assert unpacked(ntuple, lambda: events.to_table(filter=i < 0)) == column


def test_only_necessary_columns_of_sql_are_read(ntuple: tupelo.Ntuple) -> None:
    connection = duckdb.connect()
    connection.register("events", ntuple.dataset())

    def cost(query: str) -> int:
        return unpacked(ntuple, lambda: connection.sql(query).fetchall())

    column, page = 4 * ENTRIES, 512
    assert cost("select max(i) from events") == column
    assert cost("select max(i) from events where i > 100") == column
    assert cost("select avg(x) from events") == 8 * ENTRIES
    # DuckDB asks for one column.
    assert cost("select count(*) from events") == column
    assert cost("select x from events where i = 2000") <= column + page
    assert cost("select * from events where i = 2000") < column + 10_000
    assert cost("explain select x from events") == 0


def test_many_matching_entries_are_read_in_parts(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ds.dataset(whole(ntuple)).to_table(filter=i != 7)
    monkeypatch.setattr(reading, "_FIRST_ROWS", 3)
    batches = list(ntuple.dataset().to_batches(filter=i != 7))
    assert [batch.num_rows for batch in batches] == [3, ENTRIES - 4]
    assert repr(pa.Table.from_batches(batches).to_pydict()) == repr(expected.to_pydict())


def test_batches_are_read_on_demand(ntuple: tupelo.Ntuple, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    batches = reading.ColumnReader.batches

    def spy(self: Any, *how: Any) -> Any:
        for batch in batches(self, *how, batch_entries=100):
            asked.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(reading.ColumnReader, "batches", spy)
    reader = ntuple.dataset().scanner(columns=["i"]).to_reader()
    assert asked == []
    reader.read_next_batch()
    assert asked == [100]


def test_columns_cuts_and_ranges(ntuple: tupelo.Ntuple) -> None:
    table = whole(ntuple)
    assert ntuple.dataset(["x", "i"]).schema.names == ["x", "i"]
    last = ntuple.dataset("*", entry_start=-5).to_table()
    assert repr(last.to_pydict()) == repr(table.slice(ENTRIES - 5).to_pydict())
    jets = ntuple.dataset("jets.pt")
    assert jets.schema.field("jets").type.value_field.type.names == ["pt"]
    assert jets.head(1).to_pylist() == ntuple.arrays("jets.pt", entry_stop=1).tolist()
    events = ntuple.dataset(["i", "y", "sum(jets.pt)"], "i % 2 == 1", aliases={"y": "i * 2"}, entry_stop=100)
    assert events.count_rows() == 50
    assert unpacked(ntuple, lambda: events.to_table(columns=["y"])) <= 512
    assert events.to_table(columns=["y"], filter=i < 6).to_pydict() == {"y": [2, 6, 10]}
    found = events.to_table(columns=["sum(jets.pt)", "i"], filter=(pc.field("y") > 20) & (i < 14)).to_pydict()
    assert found == ntuple.arrays(["sum(jets.pt)", "i"], "i == 11 or i == 13", library="arrow").to_pydict()
    assert events.head(2, columns=["i"], filter=i > 3).to_pydict() == {"i": [5, 7]}
    assert events.take([0, -1], columns=["i"]).to_pydict() == {"i": [1, 99]}
    assert duckdb.sql("select sum(y) from events where i < 6").fetchall() == [(18,)]
    assert ntuple.dataset(filter_typename="*int*").schema.names == ["i", "jets", "maybe", "small", "large"]
    with pytest.raises(tupelo.NotFoundError, match="no field named 'zz'"):
        ntuple.dataset("zz")


def test_single_rows(ntuple: tupelo.Ntuple) -> None:
    table, several = whole(ntuple), chain()
    for source in ntuple, several:
        events = source.dataset()
        some = events.take([3999, 7, 7, 0, -1])
        assert repr(some.to_pydict()) == repr(table.take([3999, 7, 7, 0, 3999]).to_pydict())
        assert events.take(pa.array([1500]), columns=["i"]).to_pydict() == {"i": [1500]}
        assert events.take([1, 0], filter=i > 2000).to_pydict()["i"] == [2002, 2001]
        assert repr(events.head(3).to_pydict()) == repr(table.slice(0, 3).to_pydict())
        assert events.head(1600, columns=["i"]).num_rows == 1600
        assert events.head(10**9, columns=[]).num_rows == ENTRIES
        with pytest.raises(tupelo.InvalidArgumentError, match="entry 4000 is out of range"):
            events.take([ENTRIES])


def test_filters_add_up(ntuple: tupelo.Ntuple) -> None:
    events = ntuple.dataset().filter(i > 10).filter(i < 20)
    assert events.count_rows() == 9
    assert events.to_table(columns=["i"], filter=i < 13).to_pydict() == {"i": [11, 12]}
    assert duckdb.sql("select count(*), min(i) from events where i <> 12").fetchall() == [(8, 11)]
    again = pickle.loads(pickle.dumps(events))
    assert again.to_table(columns=["i"]).equals(events.to_table(columns=["i"]))
    assert [fragment.count_rows() for fragment in again.get_fragments()] == [9]


def test_invalid_requests(ntuple: tupelo.Ntuple) -> None:
    events = ntuple.dataset()
    with pytest.raises(tupelo.NotFoundError, match=r"events\.root: 'Events': the dataset has no column 'zz'; it has"):
        events.to_table(columns=["zz"])
    for wrong in "i", 7, [7]:
        with pytest.raises(tupelo.InvalidArgumentError, match="expected columns as a list of names"):
            events.to_table(columns=wrong)
    with pytest.raises(tupelo.InvalidArgumentError, match="column 'i' is named twice"):
        events.to_table(columns=["i", "i"])
    for call in (events.filter, lambda one: events.to_table(filter=one), lambda one: events.get_fragments(one)):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"expected filter as a pyarrow\.compute\.Expression"):
            call("i > 1")
        with pytest.raises(tupelo.InvalidArgumentError, match=r"'\(zz > 1\)' cannot be evaluated: No match for"):
            call(pc.field("zz") > 1)
        with pytest.raises(tupelo.InvalidArgumentError, match="cannot be a filter: it is of type int32"):
            call(i)
    with pytest.raises(tupelo.InvalidArgumentError, match="expected column 'a' as a"):
        events.to_table(columns={"a": "i"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colums'"):
        events.to_table(colums=["i"])
    for rows in -1, "3":
        with pytest.raises(tupelo.InvalidArgumentError, match="expected num_rows as a number of rows"):
            events.head(rows)
    with pytest.raises(tupelo.UnsupportedError, match="cannot be replaced"):
        next(events.get_fragments()).to_table(pa.schema({"i": pa.int64()}))
    events.to_table(columns=["i"], use_threads=False, batch_readahead=1, memory_pool=None)
    ntuple.close()
    with pytest.raises(tupelo.InvalidArgumentError, match="is closed"):
        events.to_table()


def test_every_method_of_arrow_is_replaced(ntuple: tupelo.Ntuple) -> None:
    """What is inherited would give the rows of a dataset that C++ knows, which has none."""
    for kind in ds.Dataset, ds.UnionDataset:
        assert {name for name in dir(kind) if not name.startswith("_")} <= vars(tupelo.Dataset).keys()
    assert {name for name in dir(ds.Fragment) if not name.startswith("_")} <= set(dir(ntuple.dataset().children[0]))
    scanner = {name for name in dir(ds.Scanner) if not name.startswith(("_", "from_"))} - {"scan_batches"}
    assert scanner <= set(dir(ntuple.dataset().scanner()))


def test_every_member_can_be_used(ntuple: tupelo.Ntuple) -> None:
    events = ntuple.dataset(["i", "x"])
    arguments: dict[str, Any] = {
        "filter": [i > 1],
        "head": [2],
        "join": [ds.dataset(pa.table({"i": pa.array([1], pa.int32()), "k": [2]})), "i"],
        "join_asof": [ds.dataset(pa.table({"i": pa.array([1], pa.int32()), "b": [2]})), "i", [], 0],
        "replace_schema": [events.schema],
        "sort_by": [[("i", "descending")]],
        "take": [[1]],
    }
    for name in dir(events):
        if name.startswith("__") or name in ("_scan_options", "_scanner_options"):
            continue
        try:
            value = getattr(events, name)
            if callable(value):
                value(*arguments.get(name, [None] if name == "_get_fragments" else []))
        except tupelo.UnsupportedError:
            assert name == "replace_schema"
    assert events.sort_by("x").head(1).num_rows == 1
    assert events.sort_by([("i", "descending")]).head(1).to_pydict()["i"] == [3999]
    joined = events.join(ds.dataset(pa.table({"i": pa.array([1, 2], pa.int32()), "k": [2, 3]})), "i", join_type="inner")
    assert sorted(joined.to_table().to_pydict()["k"]) == [2, 3]
    assert events.partition_expression.equals(pc.scalar(True))


@pytest.mark.parametrize(
    "use",
    [
        lambda events: ds.Scanner.from_dataset(events).to_table(),
        lambda events: ds.UnionDataset(events.schema, [events]).to_table(),
        lambda events: ds.dataset(pa.table({"i": pa.array([1], pa.int32())})).join(events, "i"),
        lambda events: next(iter(events._get_fragments(None))).to_table(),
    ],
)
def test_functions_of_cplusplus_raise_an_error(ntuple: tupelo.Ntuple, use: Callable[[Any], Any]) -> None:
    with pytest.raises(OSError, match=r"is read by its own methods only: give the to_table\(\) of it"):
        use(ntuple.dataset(["i", "x"]))
    with pytest.raises(tupelo.UnsupportedError):
        ds.dataset([ntuple.dataset()])


def test_datasets_are_written(ntuple: tupelo.Ntuple) -> None:
    ds.write_dataset(ntuple.dataset(["i", "maybe", "name"]), "out", format="parquet", partitioning=["maybe"])
    assert ds.dataset("out", format="parquet").count_rows() == ENTRIES
    assert pa.table(ntuple.dataset(["x"])).num_rows == ENTRIES


def test_strings_that_are_not_utf8() -> None:
    with tupelo.recreate("f.root") as file, file.mkrntuple("Events", {"i": "int", "s": "std::string"}) as out:
        out.extend({"i": [1, 2, 3], "s": [b"a", b"\xff", b"c"]})
    ntuple = tupelo.open("f.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.dataset(binary_strings=True).to_table(filter=i > 1).to_pydict() == {"i": [2, 3], "s": [b"\xff", b"c"]}
    assert ntuple.dataset().to_table(filter=i > 2).to_pydict() == {"i": [3], "s": ["c"]}
    for how in {}, {"filter": i > 1}:
        with pytest.raises(tupelo.UnsupportedError, match="not UTF-8; read them with binary strings"):
            ntuple.dataset().to_table(**how)


def test_names_with_wildcards_in_them() -> None:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"a[0]": [1, 2, 3], "a0": [4, 5, 6], "{b}": [7, 8, 9]}
    found = queried(tupelo.open("f.root:Events").dataset(), 'select "{b}", a0 from events where "a[0]" > 1')
    assert found == [(8, 5), (9, 6)]


def test_no_entries_and_no_fields() -> None:
    with tupelo.recreate("f.root") as file:
        file.mkrntuple("Empty", {"i": "int", "v": "std::vector<float>"}).close()
    empty = tupelo.open("f.root:Empty").dataset()
    assert duckdb.sql("select count(*), sum(i) from empty where i > 3").fetchall() == [(0, None)]
    assert empty.to_table(filter=i > 1).num_rows == empty.count_rows() == empty.head(3).num_rows == 0
    assert list(empty.to_batches()) == []
    assert empty.take([]).num_rows == 0


def test_damage_is_reported(ntuple: tupelo.Ntuple) -> None:
    content = bytearray(Path("events.root").read_bytes())
    for at in range(1000, len(content) // 2):
        content[at] ^= 0xFF
    Path("damaged.root").write_bytes(content)
    damaged = tupelo.open("damaged.root:Events").dataset()
    for how in {}, {"filter": i > 1}:
        with pytest.raises(tupelo.CorruptError, match=r"damaged\.root: ntuple 'Events': field"):
            damaged.to_table(**how)
    with pytest.raises(duckdb.Error, match=r"damaged\.root: ntuple 'Events': field"):
        duckdb.sql("select sum(x), sum(i) from damaged").fetchall()


def test_several_threads(ntuple: tupelo.Ntuple) -> None:
    events = ntuple.dataset()
    expected = duckdb.sql("select sum(i), count(*) from events where i % 7 = 3 and small < 50").fetchall()
    found: list[Any] = []

    def query() -> None:
        connection = duckdb.connect()
        connection.register("events", events)
        query = "select sum(i), count(*) from events where i % 7 = 3 and small < 50"
        found.extend(connection.sql(query).fetchall() for _ in range(5))

    threads = [threading.Thread(target=query) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 30


@pytest.fixture
def files(tmp_path: Path) -> Path:
    with tupelo.recreate(tmp_path / "wide.root", cluster_bytes=500_000, compression="none") as file:
        file["Events"] = {f"c{k}": np.random.default_rng(k).normal(size=50_000) for k in range(20)}
    return tmp_path


def test_remote(server: Server) -> None:
    ntuple = tupelo.open(f"{server.url}/wide.root:Events", metrics=True)
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.metrics is not None
    before = ntuple.metrics
    local = tupelo.open("wide.root:Events").arrays("c3", library="np")["c3"]
    found = queried(ntuple.dataset(), "select max(c3), count(*) from events where c3 < 0.5")
    assert found == [(local[local < 0.5].max(), (local < 0.5).sum())]
    # One of twenty columns, and the gaps that are not worth a request.
    size = Path("wide.root").stat().st_size
    assert ntuple.metrics.page_bytes < size / 19
    assert ntuple.metrics.read_bytes - before.read_bytes < size / 4


def test_real_files() -> None:
    """All fields equal those of arrays, where they are read as columns and where they are read for matching entries."""
    for path in sorted(DATA.glob("*.root")):
        try:
            tables = list(tupelo.open(path).values())
        except tupelo.Error:
            continue
        for table in tables:
            names = table.keys(recursive=False) if isinstance(table, tupelo.Ntuple) else []
            if not names:
                continue
            events = table.dataset(entry_stop=500, binary_strings=True)
            expected = table.stream(entry_stop=500, binary_strings=True)
            expected = pa.RecordBatchReader.from_stream(expected).read_all()
            found = events.to_table()
            assert found.schema.equals(expected.schema)
            assert repr(found.to_pydict()) == repr(expected.to_pydict()), path
            # All other columns are read for single entries.
            found = events.to_table(filter=pc.field(events.schema.names[0]).is_valid())
            assert repr(found.to_pydict()) == repr(expected.to_pydict()), path
