"""Dump an RNTuple as canonical JSON lines from what uproot reads.

    uproot_dump.py FILE[:NAME]
    uproot_dump.py --batch JOBS.json     as in root_dump.py; the report goes to standard output

uproot hands out Awkward arrays, which no longer know a pair from a record or a base class from its members; the field
records of the RNTuple bring that back. Fields that uproot cannot read are listed on stderr and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import uproot
from uproot.const import RNTupleFieldRole as Role


@dataclass
class Node:
    """One field of the schema on disk."""

    name: str
    type_name: str
    role: Role
    repetition: int
    children: list[Node] = field(default_factory=list)

    def is_a(self, *heads: str) -> bool:
        """Whether the type name starts with one of the names and "<"."""
        return any(self.type_name.startswith(f"{head}<") for head in heads)


def schema(ntuple: Any) -> list[Node]:
    """Top-level fields in the order of their ids."""
    nodes = [Node(r.field_name, r.type_name, r.struct_role, r.repetition) for r in ntuple.field_records]
    top = []
    for index, record in enumerate(ntuple.field_records):
        if record.parent_field_id == index:
            top.append(nodes[index])
        else:
            nodes[record.parent_field_id].children.append(nodes[index])
    return top


def real(value: float, single: bool) -> float | str:
    """Shortest decimal of a float or double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(str(numpy.float32(value))) if single else float(value)


def record(node: Node, value: Any) -> dict[str, Any]:
    """Members by name; uproot flattens base classes into the record."""
    result = {}
    for index, child in enumerate(node.children):
        if child.name.startswith(":_"):
            result[child.name] = record(child, value)
        else:
            result[child.name] = canonical(child, value[index if isinstance(value, tuple) else child.name])
    return result


def duplicates(node: Node) -> set[str]:
    """Names that two members of a flattened record share: Awkward keeps only one of them."""

    def members(part: Node) -> Iterator[str]:
        for child in part.children:
            if child.name.startswith(":_"):
                yield from members(child)
            else:
                yield child.name

    names = list(members(node)) if node.role == Role.RECORD else []
    found = {name for name in names if names.count(name) > 1}
    return found.union(*(duplicates(child) for child in node.children))


def canonical(node: Node, value: Any) -> Any:
    """The canonical form of one value of a field."""
    if value is None:
        return None
    if node.role == Role.RECORD:
        if node.is_a("std::pair", "std::tuple"):
            return [canonical(child, value[i]) for i, child in enumerate(node.children)]
        return record(node, value)
    if node.role == Role.COLLECTION:
        if node.is_a("std::optional"):
            return canonical(node.children[0], value)
        items = [canonical(node.children[0], item) for item in value]
        if node.is_a("std::unique_ptr"):
            return items[0] if items else None
        return items
    if node.role == Role.VARIANT:
        return variant(node, value)
    if node.repetition > 0:
        if node.is_a("std::bitset"):
            return [int(bit) for bit in value]
        return [canonical(node.children[0], item) for item in value]
    if len(node.children) == 1:
        return canonical(node.children[0], value)
    if isinstance(value, float):
        return real(value, node.type_name == "float")
    return value


def variant(node: Node, value: Any) -> Any:
    """The alternative is not told: take the first whose form the value has."""
    for child in node.children:
        try:
            if isinstance(value, str) == (child.type_name == "std::string"):
                return canonical(child, value)
        except (TypeError, KeyError, IndexError):
            continue
    raise ValueError(f"no alternative of {node.type_name} has the form of {value!r}")


def dump(path: str, name: str, out: Any) -> list[str]:
    """Write all entries as JSON lines; return one line for every field that uproot cannot read."""
    omitted = []
    columns: dict[str, list[Any]] = {}
    with uproot.open(path) as file:
        ntuple = file[name]
        for node in schema(ntuple):
            try:
                if duplicates(node):
                    raise ValueError(f"Awkward keeps one of the members named {sorted(duplicates(node))}")
                array = ntuple[node.name].array()
                columns[node.name] = [canonical(node, value) for value in array.to_list()]
            except Exception as error:  # whatever uproot raises, the other fields go on
                text = " ".join(str(error).split())
                omitted.append(f"{node.name} ({node.type_name}): {type(error).__name__}: {text[:200]}")
        for entry in range(ntuple.num_entries):
            line = {key: values[entry] for key, values in columns.items()}
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return omitted


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="FILE[:NAME], or the list of jobs with --batch")
    parser.add_argument("--batch", action="store_true")
    args = parser.parse_args()
    if args.batch:
        reports = []
        for job in json.loads(Path(args.input).read_text()):
            report: dict[str, Any] = {"omitted": [], "messages": [], "error": None}
            try:
                with open(job["out"], "w", encoding="utf-8") as out:
                    report["omitted"] = dump(job["file"], job["ntuple"], out)
            except Exception as error:  # one damaged file does not end the batch
                report["error"] = f"{type(error).__name__}: {error}"
            reports.append(report)
        json.dump(reports, sys.stdout)
        return 0
    path, _, name = args.input.partition(".root:")
    path = path + ".root" if name else args.input
    if not name:
        with uproot.open(path) as file:
            names = [key for key, kind in file.classnames(cycle=False).items() if kind == "ROOT::RNTuple"]
        if len(names) != 1:
            sys.exit(f"{path} holds {len(names)} ntuples, say FILE:NAME: {', '.join(names)}")
        name = names[0]
    for line in dump(path, name, sys.stdout):
        print("not shown:", line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
