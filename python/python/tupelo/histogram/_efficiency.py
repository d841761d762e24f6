"""ROOT efficiencies: the part of the entries that passed a selection, in bins."""

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CorruptError, UnsupportedError
from . import _histogram
from ._histogram import Axis, Histogram, StoredObject

Numbers = npt.NDArray[Any]

CLASS = "TEfficiency"

# `TEfficiency::EStatOption`.
_STATISTICS = (
    "Clopper-Pearson",
    "normal",
    "Wilson",
    "Agresti-Coull",
    "Feldman-Cousins",
    "Bayesian with Jeffreys prior",
    "Bayesian with uniform prior",
    "Bayesian",
    "mid-P Lancaster",
)
# Bits of the `TObject`: `TEfficiency::EStatusBits`.
_POSTERIOR_MODE, _SHORTEST_INTERVAL, _BIN_PRIORS, _WEIGHTS = 1 << 15, 1 << 16, 1 << 17, 1 << 18


class Efficiency(StoredObject):
    """The part of the entries that passed a selection, in the bins of one to three axes: a ``TEfficiency``.

    Arrays have the shape of the axes; ``flow`` adds two bins to each axis, underflow first and overflow last.
    """

    def __init__(self, members: Mapping[str, Any], passed: Histogram, total: Histogram) -> None:
        super().__init__(members, CLASS)
        self.passed = passed
        """The histogram of the entries that passed."""
        self.total = total
        """The histogram of all entries."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Its axes, x first."""
        return self.total.axes

    @property
    def statistic(self) -> str:
        """The method of the `errors`: ``"Clopper-Pearson"``, ``"normal"``, ``"Wilson"``, ``"Agresti-Coull"``,
        ``"Feldman-Cousins"``, ``"Bayesian with Jeffreys prior"``, ``"Bayesian with uniform prior"``, ``"Bayesian"`` or
        ``"mid-P Lancaster"``.
        """
        return _STATISTICS[self._members["fStatisticOption"]]

    @property
    def confidence_level(self) -> float:
        """The probability of the intervals that the `errors` span, such as 0.683."""
        return float(self._members["fConfLevel"])

    @property
    def is_weighted(self) -> bool:
        """Whether entries had weights."""
        return self._has(_WEIGHTS)

    def values(self, flow: bool = False) -> Numbers:
        """The efficiencies: passed entries divided by all entries, and 0 where there are none. With a Bayesian
        statistic they are the means or, if that option is set, the modes of the posterior distributions.
        ``flow`` adds underflow and overflow.

        Raises `UnsupportedError` for priors that differ between bins, and Bayesian statistics of weighted entries.
        """
        passed, total = self._counts(flow)
        if not self.statistic.startswith("Bayesian"):
            return np.divide(passed, total, out=np.zeros_like(total), where=total != 0)
        a, b = self._posterior(passed, total)
        if not self._has(_POSTERIOR_MODE):
            mean: Numbers = a / (a + b)
            return mean
        # As in ROOT, at the edge where the density has no maximum inside.
        with np.errstate(divide="ignore", invalid="ignore"):
            mode = np.select(
                [(a <= 1) & (b > 1), (a > 1) & (b <= 1), (a < 1) & (b < 1), (a <= 1) & (b <= 1)],
                [0.0, 1.0, np.where(a < b, 0.0, np.where(a > b, 1.0, 0.5)), 0.5],
                (a - 1) / (a + b - 2),
            )
        result: Numbers = mode
        return result

    def errors(self, flow: bool = False) -> tuple[Numbers, Numbers]:
        """Distances of the `values` to the lower and the upper end of their intervals. ``flow`` is that of `values`.

        Raises `UnsupportedError` for the statistics Feldman-Cousins and mid-P Lancaster, the shortest intervals, priors
        that differ between bins, and weighted entries.
        """
        values = self.values(flow)
        low, high = self._interval(*self._counts(flow))
        return values - low, high - values

    def __repr__(self) -> str:
        bins = " x ".join(str(len(axis)) for axis in self.axes)
        return f"<tupelo.Efficiency {self.name!r}: {bins} bins, {self.statistic}>"

    def _has(self, bit: int) -> bool:
        return bool(self._members["fBits"] & bit)

    def _counts(self, flow: bool) -> tuple[Numbers, Numbers]:
        return self.passed.values(flow).astype(np.float64), self.total.values(flow).astype(np.float64)

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"efficiency '{self.name}': {what} are not supported; compute them from the histograms passed and total"
        )

    def _posterior(self, passed: Numbers, total: Numbers) -> tuple[Numbers, Numbers]:
        """The parameters of the beta distributions of the efficiencies."""
        if self.is_weighted:
            raise self._unsupported(f"values of the statistic '{self.statistic}' of weighted entries")
        if self._has(_BIN_PRIORS):
            raise self._unsupported("priors that differ between bins")
        match self.statistic:
            case "Bayesian with Jeffreys prior":
                alpha = beta = 0.5
            case "Bayesian with uniform prior":
                alpha = beta = 1.0
            case _:
                alpha, beta = self._members["fBeta_alpha"], self._members["fBeta_beta"]
        return passed + alpha, total - passed + beta

    def _interval(self, passed: Numbers, total: Numbers) -> tuple[Numbers, Numbers]:
        if self.is_weighted:
            raise self._unsupported("errors of weighted entries")
        tail = (1 - self.confidence_level) / 2
        match self.statistic:
            case "Clopper-Pearson":
                low = _beta_quantile(tail, passed, total - passed + 1)
                high = _beta_quantile(1 - tail, passed + 1, total - passed)
                return low, high
            case "normal" | "Wilson" | "Agresti-Coull" as method:
                return _approximate_interval(method, NormalDist().inv_cdf(1 - tail), passed, total)
            case method if method.startswith("Bayesian"):
                if self._has(_SHORTEST_INTERVAL):
                    raise self._unsupported("shortest intervals")
                a, b = self._posterior(passed, total)
                return _beta_quantile(tail, a, b), _beta_quantile(1 - tail, a, b)
            case method:
                raise self._unsupported(f"errors of the statistic '{method}'")


def of(instance: Any) -> Efficiency:
    """The efficiency in an `Instance` of the class `CLASS`.

    Raises `CorruptError` if its members contradict each other, and `UnsupportedError` for histograms of other classes
    and unknown statistics.
    """
    parts = []
    for name in ("fPassedHistogram", "fTotalHistogram"):
        part = instance.stored(name) if name in instance else None
        if part is None:
            raise CorruptError(f"{CLASS} without the histogram {name}")
        if part.class_name not in _histogram.DIMENSIONS:
            raise UnsupportedError(f"{CLASS}: {name} is a {part.class_name}")
        parts.append(_histogram.of(part))
    passed, total = parts
    if passed.axes != total.axes:
        raise CorruptError(f"{CLASS}: its two histograms have different bins")
    option = _histogram.member(instance, "fStatisticOption")
    if not 0 <= option < len(_STATISTICS):
        raise UnsupportedError(f"{CLASS}: the statistic {option} is unknown")
    return Efficiency(instance, passed, total)


def _approximate_interval(method: str, width: float, passed: Numbers, total: Numbers) -> tuple[Numbers, Numbers]:
    """Intervals that extend ``width`` standard deviations to both sides, cut at 0 and 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = passed / total
        more = total + width * width
        centre = share if method == "normal" else (passed + width * width / 2) / more
        match method:
            case "normal":
                half = width * np.sqrt(share * (1 - share) / total)
            case "Wilson":
                half = width / more * np.sqrt(total * share * (1 - share) + width * width / 4)
            case _:
                half = width * np.sqrt(centre * (1 - centre) / more)
        low = np.where(total == 0, 0.0, np.maximum(centre - half, 0))
        high = np.where(total == 0, 1.0, np.minimum(centre + half, 1))
    return low, high


def _beta_quantile(probability: float, a: Numbers, b: Numbers) -> Numbers:
    """The values below which beta distributions have a probability; 0 where ``a`` is 0, and 1 where ``b`` is 0."""
    is_inside = (a > 0) & (b > 0)
    result = np.where(a <= 0, 0.0, 1.0)
    a, b = a[is_inside], b[is_inside]
    low, high = np.zeros(len(a)), np.ones(len(a))
    while len(a):
        middle = (low + high) / 2
        if ((middle == low) | (middle == high)).all():
            break
        is_below = _beta_probability(middle, a, b) < probability
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    result[is_inside] = (low + high) / 2
    return result


_LOG_GAMMA: Callable[[Numbers], Numbers] = np.vectorize(math.lgamma, otypes=[np.float64])


def _beta_probability(x: Numbers, a: Numbers, b: Numbers) -> Numbers:
    """The probability of a beta distribution below ``x``: the regularized incomplete beta function.

    See https://dlmf.nist.gov/8.17.E22; the continued fraction converges fast below the mean, and above it the other
    tail is computed.
    """
    is_upper = x > (a + 1) / (a + b + 2)
    x, a, b = np.where(is_upper, 1 - x, x), np.where(is_upper, b, a), np.where(is_upper, a, b)
    with np.errstate(divide="ignore"):
        log_front = a * np.log(x) + b * np.log1p(-x) + _LOG_GAMMA(a + b) - _LOG_GAMMA(a) - _LOG_GAMMA(b)
    tail: Numbers = np.exp(log_front) / a * _continued_fraction(x, a, b)
    probability: Numbers = np.where(is_upper, 1 - tail, tail)
    return probability


def _continued_fraction(x: Numbers, a: Numbers, b: Numbers) -> Numbers:
    """Lentz's algorithm. The number of steps grows with the square root of the larger parameter."""
    tiny = 1e-300

    def nonzero(value: Numbers) -> Numbers:
        return np.where(np.abs(value) < tiny, tiny, value)

    numerator = np.ones_like(x)
    denominator = 1 / nonzero(1 - (a + b) * x / (a + 1))
    result = denominator
    for step in range(1, 100_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            denominator = 1 / nonzero(1 + term * denominator)
            numerator = nonzero(1 + term / numerator)
            change = numerator * denominator
            result = result * change
        if (np.abs(change - 1) < 1e-15).all():
            break
    return result
