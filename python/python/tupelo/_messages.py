"""Shortening and escaping of values in messages."""

import reprlib

MAX_CHARACTERS = 120
"""Maximum number of characters of a value in a message."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = MAX_CHARACTERS


def short_repr(value: object) -> str:
    """The `repr` of a value for a message, shortened to its beginning and end, or to the first items of a container.

    >>> short_repr("x" * 1000) == "'" + "x" * 57 + "..." + "x" * 58 + "'"
    True
    """
    # `reprlib` dispatches by class name and calls the full repr of unknown classes.
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > MAX_CHARACTERS:
        return f"{bytes(value[: MAX_CHARACTERS // 4])!r}... ({len(value)} bytes)"
    text = _REPR.repr(value)
    return text if len(text) <= 2 * MAX_CHARACTERS else f"{text[: 2 * MAX_CHARACTERS]}..."


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
