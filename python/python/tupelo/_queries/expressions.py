"""Expressions of Arrow over columns: which columns they need, and their values."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from .._base.messages import short_repr
from ..errors import InvalidArgumentError
from .entry_batches import POSITION


def check_expression(expression: object, what: str) -> None:
    """Raises `InvalidArgumentError` for other values than expressions."""
    if not isinstance(expression, pc.Expression):
        raise InvalidArgumentError(
            f"expected {what} as a pyarrow.compute.Expression, such as pyarrow.compute.field('x') > 1, not "
            f"{short_repr(expression)}"
        )


class ArrowCondition:
    """A filter of Arrow as a condition."""

    def __init__(self, expression: Any, schema: Any) -> None:
        check_expression(expression, "filter")
        kind = _type_of(expression, schema)
        if not pa.types.is_boolean(kind):
            raise InvalidArgumentError(
                f"{short_repr(str(expression))} cannot be a filter: it is of type {kind}, not bool"
            )
        self.filter = expression
        self.columns = _needed_columns([expression], schema)

    def rows(self, batch: Any) -> "np.ndarray[Any, np.dtype[Any]]":
        """Positions of the rows for which the filter is true."""
        numbered = batch.append_column(POSITION, pa.array(np.arange(batch.num_rows)))
        found = _evaluated(numbered, [POSITION], self.filter)
        rows: np.ndarray[Any, np.dtype[Any]] = found.column(0).to_numpy()
        return rows


class ArrowProjection:
    """Computed columns: expressions by name."""

    def __init__(self, columns: Mapping[str, Any], schema: Any) -> None:
        for name, expression in columns.items():
            check_expression(expression, f"column {short_repr(name)}")
            _type_of(expression, schema)
        self._columns = dict(columns)
        self.columns = _needed_columns(list(columns.values()), schema)
        self.schema = _without_files(schema).scanner(columns=self._columns).projected_schema

    def computed(self, batch: Any) -> Any:
        """The columns of a `pyarrow.RecordBatch`."""
        (result,) = _evaluated(batch, self._columns, None).to_batches()
        return result


def _type_of(expression: Any, schema: Any) -> Any:
    """The type of the values of an expression.

    Raises `InvalidArgumentError` for an expression that does not fit the schema.
    """
    try:
        return _without_files(schema).scanner(columns={"": expression}).projected_schema.field(0).type
    except (pa.ArrowException, TypeError) as error:
        text = " ".join(str(error).split())
        raise InvalidArgumentError(f"{short_repr(str(expression))} cannot be evaluated: {text}") from None


def _needed_columns(expressions: Sequence[Any], schema: Any) -> list[str]:
    """The columns that expressions name, in the order of the schema."""
    # Numbers of columns count through all of them, so none can be left out.
    if any("FieldPath(" in str(expression) for expression in expressions):
        return list(schema.names)
    found = {name for expression in expressions for name in _named_columns(expression, schema)}
    return [name for name in schema.names if name in found]


def _named_columns(expression: Any, schema: Any) -> list[str]:
    """The columns without which an expression cannot be bound.

    Arrow does not tell which columns an expression needs, so they are found by search: the last name of the shortest
    list with which it can be bound is one.
    """
    found: list[str] = []
    candidates: list[str] = schema.names

    def is_enough(count: int) -> bool:
        fields = [schema.field(name) for name in [*found, *candidates[:count]]]
        try:
            _without_files(pa.schema(fields)).scanner(columns={"": expression})
        except pa.ArrowException:
            return False
        return True

    while not is_enough(0):
        count = bisect_left(range(len(candidates) + 1), True, key=is_enough)
        found.append(candidates[count - 1])
        candidates = candidates[: count - 1]
    return found


def _without_files(schema: Any) -> Any:
    """A dataset whose scanners bind expressions and read nothing."""
    return pads.FileSystemDataset([], schema, pads.IpcFileFormat())


def _evaluated(batch: Any, columns: Any, expression: Any) -> Any:
    # Its own threads could all wait for the thread that runs this.
    source = pads.InMemoryDataset(batch)
    return source.to_table(columns=columns, filter=expression, use_threads=False).combine_chunks()
