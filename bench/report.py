"""Results as tables, as a list of targets, and as a chart."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .tasks import BEST_OTHER, MIB, ONE_THREAD, Target, Task


@dataclass(frozen=True)
class Row:
    """One measurement."""

    task: str
    threads: int
    contestant: str
    seconds: list[float]
    column_bytes: int
    """Uncompressed size of the columns in memory."""
    stored_bytes: int
    read_bytes: int
    peak_bytes: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median seconds, or bytes if memory is measured."""
        return statistics.median(self.peak_bytes or self.seconds)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a target."""

    task: str
    threads: int
    against: str
    measured: str
    wanted: str
    met: bool | None
    """None if it was not measured."""
    bound: str = "–"
    """The value of the slowest limit, which cannot be exceeded."""


def amount(task: Task, value: float) -> str:
    return f"{value / MIB:.1f} MiB" if task.counts_memory else f"{value:.4f} s"


def table(rows: list[Row], tasks: list[Task]) -> str:
    """Markdown: seconds, uncompressed column data per second, time relative to Tupelo, and bytes."""
    lines = [
        "| task | contestant | seconds | MiB/s | time ÷ Tupelo | file MiB | read MiB |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for task, mine in grouped(rows, tasks, memory=False):
        own = own_median(task, mine)
        for row in mine:
            title = f"{task.title} (`{task.name}`)" if row is mine[0] else ""
            speed = f"{row.column_bytes / MIB / row.median:.0f}" if row.column_bytes else "–"
            ratio = f"{row.median / own:.2f}" if own else "–"
            stored = f"{row.stored_bytes / MIB:.1f}" if row.stored_bytes else ""
            fetched = f"{row.read_bytes / MIB:.1f}" if task.kind in ("random", "cut") and row.read_bytes else ""
            name = contestant(task, row)
            lines.append(f"| {title} | {name} | {row.median:.4f} | {speed} | {ratio} | {stored} | {fetched} |")
    return "\n".join(lines)


README_TASKS = ("read-flat-zstd", "read-jagged-zstd", "read-flat-none", "write-zstd")
README_COLUMNS = {
    "Tupelo": ("Tupelo",),
    "ROOT": ("ROOT", "ROOT views", "ROOT bulk"),
    "uproot": ("uproot",),
    "Parquet": ("Parquet",),
}
"""Columns of the table in README.md, and the contestants of which the fastest counts."""


def readme_table(rows: list[Row], tasks: list[Task]) -> str:
    """Markdown: seconds of Tupelo, ROOT, uproot and Parquet in the tasks of README.md, with one thread."""
    lines = [f"| one thread | {' | '.join(README_COLUMNS)} |", f"|---|{'---:|' * len(README_COLUMNS)}"]
    for task in tasks:
        mine = {row.contestant: row.median for row in rows if row.task == task.name and row.threads == 1}
        if task.name not in README_TASKS or not mine:
            continue
        cells = []
        for names in README_COLUMNS.values():
            seconds = [mine[name] for name in names if name in mine]
            cells.append(f"{min(seconds):.3f} s" if seconds else "–")
        lines.append(f"| {task.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def between_markers(text: str, name: str, content: str) -> str:
    """Replaces the text between the comments ``name: begin`` and ``name: end``."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"the markers '{name}: begin' and '{name}: end' are missing")
    return f"{before}{begin}{content}\n{end}{after}"


def memory_table(rows: list[Row], tasks: list[Task]) -> str:
    """Markdown: peak memory over that at the start."""
    lines = ["| task | contestant | MiB | memory ÷ Tupelo | seconds | file MiB |", "|---|---|---:|---:|---:|---:|"]
    for task, mine in grouped(rows, tasks, memory=True):
        own = own_median(task, mine)
        for row in mine:
            title = f"{task.title} (`{task.name}`)" if row is mine[0] else ""
            ratio = f"{row.median / own:.2f}" if own else "–"
            seconds, stored = statistics.median(row.seconds), row.stored_bytes / MIB
            mib = row.median / MIB
            lines.append(f"| {title} | {row.contestant} | {mib:.1f} | {ratio} | {seconds:.2f} | {stored:.1f} |")
    return "\n".join(lines)


def grouped(rows: list[Row], tasks: list[Task], memory: bool) -> list[tuple[Task, list[Row]]]:
    groups = [(task, [row for row in rows if row.task == task.name]) for task in tasks if task.counts_memory == memory]
    return [(task, mine) for task, mine in groups if mine]


def own_median(task: Task, rows: list[Row]) -> float | None:
    return next((row.median for row in rows if row.contestant == task.ours), None)


def contestant(task: Task, row: Row) -> str:
    return f"{row.contestant} *" if row.contestant in task.other_level else row.contestant


def verdicts(rows: list[Row], tasks: list[Task], cores: int) -> list[Verdict]:
    """All targets of the tasks."""
    return [
        verdict(task, target, {(row.threads, row.contestant): row for row in rows if row.task == task.name}, cores)
        for task in tasks
        for target in task.targets
    ]


def verdict(task: Task, target: Target, rows: dict[tuple[int, str], Row], cores: int) -> Verdict:
    threads = cores if target.against == ONE_THREAD or target.all_cores else 1
    own, other, against = rows.get((threads, task.ours)), None, target.against
    if against == ONE_THREAD:
        other = rows.get((1, task.ours)) if cores > 1 else None
    elif against == BEST_OTHER:
        others = [row for (row_threads, name), row in rows.items() if row_threads == 1 and is_rival(task, name)]
        other = min(others, key=lambda row: row.median, default=None)
        against = f"{BEST_OTHER}, {other.contestant}" if other else BEST_OTHER
    elif against:
        other = rows.get((threads, against)) or rows.get((1, against))
    if not target.against:
        wanted, measured = f"≤ {amount(task, target.factor)}", amount(task, own.median) if own else "–"
        return Verdict(task.name, threads, "–", measured, wanted, own.median <= target.factor if own else None)
    wanted = f"≤ {target.factor:g}×" if target.limit else f"≥ {target.factor:g}×"
    if own is None or other is None or not own.median or not other.median:
        return Verdict(task.name, threads, against, "–", wanted, None)
    ratio = own.median / other.median if target.limit else other.median / own.median
    met = ratio <= target.factor if target.limit else ratio >= target.factor
    limits = [row.median for (_, name), row in rows.items() if name.startswith("limit")]
    bound = f"{other.median / max(limits):.2f}×" if limits and threads == 1 and not target.limit else "–"
    return Verdict(task.name, threads, against, f"{ratio:.2f}×", wanted, met, bound)


def is_rival(task: Task, name: str) -> bool:
    """Whether a contestant counts among the others: not Tupelo, not a limit, not the one named in a target."""
    named = [target.against for target in task.targets]
    return not name.startswith(("Tupelo", "limit")) and name not in task.other_level and name not in named


def targets_table(found: list[Verdict]) -> str:
    lines = [
        "| task | threads | compared with | measured | the limit has | wanted | |",
        "|---|---:|---|---:|---:|---:|---|",
    ]
    words = {True: "met", False: "**not met**", None: "not measured"}
    for one in found:
        cells = [f"`{one.task}`", one.threads, one.against, one.measured, one.bound, one.wanted, words[one.met]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


COLOURS = {"Tupelo": "#1f77b4", "limit": "#c7c7c7", "other": "#ff9f4a"}


def chart(path: Path, rows: list[Row], tasks: list[Task], footer: str) -> None:
    """A panel of bars for each task and number of threads: shorter is better."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    panels: list[tuple[Task, int, list[Row]]] = []
    for threads in sorted({row.threads for row in rows}):
        for task in tasks:
            mine = [row for row in rows if row.task == task.name and row.threads == threads]
            panels += [(task, threads, mine)] if mine else []
    if not panels:
        return
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure, all_axes = pyplot.subplots(down, across, figsize=(6.4 * across, 2.5 * down + 0.6), squeeze=False)
    for axes in all_axes.flat[len(panels) :]:
        axes.axis("off")
    for axes, (task, threads, mine) in zip(all_axes.flat, panels, strict=False):
        scale, unit = (MIB, "MiB") if task.counts_memory else (1e-3, "ms")
        values = [row.median / scale for row in mine]
        labels = [contestant(task, row) for row in mine]
        kinds = [next((kind for kind in COLOURS if row.contestant.startswith(kind)), "other") for row in mine]
        bars = axes.barh(labels, values, color=[COLOURS[kind] for kind in kinds])
        axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xlabel(unit, fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        cores = "1 thread" if threads == 1 else f"{threads} threads"
        axes.set_title(f"{task.name}, {cores}", fontsize=9, loc="left", fontweight="bold")
    figure.text(0.01, 0.002, footer, fontsize=7, va="bottom")
    figure.tight_layout(rect=(0, 0.6 / (2.5 * down + 0.6) / 2, 1, 1))
    figure.savefig(path, dpi=110, metadata={"Description": footer})
    pyplot.close(figure)


def as_json(rows: list[Row], found: list[Verdict], more: dict[str, Any]) -> dict[str, Any]:
    return more | {
        "rows": [{**asdict(row), "median": row.median} for row in rows],
        "targets": [asdict(one) for one in found],
    }
