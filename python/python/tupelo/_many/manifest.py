"""Manifests: the metadata of files that planning partitions needs."""

import base64
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from .. import _core
from .._base.checks import check_local_path, storage
from .._base.messages import short_repr
from ..errors import (
    CancelledError,
    Error,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    TupeloWarning,
    UnsupportedError,
)
from ..reading._file import reopen
from ..reading._files import Files, InputNtuple, Steps, resolve_whole_files
from ..writing._copying import check_output

Source = Mapping[str, Any] | str | os.PathLike[str]
"""A manifest, or the path of its file."""


def index(
    files: Files,
    output: str | os.PathLike[str] | None = None,
    *,
    skip_errors: bool = False,
    storage_options: Mapping[str, object] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Creates a manifest, with which `partitions`, `dask` and `dask_dataframe` need not open files.

    ``files`` are those of `partitions`. The manifest is a dict of numbers, strings and lists. With ``output`` it is
    also written to that file as JSON, like the command ``tupelo index``. For each file it has ``uri``, ``ntuple``,
    ``size_bytes`` (None if not recorded), ``identity``, ``entries``, ``clusters`` (first entry, number of entries,
    stored bytes), ``field_bytes`` and the index of its ``schema`` in ``schemas``. No page is read.
    ``storage_options`` and ``cache`` are those of `open`; they are not part of the manifest. With ``skip_errors`` files
    that cannot be read are left out, with a `TupeloWarning` for each; the manifest names them in ``left_out``.

    Raises `InvalidArgumentError` for URLs with a user name, a password or a query string, which a manifest does not
    store, and for an ``output`` that is one of the files. If files cannot be read, raises the error of the first one
    (see `open`), with a message that lists all of them.

    >>> import tupelo
    >>> with tupelo.recreate("index.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5]}
    >>> manifest = tupelo.index("index.root")
    >>> manifest["files"][0]["ntuple"], manifest["files"][0]["entries"], manifest["schemas"][0]["fields"]
    ('Events', 2, [['x', 'double']])
    """
    remote = storage(storage_options, cache)
    found = resolve_whole_files(files, remote)
    for place in found:
        if place.shown_path != place.path:
            raise InvalidArgumentError(
                f"{place.shown_path}: cannot index a URL with a user name, a password or a query string, because a "
                "manifest does not store them, and the file could not be opened without them; give credentials as "
                "storage_options or in the environment, or plan without a manifest: tupelo.partitions(files)"
            )
    if output is not None:
        check_output(output, [place.absolute_path for place in found])
    manifest, text = build_manifest(found, remote, skip_errors)
    if output is not None:
        Path(output).write_text(text + "\n", encoding="utf-8")
    return manifest


def build_manifest(
    found: Iterable[InputNtuple], remote: "_core.Storage | None" = None, skip_errors: bool = False
) -> tuple[dict[str, Any], str]:
    """The manifest of files, and its JSON."""
    core = _core.Manifest()
    errors: list[tuple[InputNtuple, Error]] = []
    count = 0
    for place in found:
        count += 1
        try:
            file = reopen(place.path_from_here, storage=remote)
            # Opening by name warns of fields that cannot be read.
            core.add(file._table(place.name)._core)
        except CancelledError:
            raise
        except Error as error:
            errors.append((place, error))
    if errors and not (skip_errors and len(errors) < count):
        first = errors[0][1]
        if len(errors) > 1:
            lines = [f"{len(errors)} of {count} files cannot be read:", *(str(failure) for _, failure in errors)]
            first.args = ("\n  ".join(lines),)
        raise first
    for place, failure in errors:
        warnings.warn(f"{place.shown_path} is left out: {failure}", TupeloWarning, stacklevel=3)
    manifest = json.loads(core.to_json())
    if errors:
        manifest["left_out"] = [
            {"uri": place.absolute_path, "ntuple": place.name, "error": str(failure)} for place, failure in errors
        ]
    return manifest, json.dumps(manifest, ensure_ascii=False, separators=(",", ":"))


def load_manifest(source: Source) -> dict[str, Any]:
    """A manifest from a dict or a file.

    Raises `InvalidArgumentError` for invalid manifests and `UnsupportedError` for unsupported versions.
    """
    manifest: Any
    if isinstance(source, Mapping):
        manifest, name = dict(source), "the dict"
    elif isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        try:
            manifest = json.loads(Path(check_local_path(source)).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise MissingFileError(f"manifest {name} does not exist; `tupelo index` creates one") from error
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"{name} is not a manifest: {error}") from error
    else:
        raise InvalidArgumentError(f"expected a manifest as a dict or a file name, not {short_repr(source)}")
    if not isinstance(manifest, dict) or manifest.get("format") != _core.MANIFEST_FORMAT:
        raise InvalidArgumentError(f"{name} is not a manifest; `tupelo index` and tupelo.index create one")
    if manifest.get("version") != _core.MANIFEST_VERSION:
        raise UnsupportedError(
            f"{name} has manifest version {manifest.get('version')!r}, but this version of Tupelo supports "
            f"{_core.MANIFEST_VERSION}: recreate it with `tupelo index`"
        )
    _Checks(name).manifest(manifest)
    return dict(manifest)


class _Checks:
    """Checks that a manifest is what `tupelo index` writes. Plans believe it without opening a file.

    All raise `InvalidArgumentError` with the place in the manifest, what is expected there, and what was found.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def manifest(self, manifest: dict[str, Any]) -> None:
        schemas = self._list(manifest.get("schemas"), "schemas")
        columns = [self._schema(schema, f"schemas[{number}]") for number, schema in enumerate(schemas)]
        for number, file in enumerate(self._list(manifest.get("files"), "files")):
            self._file(file, f"files[{number}]", columns)

    def _schema(self, schema: Any, place: str) -> int:
        """The number of fields of a schema."""
        fields = self._list(self._dict(schema, place).get("fields"), f"{place}.fields")
        for number, field in enumerate(fields):
            pair = self._list(field, f"{place}.fields[{number}]")
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                self._refuse(f"{place}.fields[{number}]", "name and type, both strings", pair)
        self._string(schema.get("arrow"), f"{place}.arrow")
        try:
            names = arrow_schema({"schemas": [schema]}, 0).names
        except (ValueError, OSError, pa.ArrowException) as error:
            self._refuse(f"{place}.arrow", f"an Arrow IPC stream in base64 ({error})", schema["arrow"])
        if names != [name for name, _ in fields]:
            self._refuse(f"{place}.arrow", f"the names of {place}.fields", names)
        return len(fields)

    def _file(self, file: Any, place: str, columns: list[int]) -> None:
        file = self._dict(file, place)
        for key in ("uri", "ntuple", "identity"):
            self._string(file.get(key), f"{place}.{key}")
        place = f"{place} ({file['uri']})"
        for key in ("entries", "schema"):
            self._count(file.get(key), f"{place}.{key}")
        if file.get("size_bytes", False) is not None:
            self._count(file.get("size_bytes"), f"{place}.size_bytes")
        if file["schema"] >= len(columns):
            self._refuse(f"{place}.schema", f"the index of one of {len(columns)} schemas", file["schema"])
        sizes = self._list(file.get("field_bytes"), f"{place}.field_bytes")
        for number, size in enumerate(sizes):
            self._count(size, f"{place}.field_bytes[{number}]")
        if len(sizes) != columns[file["schema"]]:
            self._refuse(f"{place}.field_bytes", f"{columns[file['schema']]} numbers, one for each field", sizes)
        end = 0
        for number, cluster in enumerate(self._list(file.get("clusters"), f"{place}.clusters")):
            where = f"{place}.clusters[{number}]"
            if len(self._list(cluster, where)) != 3:
                self._refuse(where, "first entry, number of entries and bytes", cluster)
            for part in cluster:
                self._count(part, where)
            first, entries, _ = cluster
            if first != end or entries == 0:
                self._refuse(where, f"entries from {end} on, where the cluster before ends", cluster)
            end += entries
        if end != file["entries"]:
            self._refuse(f"{place}.clusters", f"{file['entries']} entries in all clusters together", end)

    def _dict(self, value: Any, place: str) -> Any:
        return value if isinstance(value, dict) else self._refuse(place, "an object", value)

    def _list(self, value: Any, place: str) -> Any:
        return value if isinstance(value, list | tuple) else self._refuse(place, "a list", value)

    def _string(self, value: Any, place: str) -> None:
        if not isinstance(value, str):
            self._refuse(place, "a string", value)

    def _count(self, value: Any, place: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            self._refuse(place, "a number from 0 to 2^64 - 1", value)

    def _refuse(self, place: str, expected: str, found: object) -> NoReturn:
        raise InvalidArgumentError(
            f"{self._name} is a damaged manifest: {place}: expected {expected}, found {short_repr(found)}; "
            "recreate it with `tupelo index`"
        )


def select_files(manifest: dict[str, Any], files: Iterable[InputNtuple]) -> tuple[dict[str, Any], list[Steps]]:
    """The manifest restricted to these files, in this order, and the ranges of entries of each.

    Raises `NotFoundError` for files that it does not contain.
    """
    of_uri: dict[str, list[dict[str, Any]]] = {}
    for file in manifest["files"]:
        of_uri.setdefault(file["uri"], []).append(file)
    found: list[dict[str, Any]] = []
    steps: list[Steps] = []
    for path, absolute_path, name, own in files:
        # Without `.` and `//`, or without credentials, as the engine writes it.
        is_remote = _core.is_remote(absolute_path)
        uri = _core.display_name(absolute_path) if is_remote else str(Path(absolute_path))
        fits = [file for file in of_uri.get(uri, []) if name in (None, file["ntuple"])]
        if not fits:
            shown = _core.display_name(path)
            what = shown if name is None else f"{shown}:{name}"
            raise NotFoundError(f"{what} is not in the manifest, which has {len(manifest['files'])} files")
        found += fits
        steps += [own] * len(fits)
    return {**manifest, "files": found}, steps


def arrow_schema(manifest: dict[str, Any], number: int) -> Any:
    """The `pyarrow.Schema` with this number in the manifest."""
    stream = base64.b64decode(manifest["schemas"][number]["arrow"])
    return pa.ipc.open_stream(stream).schema
