"""Merging many files into one."""

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .. import _core
from .._base.checks import storage
from .._base.messages import short_repr
from .._base.progress import Progress, is_silent, report_progress
from ..errors import InvalidArgumentError, TupeloWarning
from ..fields import _select
from ..reading._file import NTUPLE_CLASSES, reopen
from ..reading._files import Files, InputNtuple, resolve_whole_files
from ..writing._copying import check_output, new_file, write_options
from ..writing._trees import TREE_CLASSES

MergeMode = Literal["strict", "union", "intersect"]
"""What to do with fields that some files lack: refuse them, keep them with missing values, or drop them."""
_MODES = ("strict", "union", "intersect")


@dataclass(frozen=True)
class MergeReport:
    """The outcome of `merge`."""

    num_entries: Mapping[str, int]
    """Entries of each ntuple and tree, by its path."""
    num_objects: int
    """Other objects that were written."""
    num_sums: int
    """Histograms among them that are sums of several files."""
    skipped: Mapping[str, str]
    """Trees, fields and objects that were left out as a whole or in part: the reason by path."""


class _Contents(NamedTuple):
    """What files have, by the paths of objects."""

    ntuples: dict[str, list[tuple[str, str | None]]]
    """The files of each ntuple, with its path in them."""
    trees: dict[str, list[tuple[str, str]]]
    """The files of each tree, with its path in them."""
    with_objects: list[str]
    """Files with other objects or directories."""


def merge(
    files: Files,
    path: str | os.PathLike[str],
    *,
    mode: MergeMode = "strict",
    progress: Progress = None,
    **options: Any,
) -> MergeReport:
    """Writes the ntuples, trees and other objects of files into a new file, as ``hadd`` does.

    ``files`` are those of `iterate`, whole files or ntuples of them. Ntuples with the same path become one, in the
    order of the files, with their attribute sets and metadata. Their pages are copied as they are stored, without
    decompressing them, unless ``options`` say how to store them (those of `Ntuple.copy`); what cannot stay as it is is
    decoded. The baskets of trees are copied as they are stored, unless ``compression`` is given. Histograms,
    profiles, efficiencies, graphs and ``TParameter`` with the same path are added up; of other objects, the first of
    each path is copied. Of files that are given without the name of an ntuple, all objects are merged.

    ``mode`` says what to do with fields of ntuples and branches of trees that some files lack: ``"strict"`` refuses
    them, ``"union"`` keeps them, with zeros, empty strings and empty lists for entries of the other files (trees are
    decoded for that, and arrays whose counter a file uses have as many zeros as it says), and ``"intersect"`` drops
    them.
    Numbers of different types get the type that holds all values, except with ``"strict"``. A `TupeloWarning` names
    everything that is left out, and the ``skipped`` of the report lists it. ``progress`` is that of `iterate`. An
    existing file is replaced when the new one is complete.

    Raises `InvalidArgumentError` for fields that some files lack or have with another type, if there is nothing to
    merge, and for invalid options, and the errors of `open` and `recreate`.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"merge{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> tupelo.merge(["merge1.root", "merge2.root"], "merged.root").num_entries
    {'Events': 4}
    >>> tupelo.open("merged.root:Events").arrays(library="np")["x"]
    array([ 1, 10,  2, 20])
    """
    if mode not in _MODES:
        known = ", ".join(map(repr, _MODES))
        raise InvalidArgumentError(f"expected mode as one of {known}, not {short_repr(mode)}")
    remote = storage(options.pop("storage_options", None))
    writing = write_options("merge", options)
    places = resolve_whole_files(files, remote)
    contents = _contents(places, remote)
    if not any(contents):
        raise InvalidArgumentError("the files contain no ntuples and no other objects that can be merged")
    skipped: dict[str, str] = {}
    target = check_output(path, [place.absolute_path for place in places])
    tables = {name: _chain(found, mode, remote) for name, found in contents.ntuples.items()}
    for name, table in tables.items():
        missing = table.missing_fields()
        if missing is not None and mode == "strict":
            raise InvalidArgumentError(
                f"{table.file_path}: ntuple '{name}': some files lack the fields {missing}; mode='union' keeps them, "
                "with zeros, and mode='intersect' drops them"
            )
        if mode == "strict" and (promoted := table.promoted_fields()):
            raise InvalidArgumentError(f"ntuple '{name}': {promoted[0]}; mode='union' writes it in the wider type")
        if missing is not None:
            skipped[name] = f"some files lack the fields {missing}"
    total = sum(table.num_entries for table in tables.values())
    num_entries: dict[str, int] = {}
    with report_progress(progress) as tell, new_file(target, remote) as file:
        tell(0, total)
        merged = _core.merge_objects(contents.with_objects, file, writing, remote)
        skipped |= dict(merged.left_out)
        for name, trees in contents.trees.items():
            entries, reasons = _core.merge_tree(name, trees, mode, file, writing, remote)
            if entries is not None:
                num_entries[name] = entries
            if reasons:
                skipped[name] = "; ".join(reasons)
        in_trees = sum(num_entries.values())
        total += in_trees
        tell(in_trees, total)
        for name, table in tables.items():
            before = sum(num_entries.values())
            callback = None if is_silent(progress) else lambda done, before=before: tell(before + done, total)
            request = _select.Request([], entry_stop=table.num_entries)
            copied = table.copy(request, file=file, path=name, options=writing, renames=[], tell=callback)
            for text in copied.warnings:
                warnings.warn(text, TupeloWarning, stacklevel=2)
            num_entries[name] = copied.entries
    for left_out, reason in skipped.items():
        text = f"{_core.display_name(target)}: '{left_out}' is not merged as a whole: {reason}"
        warnings.warn(text, TupeloWarning, stacklevel=2)
    return MergeReport(num_entries, merged.written, merged.sums, skipped)


def _contents(places: Iterable[InputNtuple], remote: "_core.Storage | None") -> _Contents:
    contents = _Contents({}, {}, [])
    for place in places:
        if place.name is not None:
            found = contents.trees if _is_tree(place, remote) else contents.ntuples
            found.setdefault(place.name.partition(";")[0], []).append((place.absolute_path, place.name))
            continue
        if _core.is_object_uri(place.absolute_path):
            name = _core.chain([(place.absolute_path, None)], **_how(remote)).path
            contents.ntuples.setdefault(name, []).append((place.absolute_path, None))
            continue
        with reopen(place.absolute_path, storage=remote) as file:
            has_others = False
            classes = file.classnames(cycle=False)
            if not classes:
                file._core.check_saved()
            for name, class_name in classes.items():
                if class_name in NTUPLE_CLASSES:
                    contents.ntuples.setdefault(name, []).append((place.absolute_path, name))
                elif class_name in TREE_CLASSES:
                    contents.trees.setdefault(name, []).append((place.absolute_path, name))
                else:
                    has_others = True
        if has_others:
            contents.with_objects.append(place.absolute_path)
    return contents


def _is_tree(place: InputNtuple, remote: "_core.Storage | None") -> bool:
    if _core.is_object_uri(place.absolute_path):
        return False
    with reopen(place.absolute_path, storage=remote) as file:
        classes = file.classnames(cycle=True) | file.classnames(cycle=False)
        return classes.get(place.name or "") in TREE_CLASSES


def _how(remote: "_core.Storage | None", fields: str = "common") -> dict[str, Any]:
    how = {"page_checksums": True, "memory_budget": None, "storage": remote}
    return {"fields": fields, "allow_missing": False, **how}


def _chain(found: list[tuple[str, str | None]], mode: MergeMode, remote: "_core.Storage | None") -> "_core.Table":
    return _core.chain(found, **_how(remote, "defaults" if mode == "union" else "common"))
