"""Checks of strings: names, descriptions and paths."""

import operator
import os
import re
from collections.abc import Mapping
from typing import Any, SupportsIndex

from .. import _core
from ..errors import InvalidArgumentError, UnsupportedError
from .messages import short_repr


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


_CHAINED_URL = re.compile(r"[\w+.-]+(://[^:]*)?::[\w+.-]+(://|::)")
"""How chained URLs of fsspec start: ``simplecache::https://…``, ``zip://a.root::https://…``."""
_URL_AS_PATH = re.compile(r"(https?|s3a?|gs|gcs|az|azure|abfss?|x?roots?):/(?!/)", re.IGNORECASE)
"""How a URL starts that was a `pathlib.Path`, which removes repeated slashes."""
_OBJECTS_IN_DIRECTORY = "ntpl+file:"
"""How the URI of an ntuple starts that is stored as objects in a directory."""


def check_path(path: object) -> str:
    """The name of a file or its URL; in strings ``~`` is the home directory of the user.

    URLs of local files, ``file:PATH`` and ``file:///PATH``, become paths, by the rule of the engine.

    Raises `InvalidArgumentError` for invalid file names and for URLs as a `pathlib.Path`, and `UnsupportedError` for
    chained URLs of fsspec.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError(f"expected a file name as a string or a path, not {short_repr(path)}")
    name = check_text(os.fspath(path), "the name of the file")
    if isinstance(path, str):
        name = os.path.expanduser(name)
        if _CHAINED_URL.match(name):
            shown = "::".join(map(_core.display_name, name.split("::")))
            raise UnsupportedError(
                f"{shown} is a chained URL, which only fsspec can read: use tupelo.open(fsspec.open(url).open())"
            )
    elif _URL_AS_PATH.match(name) and not os.path.exists(name.partition("/")[0]):
        url = _core.display_name(name.replace(":/", "://", 1))
        raise InvalidArgumentError(
            f"{url!r} was given as a {type(path).__name__}, which is a path of a local file and removes one slash of a "
            "URL; give URLs as a str"
        )
    return re.sub("^file:(//)?", "", name)


def check_local_path(path: object) -> str:
    """The same for a file that must be local.

    Also raises `UnsupportedError` for URLs.
    """
    name = check_path(path)
    if _core.is_remote(name):
        raise UnsupportedError(f"{_core.display_name(name)}: only a local file is supported here")
    return name


def storage(options: object, cache: object = None) -> "_core.Storage | None":
    """The storage for the keywords ``storage_options`` and ``cache``; None for the defaults.

    Raises `InvalidArgumentError` for other types and for unknown options.
    """
    given = check_mapping(options, "storage_options")
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise InvalidArgumentError(f"expected cache as the path of a directory, not {short_repr(cache)}")
    if not given and cache is None:
        return None
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    return _core.Storage(texts, None if cache is None else os.path.expanduser(os.fspath(cache)))


def file_and_ntuple(path: object) -> tuple[str, str] | None:
    """File and ntuple of a string such as ``"f.root:Events"``; None otherwise, or if a file of that name exists."""
    if not isinstance(path, str) or os.path.isfile(path):
        return None
    file, behind, name = path.partition(".root:")
    return (f"{file}.root", name) if behind else None


def absolute_path(path: str) -> str:
    """A path that stays valid when the working directory changes."""
    if path.lower().startswith(_OBJECTS_IN_DIRECTORY):
        return path[: len(_OBJECTS_IN_DIRECTORY)] + absolute_path(path[len(_OBJECTS_IN_DIRECTORY) :])
    if not path or os.path.isabs(path) or _core.is_remote(path):
        return path
    # Not normalized: after a symbolic link, `..` cannot be resolved textually.
    return os.path.join(os.getcwd(), path)


def entry_number(entry: SupportsIndex) -> int:
    """An entry number that counts from 0.

    Raises `InvalidArgumentError` for negative numbers and for other values than integers.
    """
    try:
        number = operator.index(entry)
    except TypeError:
        raise InvalidArgumentError(f"expected an entry number as an integer, not {short_repr(entry)}") from None
    if not 0 <= number < 2**64:
        raise InvalidArgumentError(f"entry {number} is out of range: entries are counted from 0")
    return number
