"""uproot allocates as many objects as a length says, also where it misreads the length: up to 14 GB for one branch."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import uproot

MOST_OBJECTS = 10_000_000
"""More than any collection in the real files has."""


class _BoundedNumPy:
    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, length: int, dtype: Any) -> Any:
        if length > MOST_OBJECTS:
            raise MemoryError(f"{length} objects")
        return np.empty(length, dtype=dtype)


@contextlib.contextmanager
def misread_lengths_fail() -> Iterator[None]:
    """Lets uproot fail at once where a collection is longer than any."""
    containers: Any = uproot.containers
    original, containers.numpy = containers.numpy, _BoundedNumPy()
    try:
        yield
    finally:
        containers.numpy = original
