"""Shortening and escaping of values in messages."""

import reprlib
from collections.abc import Iterable

from .. import _core

MAX_CHARACTERS = 120
"""Maximum number of characters of a value in a message."""


class _Repr(reprlib.Repr):
    """Shows URLs, also those in containers, without credentials."""

    def repr_str(self, x: str, level: int) -> str:
        if "://" in x:
            # The engine takes only UTF-8.
            x = _core.display_name(x.encode(errors="backslashreplace").decode())
        return super().repr_str(x, level)


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = MAX_CHARACTERS


def short_repr(value: object) -> str:
    """The `repr` of a value for a message, shortened to its beginning and end, or to the first items of a container.

    URLs in strings have no user names, passwords and query strings.

    >>> short_repr("x" * 1000) == "'" + "x" * 57 + "..." + "x" * 58 + "'"
    True
    >>> short_repr({"https://ann:secret@host/f.root?sig=secret": "Events"})
    "{'https://host/f.root': 'Events'}"
    """
    # `reprlib` dispatches by class name and calls the full repr of unknown classes.
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > MAX_CHARACTERS:
        return f"{bytes(value[: MAX_CHARACTERS // 4])!r}... ({len(value)} bytes)"
    text = _REPR.repr(value)
    return text if len(text) <= 2 * MAX_CHARACTERS else f"{text[: 2 * MAX_CHARACTERS]}..."


def quoted_names(names: Iterable[str]) -> str:
    """Names in a message.

    >>> quoted_names(["x", "X"])
    "'x' and 'X'"
    """
    return " and ".join(map(short_repr, names))


def printable(text: str) -> str:
    r"""Escapes control characters, line breaks and invisible characters, such as those that change the text direction,
    in a string from a file.

    >>> printable("a\x1b[2Jb\n"), printable("Größe Δφ")
    ('a\\x1b[2Jb\\n', 'Größe Δφ')
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def truncate(text: str, width: int) -> str:
    """Truncates a string to ``width`` characters.

    >>> truncate("events", 4), truncate("pt", 4)
    ('eve…', 'pt')
    """
    return text if len(text) <= width else text[: width - 1] + "…"
