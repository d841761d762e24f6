"""Runs the Python on a page of the guide, as `python run_page.py PAGE`: its blocks, in order, as one program.

What a ``python`` block prints stands in the ``text`` block behind it, where ``...`` stands for anything and all white
space is alike. A program of its own, because the pages also run where only a wheel is installed.
"""

import contextlib
import doctest
import io
import re
import sys
import traceback
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def faults(page: Path) -> list[str]:
    """What is not as the page says. A block that raises ends it."""
    text = page.read_text(encoding="utf-8")
    blocks = [(found[1], found[2], 1 + text.count("\n", 0, found.start())) for found in BLOCK.finditer(text)]
    variables: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for index, (language, code, line) in enumerate(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                # Behind empty lines, so that errors have the numbers of the page.
                exec(compile("\n" * line + code, str(page), "exec"), variables)
        except Exception:
            return [*found, f"{page.name}, line {line}: {traceback.format_exc()}"]
        behind = blocks[index + 1] if index + 1 < len(blocks) else ("", "", 0)
        expected = behind[1] if behind[0] == "text" else ""
        if not doctest.OutputChecker().check_output(expected, printed.getvalue(), ALIKE):
            found.append(f"{page.name}, line {line}: printed\n{printed.getvalue()}\nand not\n{expected}")
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    sys.exit("\n".join(wrong) if wrong else 0)
