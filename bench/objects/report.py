"""Tables and the figure of `objects.py`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLOURS = {"directory": "#444444", "S3, 0 ms": "#1b7837", "S3, 5 ms": "#e08214", "S3, 30 ms": "#b2182b"}
MARKERS = {"directory": "s", "S3, 0 ms": "o", "S3, 5 ms": "^", "S3, 30 ms": "D"}
KIB, MIB = 1 << 10, 1 << 20
PLATEAU = 0.9
"""Of the best throughput: where the plateau starts."""


@dataclass(frozen=True)
class Target:
    """A target, or a hypothesis."""

    row: str
    wanted: str
    found: str
    met: bool
    words: tuple[str, str] = ("met", "**not met**")
    """If it is met, and if not."""


@dataclass(frozen=True)
class Series:
    """A line of the figure."""

    what: str
    """The panel, with the codec."""
    codec: str
    place: str
    speeds: dict[int, float]
    """MB/s by bytes of a transfer."""


def size_name(size: int) -> str:
    unit, name = (MIB, "MiB") if size >= MIB else (KIB, "KiB")
    return f"{size / unit:.3g} {name}"


def plateau(speeds: dict[int, float]) -> int:
    """The size of transfers at which the plateau starts."""
    return next(size for size, speed in speeds.items() if speed >= PLATEAU * max(speeds.values()))


def cell(value: object) -> str:
    """A value of a table: of lists the median, of numbers three digits."""
    if isinstance(value, list):
        value = statistics.median(value)
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return str(value)


def table(records: list[dict[str, Any]]) -> str:
    """Markdown; the columns are the keys in the order of the record that has most, and then the others."""
    most = max(records, key=len)
    names = [*most, *(name for name in dict.fromkeys(key for record in records for key in record) if name not in most)]
    texts = {name for name in names if any(isinstance(record.get(name), str) for record in records)}
    lines = [names, ["---" if name in texts else "---:" for name in names]]
    lines += [[cell(record.get(name)) for name in names] for record in records]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def targets_table(targets: list[Target]) -> str:
    lines = [["row", "wanted", "found", ""], ["---"] * 4]
    lines += [[f"`{one.row}`", one.wanted, one.found, one.words[0 if one.met else 1]] for one in targets]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chart(path: Path, series: list[Series], footer: str) -> bool:
    """Throughput against the size of a transfer, a panel for each codec and direction. False without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot, ticker

    codecs = list(dict.fromkeys(one.codec for one in series))
    figure, panels = pyplot.subplots(len(codecs), 2, figsize=(10, 3.6 * len(codecs)), squeeze=False, sharex=True)
    for (down, codec), (across, what) in ((a, b) for a in enumerate(codecs) for b in enumerate(("read", "write"))):
        axes = panels[down][across]
        for one in series:
            if (one.codec, one.what) == (codec, what) and one.speeds:
                style = {"color": COLOURS.get(one.place), "marker": MARKERS.get(one.place), "label": one.place}
                axes.plot(list(one.speeds), list(one.speeds.values()), markersize=5, linewidth=1.3, **style)
                start, style["label"] = plateau(one.speeds), None
                axes.plot([start], [one.speeds[start]], markersize=12, markerfacecolor="none", **style)
        sizes = sorted({size for one in series for size in one.speeds if size.bit_count() == 1})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [size_name(size) for size in sizes], fontsize=8)
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(f"{what}, {codec}", fontsize=9, loc="left", fontweight="bold")
        axes.set_ylabel("MB/s", fontsize=8)
        axes.set_xlabel("page = object = transfer", fontsize=8)
        axes.tick_params(labelsize=8, labelbottom=True)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].legend(fontsize=8, frameon=False)
    figure.text(0.01, 0.004, f"Large marks: where the plateau of {PLATEAU:.0%} starts. {footer}", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(path, dpi=130, metadata={"Description": footer})
    pyplot.close(figure)
    return True
