"""Conversion of uproot's keywords."""

import fnmatch
import re
from collections.abc import Callable, Iterable
from typing import Any

from .._messages import short_repr
from .._select import Filter
from ..errors import InvalidArgumentError, UnsupportedError

_LIBRARIES = {
    "ak": ("awkward", "Awkward", "AWKWARD", "awkward1", "Awkward1", "AWKWARD1"),
    "np": ("numpy", "Numpy", "NumPy", "NUMPY"),
    "pd": ("pandas", "Pandas", "PANDAS"),
    "arrow": (),
}

# Options of uproot, and whether a value has no effect on the result. Other values are not supported.
_IGNORED_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "array_cache": lambda value: True,
    "backend": lambda value: value == "cpu",
    "begin_chunk_size": lambda value: True,
    "custom_classes": lambda value: not value,
    "decompression_executor": lambda value: True,
    "handler": lambda value: value is None,
    "http_max_header_bytes": lambda value: True,
    "interpretation": lambda value: value is None,
    "interpretation_executor": lambda value: True,
    "interpreter": lambda value: value == "cpu",
    "language": lambda value: value is None,
    "max_num_elements": lambda value: True,
    "minimal_ttree_metadata": lambda value: True,
    "num_fallback_workers": lambda value: True,
    "num_workers": lambda value: True,
    "object_cache": lambda value: True,
    "timeout": lambda value: True,
    "use_threads": lambda value: True,
}


def check_options(method: str, given: dict[str, Any]) -> None:
    """Accepts options of uproot that have no effect on the result.

    Raises `UnsupportedError` for options that have one and `TypeError` for options that uproot does not have.
    """
    for name, value in given.items():
        if name not in _IGNORED_OPTIONS:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        if not _IGNORED_OPTIONS[name](value):
            raise UnsupportedError(f"{method}(): {name}={short_repr(value)} is not supported; remove it")


def library_name(library: object) -> str:
    """Tupelo's name of a library, given by name or as a ``Library`` object of uproot.

    Raises `ValueError` for an unknown library.
    """
    name = getattr(library, "name", library)
    for known, long in _LIBRARIES.items():
        if name == known or name in long:
            return known
    raise InvalidArgumentError(
        f"unknown library {short_repr(library)}: expected {', '.join(map(repr, _LIBRARIES))} or a long form"
    )


_REGEX = re.compile("/(.*)/([imsx]*)")


def matcher(wanted: Filter) -> Callable[[str], object]:
    """A filter as in uproot: names match exactly, regular expressions from the start."""
    if wanted is None:
        return lambda text: True
    if isinstance(wanted, str):
        if (regex := _REGEX.fullmatch(wanted)) is not None:
            flags = f"(?{regex[2]})" if regex[2] else ""
            return re.compile(flags + regex[1]).match
        if any(letter in wanted for letter in "*?["):
            return re.compile(fnmatch.translate(wanted)).match
        return lambda text: text == wanted
    if callable(wanted):
        return wanted
    if isinstance(wanted, Iterable):
        several = [matcher(one) for one in wanted]
        return lambda text: any(one(text) for one in several)
    raise TypeError(
        f"expected a filter as None, a function, '/regex/', a glob or a list of these, not {short_repr(wanted)}"
    )


class Compression:
    """A codec and its level."""

    number = 0
    """ROOT's number of the codec."""

    def __init__(self, level: int) -> None:
        self.level = level

    @property
    def name(self) -> str:
        """Name of the codec."""
        return type(self).__name__

    @property
    def code_pair(self) -> tuple[int, int]:
        """ROOT's numbers of codec and level."""
        return self.number, self.level

    @property
    def code(self) -> int:
        """ROOT's number of both: 505 for ``ZSTD(5)``."""
        return self.number * 100 + self.level

    @staticmethod
    def from_code(code: int) -> "Compression | None":
        """The codec and level of ROOT's number; None without compression."""
        return Compression.from_code_pair(code // 100, code % 100)

    @staticmethod
    def from_code_pair(algorithm: int, level: int) -> "Compression | None":
        """The codec and level of ROOT's numbers; None without compression.

        Raises `InvalidArgumentError` (a `ValueError`) for an unknown codec.
        """
        if algorithm == 0 or level == 0:
            return None
        for codec in _CODECS:
            if codec.number == algorithm:
                return codec(level)
        raise InvalidArgumentError(
            f"unknown codec number {algorithm}: expected {', '.join(str(codec.number) for codec in _CODECS)}"
        )

    @staticmethod
    def of(setting: "str | int | None") -> "Compression | None":
        """The codec of a setting of `tupelo.recreate`."""
        if setting is None:
            return ZSTD(5)
        if isinstance(setting, int) or setting.isdigit():
            return Compression.from_code(int(setting))
        name, _, level = setting.partition(":")
        for codec in _CODECS:
            if codec.__name__.lower() == name:
                return codec(int(level or codec.usual_level))
        return None

    usual_level = 5

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compression) and self.code_pair == other.code_pair

    def __hash__(self) -> int:
        return hash(self.code_pair)

    def __str__(self) -> str:
        return f"{self.name.lower()}:{self.level}" if self.level else "none"

    def __repr__(self) -> str:
        return f"{self.name}({self.level})"


class ZLIB(Compression):
    """Deflate."""

    number = 1
    usual_level = 1


class LZMA(Compression):
    """LZMA."""

    number = 2
    usual_level = 7


class LZ4(Compression):
    """LZ4."""

    number = 4
    usual_level = 4


class ZSTD(Compression):
    """Zstandard."""

    number = 5


_CODECS: tuple[type[Compression], ...] = (ZLIB, LZMA, LZ4, ZSTD)
