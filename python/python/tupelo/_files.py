"""Which files and ntuples people mean."""

import glob
import os
from collections.abc import Iterable, Mapping

from . import _core
from ._short import short
from ._texts import check_name, check_path
from .errors import InvalidArgumentError, MissingFileError

One = str | os.PathLike[str] | Mapping[str, str | None] | Mapping[os.PathLike[str], str | None]
Files = One | Iterable[One]
"""``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``), ``{"run*.root": "Events"}``, a
`pathlib.Path`, or several of these."""


def expand(files: Files) -> list[tuple[str, str | None]]:
    """Files in order, each with the name of the ntuple in it, or None for the only one.

    In texts ``*``, ``?``, ``[…]`` and ``**`` (any folders) are wildcards, unless there is a file of that very name;
    what fits comes sorted. A `pathlib.Path` is a file name whole. ``~`` is the home folder.

    Raises `MissingFileError` for a pattern that no file fits, `InvalidArgumentError` for what names no file.
    """
    if isinstance(files, str | os.PathLike):
        return _one(files)
    if isinstance(files, Mapping):
        return [pair for path, name in files.items() for pair in _one(path, name)]
    if not isinstance(files, Iterable):
        raise InvalidArgumentError(f"files are texts, paths, {{path: name}} or several of these, not {short(files)}")
    found = []
    for one in files:
        if not isinstance(one, str | os.PathLike | Mapping):
            raise InvalidArgumentError(f"a file is named by a text, a path or {{path: name}}, not by {short(one)}")
        found += expand(one)
    return found


def _one(where: str | os.PathLike[str], name: str | None = None) -> list[tuple[str, str | None]]:
    path = check_path(where)
    if name is not None:
        check_name(name)
    elif isinstance(where, str):
        path, name = _core.parse_location(path)
    if not isinstance(where, str) or not glob.has_magic(path) or os.path.exists(path):
        return [(path, name)]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise MissingFileError(f"no file fits {path!r} in {os.getcwd()}")
    return [(each, name) for each in found]
