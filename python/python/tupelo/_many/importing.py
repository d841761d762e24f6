"""Importing trees as ntuples."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._base.checks import absolute_path, check_name, check_text
from .._base.messages import short_repr
from .._base.progress import Progress, is_silent, report_progress
from ..errors import Error, InvalidArgumentError, TupeloWarning
from ..fields import _select
from ..ntuple._ntuple import Ntuple, Tree
from ..ntuple._options import FileOptions, complete
from ..reading._chain import open_chain
from ..reading._file import reopen
from ..reading._files import Files
from ..writing._copying import check_output, new_file, write_options

SAMPLE_ENTRIES = 1000
"""Entries of each tree that ``validate="sample"`` compares: half of them from its begin, half from its end."""
_EXTENTS = {"sample": SAMPLE_ENTRIES, "full": 2**63, "none": 0}


@dataclass(frozen=True)
class ImportedField:
    """What was compared of a field."""

    branch: str
    """Its name in the tree."""
    field: str
    """Its name in the ntuple."""
    num_values: int
    """Numbers and strings that were compared."""
    first_difference: int | None
    """The first entry in which it is not equal; None if it is equal."""


@dataclass(frozen=True)
class ImportReport:
    """The outcome of `import_trees`."""

    num_entries: int
    """Entries of the ntuple."""
    num_compared: int
    """Entries that were compared with the trees."""
    fields: tuple[ImportedField, ...]
    """The fields that were compared."""
    skipped: Mapping[str, str]
    """Branches, fields and objects that were not imported, and aliases, friends, indices, user information and weights
    of trees: the reason by path or by name."""
    renamed: Mapping[str, str]
    """Classes and containers that are stored as others, and these; empty for records without a name."""


def import_trees(
    files: Files | Tree,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    fields: str | list[str] | None = None,
    rename: Mapping[str, str] | None = None,
    dots: str = "_",
    collections: bool = True,
    class_names: bool = True,
    objects: str | list[str] | bool | None = None,
    validate: str = "sample",
    skip_unreadable: bool = False,
    progress: Progress = None,
    **options: Any,
) -> ImportReport:
    """Writes trees (``TTree``) as one ntuple of a new file, and compares both.

    ``files`` are those of `iterate`, or open trees; their entries are concatenated, or ranges of them if they have
    ``steps``. All trees must have the selected branches. The ntuple has the path of the first tree, or the path
    ``name``. ``fields`` selects branches by dotted paths and globs, by default all that can be read.

    Fields have the C++ types of the branches. Objects become records, with ``class_names`` named by their classes
    except where ROOT stores objects of the class differently. ROOT makes objects of them if it has dictionaries of the
    classes; without, it reads them by ``RDataFrame`` and views, but cannot make a model of all fields, which needs
    ``class_names=False``. With ``collections``, arrays with the same counter become one collection, and appear under
    their names as projected fields, as with ROOT's importer. Names of ntuples cannot have dots: ``dots`` replaces them,
    and names of ATLAS auxiliary stores get colons. ``rename`` is a mapping of the names of top-level fields of the tree
    to names in the ntuple.

    ``objects`` are paths and globs of objects that are neither trees nor ntuples, such as histograms, which are copied
    under the same paths; True or ``"**"`` copies all. Of several files, the first that has an object of a path provides
    it.

    Branches that cannot be read, or that have no form in an ntuple, are left out: the ``skipped`` of the report lists
    them, and a `TupeloWarning` names each unless ``skip_unreadable`` is true. The counters of selected arrays are
    imported.

    ``validate`` says what is compared when the file is written, entry by entry and bit by bit: ``"sample"`` (1000
    entries of each tree), ``"full"`` or ``"none"``. ``options`` are those of `Ntuple.copy`, and ``progress`` is that of
    `iterate`. An existing file is replaced when the new one is complete.

    Raises `InvalidArgumentError` for ntuples, invalid options and names that two fields would have,
    `UnsupportedError` if no branch can be imported, `Error` if a file changes meanwhile or the ntuple differs from
    the trees, and the errors of `open`, `Ntuple.arrays` and `recreate`.

    >>> import tupelo, uproot
    >>> with uproot.recreate("tree.root") as file:
    ...     file.mktree("Events", {"pt": "var * float64", "run": "int64"}).extend({"pt": [[1.5], []], "run": [1, 2]})
    >>> report = tupelo.import_trees("tree.root:Events", "imported.root", rename={"run": "runNumber"}, validate="full")
    >>> report.num_entries, report.num_compared, [field.field for field in report.fields]
    (2, 2, ['npt', 'pt', 'runNumber'])
    >>> tupelo.open("imported.root:Events").arrays(["pt", "runNumber"]).tolist()
    [{'pt': [1.5], 'runNumber': 1}, {'pt': [], 'runNumber': 2}]
    """
    if validate not in _EXTENTS:
        known = ", ".join(map(repr, _EXTENTS))
        raise InvalidArgumentError(f"expected validate as one of {known}, not {short_repr(validate)}")
    if len(check_text(dots, "dots")) != 1:
        raise InvalidArgumentError(f"expected dots as one character, not {short_repr(dots)}")
    if name is not None:
        check_name(name)
    if isinstance(objects, bool):
        objects = "**" if objects else None
    patterns = [check_text(text, "objects") for text in ([objects] if isinstance(objects, str) else objects or [])]
    reading = {"storage_options": options.pop("storage_options", None)}
    writing = write_options("import_trees", options)
    trees = open_chain(files, complete("import_trees", reading, FileOptions), is_quiet=True)
    planned = _core.Import(
        trees._core,
        trees._request(fields, None, {}),
        trees.ranges,
        renames=_select.renames(rename),
        dots=dots,
        collections=bool(collections),
        class_names=bool(class_names),
    )
    target = check_output(path, trees._inputs)
    inside = trees._core.path.partition(";")[0] if name is None else name
    total = planned.entries
    remote = trees._chain_location.storage
    first = trees._chain_location.places[0]
    where = first._location.storage if remote is None and isinstance(first, Ntuple) else remote
    with report_progress(progress) as tell, new_file(target, where) as file:
        tell(0, total)
        callback = None if is_silent(progress) else lambda done: tell(done, total)
        left_out = _copy_objects(file, trees._inputs if patterns else [], patterns, options=writing, storage=remote)
        entries = planned.write(file=file, path=inside, options=writing, tell=callback)
    compared = 0
    found: tuple[ImportedField, ...] = ()
    if most := _EXTENTS[validate]:
        with reopen(absolute_path(target), storage=remote) as made:
            comparison = planned.compare(made._core.table(inside), most)
        compared = comparison.entries
        found = tuple(
            ImportedField(
                branch=one.branch,
                field=one.field,
                num_values=one.num_values,
                first_difference=one.first_difference,
            )
            for one in comparison.fields
        )
    for one in found:
        if one.first_difference is not None:
            raise Error(
                f"{_core.display_name(target)}: ntuple '{inside}': field '{one.field}' is not equal to branch "
                f"'{one.branch}' in entry {one.first_difference}"
            )
    skipped = dict(planned.skipped())
    if not skip_unreadable:
        for branch, reason in skipped.items():
            text = f"{_core.display_name(target)}: ntuple '{inside}': branch '{branch}' is left out: {reason}"
            warnings.warn(text, TupeloWarning, stacklevel=2)
        for what in planned.not_kept():
            text = f"{_core.display_name(target)}: ntuple '{inside}': {what} is left out: ntuples have none"
            warnings.warn(text, TupeloWarning, stacklevel=2)
    skipped |= dict.fromkeys(planned.not_kept(), "ntuples have none")
    renamed = planned.renamed()
    if unnamed := ", ".join(name for name, stored in renamed.items() if not stored):
        text = f"ntuple '{inside}' has no class names where ROOT does not store such objects in ntuples: {unnamed}"
        warnings.warn(f"{_core.display_name(target)}: {text}", TupeloWarning, stacklevel=2)
    for name, stored in renamed.items():
        if stored:
            text = f"{_core.display_name(target)}: ntuple '{inside}': {name} is stored as {stored}"
            warnings.warn(text, TupeloWarning, stacklevel=2)
    return ImportReport(entries, compared, found, skipped | left_out, renamed)


def _copy_objects(
    file: "_core.FileWriter",
    paths: list[str | None],
    patterns: list[str],
    *,
    options: dict[str, Any],
    storage: "_core.Storage | None",
) -> dict[str, str]:
    """Copies objects of files. Returns the reason for each that is left out."""
    known: set[str] = set()
    left_out: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        if path is None:
            raise InvalidArgumentError("objects can only be copied from files with a path or URL")
        with reopen(path, storage=storage) as source:
            copied = _core.Import.copy_objects(
                from_=source._core, to=file, patterns=patterns, options=options, known=known
            )
        known = copied.known
        left_out |= dict.fromkeys(copied.left_out, f"another file has it, not only {_core.display_name(path)}")
    return left_out
