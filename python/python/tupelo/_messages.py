"""Values in messages, and texts on lines, that are not longer than is good."""

import reprlib

LONGEST = 120
"""Signs of a value that a message shows at most."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = LONGEST


def short(value: object) -> str:
    """The `repr` of a value for a message: of long ones the beginning and the end, of containers the first items.

    >>> short("x" * 1000) == "'" + "x" * 57 + "..." + "x" * 58 + "'"
    True
    """
    # `reprlib` goes by the name of a class, and calls the repr of what it does not know whole.
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > LONGEST:
        return f"{bytes(value[: LONGEST // 4])!r}... ({len(value)} bytes)"
    text = _REPR.repr(value)
    return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST]}..."


def printable(text: str) -> str:
    r"""A text from a file with everything escaped that a terminal would act upon: control characters, line breaks, and
    the invisible characters that turn text around or hide it.

    >>> printable("a\x1b[2Jb\n"), printable("Größe Δφ")
    ('a\\x1b[2Jb\\n', 'Größe Δφ')
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def cut(text: str, width: int) -> str:
    """The beginning of a text that is longer than so many signs.

    >>> cut("events", 4), cut("pt", 4)
    ('eve…', 'pt')
    """
    return text if len(text) <= width else text[: width - 1] + "…"
