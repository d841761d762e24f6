"""Objects of C++ classes, from streamer fields and from the directories of files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptError, Error, UnsupportedError
from ..histogram import _efficiency, _graph, _histogram

_LISTS = frozenset(["TClonesArray", "TObjArray", "TList", "THashList", "TSortedList"])
_ARRAYS = frozenset(["TArrayC", "TArrayS", "TArrayI", "TArrayL", "TArrayL64", "TArrayF", "TArrayD"])

_MAKERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_histogram.DIMENSIONS, _histogram.of),
    **dict.fromkeys(_graph.CLASSES, _graph.of),
    _efficiency.CLASS: _efficiency.of,
}
"""Functions that make the objects of classes with a Python class of their own."""


@dataclass(frozen=True)
class OpaqueObject:
    """An object that cannot be decoded: its class, its bytes and the reason."""

    class_name: str
    """Its C++ class."""
    bytes: bytes = field(repr=False)
    """The stored bytes."""
    reason: str
    """The reason."""


class Instance(Mapping[str, Any]):
    """An object of a C++ class: a mapping from the names of its members, including those of base classes, to their
    values.

    If a class and a base class have members of the same name, this is the member of the class; see `bases` for the
    other one.
    """

    def __init__(self, class_name: str, version: int, bases: dict[str, Any], members: dict[str, Any]) -> None:
        self.class_name = class_name
        """Its C++ class."""
        self.version = version
        """Version of the class that wrote it."""
        self._bases = bases
        self._members = members

    @property
    def bases(self) -> dict[str, Any]:
        """The part of each base class: an `Instance`, or None if nothing is stored."""
        return {name: base if isinstance(base, Instance) else to_python(base) for name, base in self._bases.items()}

    def __getitem__(self, name: str) -> Any:
        return to_python(self.stored(name))

    def __iter__(self) -> Iterator[str]:
        inherited = (name for base in self._bases.values() if isinstance(base, Instance) for name in base)
        return iter(dict.fromkeys([*inherited, *self._members]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<tupelo.Instance of {self.class_name}: {', '.join(self)}>"

    def stored(self, name: str) -> Any:
        """The member ``name`` before conversion to Python types: all objects are `Instance`.

        Raises `KeyError` if it does not exist.
        """
        if name in self._members:
            return self._members[name]
        for base in self._bases.values():
            if isinstance(base, Instance) and name in base:
                return base.stored(name)
        raise KeyError(name)


MAKERS: dict[str, Callable[..., Any]] = {"make_object": Instance, "make_opaque": OpaqueObject}
"""What the engine calls for each object, by its keywords."""


def of_file(value: Any) -> Any:
    """Converts a decoded object of a file to Python types.

    Raises `CorruptError` and `UnsupportedError` for histograms, graphs and efficiencies whose members contradict each
    other.
    """
    is_special = isinstance(value, Instance) and value.class_name in _MAKERS
    return _make(value) if is_special else to_python(value)


def _make(instance: Instance) -> Any:
    """The object of a class with a Python class of its own."""
    try:
        return _MAKERS[instance.class_name](instance)
    except Error:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The streamer info of a damaged file may give members any type.
        raise CorruptError(f"{instance.class_name} with an unexpected member: {error}") from error


def to_python(value: Any) -> Any:
    """Converts a decoded value to Python types."""
    return _to_python(value, {})


def _to_python(value: Any, done: dict[int, Any]) -> Any:
    match value:
        case list():
            return [_to_python(item, done) for item in value]
        case tuple():
            return tuple(_to_python(item, done) for item in value)
        case dict():
            return {key: _to_python(item, done) for key, item in value.items()}
        case Instance():
            # The same object may be referenced several times and is converted once.
            if id(value) not in done:
                done[id(value)] = _instance_to_python(value, done)
            return done[id(value)]
        case _:
            return value


def _instance_to_python(value: Instance, done: dict[int, Any]) -> Any:
    if value.class_name == "TObjString":
        return value.stored("fString")
    if value.class_name in _LISTS:
        return _to_python(value.stored("fObjects"), done)
    if value.class_name in _ARRAYS:
        return value.stored("fArray")
    if value.class_name.startswith("pair<"):
        return _to_python((value.stored("first"), value.stored("second")), done)
    if value.class_name not in _MAKERS:
        return value
    try:
        return _make(value)
    except (CorruptError, UnsupportedError):
        # Its members are still there.
        return value
