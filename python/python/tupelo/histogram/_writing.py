"""Histograms of any library as the members of ROOT's classes."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _core
from .._base.messages import short_repr
from ..errors import InvalidArgumentError, TupeloWarning, UnsupportedError
from ._histogram import AXES, DIMENSIONS, Histogram

Numbers = npt.NDArray[Any]
Members = dict[str, Any]

_MAX_EXACT = 2**53
"""The largest integer up to which a double holds all integers."""

_LETTERS = {"int8": "C", "int16": "S", "int32": "I", "float32": "F", "float64": "D"}
"""The letters of the classes for types of bins."""

_PROFILES = ("TProfile", "TProfile2D", "TProfile3D")
_VALUE_AXES = "yzt"
"""For profiles of one, two and three dimensions the letter of the averaged values in names of members."""

# What ROOT's constructors set (`TH1.cxx`, `TAttAxis.cxx`); all other members are 0 or empty.
_DEFAULTS: Members = {
    "fLineColor": 602,
    "fLineStyle": 1,
    "fLineWidth": 1,
    "fFillStyle": 1001,
    "fMarkerColor": 1,
    "fMarkerStyle": 1,
    "fMarkerSize": 1.0,
    "fBarWidth": 1000,
    "fMaximum": -1111.0,
    "fMinimum": -1111.0,
    "fStatOverflows": 2,
}
_AXIS_DEFAULTS: Members = {
    "fNdivisions": 510,
    "fAxisColor": 1,
    "fLabelColor": 1,
    "fLabelFont": 42,
    "fLabelOffset": 0.005,
    "fLabelSize": 0.035,
    "fTickLength": 0.03,
    "fTitleOffset": 1.0,
    "fTitleSize": 0.035,
    "fTitleColor": 1,
    "fTitleFont": 42,
}
# Members of a histogram that was read which are written again, if it has them; those of axes.
_KEPT = (
    *_DEFAULTS,
    *(
        "fBits",
        "fTitle",
        "fFillColor",
        "fBarOffset",
        "fEntries",
        "fNormFactor",
        "fContour",
        "fOption",
        "fBinStatErrOpt",
    ),
    *("fTsumw", "fTsumw2", "fTsumwx", "fTsumwx2", "fTsumwy", "fTsumwy2", "fTsumwxy", "fTsumwz", "fTsumwz2", "fTsumwxz"),
    *("fTsumwyz", "fTsumwt", "fTsumwt2", "fScalefactor", "fErrorMode", "fYmin", "fYmax", "fZmin", "fZmax", "fTmin"),
    *("fTmax", "fSumw2", "fBinEntries", "fBinSumw2"),
)
_KEPT_OF_AXES = (
    *_AXIS_DEFAULTS,
    *("fBits", "fName", "fTitle", "fNbins", "fXmin", "fXmax", "fXbins", "fFirst", "fLast", "fBits2", "fTimeDisplay"),
    "fTimeFormat",
)


def is_histogram(data: Any) -> bool:
    """Whether data are a histogram: one that was read, one that follows UHI, or the results of ``numpy.histogram``,
    ``numpy.histogram2d`` and ``numpy.histogramdd``.
    """
    return isinstance(data, Histogram) or _is_plottable(data) or _numpy_edges(data) is not None


def write(core: "_core.FileWriter", path: str, data: Any, compression: str | None) -> None:
    """Writes a histogram, compressed as ntuples are.

    Raises `InvalidArgumentError` and `UnsupportedError` for one that ROOT's classes cannot hold.
    """
    try:
        class_name, members = _members(data)
    except (InvalidArgumentError, UnsupportedError) as error:
        raise type(error)(f"histogram '{path}': {error}") from None
    members["fName"] = path.rpartition("/")[2]
    core.histogram(path, title=str(members["fTitle"]), class_name=class_name, members=members, compression=compression)


def _is_plottable(data: Any) -> bool:
    return all(hasattr(data, name) for name in ("kind", "axes")) and callable(getattr(data, "values", None))


def _numpy_edges(data: Any) -> list[Numbers] | None:
    """The edges in the result of a function of NumPy; None for anything else."""
    if not isinstance(data, tuple) or len(data) < 2 or not isinstance(data[0], np.ndarray):
        return None
    given: Sequence[Any] = data[1] if len(data) == 2 and isinstance(data[1], list | tuple) else data[1:]
    if not all(isinstance(edges, np.ndarray) and edges.ndim == 1 for edges in given):
        return None
    is_one = data[0].shape == tuple(len(edges) - 1 for edges in given)
    return list(given) if is_one else None


def _members(data: Any) -> tuple[str, Members]:
    """The class and the members of a histogram, without its name."""
    if isinstance(data, Histogram):
        return _of_read(data)
    if (edges := _numpy_edges(data)) is not None:
        _check_dimensions(len(edges))
        axes = [_axis_members(name, bins, [], "") for name, bins in zip("xyz", edges, strict=False)]
        return _counts(axes, edges, np.pad(data[0], 1), None, "")
    _check_dimensions(len(data.axes))
    made = [_axis_of(axis, number) for number, axis in enumerate(data.axes)]
    axes = [_axis_members(name, *parts) for name, parts in zip("xyz", made, strict=False)]
    edges = [edges for edges, _, _ in made]
    title = _first_text(data, "title", "label")
    storage = getattr(getattr(data, "storage_type", None), "__name__", "")
    if storage in ("Mean", "WeightedMean"):
        view = data.view(flow=True)
        weights = view["count"] if storage == "Mean" else view["sum_of_weights"]
        name = "_sum_of_deltas_squared" if storage == "Mean" else "_sum_of_weighted_deltas_squared"
        sums = weights * view["value"]
        sums_and_squares = [weights, sums, view[name] + sums * view["value"]]
        if storage == "WeightedMean":
            sums_and_squares.append(view["sum_of_weights_squared"])
        return _profile(axes, edges, [_with_flow(part, data.axes) for part in sums_and_squares], title)
    if data.kind == "MEAN":
        weights, means, variances = (
            np.nan_to_num(_with_flow(_flowing(data, name), data.axes)) for name in ("counts", "values", "variances")
        )
        squares = weights * (variances * weights + means * means)
        return _profile(axes, edges, [weights, weights * means, squares], title)
    if data.kind != "COUNT":
        raise UnsupportedError(f"its kind is {short_repr(data.kind)}; expected COUNT or MEAN")
    values, variances = _flowing(data, "values"), _flowing(data, "variances")
    is_weighted = storage == "Weight" or (
        variances is not None and not np.array_equal(np.abs(values), np.abs(variances))
    )
    squares = _with_flow(np.asarray(variances), data.axes) if is_weighted else None
    return _counts(axes, edges, _with_flow(np.asarray(values), data.axes), squares, title)


def _check_dimensions(count: int) -> None:
    if not 1 <= count <= 3:
        raise UnsupportedError(f"it has {count} axes; ROOT's histograms have one to three")


def _flowing(data: Any, name: str) -> Any:
    """Values, variances or counts with underflow and overflow, if the histogram has them."""
    function = getattr(data, name)
    try:
        return function(flow=True)
    except TypeError:
        return function()


def _with_flow(values: Numbers, axes: Any) -> Numbers:
    """An array with underflow and overflow for all axes; those that the histogram does not have are 0."""
    widths = []
    for extent, axis in zip(values.shape, axes, strict=True):
        missing = len(axis) + 2 - extent
        # Of one flow bin, the axis says which it is.
        has_underflow = missing == 0 or (missing == 1 and getattr(axis.traits, "underflow", False))
        widths.append((int(not has_underflow), missing - int(not has_underflow)))
    if any(min(pair) < 0 for pair in widths):
        bins = " x ".join(str(len(axis)) for axis in axes)
        raise InvalidArgumentError(f"its values have the shape {values.shape}, but its axes have {bins} bins")
    return np.pad(values, widths)


def _counts(
    axes: list[Members], edges: list[Numbers], values: Numbers, variances: Numbers | None, title: str
) -> tuple[str, Members]:
    """A `TH1`, `TH2` or `TH3` of values and variances with underflow and overflow."""
    letter, values = _bins(values)
    sums = values.astype(np.float64)
    squares = sums if variances is None else variances
    members = _common(axes, title)
    members |= _statistics(sums, squares, edges)
    members["fArray"] = _flat(values)
    if variances is not None:
        members["fSumw2"] = _flat(variances.astype(np.float64))
    # As ROOT does for a histogram whose bins were set.
    inside, squares_inside = members["fTsumw"], members["fTsumw2"]
    members["fEntries"] = float(sums.sum())
    if variances is not None:
        members["fEntries"] = inside * inside / squares_inside if squares_inside > 0 else 0.0
    if len(axes) == 2:
        members["fScalefactor"] = 1.0
    return f"TH{len(axes)}{letter}", members


def _bins(values: Numbers) -> tuple[str, Numbers]:
    """The letter of the class that holds values exactly, and the values in its type."""
    if values.dtype.kind not in "biuf":
        raise InvalidArgumentError(f"its values have the type {values.dtype}; expected numbers")
    if (letter := _LETTERS.get(values.dtype.name)) is not None:
        return letter, values
    if values.dtype.kind == "f":
        return "D", values.astype(np.float64)
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if largest < 2**31:
        return "I", values.astype(np.int32)
    if largest > _MAX_EXACT:
        raise UnsupportedError(
            f"it has a bin of {largest}, which no class of ROOT holds exactly; convert it to doubles"
        )
    return "D", values.astype(np.float64)


def _profile(axes: list[Members], edges: list[Numbers], sums: list[Numbers], title: str) -> tuple[str, Members]:
    """A `TProfile` of the sums of weights, of weighted values, of their weighted squares and, for weighted entries, of
    squared weights, with underflow and overflow.
    """
    weights, values, squares = (part.astype(np.float64) for part in sums[:3])
    squared_weights = sums[3] if len(sums) > 3 else weights
    members = _common(axes, title)
    members |= _statistics(weights, squared_weights, edges)
    inside = (slice(1, -1),) * len(axes)
    letter = _VALUE_AXES[len(axes) - 1]
    members[f"fTsumw{letter}"] = float(values[inside].sum())
    members[f"fTsumw{letter}2"] = float(squares[inside].sum())
    members |= {"fArray": _flat(values), "fSumw2": _flat(squares), "fBinEntries": _flat(weights)}
    members["fEntries"] = float(weights.sum())
    if len(sums) > 3:
        members["fBinSumw2"] = _flat(squared_weights.astype(np.float64))
        total, squared = members["fTsumw"], members["fTsumw2"]
        members["fEntries"] = total * total / squared if squared > 0 else 0.0
    if len(axes) == 2:
        members["fScalefactor"] = 1.0
    return _PROFILES[len(axes) - 1], members


def _common(axes: list[Members], title: str) -> Members:
    others = [_axis_members(name, np.array([0.0, 1.0]), [], "") for name in "xyz"[len(axes) :]]
    cells = math.prod(axis["fNbins"] + 2 for axis in axes)
    members = {name: ("TAxis", axis) for name, axis in zip(AXES, axes + others, strict=True)}
    return _DEFAULTS | {"fTitle": title, "fNcells": cells} | members


def _statistics(weights: Numbers, squared_weights: Numbers, edges: list[Numbers]) -> Members:
    """The sums from which ROOT computes means and standard deviations, with the centres of the bins."""
    inside = (slice(1, -1),) * len(edges)
    weights = weights[inside]
    centres = np.meshgrid(*((of[1:] + of[:-1]) / 2 for of in edges), indexing="ij")
    sums = {"fTsumw": weights, "fTsumw2": squared_weights[inside]}
    for index, (name, centre) in enumerate(zip("xyz", centres, strict=False)):
        sums |= {f"fTsumw{name}": weights * centre, f"fTsumw{name}2": weights * centre * centre}
        for before, other in zip("xyz"[:index], centres, strict=False):
            sums[f"fTsumw{before}{name}"] = weights * other * centre
    return {name: float(of.sum()) for name, of in sums.items()}


def _axis_of(axis: Any, number: int) -> tuple[Numbers, list[str | None], str]:
    """The edges, the labels and the title of an axis of UHI."""
    if len(axis) == 0:
        raise InvalidArgumentError(f"axis {number} has no bins")
    title = _axis_title(axis)
    items = list(axis)
    if axis.traits.discrete:
        if all(isinstance(item, int | np.integer) for item in items) and (np.diff([int(i) for i in items]) == 1).all():
            return np.arange(int(items[0]), int(items[-1]) + 2, dtype=np.float64), [], title
        return np.arange(len(items) + 1, dtype=np.float64), [str(item) for item in items], title
    edges = getattr(axis, "edges", None)
    edges = edges() if callable(edges) else edges
    if edges is None:
        edges = [low for low, _ in items] + [items[-1][1]]
    edges = np.asarray(edges, dtype=np.float64)
    if len(edges) != len(items) + 1:
        raise InvalidArgumentError(f"axis {number} has {len(items)} bins and {len(edges)} edges")
    return edges, [], title


def _axis_title(axis: Any) -> str:
    # The axes of uproot have the members of ROOT.
    if hasattr(axis, "all_members"):
        return str(axis.all_members["fTitle"])
    return _first_text(axis, "label", "title", "name", "metadata")


def _first_text(of: Any, *names: str) -> str:
    """The first attribute that is a text."""
    texts = (getattr(of, name, None) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _axis_members(name: str, edges: Numbers, labels: Sequence[str | None], title: str) -> Members:
    """The members of a `TAxis`. Bins of equal width have no edges of their own."""
    edges = edges.astype(np.float64)
    if not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise InvalidArgumentError(f"the edges of its {name} axis are not increasing finite numbers")
    regular = np.linspace(edges[0], edges[-1], len(edges))
    is_regular = np.abs(edges - regular).max() <= 1e-12 * (edges[-1] - edges[0])
    return _AXIS_DEFAULTS | {
        "fName": f"{name}axis",
        "fTitle": title,
        "fNbins": len(edges) - 1,
        "fXmin": float(edges[0]),
        "fXmax": float(edges[-1]),
        "fXbins": pa.array(edges[:0] if is_regular else edges),
        "fLabels": _labels(labels),
    }


def _labels(labels: Sequence[str | None]) -> Any:
    """The labels of an axis, which hold the numbers of their bins."""
    made = [
        ("TObjString", {"fString": label, "fUniqueID": number})
        for number, label in enumerate(labels, 1)
        if label is not None
    ]
    return ("THashList", {"fObjects": made}) if made else None


def _flat(values: Numbers) -> pa.Array:
    """The bins in ROOT's order, in which those of the x axis are contiguous."""
    return pa.array(np.ascontiguousarray(values.T).reshape(-1))


def _of_read(data: Histogram) -> tuple[str, Members]:
    """A histogram that was read, with the attributes that it had."""
    stored, name = data.members, data.class_name
    members = _DEFAULTS | _kept(stored, _KEPT)
    bins = stored["fArray"]
    if name.endswith("L"):
        letter, bins = _bins(bins)
        name = name[:-1] + letter
    members |= {"fNcells": len(bins), "fArray": pa.array(np.ascontiguousarray(bins))}
    if stored.get("fFunctions"):
        text = f"histogram '{data.name}': the functions and other objects attached to it are not written"
        warnings.warn(text, TupeloWarning, stacklevel=5)
    for number, axis in enumerate(AXES):
        members[axis] = ("TAxis", _AXIS_DEFAULTS | _kept(stored[axis], _KEPT_OF_AXES))
        if number < DIMENSIONS[data.class_name]:
            members[axis][1]["fLabels"] = _labels(data.axes[number].labels)
    return name, members


def _kept(stored: Mapping[str, Any], names: Sequence[str]) -> Members:
    """Members as they were stored."""
    kept = {name: stored[name] for name in names if name in stored}
    return {name: pa.array(value) if isinstance(value, np.ndarray) else value for name, value in kept.items()}
