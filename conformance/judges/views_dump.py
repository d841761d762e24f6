"""Read fields with ROOT as other types than those on disk.

    views_dump.py JOBS.json [--library DICTIONARY]     the report goes to standard output

A job {"file", "type", "declare", "out"} dumps the field x of the ntuple n as that type, after declaring C++ code; its
report is {"error"}. A job {"disk", "wanted", "file"} writes a field of the type "disk" and asks whether it can be read
as each of the types "wanted"; its report is {"answers"}, a letter for each.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from root_dump import captured_stderr, load_root

HELPER = Path(__file__).with_name("views_dump.hxx")


def run_job(root: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Run one job."""
    with captured_stderr():
        try:
            if "disk" in job:
                root.judge.WriteType(job["file"], job["disk"])
                return {"answers": str(root.judge.ReadableAs(job["file"], job["wanted"]))}
            if job["declare"]:
                root.gInterpreter.Declare(job["declare"])
            root.judge.DumpView(job["file"], job["type"], job["out"])
        except Exception as error:  # cppyy has its own types for C++ exceptions
            return {"error": str(error).replace("\n", " ")}
    return {"error": None}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs")
    parser.add_argument("--library", action="append", default=[], help="dictionary to load first")
    args = parser.parse_args()
    root = load_root(args.library)
    if not root.gInterpreter.Declare(f'#include "{HELPER}"'):
        sys.exit(f"ROOT cannot compile {HELPER}")
    json.dump([run_job(root, job) for job in json.loads(Path(args.jobs).read_text())], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
