"""Files with many checkpoints and updates stay small and readable.

No other writer creates merged cluster groups and shortened free lists (decision 9), so ROOT and uproot verify the
values, and ROOT's scan of all records (`TFile::Map`) must find no error.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import uproot
from panel import TUPELO, WORK, root_error
from root_programs import root_without_errors

import tupelo

ENTRIES = 10
"""In each round."""
ROUND_BYTES = 2000
"""Maximum overhead of a round in the file, on average."""
ROOT_READS = """
import sys
import ROOT
reader = ROOT.RNTupleReader.Open("Events", sys.argv[1])
view = reader.GetView["double"]("x")
assert reader.GetNEntries() == int(sys.argv[2]), reader.GetNEntries()
assert all(view(entry) == entry for entry in range(int(sys.argv[2])))
del view, reader
ROOT.TFile.Open(sys.argv[1]).Map("extended")
"""


def checkpoints(path: Path, rounds: int) -> None:
    """One file with a checkpoint after each ten entries."""
    with tupelo.recreate(path) as file:
        events = file.mkrntuple("Events", {"x": "double"})
        for number in range(rounds):
            events.extend({"x": range(ENTRIES * number, ENTRIES * (number + 1))})
            events.checkpoint()


def updates(path: Path, rounds: int) -> None:
    """One file that is opened, extended by ten entries and closed in each round."""
    with tupelo.recreate(path) as file:
        file.mkrntuple("Events", {"x": "double"})
    for number in range(rounds):
        with tupelo.update(path) as file:
            file["Events"].extend({"x": range(ENTRIES * number, ENTRIES * (number + 1))})


@pytest.mark.parametrize("write", [checkpoints, updates])
def test_checkpoints_and_updates_take_little_room(write: Callable[[Path, int], None], summary: list[str]) -> None:
    """Regression: 3000 rounds of ten entries took 69 MB for 240 kB."""
    folder = WORK / "growth"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for rounds in (100, 400):
        path = folder / f"{write.__name__}-{rounds}.root"
        write(path, rounds)
        sizes[rounds] = path.stat().st_size
        assert sizes[rounds] < rounds * (8 * ENTRIES + ROUND_BYTES)
    # If each round rewrote all earlier metadata, it would be sixteen.
    assert sizes[400] / sizes[100] < 5
    count = 400 * ENTRIES
    assert tupelo.open(path)["Events"].arrays(library="np")["x"].tolist() == list(range(count))
    with uproot.open(path) as file:
        assert file["Events"]["x"].array().tolist() == list(range(count))
    done = subprocess.run([TUPELO, "verify", "--deep", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if error := root_error():
        summary.append(f"files of many checkpoints were not read by ROOT: it cannot be imported ({error})")
        return
    assert "E R R O R" not in root_without_errors(ROOT_READS, path, count)
