"""Writing attribute sets."""

from typing import Any, SupportsIndex

import numpy as np

from .. import _core
from .._base.checks import entry_number
from .._to_arrow import cast, tables
from ..errors import InvalidArgumentError


class AttributeSetWriter:
    """Writes an attribute set; `NtupleWriter.attribute_set` returns it.

    The set becomes visible together with its ntuple and needs no closing.
    """

    def __init__(self, core: "_core.AttributeSetWriter", name: str, schema: Any, owner: object) -> None:
        self._core = core
        # Keeps the file alive.
        self._owner = owner
        self._name = name
        self._schema = schema

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def arrow_schema(self) -> Any:
        """The `pyarrow.Schema` of the data."""
        return self._schema

    def extend(self, ranges: Any, data: Any) -> None:
        """Appends attribute entries: pairs of range start and end (exclusive), and data as for `NtupleWriter.extend`.

        Ranges may overlap, be empty, and extend past the entries written so far.

        Raises `InvalidArgumentError` for invalid ranges and data that do not fit; nothing is written then.
        """
        pairs = _ranges(ranges)
        table = cast.cast_table(tables.to_table(data, self._schema), self._schema)
        if len(pairs) != table.num_rows:
            raise InvalidArgumentError(
                f"attribute set '{self._name}': got {len(pairs)} ranges for {table.num_rows} entries of data"
            )
        self._core.write(starts=pairs[:, 0].tolist(), stops=pairs[:, 1].tolist(), data=table)

    def add(self, start: SupportsIndex, stop: SupportsIndex, **values: Any) -> None:
        """Appends one attribute entry for the entries from ``start`` to ``stop`` (exclusive).

        Keyword arguments set the values of its fields. Raises the errors of `extend`.

        >>> import tupelo
        >>> with tupelo.recreate("add.root") as file:
        ...     events = file.mkrntuple("Events", {"x": [0.5, 1.5]})
        ...     events.attribute_set("quality", {"flag": "std::string"}).add(0, 1, flag="bad")
        >>> tupelo.open("add.root:Events").attributes("quality").of_entry(0).arrays().tolist()
        [{'flag': 'bad'}]
        """
        self.extend([(entry_number(start), entry_number(stop))], {name: [value] for name, value in values.items()})

    def __repr__(self) -> str:
        return f"<tupelo.AttributeSetWriter {self._name!r}>"


def _ranges(ranges: Any) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        pairs = np.asarray(ranges)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"expected ranges as pairs of entries: {error}") from None
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.uint64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"expected ranges as pairs of entries, [(0, 10), (10, 20)], not {pairs.dtype} of shape {pairs.shape}"
        )
    if (pairs < 0).any() or (pairs[:, 0] > pairs[:, 1]).any():
        raise InvalidArgumentError("ranges must start at entry 0 or later and end at or after their start")
    return pairs
