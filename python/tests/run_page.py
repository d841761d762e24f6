"""Runs the code on a page of the guide, as `python run_page.py PAGE`: its ``python`` blocks, in order, as one program,
and its ``sh`` blocks between them.

The output of a ``python`` block must match the ``text`` block after it. The output of an ``sh`` block is compared only
if a ``text`` block follows. ``...`` matches anything, and white space is ignored. This is a separate program, because
the pages also run where only a wheel is installed.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```([\w,]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_python(code: str, variables: dict[str, Any]) -> str:
    """The output of a block."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "page", "exec"), variables)
    return printed.getvalue()


def find_programs() -> None:
    """Blocks find `tupelo`, the command of this environment, and `tupelo-generate` in the build folder."""
    # Not from builds.py: isolated interpreters do not find it.
    built = os.environ.get("TUPELO_BUILD") or Path(__file__).resolve().parents[2] / "target" / "debug"
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), str(built)])


def run_shell(code: str) -> str:
    """What a block prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stdout}")
    return done.stdout


def faults(page: Path) -> list[str]:
    """Differences from the page. A block that fails ends the run."""
    text = page.read_text(encoding="utf-8")
    blocks = [(found[1], found[2], 1 + text.count("\n", 0, found.start())) for found in BLOCK.finditer(text)]
    variables: dict[str, Any] = {"__name__": "__main__"}
    find_programs()
    found = []
    for index, (language, code, line) in enumerate(blocks):
        if language not in ("python", "sh"):
            continue
        try:
            # After empty lines, so that errors have the line numbers of the page.
            printed = run_shell(code) if language == "sh" else run_python("\n" * line + code, variables)
        except Exception:
            return [*found, f"{page.name}, line {line}: {traceback.format_exc()}"]
        after = blocks[index + 1] if index + 1 < len(blocks) else ("", "", 0)
        if language == "sh" and after[0] != "text":
            continue
        expected = after[1] if after[0] == "text" else ""
        if not doctest.OutputChecker().check_output(expected, printed, ALIKE):
            found.append(f"{page.name}, line {line}: printed\n{printed}\nand not\n{expected}")
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    sys.exit("\n".join(wrong) if wrong else 0)
