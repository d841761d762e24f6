"""ATLAS's events that are skimmed, thinned and decorated: ROOT reads the same values from both formats."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from panel import REAL_DATA, root_error
from root_programs import root

import tupelo
import tupelo.xaod

NTUPLE = """
import json, os, sys, ROOT
names = json.loads(sys.argv[2])
reader = ROOT.RNTupleReader.Open("EventData", sys.argv[1])
found = {}
for name in names:
    view = reader.GetView["std::vector<float>"](name)
    found[name] = [list(view(entry)) for entry in range(reader.GetNEntries())]
print(json.dumps(found), flush=True)
os._exit(0)
"""

TREE = """
import json, os, sys, ROOT
names = json.loads(sys.argv[2])
file = ROOT.TFile.Open(sys.argv[1])
reader = ROOT.TTreeReader("CollectionTree", file)
arrays = {name: ROOT.TTreeReaderArray["float"](reader, name) for name in names}
found = {name: [] for name in names}
while reader.Next():
    for name in names:
        found[name].append(list(arrays[name]))
print(json.dumps(found), flush=True)
os._exit(0)
"""

LINKS = """
import json, os, sys, ROOT
reader = ROOT.RNTupleReader.Open("EventData", sys.argv[1])
names = [f"{sys.argv[2]}._0._0.:_0.{member}" for member in ("m_persKey", "m_persIndex")]
keys, indices = [reader.GetView["std::uint32_t"](name) for name in names]
print(json.dumps([[keys(i), indices(i)] for i in keys.GetFieldRange()]), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("source", ["atlas_daod_physlite_ntuple.root", "atlas_daod_physlite_tree.root"])
@pytest.mark.parametrize("form", ["ntuple", "tree"])
def test_root_reads_derived_events(source: str, form: str, tmp_path: Path) -> None:
    if error := root_error():
        pytest.skip(error)
    if not (REAL_DATA / source).exists():
        pytest.skip("needs the real files")
    path = tmp_path / "derived.root"
    event = tupelo.xaod.open(REAL_DATA / source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tupelo.TupeloWarning)
        event.derive(
            path,
            cut="any(AnalysisJets.pt > 60000)",
            thin={"InDetTrackParticles": "phi > 0", "AnalysisJets": "pt > 30000"},
            decorate={"AnalysisJets": {"half": "pt / 2"}},
            format=form,
        )
    found = tupelo.xaod.open(path)
    variables = {
        found[container].variables[name].path: (container, name)
        for container in ("AnalysisJets", "InDetTrackParticles", "AnalysisElectrons")
        for name, variable in found[container].variables.items()
        if variable.typename == "float" and not variable.is_static
    }
    assert len(variables) > 40
    read = json.loads(root(NTUPLE if form == "ntuple" else TREE, str(path), json.dumps(list(variables))))
    for name, (container, variable) in variables.items():
        # Not a number is not equal to itself.
        assert repr(read[name]) == repr(found[container][variable].tolist()), name
    if form == "ntuple":
        name = "AnalysisElectronsAuxDyn:trackParticleLinks"
        links = [[one["m_persKey"], one["m_persIndex"]] for one in _links(found[name].tolist())]
        assert links == json.loads(root(LINKS, str(path), name))
        assert len(links) > 20


def _links(value: object) -> list[dict[str, int]]:
    if isinstance(value, list):
        return [link for one in value for link in _links(one)]
    assert isinstance(value, dict)
    return [value.get(":_0", value)]
