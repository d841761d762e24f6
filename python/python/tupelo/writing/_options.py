"""Options of writing ntuples, and their conversion for the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.checks import check_mapping, check_text
from .._base.messages import short_repr
from .._base.sizes import as_count, parse_optional_bytes
from ..errors import InvalidArgumentError, NotFoundError, UnsupportedError

_CARDINALITY = "ROOT::RNTupleCardinality<std::uint64_t>"

Projections = Mapping[str, str | tuple[str, str]]
"""New name → dotted path of the source, ``"#path"`` for the sizes of a collection, or ``(path, type)``."""


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Options of pages, clusters and checkpoints; None means the default of the file, or of the engine."""

    compression: str | int | None = None
    page_bytes: int | str | None = None
    cluster_bytes: int | str | None = None
    checkpoint_bytes: int | str | None = None
    checkpoint_clusters: int | None = None
    checkpoint_seconds: float | None = None
    zone_maps: bool | Sequence[str] | None = None
    """Whether zone maps are added when the file is closed, of all numbers or of these fields."""

    @property
    def zone_patterns(self) -> list[str] | None:
        """The fields with zone maps, an empty list for all; None without."""
        if self.zone_maps is None or self.zone_maps is False:
            return None
        if self.zone_maps is True:
            return []
        given = [self.zone_maps] if isinstance(self.zone_maps, str) else self.zone_maps
        if not isinstance(given, Sequence):
            raise InvalidArgumentError(
                f"expected zone_maps as True, False or a list of fields, not {short_repr(self.zone_maps)}"
            )
        return [check_text(pattern, "a field of zone_maps") for pattern in given] or None

    def zone_patterns_of(self, schema: Any, own: "WriteOptions | None") -> list[str] | None:
        """Those of `zone_patterns` that suit an ntuple with an Arrow schema; None without.

        Raises `NotFoundError` and `InvalidArgumentError` for one that does not, if the ntuple's own options name it.
        """
        if not self.zone_patterns:
            return self.zone_patterns
        is_own = own is not None and own.zone_maps is not None
        return [pattern for pattern in self.zone_patterns if _selects_numbers(schema, pattern, is_own)] or None

    def check_supported(self, path: str) -> None:
        """Raises `UnsupportedError` if zone maps or checkpoints are requested for a path that is not a local file, and
        `InvalidArgumentError` for invalid ``zone_maps``.
        """
        has_zone_maps = self.zone_patterns is not None
        if not _core.is_remote(path) and not _core.is_object_uri(path):
            return
        name = _core.display_name(path)
        if has_zone_maps:
            raise UnsupportedError(f"{name}: zone maps are supported only in local files")
        chosen = self.checkpoint_bytes, self.checkpoint_clusters, self.checkpoint_seconds
        off = (None, 0, _core.DEFAULT_CHECKPOINT_BYTES), (None, 0), (None, 0, _core.DEFAULT_CHECKPOINT_SECONDS)
        if any(value not in usual for value, usual in zip(chosen, off, strict=True)):
            raise UnsupportedError(
                f"{name}: checkpoints are supported only in local files; remote files appear when they are complete"
            )

    def over(self, defaults: "WriteOptions") -> "WriteOptions":
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(defaults, **{name: value for name, value in given.items() if value is not None})

    def options(
        self,
        *,
        description: str = "",
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
        projections: Projections | None = None,
    ) -> dict[str, Any]:
        """The options as a dict for the engine, after the checks that do not depend on the fields."""
        clusters = 0 if self.checkpoint_clusters is None else self.checkpoint_clusters
        compression = compression_text(self.compression)
        given = {
            "description": check_text(description, "the description"),
            "compression": compression,
            "page_bytes": parse_optional_bytes("page_bytes", self.page_bytes),
            "cluster_bytes": parse_optional_bytes("cluster_bytes", self.cluster_bytes),
            "checkpoint_bytes": parse_optional_bytes("checkpoint_bytes", self.checkpoint_bytes) or 0,
            "checkpoint_clusters": as_count("checkpoint_clusters", "clusters from 0 (never) to 2⁶³−1", clusters),
            "checkpoint_seconds": _seconds(self.checkpoint_seconds),
            "encodings": _per_field(encodings, "encodings"),
            "compressions": _per_field(compressions, "compressions"),
            "projections": [_projection(*one) for one in check_mapping(projections, "projections").items()],
        }
        _core.check_options(given)
        return given


def _selects_numbers(schema: Any, pattern: str, must: bool) -> bool:
    """Whether a pattern selects top-level fields with numbers, or lists of them; if it must, raises the reason."""
    try:
        selected = _core.schema_choose(schema, [pattern], binary_strings=False).schema
    except NotFoundError as error:
        if must:
            raise NotFoundError(f"zone_maps: {error}") from None
        return False
    has_numbers = any(_holds_numbers(field.type) for field in selected)
    if must and not has_numbers:
        raise InvalidArgumentError(f"zone_maps: {short_repr(pattern)} selects neither numbers nor lists of numbers")
    return has_numbers


def _holds_numbers(type_: Any) -> bool:
    while pa.types.is_large_list(type_) or pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        type_ = type_.value_type
    return arrow.has_bounds(type_)


def _per_field(settings: object, what: str) -> dict[str, str]:
    """Settings of single fields as strings."""
    given = check_mapping(settings, what)
    return {path: _text(setting, f"{what} of '{path}'") for path, setting in given.items()}


def compression_text(setting: object) -> str | None:
    """A compression as a string; None for the default."""
    return None if setting is None else _text(setting, "compression")


def _text(setting: object, what: str) -> str:
    """A setting as a string. Compressions of uproot, such as ``uproot.ZSTD(5)``, have ROOT's number as ``code``."""
    code = getattr(setting, "code", None)
    return check_text(str(code if isinstance(code, int) else setting), what)


def _seconds(seconds: float | None) -> float:
    try:
        return 0.0 if seconds is None else float(seconds)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"expected checkpoint_seconds as a number of seconds, not {short_repr(seconds)}"
        ) from None


def _projection(name: Any, source: Any) -> tuple[str, str, str | None]:
    """Name, source path and type of a projection."""
    path, type_name = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if isinstance(path, str) and path.startswith("#"):
        path, type_name = path[1:], _CARDINALITY if type_name is None else type_name
    texts: tuple[object, ...] = (name, path, type_name or "")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(
            f"projection {short_repr(name)}: expected the source as a dotted path, '#path' for sizes, or (path, type), "
            f"not {short_repr(source)}"
        )
    for text in (path, type_name or ""):
        check_text(text, f"projection '{name}': its source")
    return name, path, type_name
