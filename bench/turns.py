"""Rows of a table whose contestants take turns."""

from __future__ import annotations

import argparse
import fnmatch
import random
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .machine import JOB_SECONDS


def run_program(command: Sequence[str], **how: Any) -> None:
    """Runs a program whose time is measured, and kills it after `JOB_SECONDS`. ``how`` is for `subprocess.Popen`.

    `subprocess.run` with a timeout would look for the end of the program in steps that grow to 50 ms.
    """
    with subprocess.Popen(command, **how) as process:
        guard = threading.Timer(JOB_SECONDS, process.kill)
        guard.start()
        try:
            status = process.wait()
        finally:
            guard.cancel()
    if status:
        raise subprocess.CalledProcessError(status, command)


class Rows:
    """The lines of a table, and what failed.

    ``kind`` is the first part of the names of the rows; ``columns`` is the number of columns of the table.
    """

    def __init__(self, kind: str, options: argparse.Namespace, columns: int = 4) -> None:
        self.kind = kind
        self.options = options
        self.empty_cells = " |" * (columns - 4)
        self.lines: list[str] = []
        self.failed: list[str] = []

    def wanted(self, name: str) -> bool:
        patterns = getattr(self.options, self.kind)
        return any(fnmatch.fnmatch(name, pattern) or pattern == self.kind for pattern in patterns)

    def generated(self, path: Path, kind: str, events: int, *how: str) -> Path:
        """A file of generated events, made unless it exists."""
        if not path.exists() or self.options.fresh:
            program = str(self.options.binaries / "tupelo-generate")
            command = [program, kind, "--events", str(events), *how, "--force", str(path)]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return path

    def turns(
        self,
        row: str,
        contestants: dict[str, Callable[[], Any]],
        outputs: Iterable[Path] = (),
        seconds_of: Callable[[Any, float], float] = lambda _, seconds: seconds,
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The median seconds of each contestant, and what it returned last.

        In each round all take turns in another order, so that no contestant always finds the memory and the caches that
        the same one leaves; the first round does not count. The outputs are removed before each turn, so that no time
        includes removing a file. ``seconds_of`` turns an answer and the measured seconds into the time that counts.
        """
        times: dict[str, list[float]] = {name: [] for name in contestants}
        answers: dict[str, Any] = {}
        for number in range(self.options.repeat + 1):
            order = list(times)
            random.Random(number).shuffle(order)
            for name in order:
                for path in outputs:
                    path.unlink(missing_ok=True)
                begin = time.perf_counter()
                try:
                    answers[name] = contestants[name]()
                except (subprocess.SubprocessError, OSError) as error:
                    self.failed.append(f"{row}: {name}: {error}")
                    del times[name]
                    continue
                if number:
                    times[name].append(seconds_of(answers[name], time.perf_counter() - begin))
        return {name: statistics.median(own) for name, own in times.items()}, answers

    def target(self, row: str, times: dict[str, float], own: str, other: str, factor: float) -> None:
        """Adds a line about a target: `own` is at least `factor` times as fast as the other."""
        if own in times and other in times:
            ratio = times[other] / times[own]
            met = "met" if ratio >= factor else "missed"
            line = f"| {row} | {own} against {other} | {ratio:.2f} (wanted {factor:.3g}) | {met} |"
            self.lines.append(line + self.empty_cells)
