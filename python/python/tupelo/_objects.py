"""Objects of C++ classes, as they come out of streamer fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import histogram

_LISTS = frozenset(["TObjArray", "TList", "THashList", "TSortedList"])
_ARRAYS = frozenset(["TArrayC", "TArrayS", "TArrayI", "TArrayL", "TArrayL64", "TArrayF", "TArrayD"])


@dataclass(frozen=True)
class OpaqueObject:
    """An object that cannot be decoded: its class, its streamed bytes, and why."""

    class_name: str
    """Its C++ class."""
    bytes: bytes = field(repr=False)
    """As they are stored."""
    reason: str
    """Why it cannot be decoded."""


class Instance(Mapping[str, Any]):
    """An object of a C++ class: a mapping from the names of its members, those of its bases too, to their values.

    Where a class and a base have members of the same name, the class' own is given; `bases` has the other one.
    """

    def __init__(self, class_name: str, version: int, bases: dict[str, Any], members: dict[str, Any]) -> None:
        self.class_name = class_name
        """Its C++ class."""
        self.version = version
        """Version of the class by which it was written."""
        self._bases = bases
        self._members = members

    @property
    def bases(self) -> dict[str, Any]:
        """What the object has of each base class: an `Instance`, or None where nothing is stored."""
        return {name: base if isinstance(base, Instance) else present(base) for name, base in self._bases.items()}

    def __getitem__(self, name: str) -> Any:
        return present(self.stored(name))

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
        """A member by its ``name`` before it is made to look like Python's own types: all objects as `Instance`.

        Raises `KeyError` where there is none.
        """
        if name in self._members:
            return self._members[name]
        for base in self._bases.values():
            if isinstance(base, Instance) and name in base:
                return base.stored(name)
        raise KeyError(name)


def present(value: Any) -> Any:
    """What the users get for a decoded value."""
    return _present(value, {})


def _present(value: Any, done: dict[int, Any]) -> Any:
    match value:
        case list():
            return [_present(item, done) for item in value]
        case tuple():
            return tuple(_present(item, done) for item in value)
        case dict():
            return {key: _present(item, done) for key, item in value.items()}
        case Instance():
            # The same object may stand at many places, and is shown once.
            if id(value) not in done:
                done[id(value)] = _present_instance(value, done)
            return done[id(value)]
        case _:
            return value


def _present_instance(value: Instance, done: dict[int, Any]) -> Any:
    if value.class_name == "TObjString":
        return value.stored("fString")
    if value.class_name in _LISTS:
        return _present(value.stored("fObjects"), done)
    if value.class_name in _ARRAYS:
        return value.stored("fArray")
    if value.class_name.startswith("pair<"):
        return _present((value.stored("first"), value.stored("second")), done)
    made = histogram.of(value)
    return value if made is None else made
