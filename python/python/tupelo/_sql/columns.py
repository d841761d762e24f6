"""The columns of a relation for the formats in which DuckDB writes them."""

import re
from collections.abc import Sequence
from typing import Any

_REALS = {"float", "double"}
_HUGE = re.compile(r""""[^"]*"|'[^']*'|\bU?HUGEINT\b(?! )""")
"""Names and texts in a type, and its integers of 128 bits."""


def as_it_is(relation: Any, places: Sequence[str]) -> list[str]:
    """The columns, which have their places as names."""
    return [_named(place, name) for place, name in zip(places, relation.columns, strict=True)]


def for_parquet(relation: Any, places: Sequence[str]) -> list[str]:
    """The same with integers of 128 bits as decimal numbers, as in Arrow. DuckDB would make doubles of them."""
    columns = zip(places, map(str, relation.types), relation.columns, strict=True)
    return [_named(_without_huge(place, kind), name) for place, kind, name in columns]


def _without_huge(place: str, kind: str) -> str:
    cast = _HUGE.sub(lambda found: found[0] if found[0][0] in "\"'" else "DECIMAL(38,0)", kind)
    return place if cast == kind else f"{place}::{cast}"


def for_json(relation: Any, places: Sequence[str]) -> list[str]:
    """The same with numbers that are not finite as the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, as
    ``tupelo dump`` writes them. Of columns with the same name, all but the first get a number.
    """
    columns = zip(places, relation.types, _unique(relation.columns), strict=True)
    return [_named(_as_json(place, kind), name) for place, kind, name in columns]


def _named(value: str, name: str) -> str:
    return f"{value} as {_quoted(name)}"


def _unique(names: Sequence[str]) -> list[str]:
    """Different names, also in the eyes of SQL.

    >>> _unique(["a", "a", "A", "a_1"])
    ['a', 'a_2', 'A_3', 'a_1']
    """
    taken = {name.casefold() for name in names}
    seen: set[str] = set()
    found = []
    for name in names:
        new, number = name, 0
        while new.casefold() in (seen if number == 0 else taken):
            number += 1
            new = f"{name}_{number}"
        taken.add(new.casefold())
        seen.add(new.casefold())
        found.append(new)
    return found


def _as_json(value: str, kind: Any, depth: int = 0) -> str:
    """An expression for the value of another one."""
    if not _has_reals(kind):
        return value
    if kind.id in _REALS:
        texts = f"case when isnan({value}) then 'NaN' when {value} > 0 then 'Infinity' else '-Infinity' end"
        return f"case when isfinite({value}) then to_json({value}) when {value} is not null then to_json({texts}) end"
    if kind.id == "struct":
        members = (
            f"{_quoted(name)} := {_as_json(f'{value}.{_quoted(name)}', member, depth)}"
            for name, member in kind.children
        )
        return f"case when {value} is not null then struct_pack({', '.join(members)}) end"
    item = f"item{depth}"
    return f"list_transform({value}, lambda {item}: {_as_json(item, kind.children[0][1], depth + 1)})"


def _has_reals(kind: Any) -> bool:
    """Whether a type is a real number, or a list, an array or a record with some."""
    if kind.id in ("list", "array", "struct"):
        # The size of an array is also one of its children.
        children = kind.children if kind.id == "struct" else kind.children[:1]
        return any(_has_reals(child) for _, child in children)
    return kind.id in _REALS


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
