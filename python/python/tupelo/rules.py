"""Members of classes that are computed when they are read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from . import _cpp, _intake
from .errors import InvalidArgumentError


@dataclass(frozen=True)
class ReadRule:
    """How members of a class are computed when it is read, as ROOT's I/O customisation rules (``#pragma read``) do.

    A rule holds wherever a record of the class stands, however deep in collections. ``sources`` are members of the
    class or of its base classes, ``targets`` the names and types (as for `WritableFile.mkrntuple`) of the members that
    are computed; a target that has the name of a member takes its place. The function is called with a
    `pyarrow.Array` for each source, over all records of a field in a piece, and gives the array of the only target, a
    tuple in the order of the targets, or a dict. Arrow and NumPy arrays are taken, and numbers converted to the types
    of the targets where nothing is lost but digits of a float. It may be called from another thread, and with no
    records.

    ``versions``, a ``range`` or a number, and ``checksum`` say for which versions of the class the rule is; without
    both, for all. With ``hide_sources`` the sources disappear from the fields.

    Rules are not transitive, as in ROOT: their sources are what is on disk, not what other rules computed.

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

    def _row(self) -> tuple[str, tuple[int, int] | None, int | None, list[str], Any, bool, object]:
        """What the engine takes."""
        if not callable(self.function):
            raise InvalidArgumentError(f"{self._name()}: {self.function!r} is no function")
        if isinstance(self.sources, str):
            raise InvalidArgumentError(f"{self._name()}: sources are a list of names, not the text {self.sources!r}")
        sources, targets = list(self.sources), self._targets()
        return self.type_name, self._versions(), self.checksum, sources, targets, self.hide_sources, self._call

    def _versions(self) -> tuple[int, int] | None:
        versions: Any = self.versions
        if versions is None:
            return None
        if isinstance(versions, int):
            return versions, versions
        if not isinstance(versions, range) or versions.step != 1 or len(versions) == 0:
            raise InvalidArgumentError(f"{self._name()}: versions are a number or a range, not {versions!r}")
        return versions.start, versions.stop - 1

    def _call(self, sources: list[Any], count: int) -> list[Any]:
        """Calls the function and brings what it gives into the order of the targets."""
        given = self.function(*sources)
        names = list(self.targets)
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise InvalidArgumentError(f"its function gave {sorted(given)} for the targets {sorted(names)}")
            given = [given[name] for name in names]
        elif not isinstance(given, tuple | list):
            given = [given]
        if len(given) != len(names):
            raise InvalidArgumentError(f"its function gave {len(given)} arrays for {len(names)} targets")
        fields = _intake.plain_schema(self._targets())
        return [_intake.fit_array(_array(one), field, field.name) for one, field in zip(given, fields, strict=True)]

    def _targets(self) -> Any:
        return pa.schema([_cpp.field_of(name, declared) for name, declared in self.targets.items()])

    def _name(self) -> str:
        return f"read rule for '{self.type_name}'"


def _array(given: Any) -> Any:
    """A `pyarrow.Array` of what a function gave."""
    if isinstance(given, pa.ChunkedArray):
        return given.combine_chunks()
    if isinstance(given, np.ndarray):
        return pa.array(given)
    if not hasattr(given, "__arrow_c_array__"):
        raise InvalidArgumentError(f"its function gave a {type(given).__name__}, not an Arrow or NumPy array")
    return given
