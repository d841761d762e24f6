"""Ctrl-C cancels operations and leaves no partial output."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tupelo

PATIENCE_SECONDS = 5.0
"""Maximum time for a cancellation on a busy machine; the cancelled operations take several times as long."""

READ = """
import tupelo
ntuple = tupelo.open("zeros.root:Events")
tupelo.set_threads({threads})
print("ready", flush=True)
ntuple.arrays("x", cut=" + ".join(["sin(x) * exp(cos(x))"] * 40) + " > 100")
"""

WRITE = """
import numpy, tupelo
tupelo.set_threads({threads})
with tupelo.recreate("new.root", compression="lzma:9", page_bytes="32 MiB") as file:
    data = {{"x": numpy.random.default_rng(1).random(30_000_000)}}
    print("ready", flush=True)
    file["Events"] = data
"""
"""A page takes half a minute."""

CLOSE = """
import numpy, tupelo
tupelo.set_threads({threads})
with tupelo.recreate("new.root", compression="lzma:9") as file:
    data = {{f"x{{i}}": numpy.random.default_rng(i).random(100_000) for i in range(75)}}
    context = file.mkrntuple("Events", dict.fromkeys(data, "double")).fill_context()
    context.extend(data)
    print("ready", flush=True)
    context.close()
"""
"""All pages are written when the context is closed."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [READ, WRITE, CLOSE], ids=["read", "write", "close"])
def test_ctrl_c_cancels(program: str, threads: int) -> None:
    with tupelo.recreate("zeros.root") as file:
        file["Events"] = {"x": np.zeros(5_000_000)}
    child = subprocess.Popen(
        [sys.executable, "-c", program.format(threads=threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.7)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = child.communicate(timeout=60)
        assert time.monotonic() - began < PATIENCE_SECONDS
    finally:
        child.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert sorted(path.name for path in Path().iterdir()) == ["zeros.root"]


def test_a_handler_may_raise_any_exception() -> None:
    """Other signals such as alarms cancel too. If the handler does not raise, the operation continues."""
    with tupelo.recreate("zeros.root") as file:
        file["Events"] = {"x": np.zeros(3_000_000)}
    ntuple = tupelo.open("zeros.root:Events")
    heard = []

    def handler(number: int, _: object) -> None:
        heard.append(number)
        if len(heard) == 2:
            raise TimeoutError("too long")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        with pytest.raises(TimeoutError, match="too long"):
            ntuple.arrays("x", cut=" + ".join(["sin(x) * exp(cos(x))"] * 60) + " > 100")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) == 2
    assert len(ntuple.arrays("x", entry_stop=10)) == 10


def test_a_handler_does_not_wait_for_the_operation() -> None:
    """Regression: a handler that accessed the interrupted writer deadlocked."""
    said: list[object] = []

    def handler(number: int, _: object) -> None:
        try:
            said.append(writer.num_entries)
        except tupelo.InvalidArgumentError as error:
            said.append(str(error))
        # Other things can be used.
        said.append(tupelo.open("zeros.root:Events")["x"].array(entry_stop=1, library="np").tolist())

    with tupelo.recreate("zeros.root") as file:
        file["Events"] = {"x": np.zeros(1000)}
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with tupelo.recreate("new.root", compression="zstd:9") as file:
            writer = file.mkrntuple("Events", {"x": "double"})
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            data = np.random.default_rng(1).random(3_000_000)
            while not said:
                writer.extend({"x": data})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert said[1] == [0.0]
    assert isinstance(said[0], int) or "in use" in str(said[0])
