"""Which fields are read of files that have different ones."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pyarrow as pa

from ._messages import short
from .errors import InvalidArgumentError, TupeloWarning

Fields = Literal["common", "union"]
"""Which fields are read where files have different ones and nothing else is chosen: those that all files have, or those
that any has, with missing values where a file lacks them."""

LISTED = 10
"""Names that a warning lists."""

Rows = list[tuple[str, int | None, str, str, str, str]]
"""Fields as `_core.schema_fields` lists them."""


def check(fields: object) -> None:
    """Raises `InvalidArgumentError` for what ``fields`` cannot be."""
    if fields not in ("common", "union"):
        raise InvalidArgumentError(
            "fields is 'common' (those that all files have) or 'union' (those that any has, with missing values), "
            f"not {short(fields)}"
        )


class Common:
    """Finds the fields that all files have."""

    def __init__(self) -> None:
        self._leaves: dict[str, dict[str, None]] = {}
        """Of each top-level field the paths below it that have none below themselves, where all files have them."""
        self._dropped: dict[str, None] = {}
        self._pruned: set[str] = set()
        self._seen: list[Rows] = []

    def add(self, rows: Rows, chosen: Iterable[str] | None) -> None:
        """Adds a file by its fields, of which some are chosen by their paths; None means all."""
        if chosen is None and rows in self._seen:
            return
        is_first = not self._seen
        self._seen.append(rows)
        mine = _leaves(rows, chosen)
        if is_first:
            self._leaves = mine
            return
        for top in [*self._leaves, *(top for top in mine if top not in self._leaves)]:
            ours, others = self._leaves.get(top, {}), mine.get(top, {})
            differing = ours.keys() ^ others.keys()
            if not differing:
                continue
            both = {leaf: None for leaf in ours if leaf in others}
            self._dropped.update(dict.fromkeys(sorted(differing) if both else [top]))
            self._pruned.add(top)
            if both:
                self._leaves[top] = both
            else:
                self._leaves.pop(top, None)

    @property
    def size(self) -> int:
        """Number of top-level fields of which something is chosen in any file."""
        return len(self._leaves) + len(self._dropped)

    def paths(self) -> list[str] | None:
        """The fields to read of every file; None where all have the same. Warns of those that are left out.

        Raises `InvalidArgumentError` where there are none.
        """
        if not self._dropped:
            return None
        names = list(self._dropped)
        listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
        if not self._leaves:
            raise InvalidArgumentError(f"the files have no field in common ({listed}); fields='union' reads all")
        warnings.warn(
            f"fields that not all files have are left out: {listed}; fields='union' reads them with missing values",
            TupeloWarning,
            stacklevel=4,
        )
        wanted: list[str] = []
        for top, leaves in self._leaves.items():
            wanted += leaves if top in self._pruned else [top]
        return wanted


def _leaves(rows: Rows, chosen: Iterable[str] | None) -> dict[str, dict[str, None]]:
    """By top-level field, the paths with nothing below them that are chosen, or below something that is."""
    wanted = None if chosen is None else set(chosen)
    above = {parent for _, parent, *_ in rows}
    tops: list[str] = []
    is_chosen: list[bool] = []
    found: dict[str, dict[str, None]] = {}
    for index, (path, parent, *_) in enumerate(rows):
        tops.append(path if parent is None else tops[parent])
        is_chosen.append(wanted is None or path in wanted or (parent is not None and is_chosen[parent]))
        if index not in above and is_chosen[index]:
            found.setdefault(tops[index], {})[path] = None
    return found


class Union:
    """Collects the fields that any file has."""

    def __init__(self) -> None:
        self._fields: dict[str, tuple[Any, str]] = {}
        self._count: dict[str, int] = {}
        self._files = 0

    def add(self, schema: Any, where: str) -> None:
        """Adds the `pyarrow.Schema` of a file.

        Raises `InvalidArgumentError` for a field that has another type in a file before.
        """
        self._files += 1
        for field in schema:
            known, first = self._fields.setdefault(field.name, (field, where))
            if known.type != field.type:
                raise InvalidArgumentError(
                    f"{where}: its field '{field.name}' is a {field.type}, and in {first} a {known.type}; choose "
                    "others, or read the files apart"
                )
            if field.nullable and not known.nullable:
                self._fields[field.name] = field, first
            self._count[field.name] = self._count.get(field.name, 0) + 1

    def schema(self) -> Any:
        """The `pyarrow.Schema` of all of them: what some files lack may be missing."""
        return pa.schema(
            [
                field if self._count[name] == self._files else field.with_nullable(True)
                for name, (field, _) in self._fields.items()
            ]
        )


def leaves_in(rows: Rows, ntuple: Any) -> list[str]:
    """The paths of fields, with nothing below them, of which an ntuple has the top-level field."""
    return [path for top, leaves in _leaves(rows, None).items() if top in ntuple for path in leaves]


def fitted(batch: Any, schema: Any, num_rows: int | None = None) -> Any:
    """A `pyarrow.RecordBatch` of so many entries with all fields of a union; those that it lacks are missing."""
    # A batch without columns has lost the number of its entries.
    num_rows = batch.num_rows if num_rows is None else num_rows
    known: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [known[field.name] if field.name in known else pa.nulls(num_rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
