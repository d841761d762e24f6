"""Numbers of bytes, as people write them."""

import operator
import re
from typing import SupportsIndex

from .errors import InvalidArgumentError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([kmgt]?i?)b\s*", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """The number of bytes that ``"100 MB"`` (10⁸) or ``"64 KiB"`` (2¹⁶) is; at least 1.

    >>> parse_bytes("100 MB"), parse_bytes("64KiB"), parse_bytes("1.5 kB")
    (100000000, 65536, 1500)

    Raises `InvalidArgumentError` for any other text.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2].upper() not in _UNITS:
        raise InvalidArgumentError(f"{text!r} is no size: write a number and B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")
    return max(1, round(float(match[1]) * _UNITS[match[2].upper()]))


def optional_bytes(what: str, size: SupportsIndex | str | None) -> int | None:
    """The same for what may also be a plain number, or nothing; ``what`` is what has the size.

    >>> optional_bytes("page_bytes", 65536), optional_bytes("page_bytes", None)
    (65536, None)

    Raises `InvalidArgumentError` for all that is no number of bytes from 0 to 2⁶³−1.
    """
    if size is None:
        return None
    try:
        number = parse_bytes(size) if isinstance(size, str) else operator.index(size)
    except TypeError:
        raise InvalidArgumentError(f"{what} is a number of bytes or a text such as '64 KiB', not {size!r}") from None
    if not 0 <= number < 2**63:
        raise InvalidArgumentError(f"{what} is a number of bytes from 0 to 2⁶³−1, not {number}")
    return number
