"""Progress reports."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from ..errors import InvalidArgumentError
from .messages import short_repr

Progress = bool | Callable[[int, int], object] | Any | None
"""The type of ``progress``: True for a bar, a function of the entries done and the total, an existing bar of rich
(`rich.progress.Progress`) or tqdm, or None or False for no report."""

Callback = Callable[[int, int], object]
"""Receives the number of entries done and the total."""


def steps(batches: "Iterable[_core.Batch]", progress: Progress, total: int) -> "Iterable[_core.Batch]":
    """Reports the progress of iterating over batches of ``total`` entries.

    Entries before a batch are done, so a function is first called with 0, and with the total after the last batch.

    Raises `InvalidArgumentError` immediately for invalid values of ``progress``.
    """
    check(progress)
    return batches if is_silent(progress) else _steps(batches, progress, total)


def _steps(batches: "Iterable[_core.Batch]", progress: Progress, total: int) -> "Iterator[_core.Batch]":
    done = 0
    with report_progress(progress) as tell:
        for batch in batches:
            tell(done, total)
            yield batch
            done += batch.entry_stop - batch.entry_start
        tell(total, total)


@contextmanager
def report_progress(progress: Progress) -> Iterator[Callback]:
    """Yields the function that reports progress; a bar is shown until the context ends.

    The bar is that of rich if installed, else that of tqdm, else a line of text. It is drawn on the standard error
    stream, but only if that is a terminal.

    Raises `InvalidArgumentError` for invalid values of ``progress``.
    """
    check(progress)
    if progress is not True:
        yield _ignore if is_silent(progress) else _adapt_bar(progress)
    elif sys.stderr is None or not sys.stderr.isatty():
        yield _ignore
    else:
        with _bar() as tell:
            yield tell


def check(progress: Progress) -> None:
    """Raises `InvalidArgumentError` for invalid values of ``progress``."""
    is_bar = hasattr(progress, "add_task") or (hasattr(progress, "update") and hasattr(progress, "n"))
    if not (progress is None or isinstance(progress, bool) or callable(progress) or is_bar):
        raise InvalidArgumentError(
            f"expected progress as True, None, a function of the entries done and the total, or a bar of rich or tqdm, "
            f"not {short_repr(progress)}"
        )


def is_silent(progress: Progress) -> bool:
    """Whether progress is not reported."""
    # Not `not progress`: bars define their own truth value.
    return progress is None or progress is False


def _ignore(done: int, total: int) -> None:
    pass


def _adapt_bar(progress: Any) -> Callback:
    """The function that updates a bar; functions are returned unchanged."""
    if hasattr(progress, "add_task"):
        task = progress.add_task("entries", total=None)
        return lambda done, total: progress.update(task, completed=done, total=total)
    if callable(progress):
        tell: Callback = progress
        return tell
    begin = progress.n

    def move(done: int, total: int) -> None:
        progress.total = begin + total
        progress.update(begin + done - progress.n)

    return move


@contextmanager
def _bar() -> Iterator[Callback]:
    """A bar of the first available library."""
    try:
        from rich.console import Console
        from rich.progress import Progress as RichBar
    except ImportError:
        pass
    else:
        with RichBar(console=Console(stderr=True)) as bar:
            yield _adapt_bar(bar)
        return
    try:
        from tqdm import tqdm
    except ImportError:
        pass
    else:
        with tqdm(unit=" entries", unit_scale=True, file=sys.stderr) as bar:
            yield _adapt_bar(bar)
        return
    try:
        yield lambda done, total: print(f"\r{done} of {total} entries", end="", file=sys.stderr, flush=True)
    finally:
        print(file=sys.stderr)
