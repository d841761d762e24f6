"""Entries that a filter of Arrow cannot keep, by the zone maps of ntuples."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyarrow.fs import LocalFileSystem

from .. import _core
from .._base import arrow
from ..fields import _select

_NAN_OR_CAST = re.compile(r"\bnan\b|\bcast\(", re.IGNORECASE)
"""A filter with a literal that is NaN, or a cast; or a column with such a name."""
_FAR = 1e30
"""Beyond all integers."""
_GROUP = 64
"""At least so many zones are judged together first."""
_MAX_JUDGED = 4096
"""Of more zones, judging each takes longer than reading."""


def possible_pieces(core: "_core.Table", piece: _select.Request, filter: Any, schema: Any) -> Iterator[_select.Request]:
    """The parts of a request for which a filter may be true. ``schema`` has the columns that the filter names.

    Arrow leaves out fragments of a dataset whose partition expression contradicts a filter: here each zone is one.
    """
    computed = {name for name, _ in piece.computed}
    fields = [field for field in schema if field.name not in computed and arrow.has_bounds(field.type)]
    # With bounds, Arrow takes the negation of a comparison with NaN for false, and a cast value for the value.
    if not fields or piece.schema is not None or _NAN_OR_CAST.search(str(filter)):
        yield piece
        return
    zones = core.zones(piece, [field.name for field in fields])
    starts, stops, *ends = (np.asarray(column) for column in zones.columns)
    if len(starts) == 1:
        yield piece
        return
    lowest, highest, nulls = (np.array(ends[place::3]) for place in range(3))
    group = max(_GROUP, -(-len(starts) // _MAX_JUDGED))
    firsts = np.arange(0, len(starts), group)
    joins = (np.minimum, lowest), (np.maximum, highest), (np.maximum, nulls)
    groups = [join.reduceat(values, firsts, axis=1) for join, values in joins]
    in_groups = np.isin(np.arange(len(starts)) // group, _kept(fields, *groups, filter=filter, schema=schema))
    near = np.flatnonzero(in_groups)
    kept = near
    if len(near) <= _MAX_JUDGED:
        of_near = (values[:, near] for values in (lowest, highest, nulls))
        kept = near[np.array(_kept(fields, *of_near, filter=filter, schema=schema), dtype=int)]
    if kept.size:
        gaps = np.flatnonzero(starts[kept[1:]] != stops[kept[:-1]])
        for first, last in zip(kept[np.r_[0, gaps + 1]], kept[np.r_[gaps, -1]], strict=True):
            yield replace(piece, entry_start=int(starts[first]), entry_stop=int(stops[last]))


def _kept(fields: list[Any], lowest: Any, highest: Any, nulls: Any, *, filter: Any, schema: Any) -> list[int]:
    """The numbers of the zones for which the filter may be true."""
    format, system = pads.IpcFileFormat(), LocalFileSystem()
    fragments = []
    for zone in range(lowest.shape[1]):
        known = pc.scalar(True)
        ends = lowest[:, zone], highest[:, zone], nulls[:, zone]
        for field, low, high, null_count in zip(fields, *ends, strict=True):
            for bound in _bounds(field, low, high, null_count):
                known = known & bound
        fragments.append(format.make_fragment(str(zone), filesystem=system, partition_expression=known))
    try:
        found = pads.FileSystemDataset(fragments, schema, format, system).get_fragments(filter)
        return [int(fragment.path) for fragment in found]
    except pa.ArrowException:
        return list(range(len(fragments)))


def _bounds(field: Any, low: float, high: float, null_count: int) -> Iterator[Any]:
    """Expressions that are true for all values of a zone; none where nothing is known, as with NaN."""
    if np.isnan(low) or np.isnan(high):
        return
    column = pc.field(field.name)
    if field.nullable and low > high:
        yield column.is_null()
        return
    if pa.types.is_integer(field.type):
        limits = np.iinfo(field.type.to_pandas_dtype())
        low, high = int(np.floor(np.clip(low, -_FAR, _FAR))), int(np.ceil(np.clip(high, -_FAR, _FAR)))
        if low > limits.max or high < limits.min:
            return
        low, high = max(low, limits.min), min(high, limits.max)
    else:
        # One step more, as libraries round literals in different ways.
        kind = field.type.to_pandas_dtype()
        with np.errstate(over="ignore"):
            low, high = np.nextafter(kind(low), kind(-np.inf)), np.nextafter(kind(high), kind(np.inf))
    for bound in column >= pa.scalar(low, field.type), column <= pa.scalar(high, field.type):
        yield bound | column.is_null() if null_count else bound
