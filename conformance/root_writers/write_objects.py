"""Let ROOT write streamer fields, once uncompressed and once compressed.

    write_objects.py OUT_DIR

OUT_DIR/objects.0.root and OUT_DIR/objects.505.root then hold the ntuple "Events" of objects.hxx. It ends with status 3
and the reason where it cannot run.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path

from write_all import HERE, build_classes


def main() -> int:
    """Run the command."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("g++"):
        print("there is no g++ for the dictionary")
        return 3
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ROOT
    except ImportError as error:
        print(f"ROOT cannot be imported ({error})")
        return 3
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ROOT.gROOT.SetBatch(True)
    ROOT.gInterpreter.AddIncludePath(str(HERE))
    library = build_classes(ROOT, folder)
    ROOT.gSystem.AddDynamicPath(str(folder))
    if ROOT.gSystem.Load(str(library)) < 0:
        raise RuntimeError(f"cannot load {library}")
    if not ROOT.gInterpreter.Declare(f'#include "{HERE / "objects.hxx"}"'):
        raise RuntimeError("ROOT cannot compile objects.hxx")
    for compression in (0, 505):
        ROOT.objects.Write(str(folder / f"objects.{compression}.root"), compression)
    return 0


if __name__ == "__main__":
    sys.exit(main())
