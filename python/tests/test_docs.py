"""The examples in the documentation run, and the examples/ are programs that work."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tupelo

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUPELO_DATA") or ROOT.parent / "shared" / "data")

MODULES = ["tupelo", *(f"tupelo.{module.name}" for module in pkgutil.iter_modules(tupelo.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_python_in_the_guide(page: Path) -> None:
    """The blocks of a page are one program."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": page.stem})


def test_dimuon_example(tmp_path: Path) -> None:
    path = DATA / "cms_run2012_dimuon_ntuple.root"
    if not path.exists():
        return
    out = run(ROOT / "examples" / "dimuon.py", str(path), "--output", str(tmp_path / "dimuon.png"))
    assert "1000 events" in out
    assert (tmp_path / "dimuon.png").read_bytes().startswith(b"\x89PNG")


def test_spectrum_example(tmp_path: Path) -> None:
    path = DATA / "cms_run2012_dimuon_ntuple.root"
    if not path.exists():
        return
    out = run(ROOT / "examples" / "spectrum.py", f"{path}:Events", "--output", str(tmp_path / "spectrum.png"))
    assert out.count("█") > 100
    assert (tmp_path / "spectrum.png").read_bytes().startswith(b"\x89PNG")


def test_b_mass_example(tmp_path: Path) -> None:
    """On a small file of its own making, with the shape of the real one."""
    import numpy as np

    sys.path.insert(0, str(ROOT / "examples"))
    try:
        b_mass = importlib.import_module("b_mass")
    finally:
        sys.path.pop(0)
    rng = np.random.default_rng(3)
    columns = {f"H{h}_P{axis}": rng.normal(0, 1500, 5000) for h in (1, 2, 3) for axis in "XYZ"}
    for h in (1, 2, 3):
        columns |= {f"H{h}_ProbK": np.full(5000, 0.9), f"H{h}_ProbPi": np.full(5000, 0.1)}
        columns |= {f"H{h}_isMuon": np.zeros(5000, "i4"), f"H{h}_Charge": np.ones(5000, "i4")}
    with tupelo.recreate(tmp_path / "b.root") as file:
        file["DecayTree"] = columns
    out = run(ROOT / "examples" / "b_mass.py", "--file", str(tmp_path / "b.root"), "--output", str(tmp_path / "demo"))
    assert "18 of 21 columns" in out
    assert (tmp_path / "demo" / "b_mass.png").read_bytes().startswith(b"\x89PNG")
    assert "b_mass.py" in (tmp_path / "demo" / "README.txt").read_text()
    kaons = np.array([[0.0, 0.0, 0.0]] * 3)
    assert b_mass.invariant_mass(kaons[:, :, None]) == pytest.approx([3 * b_mass.KAON_MASS])


def run(*command: object) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
