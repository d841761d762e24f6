"""Objects of HDF5 files, without what a file may make a reader do: open other files, and make up values."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import (
    CorruptError,
    Error,
    LimitError,
    MissingFileError,
    NotFoundError,
    OtherFormatError,
    StorageError,
    UnsupportedError,
)

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MAX_LINKS = 16
"""Links that lead to other links, one after the other; also virtual datasets of others."""
_MAX_STEPS = 10_000
"""Names on the way to an object: a few links that each name others many times would take forever."""
_MAX_EXPANSION = 1100
"""Values may take this many times the bytes that are stored for them: deflate reaches 1032."""
_FREE_BYTES = 64 << 20
"""Memory of values that need no stored bytes, for each dataset."""
_CACHE_BYTES = 1 << 20
"""Memory that HDF5 has for the chunks of a dataset, by default."""
_MAX_CACHED_BYTES = 1 << 32
"""Largest memory of the chunks that are kept of all datasets."""
_MAX_BLOCK_BYTES = 1 << 30
"""Largest memory of a chunk or an entry, which are read as a whole."""


@dataclass(frozen=True)
class Allowed:
    """What a file may do."""

    external: bool
    """Have datasets in other files."""
    sparse: bool
    """Have many more values than are stored."""


class File:
    """An open file, and how it is called in messages."""

    def __init__(self, h5py: Any, local: str, shown: str, allowed: Allowed) -> None:
        """Opens it; raises `MissingFileError`, `OtherFormatError`, `CorruptError`, `StorageError` and, for devices and
        pipes, `UnsupportedError`."""
        self.h5py, self.shown, self.allowed = h5py, shown, allowed
        self.folder = os.path.dirname(local)
        self._steps = 0
        self.cached_bytes = 0
        """Memory for the chunks that the datasets keep."""
        try:
            status = os.stat(local)
        except FileNotFoundError:
            raise MissingFileError(f"{shown}: the file does not exist") from None
        except OSError as error:
            raise StorageError(f"{shown}: {error.strerror or error}") from None
        if not stat.S_ISREG(status.st_mode):
            raise UnsupportedError(f"{shown}: not a regular file")
        self.bytes = status.st_size
        try:
            self.root = h5py.File(local, "r")
        except (OSError, RuntimeError, ValueError) as error:
            try:
                with open(local, "rb") as file:
                    is_hdf5 = file.read(len(_SIGNATURE)) == _SIGNATURE
            except OSError as unreadable:
                raise StorageError(f"{shown}: {unreadable.strerror or unreadable}") from None
            if is_hdf5:
                raise CorruptError(f"{shown}: the HDF5 file is damaged: {error}") from None
            raise OtherFormatError(f"{shown}: not an HDF5 file") from None

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *_: object) -> None:
        self.root.close()

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Raises `CorruptError` with file and dataset for the errors of h5py."""
        try:
            yield
        except Error:
            raise
        except MemoryError as error:
            raise LimitError(f"{self.shown}: {what}: {error}") from None
        # h5py raises these for what the library reports, by its kind.
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise CorruptError(f"{self.shown}: {what}: {error}") from None

    def find(self, path: str, start: Any = None, depth: int = 0) -> Any:
        """The object at a path, through the links of the file; `NotFoundError` if there is none."""
        self._steps = self._steps + 1 if depth else 0
        found = self.root if start is None or path.startswith("/") else start
        for name in [part for part in path.split("/") if part not in ("", ".")]:
            found = self._member(found, name, depth)
        return found

    def _member(self, group: Any, name: str, depth: int) -> Any:
        h5py = self.h5py
        missing = NotFoundError(f"{self.shown}: no dataset or group '{name}' in '{group.name}'")
        if not isinstance(group, h5py.Group):
            raise missing
        what = f"'{group.name.rstrip('/')}/{name}'"
        with self.errors(f"link {what}"):
            try:
                link = group.get(name, getlink=True)
            except KeyError:
                link = None
            if link is None:
                raise missing
            self._steps += 1
            if depth > _MAX_LINKS or self._steps > _MAX_STEPS:
                raise CorruptError(f"{self.shown}: {what}: too many links that lead to links")
            if isinstance(link, h5py.SoftLink):
                return self.find(link.path, group, depth + 1)
            if isinstance(link, h5py.ExternalLink):
                self._allow_external(what, f"is in another file, '{link.filename}'", [link.filename])
            found = group[name]
        if isinstance(found, h5py.Dataset):
            self._check_places(found, what, depth)
        return found

    def _check_places(self, dataset: Any, what: str, depth: int) -> None:
        """Refuses datasets whose values are in other files."""
        with self.errors(f"dataset {what}"):
            plist = dataset.id.get_create_plist()
            if count := plist.get_external_count():
                names = [os.fsdecode(plist.get_external(index)[0]) for index in range(count)]
                self._allow_external(what, f"has its values in another file, '{names[0]}'", names)
            if plist.get_layout() != self.h5py.h5d.VIRTUAL:
                return
            for source in self._virtual_sources(plist):
                file, name = source
                if file != ".":
                    self._allow_external(what, f"is a view of another file, '{file}'", [file])
                elif "%" in name:
                    self._allow_external(what, f"is a view of datasets whose names are a pattern, '{name}'", [])
                else:
                    try:
                        self.find(name, self.root, depth + 1)
                    except NotFoundError:
                        # It has the fill value there.
                        continue

    @staticmethod
    def _virtual_sources(plist: Any) -> set[tuple[str, str]]:
        count = plist.get_virtual_count()
        return {(plist.get_virtual_filename(i), plist.get_virtual_dsetname(i)) for i in range(count)}

    def _allow_external(self, what: str, how: str, names: list[str]) -> None:
        """Raises unless other files are allowed, and no pipes or devices."""
        if not self.allowed.external:
            raise UnsupportedError(f"{self.shown}: {what} {how}; allow_external=True reads other files")
        for name in names:
            places = [os.path.join(self.folder, name), os.path.abspath(name)]
            if any(os.path.exists(place) and not os.path.isfile(place) for place in places):
                raise UnsupportedError(f"{self.shown}: {what}: '{name}' is not a regular file")

    def check_size(self, dataset: Any, entry_bytes: int) -> None:
        """Refuses datasets with many more values than are stored, and those with chunks or entries that take too much
        memory."""
        what = f"dataset '{dataset.name}'"
        with self.errors(what):
            chunk = dataset.chunks
            count = prod(chunk) * dataset.dtype.itemsize if chunk else 0
            if max(count, entry_bytes) > _MAX_BLOCK_BYTES:
                kind, size = ("a chunk", count) if count > _MAX_BLOCK_BYTES else ("an entry", entry_bytes)
                raise LimitError(
                    f"{self.shown}: {what}: {kind} takes {size} bytes of memory, more than the limit of "
                    f"{_MAX_BLOCK_BYTES}; write the dataset with smaller ones"
                )
            stored = self._stored_bytes(dataset, set())
        values = prod(dataset.shape) * dataset.dtype.itemsize
        if values > stored * _MAX_EXPANSION + _FREE_BYTES and not self.allowed.sparse:
            raise LimitError(
                f"{self.shown}: {what}: its values take {values} bytes, but only {stored} bytes are stored for them; "
                "allow_sparse=True writes them all the same"
            )

    def with_cache(self, dataset: Any) -> Any:
        """The dataset with room for the chunks of an entry; the given one is closed. HDF5 decompresses chunks that do
        not fit into its cache for each part again, and the first that opens a dataset sets its cache."""
        if not dataset.chunks:
            return dataset
        with self.errors(f"dataset '{dataset.name}'"):
            across = prod(
                -(-length // chunk) for length, chunk in zip(dataset.shape[1:], dataset.chunks[1:], strict=True)
            )
            needed = across * prod(dataset.chunks) * dataset.dtype.itemsize
            if needed <= _CACHE_BYTES:
                return dataset
            self.cached_bytes += needed
            if self.cached_bytes > _MAX_CACHED_BYTES:
                raise LimitError(
                    f"{self.shown}: dataset '{dataset.name}': the chunks of an entry in all datasets take "
                    f"{self.cached_bytes} bytes of memory, more than the limit of {_MAX_CACHED_BYTES}; write the "
                    "datasets with smaller ones, or leave some out with exclude="
                )
            access = self.h5py.h5p.create(self.h5py.h5p.DATASET_ACCESS)
            access.set_chunk_cache(max(521, 10 * across + 1), needed, 0.75)
            path = dataset.name.encode()
            dataset.id.close()
            return self.h5py.Dataset(self.h5py.h5d.open(self.root.id, path, access))

    def _stored_bytes(self, dataset: Any, seen: set[str], depth: int = 0) -> int:
        """The bytes that are stored for a dataset, those of each dataset behind a virtual one once."""
        plist = dataset.id.get_create_plist()
        if plist.get_layout() != self.h5py.h5d.VIRTUAL:
            stored: int = dataset.id.get_storage_size()
            if stored > self.bytes and not self.allowed.external:
                raise CorruptError(
                    f"{self.shown}: dataset '{dataset.name}' has {stored} bytes, but the file only {self.bytes}"
                )
            return stored
        total = 0
        for file, name in self._virtual_sources(plist):
            if file == "." and name not in seen and "%" not in name and depth < _MAX_LINKS:
                seen.add(name)
                try:
                    source = self.find(name)
                except NotFoundError:
                    continue
                total += self._stored_bytes(source, seen, depth + 1) if hasattr(source, "shape") else 0
            elif file != ".":
                # The size of other files is not known here.
                total += os.path.getsize(place) if os.path.isfile(place := os.path.join(self.folder, file)) else 0
        return total
