"""The distributions of the numbers in any ntuple: a line each in the terminal, and a picture.

    python examples/distributions.py FILE:NTUPLE   # or FILE, for the largest ntuple in it

Drawn are numeric fields that vary, floating-point numbers first; of collections, all items.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import hist
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure
from plotting import axis_for, draw, line

import tupelo

MOST_DRAWN, MOST_TRIED = 9, 60
STEP = 100_000
"""Entries that are read at once; the first ones decide the range."""


def numbers(fields: Any, above: str = "") -> Iterator[tuple[bool, str]]:
    """Whether it is an integer, and the path, of each number below Arrow fields."""
    for field in fields:
        kind, path = field.type, above + field.name
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        if isinstance(kind, pa.StructType):
            yield from numbers(kind, f"{path}.")
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            yield pa.types.is_integer(kind), path


def values(path: str, start: int) -> Any:
    """The finite values of a field in the entries from ``start`` on, as one flat NumPy array."""
    array = ntuple[path].array(start, start + STEP, library="arrow")
    while hasattr(array.type, "value_type"):
        array = pc.list_flatten(array)
    flat = array.drop_null().to_numpy(zero_copy_only=False).astype(float)
    return flat[np.isfinite(flat)]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", help="FILE or FILE:NTUPLE")
parser.add_argument("--output", default="distributions.png", help="where the picture goes")
arguments = parser.parse_args()
ntuple = tupelo.open(arguments.file)
if isinstance(ntuple, tupelo.File):
    if not len(ntuple):
        held = ", ".join(f"{name} ({kind})" for name, kind in ntuple.classnames().items()) or "nothing"
        raise SystemExit(f"{arguments.file} holds no RNTuple to draw. It holds: {held}")
    ntuple = max(ntuple.values(), key=lambda one: one.num_entries * len(one.keys(recursive=False)))
histograms: list[Any] = []
for is_integer, path in sorted(numbers(ntuple.arrow_schema))[:MOST_TRIED]:
    axis = axis_for(values(path, 0), is_integer, path)
    if axis is not None and len(histograms) < MOST_DRAWN:
        histograms.append(hist.Hist(axis))
        for start in range(0, ntuple.num_entries, STEP):
            histograms[-1].fill(values(path, start))
if not histograms:
    raise SystemExit(
        f"ntuple '{ntuple.name}', {ntuple.num_entries} entries, has no number that varies: nothing to draw"
    )
print("\n".join(map(line, histograms)))
print(f"{len(histograms)} numeric fields of ntuple '{ntuple.name}', {ntuple.num_entries} entries")
rows = -(-len(histograms) // 3)
figure = Figure(figsize=(12, 3.2 * rows), layout="constrained")
for axes, histogram in zip(figure.subplots(rows, 3, squeeze=False).flat, histograms, strict=False):
    draw(axes, histogram, "values")
figure.suptitle(f"{ntuple.name}: {ntuple.num_entries} entries")
figure.savefig(arguments.output, dpi=150)
