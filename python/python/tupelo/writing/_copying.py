"""Copies of ntuples."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._base.checks import absolute_path, check_name, check_path, file_and_ntuple, storage
from .._base.locations import NtupleLocation
from .._base.messages import short_repr
from .._base.progress import Progress, is_silent, report_progress
from ..errors import InvalidArgumentError, TupeloWarning
from ..fields import _select
from ._options import WriteOptions


def copy(
    core: "_core.Table",
    request: _select.Request,
    path: str | os.PathLike[str],
    source: NtupleLocation,
    inputs: Iterable[str | None],
    name: str | None,
    rename: Mapping[str, str] | None,
    options: Mapping[str, Any],
    progress: Progress,
) -> int:
    """Writes a request as the only ntuple of a new file and returns the number of entries."""
    for column, text in request.computed:
        if text != f"`{column}`":
            raise InvalidArgumentError(
                f"{short_repr(column)} is an expression, not a field; give it a name: "
                f"with_columns({{'name': {column!r}}})"
            )
    target = check_output(path, inputs)
    if name is not None:
        check_name(name)
    renames = _select.renames(rename)
    own = dict(options)
    remote = storage(own.pop("storage_options", None)) or source.storage
    writing = write_options("copy", own)
    total = request.entry_stop - request.entry_start
    place = f"{source.file_path}: tree '{core.path}'"
    if is_tree := core.tree() is not None:
        text = f"{place} is copied as an ntuple; import_trees() also compares both, WritableFile.mktree() writes trees"
        warnings.warn(text, TupeloWarning, stacklevel=3)
    with report_progress(progress) as tell, new_file(target, remote) as file:
        tell(0, total)
        callback = None if is_silent(progress) else lambda done: tell(done, total)
        inside = core.path.partition(";")[0] if name is None else name
        copied = core.copy(request, file=file, path=inside, options=writing, renames=renames, tell=callback)
    for text in copied.warnings:
        warnings.warn(f"{place}: {text}" if is_tree else text, TupeloWarning, stacklevel=3)
    return copied.entries


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | None]) -> str:
    """The name of a file to write, which is none of the input files."""
    target = check_path(path)
    if (pair := file_and_ntuple(path)) is not None:
        file_path, inside = pair
        raise InvalidArgumentError(
            f"{short_repr(path)} names a file and an ntuple; use the path {_core.display_name(file_path)!r} and "
            f"name={inside!r}"
        )
    if any(_is_same_file(target, source) for source in inputs):
        raise InvalidArgumentError(f"{_core.display_name(target)} is the input file; write to another file")
    return target


def write_options(function: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `recreate` and `WritableFile.mkrntuple` as a dict for the engine."""
    own = dict(given)
    described = {key: own.pop(key) for key in ("description", "encodings", "compressions") if key in own}
    known = WriteOptions.__dataclass_fields__
    for option in own:
        if option not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {short_repr(option)}")
    checkpoints = {
        "checkpoint_bytes": _core.DEFAULT_CHECKPOINT_BYTES,
        "checkpoint_seconds": _core.DEFAULT_CHECKPOINT_SECONDS,
    }
    return WriteOptions(**(checkpoints | own)).options(**described)


@contextmanager
def new_file(path: str, remote: "_core.Storage | None") -> "Iterator[_core.FileWriter]":
    """A file that replaces an existing one at the end of the block, unless an error is raised."""
    file = _core.FileWriter(absolute_path(path), update=False, storage=remote)
    try:
        yield file
        file.finish()
    except BaseException:
        file.abort()
        raise


def _is_same_file(target: str, source: str | None) -> bool:
    # A file object has no path that could be overwritten.
    if source is None or target == source:
        return source is not None
    return os.path.exists(target) and os.path.exists(source) and os.path.samefile(target, source)
