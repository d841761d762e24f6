"""Arrow batches as what people want to work with."""

import copy
from collections.abc import Collection
from typing import Any, Literal

import pyarrow as pa

from . import _memory
from ._awkward import Style, to_awkward
from ._messages import short
from .errors import InvalidArgumentError

Library = Literal["ak", "np", "arrow", "pd", "pl"]
"""What arrays are handed out as: Awkward Array, NumPy, PyArrow, pandas, polars."""
How = type[tuple[Any, ...]] | type[list[Any]] | type[dict[Any, Any]] | Literal["zip"] | None
"""How columns are put together; see `Ntuple.arrays`."""


def check_how(how: object, library: str) -> None:
    """Raises `InvalidArgumentError` for what a library's columns cannot be put together by."""
    if how == "zip" and library != "ak":
        raise InvalidArgumentError(f"how='zip' makes Awkward records, not columns of library={library!r}")
    if how not in (None, tuple, list, dict, "zip"):
        raise InvalidArgumentError(
            f"how is None, dict, list, tuple (the classes themselves) or 'zip', not {short(how)}"
        )


def hand_out(
    batch: Any, library: str, entries: Any, style: Style | None = None, how: How = None, *, is_kept: bool = False
) -> Any:
    """A `pyarrow.RecordBatch` of these entries (a range or their numbers) as the library's arrays; what `Ntuple.arrays`
    says of each.

    NumPy arrays and columns of pandas can be written to. They take over the memory of the batch, which nobody may use
    afterwards. Columns that share memory are copied, and all of them where the batch ``is_kept``.
    """
    return group(_columns(batch, library, entries, style or Style(), is_kept), batch.schema.names, how)


def group(arrays: Any, names: list[str], how: How) -> Any:
    """Columns put together otherwise; what `Ntuple.arrays` says of ``how``."""
    if how is None:
        return arrays
    if how == "zip":
        return _zipped(arrays)
    columns = {name: arrays[name] for name in names}
    return columns if how is dict else how(columns.values())


def _columns(batch: Any, library: str, entries: Any, style: Style, is_kept: bool) -> Any:
    if library == "arrow":
        return pa.Table.from_batches([batch])
    if library == "np":
        from ._numpy import to_numpy

        copied = _copied(batch, is_kept)
        arrays = {}
        for number, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
            array = to_numpy(field, column)
            arrays[field.name] = copy.deepcopy(array) if number in copied else array
        return arrays
    if library == "pd":
        from ._pandas import to_pandas

        return to_pandas(batch, entries, _copied(batch, is_kept))
    if library == "pl":
        from ._polars import to_polars

        return to_polars(batch)
    return to_awkward(batch, style)


def _copied(batch: Any, is_kept: bool) -> Collection[int]:
    """The numbers of the columns whose memory others see too."""
    return range(batch.num_columns) if is_kept else _memory.shared(batch.columns)


def _zipped(arrays: Any) -> Any:
    """One list of records in place of all columns of lists of the same lengths, called by what their names begin with
    in common, up to ``_``, ``.`` or ``/``; ``jagged0`` and so on where that is nothing or taken. They come last. Lists
    of records stay as they are.
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
    """Whether a column has lists of any length, of values that are no records."""
    is_list = layout.is_list and not layout.is_regular and layout.parameter("__array__") is None
    return is_list and not layout.content.is_record
