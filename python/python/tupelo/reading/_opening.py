"""Opening files, and objects in them by their names."""

import io
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, cast

from .. import _core
from .._base.checks import check_path, storage
from .._base.messages import short_repr
from .._base.sizes import parse_optional_bytes
from ..errors import InvalidArgumentError, NotFoundError
from ..fields._fields import Field
from ..fields._objects import Instance
from ..histogram._efficiency import Efficiency
from ..histogram._graph import Graph
from ..histogram._histogram import Histogram
from ..ntuple._ntuple import Ntuple
from ._chain import Chain, ChainLocation, FieldPolicy, check_policy
from ._file import TABLE_CLASSES, File, reopen
from ._files import FileSpec, resolve_whole_files


def open(
    where: FileSpec | Iterable[FileSpec] | BinaryIO,
    *,
    fields: FieldPolicy = "common",
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    metrics: bool = False,
    recover: bool = False,
    storage_options: Mapping[str, object] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> File | Ntuple | Chain | Field | Histogram | Graph | Efficiency | Instance:
    """Opens a ROOT file, an object in it, a field of an ntuple, or the ntuples of several files, as ``where`` says.

    ``"f.root"`` returns a `File`, ``"f.root:dir/Events"`` an `Ntuple`, ``"f.root:dir/Events/jets/pt"`` its `Field`
    ``jets.pt``, and ``"f.root:dir/h"`` another object, as `File` does. For names with colons, use ``{"f.root":
    "dir/Events"}``. A `pathlib.Path` is always a file name. ``~`` in a string is the home directory.
    ``page_checksums=False`` skips the checksums of pages; those of metadata are always verified.

    Several files return a `Chain` of their ntuples or trees: a list of such names, a mapping of several files, or a
    pattern such as ``"run*.root:Events"`` that matches several. If the files have different fields, ``fields="common"``
    reads those that all have, and a warning lists the others; ``fields="union"`` reads those that any file has, with
    missing values for files that lack them.

    A file object also returns a `File`, which cannot be pickled, nor can its ntuples. From a file of fsspec
    (``fsspec.open(url).open()``) ranges are read by its file system. All bytes of others (`io.BytesIO`, ``open(path,
    "rb")``) are read into memory and stay there as long as the `File` and its ntuples.

    ``memory_budget`` limits the memory that reading may take in addition to the requested values, in bytes or as a
    string such as ``"2 GiB"`` (default 1 GiB). Larger requests are fetched in smaller batches; if that is not
    possible, a `LimitError` is raised.

    ``metrics`` collects statistics for `Ntuple.metrics`.

    ``recover`` reads a file whose writer was killed before it saved anything, or that was cut off: its directories are
    rebuilt from the keys in it, as ROOT does. Files whose directories lead to objects are read as usual. If the
    streamer info is damaged, only trees and objects of ROOT's own classes are read.

    A file that breaks a rule of the format that ROOT does not check is read as ROOT reads it, with a `TupeloWarning`.

    A URL of the schemes ``http``, ``https``, ``s3``, ``gs``, ``az``, ``abfs``, ``root`` or ``roots`` is a remote file.
    ``storage_options`` are its credentials, endpoints and limits by name, such as ``{"anonymous": True}`` or
    ``{"aws_endpoint_url": "https://s3.example.org"}``; without them, they come from the environment, as for other
    programs. ``cache`` is a directory that keeps fetched ranges, up to 10 GiB. Both are pickled with the `File` and its
    ntuples; errors and names do not show them.

    The URI of an ntuple in an object store (``"ntpl+s3://BUCKET/PREFIX"``, ``"ntpl+file:///DIRECTORY/NAME"``,
    ``"daos://POOL/CONTAINER:NAME"``, or the ``"ntpl+mirror:…"`` of several; see `recreate`) returns the `Ntuple`, with
    the same options, except ``cache``.

    Raises `MissingFileError` (a `FileNotFoundError`) if the file does not exist, `NotFoundError` (a `KeyError`) with
    similar names if it has no such object, `InvalidArgumentError` if the name is that of a directory, `CorruptError`
    for a damaged file or one that is not a ROOT file, `UnsupportedError` for unknown schemes, and `StorageError` (an
    `OSError`) for errors of the network and of servers, after retries.


    >>> import tupelo
    >>> with tupelo.recreate("open.root") as out:
    ...     out["dir/Events"] = {"x": [1.5, 2.5]}
    >>> with tupelo.open("open.root:dir/Events") as ntuple:
    ...     print(ntuple["x"].array(library="np"))
    [1.5 2.5]
    >>> tupelo.open("open.root:dir/Events/x")
    <tupelo.Field 'x': double>
    """
    name: str | None = None
    budget = parse_optional_bytes("memory_budget", memory_budget)
    remote = storage(storage_options, cache)
    if (fsspec := sys.modules.get("fsspec")) is not None and isinstance(where, fsspec.core.OpenFile):
        shown = _core.display_name(where.path)
        raise InvalidArgumentError(
            f"the OpenFile {shown!r} of fsspec is not open; pass the result of its method open()"
        )
    if hasattr(where, "read"):
        opened = _open_object(
            where, page_checksums=page_checksums, memory_budget=budget, metrics=metrics, recover=recover
        )
        opened._warn()
        return opened
    if _are_several(where) or is_pattern(where, remote):
        return _open_several(where, fields, page_checksums, budget, remote, {"metrics": metrics, "recover": recover})
    if isinstance(where, Mapping):
        ((file_path, inside),) = where.items()
        path, name = check_path(file_path), cast("str | None", inside)
    else:
        path = check_path(where)
        if isinstance(where, str):
            location = _core.parse_location(path)
            path, name = location.file, location.object
    file = reopen(
        path,
        page_checksums=page_checksums,
        memory_budget=budget,
        metrics=metrics,
        storage=remote,
        recover=recover,
    )
    file._warn()
    if not isinstance(where, Mapping) and _core.is_object_uri(path):
        (name,) = file
    return file if name is None else _named(file, name)


def _are_several(where: object) -> bool:
    """Whether it is a list or mapping of files, or of a file with ``object_path``."""
    if isinstance(where, Mapping):
        return len(where) != 1 or any(isinstance(inside, Mapping) for inside in where.values())
    return not isinstance(where, str | bytes | os.PathLike) and isinstance(where, Iterable)


def is_pattern(where: object, remote: "_core.Storage | None") -> bool:
    """Whether it is a pattern that matches files."""
    return isinstance(where, str) and bool(_core.matching_files(_core.parse_location(check_path(where)).file, remote))


def _open_several(
    where: Any,
    fields: FieldPolicy,
    page_checksums: bool,
    memory_budget: int | None,
    remote: "_core.Storage | None",
    others: Mapping[str, bool],
) -> Chain:
    """Opens the ntuples of several files."""
    for keyword, value in others.items():
        if value:
            raise InvalidArgumentError(f"{keyword} is for one file, not for several")
    check_policy(fields)
    places = resolve_whole_files(where, remote)
    chain = Chain(ChainLocation(tuple(places), fields, False, page_checksums, memory_budget, remote))
    chain._warn_of_missing_fields(stacklevel=4)
    return chain


def _named(file: File, name: str) -> Any:
    """An object of a file, or a field of an ntuple: ``"dir/Events"`` or ``"dir/Events/jets/pt"``."""
    try:
        return file[name]
    except NotFoundError:
        parts = name.strip("/").split("/")
        for count in range(len(parts) - 1, 0, -1):
            if file._class_name(ntuple := "/".join(parts[:count])) in TABLE_CLASSES:
                return file[ntuple][".".join(parts[count:])]
        raise


def _open_object(source: Any, *, recover: bool, **how: Any) -> File:
    """Opens a file object."""
    if isinstance(source, io.TextIOBase):
        raise InvalidArgumentError(
            f"{short_repr(source)} returns strings, not bytes; open it in binary mode: open(path, 'rb')"
        )
    path = getattr(source, "name", None) or getattr(source, "path", None)
    name = _core.display_name(path) if isinstance(path, str) else f"<{type(source).__name__}>"
    system: Any = getattr(source, "fs", None)
    size = getattr(source, "size", None)
    if hasattr(system, "cat_ranges") and isinstance(source.path, str) and isinstance(size, int):

        def read(starts: list[int], ends: list[int]) -> Any:
            return system.cat_ranges([source.path] * len(starts), starts, ends, on_error="raise")

        core = _core.File.of_ranges(name, size, read, **how)
        core = core.recovered() if recover else core
        return File(core, name, **how)
    if hasattr(source, "seek"):
        source.seek(0)
    data = source.read()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidArgumentError(
            f"{short_repr(source)} returns {type(data).__name__}, not bytes; open it in binary mode"
        )
    core = _core.File.of_bytes(name, bytes(data), **how)
    core = core.recovered() if recover else core
    return File(core, name, **how)
