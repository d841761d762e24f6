"""The cases that ROOT writes (cases*.hxx) and the values that a reader must find in them.

The values are those of the public suite root-project/rntuple-validation where it has the case; they are stated here on
their own, never read back from a file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy

Row = dict[str, Any]
Line = str  # the JSON line of an entry, where there are millions
INDEX = ("Index32", "Index64", "SplitIndex32", "SplitIndex64")
PLAIN_AND_ZSTD = (0, 505)
F32_MIN, F32_DENORM, F32_MAX = 2.0**-126, 2.0**-149, (2 - 2.0**-23) * 2.0**127
F64_MIN, F64_DENORM, F64_MAX = 2.0**-1022, 5e-324, (2 - 2.0**-52) * 2.0**1023


@dataclass
class Case:
    """One function of the writers and what its file holds."""

    name: str
    rows: Callable[[], Iterable[Row | Line]] | None  # None: ROOT's own dump is the expectation
    features: list[str] = field(default_factory=list)
    compressions: tuple[int, ...] = (0,)
    classes: bool = False  # needs the dictionary
    unordered: bool = False  # the order of items is the writer's hash order
    ntuple: str = "ntpl"
    more: dict[str, Callable[[], list[Row]]] = field(default_factory=dict)  # further ntuples of the file
    attributes: dict[str, list[Row]] = field(default_factory=dict)  # attribute sets by name
    refused: str = ""  # every reader refuses the file; the words that must be in its message


def f32(value: float) -> float | str:
    """The shortest decimal of the nearest float32."""
    single = numpy.float32(value)
    return special(float(single)) if not math.isfinite(single) else float(str(single))


def special(value: float) -> float | str:
    """Non-finite numbers as strings."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def truncated(value: float, bits: int) -> float:
    """A float32 cut to its first bits."""
    (word,) = struct.unpack("<I", struct.pack("<f", value))
    (result,) = struct.unpack("<f", struct.pack("<I", word >> (32 - bits) << (32 - bits)))
    return float(result)


def quantized(value: float, bits: int, low: float, high: float) -> float:
    """The nearest of 2**bits steps from low to high, halves upwards."""
    steps = float(2**bits - 1)
    return low + math.floor((value - low) * (steps / (high - low)) + 0.5) * ((high - low) / steps)


def indexed(*entries: Iterable[Any]) -> Callable[[], list[Row]]:
    """Rows of the four fields named after their index column."""
    return lambda: [dict(zip(INDEX, entry, strict=True)) for entry in entries]


def fixed(*entries: Row) -> Callable[[], list[Row]]:
    """Rows as they stand."""
    return lambda: list(entries)


def integer() -> list[Row]:
    """types/fundamental/integer."""
    kinds = [("Int", 8), ("UInt", 8)] + [(sign, bits) for bits in (16, 32, 64) for sign in ("Int", "UInt")]
    kinds += [(f"Split{sign}", bits) for sign, bits in kinds[2:]]
    bytewise = {8: 0x12, 16: 0x1234, 32: 0x12345678, 64: 0x123456780112358C}
    negative = {8: -110, 16: -28108, 32: -1842063752, 64: -7911603571969084020}

    def row(value: Callable[[bool, int], int]) -> Row:
        return {f"{kind}{bits}": value("UInt" in kind, bits) for kind, bits in kinds}

    return [
        {f"{kind}{bits}": number for number, (kind, bits) in enumerate(kinds, 1)},
        row(lambda unsigned, bits: bytewise[bits]),
        row(lambda unsigned, bits: bytewise[bits] if unsigned else negative[bits]),
        row(lambda unsigned, bits: 0 if unsigned else -(2 ** (bits - 1))),
        row(lambda unsigned, bits: 2**bits - 1 if unsigned else 2 ** (bits - 1) - 1),
    ]


def real() -> list[Row]:
    """types/fundamental/real, and zeros, infinities and NaN."""
    names = [
        "FloatReal16",
        "FloatReal32",
        "DoubleReal16",
        "DoubleReal32",
        "DoubleReal64",
    ]
    names += ["FloatSplitReal32", "DoubleSplitReal32", "DoubleSplitReal64"]

    def row(half: float, single: float, double: float) -> Row:
        result = {}
        for name in names:
            value = half if name.endswith("16") else single if name.endswith("32") else double
            result[name] = f32(value) if name.startswith("Float") else special(value)
        return result

    inf = math.inf
    return [
        {name: float(number) for number, name in enumerate(names, 1)},
        row(
            float.fromhex("0x1.234p1"),
            float.fromhex("0x1.23456p1"),
            float.fromhex("0x1.2345678901123p1"),
        ),
        row(-65504.0, -F32_MAX, -F64_MAX),
        row(2.0**-14, F32_MIN, F64_MIN),
        row(2.0**-24, F32_DENORM, F64_DENORM),
        row(65504.0, F32_MAX, F64_MAX),
        row(0.0, 0.0, 0.0),
        row(-0.0, -0.0, -0.0),
        row(inf, inf, inf),
        row(-inf, -inf, -inf),
        row(math.nan, math.nan, math.nan),
    ]


def real32trunc() -> list[Row]:
    """types/fundamental/real32trunc."""
    widths = (10, 16, 31)
    rows: list[Row] = [{f"FloatReal32Trunc{b}": 1.0 + i for i, b in enumerate(widths)}]
    rows[0] |= {f"DoubleReal32Trunc{b}": 4.0 + i for i, b in enumerate(widths)}
    big = [1.5 * 2.0**127, float.fromhex("0x1.FEp127"), F32_MAX]
    for values in (
        [3.9999997] * 3,
        [-v for v in big],
        [F32_MIN] * 3,
        [2.0**-127, 2.0**-133, 2.0**-148],
        big,
    ):
        cut = {bits: truncated(float(numpy.float32(v)), bits) for bits, v in zip(widths, values, strict=True)}
        rows.append(
            {f"FloatReal32Trunc{b}": f32(v) for b, v in cut.items()}
            | {f"DoubleReal32Trunc{b}": v for b, v in cut.items()}
        )
    return rows


def real32quant() -> list[Row]:
    """types/fundamental/real32quant."""
    pi = float(numpy.float32(math.pi))
    ranges = {
        "FloatReal32Quant1": (1, -1.0, 1.0),
        "FloatReal32Quant8": (8, -1.0, 1.0),
        "FloatReal32Quant32": (32, -pi, pi),
        "DoubleReal32Quant1": (1, -1.0, 1.0),
        "DoubleReal32Quant20": (20, -1.0, 1.0),
        "DoubleReal32Quant32": (32, -100.0, 25.0),
    }
    ones = 2.3509885e-38
    rows = []
    for values in (
        (-1, -0.5, 0.25, 0.5, 1, 2),
        (ones,) * 6,
        (0, 0, 0, 0, 0, -37.5),
        (-1, -1, -pi, -1, -1, -100),
        (1, 1, pi, 1, 1, 25),
    ):
        row: Row = {}
        for (name, (bits, low, high)), value in zip(ranges.items(), values, strict=True):
            step = quantized(value, bits, low, high)
            row[name] = f32(step) if name.startswith("Float") else step
        rows.append(row)
    return rows


def low_precision() -> list[Row]:
    """columns/low_precision: every width."""
    rows = []
    for i in range(20):
        value = float(numpy.float32(i - 10) * numpy.float32(1.2345678))
        row: Row = {f"Trunc{bits}": f32(truncated(value, bits)) for bits in range(10, 32)}
        row |= {f"Quant{bits}": f32(quantized(-2 + 0.25 * i, bits, -2, 3)) for bits in range(1, 33)}
        rows.append(row)
    return rows


def reals() -> list[Row]:
    """columns/reals: double and float in fewer bits."""
    rows = []
    for value in (0.1, -1.5, 1e-3, 65504.0, 0.0):
        half, single = float(numpy.float16(value)), float(numpy.float32(value))
        row: Row = {
            "HalfDouble": half,
            "HalfFloat": f32(half),
            "Double32": single,
            "Double32_t": single,
        }
        row["VectorDouble32"] = [single, float(numpy.float32(2 * value))]
        rows.append(row)
    return rows


def string_edges() -> list[Row]:
    """types/string_edges."""
    long_text = "".join(chr(ord("a") + i % 26) for i in range(100_000))
    texts = [
        "",
        'line\nbreak\ttab\\"quote"/',
        "zero\0inside",
        "\x01\x1f\x7f",
        "Grüße αβ 中文 🐣",
        long_text,
        "",
    ]
    return [{"s": text, "v": [text, "", text]} for text in texts] + [{"s": "", "v": []}]


def vector_bool() -> list[Row]:
    """types/vector_bool."""
    rows = []
    for i in range(4):
        bits = [j % 3 == 0 for j in range(i * 19 // 3)]
        rows.append(
            {
                "v": bits,
                "r": bits,
                "a": [(j + i) % 2 == 1 for j in range(5)],
                "vv": [bits] * i,
            }
        )
    return rows


def atomic() -> list[Row]:
    """types/atomic."""
    names = [
        "Int8",
        "UInt8",
        "Int16",
        "UInt16",
        "Int32",
        "UInt32",
        "Int64",
        "UInt64",
        "Real32",
        "Real64",
    ]
    one = {"Bit": True, "Byte": 2, "Char": 3} | {name: number for number, name in enumerate(names, 4)}
    return [one, {name: False if name == "Bit" else 0 for name in one}]


def bitset() -> list[Row]:
    """types/bitset."""
    sizes = (1, 64, 65)
    first = {f"Bitset{n}": [int(i == bit) for i in range(n)] for bit, n in enumerate(sizes)}
    return [first] + [{f"Bitset{n}": [bit] * n for n in sizes} for bit in (1, 0)]


def nullable(last: str) -> Callable[[], list[Row]]:
    """types/optional and types/unique_ptr."""
    return lambda: [
        dict(zip(INDEX, range(1, 5), strict=True))
        | {
            "String": "abc",
            "Variant": "def",
            "VectorInt32": [1, 2, 3],
            last: [4, 5, 6],
        },
        dict.fromkeys(INDEX) | {"String": None, "Variant": None, "VectorInt32": None, last: [None]},
        dict.fromkeys(INDEX, 0) | {"String": "", "Variant": 0, "VectorInt32": [], last: []},
    ]


def variant_kinds() -> list[Row]:
    """types/variant_kinds."""
    values = [1.5, 7, True, ["x", 2], -0.0, -1, False]
    return [{"v": value, "vv": values[: i + 1]} for i, value in enumerate(values)]


def untyped() -> list[Row]:
    """types/untyped."""

    def point(x: float, v: list[int], s: str) -> Row:
        return {"x": x, "v": v, "s": s}

    none = point(0, [], "")
    one = point(1.5, [1, 2], "one")
    return [
        {"rec": none, "col": [], "outer": {"inner": none, "ints": []}, "empty": {}},
        {
            "rec": one,
            "col": [point(2.5, [3], "two"), none],
            "outer": {"inner": point(3.5, [4, 5, 6], "three"), "ints": [7, 8]},
            "empty": {},
        },
        {
            "rec": one,
            "col": [],
            "outer": {"inner": point(3.5, [], "three"), "ints": [7, 8]},
            "empty": {},
        },
    ]


def cardinality() -> list[Row]:
    """projections/cardinality."""
    rows = indexed(([1], [2], [3], [4]), ([], [], [], []), ([1], [2, 3], [4, 5, 6], [7, 8, 9, 10]))()
    return [row | {f"{name}Cardinality": len(items) for name, items in row.items()} for row in rows]


def many_pages() -> list[Row]:
    """structure/many_pages."""
    rows = []
    for i in range(1000):
        text = chr(ord("a") + i % 26) * (i % 7)
        vectors = [[i] * j for j in range(i % 4)] if i // 100 != 4 else []
        rows.append(
            {
                "n": i * i - 5000,
                "b": i % 3 == 0,
                "s": text,
                "vv": vectors,
                "c": text if i % 5 == 0 else i,
            }
        )
    return rows


def small_key() -> Iterable[Row]:
    """structure/small_key."""
    for i in range(3000):
        yield {f"a_rather_long_field_name_{j}": (i * 2654435761 + j) % 2**32 for j in range(40)}


def deferred() -> list[Row]:
    """structure/deferred."""
    early: Row = {
        "number": 0.0,
        "flag": False,
        "text": "",
        "vector": [],
        "array": [0, 0, 0],
        "pair": [0, []],
    }
    early |= {"option": None, "choice": None, "bits": [0] * 5, "size": 0, "late": 0}
    middle: Row = {
        "number": 1.5,
        "flag": True,
        "text": "x",
        "vector": [[1], [], [2, 3]],
        "array": [4, 5, 6],
    }
    middle |= {
        "pair": [7, [8, 9]],
        "option": 2.5,
        "choice": "y",
        "bits": [0, 0, 0, 1, 0],
        "size": 3,
        "late": 0,
    }
    end = middle | {
        "vector": [],
        "size": 0,
        "option": None,
        "choice": 11,
        "late": 12345678901234567890,
    }
    return [{"first": i} | (early if i < 5 else middle if i < 7 else end) for i in range(9)]


def representations() -> list[Row]:
    """structure/representations."""
    return [
        {
            "real": c + 0.25 * i,
            "number": -1000 * c + i,
            "text": "r" * (c + i),
            "vector": [c + 0.5] * i,
        }
        for c in range(3)
        for i in range(3)
    ]


def algorithms() -> list[Row]:
    """compression/algorithms."""
    text = "The quick brown fox number "
    return [{"Int64": i, "noise": i * 2654435761 % 2**32, "text": f"{text}{i % 10}"} for i in range(2000)]


def user(base: int, text: str, choice: int | str, vector: list[int], nested: int) -> Row:
    """An object of class User."""
    return {
        ":_0": {"fInt": base},
        "fString": text,
        "fVariant": choice,
        "fVector": vector,
        "fNested": {"fInt": nested},
    }


def enums() -> list[Row]:
    """types/user/enum, and the extreme values."""
    names = [f"Enum{sign}Int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "U")]
    low_high = [
        -(2**7),
        2**8 - 1,
        -(2**15),
        2**16 - 1,
        -(2**31),
        2**32 - 1,
        -(2**63),
        2**64 - 1,
    ]
    return [
        dict(zip(names, range(1, 9), strict=True)) | {"EnumUnscoped": 5, "VectorEnum": [3, -32768]},
        dict.fromkeys(names, 0) | {"EnumUnscoped": 0, "VectorEnum": []},
        dict(zip(names, low_high, strict=True)) | {"EnumUnscoped": 6, "VectorEnum": []},
    ]


def bases() -> list[Row]:
    """types/user/bases."""

    def leaf(left: int, right: int, real: float, both: int, last: int) -> Row:
        two = {
            ":_0": {"fShared": left},
            ":_1": {"fShared": right, "fRight": real},
            "fBoth": both,
        }
        return {":_0": two, "fLeaf": last}

    return [
        {
            "leaf": leaf(1, 2, 3.5, 4, 5),
            "leaves": [leaf(1, 2, 3.5, 4, 5), leaf(1, 2, 3.5, 4, 6)],
            "empty": {":_0": {}, "fEmpty": {}, "fEmpties": [{}, {}, {}]},
        },
        {
            "leaf": leaf(0, 0, 0, 0, 0),
            "leaves": [],
            "empty": {":_0": {}, "fEmpty": {}, "fEmpties": []},
        },
    ]


def members() -> list[Row]:
    """types/user/members; fTransient is not stored, Double32_t loses bits."""
    both = {":_0": {"fShared": 0}, ":_1": {"fShared": 0, "fRight": 8.5}, "fBoth": 7}
    first = {
        "fMatrix": [[1, 2, 3], [4, 5, 6]],
        "fTexts": ["one", ""],
        "fReal": float(numpy.float32(0.1)),
        "fEnum": -128,
        "fUnscoped": 6,
        "fMap": [["a", []], ["b", [1.5, 2.5]]],
        "fSet": [42],
        "fPointer": {"fInt": 4},
        "fBox": {"fValue": {"fValue": 0.1}},
        "fBoths": [both],
        "fLong": -(2**63),
        "fUnsigned": 2**64 - 1,
    }
    second = {
        "fMatrix": [[0] * 3] * 2,
        "fTexts": ["", ""],
        "fReal": 0,
        "fEnum": 0,
        "fUnscoped": 0,
        "fMap": [],
        "fSet": [],
        "fPointer": None,
        "fBox": {"fValue": {"fValue": 0}},
        "fBoths": [],
        "fLong": 0,
        "fUnsigned": 0,
    }
    return [{"m": first}, {"m": second}]


def depth4() -> list[Row]:
    """types/depth4."""
    mixed = [None, ["a", []], ["bc", [[[1.5], []], [[], [2.5, -3.0]]]]]
    return [
        {"deep": [], "mixed": []},
        {"deep": [[[[1, 2], []], [[3]]], [], [[]], [[[], [4, 5, 6]]]], "mixed": mixed},
        {"deep": [], "mixed": [None]},
        {"deep": [[[[7]]]], "mixed": []},
        {"deep": [], "mixed": []},
    ]


ONES = ([1], [2], [3], [4])
NONE: tuple[Any, ...] = ([], [], [], [])
GROWING = ([1], [2, 3], [4, 5, 6], [7, 8, 9, 10])
VECTORS = indexed(ONES, NONE, GROWING)
MULTISETS = indexed(ONES, NONE, ([1], [2, 2], [4, 4, 6], [7, 7, 8, 9]))
NESTED_ONES = ([[1]], [[2]], [[3]], [[4]])
NESTED_VECTORS = indexed(
    NESTED_ONES,
    NONE,
    ([[1]], [[], [2, 3]], [[4], [], [5, 6]], [[], [7, 8, 9], [], [10]]),
)
NESTED_GROWING = (
    [[1]],
    [[], [2, 3]],
    [[], [4], [5, 6]],
    [[], [7, 8, 9], [10], [11, 12]],
)
NESTED_SETS = indexed(NESTED_ONES, NONE, NESTED_GROWING)
NESTED_MULTISETS = indexed(
    NESTED_ONES,
    NONE,
    NESTED_GROWING,
    ([[1], [1]], [[2, 2], [2, 2]], [[], [], [3]], [[], [4], [4], [4]]),
    ([[1, 2]], [[1, 2], [3]], [[], [7], [8, 9]], [[10, 12], [11]]),
)
MAPS = indexed(
    ([["a", 1]], [["b", 2]], [["c", 3]], [["d", 4]]),
    NONE,
    (
        [["a", 1]],
        [["b", 2], ["c", 3]],
        [["d", 4], ["e", 5], ["f", 6]],
        [["g", 7], ["h", 8], ["i", 9], ["j", 10]],
    ),
)
NESTED_MAPS = indexed(
    (
        [["a", [["aa", 1]]]],
        [["b", [["bb", 2]]]],
        [["c", [["cc", 3]]]],
        [["d", [["dd", 4]]]],
    ),
    NONE,
    (
        [["a", [["aa", 1]]]],
        [["b", [["ba", 2]]], ["c", [["ca", 3]]]],
        [["d", [["da", 4]]], ["e", [["ea", 5], ["eb", 6]]], ["f", []]],
        [
            ["g", [["ga", 7], ["gb", 8]]],
            ["h", []],
            ["i", [["ia", 9]]],
            ["j", [["ja", 10], ["jb", 11], ["jc", 12]]],
        ],
    ),
)
NO_USER = user(0, "", 0, [], 0)
A_USER = user(2, "s", "v", [3], 4)


def typed(name: str, rows: Callable[[], Iterable[Row | Line]] | None, **more: Any) -> Case:
    """A case about types: written without compression and, for the split encodings, with zstd."""
    return Case(f"types/{name}", rows, compressions=PLAIN_AND_ZSTD, **more)


CASES = [
    typed("fundamental/integer", integer),
    typed(
        "fundamental/misc",
        fixed(
            {"Bit": True, "Byte": 2, "Char": 3},
            {"Bit": False, "Byte": 0, "Char": 0},
            {"Bit": True, "Byte": 255, "Char": 127},
            {"Bit": False, "Byte": 128, "Char": -128},
            {"Bit": True, "Byte": 1, "Char": -1},
        ),
    ),
    typed("fundamental/real", real),
    typed("fundamental/real32trunc", real32trunc),
    typed("fundamental/real32quant", real32quant),
    Case("columns/low_precision", low_precision, compressions=PLAIN_AND_ZSTD),
    Case("columns/reals", reals, compressions=PLAIN_AND_ZSTD),
    typed(
        "string",
        indexed(list("abcd"), [""] * 4, ["🐣"] * 4, ["a", "bc", "def", "ghij"]),
    ),
    typed("string_edges", string_edges),
    typed("vector/fundamental", VECTORS),
    typed("vector/nested", NESTED_VECTORS),
    typed("vector_bool", vector_bool),
    typed("RVec/fundamental", VECTORS),
    typed("RVec/nested", NESTED_VECTORS),
    typed(
        "array",
        fixed(
            {
                "Array_Int32": [1, 2],
                "Array_Array": [[3, 4], [5, 6], [7, 8]],
                "Array_String": ["ijk", "lmn"],
                "Array_Variant": [19, "uvw"],
                "Array_Vector": [[15, 16, 17], [17, 18]],
            },
            {
                "Array_Int32": [0, 0],
                "Array_Array": [[0, 0]] * 3,
                "Array_String": ["", ""],
                "Array_Variant": [0, ""],
                "Array_Vector": [[], []],
            },
        ),
    ),
    typed("atomic", atomic),
    typed("bitset", bitset),
    typed("optional", nullable("VectorOpt")),
    typed("unique_ptr", nullable("VectorPtr")),
    typed(
        "pair",
        fixed(
            {
                "Int32_String": [1, "abc"],
                "Variant_Vector": ["def", [2, 3, 4]],
                "Pair": [[5, "ghi"], 6],
                "VectorPair": [[7, "jkl"], [8, "mno"]],
            },
            {
                "Int32_String": [0, ""],
                "Variant_Vector": [0, []],
                "Pair": [[0, ""], 0],
                "VectorPair": [],
            },
        ),
    ),
    typed(
        "tuple",
        fixed(
            {
                "Int32_String_Vector": [1, "abc", [2, 3, 4]],
                "Variant": ["def"],
                "Tuple": [[5, "ghi"]],
                "VectorTuple": [[6, "jkl"], [7, "mno"]],
            },
            {
                "Int32_String_Vector": [0, "", []],
                "Variant": [0],
                "Tuple": [[0, ""]],
                "VectorTuple": [],
            },
        ),
    ),
    typed(
        "variant",
        fixed(
            {"f": 1, "Vector": [1]},
            {"f": "abc", "Vector": ["abc"]},
            {"f": [1, 2, 3], "Vector": [1, "2", 3]},
            {"f": "", "Vector": [""]},
            {"f": [], "Vector": []},
        ),
    ),
    typed("variant_kinds", variant_kinds),
    typed(
        "variant_valueless",
        fixed(
            {"v": 1, "vv": [2, {"fInt": 0, "fText": ""}]},
            {"v": None, "vv": [None, {"fInt": 0, "fText": ""}]},
            {"v": {"fInt": 0, "fText": ""}, "vv": []},
        ),
        classes=True,
    ),
    typed("set/fundamental", VECTORS),
    typed("set/nested", NESTED_SETS, classes=True),
    typed("multiset/fundamental", MULTISETS),
    typed("multiset/nested", NESTED_MULTISETS, classes=True),
    typed("unordered_set/fundamental", VECTORS, unordered=True),
    typed("unordered_set/nested", NESTED_SETS, classes=True, unordered=True),
    typed("unordered_multiset/fundamental", MULTISETS, unordered=True),
    typed("unordered_multiset/nested", NESTED_SETS, classes=True, unordered=True),
    typed("map/fundamental", MAPS, classes=True),
    typed("map/nested", NESTED_MAPS, classes=True),
    typed("multimap/fundamental", MAPS, classes=True),
    typed("multimap/nested", NESTED_MAPS, classes=True),
    typed("unordered_map/fundamental", MAPS, classes=True, unordered=True),
    typed("unordered_map/nested", NESTED_MAPS, classes=True, unordered=True),
    typed("unordered_multimap/fundamental", MAPS, classes=True, unordered=True),
    typed("unordered_multimap/nested", NESTED_MAPS, classes=True, unordered=True),
    typed(
        "user/class",
        fixed(
            {
                "f": user(1, "b", 3, [4], 5),
                "VectorUser": [
                    user(6, "g", "h", [9, 10], 11),
                    user(12, "m", 14, [15], 16),
                ],
            },
            {"f": NO_USER, "VectorUser": []},
        ),
        classes=True,
    ),
    typed("user/enum", enums, classes=True),
    typed("user/bases", bases, classes=True),
    typed("user/members", members, classes=True),
    typed("depth4", depth4),
    typed("untyped", untyped),
    typed("streamer", None, classes=True, features=["streamer"]),
    typed(
        "tobject",
        fixed(
            {"object": {"fUniqueID": 12, "fBits": 0}},
            {"object": {"fUniqueID": 0, "fBits": 1 << 15}},
        ),
        classes=True,
    ),
    typed(
        "soa",
        fixed(
            {"points": [{"fX": 1.5, "fN": 3}, {"fX": 2.5, "fN": 4}]},
            {"points": []},
            {"points": [{"fX": -1.0, "fN": -2}]},
        ),
        classes=True,
        features=["soa"],
    ),
    Case("projections/cardinality", cardinality, ["projection"]),
    Case(
        "projections/collection",
        fixed(
            {"Vector": [1, 2, 3], "Projected": [1, 2, 3]},
            {"Vector": [], "Projected": []},
        ),
        ["projection"],
    ),
    Case(
        "projections/leaf",
        fixed({"Pair": [1, 2.0], "Int32": 1, "Float": 2.0}),
        ["projection"],
    ),
    Case(
        "projections/nested",
        fixed(
            {
                "VectorPair": [[1, 2.0], [3, 4.0]],
                "VectorInt": [1, 3],
                "VectorFloat": [2.0, 4.0],
            },
            {"VectorPair": [], "VectorInt": [], "VectorFloat": []},
        ),
        ["projection"],
    ),
    Case("structure/empty", fixed()),
    Case("structure/no_fields", fixed({}, {}, {})),
    Case("structure/clusters", fixed({"Int32": 1}, {"Int32": 2})),
    Case("structure/cluster_groups", fixed(*({"Int32": i} for i in range(1, 5)))),
    Case("structure/many_pages", many_pages, compressions=PLAIN_AND_ZSTD),
    Case(
        "structure/same_page_merging",
        fixed(*({f"same{j}": i % 64 for j in range(4)} | {"other": i} for i in range(600))),
        ["same-page merging"],
        PLAIN_AND_ZSTD,
    ),
    Case(
        "structure/no_checksums",
        fixed(*({"i": i, "s": f"entry {i}"} for i in range(100))),
        ["no page checksums"],
        PLAIN_AND_ZSTD,
    ),
    Case("structure/small_key", small_key, ["payloads in chunks"], PLAIN_AND_ZSTD),
    Case("structure/deferred", deferred, ["deferred columns"], PLAIN_AND_ZSTD),
    # ROOT 6.40.00 stores the late members of a record as top-level fields: what it reads back is the expectation.
    Case("structure/deferred_subfields", None, ["deferred columns"], PLAIN_AND_ZSTD),
    Case(
        "structure/deferred_class",
        fixed(
            {
                "first": 1,
                "user": NO_USER | {"fVariant": None},
                "users": [],
                "enum": 0,
                "map": [],
            },
            {
                "first": 1,
                "user": A_USER,
                "users": [A_USER, A_USER],
                "enum": 1,
                "map": [["k", 5]],
            },
        ),
        ["deferred columns"],
        PLAIN_AND_ZSTD,
        classes=True,
    ),
    Case(
        "structure/representations",
        representations,
        ["column representations"],
        PLAIN_AND_ZSTD,
    ),
    Case(
        "structure/several",
        fixed({"i": 50}, {"i": 51}, {"i": 52}),
        ["several ntuples", "subdirectories", "cycles", "tree and histogram"],
        ntuple="first",
        more={
            "first;1": fixed({"i": 10}, {"i": 11}, {"i": 12}),
            "second": fixed({"i": 40}, {"i": 41}, {"i": 42}),
            "dir/first": fixed({"i": 20}, {"i": 21}, {"i": 22}),
            "dir/sub/deep": fixed({"i": 30}, {"i": 31}, {"i": 32}),
        },
    ),
    Case(
        "structure/names",
        fixed(
            {
                "METAux:": 1,
                "AnalysisJetsAuxDyn:pt": 2,
                "größe_中": 3,
                "a[0]{b}*?-+,;'\"": 4,
            }
        ),
        ["names"],
    ),
    Case(
        "structure/attributes",
        fixed({"Int32": 1}),
        ["attributes"],
        attributes={"Attributes": [{"_rangeStart": 0, "_rangeLen": 1, "_userData": {"attrInt32": 3}}]},
    ),
    Case(
        "structure/attribute_sets",
        fixed({"i": 10}, {"i": 11}, {"i": 20}, {"i": 21}, {"i": 22}, {"i": 23}),
        ["attributes"],
        attributes={
            "Runs": [
                {
                    "_rangeStart": 0,
                    "_rangeLen": 0,
                    "_userData": {"run": 100, "label": "run 0"},
                },
                {
                    "_rangeStart": 0,
                    "_rangeLen": 2,
                    "_userData": {"run": 101, "label": "run 1"},
                },
                {
                    "_rangeStart": 2,
                    "_rangeLen": 4,
                    "_userData": {"run": 102, "label": "run 2"},
                },
            ],
            "Weights": [{"_rangeStart": 0, "_rangeLen": 6, "_userData": {"weights": [0.5, 1.5]}}],
        },
    ),
    Case("structure/feature_flag", None, ["unknown feature flag"], refused="137"),
    # zlib 1xx, lzma 2xx, the old "CS" 3xx, lz4 4xx, zstd 5xx
    Case(
        "compression/algorithms",
        algorithms,
        [],
        (0, 101, 109, 207, 305, 404, 409, 505, 509),
    ),
    Case("compression/block_short", fixed({"Int64": 0}, {"Int64": 1}), [], (505,)),
    Case(
        "compression/block_big",
        lambda: (f'{{"Int64":{i}}}' for i in range(40 * 1024 * 1024 // 8)),
        ["page over 16 MiB"],
        (505,),
    ),
]
