"""Attribute sets: data attached to ranges of entries."""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from . import _cast, _conversion, _core, _select
from ._libraries import Library, to_library
from ._messages import short_repr
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from .filling import NtupleWriter
    from .ntuple import Ntuple


class AttributeSet:
    """Attribute entries, each attached to a range of entries. `Ntuple.attributes` returns it; its methods select
    entries.

    >>> import tupelo
    >>> with tupelo.recreate("attributes.root") as file:
    ...     events = file.mkrntuple("Events", {"x": [0.5, 1.5, 2.5, 3.5]})
    ...     runs = events.attribute_set("runs", {"number": "int", "is_good": "bool"})
    ...     runs.extend([(0, 3), (3, 4)], {"number": [7, 8], "is_good": [True, False]})
    >>> runs = tupelo.open("attributes.root:Events").attributes("runs")
    >>> runs
    <tupelo.AttributeSet 'runs' (2 entries)>
    >>> runs.ranges.tolist(), runs.arrays(library="np")["number"].tolist()
    ([[0, 3], [3, 4]], [7, 8])
    >>> runs.of_entry(3).arrays().tolist()
    [{'number': 8, 'is_good': False}]
    >>> runs.overlapping(2, 4).ranges.tolist(), runs.within(2, 4).ranges.tolist()
    ([[0, 3], [3, 4]], [[3, 4]])
    """

    def __init__(self, core: "_core.Attributes", name: str, open_ntuple: Callable[[], "Ntuple"]) -> None:
        self._core = core
        self._name = name
        self._open_ntuple = open_ntuple
        starts, stops = core.ranges()
        self._ranges: np.ndarray[Any, np.dtype[np.uint64]] = np.array([starts, stops], np.uint64).reshape(2, -1).T

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def ntuple(self) -> "Ntuple":
        """The ntuple that stores the set, with the fields ``_rangeStart``, ``_rangeLen`` and ``_userData``."""
        return self._open_ntuple()

    @property
    def ranges(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The range of each attribute entry, start and end (exclusive): an array of shape (n, 2)."""
        return self._ranges

    def arrays(self, library: Library = "ak") -> Any:
        """The data of the attribute entries, in order. ``library`` is that of `Ntuple.arrays`."""
        _select.check_library(library)
        values = self._core.values()
        return to_library(values, library, range(values.num_rows), is_shared=True)

    def of_entry(self, entry: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains ``entry``, which counts from 0. None match an entry that does not
        exist.

        Raises `InvalidArgumentError` if ``entry`` is negative or not an integer.
        """
        return self._with(self._core.of_entry(_entry(entry)))

    def containing(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains all entries from ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.containing(_entry(entry_start), _entry(entry_stop)))

    def overlapping(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range contains any entry from ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.overlapping(_entry(entry_start), _entry(entry_stop)))

    def within(self, entry_start: SupportsIndex, entry_stop: SupportsIndex) -> "AttributeSet":
        """The attribute entries whose range lies within ``entry_start`` to ``entry_stop`` (exclusive).

        Raises the errors of `of_entry`.
        """
        return self._with(self._core.within(_entry(entry_start), _entry(entry_stop)))

    def __len__(self) -> int:
        """Number of attribute entries."""
        return len(self._ranges)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<tupelo.AttributeSet {self._name!r} ({len(self)} entries)>"

    def _with(self, core: "_core.Attributes") -> "AttributeSet":
        return AttributeSet(core, self._name, self._open_ntuple)


class AttributeSetWriter:
    """Writes an attribute set; `NtupleWriter.attribute_set` returns it.

    The set becomes visible together with its ntuple and needs no closing.
    """

    def __init__(self, core: "_core.AttributeSetWriter", name: str, schema: Any, ntuple: "NtupleWriter") -> None:
        self._core = core
        # Keeps the file alive.
        self._ntuple = ntuple
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
        table = _cast.cast_table(_conversion.to_table(data, self._schema), self._schema)
        if len(pairs) != table.num_rows:
            raise InvalidArgumentError(
                f"attribute set '{self._name}': got {len(pairs)} ranges for {table.num_rows} entries of data"
            )
        self._core.write(pairs[:, 0].tolist(), pairs[:, 1].tolist(), table)

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
        self.extend([(_entry(start), _entry(stop))], {name: [value] for name, value in values.items()})

    def __repr__(self) -> str:
        return f"<tupelo.AttributeSetWriter {self._name!r}>"


def _entry(entry: SupportsIndex) -> int:
    try:
        number = operator.index(entry)
    except TypeError:
        raise InvalidArgumentError(f"expected an entry number as an integer, not {short_repr(entry)}") from None
    if not 0 <= number < 2**64:
        raise InvalidArgumentError(f"entry {number} is out of range: entries are counted from 0")
    return number


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
