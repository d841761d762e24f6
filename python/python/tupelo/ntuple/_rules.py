"""Read rules: members of classes that are computed on reading."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .._base.checks import check_mapping, check_text
from .._base.messages import short_repr
from .._to_arrow import cast, cpp, tables
from ..errors import InvalidArgumentError


@dataclass(frozen=True)
class ReadRule:
    """A read rule: computes members of a class on reading, as ROOT's I/O customisation rules (``#pragma read``) do.

    A rule applies to every record of the class ``type_name``, however deep in collections. ``sources`` are
    members of the class or of its base classes, ``targets`` the names and types (as for `WritableFile.mkrntuple`)
    of the computed members; a target with the name of a member replaces it. ``function`` is called
    with a `pyarrow.Array` for each source, over all records of a field in a batch. It returns the array of a single
    target, a tuple in the order of the targets, or a dict. Arrow, NumPy and Awkward arrays are accepted, with more
    dimensions for fixed-size arrays. Numbers are converted to the types of the targets if only digits of a float
    are lost. The function may be called from another thread, and with no records.

    ``versions``, a ``range`` or a number, and ``checksum`` restrict the rule to versions of the class; without
    both, it applies to all. With ``hide_sources`` the sources disappear from the fields.

    As in ROOT, rules are not transitive: their sources are the stored members, not members that other rules compute.

    >>> import pyarrow as pa, pyarrow.compute as pc, tupelo
    >>> polar = pa.struct([pa.field("r", pa.float32(), False), pa.field("phi", pa.float32(), False)])
    >>> polar = pa.field("hit", polar, False, metadata={"rntuple.type": "Polar"})
    >>> with tupelo.recreate("rules.root") as file:
    ...     events = file.mkrntuple("Events", pa.schema([polar]))
    ...     events.extend({"hit": [{"r": 2.0, "phi": 0.0}, {"r": 1.0, "phi": 0.0}]})
    >>> rule = tupelo.ReadRule("Polar", ["r", "phi"], {"x": "float"}, lambda r, phi: pc.multiply(r, pc.cos(phi)))
    >>> ntuple = tupelo.open("rules.root:Events").with_rules([rule])
    >>> ntuple.keys()
    ['hit', 'hit.r', 'hit.phi', 'hit.x']
    >>> ntuple["hit.x"].array().tolist()
    [2.0, 1.0]
    """

    type_name: str
    sources: Iterable[str]
    targets: Mapping[str, Any]
    function: Callable[..., Any]
    versions: range | int | None = None
    checksum: int | None = None
    hide_sources: bool = False

    def _checked(self) -> "CheckedRule":
        """The rule as the engine expects it."""
        if not callable(self.function):
            raise InvalidArgumentError(f"{self._label()}: expected a function, not {self.function!r}")
        if isinstance(self.sources, str):
            raise InvalidArgumentError(
                f"{self._label()}: expected sources as a list of names, not the string {self.sources!r}"
            )
        check_text(self.type_name, "the class of a read rule")
        return CheckedRule(
            type_name=self.type_name,
            sources=[check_text(source, f"{self._label()}: a source") for source in self.sources],
            targets=self._targets(),
            versions=self._versions(),
            checksum=self._checksum(),
            hides_sources=bool(self.hide_sources),
            function=self._call,
        )

    def _versions(self) -> tuple[int, int] | None:
        versions: Any = self.versions
        if versions is None:
            return None
        wanted = range(versions, versions + 1) if isinstance(versions, int) else versions
        if not isinstance(wanted, range) or wanted.step != 1 or not 0 <= wanted.start < wanted.stop <= 2**32:
            raise InvalidArgumentError(
                f"{self._label()}: expected versions as a number or a range from 0 to 2³²−1, not {short_repr(versions)}"
            )
        return wanted.start, wanted.stop - 1

    def _checksum(self) -> int | None:
        checksum: Any = self.checksum
        if checksum is not None and not (isinstance(checksum, int) and 0 <= checksum < 2**32):
            raise InvalidArgumentError(
                f"{self._label()}: expected the checksum as a number from 0 to 2³²−1, not {short_repr(checksum)}"
            )
        return checksum

    def _call(self, sources: list[Any], count: int) -> list[Any]:
        """Calls the function and returns its results in the order of the targets."""
        names = list(self.targets)
        try:
            given = self.function(*sources)
        except Exception as error:
            text = f"its function for {', '.join(map(repr, names))} raised {type(error).__name__}: {error}"
            raise InvalidArgumentError(text) from error
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise InvalidArgumentError(f"its function returned {list(given)} for the targets {names}")
            given = [given[name] for name in names]
        elif not isinstance(given, tuple | list):
            given = [given]
        if len(given) != len(names):
            raise InvalidArgumentError(f"its function returned {len(given)} arrays for {len(names)} targets")
        fields = tables.normalize_schema(self._targets())
        return [_to_target_array(one, field) for one, field in zip(given, fields, strict=True)]

    def _targets(self) -> Any:
        return pa.schema([cpp.field_of(name, what) for name, what in check_mapping(self.targets, "targets").items()])

    def _label(self) -> str:
        return f"read rule for '{self.type_name}'"


def _to_target_array(given: Any, field: Any) -> Any:
    """Converts the result of a function to a `pyarrow.Array` of the type of a target."""
    try:
        array = tables.to_array(given, field)
    except InvalidArgumentError as error:
        kind = type(given).__name__
        raise InvalidArgumentError(
            f"its function returned a {kind} for '{field.name}', which cannot be converted to an array: {error}"
        ) from error
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return cast.cast_array(array, field, field.name)


@dataclass(frozen=True)
class CheckedRule:
    """A `ReadRule` for the engine."""

    type_name: str
    sources: list[str]
    targets: Any
    """A `pyarrow.Schema`."""
    versions: tuple[int, int] | None
    """The first and the last one."""
    checksum: int | None
    hides_sources: bool
    function: Callable[[list[Any], int], list[Any]]
