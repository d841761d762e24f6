"""Branches with fewer entries than their tree are damage."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from panel import TUPELO, root_error
from root_programs import root

WRITE = """
import sys, array, ROOT
file = ROOT.TFile(sys.argv[1], "recreate")
tree = ROOT.TTree("t", "")
numbers = {name: array.array("i", [0]) for name in ("whole", "short")}
branches = {name: tree.Branch(name, number, name + "/I") for name, number in numbers.items()}
for entry in range(10):
    for name, number in numbers.items():
        number[0] = entry
        if name == "whole" or entry < 6:
            branches[name].Fill()
tree.SetEntries(10)
tree.Write()
ROOT.TH1D("h", "", 3, 0, 1).Write()
file.Close()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run([str(TUPELO), *arguments], check=False, capture_output=True, text=True)


def test_short_branches_are_found_and_left_out(tmp_path: Path) -> None:
    """Defect: verify called such a tree intact."""
    if error := root_error():
        pytest.skip(f"ROOT cannot be imported: {error}")
    path, out = tmp_path / "short.root", tmp_path / "out.root"
    root(WRITE, str(path))
    checked = run("verify", str(path))
    assert checked.returncode == 1
    assert "branch 'short': it has 6 entries, expected the 10 of the tree" in checked.stdout
    saved = run("verify", str(path), "--salvage", str(out), "--json")
    assert saved.returncode == 1
    report = json.loads(saved.stdout)
    assert (report["entries"], report["lost_entries"]) == (10, 0)
    assert [field["name"] for lost in report["lost"] for field in lost["fields"]] == ["short"]
    assert "not salvaged: 'h' (TH1D)" in saved.stderr
    assert run("verify", str(out)).returncode == 0
