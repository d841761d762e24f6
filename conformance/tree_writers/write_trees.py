"""Let ROOT write the trees of the tests, each file with its expected values beside it as JSON lines.

write_trees.py OUT_DIR
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MERGED = ("leaves_101.root", "leaves_505.root")


def build(root: Any, folder: Path, name: str, options: Sequence[str] = (), *sources: Path) -> Path:
    """Build the dictionary of the classes of a header, and the functions of other sources with it."""
    library, header = f"libTupelo{name}", f"{name.lower()}.hxx"
    bin_dir, include_dir = str(root.TROOT.GetBinDir()), str(root.TROOT.GetIncludeDir())
    environment = os.environ | {"LD_LIBRARY_PATH": str(root.TROOT.GetSharedLibDir())}
    rootcling = [f"{bin_dir}/rootcling", "-f", "dict.cxx", "-s", library, "-rml", f"{library}.so"]
    rootcling += ["-rmf", f"{library}.rootmap", f"-I{HERE}", *options]
    subprocess.run([*rootcling, header, str(HERE / f"{name}LinkDef.h")], cwd=folder, env=environment, check=True)
    compiler = ["g++", "-shared", "-fPIC", "-O0", "-std=c++17", f"-I{include_dir}", f"-I{HERE}", *options]
    subprocess.run([*compiler, "dict.cxx", *map(str, sources), "-o", f"{library}.so"], cwd=folder, check=True)
    return folder / f"{library}.so"


def main() -> int:
    """Run the command."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    ROOT.gInterpreter.AddIncludePath(str(HERE))
    library = build(ROOT, folder, "Trees")
    ROOT.gSystem.AddDynamicPath(str(folder))
    if ROOT.gSystem.Load(str(library)) < 0 or not ROOT.gInterpreter.Declare(f'#include "{HERE / "cases.hxx"}"'):
        sys.exit("ROOT cannot load the classes")
    fill = ROOT.fill
    child = os.fork()
    if child == 0:
        fill.recovered(str(folder / "recovered.root"))
    os.waitpid(child, 0)
    # As recovered by ROOT when it is opened for writing.
    shutil.copy(folder / "recovered.root", folder / "repaired.root")
    shutil.copy(folder / "recovered.root.json", folder / "repaired.root.json")
    file = ROOT.TFile.Open(str(folder / "repaired.root"), "UPDATE")
    file.Recover()
    file.Close()
    fill.containers(str(folder / "object_wise.root"), False)
    fill.containers(str(folder / "member_wise.root"), True)
    fill.packed(str(folder / "packed.root"))
    for split in (0, 99):
        fill.objects(str(folder / f"objects_{split}.root"), split)
    fill.linked(str(folder / "linked.root"))
    fill.sample(str(folder / "sample.root"))
    fill.structure(str(folder / "structure.root"))
    # zlib, lzma, the old method, lz4, zstd, none.
    for compression in (101, 207, 301, 404, 505, 0):
        fill.leaves(str(folder / f"leaves_{compression}.root"), compression, False, -30000000)
    fill.leaves(str(folder / "generated.root"), 505, True, 50)
    fill.leaves(str(folder / "generated_embedded.root"), 505, True, 0, True)
    fill.leaves(str(folder / "embedded.root"), 505, False, 0, True)
    merger = ROOT.TFileMerger(False)
    merger.SetFastMethod(True)
    merger.OutputFile(str(folder / "merged.root"), "RECREATE")
    for name in MERGED:
        merger.AddFile(str(folder / name))
    if not merger.Merge():
        sys.exit("ROOT cannot merge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
