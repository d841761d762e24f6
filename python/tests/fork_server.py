"""Runs Python programs, each in a fork of this process, which has imported what they need, as `fork_server.py MODULE…`.

Each line of standard input is a JSON object with `program`, `arguments`, `folder` (its working directory) and
`environment`. The answer is a line with `status`, `stdout` and `stderr`. To import and warm up ROOT or matplotlib takes
seconds, and a fork does not. A module may have a function `warm_up` for that.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from typing import IO, Any

SECONDS = 300
"""Time for one program."""


def run(job: dict[str, Any]) -> int:
    """Runs a program in this process, and returns its exit status."""
    signal.alarm(SECONDS)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv = ["-c", *job["arguments"]]
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(job["program"], "<program>", "exec"), names)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        # Objects of ROOT write the rest when they are destroyed, as at the end of a program.
        names.clear()
    return 0


def forked(job: dict[str, Any], out: IO[bytes], err: IO[bytes]) -> int:
    """Runs a program in a fork, and returns its exit status."""
    if (child := os.fork()) == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        status = run(job)
        if root := sys.modules.get("ROOT"):
            # As it does when a program ends.
            root.gROOT.CloseFiles()
        sys.stdout.flush()
        sys.stderr.flush()
        # What C and C++ have printed.
        ctypes.CDLL(None).fflush(None)
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    for name in sys.argv[1:]:
        module = importlib.import_module(name)
        if warm_up := getattr(module, "warm_up", None):
            warm_up()
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            answer: dict[str, Any] = {"status": forked(json.loads(line), out, err)}
            for name, file in ("stdout", out), ("stderr", err):
                file.seek(0)
                answer[name] = file.read().decode(errors="replace")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
