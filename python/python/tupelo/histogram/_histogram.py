"""ROOT histograms."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._base import optional
from ..errors import CorruptError, UnsupportedError

Numbers = npt.NDArray[Any]

DIMENSIONS = {"TProfile": 1, "TProfile2D": 2, "TProfile3D": 3} | {
    f"TH{dimensions}{letter}": dimensions for dimensions in (1, 2, 3) for letter in "CSIFDL"
}
"""The classes of histograms, with their numbers of axes."""

AXES = ("fXaxis", "fYaxis", "fZaxis")
"""The members of `TH1` with its axes."""


@dataclass(frozen=True)
class Traits:
    """The properties of an axis, as UHI defines them."""

    circular: bool = False
    discrete: bool = False


class Axis:
    """One axis of a histogram, a sequence of its bins: pairs of lower and upper edge, or labels if all bins have one.

    It follows UHI's ``PlottableAxis``.
    """

    def __init__(self, title: str, edges: Numbers, is_regular: bool, labels: list[str | None]) -> None:
        self.title = title
        """Its title."""
        self.edges = edges
        """Edges of the bins, one more than there are bins, without underflow and overflow."""
        self.is_regular = is_regular
        """Whether all bins have the same width by definition."""
        self.labels = labels
        """Labels of the bins, None for a bin without a label; empty if no bin has one."""

    @property
    def traits(self) -> Traits:
        """Discrete if bins have labels instead of intervals."""
        return Traits(discrete=self._is_labelled)

    @property
    def _is_labelled(self) -> bool:
        return bool(self.labels) and None not in self.labels

    def __getitem__(self, index: int) -> tuple[float, float] | str | None:
        index = range(len(self))[index]
        if self._is_labelled:
            return self.labels[index]
        return float(self.edges[index]), float(self.edges[index + 1])

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __iter__(self) -> Iterator[tuple[float, float] | str | None]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.labels == other.labels and np.array_equal(self.edges, other.edges)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<tupelo Axis {self.title!r}: {len(self)} bins from {self.edges[0]} to {self.edges[-1]}>"


class StoredObject:
    """What histograms, graphs and efficiencies have in common."""

    def __init__(self, members: Mapping[str, Any], class_name: str) -> None:
        self._members = members
        self.class_name = class_name
        """Its C++ class."""

    @property
    def name(self) -> str:
        """Its name in ROOT."""
        return _text(self._members["fName"])

    @property
    def title(self) -> str:
        """Its title."""
        return _text(self._members["fTitle"])

    @property
    def members(self) -> Mapping[str, Any]:
        """Everything that ROOT stores, by the names of the members: ``fSumw2``, ``fFunctions``, …"""
        return self._members


class Histogram(StoredObject):
    """A histogram or a profile of one to three dimensions: ``TH1``, ``TH2`` and ``TH3`` with bins of any type,
    ``TProfile``, ``TProfile2D`` and ``TProfile3D``.

    It follows UHI's ``PlottableHistogram``, so mplhep, hist and others accept it. The bins of a profile are
    means.

    >>> import numpy as np, tupelo
    >>> with tupelo.recreate("histogram.root") as file:
    ...     file["h"] = np.histogram([0.5, 1.5, 1.7], bins=3, range=(0, 3))
    >>> histogram = tupelo.open("histogram.root")["h"]
    >>> histogram
    <tupelo.Histogram 'h': TH1I, 3 bins, 3 entries>
    >>> histogram.values(), histogram.axes[0].edges
    (array([1, 2, 0], dtype=int32), array([0., 1., 2., 3.]))
    """

    def __init__(self, members: Mapping[str, Any], class_name: str, axes: tuple[Axis, ...]) -> None:
        super().__init__(members, class_name)
        self.axes = axes
        """Its axes, x first."""

    @property
    def kind(self) -> Literal["COUNT", "MEAN"]:
        """``"MEAN"`` for profiles, else ``"COUNT"``."""
        return "MEAN" if self.class_name.startswith("TProfile") else "COUNT"

    @property
    def num_entries(self) -> float:
        """The number of times it was filled."""
        return float(self._members["fEntries"])

    @property
    def is_weighted(self) -> bool:
        """Whether it keeps sums of squared weights."""
        # Old versions of the classes lack it.
        squares = self._members.get("fBinSumw2" if self.kind == "MEAN" else "fSumw2", ())
        return len(squares) > 0

    def values(self, flow: bool = False) -> Numbers:
        """Contents of the bins: sums of weights, or means, which are 0 for bins without entries, as in ROOT.

        The shape is that of the axes; ``flow`` adds two bins to each axis, underflow first and overflow last.
        """
        content = self._shaped(self._members["fArray"], flow)
        if self.kind == "COUNT":
            return content
        sums = self._shaped(self._members["fBinEntries"], flow)
        return np.divide(content, sums, out=np.zeros(content.shape), where=sums != 0)

    def variances(self, flow: bool = False) -> Numbers:
        """Variances of the `values`: the squares of ROOT's bin errors.

        Without sums of squared weights these are the absolute contents, and 0 for bins of profiles without entries.
        """
        if self.kind == "COUNT":
            if self.is_weighted:
                return self._shaped(self._members["fSumw2"], flow).astype(np.float64)
            return np.abs(self._shaped(self._members["fArray"], flow).astype(np.float64))
        mean, counts = self.values(flow), self.counts(flow)
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = self._shaped(self._members["fBinEntries"], flow)
            spread = np.abs(self._shaped(self._members["fSumw2"], flow) / sums - mean * mean)
            # The options "", "s", "i" and "g" of TProfile::SetErrorOption.
            variances: Numbers
            match self._members["fErrorMode"]:
                case 1:
                    variances = spread
                case 2:
                    variances = np.where(spread != 0, spread, 1 / 12) / counts
                case 3:
                    variances = 1 / sums
                case _:
                    variances = spread / counts
            # ROOT gives no error where sums of weights are negative.
            return np.where(sums == 0, 0.0, np.where(variances < 0, np.nan, variances))

    def errors(self, flow: bool = False) -> Numbers:
        """Errors of the `values`: the square roots of the `variances`. ``flow`` is that of `values`."""
        return np.sqrt(self.variances(flow))

    def to_numpy(self, flow: bool = False) -> tuple[Numbers, ...]:
        """The `values` and the edges of each axis, as ``numpy.histogram`` and ``numpy.histogram2d`` return them.

        ``flow`` adds underflow and overflow, from -inf and to inf.
        """
        edges = [np.concatenate(([-np.inf], axis.edges, [np.inf])) if flow else axis.edges for axis in self.axes]
        return self.values(flow), *edges

    def counts(self, flow: bool = False) -> Numbers:
        """The number of entries of each bin; for weighted histograms, the effective number of entries.

        ``flow`` is that of `values`.
        """
        if self.kind == "COUNT" and not self.is_weighted:
            return self.values(flow).astype(np.float64)
        sums, squares = ("fBinEntries", "fBinSumw2") if self.kind == "MEAN" else ("fArray", "fSumw2")
        weights = self._shaped(self._members[sums], flow).astype(np.float64)
        if not self.is_weighted:
            return weights
        squared = self._shaped(self._members[squares], flow)
        return np.divide(weights * weights, squared, out=np.zeros_like(weights), where=squared > 0)

    def to_boost(self) -> Any:
        """The histogram as a `boost_histogram.Histogram`, with underflow and overflow.

        Raises `ImportError` if the package boost-histogram cannot be loaded.
        """
        bh = optional.load("boost_histogram", "to_boost()", "hist")

        def axis(of: Axis) -> Any:
            if of.traits.discrete:
                return bh.axis.StrCategory(of.labels, growth=True, metadata=of.title)
            if of.is_regular:
                return bh.axis.Regular(len(of), of.edges[0], of.edges[-1], metadata=of.title)
            return bh.axis.Variable(of.edges, metadata=of.title)

        # Categories have neither underflow nor overflow.
        inside = tuple(slice(1, -1) if axis.traits.discrete else slice(None) for axis in self.axes)
        is_mean = self.kind == "MEAN"
        storage = {
            (False, False): bh.storage.Double,
            (False, True): bh.storage.Weight,
            (True, False): bh.storage.Mean,
            (True, True): bh.storage.WeightedMean,
        }[is_mean, self.is_weighted]()
        made = bh.Histogram(*map(axis, self.axes), storage=storage)
        view = made.view(flow=True)
        values, counts = self.values(flow=True)[inside], self.counts(flow=True)[inside]
        if not is_mean:
            if self.is_weighted:
                view["value"], view["variance"] = values, self.variances(flow=True)[inside]
            else:
                view[...] = values
            return made
        sums = self._shaped(self._members["fBinEntries"], True)[inside]
        deltas = self._shaped(self._members["fSumw2"], True)[inside] - sums * values * values
        view["value"] = values
        if self.is_weighted:
            view["sum_of_weights"] = sums
            view["sum_of_weights_squared"] = self._shaped(self._members["fBinSumw2"], True)[inside]
            view["_sum_of_weighted_deltas_squared"] = deltas
        else:
            view["count"], view["_sum_of_deltas_squared"] = counts, deltas
        return made

    def to_hist(self) -> Any:
        """The histogram as a `hist.Hist`, with underflow and overflow.

        Raises `ImportError` if the package hist cannot be loaded.
        """
        hist = optional.load("hist", "to_hist()", "hist")
        made = hist.Hist(self.to_boost(), name=self.name, label=self.title)
        for to, axis in zip(made.axes, self.axes, strict=True):
            to.label = axis.title
        return made

    def __repr__(self) -> str:
        bins = " x ".join(str(len(axis)) for axis in self.axes)
        return f"<tupelo.Histogram {self.name!r}: {self.class_name}, {bins} bins, {self.num_entries:g} entries>"

    def _shaped(self, flat: Numbers, flow: bool) -> Numbers:
        # In ROOT the bins of the x axis are contiguous.
        shape = tuple(len(axis) + 2 for axis in self.axes)
        shaped: Numbers = np.reshape(flat, shape[::-1]).T
        return shaped if flow else shaped[(slice(1, -1),) * len(shape)]


def of(instance: Any) -> Histogram:
    """The histogram in an `Instance` of a class in `DIMENSIONS`.

    Raises `CorruptError` if its members contradict each other, and `UnsupportedError` if its entries are not in bins
    yet.
    """
    name = instance.class_name
    stored = {axis: member(instance, axis) for axis in AXES[: DIMENSIONS[name]]}
    # Before edges are made: a number of bins is nothing that the file has to hold.
    cells = math.prod(max(member(axis, "fNbins"), 0) + 2 for axis in stored.values())
    is_profile = name.startswith("TProfile")
    for array in ("fArray", "fBinEntries") if is_profile else ("fArray",):
        check_length(instance, array, cells)
    for array in ("fSumw2", "fBinSumw2") if is_profile else ("fSumw2",):
        if (is_profile and array == "fSumw2") or len(instance.get(array, ())) > 0:
            check_length(instance, array, cells)
    axes = tuple(_axis(axis, place) for place, axis in stored.items())
    for text in ("fName", "fTitle"):
        _text(member(instance, text))
    float(member(instance, "fEntries"))
    if _is_buffering(instance):
        raise UnsupportedError(
            f"{name}: its entries are still in a buffer, as its axes have no range yet; call BufferEmpty() in ROOT "
            "before it is written"
        )
    return Histogram(instance, name, axes)


def member(instance: Any, name: str) -> Any:
    """A member of an `Instance`. Raises `CorruptError` if it does not exist or could not be decoded."""
    if name not in instance:
        raise CorruptError(f"{instance.class_name} without the member {name}")
    value = instance[name]
    if (reason := getattr(value, "reason", None)) is not None:
        raise CorruptError(f"{instance.class_name}: {name} cannot be read: {reason}")
    return value


def check_length(instance: Any, name: str, length: int) -> None:
    """Raises `CorruptError` if an array of an `Instance` has another length."""
    found = member(instance, name)
    if not isinstance(found, np.ndarray) or len(found) != length:
        items = f"{len(found)} items" if isinstance(found, np.ndarray) else "no items"
        raise CorruptError(f"{instance.class_name}: {name} has {items}, expected {length}")


def _is_buffering(instance: Any) -> bool:
    """Whether entries are still buffered because the range of the histogram is undetermined."""
    buffer = instance.get("fBuffer")
    return buffer is not None and len(buffer) > 0 and buffer[0] != 0


def _axis(stored: Any, name: str) -> Axis:
    bins, edges = member(stored, "fNbins"), member(stored, "fXbins")
    is_regular = len(edges) == 0
    if bins < 1 or not (is_regular or len(edges) == bins + 1):
        raise CorruptError(f"{name} has {bins} bins and {len(edges)} edges")
    if is_regular:
        edges = np.linspace(member(stored, "fXmin"), member(stored, "fXmax"), bins + 1)
    labels: list[str | None] = []
    if stored.get("fLabels"):
        labels = [None] * bins
        for label in stored.stored("fLabels").stored("fObjects"):
            # Labels hold the numbers of their bins, which start at 1.
            number = label.stored("fUniqueID")
            if 1 <= number <= bins:
                labels[number - 1] = _text(label.stored("fString"))
    return Axis(_text(member(stored, "fTitle")), edges, is_regular, labels)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
