"""Schema evolution in Tupelo equals that of ROOT, including unsupported conversions.

Tupelo writes the files; ROOT's views and Tupelo's schemas read them. The supported conversions are listed in
crates/tupelo-schema/src/evolution/resolve/root_6_40.txt, against which the engine is tested; this module verifies it
with ROOT.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from compare import differences, parse
from panel import root_error
from root_programs import root

import tupelo

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
WORK = PROJECT / "target" / "conformance" / "evolution"
MATRIX = PROJECT / "crates" / "tupelo-schema" / "src" / "evolution" / "resolve" / "root_6_40.txt"

INF, NAN = math.inf, math.nan
PAIRS = [[(1, 1.5), (2, -2.5)], [], [(-3, 0.0)]]
LISTS = [[1, 2, 300], [], [-7]]
# Types for which ROOT needs a dictionary.
DICTIONARY = [
    *(f"std::{kind}<int>" for kind in ("set", "unordered_set", "multiset", "unordered_multiset")),
    *(f"std::{kind}<int,float>" for kind in ("map", "unordered_map", "multimap", "unordered_multimap")),
    *(f"std::{kind}<std::pair<int,float>>" for kind in ("set", "multiset")),
]


def typed(name: str, *, of: Any, members: bool = False, **kwargs: Any) -> Any:
    """The Arrow field x of a C++ type that cannot be parsed: a class with members, or an enum."""
    if members:
        fields = [typed_member(member, declared) for member, declared in of.items()]
        return pa.field("x", pa.struct(fields), False, metadata={"rntuple.type": name} | kwargs)
    integer = {"rntuple.type": name, "rntuple.type/0": f"std::{of}_t"}
    return pa.field("x", getattr(pa, of)(), False, metadata=integer)


def typed_member(name: str, declared: Any) -> Any:
    """A member of a class."""
    if isinstance(declared, pa.Field):
        return declared.with_name(name)
    from tupelo._to_arrow.cpp import field_of

    return field_of(name, declared)


def record(name: str, **members: Any) -> Any:
    """The Arrow field x of a class."""
    return typed(name, of=members, members=True)


def derived(name: str, base: str, **members: Any) -> Any:
    """The Arrow field x of a class with a base class that has an integer b."""
    return typed(name, of={":_0": record(base, b="int")} | members, members=True)


ENUM = "enum class Color : short {kRed}; enum class Tint : int {kNone}; enum class Tiny : signed char {kLow};"


@dataclass(frozen=True)
class Case:
    """One conversion: values of a type on disk, read as another type."""

    disk: Any
    values: list[Any]
    wanted: Any
    refused: bool = False
    declare: str = ""
    encoding: str = ""

    @property
    def root_type(self) -> str:
        """The target type in ROOT."""
        return self.wanted if isinstance(self.wanted, str) else type_name(self.wanted)

    @property
    def name(self) -> str:
        """For pytest."""
        disk = self.disk if isinstance(self.disk, str) else type_name(self.disk)
        return f"{disk} {self.encoding} as {self.root_type}, {str(self.values)[:40]}"


def type_name(field: Any) -> str:
    """The C++ type of an Arrow field."""
    return str(field.metadata[b"rntuple.type"].decode())


CASES = [
    # Integers, each checked.
    Case("int", [0, 1, -1, 2**31 - 1, -(2**31)], "long"),
    Case("int", [0, 255, 7], "unsigned char"),
    Case("int", [0, 256, 7], "unsigned char", refused=True),
    Case("int", [0, 7, -1], "unsigned long", refused=True),
    Case("unsigned long", [0, 2**63 - 1], "long"),
    Case("unsigned long", [0, 2**63], "long", refused=True),
    Case("std::int64_t", [-128, 127], "std::int8_t"),
    Case("std::int64_t", [-129], "std::int8_t", refused=True),
    Case("short", [-1, 0, 100], "char"),
    Case("short", [200], "char", refused=True),
    Case("char", [-1, 0, 100], "int"),
    Case("int", [0, 1, 2, -1, 256], "bool"),
    Case("bool", [True, False], "std::uint64_t"),
    Case("std::byte", [1, 2], "std::uint8_t", refused=True),
    Case("std::uint8_t", [1, 2], "std::byte", refused=True),
    # Floating point keeps its class.
    Case("float", [1.5, -0.0, INF, -INF, NAN, 1e-45, 3.4e38], "double"),
    Case("double", [1.1, -0.0, INF, NAN, 3.4028235e38, 1.1754943e-38], "float"),
    Case("double", [1e39], "float", refused=True),
    Case("double", [-1e39], "float", refused=True),
    Case("double", [1e-40], "float", refused=True),
    Case("double", [5e-324], "float", refused=True),
    Case("float", [1.0], "int", refused=True),
    Case("int", [1], "float", refused=True),
    Case("Double32_t", [1.1, 2.5], "float"),
    # The meaning of reduced-precision encodings depends on the target type.
    Case("float", [0.1, 0.7, -0.3], "double", encoding="Real32Quant(12,-1,1)"),
    Case("double", [0.1, 0.7, -0.3], "float", encoding="Real32Quant(20,-3.7,11.3)"),
    Case("float", [0.1, 0.7, -0.3], "double", encoding="Real32Trunc(12)"),
    Case("double", [0.1, 0.7, -0.3], "float", encoding="Real16"),
    # Optionals, pointers, atomics.
    Case("int", [1, -2], "std::optional<long>"),
    Case("int", [1, -2], "std::unique_ptr<int>"),
    Case("std::optional<int>", [1, None, 3], "std::unique_ptr<short>"),
    Case("std::optional<int>", [1, None, 70000], "std::unique_ptr<short>", refused=True),
    Case("std::unique_ptr<float>", [1.5, None], "std::optional<double>"),
    Case("std::optional<int>", [1, None], "int", refused=True),
    Case("std::unique_ptr<int>", [1, None], "int", refused=True),
    Case("int", [1, -2], "std::atomic<long>"),
    Case("std::atomic<int>", [1, -2], "long"),
    Case("std::atomic<int>", [1, -2], "std::optional<std::atomic<short>>"),
    Case("std::vector<int>", LISTS, "std::optional<std::vector<long>>"),
    Case("std::optional<std::vector<int>>", [[1], None, []], "std::optional<std::vector<short>>"),
    # Collections.
    Case("std::vector<float>", [[1.5], [], [2.5, -1.0]], "std::vector<double>"),
    Case("std::vector<int>", LISTS, "ROOT::RVec<short>"),
    Case("std::vector<int>", LISTS, "std::vector<signed char>", refused=True),
    Case("std::vector<int>", LISTS, "std::vector<bool>"),
    Case("std::vector<int>", LISTS, "std::vector<std::optional<int>>"),
    Case("std::vector<std::vector<int>>", [LISTS, [], [[]]], "std::vector<ROOT::RVec<long>>"),
    Case("std::set<int>", [[1, 2], [], [3]], "std::vector<long>"),
    Case("std::multiset<int>", [[1, 1], [], [3]], "ROOT::RVec<long>"),
    Case("std::array<int,3>", [[1, 2, 3], [4, 5, 6]], "std::vector<long>"),
    # Into ROOT::RVec ROOT reads arrays too, but RArrayAsRVecField::SplitValue of 6.40 throws, so there is no judge.
    Case("std::array<int,3>", [[1, 2, 3]], "std::array<long,3>"),
    Case("std::array<int,3>", [[1, 2, 3]], "std::array<int,2>", refused=True),
    Case("std::vector<int>", [[1, 2, 3]], "std::array<int,3>", refused=True),
    Case("std::array<int,3>", [[1, 2, 3]], "std::multiset<int>", refused=True),
    Case("std::optional<int>", [1, None, 3], "std::vector<long>"),
    Case("std::unique_ptr<int>", [1, None, 3], "ROOT::RVec<int>"),
    Case("std::optional<std::optional<int>>", [[1], [], [3]], "std::vector<std::vector<int>>"),
    Case("std::map<int,float>", PAIRS, "std::vector<std::pair<long,double>>"),
    Case("std::map<int,float>", PAIRS, "std::vector<std::tuple<int,float>>"),
    Case("std::map<int,float>", PAIRS, "std::vector<int>", refused=True),
    Case("std::unordered_map<int,float>", PAIRS, "std::map<int,float>"),
    Case("std::multimap<int,float>", PAIRS, "std::map<int,float>", refused=True),
    Case("std::map<int,float>", PAIRS, "std::set<std::pair<int,float>>"),
    Case("std::set<std::pair<int,float>>", PAIRS, "std::map<int,float>", refused=True),
    Case("std::vector<std::pair<int,float>>", PAIRS, "std::multimap<int,float>"),
    Case("std::vector<std::tuple<short,double>>", PAIRS, "std::multimap<int,float>"),
    Case("std::vector<int>", LISTS, "std::multiset<int>"),
    Case("std::vector<int>", LISTS, "std::set<int>", refused=True),
    Case("std::unordered_set<int>", [[1, 2], []], "std::set<int>"),
    Case("std::multiset<int>", [[1, 2], []], "std::set<int>", refused=True),
    Case("std::optional<int>", [1, None], "std::multiset<int>"),
    Case("std::bitset<5>", [[True, False, True, True, False]], "std::bitset<5>"),
    Case("std::bitset<5>", [[True, False, True, True, False]], "std::bitset<6>", refused=True),
    Case("std::string", ["a", ""], "std::string"),
    Case("std::string", ["a", ""], "std::vector<char>", refused=True),
    # Pairs and tuples.
    Case("std::pair<int,float>", [(1, 1.5)], "std::tuple<long,double>"),
    Case("std::tuple<int,float>", [(1, 1.5)], "std::pair<short,float>"),
    Case("std::tuple<int,float,bool>", [(1, 1.5, True)], "std::pair<int,float>", refused=True),
    # Enums.
    Case(typed("Color", of="int16"), [1, 2], "int", declare=ENUM),
    Case(typed("Color", of="int16"), [1, 2], typed("Tint", of="int32"), declare=ENUM),
    Case(typed("Color", of="int16"), [1, 200], typed("Tiny", of="int8"), declare=ENUM, refused=True),
    Case("int", [1, 2], typed("Tint", of="int32"), declare=ENUM, refused=True),
    # Classes.
    Case(
        record("Evo1", a="int", b="float", c="std::vector<int>"),
        [{"a": 1, "b": 2.5, "c": [3]}, {"a": 2, "b": 0.0, "c": []}],
        record("Evo1", c="std::vector<long>", d="double", s="std::string", v="std::vector<int>", a="long"),
        declare="struct Evo1 {std::vector<long> c; double d = 0; std::string s; std::vector<int> v; long a;};",
    ),
    Case(record("Evo2", a="int"), [{"a": 1}], record("Evo2", a="float"), True, "struct Evo2 {float a;};"),
    Case(record("Evo3", a="int"), [{"a": 1}], record("Evo4", a="int"), True, "struct Evo4 {int a;};"),
    Case(
        derived("Evo5", "Base5", a="int"),
        [{":_0": {"b": 1}, "a": 2}],
        record("Evo5", a="int"),
        declare="struct Evo5 {int a;};",
    ),
    Case(
        record("Evo6", a="int"),
        [{"a": 2}],
        derived("Evo6", "Base6", a="int"),
        declare="struct Base6 {int b = 0;}; struct Evo6 : Base6 {int a;};",
    ),
    Case(
        derived("Evo7", "Base7", a="int"),
        [{":_0": {"b": 1}, "a": 2}],
        derived("Evo7", "Other7", a="int"),
        True,
        "struct Other7 {int b = 0;}; struct Evo7 : Other7 {int a;};",
    ),
]


def build_dictionary(folder: Path) -> list[str]:
    """Builds the dictionary of the collections that need one; nothing without a compiler."""
    if not shutil.which("g++"):
        return []
    code = "import ROOT; r = ROOT.TROOT; print(r.GetBinDir(), r.GetIncludeDir(), r.GetSharedLibDir(), sep='\\n')"
    bin_dir, include_dir, library_dir = root(code).split()
    headers = ("map", "set", "unordered_map", "unordered_set", "utility", "vector")
    (folder / "collections.hxx").write_text("".join(f"#include <{header}>\n" for header in headers))
    links = "".join(f"#pragma link C++ class {name}+;\n" for name in DICTIONARY)
    (folder / "LinkDef.h").write_text(f"#ifdef __CLING__\n{links}#endif\n")
    library = folder / "libEvolution.so"
    rootcling = [f"{bin_dir}/rootcling", "-f", "dict.cxx", "-s", library.stem, "-rml", library.name, "-rmf"]
    rootcling += [f"{library.stem}.rootmap", "-I.", "collections.hxx", "LinkDef.h"]
    environment = os.environ | {"LD_LIBRARY_PATH": library_dir}
    subprocess.run(rootcling, cwd=folder, env=environment, check=True, capture_output=True)
    compiler = [
        "g++",
        "-shared",
        "-fPIC",
        "-O1",
        "-std=c++17",
        f"-I{include_dir}",
        "-I.",
        "dict.cxx",
        "-o",
        library.name,
    ]
    subprocess.run(compiler, cwd=folder, check=True)
    return ["--library", str(library)]


@pytest.fixture(scope="session")
def dictionary(summary: list[str]) -> list[str]:
    """How the judge loads the dictionary."""
    if error := root_error():
        summary.append(f"schema evolution was not compared with ROOT's: ROOT cannot be imported ({error})")
        pytest.skip("ROOT cannot be imported")
    WORK.mkdir(parents=True, exist_ok=True)
    options = build_dictionary(WORK)
    if not options:
        summary.append("schema evolution into sets and maps was not compared with ROOT's: there is no g++")
    return options


def judge(jobs: list[dict[str, Any]], label: str, options: list[str]) -> list[dict[str, Any]]:
    """Runs jobs with ROOT in one process."""
    listing = WORK / f"{label}.json"
    listing.write_text(json.dumps(jobs))
    command = [sys.executable, str(HERE / "judges" / "views_dump.py"), str(listing), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, f"the judge ended with {done.returncode}"
    reports: list[dict[str, Any]] = json.loads(done.stdout)
    return reports


def needs_dictionary(case: Case) -> bool:
    """Whether ROOT needs a dictionary for the target type."""
    return any(kind in case.root_type for kind in ("set<", "map<")) and "bitset" not in case.root_type


@pytest.fixture(scope="session")
def by_root(dictionary: list[str], summary: list[str]) -> dict[str, dict[str, Any]]:
    """The results of ROOT for all cases that it supports."""
    jobs = {}
    for number, case in enumerate(CASES):
        if dictionary or not needs_dictionary(case):
            path = write(case, number)
            job = {"file": str(path), "type": case.root_type, "declare": "", "out": str(path.with_suffix(".jsonl"))}
            jobs[case.name] = job
    # Every declaration once, first.
    declared = dict.fromkeys(case.declare for case in CASES)
    next(iter(jobs.values()))["declare"] = "\n".join(declared)
    reports = judge(list(jobs.values()), "views", dictionary)
    summary.append(f"{len(jobs)} evolutions of schemas were compared with ROOT's")
    return {name: job | report for (name, job), report in zip(jobs.items(), reports, strict=True)}


def write(case: Case, number: int) -> Path:
    """Tupelo writes the case's file."""
    path = WORK / f"{number}.root"
    disk = pa.schema([case.disk]) if isinstance(case.disk, pa.Field) else {"x": case.disk}
    with tupelo.recreate(path) as file:
        ntuple = file.mkrntuple("n", disk, encodings={"x": case.encoding} if case.encoding else {})
        ntuple.extend({"x": pa.array(case.values, ntuple.arrow_schema.field("x").type, safe=True)})
    return path


def canonical(value: Any, field: Any) -> Any:
    """An Arrow value in the form of compare.py."""
    kind = field.type
    base = (field.metadata or {}).get(b"rntuple.type", b"").decode().partition("<")[0]
    if value is None:
        return None
    if pa.types.is_struct(kind):
        members = [canonical(value[member.name], member) for member in kind]
        is_tuple = base in ("std::pair", "std::tuple")
        return members if is_tuple else dict(zip(kind.names, members, strict=True))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if base == "std::bitset":
            return [int(bit) for bit in value]
        return [canonical(item, kind.value_field) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def sorted_where(case: Case, values: list[Any]) -> list[Any]:
    """Sorts values whose order is unspecified in C++."""
    return [sorted(value) if needs_dictionary(case) else value for value in values]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_evolution(case: Case, by_root: dict[str, dict[str, Any]]) -> None:
    """Both read the same values, or both raise an error."""
    if case.name not in by_root:
        return  # reported at the end of the run
    told = by_root[case.name]
    assert (told["error"] is not None) == case.refused, told["error"]
    schema = pa.schema([case.wanted]) if isinstance(case.wanted, pa.Field) else {"x": case.wanted}
    with tupelo.open(f"{told['file']}:n") as ntuple:
        if case.refused:
            with pytest.raises(tupelo.InvalidArgumentError, match="field 'x"):
                ntuple.arrays(schema=schema, library="arrow")
            return
        table = ntuple.arrays(schema=schema, library="arrow")
    ours = [canonical(value, table.schema.field(0)) for value in table.column(0).to_pylist()]
    lines = Path(told["out"]).read_text().splitlines()
    theirs = [parse(line)["x"] for line in lines]
    assert not list(differences(sorted_where(case, ours), sorted_where(case, theirs), "x"))


def test_matrix(dictionary: list[str], summary: list[str]) -> None:
    """ROOT supports the conversions in the table of the engine's tests."""
    if not dictionary:
        return  # reported at the end of the run
    _, columns, rows = MATRIX.read_text().split("\n\n")
    wanted = columns.splitlines()
    expected = {disk.strip(): answers for disk, _, answers in (row.partition(" | ") for row in rows.splitlines())}
    jobs = [{"disk": disk, "wanted": wanted, "file": str(WORK / "matrix.root")} for disk in expected]
    reports = judge(jobs, "matrix", dictionary)
    found = {job["disk"]: report.get("answers", report.get("error")) for job, report in zip(jobs, reports, strict=True)}
    assert found == expected
    summary.append(f"ROOT was asked for {len(expected) * len(wanted)} pairs of types")
