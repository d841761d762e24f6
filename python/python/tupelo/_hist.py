"""Histograms of what is read, piece by piece."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from . import _core, _optional
from ._messages import printable, short
from ._progress import Progress, Tell, telling
from ._sizes import whole
from .errors import InvalidArgumentError, LimitError

if TYPE_CHECKING:
    from .ntuple import Ntuple

DEFAULT_BINS = 100
"""Number of bins of an axis."""

DEFAULT_STEP = "16 MiB"
"""Size in memory of what is filled at once: what is larger is not faster, and takes as much more memory."""

MAX_BINS = 2**27
"""Bins that a histogram may have on all axes together: 1 GiB of them."""

MAX_PARTS = 8
"""Histograms that are filled at the same time: behind more threads the pieces would wait for each other."""

MAX_PART_BINS = 2**20
"""Bins of histograms that are filled at the same time; adding larger ones takes longer than filling them."""

NARROWEST = 2.0**-40
"""Half the width of a range around values that are all the same, as a part of them; 0.5 where that is more."""

_NOT_NAMES = ("weight", "sample", "threads")
"""Words that hist does not take for names of axes."""


@dataclass(frozen=True)
class Reading:
    """Which entries of an ntuple are looked at."""

    ntuple: "Ntuple"
    cut: str | None
    aliases: Mapping[str, str] | None
    start: int
    stop: int
    step_size: SupportsIndex | str

    def pieces(self, expressions: Sequence[str], tell: Tell) -> Iterator[Any]:
        """Pieces of the values of expressions, for `columns`."""
        optional: dict[str, Any] = {"cut": self.cut, "aliases": self.aliases}
        pieces: Iterator[Any] = self.ntuple.iterate(
            list(dict.fromkeys(expressions)),
            step_size=self.step_size,
            entry_start=self.start,
            entry_stop=self.stop,
            library="ak",
            progress=tell,
            **{name: value for name, value in optional.items() if value is not None},
        )
        return pieces

    def columns(self, piece: Any, expressions: Sequence[str]) -> list[Any]:
        """The values in a piece as flat Awkward arrays of the same length, without missing values."""
        return flat([self._column(piece, expression) for expression in expressions], expressions)

    def _column(self, piece: Any, expression: str) -> Any:
        """The values of an expression in a piece, where those of ``jets.pt`` stand in ``jets``."""
        if expression in piece.fields:
            return piece[expression]
        if expression in self.ntuple:
            return piece[tuple(self.ntuple[expression]._names())]
        raise InvalidArgumentError(f"{short(expression)} is several fields; an axis has the values of one expression")


def _label(expression: str) -> str:
    """An expression as the label of an axis.

    The library hist shows labels as HTML and does not escape them. A ``<`` before a blank cannot begin an element.
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", printable(expression))


@dataclass(frozen=True)
class Dimension:
    """What becomes an axis: an expression, a number of bins, edges or an axis, and the limits, if they are known."""

    expression: str
    bins: Any
    limits: tuple[float, float] | None
    name: str
    is_measured: bool = False
    """Whether the limits are those of the data."""

    @property
    def is_open(self) -> bool:
        """Whether limits are still to be found."""
        return isinstance(self.bins, int) and self.limits is None

    def axis(self) -> Any:
        """As the library has it."""
        bh, hist = _boost_histogram(), _hist()
        if isinstance(self.bins, bh.axis.Axis):
            return self.bins
        axes = bh.axis if hist is None else hist.axis
        says = {"metadata": self.expression} if hist is None else {"name": self.name, "label": _label(self.expression)}
        if isinstance(self.bins, int) and self.limits is not None:
            return axes.Regular(self.bins, *self.limits, **says)
        return axes.Variable(self.bins, **says)

    def values(self, column: Any, axis: Any) -> Any:
        """What is filled of a column."""
        values = _fillable(column, self.expression, axis)
        if not self.is_measured or self.limits is None:
            return values
        # As in NumPy the largest value is in the last bin, which does not contain its upper edge.
        return np.where(values == self.limits[1], axis.centers[-1], values)


def fill(
    reading: Reading, expressions: Sequence[str], bins: Any, limits: Any, weight: str | None, progress: Progress
) -> Any:
    """What `Ntuple.hist` does."""
    storage = _boost_histogram().storage
    if not expressions:
        raise InvalidArgumentError("a histogram needs an expression for each of its axes, and there is none")
    wanted = [*expressions, *([] if weight is None else [weight])]
    for expression in wanted:
        if not isinstance(expression, str):
            raise InvalidArgumentError(f"expressions are texts, not {short(expression)}")
    given = zip(expressions, _each(bins, expressions, "bins"), _each(limits, expressions, "range"), strict=True)
    names = iter(_names(expressions))
    dimensions = [Dimension(e, _bins(own, e), _limits(pair, e), next(names)) for e, own, pair in given]
    for dimension in dimensions:
        if dimension.limits is not None and not isinstance(dimension.bins, int):
            what = f"the axis of {short(dimension.expression)} has its edges already, and takes no range"
            raise InvalidArgumentError(what)
    total = reading.stop - reading.start
    with telling(progress) as tell:
        before = 0
        if any(dimension.is_open for dimension in dimensions):
            dimensions = _measured(dimensions, reading, lambda done, _: tell(done, 2 * total))
            before = total
        axes = [dimension.axis() for dimension in dimensions]
        _check_bins(math.prod(axis.extent for axis in axes))

        def fill_piece(histogram: Any, piece: Any) -> None:
            columns = reading.columns(piece, wanted)
            values = [d.values(*one) for d, *one in zip(dimensions, columns, axes, strict=False)]
            histogram.fill(*values, weight=None if weight is None else _fillable(columns[-1], weight, None))

        pieces = reading.pieces(wanted, lambda done, _: tell(before + done, before + total))
        made = storage.Double if weight is None else storage.Weight
        return _filled(lambda: _histogram(axes, made()), fill_piece, pieces, _num_parts(axes))


def _num_parts(axes: Sequence[Any]) -> int:
    """How many histograms are filled at the same time: one for each thread, unless they are large or grow."""
    is_fixed = not any(axis.traits.growth for axis in axes)
    is_small = math.prod(axis.extent for axis in axes) <= MAX_PART_BINS
    return min(_core.threads(), MAX_PARTS) if is_fixed and is_small else 1


def _filled(make: Callable[[], Any], fill_piece: Callable[[Any, Any], None], pieces: Iterator[Any], count: int) -> Any:
    """The sum of ``count`` histograms. Each has a thread of its own, and the pieces are given to them in turns: sums
    depend on the number of threads, but not on which of them is faster.
    """
    parts = [make() for _ in range(count)]
    if count == 1:
        for piece in pieces:
            fill_piece(parts[0], piece)
        return parts[0]
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in parts]
        waiting: deque[Future[None]] = deque()
        for index, piece in enumerate(pieces):
            if len(waiting) == count:
                waiting.popleft().result()
            waiting.append(threads[index % count].submit(fill_piece, parts[index % count], piece))
        for future in waiting:
            future.result()
    total = parts[0]
    for part in parts[1:]:
        # The sum of histograms does not know its variances.
        bins = total.view(flow=True)
        bins += part.view(flow=True)
    return total


def flat(columns: list[Any], expressions: Sequence[str]) -> list[Any]:
    """Awkward arrays of as many entries as arrays of the items of all of them, level by level.

    What has no lists stands beside every item of the others; what is missing somewhere is left out everywhere.

    >>> import awkward as ak
    >>> [c.tolist() for c in flat([ak.Array([[1, None, 3], [], [4]]), ak.Array([0.5, 1.5, 2.5])], ["a", "b"])]
    [[1, 3, 4], [0.5, 0.5, 2.5]]

    Raises `InvalidArgumentError` for lists of different lengths.
    """
    import awkward as ak

    while True:
        missing = [np.asarray(ak.is_none(column)) for column in columns if column.layout.is_option]
        if missing:
            there = ~np.logical_or.reduce(missing)
            columns = [ak.drop_none(column[there], axis=0) for column in columns]
        lists = [index for index, column in enumerate(columns) if column.layout.purelist_depth > 1]
        if not lists:
            return columns
        counts = np.asarray(ak.num(columns[lists[0]], axis=1))
        for index in lists[1:]:
            if not np.array_equal(counts, np.asarray(ak.num(columns[index], axis=1))):
                raise InvalidArgumentError(
                    f"{expressions[lists[0]]!r} and {expressions[index]!r} have different numbers of items in one "
                    "entry; what is filled together must have as many"
                )
        places = np.repeat(np.arange(len(counts)), counts)
        columns = [
            ak.flatten(column, axis=1) if index in lists else column[places] for index, column in enumerate(columns)
        ]


def _fillable(column: Any, expression: str, axis: Any) -> Any:
    """Numbers as a NumPy array; texts as a list, for the axes that have them for bins."""
    import awkward as ak

    is_text = column.layout.parameter("__array__") == "string"
    if is_text and isinstance(axis, _boost_histogram().axis.StrCategory):
        return column.tolist()
    layout = ak.to_packed(column).layout
    if is_text or layout.is_record or layout.is_union or not (layout.is_numpy or layout.is_unknown):
        raise InvalidArgumentError(
            f"{short(expression)} has the type {column.type.content}, and not numbers to be filled"
        )
    values = ak.to_numpy(layout)
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _measured(dimensions: list[Dimension], reading: Reading, tell: Tell) -> list[Dimension]:
    """The same with the range of the finite values where limits were not known; NumPy's where there are none."""
    open_ones = [dimension for dimension in dimensions if dimension.is_open]
    lows, highs = np.full(len(open_ones), np.inf), np.full(len(open_ones), -np.inf)
    expressions = [dimension.expression for dimension in open_ones]
    for piece in reading.pieces(expressions, tell):
        columns = reading.columns(piece, expressions)
        for index, (dimension, column) in enumerate(zip(open_ones, columns, strict=True)):
            values = _fillable(column, dimension.expression, None)
            values = values[np.isfinite(values)]
            if len(values):
                lows[index] = min(lows[index], values.min())
                highs[index] = max(highs[index], values.max())
    found = iter([_limits_of(float(low), float(high)) for low, high in zip(lows, highs, strict=True)])
    return [replace(d, limits=next(found), is_measured=True) if d.is_open else d for d in dimensions]


def _limits_of(low: float, high: float) -> tuple[float, float]:
    if low > high:
        return 0.0, 1.0
    half = max(0.5, abs(low) * NARROWEST)
    return (low, high) if low < high else (low - half, high + half)


def _each(given: Any, expressions: Sequence[str], what: str) -> list[Any]:
    """What is given for each axis."""
    if len(expressions) == 1:
        return [given]
    if given is None or isinstance(given, SupportsIndex) or not isinstance(given, Sequence | np.ndarray):
        return [given] * len(expressions)
    if len(given) != len(expressions):
        raise InvalidArgumentError(f"{what} are given for {len(given)} axes, and there are {len(expressions)}")
    return list(given)


def _bins(bins: Any, expression: str) -> Any:
    """A number of bins, an array of edges, or an axis."""
    if isinstance(bins, _boost_histogram().axis.Axis):
        return bins
    number = whole(bins)
    if isinstance(bins, bool) or number is not None:
        if number is None or number < 1:
            raise InvalidArgumentError(f"an axis of {short(expression)} with {short(bins)} bins")
        _check_bins(number)
        return number
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InvalidArgumentError(
            f"bins are their number, increasing edges, or an axis of boost-histogram; for {short(expression)} they are "
            f"{short(bins)}"
        )
    return edges


def _check_bins(number: int) -> None:
    if number > MAX_BINS:
        raise LimitError(f"a histogram with {short(number)} bins: at most {MAX_BINS} fit into memory; choose fewer")


def _limits(limits: Any, expression: str) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError, OverflowError):
        low = high = np.nan
    if not (low < high and np.isfinite(high - low)):
        raise InvalidArgumentError(
            f"a range is a pair of a lower and an upper edge; for {short(expression)} it is {short(limits)}"
        )
    return low, high


def _names(expressions: Sequence[str]) -> list[str]:
    """Names by which axes are asked for: the expressions, where they are such names, each once."""
    names: list[str] = []
    for expression in expressions:
        is_name = expression.isidentifier() and expression not in names and expression not in _NOT_NAMES
        names.append(expression if is_name else "")
    return names


def _histogram(axes: list[Any], storage: Any) -> Any:
    hist = _hist()
    return _boost_histogram().Histogram(*axes, storage=storage) if hist is None else hist.Hist(*axes, storage=storage)


def _hist() -> Any:
    """The package hist, or None where it is not installed. One that does not work is not passed over in silence."""
    return None if find_spec("hist") is None else _optional.load("hist", "hist()", "hist")


def _boost_histogram() -> Any:
    return _optional.load("boost_histogram", "hist()", "hist")
