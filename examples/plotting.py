"""What the examples share: histograms that fit the terminal, and plots with errors and labels."""

import shutil
from typing import Any

import hist
import numpy as np

OTHER_LINES = 9
"""Lines of the terminal that are not bins: frame, underflow, overflow, title, and what is printed after the plot."""
BARS = " ▁▂▃▄▅▆▇█"


def axis_for(sample: Any, is_integer: bool, label: str) -> Any:
    """An axis that holds nearly all of the sample; None where all values are the same."""
    low, high = np.percentile(sample, (0.5, 99.5) if len(sample) > 1000 else (0, 100)) if len(sample) else (0, 0)
    if is_integer and 0 < np.ptp(sample) <= 40:
        return hist.axis.Regular(int(np.ptp(sample)) + 1, sample.min() - 0.5, sample.max() + 0.5, label=label)
    return hist.axis.Regular(40, low, high + (high - low) / 1000, label=label) if low < high else None


def fitted(histogram: Any) -> Any:
    """The histogram with neighbouring bins merged until it fits the height of the terminal, or 24 lines."""
    bins, most = len(histogram.axes[0]), max(4, shutil.get_terminal_size().lines - OTHER_LINES)
    if bins <= most or isinstance(histogram.axes[0], hist.axis.Integer):
        return histogram
    return histogram[:: hist.rebin(next(n for n in range(2, bins + 1) if bins % n == 0 and bins / n <= most))]


def line(histogram: Any) -> str:
    """A histogram in one line of the terminal: its label, its range, and a bar for each bin."""
    counts, edges, label = histogram.values(), histogram.axes[0].edges, histogram.axes[0].label
    bars = "".join(BARS[round(8 * count / counts.max(initial=1))] for count in counts)
    text = f" {edges[0]:>9.4g} {bars} {edges[-1]:<9.4g}"
    room = max(8, min(120, shutil.get_terminal_size().columns) - len(text))
    return f"{label if len(label) <= room else '…' + label[1 - room :]:<{room}}{text}".rstrip()


def draw(axes: Any, histogram: Any, what: str, unit: str = "", label: str = "") -> None:
    """Draws counts of ``what`` with their statistical errors; ``label`` says what the data are, as "Simulation"."""
    axis, errors = histogram.axes[0], np.sqrt(histogram.variances())
    axes.errorbar(axis.centers, histogram.values(), errors, axis.widths / 2, fmt="ko", markersize=3, linewidth=1)
    axes.set_xlabel(axis.label)
    widths = axis.widths
    axes.set_ylabel(f"{what} / {widths[0]:.3g} {unit}".rstrip() if np.allclose(widths, widths[0]) else f"{what} / bin")
    axes.set_ylim(bottom=0)
    axes.text(0.03, 0.96, label, transform=axes.transAxes, va="top", style="italic", weight="bold")
