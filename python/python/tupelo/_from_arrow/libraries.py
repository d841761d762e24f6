"""Conversion of Arrow batches to the arrays of other libraries."""

import copy
from collections.abc import Collection
from typing import Any, Literal

import pyarrow as pa

from .._base.messages import short_repr
from ..errors import InvalidArgumentError
from . import memory
from .awkward import AwkwardOptions, to_awkward

Library = Literal["ak", "np", "arrow", "pd", "pl"]
"""The library of the result: Awkward Array, NumPy, PyArrow, pandas, polars."""
How = type[tuple[Any, ...]] | type[list[Any]] | type[dict[Any, Any]] | Literal["zip"] | None
"""The container of the columns; see `Ntuple.arrays`."""


def check_how(how: object, library: str) -> None:
    """Raises `InvalidArgumentError` for values of ``how`` that are invalid or do not fit the library."""
    if how == "zip" and library != "ak":
        raise InvalidArgumentError(f"how='zip' needs library='ak', not library={library!r}")
    if how not in (None, tuple, list, dict, "zip"):
        raise InvalidArgumentError(
            f"expected how to be None, dict, list, tuple (the classes themselves) or 'zip', not {short_repr(how)}"
        )


def to_library(
    batch: Any,
    library: str,
    entries: Any,
    style: AwkwardOptions | None = None,
    how: How = None,
    *,
    is_shared: bool = False,
) -> Any:
    """Converts a `pyarrow.RecordBatch` of these entries (a range or entry numbers) to a library; see `Ntuple.arrays`.

    NumPy arrays and pandas columns are writable. They take ownership of the memory of the batch, which must not be
    used afterwards. Columns that share memory are copied; if the batch ``is_shared``, all of them are.
    """
    return group(_columns(batch, library, entries, style or AwkwardOptions(), is_shared), batch.schema.names, how)


def group(arrays: Any, names: list[str], how: How) -> Any:
    """Puts columns into the container ``how``; see `Ntuple.arrays`."""
    if how is None:
        return arrays
    if how == "zip":
        return _zip_jagged(arrays)
    columns = {name: arrays[name] for name in names}
    return columns if how is dict else how(columns.values())


def _columns(batch: Any, library: str, entries: Any, style: AwkwardOptions, is_shared: bool) -> Any:
    if library == "arrow":
        return pa.Table.from_batches([batch])
    if library == "np":
        from .numpy import to_numpy

        copied = _columns_to_copy(batch, is_shared)
        arrays = {}
        for number, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
            array = to_numpy(field, column)
            arrays[field.name] = copy.deepcopy(array) if number in copied else array
        return arrays
    if library == "pd":
        from .pandas import to_pandas

        return to_pandas(batch, entries, _columns_to_copy(batch, is_shared))
    if library == "pl":
        from .polars import to_polars

        return to_polars(batch)
    return to_awkward(batch, style)


def _columns_to_copy(batch: Any, is_shared: bool) -> Collection[int]:
    """The numbers of the columns whose memory is shared."""
    return range(batch.num_columns) if is_shared else memory.sharing_columns(batch.columns)


def _zip_jagged(arrays: Any) -> Any:
    """Combines columns of lists with equal lengths into one list of records. Its name is their common prefix up to
    ``_``, ``.`` or ``/``, or ``jagged0`` and so on if that is empty or taken. These columns come last. Lists of records
    are unchanged.
    """
    import awkward as ak

    alone: dict[str, Any] = {}
    groups: list[tuple[Any, dict[str, Any]]] = []
    for name in arrays.fields:
        column = arrays[name]
        if not _is_jagged(column.layout):
            alone[name] = column
            continue
        counts = ak.num(column, axis=1)
        fitting = (members for known, members in groups if ak.array_equal(known, counts))
        if (group := next(fitting, None)) is None:
            groups.append((counts, {name: column}))
        else:
            group[name] = column
    for number, (_, members) in enumerate(groups):
        first, last = min(members), max(members)
        same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        cut = max(first.rfind(mark, 0, same) for mark in "_./") + 1
        together = first[:cut].strip("_./")
        if together and together not in alone:
            members = {name[cut:].strip("_./"): column for name, column in members.items()}
        else:
            together = f"jagged{number}"
        alone[together] = ak.zip(members, depth_limit=2)
    return ak.Array(alone)


def _is_jagged(layout: Any) -> bool:
    """Whether a column has variable-length lists of values other than records."""
    is_list = layout.is_list and not layout.is_regular and layout.parameter("__array__") is None
    return is_list and not layout.content.is_record
