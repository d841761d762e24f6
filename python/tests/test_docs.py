"""The examples in the documentation run, and the examples/ are programs that work."""

import doctest
import importlib
import math
import os
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import tupelo

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUPELO_DATA") or ROOT.parent / "shared" / "data")
RUN_PAGE = Path(__file__).with_name("run_page.py")

MODULES = ["tupelo", *(f"tupelo.{module.name}" for module in pkgutil.iter_modules(tupelo.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.stem)
@pytest.mark.usefixtures("demo_folder")
def test_python_in_the_guide(page: Path) -> None:
    """The blocks of a page are one program, and print what the page says."""
    run(RUN_PAGE, page)


def test_the_block_that_starts_processes_works_as_a_script() -> None:
    """Without a guard, the processes that it spawns started processes themselves, which is an error."""
    page = ROOT / "docs" / "guide" / "dask.md"
    run(RUN_PAGE, page)
    *_, last = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    Path("script.py").write_text(f"import tupelo\n\n{last}", encoding="utf-8")
    run("script.py")


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```python\nprint(1)\n```\n", "line 1: printed"),
        ("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n", "line 5: printed\n1\n\nand not\n2"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nprint(1, 2)\n```\n\n```text\n1 ...\n```\n\n```sh\nfalse\n```\n", None),
    ],
)
def test_pages_are_held_to_what_they_say(page: str, fault: str | None) -> None:
    Path("page.md").write_text(page)
    done = subprocess.run([sys.executable, RUN_PAGE, "page.md"], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (fault is None)
    assert (fault or "") in done.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "examples").glob("*.py")), ids=lambda page: page.stem)
def test_examples_are_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) < 60


def test_dimuon_example(tmp_path: Path) -> None:
    """Pairs as a loop over the events makes them."""
    path = DATA / "cms_run2012_dimuon_ntuple.root"
    if not path.exists():
        return
    out = run_example("dimuon", f"{path}:Events", tmp_path)
    events = tupelo.open(f"{path}:Events").arrays("Muon_charge")
    pairs = sum(a != b for charges in events.Muon_charge.tolist() for a, b in combinations(charges, 2))
    assert f"1000 events, {pairs} pairs of muons" in out
    # The J/ψ and the Z stand out.
    bars = {line.split("[")[1].split(",")[0].strip(): line.count("█") for line in out.splitlines() if "│" in line}
    assert bars["2.99"] > 3 * bars["3.365"] > 0
    assert bars["81.77"] > 2 * bars["72.66"] > 0


def test_physlite_example(tmp_path: Path) -> None:
    path = DATA / "atlas_daod_physlite_ntuple.root"
    if not path.exists():
        return
    out = run_example("physlite_jets", path, tmp_path)
    jets = tupelo.open({path: "EventData"}).arrays(["AnalysisJetsAuxDyn:pt", "AnalysisJetsAuxDyn:eta"])
    names = ("AnalysisJetsAuxDyn:pt", "AnalysisJetsAuxDyn:eta")
    counts = [
        sum(pt > 20_000 and abs(eta) < 4.5 for pt, eta in zip(*event, strict=True))
        for event in zip(*(jets[name].tolist() for name in names), strict=True)
    ]
    found = {int(line.split()[0]): int(line.split()[1]) for line in out.splitlines() if re.match(r" *-?\d+ \d+ ", line)}
    assert {number: count for number, count in found.items() if count} == dict(Counter(counts))
    assert "100 events, 100 with jets" in out


def test_b_mass_example(tmp_path: Path) -> None:
    """On a small file of its own making, with the shape of the real one."""
    rng = np.random.default_rng(3)
    momenta = rng.normal(0, 1500, (5000, 3, 3))
    columns = {f"H{h}_P{axis}": momenta[:, h - 1, i] for h in (1, 2, 3) for i, axis in enumerate("XYZ")}
    for h in (1, 2, 3):
        columns |= {f"H{h}_ProbK": rng.uniform(0.4, 1, 5000), f"H{h}_ProbPi": np.full(5000, 0.1)}
        columns |= {f"H{h}_isMuon": np.zeros(5000, "i4"), f"H{h}_Charge": np.ones(5000, "i4")}
    with tupelo.recreate(tmp_path / "b.root") as file:
        file["DecayTree"] = columns
    out = run_example("b_mass", tmp_path / "b.root", tmp_path)
    kept = np.all([columns[f"H{h}_ProbK"] > 0.5 for h in (1, 2, 3)], axis=0)
    assert f"5000 events, {kept.sum()} with three kaons" in out
    assert "18 of 21 columns read: 0.7 MB" in out
    # One event at a time, from energies and momenta.
    masses = [
        math.sqrt(sum(math.hypot(*track, 493.677) for track in event) ** 2 - sum(event.sum(axis=0) ** 2))
        for event in momenta[kept]
    ]
    inside = sum(5270 <= mass < 5280 for mass in masses)
    assert re.search(rf"\[5270, 5280\) {inside} ", out)


def test_demo(command: str, demo_file: Path, tmp_path: Path) -> None:
    """What it ran and said is kept."""
    folder = tmp_path / "a demo"
    done = subprocess.run(
        [ROOT / ".ci" / "demo", sys.executable, folder, demo_file],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TUPELO_BIN": command},
    )
    assert done.returncode == 0, done.stderr
    kept = (folder / "README.txt").read_text()
    assert f"$ {command} schema {demo_file}\n" in kept
    assert re.search(r"10000 events, \d+ with three kaons\n18 of 26 columns read: 1.3 MB, \d+ MB/s", kept)
    assert done.stdout.startswith(kept)
    assert (folder / "b_mass.png").read_bytes().startswith(b"\x89PNG")


def run_example(name: str, file: object, folder: Path) -> str:
    """What an example prints; it must draw a picture too."""
    picture = folder / f"{name}.png"
    out = run(ROOT / "examples" / f"{name}.py", file, "--output", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    return out


def run(*command: object) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
