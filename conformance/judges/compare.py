"""Compare two streams of canonical JSON lines field by field.

    compare.py OURS.jsonl THEIRS.jsonl [--fields a,b] [--unordered]

The canonical form, which `tupelo dump --format jsonl` prints, is one object per entry with all top-level fields in the
order on disk, projected ones too: record -> object (base classes as ":_0", ...), pair and tuple -> array, collection ->
array, map -> array of [key, value], fixed array -> array, bitset -> array of 0/1 in index order, bool -> true/false,
optional and unique_ptr -> the value or null, variant -> the bare value (valueless -> null), integers exactly (char is
signed, std::byte is not), enum -> integer, atomic -> its value, floats in their shortest form or "NaN", "Infinity",
"-Infinity", cardinality -> integer, streamed bytes -> base64.

Only the top-level fields that both sides have are compared, and their order must agree. Numbers must be exactly equal;
a float32 may be written in its own shortest form or widened to double. A char may be an integer or a string of one
character.
"""

from __future__ import annotations

import argparse
import itertools
import json
import marshal
import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy

MAX_DIFFERENCES = 20
NUMBERS = (int, float)
NEGATIVE_ZERO = marshal.dumps(-0.0, 2)
MINUS_ZERO = re.compile(r"-0(?![0-9.eE])")


def parse(line: str) -> Any:
    """Parse one JSON line; integers stay exact and -0 keeps its sign."""
    # A function that is called for each integer takes longer than all the rest.
    if not MINUS_ZERO.search(line):
        return json.loads(line)
    return json.loads(line, parse_int=lambda text: -0.0 if text == "-0" else int(text))


def identical(ours: Any, theirs: Any) -> bool:
    """Whether parsed values are equal with their types and signs; faster than looking for differences."""
    return marshal.dumps(ours, 2) == marshal.dumps(theirs, 2)


def same_values(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether two lists of strings and numbers, without bools, are equal: 0.0 differs from -0.0, and 1 equals 1.0."""
    a, b = marshal.dumps(ours, 2), marshal.dumps(theirs, 2)
    return a == b or (ours == theirs and NEGATIVE_ZERO not in a and NEGATIVE_ZERO not in b)


def is_widened(wide: float, short: float) -> bool:
    """Whether `short` is the shortest decimal of the float32 that `wide` shows with all its digits."""
    if abs(wide) > 3.5e38:
        return False
    single = numpy.float32(wide)
    return float(single) == wide and float(str(single)) == short


def same_number(ours: float, theirs: float) -> bool:
    """Exact equality, the sign of zero included."""
    if isinstance(ours, int) and isinstance(theirs, int):
        return ours == theirs
    a, b = float(ours), float(theirs)
    if a == b:
        return ours == theirs and math.copysign(1, a) == math.copysign(1, b)
    return is_widened(a, b) or is_widened(b, a)


def differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Where two values differ."""
    if isinstance(ours, bool) or isinstance(theirs, bool) or ours is None or theirs is None:
        same = ours is theirs
    elif isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        same = same_number(ours, theirs)
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, they have {len(theirs)}"
        for index, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            # Most lists are of numbers. A generator for each takes long.
            if not (type(a) in NUMBERS and type(b) in NUMBERS and same_number(a, b)):
                yield from differences(a, b, f"{path}[{index}]")
        return
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield f"{path}: members {list(ours)}, they have {list(theirs)}"
        for key in ours.keys() & theirs.keys():
            yield from differences(ours[key], theirs[key], f"{path}.{key}")
        return
    elif isinstance(ours, str) and isinstance(theirs, str):
        same = ours == theirs
    else:
        same = is_char(ours, theirs) or is_char(theirs, ours)
    if not same:
        yield f"{path}: {shorten(ours)}, they have {shorten(theirs)}"


def is_char(number: Any, text: Any) -> bool:
    """Whether one side writes a char as a string of one character."""
    return isinstance(number, int) and isinstance(text, str) and len(text) == 1 and ord(text) == number & 0xFF


def shorten(value: Any) -> str:
    """The value for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"


def sort_lists(value: Any) -> Any:
    """Lists sorted at every level, for containers without an order."""
    if isinstance(value, dict):
        return {key: sort_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((sort_lists(item) for item in value), key=json.dumps)
    return value


def compare(
    ours: Iterable[str],
    theirs: Iterable[str],
    fields: Iterable[str] | None = None,
    unordered: bool = False,
) -> list[str]:
    """Differences of two streams, at most MAX_DIFFERENCES; an empty list means that they agree."""
    wanted = None if fields is None else set(fields)
    found: list[str] = []
    for entry, (our_line, their_line) in enumerate(itertools.zip_longest(ours, theirs)):
        if our_line is None or their_line is None:
            found.append(f"entry {entry}: only {'we' if their_line is None else 'they'} have it")
            break
        if our_line == their_line:
            continue
        a, b = parse(our_line), parse(their_line)
        if unordered:
            a, b = sort_lists(a), sort_lists(b)
        both = [key for key in a if key in b and (wanted is None or key in wanted)]
        if entry == 0:
            if not both and a and b:
                found.append("entry 0: no field is on both sides")
            if both != [key for key in b if key in both]:
                found.append(f"entry 0: fields in the order {both}, theirs {[key for key in b if key in both]}")
        for key in both:
            if identical(a[key], b[key]):
                continue
            found += differences(a[key], b[key], f"entry {entry}, {key}")
            if len(found) >= MAX_DIFFERENCES:
                return found[:MAX_DIFFERENCES]
    return found


def main() -> int:
    """Run the command; exit status 1 when there are differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=Path)
    parser.add_argument("theirs", type=Path)
    parser.add_argument("--fields", type=lambda text: text.split(","))
    parser.add_argument("--unordered", action="store_true", help="sort all lists before comparing")
    args = parser.parse_args()
    with (
        args.ours.open(encoding="utf-8") as ours,
        args.theirs.open(encoding="utf-8") as theirs,
    ):
        found = compare(ours, theirs, args.fields, args.unordered)
    print("\n".join(found) if found else "no differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
