"""Remote files: uproot reads them through Tupelo's storage, without plugins of fsspec."""

import threading
from collections.abc import Mapping
from typing import Any

import fsspec
import uproot
from uproot.source.chunk import Chunk, Source
from uproot.source.futures import TrivialFuture

from .. import _core
from .._base import checks
from ..errors import InvalidArgumentError
from ._layouts import RefusedError

_SCHEMES = {
    **dict.fromkeys(("http", "https"), "http"),
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss"), "az"),
    **dict.fromkeys(("root", "roots", "xroot", "xroots"), "root"),
}
"""Kinds of stores by the scheme of a URL."""

_NAMES: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "key": "aws_access_key_id",
        "secret": "aws_secret_access_key",
        "token": "aws_session_token",
        "endpoint_url": "aws_endpoint_url",
        "region_name": "aws_region",
    },
    "az": {
        "account_name": "azure_storage_account_name",
        "account_key": "azure_storage_account_key",
        "sas_token": "azure_storage_sas_token",
    },
    "http": {},
    "gs": {},
    "root": {},
}
"""What the options of the plugins of fsspec are called here."""
_NESTED = ("client_kwargs",)
"""Options of the plugins that contain options."""


def storage_of(url: str, options: Mapping[str, Any]) -> "_core.Storage":
    """The storage for a URL that is opened with these options of `uproot.open`.

    Raises `RefusedError` for what uproot opens by itself.
    """
    scheme, separator, _ = url.partition("://")
    kind = _SCHEMES.get(scheme.lower())
    if not separator or kind is None or "::" in url:
        raise RefusedError("Tupelo has no storage for it")
    if options.get("handler") not in (None, TupeloSource):
        raise RefusedError("a handler was given")
    given = {name: value for name, value in options.items() if name not in uproot.reading.open.defaults}
    for name in _NESTED:
        if isinstance(inner := given.pop(name, {}), Mapping):
            given = {**inner, **given}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "timeout":
            found |= {"connect_timeout": value, "stall_timeout": value}
        elif name == "anon" or (kind == "gs" and (name, value) == ("token", "anon")):
            found["anonymous"] = bool(value)
        elif value is not None:
            found[_NAMES[kind].get(name, name)] = value
    try:
        return checks.storage(found) or _core.Storage({}, cache=None)
    except InvalidArgumentError as error:
        raise RefusedError(f"its options are for uproot: {error}") from None


class TupeloSource(Source):  # type: ignore[misc]
    """A source of uproot whose bytes Tupelo's storage reads."""

    def __init__(self, file_path: str, **options: Any) -> None:
        super().__init__()
        prepared = vars(_prepared).pop(file_path, None)
        self._file_path = file_path
        opened: tuple[_core.Storage, _core.Source] = prepared or _opened(file_path, options)
        self.storage = opened[0]
        self._opened: _core.Source | None = opened[1]
        self._num_bytes = opened[1].size_bytes

    def __repr__(self) -> str:
        return f"<TupeloSource {_core.display_name(self._file_path)!r} at 0x{id(self):012x}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_was_open": not self.closed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        was_open = state.pop("_was_open")
        self.__dict__ = state
        if was_open:
            self._opened = self.storage.open(self._file_path)

    def __enter__(self) -> "TupeloSource":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened = None

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._opened is None

    def chunk(self, start: int, stop: int) -> Any:
        """One range."""
        return self._chunks([(start, stop)])[0]

    def chunks(self, ranges: list[tuple[int, int]], notifications: Any) -> list[Any]:
        """Many ranges; they are complete on return."""
        found = self._chunks(ranges)
        for chunk in found:
            notifications.put(chunk)
        return found

    def _chunks(self, ranges: list[tuple[int, int]]) -> list[Any]:
        if self._opened is None:
            raise OSError(f"file {_core.display_name(self._file_path)!r} is closed")
        self._num_requests += 1
        self._num_requested_chunks += len(ranges)
        self._num_requested_bytes += sum(stop - start for start, stop in ranges)
        # As in other sources, a chunk may be shorter at the end of the file.
        size = self._num_bytes
        inside = [(min(int(start), size), min(int(stop), size)) for start, stop in ranges]
        answers = self._opened.read_ranges(inside)
        return [Chunk(self, *one, TrivialFuture(data)) for one, data in zip(ranges, answers, strict=True)]


_prepared = threading.local()
"""What `prepare` has opened, by URL."""


def _opened(url: str, options: Mapping[str, Any]) -> tuple["_core.Storage", "_core.Source"]:
    storage = storage_of(url, options)
    return storage, storage.open(url)


def prepare(url: str, options: Mapping[str, Any]) -> None:
    """Opens a URL for the `TupeloSource` that this thread makes next.

    Raises `RefusedError` for what uproot opens by itself, and the errors of opening.
    """
    vars(_prepared).clear()
    vars(_prepared)[url] = _opened(url, options)


def matching(url: str, options: Mapping[str, Any]) -> list[str]:
    """The URLs that a URL with wildcards stands for.

    Raises `RefusedError` for what uproot lists by itself, and the errors of listing.
    """
    found = _core.matching_files(url, storage_of(url, options))
    return [url] if found is None else found


def can_uproot_open(url: str) -> bool:
    """Whether the plugin of fsspec for a URL is installed."""
    try:
        fsspec.get_filesystem_class(url.partition("://")[0])
    except (ImportError, ValueError):
        return False
    return True
