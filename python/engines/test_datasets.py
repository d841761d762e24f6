"""DataFusion and Ibis query datasets of ntuples: they pass columns and filters to the reader."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tupelo

ENTRIES = 40_000


@pytest.fixture
def events(tmp_path: Path) -> tupelo.Ntuple:
    """40 columns of numbers in 40 clusters; `run` increases."""
    path = tmp_path / "events.root"
    numbers = np.random.default_rng(3)
    columns: dict[str, Any] = {f"x{place}": numbers.normal(size=ENTRIES) for place in range(39)}
    with tupelo.recreate(path) as file:
        writer = file.mkrntuple("Events", {"run": "int32", **dict.fromkeys(columns, "float64")})
        for start in range(0, ENTRIES, 1000):
            part = slice(start, start + 1000)
            writer.extend({"run": np.full(1000, start // 1000), **{name: x[part] for name, x in columns.items()}})
            writer.flush_cluster()
    opened = tupelo.open(f"{path}:Events", metrics=True)
    assert opened.num_clusters == 40
    return opened


def by_datafusion(events: tupelo.Ntuple) -> Iterator[Callable[[], Any]]:
    import datafusion

    context = datafusion.SessionContext()
    context.register_dataset("events", events.dataset())
    for query in (
        "select avg(x1) as answer from events",
        "select sum(x1) as answer from events where x1 < 0.5 and x2 < -1",
        "select sum(x2) as answer from events where run = 7",
    ):
        yield lambda query=query: context.sql(query).to_pydict()["answer"][0]


def by_ibis(events: tupelo.Ntuple) -> Iterator[Callable[[], Any]]:
    import ibis

    connection = ibis.duckdb.connect()
    table = ibis.memtable(events.dataset())
    for expression in (
        table.x1.mean(),
        table.filter((table.x1 < 0.5) & (table.x2 < -1)).x1.sum(),
        table.filter(table.run == 7).x2.sum(),
    ):
        yield lambda expression=expression: connection.to_pyarrow(expression).as_py()


@pytest.mark.parametrize("engine", [by_datafusion, by_ibis])
def test_columns_and_filters_are_passed(events: tupelo.Ntuple, engine: Callable[..., Any]) -> None:
    values = events.arrays(["run", "x1", "x2"], library="np")
    expected = (
        (values["x1"].mean(), 1),
        (values["x1"][(values["x1"] < 0.5) & (values["x2"] < -1)].sum(), 2),
        (values["x2"][7000:8000].sum(), 1),
    )
    for ask, (answer, columns) in zip(engine(events), expected, strict=True):
        assert events.metrics is not None
        before = events.metrics.unpacked_bytes
        assert ask() == pytest.approx(answer)
        assert 0 < events.metrics.unpacked_bytes - before <= 1.1 * columns * ENTRIES * 8
