"""Programs that ROOT runs in a separate process."""

from __future__ import annotations

import subprocess
import sys

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


def root(program: str, *arguments: str) -> str:
    """What a program prints."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
