"""Work on other threads, ahead of its use: for what waits for servers."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from .. import _core

Result = TypeVar("Result")

AHEAD = 8
"""Tasks that run at the same time."""


def run_ahead(tasks: Iterable[Callable[[], Result]]) -> Iterator[Result]:
    """The results of the tasks, in their order; while one is used, threads run the next `AHEAD`.

    Closing the generator, an exception and Ctrl-C cancel what runs. Raises the exceptions of the tasks.
    """
    cancellation = _core.Cancellation()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="tupelo-ahead") as threads:
        try:
            for task in tasks:
                waiting.append(threads.submit(cancellation.run, task))
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            cancellation.cancel()
            for one in waiting:
                one.cancel()
