"""Progress reports: functions, bars, terminals, and no report."""

import io
import os
import pty
import subprocess
import sys
import termios
from typing import Any

import numpy as np
import pytest
from rich.progress import Progress
from tqdm import tqdm

import tupelo
from tupelo._base.progress import report_progress

PROGRAM = """
import sys
for name in sys.argv[2:]: sys.modules[name] = None
import tupelo
ntuple = tupelo.open("events.root:Events")
for piece in ntuple.iterate(step_size=10, progress=True, library="np"): pass
ntuple.hist("x", bins=3, step_size=10, progress=True)
"""


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    with tupelo.recreate("events.root") as file:
        file["Events"] = {"x": np.arange(100.0)}
    opened = tupelo.open("events.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


def test_functions_are_called(ntuple: tupelo.Ntuple) -> None:
    told: list[tuple[int, int]] = []
    pieces = ntuple.iterate(step_size=40, progress=lambda *both: told.append(both), entry_start=10, library="np")
    assert told == []
    assert len(next(pieces)["x"]) == 40
    assert told == [(0, 90)]
    assert sum(len(piece["x"]) for piece in pieces) == 50
    assert told == [(0, 90), (40, 90), (80, 90), (90, 90)]


def test_empty_work_is_complete(ntuple: tupelo.Ntuple) -> None:
    told: list[tuple[int, int]] = []
    assert list(ntuple.iterate(entry_stop=0, progress=lambda *both: told.append(both))) == []
    assert told == [(0, 0)]


def test_exceptions_of_functions_stop_reading(ntuple: tupelo.Ntuple) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    pieces = ntuple.iterate(step_size=10, progress=stop)
    next(pieces)
    with pytest.raises(KeyboardInterrupt):
        next(pieces)


def test_existing_bars(ntuple: tupelo.Ntuple) -> None:
    with Progress(disable=True) as bars:
        for _ in ntuple.iterate(step_size=30, progress=bars):
            pass
        assert [(task.completed, task.total) for task in bars.tasks] == [(100, 100)]
    with tqdm(file=io.StringIO()) as bar:
        for _ in range(2):
            ntuple.hist("x", bins=3, step_size=30, progress=bar)
        assert (bar.n, bar.total) == (400, 400)


def test_silence(ntuple: tupelo.Ntuple, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for progress in (None, False, True):
        assert sum(len(piece) for piece in ntuple.iterate(step_size=30, progress=progress)) == 100
    monkeypatch.setattr(sys, "stderr", None)
    ntuple.hist("x", progress=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [3, "yes", [1], object()])
def test_invalid_progress_is_rejected_immediately(ntuple: tupelo.Ntuple, progress: Any) -> None:
    with pytest.raises(tupelo.InvalidArgumentError, match="expected progress as True, None, a function of the entries"):
        ntuple.iterate(progress=progress)


@pytest.mark.parametrize(
    ("missing", "text"),
    [([], "100%"), (["rich"], "100%|"), (["rich", "tqdm"], "\r90 of 100 entries\r100 of 100 entries")],
)
def test_terminals(ntuple: tupelo.Ntuple, missing: list[str], text: str) -> None:
    """Runs a separate process whose standard error stream is a terminal or not."""
    command = [sys.executable, "-c", PROGRAM, "-", *missing]
    outer, inner = pty.openpty()
    termios.tcsetwinsize(inner, (24, 80))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inner, env={**os.environ, "TERM": "xterm"})
    os.close(inner)
    shown = b""
    while True:
        try:
            more = os.read(outer, 4096)
        except OSError:
            break
        if not more:
            break
        shown += more
    os.close(outer)
    out, _ = process.communicate()
    assert process.returncode == 0, shown.decode()
    assert out == b""
    assert text in shown.decode()
    assert ("\x1b" in shown.decode()) == (not missing)
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""


def test_the_plain_line_is_terminated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rich.console", "rich.progress", "tqdm"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with report_progress(True) as tell:
        tell(3, 4)
    assert capsys.readouterr().err == "\r3 of 4 entries\n"


def test_arrays_report_progress() -> None:
    with tupelo.recreate("whole.root") as file:
        file["Events"] = {"x": np.arange(40_000_000, dtype=np.float64), "n": np.arange(40_000_000) % 7}
    ntuple = tupelo.open("whole.root:Events")
    assert isinstance(ntuple, tupelo.Ntuple)
    told: list[tuple[int, int]] = []
    columns = ntuple.arrays(cut="n == 3", library="pd", progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 40_000_000)
    assert told[-1] == (40_000_000, 40_000_000)
    assert len(told) > 3
    assert columns.equals(ntuple.arrays(cut="n == 3", library="pd"))
    assert len(ntuple.arrays(entry_stop=0, progress=True)) == 0
    assert len(ntuple.arrays(cut="n == 8", progress=lambda done, total: None)) == 0
