"""Additional columns of ntuples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .._base.checks import check_name
from .._to_arrow import tables
from ..errors import InvalidArgumentError
from ..fields import _select
from ..fields._fields import Fields


@dataclass(frozen=True)
class Columns:
    """Additional columns of an ntuple."""

    names: tuple[str, ...] = ()
    expressions: dict[str, str] = field(default_factory=dict)
    values: Any = None
    """A `pyarrow.RecordBatch` with one value for each entry, or None."""

    def more(self, columns: object, ntuple: Fields, keywords: Mapping[str, object]) -> "Columns":
        """These columns and more; keywords raise an error.

        Raises `InvalidArgumentError` as `Ntuple.with_columns`.
        """
        if keywords or not isinstance(columns, Mapping):
            given = f"the keyword {next(iter(keywords))!r}" if keywords else f"a {type(columns).__name__}"
            raise InvalidArgumentError(
                "expected columns as a mapping of names to expressions or values, with_columns({'score': values}), "
                f"not {given}"
            )
        fields = {path.partition(".")[0] for path in ntuple.keys()}  # noqa: SIM118
        for name in columns:
            check_name(name, "a column")
            if name in fields or name in self.names:
                what = "field" if name in fields else "column"
                raise InvalidArgumentError(
                    f"{ntuple.file_path}: ntuple '{ntuple.object_path}': the {what} '{name}' already exists; "
                    "give the new column another name"
                )
        texts = {name: text for name, text in columns.items() if isinstance(text, str)}
        expressions = self.expressions | dict(_select.aliases(texts))
        arrays = {name: values for name, values in columns.items() if name not in texts}
        values = self.values
        if arrays:
            values = _concatenated(values, _batch(arrays, ntuple))
        made = Columns((*self.names, *columns), expressions, values)
        # Report invalid expressions now.
        request = _select.Request(None)
        made.offer(request, with_all=True)
        ntuple._core.arrow_schema(request)
        return made

    def offer(self, request: _select.Request, with_all: bool) -> None:
        """Makes the columns available to the expressions of a request; ``with_all`` also selects all of them."""
        request.aliases = [*self.expressions.items(), *request.aliases]
        request.given = self.values
        if with_all:
            request.computed += [(name, f"`{name}`") for name in self.names]


def _batch(arrays: Mapping[str, Any], ntuple: Fields) -> Any:
    """Columns of values as one `pyarrow.RecordBatch`.

    Raises `InvalidArgumentError` if the number of values differs from the number of entries, or if they have no C++
    type.
    """
    made = {}
    for name, values in arrays.items():
        table = made[name] = tables.to_table({name: values})
        if len(table) != ntuple.num_entries:
            raise InvalidArgumentError(
                f"{ntuple.file_path}: ntuple '{ntuple.object_path}' has {ntuple.num_entries} entries, but column "
                f"'{name}' has {len(table)} values; give one value for each entry"
            )
    return tables.to_batch(made.values())


def _concatenated(one: Any, other: Any) -> Any:
    if one is None:
        return other
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema([*one.schema, *other.schema]))
