"""Let ROOT write a tree with maps of objects, or print its objects as JSON, with the classes in both cases.

maps.py FOLDER build
maps.py FOLDER write FILE LEVEL
maps.py FOLDER read FILE
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from write_trees import HERE, build


def main() -> int:
    """Run the command."""
    folder, verb, *arguments = sys.argv[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gErrorIgnoreLevel = ROOT.kError
    if verb == "build":
        build(ROOT, Path(folder), "Maps")
        return 0
    ROOT.gInterpreter.AddIncludePath(str(HERE))
    header = f'#include "{HERE / "maps.hxx"}"'
    if ROOT.gSystem.Load(f"{folder}/libTupeloMaps.so") < 0 or not ROOT.gInterpreter.Declare(header):
        sys.exit("ROOT cannot load the classes")
    if verb == "write":
        ROOT.write_maps(arguments[0], int(arguments[1]))
        return 0
    file = ROOT.TFile.Open(arguments[0])
    tree = file.Get("t")
    found = {}
    # ROOT makes JSON only of classes that have dictionaries.
    for branch in (it for it in tree.GetListOfBranches() if "_record_" not in it.GetClassName()):
        texts = [str(ROOT.text_of(branch, entry)) for entry in range(tree.GetEntries())]
        found[branch.GetName()] = [branch.GetClassName(), texts]
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
