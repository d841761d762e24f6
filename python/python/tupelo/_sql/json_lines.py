"""Values as JSON, which has no numbers that are not finite."""

from typing import Any

_REALS = {"float", "double"}


def columns_as_json(relation: Any) -> str:
    """The columns of a relation for ``copy … (format json)``: numbers that are not finite are the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``, as ``tupelo dump`` writes them.
    """
    columns = zip(relation.columns, relation.types, strict=True)
    return ", ".join(f"{_as_json(_quoted(name), kind)} as {_quoted(name)}" for name, kind in columns)


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
