"""The command installed by the wheel behaves like the binary built by cargo."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from writing import has_begun

import tupelo

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.executable).with_name("tupelo")


@pytest.fixture
def events() -> str:
    with tupelo.recreate("events.root") as file:
        file["Events"] = {"x": range(100_000)}
    return "events.root"


def run(*arguments: str, program: Any = (INSTALLED,)) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["ls", "events.root"],
        ["dump", "events.root", "--entries", ":3", "--format", "csv"],
        ["ls", "missing.root"],
        ["head", "events.root", "--where", "y > 1"],
        ["frobnicate"],
        [],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("events")
def test_installed_command_matches_the_binary(arguments: list[str], command: str) -> None:
    """Standard output, standard error and exit status."""
    theirs = run(*arguments, program=[command])
    for program in ([INSTALLED], [sys.executable, "-m", "tupelo"]):
        ours = run(*arguments, program=program)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_installed_command_ends_when_its_reader_does(events: str) -> None:
    with subprocess.Popen(
        [INSTALLED, "dump", events, "--format", "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_ctrl_c_removes_what_the_installed_command_was_writing(
    number: int, status: int, demo_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    inputs = [demo_file] * 1000
    # The tests may run under nohup.
    command = ["env", "--default-signal=HUP", INSTALLED, "copy", *inputs, folder / "events.root", "--checkpoint", "off"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not has_begun(process, folder):
            time.sleep(0.01)
        process.send_signal(number)
        assert process.stderr
        assert (process.wait(), b"interrupted" in process.stderr.read()) == (status, True)
    assert list(folder.iterdir()) == []


def test_a_command_goes_on_when_its_terminal_is_closed_under_nohup(demo_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    command = ["nohup", INSTALLED, "copy", *[demo_file] * 100, folder / "events.root", "--checkpoint", "off"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as it:
        while it.poll() is None and not has_begun(it, folder):
            time.sleep(0.01)
        it.send_signal(signal.SIGHUP)
        assert it.wait() == 0
    assert [path.name for path in folder.iterdir()] == ["events.root"]


def test_ctrl_c_ends_an_installed_command_that_only_reads(events: str) -> None:
    """The command waits for its reader. Python's own handler would wait with it."""
    with subprocess.Popen([INSTALLED, "dump", events, "--format", "csv"], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
