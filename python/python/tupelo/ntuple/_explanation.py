"""What reading would do."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ExplainedColumn:
    """The read of one column, in `Explanation`."""

    field: str
    """Dotted path of the field, items of collections being called ``_0``; of a tree, the branch."""
    type: str
    """Column type, in the words of the specification."""
    is_cut: bool
    """Whether it is read to decide the cut."""
    is_upper_bound: bool
    """Whether fewer pages may be read: which ones depends on the cut, or on offsets of collections."""
    pages: int
    """Number of pages, or of baskets."""
    stored_bytes: int
    """Stored bytes of the pages, checksums included."""
    unpacked_bytes: int
    """Bytes of the pages once decompressed."""
    requests: int
    """Requests if only this column were read."""


@dataclass(frozen=True)
class Explanation:
    """What reading would do: `Ntuple.explain` returns it. ``print`` shows a table."""

    entries: int
    """Entries of the range, before a cut, without those that zone maps rule out."""
    ruled_out: int
    """Entries for which the cut cannot be true, according to zone maps."""
    zone_map_bytes: int
    """Stored bytes of these zone maps, which are read once for an open file, and not counted below."""
    clusters: int
    """Clusters that hold the entries."""
    pages: int
    """Pages of all columns."""
    stored_bytes: int
    """Stored bytes of these pages, checksums included."""
    unpacked_bytes: int
    """Bytes of these pages once decompressed."""
    requests: int
    """Requests for the pages of all columns, if they are fetched together and adjacent ranges are merged."""
    columns: tuple[ExplainedColumn, ...]
    """The same for each column, those of the cut first."""
    text: str = field(repr=False)
    """The table."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> "Explanation":
        """Creates it from the ``numbers`` of the engine. Raises no error."""
        columns = tuple(ExplainedColumn(**column) for column in numbers.pop("columns"))
        return cls(columns=columns, **numbers)
