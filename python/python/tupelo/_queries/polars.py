"""Ntuples as lazy frames of polars."""

import functools
import json
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._from_arrow.polars import from_table, load_polars, to_polars
from ..errors import InvalidArgumentError
from ..fields import _select
from .columns import ColumnReader
from .entry_batches import POSITION


def scan(reader: ColumnReader) -> Any:
    """A lazy frame of the columns of a reader."""
    pl = load_polars()
    from polars.io.plugins import register_io_source

    empty = from_table(pa.Table.from_batches([], reader.schema))
    source = _Source(reader)
    return register_io_source(source.frames, schema=pl.Schema(empty.schema), is_pure=True, validate_schema=True)


def check_fields(request: _select.Request) -> None:
    """Raises `InvalidArgumentError` for expressions."""
    if request.computed:
        raise InvalidArgumentError(
            f"scan() takes field names, not the expression {request.computed[0][0]!r}; compute it with polars"
        )


class _Source:
    """The IO source of a lazy frame."""

    def __init__(self, reader: ColumnReader) -> None:
        self.reader = reader

    def frames(
        self, columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        """The columns of the entries that match the predicate, among the first ``n_rows`` entries.

        polars evaluates the predicate on its columns. Other columns are read only for matching entries. (A cut of the
        engine would not be exact: in polars NaN equals itself and is larger than all numbers, and integers wrap
        around.)
        """
        columns = self.reader.schema.names if columns is None else columns
        reader = self.reader if n_rows is None else self.reader.first(n_rows)
        condition = None if predicate is None else _Predicate(predicate, self.reader.schema.names)
        for batch in reader.batches(columns, condition, batch_size):
            if batch.num_rows:
                yield to_polars(batch)


class _Predicate:
    """A predicate of polars as a condition."""

    def __init__(self, predicate: Any, names: list[str]) -> None:
        self.predicate = predicate
        wanted = set(predicate.meta.root_names())
        self.columns = [name for name in names if name in wanted]
        self.filter = _as_filter(predicate)

    def rows(self, batch: Any) -> Any:
        frame = to_polars(batch).with_row_index(POSITION).filter(self.predicate)
        return frame.get_column(POSITION).to_numpy()


_COMPARISONS = {
    "Eq": operator.eq,
    "Gt": operator.gt,
    "GtEq": operator.ge,
    "Lt": operator.lt,
    "LtEq": operator.le,
}
_NUMBERS = {
    **dict.fromkeys(["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"], int),
    "Float32": np.float32,
    "Float64": float,
}
_BETWEEN = {"Both": ("GtEq", "LtEq"), "Left": ("GtEq", "Lt"), "Right": ("Gt", "LtEq"), "None": ("Gt", "Lt")}


def _as_filter(predicate: Any) -> Any:
    """A filter of Arrow that is true where the predicate is, and perhaps elsewhere; `None` for all entries.

    Comparisons of columns with numbers, and tests for null, joined by and or or, are translated.
    """
    with warnings.catch_warnings():
        # The format of this text may change: what is not known is not used.
        warnings.simplefilter("ignore")
        try:
            return _translated(json.loads(predicate.meta.serialize(format="json")))
        except Exception:
            return None


def _translated(node: Any) -> Any:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            both = [one for one in (_translated(left), _translated(right)) if one is not None]
            return functools.reduce(operator.and_, both) if both else None
        case {"BinaryExpr": {"left": left, "op": "Or", "right": right}}:
            first, second = _translated(left), _translated(right)
            return None if first is None or second is None else first | second
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
            return _comparison(op, left, right)
        case {"Function": {"input": [value, low, high], "function": {"Boolean": {"IsBetween": {"closed": closed}}}}}:
            both = [_comparison(op, value, end) for op, end in zip(_BETWEEN[closed], (low, high), strict=True)]
            return None if any(one is None for one in both) else both[0] & both[1]
        case {"Function": {"input": [{"Column": name}], "function": {"Boolean": "IsNull"}}}:
            return pc.field(name).is_null()
        case {"Function": {"input": [{"Column": name}], "function": {"Boolean": "IsNotNull"}}}:
            return pc.field(name).is_valid()
    return None


def _comparison(op: str, left: Any, right: Any) -> Any:
    first, second = _operand(left), _operand(right)
    return None if first is None or second is None else _COMPARISONS[op](first, second)


def _operand(node: Any) -> Any:
    """A column, or a number other than NaN, which Arrow compares in another way."""
    match node:
        case {"Column": name}:
            return pc.field(name)
        case {"Literal": {"Scalar": {**scalar}}}:
            ((kind, value),) = scalar.items()
            number = _NUMBERS[str(kind)](value)
            return None if number != number else pc.scalar(number)
    return None
