"""The number of threads."""

from typing import SupportsIndex

from .. import _core
from ..errors import InvalidArgumentError
from .messages import short_repr
from .sizes import as_count

MAX_THREADS = 4096
"""Maximum number of threads."""


def set_threads(threads: SupportsIndex) -> None:
    """Sets the number of threads that decode and encode in this process; 0 means one for each core.

    Raises `InvalidArgumentError` for values outside of 0 to 4096.

    >>> import tupelo
    >>> before = tupelo.threads()
    >>> tupelo.set_threads(1)
    >>> tupelo.threads()
    1
    >>> tupelo.set_threads(before)
    """
    allowed = f"threads from 0 (one for each core) to {MAX_THREADS}"
    number = as_count("threads", allowed, threads)
    if number > MAX_THREADS:
        raise InvalidArgumentError(f"expected threads as a number of {allowed}, not {short_repr(threads)}")
    _core.set_threads(number)
