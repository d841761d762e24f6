"""Writes a ROOT file over 4 GiB, appends to it, and reads both ends with ROOT. Needs 5 GB of disk and half a minute.

make big
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

BUILD = Path(os.environ.get("TUPELO_BUILD") or Path(__file__).resolve().parents[1] / "target" / "release")
TUPELO = str(BUILD / "tupelo")
GENERATOR = BUILD / "tupelo-generate"
EVENTS = 25_000_000


def tupelo(*arguments: str) -> str:
    """Runs the command and returns its standard output."""
    return subprocess.run([TUPELO, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def generate(*arguments: str) -> None:
    """Write simulated events."""
    subprocess.run([GENERATOR, *arguments], check=True)


def main() -> None:
    """Writes, verifies, appends, and compares with ROOT."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        path = str(Path(folder) / "big.root")
        generate("b2hhh", "--events", str(EVENTS), "--compression", "none", path)
        assert Path(path).stat().st_size > 1 << 32
        tupelo("verify", path)
        generate("nanoaod", "--events", "1000", "--append", path)
        file = ROOT.TFile.Open(path)
        assert not file.IsZombie()
        assert not file.TestBit(ROOT.TFile.kRecovered)
        assert sorted(key.GetName() for key in file.GetListOfKeys()) == ["DecayTree", "Events"]
        file.Close()
        for ntuple, field, kind in [("DecayTree", "H1_PX", "double"), ("Events", "MET_pt", "float")]:
            reader = ROOT.RNTupleReader.Open(ntuple, path)
            view = reader.GetView[kind](field)
            for entry in (0, reader.GetNEntries() // 2, reader.GetNEntries() - 1):
                line = tupelo("dump", f"{path}:{ntuple}", "--fields", field, "--entries", f"{entry}:{entry + 1}")
                ours, theirs = json.loads(line)[field], view(entry)
                # ROOT returns floats as double; Tupelo prints the shortest form.
                assert ours == theirs if kind == "double" else np.float32(ours) == np.float32(theirs), (ours, theirs)
            del view  # ROOT crashes if a view outlives its reader
        print(f"{EVENTS} entries, {Path(path).stat().st_size} bytes: ROOT and Tupelo agree at both ends")


if __name__ == "__main__":
    main()
