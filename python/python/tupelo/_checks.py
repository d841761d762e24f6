"""Checks of strings: names, descriptions and paths."""

import os
import re
from collections.abc import Mapping
from typing import Any

from ._messages import short_repr
from .errors import InvalidArgumentError, UnsupportedError

_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://")


def check_text(text: object, what: str) -> str:
    """Returns the string; ``what`` describes it in errors.

    Raises `InvalidArgumentError` for other types and for strings that cannot be encoded as UTF-8, the encoding of ROOT
    files: Python strings may contain lone surrogates.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"expected {what} to be a string, not {short_repr(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} is not valid UTF-8: {short_repr(text)} has a lone surrogate at character {error.start}"
        ) from None
    return text


def check_name(name: object, what: str = "an ntuple") -> None:
    """Raises `InvalidArgumentError` for an invalid name of an ntuple, an attribute set or a field."""
    if not isinstance(name, str):
        raise InvalidArgumentError(f"expected the name of {what} to be a string, not {short_repr(name)}")
    if "\0" in name:
        # Arrow would truncate it.
        raise InvalidArgumentError(f"the name of {what}, {short_repr(name)}, contains '\\0', which the format forbids")
    check_text(name, f"the name of {what}")


def check_mapping(texts: object, what: str) -> dict[str, Any]:
    """A copy of a mapping with names as keys; ``what`` describes it in errors.

    Raises `InvalidArgumentError` for other types and invalid names.
    """
    if texts is None:
        return {}
    if not isinstance(texts, Mapping):
        raise InvalidArgumentError(f"expected {what} to be a mapping {{name: value}}, not {short_repr(texts)}")
    for name in texts:
        check_text(name, f"a name in the {what}")
    return dict(texts)


def check_path(path: object) -> str:
    """The name of a local file; in strings ``~`` is the home directory of the user.

    Raises `InvalidArgumentError` for invalid file names and `UnsupportedError` for remote files.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError(f"expected a file name as a string or a path, not {short_repr(path)}")
    name = check_text(os.fspath(path), "the name of the file")
    if _REMOTE.match(name):
        raise UnsupportedError(f"{name}: only local files are supported; copy it to a local disk first")
    return os.path.expanduser(name) if isinstance(path, str) else name


def file_and_ntuple(path: object) -> tuple[str, str] | None:
    """File and ntuple of a string such as ``"f.root:Events"``; None otherwise, or if a file of that name exists."""
    if not isinstance(path, str) or os.path.isfile(path):
        return None
    file, behind, name = path.partition(".root:")
    return (f"{file}.root", name) if behind else None


def absolute_path(path: str) -> str:
    """A path that stays valid when the working directory changes."""
    if not path or os.path.isabs(path):
        return path
    # Not normalized: after a symbolic link, `..` cannot be resolved textually.
    return os.path.join(os.getcwd(), path)
