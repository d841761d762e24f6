"""Read branches of trees with ROOT's TTreeFormula, each tree in a fork of one process, which may crash.

    root_trees.py JOBS.json REPORT.json

Each job is {"file", "tree", "expressions", "entries", "out"}; its file `out` gets a line of JSON for each expression:
the values of each entry, flattened, or a text with what is wrong. The report has one object per
job: "messages" (what ROOT wrote to stderr) and "error".
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from root_dump import captured_stderr

SECONDS = 60
"""Time for one tree."""
HELPER = Path(__file__).with_name("root_trees.hxx")


def run_job(root: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Dump the expressions of one tree into job["out"]."""
    report: dict[str, Any] = {"error": None}
    with captured_stderr() as messages:
        try:
            root.judge.DumpTree(job["file"], job["tree"], job["expressions"], job["entries"], job["out"])
        except Exception as error:  # cppyy wraps C++ exceptions in types of its own
            report["error"] = str(error).replace("\n", " ")
    report["messages"] = messages
    return report


def forked(root: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The report of a job that runs in a process of its own."""
    path = Path(job["out"] + ".report")
    if (child := os.fork()) == 0:
        signal.alarm(SECONDS)
        path.write_text(json.dumps(run_job(root, job)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        return {"error": f"ROOT ended with status {status}", "messages": []}
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def main() -> int:
    """Run the command."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    if not ROOT.gInterpreter.Declare(f'#include "{HELPER}"'):
        raise RuntimeError(f"ROOT cannot compile {HELPER}")
    jobs = json.loads(Path(sys.argv[1]).read_text())
    for kind in (ROOT.kSigSegmentationViolation, ROOT.kSigAbort, ROOT.kSigBus):
        ROOT.gSystem.ResetSignal(kind, True)  # without a stack trace, which takes seconds
    Path(sys.argv[2]).write_text(json.dumps([forked(ROOT, job) for job in jobs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
