"""Resolution of file arguments to files and ntuples."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._base.checks import absolute_path, check_name, check_path
from .._base.messages import short_repr
from .._base.sizes import as_integer
from ..errors import InvalidArgumentError, MissingFileError

NtupleSpec = str | Mapping[str, Any] | None
"""The value of a mapping for a file: the name of the ntuple, None for the only one, or a mapping with ``object_path``
and ``steps``.
"""
FileSpec = str | os.PathLike[str] | Mapping[str, NtupleSpec] | Mapping[os.PathLike[str], NtupleSpec]
Files = FileSpec | Iterable[FileSpec]
"""``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``), ``{"run*.root": "Events"}``,
``{"run1.root": {"object_path": "Events", "steps": [[0, 500], [500, 1000]]}}``, a `pathlib.Path`, or a list of these."""

Steps = tuple[tuple[int, int], ...] | None
"""Ranges of entries, or None for all entries."""

_OTHER_KEYS = {"num_entries", "uuid"}
"""Keys that other programs add to the mapping of a file, which are ignored."""


class InputNtuple(NamedTuple):
    """An ntuple in a file, and the selected ranges of its entries."""

    path: str
    """The file name as given."""
    absolute_path: str
    """Its absolute path, which stays valid when the working directory changes, or its URL."""
    name: str | None
    """Path of the ntuple; None for the only one."""
    steps: Steps = None

    @property
    def path_from_here(self) -> str:
        """The file name as given, or its absolute path if the working directory has changed."""
        return self.path if absolute_path(self.path) == self.absolute_path else self.absolute_path

    @property
    def shown_path(self) -> str:
        """The file name as given, without credentials."""
        return _core.display_name(self.path)

    def __repr__(self) -> str:
        # Paths may be URLs with credentials.
        return f"InputNtuple({self.shown_path!r}, {self.name!r}, {self.steps!r})"


def listed(files: Any, opened: type) -> Iterable[Any]:
    """The files of an argument that is one or several of them; ``opened`` is the class of open ntuples."""
    # File objects are iterable, by lines.
    is_one = isinstance(files, str | Mapping | opened) or _is_file_object(files) or not isinstance(files, Iterable)
    return [files] if is_one else files


def _is_file_object(value: object) -> bool:
    """Whether it can be read, or opened like a file of fsspec."""
    return not isinstance(value, os.PathLike) and (hasattr(value, "read") or hasattr(value, "open"))


def resolve(files: Files, remote: "_core.Storage | None" = None) -> list[InputNtuple]:
    """The files in order, each with its ntuple and ranges of entries.

    In strings ``*``, ``?``, ``[…]``, ``{…,…}`` and ``**`` (any directories) are wildcards, unless a file of that name
    exists; matches are sorted. A `pathlib.Path` is always a file name. ``~`` is the home directory. Remote folders are
    listed with the options of ``remote``.

    Raises `MissingFileError` for a pattern without matches and `InvalidArgumentError` for other arguments.
    """
    if isinstance(files, InputNtuple):
        return [files]
    if hasattr(files, "file_path"):
        name = getattr(files, "object_path", None)
        where = files.file_path if name is None else f"{files.file_path}:{name}"
        raise InvalidArgumentError(f"{short_repr(files)} is an open object; give the file name instead: {where!r}")
    if isinstance(files, str | os.PathLike):
        return _resolve_one(files, None, remote)
    if isinstance(files, Mapping):
        return [place for path, inside in files.items() for place in _resolve_one(path, inside, remote)]
    if _is_file_object(files) or not isinstance(files, Iterable):
        raise _not_a_file(files, "files as strings, paths, {path: name} or a list of these")
    found = []
    for one in files:
        if not isinstance(one, str | os.PathLike | Mapping | InputNtuple):
            raise _not_a_file(one, "a file as a string, a path or {path: name}")
        found += resolve(one, remote)
    return found


def _not_a_file(value: object, expected: str) -> InvalidArgumentError:
    if _is_file_object(value):
        return InvalidArgumentError(
            f"expected the name of a file, not a file object ({type(value).__name__}); tupelo.open takes file objects, "
            "and tupelo.iterate, concatenate, hist and scan take their ntuples: tupelo.open(file_object).only()"
        )
    return InvalidArgumentError(f"expected {expected}, not {short_repr(value)}")


def resolve_whole_files(files: Files, remote: "_core.Storage | None" = None) -> list[InputNtuple]:
    """The same, for all entries of the files.

    Also raises `InvalidArgumentError` for steps.
    """
    found = resolve(files, remote)
    for place in found:
        if place.steps is not None:
            raise InvalidArgumentError(f"{place.shown_path}: whole files are read here; remove 'steps'")
    return found


def _resolve_one(
    where: str | os.PathLike[str], inside: NtupleSpec, remote: "_core.Storage | None"
) -> list[InputNtuple]:
    path = check_path(where)
    name, steps = _parse_spec(path, inside)
    if name is not None:
        check_name(name)
    elif isinstance(where, str):
        location = _core.parse_location(path)
        path, name = location.file, location.object
    found = _core.matching_files(path, remote) if isinstance(where, str) else None
    if found is None:
        return [InputNtuple(path, absolute_path(path), name, steps)]
    if not found:
        place = "" if _core.is_remote(path) else f" in {os.getcwd()}"
        raise MissingFileError(f"no file matches {_core.display_name(path)!r}{place}")
    return [InputNtuple(each, absolute_path(each), name, steps) for each in found]


def _parse_spec(path: str, inside: Any) -> tuple[Any, Steps]:
    if not isinstance(inside, Mapping):
        return inside, None
    path = _core.display_name(path)
    if unknown := [key for key in inside if key not in {"object_path", "steps", *_OTHER_KEYS}]:
        raise InvalidArgumentError(f"{path}: unknown key {short_repr(unknown[0])}: expected 'object_path' or 'steps'")
    return inside.get("object_path"), _parse_steps(path, inside.get("steps"))


def _parse_steps(path: str, steps: Any) -> Steps:
    """Parses ranges of entries.

    Raises `InvalidArgumentError` for invalid ranges and for ranges that are not ascending.
    """
    if steps is None:
        return None
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise InvalidArgumentError(
            f"{path}: expected steps as pairs of entries, [[0, 500], [500, 1000]], not {short_repr(steps)}"
        )
    found: list[tuple[int, int]] = []
    for step in steps:
        pair = list(step) if isinstance(step, Sequence) and not isinstance(step, str) else []
        start, stop = (as_integer(pair[0]), as_integer(pair[1])) if len(pair) == 2 else (None, None)
        if start is None or stop is None or not 0 <= start <= stop < 2**63:
            raise InvalidArgumentError(f"{path}: expected a step as (first entry, end), not "
                                       f"{short_repr(step)}")  # fmt: skip
        if found and start < found[-1][1]:
            raise InvalidArgumentError(f"{path}: the step {short_repr(step)} overlaps the previous step")
        found.append((start, stop))
    return tuple(found)


def entry_ranges(place: InputNtuple, num_entries: int) -> list[tuple[int, int]]:
    """The selected ranges of entries of a file with ``num_entries`` entries.

    Raises `InvalidArgumentError` for steps past the last entry.
    """
    if place.steps is None:
        return [(0, num_entries)]
    for start, stop in place.steps:
        if stop > num_entries:
            raise InvalidArgumentError(
                f"{place.shown_path}: the step [{start}, {stop}] ends past the last of {num_entries} entries"
            )
    return list(place.steps)
