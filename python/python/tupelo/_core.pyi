"""The engine under the package. Private: it may change with every version.

Arguments named ``patterns`` are dotted paths or globs, of which none means all fields; entry ranges are absolute.
"""

from collections.abc import Callable
from typing import Any, Final, Self, final

__all__ = [
    "DEFAULT_BATCH_ENTRIES",
    "DEFAULT_PAGE_CHECKSUMS",
    "ERROR_KINDS",
    "VERSION",
    "Batches",
    "File",
    "FileWriter",
    "Ntuple",
    "NtupleWriter",
    "Objects",
    "parse_location",
    "tighten",
    "type_names",
]

DEFAULT_BATCH_ENTRIES: Final[int]
DEFAULT_PAGE_CHECKSUMS: Final[bool]
ERROR_KINDS: Final[tuple[str, ...]]
VERSION: Final[str]

def parse_location(text: str) -> tuple[str, str | None]: ...
def tighten(data: Any) -> Any: ...
def type_names(schema: Any) -> list[str]: ...

@final
class File:
    def __new__(cls, path: str, page_checksums: bool) -> Self: ...
    @property
    def size_bytes(self) -> int: ...
    def objects(self) -> list[tuple[str, str, str, int, int]]: ...
    def ntuple_names(self) -> list[str]: ...
    def ntuple(self, name: str | None) -> Ntuple: ...

@final
class Ntuple:
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def writer(self) -> str: ...
    @property
    def format_version(self) -> str: ...
    @property
    def num_entries(self) -> int: ...
    @property
    def num_clusters(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    def fields(self) -> list[tuple[str, int | None, str, str, str, str]]: ...
    def attribute_sets(self) -> list[str]: ...
    def attribute_set(self, name: str) -> Ntuple: ...
    def objects(self, path: str) -> Objects: ...
    def arrow_schema(self, patterns: list[str], binary_strings: bool) -> Any: ...
    def with_rules(
        self, rules: list[tuple[str, tuple[int, int] | None, int | None, list[str], Any, bool, object]]
    ) -> Self: ...
    def read(
        self, patterns: list[str], entry_start: int, entry_stop: int, binary_strings: bool, schema: Any
    ) -> Any: ...
    def batches(
        self,
        patterns: list[str],
        entry_start: int,
        entry_stop: int,
        batch_entries: int,
        batch_bytes: int | None,
        binary_strings: bool,
        schema: Any,
    ) -> Batches: ...
    def stream(self, patterns: list[str], batch_entries: int, requested_schema: object | None) -> Any: ...

@final
class Objects:
    @property
    def class_name(self) -> str: ...
    def decode(
        self,
        data: bytes,
        make_object: Callable[[str, int, dict[str, Any], dict[str, Any]], Any],
        make_opaque: Callable[[str, bytes, str], Any],
    ) -> Any: ...

@final
class Batches:
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, Any]: ...

@final
class FileWriter:
    def __new__(cls, path: str, update: bool) -> Self: ...
    def ntuple(
        self,
        path: str,
        schema: Any,
        description: str,
        compression: str | None,
        page_bytes: int | None,
        cluster_bytes: int | None,
        encodings: dict[str, str],
        compressions: dict[str, str],
    ) -> NtupleWriter: ...
    def finish(self) -> None: ...
    def abort(self) -> str | None: ...

@final
class NtupleWriter:
    @property
    def num_entries(self) -> int: ...
    def write(self, data: Any) -> None: ...
    def finish(self) -> tuple[int, int, int, int]: ...
