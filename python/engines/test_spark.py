"""Spark reads ntuples and trees: a real session on this machine."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tupelo
import tupelo.spark

if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    # The workers run the Python of this process.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    tupelo.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events")
    for run in 1, 2:
        with tupelo.recreate(path / f"run{run}.root", cluster_bytes=2000) as file:
            events = file.mkrntuple(
                "Events",
                {
                    "run": "unsigned int",
                    "x": "double",
                    "pt": "std::vector<float>",
                    "name": "std::string",
                    "big": "uint64",
                },
            )
            for start in range(0, 1000, 250):
                numbers = np.arange(start, start + 250)
                events.extend(
                    {
                        "run": np.full(250, run, dtype=np.uint32),
                        "x": np.where(numbers % 10 == 0, np.nan, numbers * 0.5),
                        "pt": [[float(one), one / 2][: one % 3] for one in numbers],
                        "name": [f"event {one}" for one in numbers],
                        "big": np.full(250, 2**64 - 1, dtype=np.uint64),
                    }
                )
                events.flush_cluster()
    return path


def load(spark: Any, path: object, **options: str) -> Any:
    reader = spark.read.format("tupelo")
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load(str(path))


def test_all_types_are_read(spark: Any, folder: Path) -> None:
    events = load(spark, f"{folder}/run*.root:Events", step_size="250")
    assert events.rdd.getNumPartitions() == 8
    assert [field.simpleString() for field in events.schema.fields] == [
        "run:bigint",
        "x:double",
        "pt:array<float>",
        "name:string",
        "big:decimal(20,0)",
    ]
    rows = events.orderBy("run", "name").collect()
    expected = tupelo.concatenate(f"{folder}/run*.root:Events").tolist()
    expected.sort(key=lambda one: (one["run"], one["name"]))
    assert repr([row.asDict() | {"big": int(row.big)} for row in rows]) == repr(expected)


def test_columns_are_chosen(spark: Any, folder: Path) -> None:
    chosen = load(spark, f"{folder}/run1.root:Events", columns="run,pt")
    assert chosen.columns == ["run", "pt"]
    assert spark.read.format("tupelo").schema("x double").load(f"{folder}/run1.root:Events").columns == ["x"]
    assert load(spark, f"{folder}/run*.root:Events").groupBy("run").count().orderBy("run").collect() == [
        (1, 1000),
        (2, 1000),
    ]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("run = 1", 1000),
        ("run = 1 and x < 10", 18),
        ("x > 490", 2 * (18 + 100)),
        ("x = 0.5", 2),
        ("isnan(x)", 200),
        ("run in (2, 3) and name = 'event 7'", 1),
        ("not run = 1", 1000),
        ("size(pt) = 2", 2 * 333),
        ("x <= 2 or x >= 499", 2 * (4 + 2 + 100)),
    ],
)
def test_conditions_have_the_answers_of_spark(spark: Any, folder: Path, condition: str, count: int) -> None:
    """Not a number is larger than all numbers there."""
    events = load(spark, f"{folder}/run*.root:Events")
    found = events.where(condition)
    assert found.count() == count
    assert found.count() == events.localCheckpoint().where(condition).count()


def test_conditions_are_evaluated_while_reading(folder: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThan, StringStartsWith

    source = tupelo.spark.Source({"path": f"{folder}/run1.root:Events"})
    reader = source.reader(source.schema())
    filters = [
        EqualTo(("run",), 1),
        LessThan(("x",), 10.0),
        GreaterThan(("x",), 1.0),
        In(("run",), (1, 2)),
        StringStartsWith(("name",), "event"),
        EqualTo(("x",), float("nan")),
    ]
    assert list(reader.pushFilters(filters)) == filters
    (first, *_) = reader.partitions()
    assert first.value.cut == "`run` == 1 and `x` < 10.0 and `run` in [1, 2]"
    rows = sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))
    assert rows == 18


def test_trees_and_errors(spark: Any, folder: Path) -> None:
    with tupelo.recreate(folder / "tree.root") as file:
        file.mktree("t", {"x": "int", "v": "std::vector<float>"}).extend({"x": [1, 2], "v": [[0.5], []]})
    rows = load(spark, folder / "tree.root:t").select("x", "v").collect()
    assert [(row.x, row.v) for row in rows] == [(1, [0.5]), (2, [])]
    for path, options, message in (
        ("nope.root", {}, "nope.root"),
        (f"{folder}/run1.root:Events", {"colums": "x"}, "unknown option 'colums'"),
        (f"{folder}/run1.root:Events", {"columns": "y"}, "no field named 'y'"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, path, **options)
