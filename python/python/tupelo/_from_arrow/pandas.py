"""Conversion of Arrow batches to pandas data frames."""

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from .._base import optional
from . import memory


def to_pandas(batch: Any, entries: Any, copied: Collection[int] = ()) -> Any:
    """A data frame with the entry numbers as index; the columns ``copied`` do not take over the memory of the batch.

    Numbers and booleans that are not nullable become NumPy columns, strings the default string type of pandas.
    Everything else (optionals, collections, arrays, records, variants) keeps its Arrow type in a `pandas.ArrowDtype`.

    Raises `ImportError` if pandas is not installed.
    """
    pd = optional.load("pandas", "library='pd'", "pandas", ", or choose another library")
    index = pd.RangeIndex(entries) if isinstance(entries, range) else pd.Index(entries)
    columns: dict[str, Any] = {}
    for number, (field, array) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        is_flat = pa.types.is_primitive(field.type) and not field.nullable
        if is_flat:
            values = memory.writable_numbers(array)
            columns[field.name] = values.copy() if number in copied else values
        elif pa.types.is_large_string(field.type) and not field.nullable:
            columns[field.name] = pd.Series(array.to_numpy(zero_copy_only=False), index=index)
        else:
            wrapped = pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
            columns[field.name] = pd.Series(wrapped, index=index)
    return pd.DataFrame(columns, index=index, copy=False)
