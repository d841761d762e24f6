"""Creating and updating files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from .._base.checks import absolute_path, check_path, check_text, storage
from ..errors import CorruptError, ExistingFileError, InvalidArgumentError
from ._file import WritableFile
from ._open_files import abort as give_up
from ._options import WriteOptions


def recreate(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
    checkpoint_bytes: int | str | None = _core.DEFAULT_CHECKPOINT_BYTES,
    checkpoint_clusters: int | None = None,
    checkpoint_seconds: float | None = _core.DEFAULT_CHECKPOINT_SECONDS,
    zone_maps: bool | Sequence[str] = False,
    storage_options: Mapping[str, object] | None = None,
    mapping: str | None = None,
    parents: bool = False,
) -> WritableFile:
    """Creates a ROOT file; an existing one is replaced (`create` keeps it). With ``parents``, missing directories of a
    local path are made.

    ``compression`` is ``"zstd:5"`` (the default), ``"lz4"``, ``"zlib:1"``, ``"lzma"``, ``"none"`` or ROOT's number
    (505); levels range from 1 to 9. Compressions of uproot, such as ``uproot.ZSTD(5)``, stand for their number.
    ``page_bytes`` is the maximum uncompressed size of a page (default 1 MiB), ``cluster_bytes`` the compressed size at
    which a cluster ends (default 128 MiB); both may be strings such as ``"64 KiB"``. They apply to all ntuples of the
    file unless `WritableFile.mkrntuple` overrides them.

    A checkpoint (`NtupleWriter.checkpoint`) is made after ``checkpoint_bytes`` stored bytes (default 1 GiB),
    ``checkpoint_clusters`` clusters (off by default) or ``checkpoint_seconds`` seconds (default 300), whichever comes
    first; 0 or None turns each off.

    With ``zone_maps``, the lowest and highest values of all numbers, or of the fields that these dotted paths or globs
    select in ntuples that have them, are added to each ntuple when the file is closed: cuts and filters then read less.
    A `TupeloWarning` names those that no ntuple has. ``tupelo index --zone-maps`` does the same later. They are
    supported in local files.

    Nothing is visible under the path until the file is closed. A file that is not closed is discarded, with a message
    on the standard error stream: use a ``with`` block or `WritableFile.close`. After an exception in the ``with`` block
    the new file is discarded, and an existing file is unchanged. The last checkpoint, if any, is kept in a file next to
    it; a `TupeloWarning` names that file. ``sys.exit()`` and the end of a generator within the block also discard the
    file, with a message.

    ``path`` may be a URL of a store, an XRootD server, or an HTTP server that accepts ``PUT``; ``storage_options`` are
    those of `open`. A remote file has no checkpoints (options that ask for some are refused): it appears when it is
    closed, or, after an error, not at all; an existing file is unchanged until then. When a server that refuses writes
    raises an error depends on the protocol: HTTP servers get the file as one request when it is closed; stores get it
    then too, except for files of more than 16 MiB, of which parts are sent before; XRootD servers create a temporary
    file immediately.

    ``path`` may also be the URI of an ntuple in an object store, without a ROOT file around it:
    ``"ntpl+s3://BUCKET/PREFIX"``, ``"ntpl+gs://…"``, ``"ntpl+az://…"``, ``"ntpl+file:///DIRECTORY/NAME"``,
    ``"daos://POOL/CONTAINER:NAME"``, or ``"ntpl+mirror:URI,URI"`` for the same ntuple in several stores. It takes one
    ntuple, which appears when it is closed. ``mapping`` says which pages share an object: ``"page"``,
    ``"cage:1MiB"`` (pages of a column up to that size), ``"page-group"`` (a column of a cluster), ``"cluster"`` (not in
    DAOS), or ``"auto"`` (the default): ``"cluster"`` in a directory, ``"page"`` in DAOS, ``"cage:16MiB"`` elsewhere. A
    whole cluster is kept in memory while it is filled. In DAOS the ntuple must have the name that the URI ends with.

    A process can have one writer for each file. If an earlier writer was not closed, `recreate` discards it with a
    message on the standard error stream, and its next call raises an error. `update` discards an earlier writer only if
    it has written nothing or its last call failed, and otherwise raises an error; use `abort` to discard it. Both raise
    an error if the earlier writer belongs to another running thread.

    Raises `InvalidArgumentError` for invalid options, for paths with an ntuple (``"f.root:Events"``), and for a file
    that is being written; `StorageError` (an `OSError`) if the file cannot be created; nothing is created then.

    >>> import tupelo
    >>> with tupelo.recreate("recreate.root", compression="lz4") as file:
    ...     file["dir/Events"] = {"x": [1.5, 2.5], "names": ["a", "b"]}
    >>> tupelo.open("recreate.root:dir/Events").arrays().tolist()
    [{'x': 1.5, 'names': 'a'}, {'x': 2.5, 'names': 'b'}]
    """
    options = WriteOptions(
        compression=compression,
        page_bytes=page_bytes,
        cluster_bytes=cluster_bytes,
        checkpoint_bytes=checkpoint_bytes,
        checkpoint_clusters=checkpoint_clusters,
        checkpoint_seconds=checkpoint_seconds,
        zone_maps=zone_maps,
    )
    if mapping is not None:
        check_text(mapping, "mapping")
    if parents:
        _make_parents(check_path(path))
    return WritableFile(path, options, update=False, storage=storage(storage_options), mapping=mapping)


def create(path: str | os.PathLike[str], **options: Any) -> WritableFile:
    """Creates a ROOT file that does not exist yet; ``options`` are those of `recreate`.

    Raises `ExistingFileError` (a `FileExistsError`) if the file exists, and the errors of `recreate`; ntuples in object
    stores are refused. A file that appears while this one is written is replaced.

    >>> import tupelo
    >>> with tupelo.create("new/dir/create.root", parents=True) as file:
    ...     file["Events"] = {"x": [1.5, 2.5]}
    >>> tupelo.create("new/dir/create.root")
    Traceback (most recent call last):
        ...
    tupelo.errors.ExistingFileError: new/dir/create.root exists; recreate() replaces it, update() adds to it
    """
    text = check_path(path)
    if _core.is_object_uri(text):
        raise InvalidArgumentError(f"{_core.display_name(text)}: create() is for files; use recreate()")
    if _exists(text, options.get("storage_options")):
        name = _core.display_name(text)
        raise ExistingFileError(f"{name} exists; recreate() replaces it, update() adds to it")
    return recreate(path, **options)


def _exists(path: str, options: Mapping[str, object] | None) -> bool:
    if not _core.is_remote(path):
        return os.path.lexists(path)
    try:
        _core.File(absolute_path(path), storage=storage(options))
    except FileNotFoundError:
        return False
    except CorruptError:
        # It exists, whatever it is.
        return True
    return True


def _make_parents(path: str) -> None:
    """Makes the missing directories of a local path."""
    if not _core.is_remote(path) and not _core.is_object_uri(path):
        os.makedirs(os.path.dirname(absolute_path(path)), exist_ok=True)


def update(
    path: str | os.PathLike[str],
    *,
    compression: str | int | None = None,
    page_bytes: int | str | None = None,
    cluster_bytes: int | str | None = None,
    checkpoint_bytes: int | str | None = _core.DEFAULT_CHECKPOINT_BYTES,
    checkpoint_clusters: int | None = None,
    checkpoint_seconds: float | None = _core.DEFAULT_CHECKPOINT_SECONDS,
    zone_maps: bool | Sequence[str] = False,
) -> WritableFile:
    """Opens a ROOT file to add ntuples or to append to existing ones; options as for `recreate`.

    Existing objects do not change; assigning an ntuple to an existing name creates its newest cycle. ``file["Events"]``
    continues an ntuple, whichever program wrote it. Changes become visible at a checkpoint or when the file is closed;
    after an exception in the ``with`` block, the file returns to its last such state. See `recreate` for earlier
    writers of the same file.

    Raises `MissingFileError` (a `FileNotFoundError`) if the file does not exist, `CorruptError` if it is not a complete
    ROOT file, and `InvalidArgumentError` for invalid options and for a file that is being written;
    `UnsupportedError` for a remote file.

    >>> import tupelo
    >>> with tupelo.recreate("update.root") as file:
    ...     file["a"] = {"x": [1]}
    >>> with tupelo.update("update.root") as file:
    ...     file["b"] = {"x": [2]}
    ...     file["a"].extend({"x": [3, 4]})
    >>> sorted(tupelo.open("update.root").keys())
    ['a', 'b']
    >>> tupelo.open("update.root:a").arrays()["x"].tolist()
    [1, 3, 4]
    """
    options = WriteOptions(
        compression=compression,
        page_bytes=page_bytes,
        cluster_bytes=cluster_bytes,
        checkpoint_bytes=checkpoint_bytes,
        checkpoint_clusters=checkpoint_clusters,
        checkpoint_seconds=checkpoint_seconds,
        zone_maps=zone_maps,
    )
    return WritableFile(path, options, update=True)


def abort(path: str | os.PathLike[str]) -> str | None:
    """Discards what this process is writing to the file ``path``, like `WritableFile.abort`.

    Use it if no variable refers to the writer any more: in a notebook, the last exception keeps the variables of the
    function that raised it, including a writer. Returns the name of the file that keeps the last checkpoint of a new
    file, if there is one.

    Raises `NotFoundError` (a `KeyError`) if this process is not writing the file.

    >>> import tupelo
    >>> file = tupelo.recreate("abort.root")
    >>> file["Events"] = {"x": [1.5]}
    >>> tupelo.abort("abort.root")
    """
    return give_up(check_path(path))
