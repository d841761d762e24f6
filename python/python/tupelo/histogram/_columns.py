"""The values of a batch as the flat columns that histograms are filled from."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._base.messages import short_repr
from ..errors import InvalidArgumentError


class Field(Protocol):
    """A field of the entries."""

    def _names(self) -> list[str]: ...


class Fields(Protocol):
    """The fields of the entries, by path."""

    def __contains__(self, path: object, /) -> bool: ...
    def __getitem__(self, path: str, /) -> Field: ...


class _Lists(NamedTuple):
    """Lists of numbers: the items of one entry after those of another."""

    shape: int
    """Lists of a batch with equal numbers of items have the same number here."""
    items: Any


class BatchColumns:
    """The values of expressions in a batch, for several histograms. What they share is made once."""

    def __init__(self, batch: Any, fields: Fields) -> None:
        self._batch = batch
        self._fields = fields
        self._columns: dict[str, Any] = {}
        self._plain: dict[str, Any] = {}
        self._offsets: list[Any] = []
        self._kept: dict[str, Any] = {}
        self._kept_items: dict[tuple[int, str], Any] = {}
        self._last: tuple[tuple[tuple[str, ...], str | None], list[Any]] | None = None

    def flat(self, expressions: Sequence[str], cut: str | None) -> list[Any]:
        """The values as flat arrays of equal length, without missing values and those of entries for which ``cut`` is
        false: of NumPy where the batch has plain numbers or lists of them, otherwise of Awkward. The last result is
        kept: all together could take much more memory than the batch.
        """
        key = tuple(expressions), cut
        if self._last is None or self._last[0] != key:
            self._last = key, self._flattened(expressions, cut)
        return self._last[1]

    def _flattened(self, expressions: Sequence[str], cut: str | None) -> list[Any]:
        plain = [self._plain_values(expression) for expression in expressions]
        shapes = {values.shape for values in plain if isinstance(values, _Lists)}
        if len(shapes) > 1 or any(values is None for values in plain):
            columns = [self._column(expression) for expression in expressions]
            if cut is not None:
                columns = [column[self._kept_entries(cut)] for column in columns]
            return flatten_together(columns, expressions)
        if not shapes:
            return plain if cut is None else [values[self._kept_entries(cut)] for values in plain]
        (shape,) = shapes
        items = [v.items if isinstance(v, _Lists) else np.repeat(v, np.diff(self._offsets[shape])) for v in plain]
        return items if cut is None else [values[self._kept_items_of(shape, cut)] for values in items]

    def _column(self, expression: str) -> Any:
        """The values of an expression; those of ``jets.pt`` are in ``jets``."""
        if (column := self._columns.get(expression)) is None:
            column = self._columns[expression] = self._selected(expression)
        return column

    def _selected(self, expression: str) -> Any:
        if expression in self._batch.fields:
            return self._batch[expression]
        if expression in self._fields:
            return self._batch[tuple(self._fields[expression]._names())]
        raise InvalidArgumentError(f"{short_repr(expression)} selects several fields; an axis needs a single column")

    def _kept_entries(self, cut: str) -> Any:
        """Which entries a cut keeps; those without an answer are left out."""
        if cut not in self._kept:
            self._kept[cut] = _answers(self._column(cut), cut)
        return self._kept[cut]

    def _kept_items_of(self, shape: int, cut: str) -> Any:
        """Which items of lists are in entries that a cut keeps."""
        if (shape, cut) not in self._kept_items:
            counts = np.diff(self._offsets[shape])
            self._kept_items[shape, cut] = np.repeat(self._kept_entries(cut), counts)
        return self._kept_items[shape, cut]

    def _plain_values(self, expression: str) -> Any:
        """The values of an expression as a NumPy array or as `_Lists`; None if it has others."""
        if expression not in self._plain:
            self._plain[expression] = self._as_plain(self._column(expression).layout)
        return self._plain[expression]

    def _as_plain(self, layout: Any) -> Any:
        import awkward as ak

        if _is_flat(layout):
            return layout.data
        is_list = isinstance(layout, ak.contents.ListOffsetArray) and layout.parameter("__array__") is None
        if not is_list or not _is_flat(layout.content):
            return None
        offsets = np.asarray(layout.offsets)
        return _Lists(self._shape_of(offsets), layout.content.data[offsets[0] : offsets[-1]])

    def _shape_of(self, offsets: Any) -> int:
        from_zero = offsets if offsets[0] == 0 else offsets - offsets[0]
        for shape, known in enumerate(self._offsets):
            if np.array_equal(known, from_zero):
                return shape
        self._offsets.append(from_zero)
        return len(self._offsets) - 1


def _answers(answers: Any, cut: str) -> Any:
    """The answers of a cut as a NumPy array."""
    import awkward as ak

    kept = ak.fill_none(answers, False)
    layout = ak.to_packed(kept).layout
    if not layout.is_numpy or layout.purelist_depth > 1 or layout.dtype != np.bool_:
        what = f"the cut {short_repr(cut)} has the type {answers.type.content}; expected one boolean for each entry"
        raise InvalidArgumentError(what)
    return ak.to_numpy(kept)


def flatten_together(columns: list[Any], expressions: Sequence[str]) -> list[Any]:
    """Flattens Awkward arrays with the same number of entries level by level.

    Columns without lists are broadcast to the items of the others. Values that are missing in one column are dropped
    in all.

    >>> import awkward as ak
    >>> columns = [ak.Array([[1, None, 3], [], [4]]), ak.Array([0.5, 1.5, 2.5])]
    >>> [column.tolist() for column in flatten_together(columns, ["a", "b"])]
    [[1, 3, 4], [0.5, 0.5, 2.5]]

    Raises `InvalidArgumentError` for lists of different lengths.
    """
    import awkward as ak

    while not all(_is_flat(column.layout) for column in columns):
        missing = [np.asarray(ak.is_none(column)) for column in columns if column.layout.is_option]
        if missing:
            is_present = ~np.logical_or.reduce(missing)
            columns = [ak.drop_none(column[is_present], axis=0) for column in columns]
        lists = [index for index, column in enumerate(columns) if column.layout.purelist_depth > 1]
        if not lists:
            return columns
        counts = np.asarray(ak.num(columns[lists[0]], axis=1))
        for index in lists[1:]:
            if not np.array_equal(counts, np.asarray(ak.num(columns[index], axis=1))):
                raise InvalidArgumentError(
                    f"{expressions[lists[0]]!r} and {expressions[index]!r} have different numbers of items in some "
                    "entry; expressions that fill one histogram need equal lengths"
                )
        places = np.repeat(np.arange(len(counts)), counts)
        columns = [
            ak.flatten(column, axis=1) if index in lists else column[places] for index, column in enumerate(columns)
        ]
    return columns


def _is_flat(layout: Any) -> bool:
    """Whether a layout is a flat array, for which Awkward has nothing to do but takes longer than filling."""
    return bool(layout.is_numpy) and not layout.inner_shape and layout.parameter("__array__") is None
