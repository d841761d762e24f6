"""Common fields and unions of fields of several files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from .. import _core
from ..reading._chain import warn_of_missing_fields

FieldList = Sequence["_core.FieldInfo"]


class Common:
    """Collects the fields that all files have."""

    def __init__(self) -> None:
        self._core = _core.CommonFields()

    def add(self, fields: FieldList, chosen: Iterable[str] | None) -> None:
        """Adds the fields of a file; ``chosen`` are the selected paths, None means all."""
        self._core.add([(top, path) for top, path, _ in _selected(fields, chosen)])

    def is_empty(self) -> bool:
        """Whether no file has a selected field."""
        return self._core.is_empty()

    def paths(self) -> list[str] | None:
        """The fields to read from every file; None if all files have the same. Warns of fields that are skipped.

        Raises `InvalidArgumentError` if there are no common fields.
        """
        paths = self._core.paths()
        warn_of_missing_fields(self._core.skipped_text(), stacklevel=5)
        return paths


class Union:
    """Collects the fields that any file has."""

    def __init__(self) -> None:
        self._core = _core.UnionFields()

    def add(self, schema: Any, where: str) -> None:
        """Adds the `pyarrow.Schema` of a file.

        Raises `InvalidArgumentError` for a field that has a different type in an earlier file.
        """
        self._core.add(schema, where)

    def schema(self) -> Any:
        """The `pyarrow.Schema` of all fields; fields that some files lack are nullable."""
        return self._core.schema()


def _selected(fields: FieldList, chosen: Iterable[str] | None) -> Iterator[tuple[str, str, bool]]:
    """Top-level field and path of the fields that are, or are below, a selected path, and whether they have no
    subfields."""
    wanted = None if chosen is None else set(chosen)
    above = {field.parent for field in fields}
    tops: list[str] = []
    is_chosen: list[bool] = []
    for index, field in enumerate(fields):
        path, parent = field.path, field.parent
        tops.append(path if parent is None else tops[parent])
        is_chosen.append(wanted is None or path in wanted or (parent is not None and is_chosen[parent]))
        if is_chosen[index]:
            yield tops[index], path, index not in above


def leaf_paths(fields: FieldList, ntuple: Any) -> list[str]:
    """Paths of the leaves whose top-level field exists in an ntuple."""
    return [path for top, path, is_leaf in _selected(fields, None) if is_leaf and top in ntuple]


def add_missing_columns(batch: Any, schema: Any, num_rows: int | None = None) -> Any:
    """Adds the fields of a union that a `pyarrow.RecordBatch` lacks, as missing values."""
    # A batch without columns does not know its number of entries.
    num_rows = batch.num_rows if num_rows is None else num_rows
    known: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [known[field.name] if field.name in known else pa.nulls(num_rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
