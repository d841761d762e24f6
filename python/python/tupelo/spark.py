"""Ntuples and trees in Apache Spark 4: ``spark.read.format("tupelo")``.

`register` makes the format known to a session. The executors need the packages tupelo and pyarrow, too:

>>> import tupelo.spark  # doctest: +SKIP
>>> tupelo.spark.register(spark)  # doctest: +SKIP
>>> events = spark.read.format("tupelo").option("columns", "run,MET_pt").load("run*.root:Events")  # doctest: +SKIP
>>> events.where("run = 380000").groupBy("run").avg("MET_pt").show()  # doctest: +SKIP

A task reads a `tupelo.Partition`. Spark does not tell sources written in Python which columns a query uses:
``columns``, or a schema given to the reader, chooses them. Comparisons of integers and booleans with constants, and
those of floating-point numbers that not a number cannot fulfil, are evaluated while reading, so that other columns are
read only for entries that match.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ._base import optional
from ._many.partition import Partition
from ._many.planning import partitions
from .errors import InvalidArgumentError, UnsupportedError
from .fields._select import escape_glob

datasource = optional.load("pyspark.sql.datasource", "tupelo.spark", "'pyspark>=4'")
_DataSource: Any = datasource.DataSource
_DataSourceReader: Any = datasource.DataSourceReader

__all__ = ["Source", "register"]

_OPTIONS = {"path", "columns", "step_size", "storage_options"}
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
"""Types of Spark, which has no unsigned integers."""
_ROWS = 65_536
"""Rows of a batch that is given to Spark."""


def register(spark: Any) -> None:
    """Makes ``spark.read.format("tupelo")`` known to a session ``spark``, a ``SparkSession``, and lets it pass
    conditions to sources that are written in Python.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(Source)


class Source(_DataSource):  # type: ignore[misc]
    """The source of ``spark.read.format("tupelo").load(path)``.

    ``path`` is that of `tupelo.open`, with wildcards. The options are ``columns``, a comma-separated list of fields or
    globs, ``step_size``, the size of a partition as in `tupelo.partitions`, and ``storage_options`` as a JSON document.
    Lists, structs and strings become Spark's, unsigned integers the next larger signed ones.
    """

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise InvalidArgumentError(f"unknown option '{unknown[0]}'; expected one of {', '.join(sorted(_OPTIONS))}")
        if "path" not in options:
            raise InvalidArgumentError("no path is given: call load('run*.root:Events')")

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "tupelo"

    def schema(self) -> Any:
        """The columns with their types in Spark, of the first file.

        Raises `tupelo.UnsupportedError` for types that Spark lacks.
        """
        types = optional.load("pyspark.sql.pandas.types", "tupelo.spark", "'pyspark>=4'")
        first = self.partitions(None)[:1]
        if not first:
            raise InvalidArgumentError(f"{self.options['path']}: no entries; give the reader a schema")
        empty = replace(first[0], entry_stop=first[0].entry_start).arrays("arrow")
        return types.from_arrow_schema(spark_schema(empty.schema))

    def reader(self, schema: Any) -> "Reader":
        """What reads the columns of ``schema``."""
        return Reader(self, schema)

    def partitions(self, columns: Sequence[str] | None) -> list[Partition]:
        """The ranges of entries; ``columns`` are names instead of those of the options.

        Raises the errors of `tupelo.partitions`.
        """
        given = self.options.get("columns")
        names = list(columns) if columns is not None else given.split(",") if given else None
        how: dict[str, Any] = {}
        if step := self.options.get("step_size"):
            how["step_size"] = int(step) if step.isdigit() else step
        if storage := self.options.get("storage_options"):
            how["storage_options"] = json.loads(storage)
        return partitions(self.options["path"], names=names, **how)


class Reader(_DataSourceReader):  # type: ignore[misc]
    """What reads the partitions of a `Source`."""

    def __init__(self, source: Source, schema: Any) -> None:
        self._source = source
        self._names = [field.name for field in schema.fields]
        types = optional.load("pyspark.sql.pandas.types", "tupelo.spark", "'pyspark>=4'")
        self._schema = types.to_arrow_schema(schema)
        self._cuts: list[str] = []

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Evaluates ``filters`` while reading, as far as the answers are those of Spark, which evaluates them all."""
        cuts = (_cut(one, self._schema) for one in filters)
        self._cuts = [cut for cut in cuts if cut is not None]
        return filters

    def partitions(self) -> list[Any]:
        """One for each `tupelo.Partition`."""
        cut = " and ".join(self._cuts) or None
        made = self._source.partitions([escape_glob(name) for name in self._names])
        return [datasource.InputPartition(replace(one, cut=cut)) for one in made]

    def read(self, partition: Any) -> Iterator[Any]:
        """The batches of a ``partition``.

        Raises the errors of `tupelo.Partition.arrays`.
        """
        table = partition.value.arrays("arrow").select(self._names).cast(self._schema)
        yield from table.to_batches(max_chunksize=_ROWS)


def spark_schema(schema: Any) -> Any:
    """A schema in the types of Spark.

    Raises `tupelo.UnsupportedError` for variants.
    """
    return pa.schema([field.with_type(_type(field.type, field.name)).remove_metadata() for field in schema])


def _type(kind: Any, name: str) -> Any:
    if kind in _SIGNED:
        return _SIGNED[kind]
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_type(item.type, name)).remove_metadata())
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_type(one.type, name)).remove_metadata() for one in kind])
    if pa.types.is_union(kind):
        raise UnsupportedError(f"field '{name}' holds variants, which Spark does not support; select other columns")
    return kind


def _cut(filter: Any, schema: Any) -> str | None:
    """A condition as a cut that keeps the entries that Spark keeps, or more; None if there is none."""
    signs = {"EqualTo": "==", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
    kind = type(filter).__name__
    column: tuple[str, ...] = getattr(filter, "attribute", ())
    if len(column) != 1 or column[0] not in schema.names or "`" in column[0]:
        return None
    type_ = schema.field(column[0]).type
    values: tuple[Any, ...] = filter.value if kind == "In" else (getattr(filter, "value", None),)
    is_number = pa.types.is_integer(type_) or pa.types.is_boolean(type_)
    # In Spark, not a number is larger than all numbers.
    is_number |= pa.types.is_floating(type_) and kind in ("EqualTo", "LessThan", "LessThanOrEqual", "In")
    if not is_number or not all(isinstance(value, int | float) and value == value for value in values):
        return None
    texts = [str(value) if isinstance(value, bool) else repr(value) for value in values]
    if any(text in ("inf", "-inf") for text in texts) or not texts:
        return None
    if kind == "In":
        return f"`{column[0]}` in [{', '.join(texts)}]"
    return f"`{column[0]}` {signs[kind]} {texts[0]}" if kind in signs else None
