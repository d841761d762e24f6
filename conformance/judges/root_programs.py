"""Programs that ROOT runs, each in a fork of a process that has imported it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from programs import run_forked

BRANCHES = """
import json, sys, ROOT
ROOT.gErrorIgnoreLevel = ROOT.kError
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get(sys.argv[2])
def about(branch):
    return [branch.GetClassName(), branch.GetCheckSum(), branch.GetClassVersion()]
elements = [branch for branch in tree.GetListOfBranches() if branch.ClassName() == "TBranchElement"]
print(json.dumps({branch.GetName().rstrip("."): about(branch) for branch in elements}))
"""
"""Prints the branches of a tree: class, checksum and version by name, as JSON."""


def run_in_root(program: str, *arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a program prints to standard output and standard error. It must succeed."""
    done = run_forked("warm_root", program, *arguments, folder=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done


def root(program: str, *arguments: object, folder: Path | None = None) -> str:
    """What a program prints to standard output."""
    return run_in_root(program, *arguments, folder=folder).stdout


def root_without_errors(program: str, *arguments: object, folder: Path | None = None) -> str:
    """What a program prints to standard output. ROOT must print no error."""
    done = run_in_root(program, *arguments, folder=folder)
    assert "Error" not in done.stderr, done.stderr[-2000:]
    return done.stdout
