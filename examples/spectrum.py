"""Histograms in the terminal and as pictures, for the examples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

BARS = " ▏▎▍▌▋▊▉█"
WIDTH = 60


def draw(counts: Any, edges: Any, unit: str, marks: Mapping[str, float] | None = None) -> None:
    """Prints one line per bin: its lower edge, a bar, its count, and what is known to be there."""
    most = max(int(counts.max()), 1)
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        eighths = round(int(count) * WIDTH * 8 / most)
        bar = BARS[8] * (eighths // 8) + BARS[eighths % 8].strip()
        names = ", ".join(name for name, value in (marks or {}).items() if low <= value < high)
        print(f"{low:9.4g} {unit} {bar} {count}{f'  ← {names}' if names else ''}")


def save(path: Path, counts: Any, edges: Any, axis: str, title: str, *, logarithmic: bool = False) -> None:
    """Saves a picture, or says why there is none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"\nno picture: matplotlib is not installed (pip install matplotlib), so {path} is not drawn")
        return
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(counts, edges, fill=True, color="#4c72b0")
    axes.set(xlabel=axis, ylabel="entries", title=title, xlim=(edges[0], edges[-1]))
    if logarithmic:
        axes.set_xscale("log")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nsaved {path}")
