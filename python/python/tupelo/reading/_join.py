"""The fields of several ntuples side by side."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .. import _core
from .._base.checks import check_text
from .._base.locations import NtupleLocation
from .._base.messages import short_repr
from ..errors import InvalidArgumentError
from ..ntuple._entries import Entries
from ..ntuple._ntuple import Ntuple, Tree
from ._chain import Chain
from ._files import Files
from ._opening import open

Unmatched = Literal["error", "null", "drop"]
"""What `join` does with entries of the first table whose keys another table lacks."""
_UNMATCHED = ("error", "null", "drop")


@dataclass(frozen=True)
class _Sides:
    """What is joined; this is what gets pickled."""

    prefixes: tuple[str, ...]
    tables: tuple[Entries, ...]
    on: tuple[str, ...]
    unmatched: Unmatched

    def open(self) -> "_core.Table":
        cores = [table._core for table in self.tables]
        return _core.join(cores, list(self.prefixes), on=list(self.on), unmatched=self.unmatched)


class Join(Entries):
    """The fields of several ntuples, trees or chains side by side, with the methods of an `Ntuple` that read entries.
    `join` returns it.
    """

    _class = "Join"

    def __init__(self, sides: _Sides) -> None:
        core = sides.open()
        self._sides = sides
        # The warnings of the tables were issued when these were opened.
        super().__init__(core, NtupleLocation(core.file_path, (core.path,), None), is_quiet=True)

    @property
    def tables(self) -> tuple[Entries, ...]:
        """The tables that are joined."""
        return self._sides.tables

    @property
    def _inputs(self) -> list[str | None]:
        return [path for table in self.tables for path in table._inputs]

    @property
    def _shares_memory(self) -> bool:
        return any(table._shares_memory for table in self.tables)

    def __repr__(self) -> str:
        return super().__repr__().replace(" (", f" of {len(self.tables)} tables (", 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return Join, (self._sides,)


def join(
    tables: "Iterable[Files | Entries] | Mapping[str, Files | Entries]",
    *,
    on: str | Iterable[str] | None = None,
    unmatched: Unmatched = "error",
    **options: Any,
) -> Join:
    """Joins the fields of ntuples, trees or chains, so that they read as one ntuple.

    ``tables`` are open ones, or what `open` takes for an ntuple or several files, with its ``options``. As a mapping,
    its keys are prefixes of the names of the fields, which must differ: ``{"": events, "nn_": scores}``.

    Without ``on``, entries of the same number belong together, and all tables have as many. With ``on``, the name or
    names of integer fields such as ``["run", "event"]``, entries with the same values of these fields belong together:
    those of the first table, in its order. Several of its entries may have the same keys, as all events of a run; in
    the other tables, all keys must differ. The keys of all tables are read now, and take 8 bytes for each and for each
    entry. They become fields of the first table only.

    ``unmatched`` says what becomes of entries of the first table whose keys another table lacks: ``"error"``,
    ``"null"`` (the fields of the other table have missing values there) or ``"drop"`` (they are left out).

    `Join.copy` writes all of it as one ntuple.

    Raises `InvalidArgumentError` for different numbers of entries, fields of the same name, keys that are not integers,
    repeated or unmatched keys; `NotFoundError` for a missing key; and the errors of `open`.

    >>> import tupelo
    >>> with tupelo.recreate("join.root") as file:
    ...     file["Events"] = {"event": [3, 4, 5], "x": [0.5, 1.5, 2.5]}
    ...     file["Scores"] = {"event": [5, 3], "score": [0.25, 0.75]}
    >>> joined = tupelo.join(["join.root:Events", "join.root:Scores"], on="event", unmatched="null")
    >>> joined
    <tupelo.Join 'Events' of 2 tables (3 fields, 3 entries)>
    >>> joined.arrays(["event", "score"]).tolist()
    [{'event': 3, 'score': 0.75}, {'event': 4, 'score': None}, {'event': 5, 'score': 0.25}]
    >>> tupelo.join({"": "join.root:Events", "s_": "join.root:Scores"}, on="event", unmatched="drop").keys()
    ['event', 'x', 's_score']
    """
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        raise InvalidArgumentError(f"expected a list of tables or a mapping of prefixes, not {short_repr(tables)}")
    named = tables.items() if isinstance(tables, Mapping) else [("", table) for table in tables]
    prefixes = tuple(check_text(prefix, "a prefix") for prefix, _ in named)
    opened = tuple(_table(table, options) for _, table in named)
    keys = () if on is None else (on,) if isinstance(on, str) else tuple(on)
    if on is not None and not keys:
        raise InvalidArgumentError("on=[]: expected the name of at least one field")
    if unmatched not in _UNMATCHED:
        known = ", ".join(map(repr, _UNMATCHED))
        raise InvalidArgumentError(f"expected unmatched as one of {known}, not {short_repr(unmatched)}")
    return Join(_Sides(prefixes, opened, tuple(check_text(key, "on") for key in keys), unmatched))


def _table(where: Any, options: Mapping[str, Any]) -> Entries:
    """An open table, or the one at a place."""
    if isinstance(where, Entries):
        return where
    opened = open(where, **options)
    if isinstance(opened, Ntuple | Tree | Chain):
        return opened
    if hasattr(opened, "only"):
        return opened.only()
    raise InvalidArgumentError(f"{short_repr(where)} is not an ntuple or a tree")
