"""Read branches of trees with ROOT, each tree in a fork of one process, which may crash.

    root_trees.py JOBS.json REPORT.json

Each job is {"file", "tree", "expressions", "entries", "out"}. Its file `out` gets a line of JSON for each expression,
as TTreeFormula evaluates it: the values of each entry, flattened, or a text with what is wrong. A line [NAME, OBJECTS]
follows for each branch, as TBranch::GetEntry reads it. The report has one object per job: "messages" (what
ROOT wrote to stderr) and "error".
"""

from __future__ import annotations

import array
import json
import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from root_dump import captured_stderr

SECONDS = 60
"""Time for one tree."""
OF_JSON = "TString::AssertElement"
"""Part of the message of TBufferJSON for lists whose values are not numbers."""
HELPER = Path(__file__).with_name("root_trees.hxx")


def run_job(root: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Dump the expressions and objects of one tree into job["out"]."""
    report: dict[str, Any] = {"error": None}
    with captured_stderr() as messages:
        try:
            root.judge.DumpTree(job["file"], job["tree"], job["expressions"], job["entries"], job["out"])
        except Exception as error:  # cppyy has its own types for C++ exceptions
            report["error"] = str(error).replace("\n", " ")
    report["messages"] = [line for line in messages if OF_JSON not in line]
    return report


def forked(root: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in a separate process, and return its report."""
    path = Path(job["out"] + ".report")
    if (child := os.fork()) == 0:
        signal.alarm(SECONDS)
        path.write_text(json.dumps(run_job(root, job)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        done = len(Path(job["out"]).read_text(errors="replace").splitlines())
        expression = [*job["expressions"], "the objects"][min(done, len(job["expressions"]))]
        return {"error": f"ROOT ended with status {status} in {expression}", "messages": []}
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def warm_up(root: Any) -> None:
    """Let ROOT load and compile what all jobs need: each fork would do so again."""
    vectors = [root.std.vector[kind](1) for kind in ("float", "double", "int", "bool", "std::string")]
    vectors.append(root.std.vector["std::vector<float>"](1))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "warm.root")
        with root.TFile(path, "RECREATE", "", 505):
            tree = root.TTree("N", "")
            buffer = array.array("q", [1])
            for kind in "BSILFDOC":
                tree.Branch(f"single{kind}", buffer, f"single{kind}/{kind}")
            tree.Branch("counted", buffer, "counted[singleI]/F")
            for number, vector in enumerate(vectors):
                tree.Branch(f"vector{number}", vector)
            tree.Fill()
            tree.Write()
            names = [branch.GetName() for branch in tree.GetListOfBranches()]
        report = run_job(root, {"file": path, "tree": "N", "expressions": names, "entries": 1, "out": path + ".jsonl"})
        if report["error"] or report["messages"]:
            raise RuntimeError(f"ROOT does not read its own tree: {report}")


def main() -> int:
    """Run the command."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    if not ROOT.gInterpreter.Declare(f'#include "{HELPER}"'):
        raise RuntimeError(f"ROOT cannot compile {HELPER}")
    ROOT.TBufferJSON.SetFloatFormat("%.17g")
    ROOT.TBufferJSON.SetDoubleFormat("%.17g")
    warm_up(ROOT)
    jobs = json.loads(Path(sys.argv[1]).read_text())
    for kind in (ROOT.kSigSegmentationViolation, ROOT.kSigAbort, ROOT.kSigBus):
        ROOT.gSystem.ResetSignal(kind, True)  # without a stack trace, which takes seconds
    Path(sys.argv[2]).write_text(json.dumps([forked(ROOT, job) for job in jobs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
