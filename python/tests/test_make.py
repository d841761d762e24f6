"""Makefile targets other than building and testing."""

import os
import re
import subprocess
from pathlib import Path

from builds import FOLDER

import tupelo

ROOT = Path(__file__).parents[2]


def test_make_install_copies_the_command_and_uninstall_removes_it(tmp_path: Path) -> None:
    stage = tmp_path / "a stage"

    profile = {"debug": "dev"}.get(FOLDER.name, FOLDER.name)
    variables = [f"PROFILE={profile}", f"DESTDIR={stage}", "PREFIX=/opt/x"]

    def make(target: str) -> None:
        subprocess.run(
            ["make", "-C", ROOT, "--no-print-directory", "-o", "command", target, *variables],
            check=True,
            capture_output=True,
        )

    make("install")
    installed = stage / "opt" / "x" / "bin" / "tupelo"
    assert [path for path in stage.rglob("*") if path.is_file()] == [installed]
    assert (
        subprocess.run([installed, "--version"], capture_output=True, text=True, check=True).stdout
        == f"tupelo {tupelo.__version__}\n"
    )
    make("uninstall")
    assert not installed.exists()


def test_progress_reports_silent_commands() -> None:
    """It does not change the output, the order of its lines or the exit status."""
    command = [ROOT / ".ci" / "progress", "sleeping", "bash", "-c", "echo a; echo b >&2; sleep 2.5; printf c; exit 3"]
    environment = os.environ | {"PROGRESS_SECONDS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    first, second, *waiting, last = done.stdout.splitlines()
    assert (done.returncode, first, second, last) == (3, "a", "b", "c")
    assert waiting
    assert all(re.fullmatch(r"   … sleeping: 0 min 0\d s", line) for line in waiting)
