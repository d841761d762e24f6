"""The table in docs/guide/types.md matches the code. ``python test_types_page.py`` regenerates it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tupelo

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "types.md"
HEAD = "| C++ | RNTuple columns | Arrow | NumPy | Awkward | pandas |\n|---|---|---|---|---|---|\n"
POINT = tupelo.record("Point", {"x": "float", "n": "int"})
TYPES: dict[str, tuple[Any, Any]] = {
    **{name: (name, 1) for name in ("bool", "char", "std::byte", "std::int8_t", "std::uint8_t")},
    **{name: (name, 1) for name in ("short", "unsigned short", "int", "unsigned int", "long", "unsigned long")},
    "float": ("float", 1.5),
    "double": ("double", 1.5),
    "std::string": ("std::string", "a"),
    "std::vector<float>": ("std::vector<float>", [1.5, 2.5]),
    "ROOT::RVec<float>": ("ROOT::RVec<float>", [1.5, 2.5]),
    "std::vector<std::vector<int>>": ("std::vector<std::vector<int>>", [[1], []]),
    "std::vector<std::string>": ("std::vector<std::string>", ["a", "b"]),
    "std::set<int>": ("std::set<int>", [1, 2]),
    "std::map<std::string, int>": ("std::map<std::string, int>", {"a": 1}),
    "std::array<float, 3>": ("std::array<float, 3>", [1.5, 2.5, 3.5]),
    "std::bitset<10>": ("std::bitset<10>", [True] * 10),
    "std::optional<float>": ("std::optional<float>", 1.5),
    "std::unique_ptr<int>": ("std::unique_ptr<int>", 1),
    "std::atomic<int>": ("std::atomic<int>", 1),
    "std::pair<int, float>": ("std::pair<int, float>", (1, 1.5)),
    "std::tuple<int, float>": ("std::tuple<int, float>", (1, 1.5)),
    "std::variant<int, std::string>": ("std::variant<int, std::string>", 1),
    "struct Point { float x; int n; }": (POINT, {"x": 1.5, "n": 1}),
    "std::vector<Point>": (pa.large_list(POINT), [{"x": 1.5, "n": 1}]),
}
"""Each type as written by users, its declaration, and a value."""


def columns(field: dict[str, Any]) -> Iterator[str]:
    """Types of the columns of a field and those below it, as `tupelo schema --json` has them."""
    yield from (column["type"] for column in field.get("columns", []))
    for below in field.get("fields", []):
        yield from columns(below)


def arrow_text(kind: Any) -> str:
    """An Arrow type without names of items and nullability."""
    text = re.sub(r" not null|\bitem: ", "", str(kind))
    return re.sub(r"=\d", "", re.sub(r"_\d: |valueless: ", "", text))


def numpy_text(array: Any) -> str:
    if isinstance(array, np.ma.MaskedArray):
        return f"masked array of {array.dtype}"
    if array.dtype != object:
        shape = "".join(f", {size}" for size in array.shape[1:])
        return f"{dtype_text(array.dtype)}, shape (n{shape})" if shape else dtype_text(array.dtype)
    value = array[0]
    inner = f" of {dtype_text(value.dtype)}" if isinstance(value, np.ndarray) else ""
    return f"objects: {type(value).__name__}{inner}"


def dtype_text(dtype: np.dtype[Any]) -> str:
    return f"structured ({', '.join(dtype.names)})" if dtype.names else str(dtype)


def pandas_text(dtype: Any) -> str:
    return "ArrowDtype" if str(dtype).endswith("[pyarrow]") else str(dtype)


def table() -> str:
    with tupelo.recreate("types.root") as file:
        names = [f"f{index}" for index in range(len(TYPES))]
        declared = {name: kind for name, (kind, _) in zip(names, TYPES.values(), strict=True)}
        file.mkrntuple("Types", declared).extend(
            {name: [value] for name, (_, value) in zip(names, TYPES.values(), strict=True)}
        )
    command = [sys.executable, "-m", "tupelo", "schema", "--columns", "--json", "types.root"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    fields = json.loads(done.stdout)["fields"]
    ntuple = tupelo.open("types.root:Types")
    lines = []
    for name, cpp, field in zip(names, TYPES, fields, strict=True):
        cells = [
            cpp,
            ", ".join(columns(field)),
            arrow_text(ntuple.arrow_schema.field(name).type),
            numpy_text(ntuple[name].array(library="np")),
            str(ntuple[name].array().type).removeprefix("1 * "),
            pandas_text(ntuple[name].array(library="pd").dtype),
        ]
        lines.append("| " + " | ".join(f"`{cell}`" for cell in cells) + " |\n")
    return HEAD + "".join(lines)


def test_the_table_of_types_matches_the_code() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "run python/tests/test_types_page.py to update it"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, after = re.split(r"\| C\+\+ \|.*?\n\n", text, maxsplit=1, flags=re.DOTALL)
    PAGE.write_text(before + table() + "\n" + after, encoding="utf-8")
