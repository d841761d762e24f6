"""Let ROOT write all cases, with their expected values and a manifest.

    write_all.py OUT_DIR

OUT_DIR/manifest.json then holds {"root", "library", "not_run", "cases"}; a case is {"case", "file", "ntuple",
"expected", "attributes", "features", "unordered", "refused"}. "expected" is the path of JSON lines, or null where
ROOT's own dump is the expectation. Cases that need a dictionary are in "not_run" where there is no g++.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cases import CASES, Case, Line, Row

HERE = Path(__file__).resolve().parent
LIBRARY = "libTupeloClasses"


def build_classes(root: Any, folder: Path) -> Path:
    """Build the dictionary of classes.hxx."""
    bin_dir, include_dir = str(root.TROOT.GetBinDir()), str(root.TROOT.GetIncludeDir())
    environment = os.environ | {"LD_LIBRARY_PATH": str(root.TROOT.GetSharedLibDir())}
    library = folder / f"{LIBRARY}.so"
    rootcling = [
        f"{bin_dir}/rootcling",
        "-f",
        "classes_dict.cxx",
        "-s",
        LIBRARY,
        "-rml",
        library.name,
    ]
    rootcling += [
        "-rmf",
        f"{LIBRARY}.rootmap",
        f"-I{HERE}",
        "classes.hxx",
        str(HERE / "LinkDef.h"),
    ]
    subprocess.run(rootcling, cwd=folder, env=environment, check=True)
    compiler = [
        "g++",
        "-shared",
        "-fPIC",
        "-O1",
        "-std=c++17",
        f"-I{include_dir}",
        f"-I{HERE}",
    ]
    subprocess.run([*compiler, "classes_dict.cxx", "-o", library.name], cwd=folder, check=True)
    return library


def write_lines(path: Path, rows: Iterable[Row | Line]) -> str:
    """Write JSON lines."""
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            line = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            out.write(line + "\n")
    return str(path)


def write_case(root: Any, case: Case, compression: int, folder: Path) -> list[dict[str, Any]]:
    """Write one file; return its entries in the manifest, one per ntuple."""
    function = case.name.replace("/", "_")
    stem = f"{function}.{compression}" if len(case.compressions) > 1 else function
    path = folder / f"{stem}.root"
    getattr(root.cases, function)(str(path), compression)
    attributes = {name: write_lines(folder / f"{stem}.{name}.jsonl", rows) for name, rows in case.attributes.items()}
    entries = []
    for ntuple, rows in [(case.ntuple, case.rows), *case.more.items()]:
        suffix = "" if ntuple == case.ntuple else "." + ntuple.replace("/", "_").replace(";", "_")
        expected = write_lines(folder / f"{stem}{suffix}.jsonl", rows()) if rows else None
        entries.append(
            {
                "case": case.name + (f"@{compression}" if len(case.compressions) > 1 else "") + suffix,
                "file": str(path),
                "ntuple": ntuple,
                "expected": expected,
                "attributes": attributes,
                "features": [*case.features, f"compression {compression}"],
                "unordered": case.unordered,
                "refused": case.refused,
            }
        )
    return entries


def write_all(folder: Path) -> dict[str, Any]:
    """Write all files and the manifest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    ROOT.gInterpreter.AddIncludePath(str(HERE))
    library = None
    headers = ["cases_structure.hxx"]
    if shutil.which("g++"):
        library = build_classes(ROOT, folder)
        headers.append("cases_classes.hxx")
        ROOT.gSystem.AddDynamicPath(str(folder))
        if ROOT.gSystem.Load(str(library)) < 0:
            raise RuntimeError(f"cannot load {library}")
    for header in headers:
        if not ROOT.gInterpreter.Declare(f'#include "{HERE / header}"'):
            raise RuntimeError(f"ROOT cannot compile {header}")
    entries: list[dict[str, Any]] = []
    not_run = []
    for case in CASES:
        if case.classes and library is None:
            not_run.append(f"{case.name}: needs a dictionary, and there is no g++")
            continue
        for compression in case.compressions:
            entries += write_case(ROOT, case, compression, folder)
    manifest = {
        "root": str(ROOT.gROOT.GetVersion()),
        "library": str(library) if library else None,
        "not_run": not_run,
        "cases": entries,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return manifest


def main() -> int:
    """Run the command."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    manifest = write_all(Path(sys.argv[1]))
    print(f"{len(manifest['cases'])} ntuples written by ROOT {manifest['root']}")
    for line in manifest["not_run"]:
        print("not run:", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
