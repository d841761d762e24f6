"""The programs in examples/ and `make demo` work."""

import importlib.util
import math
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import builds
import hist
import numpy as np
import pytest
import uproot
from matplotlib.figure import Figure
from programs import run_forked

import tupelo

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUPELO_DATA") or ROOT.parent / "shared" / "data")
RUN_SCRIPT = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("page", sorted((ROOT / "examples").glob("*.py")), ids=lambda page: page.stem)
def test_examples_are_short(page: Path) -> None:
    at_most = 80 if page.stem == "distributions" else 60
    assert len(page.read_text(encoding="utf-8").splitlines()) < at_most


def test_dimuon_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs computed by a loop over the events."""
    monkeypatch.setenv("LINES", "100")
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
    """On a small generated file with the layout of the real one."""
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
    assert "18 of 21 columns read: 0.6 MiB" in out
    # One event at a time, from energies and momenta.
    masses = [
        math.sqrt(sum(math.hypot(*track, 493.677) for track in event) ** 2 - sum(event.sum(axis=0) ** 2))
        for event in momenta[kept]
    ]
    # The picture has bins of 10 MeV; the terminal has as many lines as it has.
    inside = sum(5240 <= mass < 5280 for mass in masses)
    assert re.search(rf"\[5240, 5280\) {inside} ", out)
    assert_fits(out, 80, 24)


def load_plotting() -> Any:
    spec = importlib.util.spec_from_file_location("plotting", ROOT / "examples" / "plotting.py")
    assert spec is not None
    assert spec.loader is not None
    plotting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plotting)
    return plotting


def assert_fits(text: str, columns: int, lines: int) -> None:
    """The text and the prompt fit on one screen."""
    assert len(text.splitlines()) < lines
    assert max(map(len, text.splitlines())) <= columns


def test_plots_have_error_bars_the_bin_width_and_a_label() -> None:
    plotting, axes = load_plotting(), Figure().add_subplot()
    histogram = hist.Hist(hist.axis.Regular(6, 5000, 5060, label="mass (MeV)")).fill([5001, 5002, 5003, 5004, 5055])
    plotting.draw(axes, histogram, "events", "MeV", "Simulation")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mass (MeV)", "events / 10 MeV")
    assert [text.get_text() for text in axes.texts] == ["Simulation"]
    (bars,) = axes.containers
    (segment, *_) = bars.lines[2][1].get_segments()
    assert segment[:, 1].tolist() == [2, 6]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 50), (80, 100)])
def test_histograms_fit_the_terminal(columns: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))
    filled = hist.Hist(hist.axis.Regular(60, 0, 1)).fill([0.5, 0.51, 2])
    fitted = load_plotting().fitted(filled)
    assert fitted.sum(flow=True) == 3
    assert len(fitted.axes[0]) == {24: 15, 50: 30, 100: 60}[lines]
    assert_fits(f"{fitted}\n" + "\n" * 4, columns, lines)


def several_ntuples() -> None:
    with tupelo.recreate("several.root") as file:
        file["small"] = {"x": [1.5, 2.5]}
        rng = np.random.default_rng(1)
        columns = {"name": ["a"] * 500, "same": [7] * 500, "flat": rng.normal(size=500), "count": rng.poisson(3, 500)}
        file["dir/large"] = columns | {"jets": [[{"pt": 1.0 * i, "ids": [i, 3]}] * (i % 3) for i in range(500)]}


def test_any_ntuple_is_drawn(tmp_path: Path) -> None:
    """Draws the non-constant numbers of the largest or the given ntuple, flat or in collections."""
    several_ntuples()
    out = run_example("distributions", "several.root", tmp_path)
    assert [line.split()[0] for line in out.splitlines()] == ["flat", "jets.pt", "count", "jets.ids", "4"]
    assert "4 numeric fields of ntuple 'large', 500 entries" in out
    assert_fits(out, 80, 24)
    assert "of ntuple 'small', 2 entries" in run_example("distributions", "several.root:small", tmp_path)


def test_a_file_with_nothing_to_draw_is_reported() -> None:
    with uproot.recreate("trees.root") as file:
        file.mktree("Events", {"x": "f8"})
    with tupelo.recreate("texts.root") as file:
        file["Events"] = {"name": ["a", "b"], "same": [1, 1]}
    for path, said in [
        ("trees.root", "ntuple 'Events', 0 entries, has no number that varies: nothing to draw"),
        ("texts.root", "ntuple 'Events', 2 entries, has no number that varies: nothing to draw"),
    ]:
        program = [sys.executable, ROOT / "examples" / "distributions.py", path]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.strip()) == (1, said)


def test_real_ntuples_are_drawn(tmp_path: Path) -> None:
    for path in sorted(DATA.glob("*ntuple*.root")):
        out = run_example("distributions", path, tmp_path)
        assert re.search(r"^\d numeric fields of ntuple '", out, re.MULTILINE), path
        assert_fits(out, 80, 24)


def test_demo_of_any_ntuple(command: str, tmp_path: Path) -> None:
    several_ntuples()
    kept = demo(command, tmp_path / "demo", tmp_path / "several.root")
    assert "4 numeric fields of ntuple 'large', 500 entries" in kept
    assert (tmp_path / "demo" / "distributions.png").read_bytes().startswith(b"\x89PNG")


def test_demo(command: str, demo_file: Path, tmp_path: Path) -> None:
    """Commands and output are saved."""
    folder = tmp_path / "a demo"
    kept = demo(command, folder, demo_file)
    assert f"$ {command} schema {demo_file}\n" in kept
    assert re.search(r"10000 events, \d+ with three kaons\n18 of 26 columns read: 1.3 MiB, \d+ MiB/s", kept)
    assert (folder / "b_mass.png").read_bytes().startswith(b"\x89PNG")


def demo(command: str, folder: Path, file: Path) -> str:
    """The saved output of the demonstration."""
    done = subprocess.run(
        [ROOT / ".ci" / "demo", sys.executable, command, builds.FOLDER, folder, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kept = (folder / "README.txt").read_text()
    assert done.stdout.startswith(kept)
    return kept


def run_example(name: str, file: object, folder: Path) -> str:
    """The output of an example, which must also draw a picture."""
    picture = folder / f"{name}.png"
    script = ROOT / "examples" / f"{name}.py"
    done = run_forked("awkward hist matplotlib.pyplot pyarrow", RUN_SCRIPT, script, file, "--output", picture)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    return done.stdout
