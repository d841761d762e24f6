"""Let ROOT add a tree with objects of one version of a class to the files of a folder.

write_versions.py 1|2 FOLDER
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from write_trees import HERE, build


def main() -> int:
    """Run the command."""
    version, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    macro = f"CLASS_VERSION={version}"
    (folder / version).mkdir()
    library = build(ROOT, folder / version, "Versions", [f"-D{macro}"], HERE / "versions.cxx")
    ROOT.gInterpreter.AddIncludePath(str(HERE))
    ROOT.gInterpreter.Declare(f"#define {macro.replace('=', ' ')}")
    if ROOT.gSystem.Load(str(library)) < 0 or not ROOT.gInterpreter.Declare(f'#include "{HERE / "versions.hxx"}"'):
        sys.exit("ROOT cannot load the classes")
    for name in ("object", "member"):
        ROOT.write_versions(str(folder / f"{name}_wise.root"), name == "member")
    return 0


if __name__ == "__main__":
    sys.exit(main())
