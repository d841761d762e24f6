"""Filling histograms in batches."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, Protocol, SupportsIndex

import numpy as np

from .. import _core
from .._base import optional
from .._base.messages import printable, short_repr
from .._base.progress import Callback, Progress, report_progress
from .._base.sizes import as_integer
from ..errors import InvalidArgumentError, LimitError
from . import _regular
from ._columns import BatchColumns, Fields

DEFAULT_BINS = 100
"""Default number of bins of an axis."""

DEFAULT_STEP = "16 MiB"
"""Size in memory of a batch: larger batches take more memory and are not faster."""

MAX_BINS = 2**27
"""Maximum number of bins of all histograms of a call, over all axes: 1 GiB."""

MAX_PARALLEL_FILLS = 8
"""Maximum number of histograms that are filled in parallel; more threads would only wait for data."""

MAX_PARALLEL_BINS = 2**20
"""Maximum number of bins for parallel filling; adding larger histograms takes longer than filling them."""

MIN_RELATIVE_WIDTH = 2.0**-40
"""Half the width of a range around a single value, relative to the value; at least 0.5."""

_RESERVED_NAMES = ("weight", "sample", "threads")
"""Names that hist does not allow for axes."""


class Entries(Fields, Protocol):
    """What columns are read from: an `Ntuple`, or those of many files."""

    def _joined_batches(
        self, expressions: list[str], cut: str | None, options: Mapping[str, Any], how: Mapping[str, Any]
    ) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Reading:
    """The entries to fill from."""

    entries: Entries
    cut: str | None
    aliases: Mapping[str, str] | None
    start: int
    stop: int
    step_size: SupportsIndex | str

    def batches(self, expressions: Sequence[str], tell: Callback) -> Iterator[Any]:
        """Batches of the values of expressions, for `columns`."""
        options = {"aliases": self.aliases, "entry_start": self.start, "entry_stop": self.stop}
        how = {"step_size": self.step_size, "progress": tell}
        batches = self.entries._joined_batches(list(dict.fromkeys(expressions)), self.cut, options, how)
        return batches

    def columns(self, batch: Any) -> BatchColumns:
        """The values of a batch as flat columns."""
        return BatchColumns(batch, self.entries)


def _label(expression: str) -> str:
    """An expression as the label of an axis.

    The library hist renders labels as HTML without escaping. A ``<`` before a blank cannot begin an element.
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", printable(expression))


@dataclass(frozen=True)
class Dimension:
    """An axis to create: an expression, its bins (a number, edges or an axis), and its limits if known."""

    expression: str
    bins: Any
    limits: tuple[float, float] | None
    name: str
    is_measured: bool = False
    """Whether the limits were determined from the data."""

    @property
    def is_open(self) -> bool:
        """Whether the limits are still to be determined."""
        return isinstance(self.bins, int) and self.limits is None

    def axis(self) -> Any:
        """The axis of the library."""
        bh, hist = _boost_histogram(), _hist()
        if isinstance(self.bins, bh.axis.Axis):
            return self.bins
        axes = bh.axis if hist is None else hist.axis
        says = {"metadata": self.expression} if hist is None else {"name": self.name, "label": _label(self.expression)}
        if isinstance(self.bins, int) and self.limits is not None:
            return axes.Regular(self.bins, *self.limits, **says)
        return axes.Variable(self.bins, **says)

    def closed(self, values: Any, axis: Any) -> Any:
        """The values to fill, with the largest one in the last bin as in NumPy: bins exclude their upper edge."""
        if not self.is_measured or self.limits is None:
            return values
        return np.where(values == self.limits[1], axis.centers[-1], values)


@dataclass(frozen=True)
class Request:
    """A histogram to fill."""

    expressions: tuple[str, ...]
    bins: Any = DEFAULT_BINS
    range: Any = None
    cut: str | None = None
    weight: str | None = None
    sample: str | None = None

    def __post_init__(self) -> None:
        if not self.expressions:
            raise InvalidArgumentError("a histogram needs at least one expression")
        for expression in (*self.wanted, *([] if self.cut is None else [self.cut])):
            if not isinstance(expression, str):
                raise InvalidArgumentError(
                    f"expected expressions as strings, not {short_repr(expression)}"
                    + ("; pass them separately: hist('x', 'y')" if isinstance(expression, list | tuple) else "")
                )

    @property
    def wanted(self) -> list[str]:
        """The expressions of axes, then sample and weight, whose values go together."""
        return [*self.expressions, *(one for one in (self.sample, self.weight) if one is not None)]

    def dimensions(self) -> "list[Dimension]":
        """The axes to create."""
        per_axis = (_per_axis(self.bins, self.expressions, "bins"), _per_axis(self.range, self.expressions, "range"))
        names = iter(_names(self.expressions))
        given = zip(self.expressions, *per_axis, strict=True)
        dimensions = [Dimension(e, _bins(own, e), _limits(pair, e), next(names)) for e, own, pair in given]
        for dimension in dimensions:
            if dimension.limits is not None and not isinstance(dimension.bins, int):
                what = f"the axis of {short_repr(dimension.expression)} has explicit edges; remove its range"
                raise InvalidArgumentError(what)
        return dimensions

    def storage(self) -> Any:
        """The storage of the library."""
        storage = _boost_histogram().storage
        if self.sample is not None:
            return storage.Mean() if self.weight is None else storage.WeightedMean()
        return storage.Double() if self.weight is None else storage.Weight()

    def fill(self, histogram: Any, columns: list[Any], dimensions: "Sequence[Dimension]", axes: Sequence[Any]) -> None:
        """Fills the values of a batch."""
        rest = iter(columns[len(axes) :])
        how = {
            name: _to_fill_values(next(rest), expression, None)
            for name, expression in (("sample", self.sample), ("weight", self.weight))
            if expression is not None
        }
        own = list(zip(dimensions, columns, axes, strict=False))
        values = [_to_fill_values(column, dimension.expression, axis) for dimension, column, axis in own]
        weight = how.get("weight")
        if self.sample is None and _regular.is_filled_here(axes, values, weight):
            _regular.fill(histogram, axes, values, [dimension.is_measured for dimension in dimensions], weight)
            return
        closed = [dimension.closed(one, axis) for dimension, one, axis in zip(dimensions, values, axes, strict=True)]
        try:
            histogram.fill(*closed, **how)
        except (TypeError, ValueError, RuntimeError) as error:
            # Which values an axis takes is known to the library only.
            text = f"the histogram of {', '.join(map(short_repr, self.expressions))} does not take the values: {error}"
            raise InvalidArgumentError(text) from error


@dataclass(frozen=True)
class Booking:
    """Histograms to fill in one pass."""

    requests: tuple[Request, ...]
    names: tuple[str, ...] | None
    """The names of several; None for a single one."""

    @classmethod
    def of(
        cls, expressions: Sequence[Any], bins: Any, limits: Any, weight: str | None, sample: str | None
    ) -> "Booking":
        """What the arguments of `Ntuple.hist` ask for."""
        if len(expressions) != 1 or not isinstance(expressions[0], Mapping):
            return cls((Request(tuple(expressions), bins, limits, None, weight, sample),), None)
        if not expressions[0]:
            raise InvalidArgumentError("no histogram is named: the mapping is empty")
        defaults = {"bins": bins, "range": limits, "weight": weight, "sample": sample}
        requests = {name: _request(name, given, defaults) for name, given in expressions[0].items()}
        return cls(tuple(requests.values()), tuple(requests))

    @property
    def wanted(self) -> list[str]:
        """The expressions that are read, each once."""
        cuts = [request.cut for request in self.requests if request.cut is not None]
        return list(dict.fromkeys([*(one for request in self.requests for one in request.wanted), *cuts]))

    def check_axes(self) -> None:
        """Raises `InvalidArgumentError` for axes that depend on the values."""
        for request in self.requests:
            for dimension in request.dimensions():
                if dimension.is_open:
                    what = f"the axis of {short_repr(dimension.expression)} needs a range or edges"
                    raise InvalidArgumentError(f"{what}: without, all entries would be read twice")
                if dimension.axis().traits.growth:
                    raise InvalidArgumentError(f"the axis of {short_repr(dimension.expression)} must not grow")

    def fill(self, reading: Reading, progress: Progress) -> Any:
        """Fills them, see `Ntuple.hist`: a histogram, or several by name."""
        filled = _fill(list(self.requests), reading, progress)
        return filled[0] if self.names is None else dict(zip(self.names, filled, strict=True))

    def sum(self, parts: Sequence[Any]) -> Any:
        """The sum of results of `fill`."""
        if self.names is None:
            return _sum(parts)
        return {name: _sum([part[name] for part in parts]) for name in self.names}


def _request(name: object, given: Any, defaults: Mapping[str, Any]) -> Request:
    """The request for one of several histograms: an expression, a list of them, or a mapping."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"expected names of histograms as strings, not {short_repr(name)}")
    own = dict(given) if isinstance(given, Mapping) else {"expressions": given}
    known = {one.name for one in fields(Request)}
    for key in own:
        if key not in known:
            what = f"histogram {short_repr(name)}: unknown key {short_repr(key)}; expected {', '.join(sorted(known))}"
            raise InvalidArgumentError(what)
    if "expressions" not in own:
        raise InvalidArgumentError(f"histogram {short_repr(name)}: 'expressions' is missing")
    expressions = own.pop("expressions")
    axes = (expressions,) if isinstance(expressions, str) else tuple(expressions)
    if "bins" in own and as_integer(own["bins"]) is None:
        # Edges have no other range.
        defaults = {**defaults, "range": None}
    try:
        return Request(axes, **{**defaults, **own})
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"histogram {short_repr(name)}: {error}") from None


def _fill(requests: list[Request], reading: Reading, progress: Progress) -> list[Any]:
    """Fills all histograms while the entries are read once, or twice to determine limits."""
    wanted = [one for request in requests for one in (*request.wanted, *([] if request.cut is None else [request.cut]))]
    dimensions = [request.dimensions() for request in requests]
    total = reading.stop - reading.start
    with report_progress(progress) as tell:
        before = 0
        if any(dimension.is_open for own in dimensions for dimension in own):
            dimensions = _find_limits(requests, dimensions, reading, lambda done, _: tell(done, 2 * total))
            before = total
        axes = [[dimension.axis() for dimension in own] for own in dimensions]
        _check_bins(sum(math.prod(axis.extent for axis in own) for own in axes))

        # Those of the same values one after the other.
        values_of = [(*request.wanted, request.cut) for request in requests]
        first = {key: index for index, key in reversed(list(enumerate(values_of)))}
        order = sorted(range(len(requests)), key=lambda index: first[values_of[index]])

        def fill_batch(histograms: list[Any], batch: Any) -> None:
            columns = reading.columns(batch)
            for index in order:
                request = requests[index]
                values = columns.flat(request.wanted, request.cut)
                request.fill(histograms[index], values, dimensions[index], axes[index])

        def make() -> list[Any]:
            return [_histogram(own, request.storage()) for own, request in zip(axes, requests, strict=True)]

        batches = reading.batches(wanted, lambda done, _: tell(before + done, before + total))
        return _fill_in_parallel(make, fill_batch, batches, _num_parallel_fills(axes))


def _num_parallel_fills(axes: Sequence[Sequence[Any]]) -> int:
    """How often all histograms are filled in parallel: one for each thread, unless they are large or growing."""
    is_fixed = not any(axis.traits.growth for own in axes for axis in own)
    is_small = sum(math.prod(axis.extent for axis in own) for own in axes) <= MAX_PARALLEL_BINS
    return min(_core.threads(), MAX_PARALLEL_FILLS) if is_fixed and is_small else 1


def _fill_in_parallel(
    make: Callable[[], list[Any]], fill_batch: Callable[[list[Any], Any], None], batches: Iterator[Any], count: int
) -> list[Any]:
    """The sums of ``count`` histograms of each, each filled by one thread. Batches are distributed round-robin, so sums
    depend on the number of threads but not on their timing.
    """
    parts = [make() for _ in range(count)]
    if count == 1:
        for batch in batches:
            fill_batch(parts[0], batch)
        return parts[0]
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in parts]
        waiting: deque[Future[None]] = deque()
        for index, batch in enumerate(batches):
            if len(waiting) == count:
                waiting.popleft().result()
            waiting.append(threads[index % count].submit(fill_batch, parts[index % count], batch))
        for future in waiting:
            future.result()
    return [_sum(own) for own in zip(*parts, strict=True)]


def _sum(parts: Sequence[Any]) -> Any:
    """The sum of histograms of the same axes."""
    total = parts[0]
    for part in parts[1:]:
        if total.kind == "MEAN":
            total += part
        else:
            # Adding histograms would lose the variances.
            bins = total.view(flow=True)
            bins += part.view(flow=True)
    return total


def _to_fill_values(column: Any, expression: str, axis: Any) -> Any:
    """Numbers as a NumPy array; strings as a list, for category axes."""
    import awkward as ak

    if isinstance(column, np.ndarray):
        return _numbers(column)
    is_text = column.layout.parameter("__array__") == "string"
    if is_text and isinstance(axis, _boost_histogram().axis.StrCategory):
        return column.tolist()
    layout = ak.to_packed(column).layout
    if is_text or layout.is_record or layout.is_union or not (layout.is_numpy or layout.is_unknown):
        raise InvalidArgumentError(f"{short_repr(expression)} has the type {column.type.content}; expected numbers")
    return _numbers(ak.to_numpy(layout))


def _numbers(values: Any) -> Any:
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _find_limits(
    requests: list[Request], dimensions: "list[list[Dimension]]", reading: Reading, tell: Callback
) -> "list[list[Dimension]]":
    """Determines unknown limits as the range of the finite values; without values, those of NumPy."""
    # Axes that differ in their bins only have the same limits.
    open_ones = {
        (dimension.expression, request.cut)
        for request, own in zip(requests, dimensions, strict=True)
        for dimension in own
        if dimension.is_open
    }
    extremes = dict.fromkeys(open_ones, (np.inf, -np.inf))
    wanted = [one for expression, cut in open_ones for one in (expression, *([] if cut is None else [cut]))]
    for batch in reading.batches(wanted, tell):
        columns = reading.columns(batch)
        for (expression, cut), (low, high) in extremes.items():
            (column,) = columns.flat([expression], cut)
            values = _to_fill_values(column, expression, None)
            values = values[np.isfinite(values)]
            if len(values):
                extremes[expression, cut] = min(low, values.min()), max(high, values.max())
    limits = {key: _limits_from_extremes(float(low), float(high), key[0]) for key, (low, high) in extremes.items()}

    def measured(dimension: Dimension, request: Request) -> Dimension:
        if not dimension.is_open:
            return dimension
        return replace(dimension, limits=limits[dimension.expression, request.cut], is_measured=True)

    return [[measured(one, request) for one in own] for request, own in zip(requests, dimensions, strict=True)]


def _limits_from_extremes(low: float, high: float, expression: str) -> tuple[float, float]:
    if low > high:
        return 0.0, 1.0
    half = max(0.5, abs(low) * MIN_RELATIVE_WIDTH) if low == high else 0.0
    limits = low - half, high + half
    if not np.isfinite(limits[1] - limits[0]):
        raise InvalidArgumentError(
            f"range of {short_repr(expression)}: the values from {low} to {high} need limits; give a range"
        )
    return limits


def _per_axis(given: Any, expressions: Sequence[str], what: str) -> list[Any]:
    """An argument as one value for each axis."""
    # Also of one axis there may be a list: one value is neither edges nor a range.
    if len(expressions) == 1 and not (isinstance(given, list | tuple) and len(given) == 1):
        return [given]
    if given is None or isinstance(given, SupportsIndex) or not isinstance(given, Sequence | np.ndarray):
        return [given] * len(expressions)
    if len(given) != len(expressions):
        raise InvalidArgumentError(f"got {what} for {len(given)} axes, expected {len(expressions)}")
    return list(given)


def _bins(bins: Any, expression: str) -> Any:
    """A number of bins, an array of edges, or an axis."""
    if isinstance(bins, _boost_histogram().axis.Axis):
        return bins
    number = as_integer(bins)
    if isinstance(bins, bool) or number is not None:
        if number is None or number < 1:
            raise InvalidArgumentError(
                f"the axis of {short_repr(expression)} needs at least one bin, not {short_repr(bins)}"
            )
        _check_bins(number)
        return number
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InvalidArgumentError(
            f"bins of {short_repr(expression)}: expected a number, increasing edges, or an axis of boost-histogram, "
            f"not {short_repr(bins)}"
        )
    return edges


def _check_bins(number: int) -> None:
    if number > MAX_BINS:
        raise LimitError(f"histograms with {short_repr(number)} bins exceed the limit of {MAX_BINS} bins; use fewer")


def _limits(limits: Any, expression: str) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError, OverflowError):
        low = high = np.nan
    if not (low < high and np.isfinite(high - low)):
        raise InvalidArgumentError(
            f"range of {short_repr(expression)}: expected (lower edge, upper edge), for several axes a list of such "
            f"pairs, not {short_repr(limits)}"
        )
    return low, high


def _names(expressions: Sequence[str]) -> list[str]:
    """Names of the axes: the expressions that are unique identifiers."""
    names: list[str] = []
    for expression in expressions:
        is_name = expression.isidentifier() and expression not in names and expression not in _RESERVED_NAMES
        names.append(expression if is_name else "")
    return names


def _histogram(axes: list[Any], storage: Any) -> Any:
    hist = _hist()
    return _boost_histogram().Histogram(*axes, storage=storage) if hist is None else hist.Hist(*axes, storage=storage)


def _hist() -> Any:
    """The package hist, or None if it is not installed. Errors of an installed one are not ignored."""
    return None if find_spec("hist") is None else optional.load("hist", "hist()", "hist")


def _boost_histogram() -> Any:
    return optional.load("boost_histogram", "hist()", "hist")
