"""Conversion of Arrow batches to polars data frames."""

from typing import Any

import pyarrow as pa

from .._base import optional
from ..errors import UnsupportedError


def to_polars(batch: Any) -> Any:
    """A `polars.DataFrame`: lists, structs and fixed-size arrays are polars' ``List``, ``Struct`` and ``Array``.

    Raises `ImportError` if polars is not installed and `UnsupportedError` for fields with variants.
    """
    return from_table(pa.Table.from_batches([batch]))


def from_table(table: Any) -> Any:
    """A `polars.DataFrame` of a `pyarrow.Table`; see `to_polars`."""
    pl = load_polars()
    for field in table.schema:
        if _holds_union(field.type):
            raise UnsupportedError(
                f"field '{field.name}' holds variants, which polars does not support; select other fields, or another "
                "library such as 'arrow'"
            )
    return pl.from_arrow(table)


def _holds_union(kind: Any) -> bool:
    """Whether an Arrow type is or contains a variant."""
    return pa.types.is_union(kind) or any(_holds_union(kind.field(i).type) for i in range(kind.num_fields))


def load_polars() -> Any:
    return optional.load("polars", "library='pl', as scan(),", "polars", ", or choose another library")
