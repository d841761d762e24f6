"""Conversion of C++ type names to Arrow fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ._arrow import CHECKSUM, TYPE, VERSION
from ._checks import check_name, check_text
from ._messages import short_repr
from .errors import InvalidArgumentError

_ALIAS = "rntuple.alias"
_MAX_DIGITS = 20
MAX_DEPTH = 64
"""Maximum nesting of fields in an ntuple."""

# C++ spelling without `std::` → standard name and Arrow type. Where C++ leaves widths open, those of Linux apply.
_FUNDAMENTAL: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(["bool", "Bool_t"], ("bool", pa.bool_())),
    **dict.fromkeys(["char", "Char_t"], ("char", pa.int8())),
    **dict.fromkeys(["byte"], ("std::byte", pa.uint8())),
    **dict.fromkeys(["int8_t", "signed char"], ("std::int8_t", pa.int8())),
    **dict.fromkeys(["uint8_t", "unsigned char", "UChar_t"], ("std::uint8_t", pa.uint8())),
    **dict.fromkeys(["int16_t", "short", "Short_t"], ("std::int16_t", pa.int16())),
    **dict.fromkeys(["uint16_t", "unsigned short", "UShort_t"], ("std::uint16_t", pa.uint16())),
    **dict.fromkeys(["int32_t", "int", "Int_t"], ("std::int32_t", pa.int32())),
    **dict.fromkeys(["uint32_t", "unsigned int", "unsigned", "UInt_t"], ("std::uint32_t", pa.uint32())),
    **dict.fromkeys(["int64_t", "long", "long long", "Long64_t"], ("std::int64_t", pa.int64())),
    **dict.fromkeys(
        ["uint64_t", "unsigned long", "unsigned long long", "ULong64_t", "size_t"], ("std::uint64_t", pa.uint64())
    ),
    **dict.fromkeys(["float", "Float_t"], ("float", pa.float32())),
    **dict.fromkeys(["double", "Double_t", "Double32_t"], ("double", pa.float64())),
    **dict.fromkeys(["string"], ("std::string", pa.large_string())),
}
_MAX_DEPTH = 64
_SEQUENCES = ("vector", "set", "unordered_set", "multiset", "unordered_multiset")
_MAPS = ("map", "unordered_map", "multimap", "unordered_multimap")
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
    base, arguments = _split(re.sub(r"\s+", " ", text.strip()))
    plain = base.removeprefix("std::")
    if not arguments:
        if plain not in _FUNDAMENTAL:
            raise _Unknown(f"unknown type {short_repr(text)}; supported are {_KNOWN}")
        name, arrow = _FUNDAMENTAL[plain]
        return _Type(arrow, name, metadata=((_ALIAS, plain),) if plain == "Double32_t" else ())
    if plain in ("bitset", "array"):
        return _parse_sized(plain, arguments, text)
    inner = [_parse_type(argument) for argument in arguments]
    names = ",".join(one.name for one in inner)
    one_of = {"vector": 1, "optional": 1, "unique_ptr": 1, "atomic": 1, "pair": 2}.get(plain)
    if plain in _MAPS:
        one_of = 2
    elif plain in _SEQUENCES or base in ("ROOT::RVec", "ROOT::VecOps::RVec", "RVec"):
        one_of = 1
    elif plain in ("tuple", "variant"):
        one_of = len(inner)
    if one_of is None:
        raise _Unknown(f"unknown type {short_repr(text)}; supported are {_KNOWN}")
    if one_of != len(inner):
        raise _Unknown(f"{short_repr(text)} has {len(inner)} arguments in <…>, expected {one_of}")
    if plain in ("pair", "tuple"):
        members = pa.struct([one.field(f"_{i}") for i, one in enumerate(inner)])
        return _Type(members, f"std::{plain}<{names}>")
    if plain == "variant":
        alternatives = [one.field(f"_{i}") for i, one in enumerate(inner)]
        # Its nulls are values of a separate alternative.
        return _Type(pa.dense_union([pa.field("valueless", pa.null()), *alternatives]), f"std::variant<{names}>", True)
    if plain in _MAPS:
        key, value = inner
        pair = _Type(pa.struct([key.field("key"), value.field("value")]), f"std::pair<{names}>")
        return _Type(pa.large_list(pair.field("item")), f"std::{plain}<{names}>")
    if plain in ("optional", "unique_ptr"):
        return _optional(plain, inner[0])
    if plain == "atomic":
        return _Type(inner[0].arrow, f"std::atomic<{names}>", inner[0].nullable, _below(inner[0]))
    container = f"std::{plain}" if plain in _SEQUENCES else "ROOT::VecOps::RVec"
    return _Type(pa.large_list(inner[0].field("item")), f"{container}<{names}>")


def _optional(plain: str, inner: _Type) -> _Type:
    name = f"std::{plain}<{inner.name}>"
    if inner.nullable or inner.name.startswith(("std::optional<", "std::unique_ptr<")):
        # Arrow cannot nest nulls: an optional of an optional is a list of at most one item.
        return _Type(pa.large_list(inner.field("item")), name)
    return _Type(inner.arrow, name, nullable=True, metadata=_below(inner))


def _below(inner: _Type) -> tuple[tuple[str, str], ...]:
    """The metadata of a wrapper that has no Arrow type of its own, with that of the wrapped type."""
    return tuple((f"{key}/0", value) for key, value in {TYPE: inner.name, **dict(inner.metadata)}.items())


def _parse_sized(plain: str, arguments: list[str], text: str) -> _Type:
    size = arguments[-1]
    if len(arguments) != (1 if plain == "bitset" else 2) or not _is_size(size):
        raise _Unknown(f"{short_repr(text)} needs a size from 1 to 2³¹−1 as its last argument")
    if plain == "bitset":
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
