"""The wheel of `make wheel` in an empty environment: the command and the tour of the guide work."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "python" / "tupelo"
TOUR = ROOT / "docs" / "guide" / "python.md"
RUN_PAGE = Path(__file__).with_name("run_page.py")
EXTRAS = "hist,pandas,polars"
"""Packages that the tour needs in addition to the requirements of the package."""


def note(text: str) -> None:
    if folder := os.environ.get("TUPELO_SUMMARY"):
        (Path(folder) / "wheel.txt").write_text(text + "\n")


@pytest.fixture
def wheel() -> Path | None:
    """The wheel of the current sources; None, with a line in the summary, if it was not built."""
    found = sorted((ROOT / "target" / "wheels").glob("tupelo-*.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        note("not tested: there is none (make wheel)")
        return None
    with zipfile.ZipFile(found[-1]) as packed:
        for source in PACKAGE.glob("*.py*"):
            assert packed.read(f"tupelo/{source.name}") == source.read_bytes(), "the wheel is out of date: make wheel"
    return found[-1]


def oldest_python() -> str:
    """CPython 3.10 if available, directly or by pyenv; else the current interpreter."""
    kept = (Path.home() / ".pyenv" / "versions").glob("3.10.*/bin/python3.10")
    for name in (shutil.which("python3.10"), *map(str, kept)):
        if name and subprocess.run([name, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return name
    return sys.executable


def test_the_command_and_the_tour_in_an_empty_environment(wheel: Path | None, demo_file: Path, tmp_path: Path) -> None:
    if wheel is None:
        return
    assert "-cp310-abi3-" in wheel.name
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TUPELO"))}
    subprocess.run([oldest_python(), "-m", "venv", tmp_path / "venv"], check=True, env=alone)
    python = tmp_path / "venv" / "bin" / "python"

    def run(*command: object, program: Path = python) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *map(str, command)], capture_output=True, text=True, check=False, cwd=tmp_path, env=alone
        )

    def install(*what: object) -> subprocess.CompletedProcess[str]:
        options = ("--quiet", "--no-input", "--no-compile", "--disable-pip-version-check")
        return run("-m", "pip", "install", *options, *what)

    done = install("--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    # It runs without other packages.
    done = run("-I", "-c", "import sys, tupelo; print(tupelo.__version__, tupelo.__file__, *sys.version_info[:2])")
    assert done.returncode == 0, done.stderr
    version, place, *python_version = done.stdout.split()
    assert version in wheel.name
    assert Path(place).is_relative_to(tmp_path)
    # The command needs no other package, not even NumPy.
    tupelo = tmp_path / "venv" / "bin" / "tupelo"
    done = run("copy", demo_file, "few.root", "--entries", ":1000", program=tupelo)
    assert done.returncode == 0, done.stderr
    done = run("ls", "few.root", program=tupelo)
    assert (done.returncode, done.stderr) == (0, "")
    assert "DecayTree" in done.stdout
    done = run("ls", "missing.root", program=tupelo)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tupelo: error: cannot open missing.root")

    done = install(f"tupelo[{EXTRAS}] @ {wheel.as_uri()}", "duckdb")
    if done.returncode != 0:
        assert "tupelo" not in done.stderr.splitlines()[-1], done.stderr
        note(f"it loads, but the tour did not run: what it needs cannot be installed ({done.stderr.splitlines()[-1]})")
        return
    (tmp_path / "demo").mkdir()
    done = run("-I", RUN_PAGE, TOUR)
    assert done.returncode == 0, done.stderr
    note(f"{wheel.name} runs the command and the tour in an empty environment of Python {'.'.join(python_version)}")
