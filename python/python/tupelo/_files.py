"""Which files and ntuples people mean."""

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _core
from ._checks import absolute_path, check_name, check_path
from ._messages import short
from ._sizes import whole
from .errors import InvalidArgumentError, MissingFileError

In = str | Mapping[str, Any] | None
"""What a mapping says of a file: the name of the ntuple in it, None for the only one, or a mapping with
``object_path`` and ``steps``."""
One = str | os.PathLike[str] | Mapping[str, In] | Mapping[os.PathLike[str], In]
Files = One | Iterable[One]
"""``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``), ``{"run*.root": "Events"}``,
``{"run1.root": {"object_path": "Events", "steps": [[0, 500], [500, 1000]]}}``, a `pathlib.Path`, or several
of these."""

Steps = tuple[tuple[int, int], ...] | None
"""Ranges of entries, or None for all entries."""

_BOOKKEEPING = {"num_entries", "uuid"}
"""What other programs note in a mapping of a file, which says nothing of what to read."""


class Place(NamedTuple):
    """An ntuple in a file, and which of its entries are meant."""

    path: str
    """The file as it was named."""
    absolute_path: str
    """The same when it was named: it stays true when the working directory changes."""
    name: str | None
    """None is the only ntuple."""
    steps: Steps = None

    @property
    def path_from_here(self) -> str:
        """The file as it was named, or by its absolute path where the name leads elsewhere by now."""
        return self.path if absolute_path(self.path) == self.absolute_path else self.absolute_path


def places(files: Files) -> list[Place]:
    """Files in order, each with the ntuple in it and the ranges of entries.

    In texts ``*``, ``?``, ``[…]`` and ``**`` (any folders) are wildcards, unless there is a file of that very name;
    what fits comes sorted. A `pathlib.Path` is a file name whole. ``~`` is the home folder.

    Raises `MissingFileError` for a pattern that no file fits, `InvalidArgumentError` for what names no file.
    """
    if isinstance(files, Place):
        return [files]
    if hasattr(files, "file_path"):
        name = getattr(files, "object_path", None)
        where = files.file_path if name is None else f"{files.file_path}:{name}"
        raise InvalidArgumentError(f"{short(files)} is open, and files are named here: give {where!r}")
    if isinstance(files, str | os.PathLike):
        return _one(files)
    if isinstance(files, Mapping):
        return [place for path, inside in files.items() for place in _one(path, inside)]
    if not isinstance(files, Iterable):
        raise InvalidArgumentError(f"files are texts, paths, {{path: name}} or several of these, not {short(files)}")
    found = []
    for one in files:
        if not isinstance(one, str | os.PathLike | Mapping | Place):
            raise InvalidArgumentError(f"a file is named by a text, a path or {{path: name}}, not by {short(one)}")
        found += places(one)
    return found


def expand(files: Files) -> list[Place]:
    """The same for all entries of the files.

    Raises `InvalidArgumentError` for steps too.
    """
    found = places(files)
    for place in found:
        if place.steps is not None:
            raise InvalidArgumentError(f"{place.path}: 'steps' choose entries, and here whole files are meant")
    return found


def _one(where: str | os.PathLike[str], inside: In = None) -> list[Place]:
    path = check_path(where)
    name, steps = _inside(path, inside)
    if name is not None:
        check_name(name)
    elif isinstance(where, str):
        path, name = _core.parse_location(path)
    if not isinstance(where, str) or not glob.has_magic(path) or os.path.exists(path):
        return [Place(path, absolute_path(path), name, steps)]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise MissingFileError(f"no file fits {path!r} in {os.getcwd()}")
    return [Place(each, absolute_path(each), name, steps) for each in found]


def _inside(path: str, inside: Any) -> tuple[Any, Steps]:
    if not isinstance(inside, Mapping):
        return inside, None
    if unknown := [key for key in inside if key not in {"object_path", "steps", *_BOOKKEEPING}]:
        raise InvalidArgumentError(f"{path}: {short(unknown[0])} is not known; a file has 'object_path' and 'steps'")
    return inside.get("object_path"), _steps(path, inside.get("steps"))


def _steps(path: str, steps: Any) -> Steps:
    """Ranges of entries.

    Raises `InvalidArgumentError` for what is none, and for ranges that do not ascend.
    """
    if steps is None:
        return None
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise InvalidArgumentError(f"{path}: steps are pairs of entries as [[0, 500], [500, 1000]], not {short(steps)}")
    found: list[tuple[int, int]] = []
    for step in steps:
        pair = list(step) if isinstance(step, Sequence) and not isinstance(step, str) else []
        start, stop = (whole(pair[0]), whole(pair[1])) if len(pair) == 2 else (None, None)
        if start is None or stop is None or not 0 <= start <= stop < 2**63:
            raise InvalidArgumentError(f"{path}: a step is a pair of a first entry and the one behind the last, not "
                                       f"{short(step)}")  # fmt: skip
        if found and start < found[-1][1]:
            raise InvalidArgumentError(f"{path}: the step {short(step)} begins before the one before it ends")
        found.append((start, stop))
    return tuple(found)


def within(place: Place, num_entries: int) -> list[tuple[int, int]]:
    """The ranges of entries of a file that has so many.

    Raises `InvalidArgumentError` for steps behind the last entry.
    """
    if place.steps is None:
        return [(0, num_entries)]
    for start, stop in place.steps:
        if stop > num_entries:
            raise InvalidArgumentError(
                f"{place.path}: the step [{start}, {stop}] ends behind the last of {num_entries} entries"
            )
    return list(place.steps)
