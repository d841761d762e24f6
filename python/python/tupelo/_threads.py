"""How many threads decode and encode."""

from typing import SupportsIndex

from . import _core
from ._messages import short
from ._sizes import count
from .errors import InvalidArgumentError

MAX_THREADS = 4096
"""The largest number of threads that can be set."""


def set_threads(threads: SupportsIndex) -> None:
    """Sets the number of threads that decode and encode in this process; 0 means one for each core.

    Raises `InvalidArgumentError` for what is no number from 0 to 4096.

    >>> import tupelo
    >>> before = tupelo.threads()
    >>> tupelo.set_threads(1)
    >>> tupelo.threads()
    1
    >>> tupelo.set_threads(before)
    """
    allowed = f"threads from 0 (one for each core) to {MAX_THREADS}"
    number = count("threads", allowed, threads)
    if number > MAX_THREADS:
        raise InvalidArgumentError(f"threads is a number of {allowed}, not {short(threads)}")
    _core.set_threads(number)
