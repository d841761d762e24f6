"""Entries as an Arrow C stream."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from .. import _core
from .._base.messages import MAX_CHARACTERS, truncate
from ..fields._select import Request


class Stream:
    """Entries of an ntuple as a stream of Arrow batches of about 32 MiB; `Ntuple.stream` returns it.

    Any library that accepts objects with Arrow's ``__arrow_c_stream__`` can consume it, for instance
    ``pyarrow.RecordBatchReader.from_stream(stream)``. Batches are read on demand, and every consumer gets all of them.
    """

    def __init__(self, core: "_core.Table", request: Request) -> None:
        self._core = core
        self._request = request
        # Raises errors of the request early.
        schema = core.arrow_schema(request)
        names = request.order or schema.names
        self._schema = pa.schema([schema.field(name) for name in names], metadata=schema.metadata)

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of its batches."""
        return self._schema

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if not self._request.order:
            return self._core.stream(
                self._request, batch_bytes=_core.DEFAULT_BATCH_BYTES, requested_schema=requested_schema
            )
        reader = pa.RecordBatchReader.from_stream(Stream(self._core, replace(self._request, order=[])))
        ordered = pa.RecordBatchReader.from_batches(self.schema, map(self._request.ordered, reader))
        return ordered.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        first, last = self._request.entry_start, self._request.entry_stop
        return f"<tupelo.Stream of {truncate(', '.join(self.schema.names), MAX_CHARACTERS)}; entries {first} to {last}>"
