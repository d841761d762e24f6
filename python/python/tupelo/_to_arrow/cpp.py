"""Conversion of C++ type names to Arrow fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _core
from .._base.arrow import CHECKSUM, TYPE, VERSION
from .._base.checks import check_name, check_text
from .._base.messages import short_repr
from ..errors import InvalidArgumentError

_ALIAS = "rntuple.alias"
_MAX_DIGITS = 20
MAX_DEPTH = 64
"""Maximum nesting of fields in an ntuple."""

_ALIASES = ("Double32_t",)
"""Spellings that say how values are stored."""
_FUNDAMENTAL: dict[str, Any] = {
    "bool": pa.bool_(),
    "char": pa.int8(),
    "std::byte": pa.uint8(),
    "std::int8_t": pa.int8(),
    "std::uint8_t": pa.uint8(),
    "std::int16_t": pa.int16(),
    "std::uint16_t": pa.uint16(),
    "std::int32_t": pa.int32(),
    "std::uint32_t": pa.uint32(),
    "std::int64_t": pa.int64(),
    "std::uint64_t": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "std::string": pa.large_string(),
}
"""Standard names, as `_core.standard_type_name` gives them, and Arrow types."""
_MAX_DEPTH = 64
_LISTS = (
    "std::vector",
    "std::set",
    "std::unordered_set",
    "std::multiset",
    "std::unordered_multiset",
    "ROOT::VecOps::RVec",
)
_OPTIONALS = ("std::optional", "std::unique_ptr")
_MAPS = ("std::map", "std::unordered_map", "std::multimap", "std::unordered_multimap")
_KNOWN = (
    "fundamental types, std::string, and std::vector, set, map (and their unordered_ and multi kinds), array, "
    "optional, unique_ptr, atomic, pair, tuple, variant, bitset and ROOT::RVec of them"
)


@dataclass(frozen=True)
class _Type:
    """A parsed type: its Arrow type, its standard name, and the nullability and metadata of its field."""

    arrow: Any
    name: str
    nullable: bool = False
    metadata: tuple[tuple[str, str], ...] = ()

    def field(self, name: str) -> Any:
        entries = {TYPE: self.name, **dict(self.metadata)}
        return pa.field(name, self.arrow, self.nullable, metadata=entries)


def field_of(name: str, declared: Any) -> Any:
    """The `pyarrow.Field` of a declaration: a C++ type name, a NumPy dtype, a `pyarrow.DataType` or `pyarrow.Field`.

    In strings, C++ names take precedence (``"float"`` has 32 bits) over NumPy (``"float32"``, ``"f4"``).

    >>> field_of("x", "vector<int>").metadata
    {b'rntuple.type': b'std::vector<std::int32_t>'}
    >>> field_of("x", "float32").type, field_of("x", np.float64).type, field_of("x", "optional<float>").nullable
    (DataType(float), DataType(double), True)

    Raises `InvalidArgumentError` for other values, with a list of the supported types.
    """
    check_name(name, "a field")
    if isinstance(declared, pa.Field):
        return declared.with_name(name)
    if isinstance(declared, pa.DataType):
        return pa.field(name, declared, nullable=False)
    if isinstance(declared, str):
        try:
            return _parse(declared).field(name)
        except _Unknown as unknown:
            field = _field_of_dtype(name, declared)
            if field is not None:
                return field
            raise InvalidArgumentError(f"field '{name}': {unknown}") from None
    field = _field_of_dtype(name, declared)
    if field is None:
        raise InvalidArgumentError(
            f"field '{name}': expected a C++ type name, a NumPy dtype or an Arrow type, not {short_repr(declared)}"
        )
    return field


def record(
    type_name: str, members: Mapping[str, Any], *, version: int | None = None, checksum: int | None = None
) -> Any:
    """Declares the C++ class ``type_name`` with its ``members``, for `WritableFile.mkrntuple` and other declarations.

    ``version`` and ``checksum`` are those of ROOT's dictionary of the class (``Class_Version()``, ``GetCheckSum()``);
    readers with a dictionary compare them. A base class is a member named ``":_0"``, ``":_1"`` and so on. The result is
    a `pyarrow.Field`, so lists of it are ``pa.large_list(record)`` and arrays ``pa.list_(record, 3)``.

    Raises `InvalidArgumentError` for invalid types.

    >>> import pyarrow as pa, tupelo
    >>> jet = tupelo.record("Jet", {"pt": "float", "hits": "std::vector<int>"}, version=3)
    >>> with tupelo.recreate("record.root") as file:
    ...     events = file.mkrntuple("Events", {"lead": jet, "jets": pa.large_list(jet)})
    ...     events.extend({"lead": [{"pt": 31.5, "hits": [1]}], "jets": [[]]})
    >>> tupelo.open("record.root:Events").typenames(recursive=False)
    {'lead': 'Jet', 'jets': 'std::vector<Jet>'}
    """
    name: object = type_name
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgumentError(f"expected the name of a C++ class as a string, not {type_name!r}")
    check_text(name, "the name of a C++ class")
    if not isinstance(members, Mapping):
        raise InvalidArgumentError(
            f"expected the members of {type_name} as a mapping of names to types, not {short_repr(members)}"
        )
    metadata = {TYPE: name.strip()}
    numbers: dict[str, object] = {VERSION: version, CHECKSUM: checksum}
    for key, number in numbers.items():
        if number is not None:
            if not isinstance(number, int) or not 0 <= number < 2**32:
                what = key.rpartition(".")[2]
                raise InvalidArgumentError(
                    f"expected the {what} of {type_name} as an integer from 0 to 2³²−1, not {short_repr(number)}"
                )
            metadata[key] = str(number)
    struct = pa.struct([field_of(name, declared) for name, declared in members.items()])
    return pa.field("item", struct, nullable=False, metadata=metadata)


class _Unknown(Exception):
    """An invalid type; the message gives the reason."""


def _field_of_dtype(name: str, declared: Any) -> Any:
    try:
        dtype = np.dtype(declared)
    except (TypeError, SyntaxError, ValueError):
        return None
    return pa.field(name, _type_of_dtype(dtype, name), nullable=False)


def _type_of_dtype(dtype: np.dtype[Any], name: str) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        kind = _type_of_dtype(base, name)
        for size in reversed(shape):
            kind = pa.list_(pa.field("item", kind, nullable=False), size)
        return kind
    if dtype.names is not None and dtype.fields is not None:
        for member in dtype.names:
            check_name(member, "a field")
        return pa.struct([pa.field(n, _type_of_dtype(dtype.fields[n][0], name), nullable=False) for n in dtype.names])
    if dtype.kind in "UT":
        return pa.large_string()
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(dtype.newbyteorder("="))
    raise InvalidArgumentError(f"field '{name}': RNTuple cannot store the NumPy type {dtype}")


def _parse(text: str) -> _Type:
    """Parses a C++ type name. Raises `_Unknown` for invalid ones."""
    depth = deepest = 0
    for bracket in re.findall("[<>]", text):
        depth += 1 if bracket == "<" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise _Unknown(f"{short_repr(text)} nests types in {deepest} levels of <…>; at most {MAX_DEPTH} are supported")
    return _parse_type(text)


def _parse_type(text: str) -> _Type:
    spelled, arguments = _split(re.sub(r"\s+", " ", text.strip()))
    base = _core.standard_type_name(spelled)
    if not arguments:
        if base not in _FUNDAMENTAL:
            raise _Unknown(f"unknown type {short_repr(text)}; supported are {_KNOWN}")
        return _Type(_FUNDAMENTAL[base], base, metadata=((_ALIAS, spelled),) if spelled in _ALIASES else ())
    if base in ("std::bitset", "std::array"):
        return _parse_sized(base, arguments, text)
    if base in _LISTS or base in _OPTIONALS or base == "std::atomic":
        expected = 1
    elif base in _MAPS or base == "std::pair":
        expected = 2
    elif base in ("std::tuple", "std::variant"):
        expected = len(arguments)
    else:
        raise _Unknown(f"unknown type {short_repr(text)}; supported are {_KNOWN}")
    inner = [_parse_type(argument) for argument in arguments]
    if expected != len(inner):
        raise _Unknown(f"{short_repr(text)} has {len(inner)} arguments in <…>, expected {expected}")
    names = ",".join(one.name for one in inner)
    name = f"{base}<{names}>"
    if base in ("std::pair", "std::tuple"):
        return _Type(pa.struct([one.field(f"_{i}") for i, one in enumerate(inner)]), name)
    if base == "std::variant":
        alternatives = [one.field(f"_{i}") for i, one in enumerate(inner)]
        # Its nulls are values of a separate alternative.
        return _Type(pa.dense_union([pa.field("valueless", pa.null()), *alternatives]), name, True)
    if base in _MAPS:
        key, value = inner
        pair = _Type(pa.struct([key.field("key"), value.field("value")]), f"std::pair<{names}>")
        return _Type(pa.large_list(pair.field("item")), name)
    if base in _OPTIONALS:
        return _optional(name, inner[0])
    if base == "std::atomic":
        return _Type(inner[0].arrow, name, inner[0].nullable, _below(inner[0]))
    return _Type(pa.large_list(inner[0].field("item")), name)


def _optional(name: str, inner: _Type) -> _Type:
    if inner.nullable or inner.name.startswith(("std::optional<", "std::unique_ptr<")):
        # Arrow cannot nest nulls: an optional of an optional is a list of at most one item.
        return _Type(pa.large_list(inner.field("item")), name)
    return _Type(inner.arrow, name, nullable=True, metadata=_below(inner))


def _below(inner: _Type) -> tuple[tuple[str, str], ...]:
    """The metadata of a wrapper that has no Arrow type of its own, with that of the wrapped type."""
    return tuple((f"{key}/0", value) for key, value in {TYPE: inner.name, **dict(inner.metadata)}.items())


def _parse_sized(base: str, arguments: list[str], text: str) -> _Type:
    size = arguments[-1]
    if len(arguments) != (1 if base == "std::bitset" else 2) or not _is_size(size):
        raise _Unknown(f"{short_repr(text)} needs a size from 1 to 2³¹−1 as its last argument")
    if base == "std::bitset":
        bits = pa.list_(pa.field("item", pa.bool_(), nullable=False), int(size))
        return _Type(bits, f"std::bitset<{int(size)}>")
    inner = _parse_type(arguments[0])
    return _Type(pa.list_(inner.field("item"), int(size)), f"std::array<{inner.name},{int(size)}>")


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and 0 < int(text) < 2**31


def _split(text: str) -> tuple[str, list[str]]:
    """``"map<int, vector<float>>"`` → ``("map", ["int", "vector<float>"])``."""
    base, bracket, rest = text.partition("<")
    if not bracket:
        return text, []
    if not rest.endswith(">"):
        raise _Unknown(f"{short_repr(text)} has unbalanced brackets")
    arguments, depth, current = [], 0, ""
    for letter in rest[:-1]:
        depth += (letter == "<") - (letter == ">")
        if depth > _MAX_DEPTH:
            raise _Unknown(f"its C++ type is nested deeper than the supported {_MAX_DEPTH} levels")
        if depth < 0:
            raise _Unknown(f"{short_repr(text)} has unbalanced brackets")
        if letter == "," and depth == 0:
            arguments.append(current.strip())
            current = ""
        else:
            current += letter
    arguments.append(current.strip())
    if depth != 0 or not all(arguments):
        raise _Unknown(f"{short_repr(text)} has unbalanced or empty brackets")
    return base.strip(), arguments
