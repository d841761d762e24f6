"""Programs with ROOT, each in its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run_root(program: str, *arguments: str | Path) -> Any:
    """The JSON that a program with ROOT prints after "JSON ". Warnings and errors of ROOT are failures."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "No module named 'ROOT'" in done.stderr:
        if folder := os.environ.get("TUPELO_SUMMARY"):
            text = "histograms and trees that Tupelo writes were not read by ROOT, which is not installed\n"
            (Path(folder) / "written-objects.txt").write_text(text)
        pytest.skip("ROOT is not installed")
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith(("Warning in <T", "Error in <T"))]
    assert not complaints
    return json.loads(done.stdout.partition("JSON ")[2])
