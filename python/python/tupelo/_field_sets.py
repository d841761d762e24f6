"""Common fields and unions of fields of several files."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pyarrow as pa

from ._messages import short_repr
from .errors import InvalidArgumentError, TupeloWarning

Fields = Literal["common", "union"]
"""Which fields to read if files differ: those that all files have, or those that any file has, with missing values for
files that lack them."""

LISTED = 10
"""Maximum number of names in a warning."""

FieldList = list[tuple[str, int | None, str, str, str, str]]
"""Fields as returned by `_core.schema_fields`."""


def check(fields: object) -> None:
    """Raises `InvalidArgumentError` for invalid values of ``fields``."""
    if fields not in ("common", "union"):
        raise InvalidArgumentError(
            f"fields={short_repr(fields)}: expected 'common' (the fields that all files have) or 'union' (the "
            "fields that any file has, with missing values)"
        )


class Common:
    """Collects the fields that all files have."""

    def __init__(self) -> None:
        self._leaves: dict[str, dict[str, None]] = {}
        """For each top-level field, the paths of its leaves that all files have."""
        self._dropped: dict[str, None] = {}
        self._pruned: set[str] = set()
        self._seen: list[FieldList] = []

    def add(self, fields: FieldList, chosen: Iterable[str] | None) -> None:
        """Adds the fields of a file; ``chosen`` are the selected paths, None means all."""
        if chosen is None and fields in self._seen:
            return
        is_first = not self._seen
        self._seen.append(fields)
        mine = _leaves(fields, chosen)
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
        """Number of top-level fields that are selected in any file, at least partially."""
        return len(self._leaves) + len(self._dropped)

    def paths(self) -> list[str] | None:
        """The fields to read from every file; None if all files have the same. Warns of fields that are skipped.

        Raises `InvalidArgumentError` if there are no common fields.
        """
        if not self._dropped:
            return None
        names = list(self._dropped)
        listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
        if not self._leaves:
            raise InvalidArgumentError(
                f"the files have no field in common ({listed}); fields='union' reads all of them"
            )
        warnings.warn(
            f"skipped the fields that some files lack: {listed}; fields='union' reads them with missing values",
            TupeloWarning,
            stacklevel=4,
        )
        wanted: list[str] = []
        for top, leaves in self._leaves.items():
            wanted += leaves if top in self._pruned else [top]
        return wanted


def _leaves(fields: FieldList, chosen: Iterable[str] | None) -> dict[str, dict[str, None]]:
    """Selected leaves by top-level field: paths without subfields that are, or are below, a selected path."""
    wanted = None if chosen is None else set(chosen)
    above = {parent for _, parent, *_ in fields}
    tops: list[str] = []
    is_chosen: list[bool] = []
    found: dict[str, dict[str, None]] = {}
    for index, (path, parent, *_) in enumerate(fields):
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

        Raises `InvalidArgumentError` for a field that has a different type in an earlier file.
        """
        self._files += 1
        for field in schema:
            known, first = self._fields.setdefault(field.name, (field, where))
            if known.type != field.type:
                raise InvalidArgumentError(
                    f"{where}: field '{field.name}' has the type {field.type}, but {known.type} in {first}; select "
                    "other fields, or read the files separately"
                )
            if field.nullable and not known.nullable:
                self._fields[field.name] = field, first
            self._count[field.name] = self._count.get(field.name, 0) + 1

    def schema(self) -> Any:
        """The `pyarrow.Schema` of all fields; fields that some files lack are nullable."""
        return pa.schema(
            [
                field if self._count[name] == self._files else field.with_nullable(True)
                for name, (field, _) in self._fields.items()
            ]
        )


def leaf_paths(fields: FieldList, ntuple: Any) -> list[str]:
    """Paths of the leaves whose top-level field exists in an ntuple."""
    return [path for top, leaves in _leaves(fields, None).items() if top in ntuple for path in leaves]


def add_missing_columns(batch: Any, schema: Any, num_rows: int | None = None) -> Any:
    """Adds the fields of a union that a `pyarrow.RecordBatch` lacks, as missing values."""
    # A batch without columns does not know its number of entries.
    num_rows = batch.num_rows if num_rows is None else num_rows
    known: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [known[field.name] if field.name in known else pa.nulls(num_rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
