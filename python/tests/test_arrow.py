"""Arrow's C stream and schema: other libraries read an ntuple directly, in batches."""

from typing import Any

import awkward as ak
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tupelo

ENTRIES = 200_000
"""More entries than one batch of a stream has."""


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    pt = ak.unflatten(np.linspace(0, 100, 2 * ENTRIES), np.arange(ENTRIES) % 2 * 4)
    return {
        "i": np.arange(ENTRIES, dtype="i8"),
        "x": np.linspace(-1, 1, ENTRIES),
        "name": ak.Array(np.array(["even", "odd"])[np.arange(ENTRIES) % 2]),
        "jets": ak.zip({"pt": pt, "n": ak.local_index(pt)}),
        "triple": np.arange(3 * ENTRIES, dtype="f4").reshape(ENTRIES, 3),
        "maybe": ak.mask(np.arange(ENTRIES), np.arange(ENTRIES) % 4 != 0),
    }


@pytest.fixture(scope="module")
def path(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("arrow") / "events.root"
    with tupelo.recreate(path, cluster_bytes=200_000) as file:
        file["Events"] = data
    return str(path)


@pytest.fixture
def nt(path: str) -> tupelo.Ntuple:
    opened = tupelo.open(f"{path}:Events", metrics=True)
    assert isinstance(opened, tupelo.Ntuple)
    assert opened.num_clusters > 2
    return opened


def query(text: str, nt: Any) -> list[Any]:
    """DuckDB finds an ntuple, or arrays read from it, by variable name."""
    return duckdb.sql(text).fetchall()


def test_duckdb_by_name(nt: tupelo.Ntuple, data: dict[str, Any]) -> None:
    assert query("select count(*), sum(i), min(x), max(x) from nt", nt) == [
        (ENTRIES, ENTRIES * (ENTRIES - 1) // 2, -1.0, 1.0)
    ]
    assert query("select i from nt where x > 0.9 and name = 'odd' order by i limit 2", nt) == [
        (int(i),) for i in data["i"][(data["x"] > 0.9) & (data["i"] % 2 == 1)][:2]
    ]
    groups = query("select name, count(*), count(maybe) from nt group by name order by name", nt)
    assert groups == [("even", ENTRIES // 2, ENTRIES // 4), ("odd", ENTRIES // 2, ENTRIES // 2)]
    assert query("select i from nt limit 0", nt) == []


def test_duckdb_reads_nested_fields(nt: tupelo.Ntuple, data: dict[str, Any]) -> None:
    assert query("select jets, triple, maybe from nt where i = 3", nt) == [
        (data["jets"][3].tolist(), (9.0, 10.0, 11.0), 3)
    ]
    assert query("select sum(len(jets)), max(list_sum([j.pt for j in jets])) from nt", nt) == [
        (2 * ENTRIES, pytest.approx(float(ak.max(ak.sum(data["jets"].pt, axis=1)))))
    ]
    assert query("select avg(j.pt) from (select unnest(jets) as j from nt where i < 1000)", nt) == [
        (pytest.approx(float(ak.mean(data["jets"].pt[:1000]))),)
    ]


def test_duckdb_is_said_to_read_all_of_many_columns() -> None:
    with tupelo.recreate("many.root") as file:
        for name, number in ("few", 15), ("many", 16):
            file[name] = {f"x{k}": np.arange(3) + k for k in range(number)}
    with tupelo.open("many.root") as file:
        few, many = file["few"], file["many"]
        assert duckdb.sql("select sum(x3) from few").fetchall() == [(12,)]
        relation = duckdb.sql("select sum(x3) from many")
        with pytest.warns(tupelo.TupeloWarning, match=r"ntuple 'many': DuckDB reads all 16 columns of a variable"):
            assert relation.fetchall() == [(12,)]
        # All columns are wanted, or only those of the query are read.
        dataset, selected = many.dataset(), many.stream([f"x{k}" for k in range(16)])
        assert pa.table(many).num_columns == 16
        for name in "dataset", "selected":
            assert duckdb.sql(f"select sum(x3) from {name}").fetchall() == [(12,)]
        assert tupelo.sql("select sum(x3) from many", many=many).fetchall() == [(12,)]
        del few, dataset, selected


def test_duckdb_reads_a_stream_repeatedly(nt: tupelo.Ntuple) -> None:
    assert query("select count(*) from nt a join nt b on a.i = b.i + 1 where b.name = 'odd'", nt) == [
        (ENTRIES // 2 - 1,)
    ]
    relation = duckdb.sql("select i from nt where i % 1000 = 0")
    assert len(relation.fetchall()) == ENTRIES // 1000
    assert relation.filter("i > 5000").aggregate("count(*)").fetchall() == [(ENTRIES // 1000 - 6,)]


def test_duckdb_reads_the_selection_of_a_stream(nt: tupelo.Ntuple, data: dict[str, Any]) -> None:
    """DuckDB reads all columns of an ntuple, whatever the query needs."""
    assert nt.metrics is not None
    events = nt.stream(["x * 2", "i"], "name == 'odd' and i < 1000")
    assert events.schema.names == ["x * 2", "i"]
    assert pa.schema(events).equals(events.schema)
    assert nt.metrics.pages == 0
    mine = (data["i"] % 2 == 1) & (data["i"] < 1000)
    for _ in range(2):
        assert query("select sum(i), count(*) from nt", events) == [(int(data["i"][mine].sum()), 500)]
    assert pa.table(events).equals(nt.arrays(["x * 2", "i"], "name == 'odd' and i < 1000", library="arrow"))
    alone = tupelo.open(f"{nt.file_path}:Events", metrics=True)
    assert isinstance(alone, tupelo.Ntuple)
    assert alone.metrics is not None
    assert query("select sum(i) from nt", alone.stream(filter_name="i")) == [(ENTRIES * (ENTRIES - 1) // 2,)]
    assert alone.metrics.unpacked_bytes == 8 * ENTRIES
    assert repr(nt.stream("jets.pt", entry_start=-5)) == f"<tupelo.Stream of jets; entries {ENTRIES - 5} to {ENTRIES}>"
    with pytest.raises(TypeError, match="unexpected keyword"):
        nt.stream("i", nonsense=1)


def test_unsupported_fields_can_be_excluded(nt: tupelo.Ntuple) -> None:
    """DuckDB and polars do not support variants; they could not read an ntuple with one at all."""
    with tupelo.recreate("variant.root") as file:
        file.mkrntuple("Events", {"x": "int", "v": "std::variant<int, std::string>"}).extend(
            {"x": [1, 2, 3], "v": ak.Array([1, "two", 3])}
        )
    events = tupelo.open("variant.root:Events")
    assert isinstance(events, tupelo.Ntuple)
    chosen = events.stream(filter_typename=lambda name: "variant" not in name)
    assert query("select sum(x) from nt", chosen) == [(6,)]
    assert pl.DataFrame(chosen)["x"].sum() == 6


def test_stream_errors_are_raised_before_reading(nt: tupelo.Ntuple) -> None:
    with pytest.raises(tupelo.NotFoundError, match="no field named 'nme'"):
        nt.stream("nme")
    with pytest.raises(tupelo.InvalidArgumentError, match="expected a value"):
        nt.stream("i", "x >")


def test_duckdb_accepts_arrow_results(nt: tupelo.Ntuple) -> None:
    for library in ("arrow", "pl", "pd"):
        result = nt.arrays(["i", "x"], library=library, entry_stop=10)
        assert query("select sum(i), count(x) from nt", result) == [(45, 10)]


def test_polars(nt: tupelo.Ntuple) -> None:
    frame = nt.arrays(library="pl")
    assert pl.DataFrame(nt).equals(frame)
    series = pl.from_arrow(nt)
    assert isinstance(series, pl.Series)
    assert series.struct.unnest().equals(frame)


def test_pandas(nt: tupelo.Ntuple) -> None:
    frame = pd.DataFrame.from_arrow(nt)
    assert frame.shape == (ENTRIES, 6)
    assert frame["i"].sum() == ENTRIES * (ENTRIES - 1) // 2
    assert frame["maybe"].isna().sum() == ENTRIES // 4


def test_pyarrow(nt: tupelo.Ntuple) -> None:
    whole = nt.arrays(library="arrow")
    reader = pa.RecordBatchReader.from_stream(nt)
    assert reader.schema.equals(nt.arrow_schema, check_metadata=True)
    assert pa.schema(nt).equals(nt.arrow_schema, check_metadata=True)
    assert reader.read_all().equals(whole)
    assert pa.table(nt).equals(whole)


def test_streams_are_read_in_batches() -> None:
    """32 MiB at once, and as many ahead."""
    count = 15_000_000
    with tupelo.recreate("large.root") as file:
        file["Events"] = {"x": np.zeros(count)}
    large = tupelo.open("large.root:Events", metrics=True)
    assert isinstance(large, tupelo.Ntuple)
    assert large.metrics is not None
    reader = pa.RecordBatchReader.from_stream(large)
    assert large.metrics.pages == 0
    first = reader.read_next_batch()
    assert 4 << 20 < first.nbytes < 16 << 20
    assert 0 < large.metrics.unpacked_bytes < 8 * count * 0.7
    assert first.num_rows + sum(batch.num_rows for batch in reader) == count
    assert large.metrics.unpacked_bytes >= 8 * count


def test_two_streams_of_one_ntuple_are_independent(nt: tupelo.Ntuple) -> None:
    one, two = pa.RecordBatchReader.from_stream(nt), pa.RecordBatchReader.from_stream(nt)
    batches = list(zip(one, two, strict=True))
    assert len(batches) > 1
    assert all(a.equals(b) for a, b in batches)


def test_streams_of_closed_ntuples_raise(path: str) -> None:
    ntuple = tupelo.open(f"{path}:Events")
    ntuple.close()
    with pytest.raises(tupelo.InvalidArgumentError, match="is closed"):
        pa.table(ntuple)


def test_errors_pass_through_streams(path: str) -> None:
    with open(path, "rb") as file:
        content = bytearray(file.read())
    for at in range(len(content) // 3, len(content) // 3 + 100_000):
        content[at] ^= 0xFF
    with open("damaged.root", "wb") as file:
        file.write(content)
    damaged = tupelo.open("damaged.root:Events")
    with pytest.raises(Exception, match=r"damaged\.root: ntuple 'Events'"):
        pa.table(damaged)
    with pytest.raises(duckdb.Error, match=r"damaged\.root: ntuple 'Events'"):
        duckdb.sql("select sum(x), sum(i), sum(len(jets)) from damaged").fetchall()
