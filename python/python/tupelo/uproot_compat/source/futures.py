"""uproot's executors. Tupelo accepts them but uses its own threads."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any


class TrivialExecutor(Executor):
    """Runs everything immediately, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs a function and returns a completed future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


__all__ = ["ThreadPoolExecutor", "TrivialExecutor"]
