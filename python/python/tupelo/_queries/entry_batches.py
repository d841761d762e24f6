"""Batches of entries, and their numbers as a column."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .._base import arrow
from ..fields import _select

POSITION = "\0place"
"""Name of a column with the position of an entry in its batch. It is not a C++ name, so no field can have it."""


class EntryBatch(NamedTuple):
    """A part of what a request reads."""

    start: int
    stop: int
    """The range of entries, before the cut."""
    batch: Any
    """A `pyarrow.RecordBatch`."""
    entries: Any
    """The entry numbers."""


_ENTRY = "entry"


def with_entry_numbers(request: _select.Request) -> _select.Request:
    """Adds a column of entry numbers, for `split_entry_numbers`."""
    return replace(request, entry_numbers=_ENTRY)


def split_entry_numbers(batch: Any) -> tuple[Any, Any]:
    """Splits the entry numbers off a batch."""
    last = batch.num_columns - 1
    # Not by name, which a field may share. The number of entries must survive even without other columns.
    columns, fields = batch.columns[:last], list(batch.schema)[:last]
    rest = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))
    # Signed, like indices in NumPy and pandas.
    return rest, arrow.to_numbers(batch.column(last)).view(np.int64)
