"""How ntuples are written: what the faces give, as the engine takes it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from . import _core
from ._checks import check_text, check_texts
from ._messages import short
from ._sizes import count, optional_bytes
from .errors import InvalidArgumentError

_CARDINALITY = "ROOT::RNTupleCardinality<std::uint64_t>"

Projections = Mapping[str, str | tuple[str, str]]
"""New name → dotted path of the source, ``"#path"`` for the sizes of a collection, or ``(path, type)``."""


@dataclass(frozen=True)
class Storage:
    """How pages, clusters and checkpoints are made; None leaves it to the file, and there to the engine."""

    compression: str | int | None = None
    page_bytes: int | str | None = None
    cluster_bytes: int | str | None = None
    checkpoint_bytes: int | str | None = None
    checkpoint_clusters: int | None = None
    checkpoint_seconds: float | None = None

    def over(self, defaults: "Storage") -> "Storage":
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(defaults, **{name: value for name, value in given.items() if value is not None})

    def options(
        self,
        description: str = "",
        encodings: Mapping[str, str] | None = None,
        compressions: Mapping[str, str | int] | None = None,
        projections: Projections | None = None,
    ) -> dict[str, Any]:
        """The dict that the engine takes; refused is what is wrong whatever the fields are."""
        clusters = 0 if self.checkpoint_clusters is None else self.checkpoint_clusters
        compression = None if self.compression is None else check_text(str(self.compression), "compression")
        given = {
            "description": check_text(description, "the description"),
            "compression": compression,
            "page_bytes": optional_bytes("page_bytes", self.page_bytes),
            "cluster_bytes": optional_bytes("cluster_bytes", self.cluster_bytes),
            "checkpoint_bytes": optional_bytes("checkpoint_bytes", self.checkpoint_bytes) or 0,
            "checkpoint_clusters": count("checkpoint_clusters", "clusters from 0 (never) to 2⁶³−1", clusters),
            "checkpoint_seconds": _seconds(self.checkpoint_seconds),
            "encodings": _by_field(encodings, "encodings"),
            "compressions": _by_field(compressions, "compressions"),
            "projections": [_projection(*one) for one in check_texts(projections, "projections").items()],
        }
        _core.check_options(given)
        return given


def _by_field(settings: object, what: str) -> dict[str, str]:
    """The texts that say how single fields are stored."""
    given = check_texts(settings, what)
    return {path: check_text(str(setting), f"{what}: that of '{path}'") for path, setting in given.items()}


def _seconds(seconds: float | None) -> float:
    try:
        return 0.0 if seconds is None else float(seconds)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"checkpoint_seconds is a number of seconds, not {short(seconds)}") from None


def _projection(name: Any, source: Any) -> tuple[str, str, str | None]:
    """New name, dotted path and type of a projection."""
    path, type_name = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if isinstance(path, str) and path.startswith("#"):
        path, type_name = path[1:], _CARDINALITY if type_name is None else type_name
    texts: tuple[object, ...] = (name, path, type_name or "")
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(
            f"projection {short(name)}: its source is a dotted path, '#path' for sizes, or (path, type), "
            f"not {short(source)}"
        )
    for text in (path, type_name or ""):
        check_text(text, f"projection '{name}': its source")
    return name, path, type_name
