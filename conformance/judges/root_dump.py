"""Dump RNTuples as canonical JSON lines with ROOT's own reading.

    root_dump.py FILE[:NAME]                       to standard output
    root_dump.py --attributes SET FILE[:NAME]      the attribute set SET of that ntuple
    root_dump.py --batch JOBS.json                 many dumps in one process; the report goes to standard output

A batch is a list of {"file", "ntuple", "out"} (and "model", to read all entries with ROOT's own model first, with
"emulated" classes if it says so; "attributes", or "attributes_by_entry" for the numbers of the rows that speak of each
entry); an empty name is the file's first ntuple. Its report has one object per job: "omitted" (fields that ROOT cannot
show), "messages" (what ROOT wrote to stderr) and "error".
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

HELPER = Path(__file__).with_name("root_dump.hxx")
# Warnings about classes without a dictionary and about experimental features. They do not indicate a fault of the file.
HARMLESS = (
    "no dictionary for class",
    "RNTuple Attributes are experimental",
    "SoA field is experimental",
)


@cache
def helper() -> Any:
    """Imports ROOT, quietly, and compiles the helper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    if not ROOT.gInterpreter.Declare(f'#include "{HELPER}"'):
        raise RuntimeError(f"ROOT cannot compile {HELPER}")
    return ROOT


def warm_up() -> None:
    """Takes a second, which forks save."""
    helper()


def load_root(libraries: list[str]) -> Any:
    """ROOT with the helper and the dictionaries."""
    root = helper()
    for library in libraries:
        root.gSystem.AddDynamicPath(str(Path(library).resolve().parent))  # ROOT loads enums by the name of the library
        if root.gSystem.Load(library) < 0:
            raise RuntimeError(f"cannot load {library}")
    return root


@contextlib.contextmanager
def captured_stderr() -> Iterator[list[str]]:
    """Collect what C++ and Python write to file descriptor 2."""
    lines: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield lines
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            log.seek(0)
            text = log.read().decode(errors="replace")
            lines += [line for line in text.splitlines() if line and not any(words in line for words in HARMLESS)]


def run_job(root: Any, job: dict[str, str]) -> dict[str, Any]:
    """Dump one ntuple (or attribute set) into job["out"]."""
    report: dict[str, Any] = {"omitted": [], "error": None}
    with captured_stderr() as messages:
        try:
            job = job | {"ntuple": job["ntuple"] or ntuple_names(root, job["file"])[0]}
            if job.get("attributes"):
                root.judge.DumpAttributes(job["file"], job["ntuple"], job["attributes"], job["out"])
            elif job.get("attributes_by_entry"):
                root.judge.DumpAttributesByEntry(job["file"], job["ntuple"], job["attributes_by_entry"], job["out"])
            else:
                if model := job.get("model"):
                    root.judge.ReadModel(job["file"], job["ntuple"], model == "emulated")
                omitted = root.judge.Dump(job["file"], job["ntuple"], job["out"])
                report["omitted"] = [str(line) for line in omitted]
        except Exception as error:  # cppyy has its own types for C++ exceptions
            report["error"] = str(error).replace("\n", " ")
    report["messages"] = messages
    return report


def ntuple_names(root: Any, path: str) -> list[str]:
    """Names of the listed ntuples of a file, subdirectories included."""

    def walk(directory: Any, prefix: str) -> Iterator[str]:
        for key in directory.GetListOfKeys():
            if key.GetClassName() == "ROOT::RNTuple":
                yield prefix + key.GetName()
            elif key.GetClassName().startswith("TDirectory"):
                yield from walk(key.ReadObj(), f"{prefix}{key.GetName()}/")

    file = root.TFile.Open(path)
    names = list(dict.fromkeys(walk(file, "")))
    file.Close()
    return names


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="FILE[:NAME], or the list of jobs with --batch")
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--attributes", default="", metavar="SET")
    parser.add_argument("--library", action="append", default=[], help="dictionary to load first")
    args = parser.parse_args()
    root = load_root(args.library)
    if args.batch:
        jobs = json.loads(Path(args.input).read_text())
        json.dump([run_job(root, job) for job in jobs], sys.stdout)
        return 0
    path, _, name = args.input.partition(".root:")
    path = path + ".root" if name else args.input
    if not name:
        names = ntuple_names(root, path)
        if len(names) != 1:
            sys.exit(f"{path} holds {len(names)} ntuples, say FILE:NAME: {', '.join(names)}")
        name = names[0]
    with tempfile.NamedTemporaryFile("rb", suffix=".jsonl") as out:
        job = {
            "file": path,
            "ntuple": name,
            "out": out.name,
            "attributes": args.attributes,
        }
        report = run_job(root, job)
        sys.stdout.buffer.write(out.read())
    for line in report["omitted"]:
        print("not shown:", line, file=sys.stderr)
    for line in report["messages"]:
        print(line, file=sys.stderr)
    if report["error"]:
        sys.exit(report["error"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
