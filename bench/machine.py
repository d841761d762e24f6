"""The machine, the places of data, and messages."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "target/bench"
MEMORY_DISK = Path("/dev/shm")
JOB_SECONDS = 900
"""Timeout of a process."""


def say(text: str) -> None:
    """Prints to standard error."""
    print(text, file=sys.stderr, flush=True)


def finish(name: str, lines: list[str], failed: list[str]) -> int:
    """Prints and stores a table and what failed. Returns the exit status."""
    lines = [*lines, *([f"\nFAILED: {failure}" for failure in failed] or ["\nAll answers are equal."])]
    text = "\n".join(lines)
    print(text)
    (DATA / name).write_text(text + "\n")
    say(f"stored as {name} in {DATA}")
    return 1 if failed else 0


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def machine() -> dict[str, Any]:
    """The properties of the machine."""
    model = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = models[0] if models else model
    return {"cpu": model, "cores": cores(), "system": platform.platform(), "python": platform.python_version()}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
