"""ROOT graphs: points with errors."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError
from ._histogram import StoredObject, check_length, member

Numbers = npt.NDArray[Any]

_ERRORS: dict[str, dict[str, tuple[str, str]]] = {
    "TGraph": {},
    "TGraphErrors": {"x": ("fEX", "fEX"), "y": ("fEY", "fEY")},
    "TGraphAsymmErrors": {"x": ("fEXlow", "fEXhigh"), "y": ("fEYlow", "fEYhigh")},
}
"""For each class, the members with the errors below and above the points."""

CLASSES = tuple(_ERRORS)
"""The classes of graphs."""

_AXES = {"x": "x", 0: "x", -2: "x", "y": "y", 1: "y", -1: "y"}


class Graph(StoredObject):
    """Points in a plane, with or without errors: ``TGraph``, ``TGraphErrors`` and ``TGraphAsymmErrors``.

    ``axis`` is ``"x"`` (or 0), ``"y"`` (or 1), or ``"both"`` for a pair of arrays. All arrays have one item for each
    point.
    """

    def __len__(self) -> int:
        """The number of points."""
        return int(self._members["fNpoints"])

    def values(self, axis: Literal["x", "y", "both"] | int = "both") -> Any:
        """Coordinates of the points: those of one ``axis``, or the pair of both.

        Raises `InvalidArgumentError` for other axes.
        """
        if axis == "both":
            return self.values("x"), self.values("y")
        return self._numbers("f" + _axis(axis).upper())

    def errors(
        self, which: Literal["low", "high", "mean", "diff"] = "mean", axis: Literal["x", "y", "both"] | int = "both"
    ) -> Any:
        """Errors of the points: below (``"low"``) and above them (``"high"``), their mean, or how much larger the upper
        error is (``"diff"``), by ``which``. They are 0 for a ``TGraph``. ``axis`` is that of `values`.

        Raises `InvalidArgumentError` for other arguments.
        """
        if which not in ("low", "high", "mean", "diff"):
            raise InvalidArgumentError(f"errors of a graph are 'low', 'high', 'mean' or 'diff', not {which!r}")
        if axis == "both":
            return self.errors(which, "x"), self.errors(which, "y")
        names = _ERRORS[self.class_name].get(_axis(axis))
        if names is None:
            return np.zeros(len(self))
        low, high = map(self._numbers, names)
        match which:
            case "low":
                return low
            case "high":
                return high
            case "mean":
                return (high + low) / 2
        return high - low

    def __repr__(self) -> str:
        return f"<tupelo.Graph {self.name!r}: {self.class_name}, {len(self)} points>"

    def _numbers(self, name: str) -> Numbers:
        # A graph without points stores no arrays.
        numbers: Numbers = self._members[name] if len(self) else np.empty(0)
        return numbers


def of(instance: Any) -> Graph:
    """The graph in an `Instance` of a class in `CLASSES`.

    Raises `CorruptError` if an array does not have one number for each point.
    """
    points = member(instance, "fNpoints")
    for name in ("fX", "fY", *{name for pair in _ERRORS[instance.class_name].values() for name in pair}):
        if points or member(instance, name) is not None:
            check_length(instance, name, points)
    return Graph(instance, instance.class_name)


def _axis(axis: Any) -> str:
    if axis not in _AXES:
        raise InvalidArgumentError(f"the axis of a graph is 'x', 'y' or 'both', not {axis!r}")
    return _AXES[axis]
