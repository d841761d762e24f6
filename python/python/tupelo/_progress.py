"""How far a call is, for people who wait for it."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._messages import short
from .errors import InvalidArgumentError

Progress = bool | Callable[[int, int], object] | Any | None
"""What ``progress`` may be: True for a bar, a function of the entries that are done and of all, a bar of rich
(`rich.progress.Progress`) or tqdm that is there already, or None or False for silence."""

Tell = Callable[[int, int], object]
"""Is told how many entries are done, and of how many."""


Batch = tuple[int, int, Any]
"""The entry where a batch begins, the one behind its last, and what is in it."""


def steps(batches: Iterable[Batch], progress: Progress, start: int, stop: int) -> Iterable[Batch]:
    """The same batches of the entries ``start`` to ``stop``.

    What comes before a batch is done, so a function is first told 0, and all of them after the last batch.

    Raises `InvalidArgumentError` at once for what is no progress.
    """
    check(progress)
    return batches if is_silent(progress) else _steps(batches, progress, start, stop)


def _steps(batches: Iterable[Batch], progress: Progress, start: int, stop: int) -> Iterator[Batch]:
    with telling(progress) as tell:
        for batch in batches:
            tell(batch[0] - start, stop - start)
            yield batch
        tell(stop - start, stop - start)


@contextmanager
def telling(progress: Progress) -> Iterator[Tell]:
    """What to tell how far things are; a bar is on the screen as long as this lasts.

    The bar is rich's where rich is installed, else tqdm's, else a line of text. It is drawn on the standard error
    stream, and not at all where that is no terminal.

    Raises `InvalidArgumentError` for what is no progress.
    """
    check(progress)
    if progress is not True:
        yield _silent if is_silent(progress) else _adapted(progress)
    elif sys.stderr is None or not sys.stderr.isatty():
        yield _silent
    else:
        with _bar() as tell:
            yield tell


def check(progress: Progress) -> None:
    """Raises `InvalidArgumentError` for what is no progress."""
    is_bar = hasattr(progress, "add_task") or (hasattr(progress, "update") and hasattr(progress, "n"))
    if not (progress is None or isinstance(progress, bool) or callable(progress) or is_bar):
        raise InvalidArgumentError(
            f"progress is True, None, a function of the entries that are done and of all, or a bar of rich or tqdm, "
            f"not {short(progress)}"
        )


def is_silent(progress: Progress) -> bool:
    """Whether nobody is to be told."""
    # Bars have truths of their own.
    return progress is None or progress is False


def _silent(done: int, total: int) -> None:
    pass


def _adapted(progress: Any) -> Tell:
    """A function that moves a bar, unless it is a function already."""
    if hasattr(progress, "add_task"):
        task = progress.add_task("entries", total=None)
        return lambda done, total: progress.update(task, completed=done, total=total)
    if callable(progress):
        tell: Tell = progress
        return tell
    begin = progress.n

    def move(done: int, total: int) -> None:
        progress.total = begin + total
        progress.update(begin + done - progress.n)

    return move


@contextmanager
def _bar() -> Iterator[Tell]:
    """The best bar that there is."""
    try:
        from rich.console import Console
        from rich.progress import Progress as RichBar
    except ImportError:
        pass
    else:
        with RichBar(console=Console(stderr=True)) as bar:
            yield _adapted(bar)
        return
    try:
        from tqdm import tqdm
    except ImportError:
        pass
    else:
        with tqdm(unit=" entries", unit_scale=True, file=sys.stderr) as bar:
            yield _adapted(bar)
        return
    try:
        yield lambda done, total: print(f"\r{done} of {total} entries", end="", file=sys.stderr, flush=True)
    finally:
        print(file=sys.stderr)
