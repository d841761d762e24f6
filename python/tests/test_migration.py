"""The migration page: both columns of its tables run with equal results, and uproot's column also with one import."""

import ast
import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest

import tupelo

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "migration.md"
ENTRIES = 200


def tables() -> dict[str, list[tuple[str, str]]]:
    """The lines of the tables by heading: programs, empty if there is no equivalent."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        rows = [line.strip("|").split(" | ") for line in rest.splitlines() if line.startswith("|")][2:]
        found[title] = [(program(left), program(right)) for left, right in rows]
    return found


def program(cell: str) -> str:
    return "\n".join(re.findall(r"`([^`]+)`", cell))


def result(code: str, variables: dict[str, Any]) -> Any:
    """The value of the last line of a program; None if it is not an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), code, "exec"), variables)
    return None if last is None else eval(compile(ast.Expression(last.value), code, "eval"), variables)


def plain(value: Any) -> Any:
    """Converts values of any library to numbers, strings and lists."""
    if hasattr(value, "GetValue"):
        value = value.GetValue()
    if hasattr(value, "GetNbinsX"):  # ROOT's histograms
        numbers = [range(1, bins + 1) for bins in (value.GetNbinsX(), value.GetNbinsY())[: value.GetDimension()]]
        if len(numbers) == 1:
            return [value.GetBinContent(x) for x in numbers[0]]
        return [[value.GetBinContent(x, y) for y in numbers[1]] for x in numbers[0]]
    if hasattr(value, "axes") and hasattr(value, "values"):
        value = value.values() if callable(value.values) else value.values
    if isinstance(value, ak.Array):
        return value.to_list()
    return value.tolist() if hasattr(value, "tolist") else value


def modules(title: str) -> dict[str, Any] | str:
    """The modules that the left column needs, or why they are missing."""
    try:
        if title == "uproot":
            import uproot

            return {"uproot": uproot}
        with warnings.catch_warnings(action="ignore"):
            import ROOT

        return {"ROOT": ROOT}
    except ImportError as error:
        return str(error)


@pytest.fixture
def events() -> str:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, ENTRIES)
    with tupelo.recreate("events.root") as file:
        file["Events"] = {
            "run": np.arange(ENTRIES, dtype="i4") // 50,
            "met": rng.exponential(30, ENTRIES),
            "weight": np.full(ENTRIES, 0.5),
            "Muon_pt": ak.unflatten(rng.exponential(30, counts.sum()).astype("f4"), counts),
            "Muon_eta": ak.unflatten(rng.normal(0, 2, counts.sum()).astype("f4"), counts),
        }
    return str(Path("events.root").resolve())


@contextlib.contextmanager
def folder(name: str, events: str) -> Iterator[None]:
    """A directory for the files of one column."""
    Path(name).mkdir(exist_ok=True)
    with contextlib.chdir(name):
        if not Path("events.root").exists():
            os.symlink(events, "events.root")
        yield


@pytest.mark.parametrize("title", tables())
def test_both_columns_give_equal_results(title: str, events: str) -> None:
    theirs: dict[str, Any] = {"np": np}
    ours: dict[str, Any] = {"np": np, "tupelo": tupelo}
    others = modules(title)
    if isinstance(others, dict):
        theirs |= others
    compared = 0
    threads = tupelo.threads()
    try:
        for left, right in tables()[title]:
            with folder("ours", events):
                found = plain(result(right, ours))
            if not isinstance(others, dict) or not left:
                continue
            with folder("theirs", events):
                expected = plain(result(left, theirs))
            if found is not None:
                assert type(found) is type(expected)
                assert found == expected, right
                compared += 1
    finally:
        tupelo.set_threads(threads)
    if not isinstance(others, dict):
        if where := os.environ.get("TUPELO_SUMMARY"):
            (Path(where) / f"migration-{title}.txt").write_text(f"only the column of Tupelo ran: {others}\n")
        return
    assert compared >= 5
    written = sorted(path.name for path in Path("theirs").glob("*.root") if path.name not in ("events.root", "b.root"))
    assert written
    for name in written:
        arrays = [tupelo.open(f"{side}/{name}:Events").arrays().to_list() for side in ("ours", "theirs")]
        assert arrays[0] == arrays[1] != [], name


def test_one_import_keeps_programs_of_uproot_as_they_are(events: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(modules("uproot"), str):
        pytest.skip("uproot is not installed")
    monkeypatch.setenv("TUPELO_UPROOT", "strict")
    import tupelo.uproot as carried

    imported = re.search(r"`import tupelo\.uproot as uproot`", PAGE.read_text(encoding="utf-8"))
    assert imported is not None
    found: dict[str, list[Any]] = {}
    for side in "alone", "carried":
        carried.uninstall()
        if side == "carried":
            carried.install()
            carried.report(clear=True)
        variables: dict[str, Any] = {"np": np, "uproot": carried}
        with folder(side, events):
            found[side] = [plain(result(left, variables)) for left, _ in tables()["uproot"] if left]
    carried.uninstall()
    report = carried.report()
    assert report.served > 5
    assert found["carried"] == found["alone"]
    assert sorted(os.listdir("carried")) == sorted(os.listdir("alone"))
