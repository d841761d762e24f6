"""Programs in Python that run in forks of a process that has imported what they need: see `fork_server.py`."""

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@cache
def server(modules: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("fork_server.py")), *modules.split()]
    # Modules may be of tests.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(started.communicate)
    return started


def run_forked(
    modules: str, program: str, *arguments: object, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What a program printed, and its exit status. It runs in ``folder``, by default in the working directory."""
    process = server(modules)
    assert process.stdin
    assert process.stdout
    job: dict[str, Any] = {"program": program, "arguments": [*map(str, arguments)]}
    job |= {"folder": str(folder or Path.cwd()), "environment": dict(os.environ)}
    print(json.dumps(job), file=process.stdin, flush=True)
    line = process.stdout.readline()
    assert line, f"the process that imports {modules} has ended"
    answer = json.loads(line)
    return subprocess.CompletedProcess(program, answer["status"], answer["stdout"], answer["stderr"])


def run_root(program: str, *arguments: str | Path) -> Any:
    """The JSON that a program with ROOT prints after "JSON ". Warnings and errors of ROOT are failures."""
    if find_spec("ROOT") is None:
        if folder := os.environ.get("TUPELO_SUMMARY"):
            text = "histograms and trees that Tupelo writes were not read by ROOT, which is not installed\n"
            (Path(folder) / "written-objects.txt").write_text(text)
        pytest.skip("ROOT is not installed")
    done = run_forked("warm_root", program, *arguments)
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith(("Warning in <T", "Error in <T"))]
    assert not complaints
    return json.loads(done.stdout.partition("JSON ")[2])
