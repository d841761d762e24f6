"""Texts that people give: names, descriptions, places of files."""

import os
import re
from collections.abc import Mapping
from typing import Any

from ._messages import short
from .errors import InvalidArgumentError, UnsupportedError

_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://")


def check_text(text: object, what: str) -> str:
    """The text itself; ``what`` says where it stands.

    Raises `InvalidArgumentError` for what is no `str`, and for a `str` that has no UTF-8, in which ROOT files keep
    texts: Python's may have surrogates, which stand for bytes that were no UTF-8.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{what} is a text, not {short(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} has no UTF-8: {short(text)} has a lone surrogate at character {error.start}"
        ) from None
    return text


def check_name(name: object, what: str = "an ntuple") -> None:
    """Raises `InvalidArgumentError` for what cannot be the name of an ntuple, an attribute set or a field."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{what} is called by a name, not by {short(name)}")
    if "\0" in name:
        # Arrow would end it there.
        raise InvalidArgumentError(f"the name of {what}, {short(name)}, contains '\\0', which the format forbids")
    check_text(name, f"the name of {what}")


def check_texts(texts: object, what: str) -> dict[str, Any]:
    """A mapping of names to something; ``what`` says what it is.

    Raises `InvalidArgumentError` for what is no mapping, and for names that are none.
    """
    if texts is None:
        return {}
    if not isinstance(texts, Mapping):
        raise InvalidArgumentError(f"{what} are a mapping, as {{name: value}}, not {short(texts)}")
    for name in texts:
        check_text(name, f"a name in the {what}")
    return dict(texts)


def check_path(path: object) -> str:
    """The name of a local file; in texts ``~`` is the home of the user, as in a shell.

    Raises `InvalidArgumentError` for what is no name of a file, and `UnsupportedError` for a remote one.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError(f"a file is named by a text or a path, not by {short(path)}")
    name = check_text(os.fspath(path), "the name of the file")
    if _REMOTE.match(name):
        raise UnsupportedError(f"{name}: only local files can be read and written yet")
    return os.path.expanduser(name) if isinstance(path, str) else name


def file_and_ntuple(path: object) -> tuple[str, str] | None:
    """File and ntuple of a text such as ``"f.root:Events"``; None for all else, and where there is such a file."""
    if not isinstance(path, str) or os.path.isfile(path):
        return None
    file, behind, name = path.partition(".root:")
    return (f"{file}.root", name) if behind else None


def absolute_path(path: str) -> str:
    """The name of a file that stays true when the working directory changes."""
    if not path or os.path.isabs(path):
        return path
    # Not normalized: behind a link, `..` is not what the text says.
    return os.path.join(os.getcwd(), path)
