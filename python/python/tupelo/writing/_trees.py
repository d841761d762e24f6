"""Filling trees (``TTree``)."""

from typing import Any

from .. import _core
from .._base.checks import check_text
from .._base.messages import short_repr
from .._base.sizes import parse_optional_bytes
from ..errors import InvalidArgumentError
from ._filling import TableWriter
from ._options import compression_text

FORMS = ("counter", "vector", "same")
"""How lists of numbers are stored."""

TREE_CLASSES = ("TTree", "TNtuple", "TNtupleD")


def tree_options(
    *,
    title: object,
    compression: str | int | None,
    auto_flush: object,
    basket_bytes: int | str | None,
    optimise_baskets: bool,
    split_level: object,
    jagged: object,
) -> dict[str, Any]:
    """The options of a tree as a dict for the engine, after the checks that do not depend on the fields."""
    if jagged not in FORMS:
        raise InvalidArgumentError(f"expected jagged as 'counter', 'vector' or 'same', not {short_repr(jagged)}")
    return {
        "title": check_text(title, "the title"),
        "compression": compression_text(compression),
        "auto_flush": _integer("auto_flush", auto_flush, -(2**63), 2**63 - 1),
        "basket_bytes": _integer("basket_bytes", parse_optional_bytes("basket_bytes", basket_bytes), 1, 2**28),
        "optimise_baskets": bool(optimise_baskets),
        "split_level": _integer("split_level", split_level, 0, 99),
        "jagged": jagged,
    }


def _integer(name: str, value: object, least: int, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value.__index__() <= most:
        raise InvalidArgumentError(f"expected {name} as an integer from {least} to {most}, not {short_repr(value)}")
    return int(value.__index__())


class TreeWriter(TableWriter[_core.TreeWriter]):
    """Writes a tree; `WritableFile.mktree` returns it."""

    _kind = "tree"
