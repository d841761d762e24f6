"""Parsing and formatting of sizes in bytes."""

import operator
import re
from typing import Any, SupportsIndex

from ..errors import InvalidArgumentError
from .messages import short_repr

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_END = 2**63
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([kmgt]?i?)b\s*", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """The number of bytes that ``"100 MB"`` (10⁸) or ``"64 KiB"`` (2¹⁶) is; at least 1.

    >>> parse_bytes("100 MB"), parse_bytes("64KiB"), parse_bytes("1.5 kB")
    (100000000, 65536, 1500)

    Raises `InvalidArgumentError` for other strings.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2].upper() not in _UNITS:
        raise InvalidArgumentError(
            f"{short_repr(text)} is not a size: expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
        )
    size = float(match[1]) * _UNITS[match[2].upper()]
    if size >= _END:
        raise InvalidArgumentError(f"{short_repr(text)} is not a valid size: it exceeds 2⁶³−1 bytes")
    return max(1, round(size))


def bytes_text(size: int) -> str:
    """Formats a number of bytes with three digits, like `tupelo ls`.

    >>> bytes_text(999), bytes_text(1024), bytes_text(123_456_789)
    ('999 B', '1.00 KiB', '118 MiB')
    """
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    unit = 0
    while value >= 999.5 and unit + 1 < len(units):
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[unit]}"


def parse_optional_bytes(what: str, size: SupportsIndex | str | None) -> int | None:
    """A size in bytes from a string, a number or None; ``what`` names it in errors.

    >>> parse_optional_bytes("page_bytes", 65536), parse_optional_bytes("page_bytes", None)
    (65536, None)

    Raises `InvalidArgumentError` for values outside of 0 to 2⁶³−1.
    """
    if size is None:
        return None
    if isinstance(size, str):
        return parse_bytes(size)
    return as_count(what, "bytes from 0 to 2⁶³−1, or as a string such as '64 KiB'", size)


def as_count(what: str, allowed: str, number: SupportsIndex) -> int:
    """An integer from 0 to 2⁶³−1; ``what`` and ``allowed`` describe it in errors.

    >>> as_count("checkpoint_clusters", "clusters", 3)
    3

    Raises `InvalidArgumentError` for other values, including booleans.
    """
    index = as_integer(number)
    if index is None or not 0 <= index < _END:
        raise InvalidArgumentError(f"expected {what} as a number of {allowed}, not {short_repr(number)}")
    return index


def as_integer(number: object) -> int | None:
    """An integer of Python or NumPy as an `int`; None for other values, including booleans.

    >>> as_integer(3), as_integer(True), as_integer(2.5), as_integer("3")
    (3, None, None, None)
    """
    if type(number) is int:
        return number
    if isinstance(number, bool):
        return None
    value: Any = number
    try:
        return operator.index(value)
    except TypeError:
        return None
