"""Arrow batches as what people want to work with."""

from typing import Any, Literal

import pyarrow as pa

Library = Literal["ak", "np", "arrow", "pd", "pl"]
"""What arrays are handed out as: Awkward Array, NumPy, PyArrow, pandas, polars."""


def hand_out(batch: Any, library: str, entries: Any) -> Any:
    """A `pyarrow.RecordBatch` of these entries (a range or their numbers) as the library's arrays; what `Ntuple.arrays`
    says of each."""
    if library == "arrow":
        return pa.Table.from_batches([batch])
    if library == "np":
        from ._numpy import to_numpy

        columns = zip(batch.schema, batch.columns, strict=True)
        return {field.name: to_numpy(field, column) for field, column in columns}
    if library == "pd":
        from ._pandas import to_pandas

        return to_pandas(batch, entries)
    if library == "pl":
        from ._polars import to_polars

        return to_polars(batch)
    from ._awkward import to_awkward

    return to_awkward(batch)
