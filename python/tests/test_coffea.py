"""coffea's events, which it reads with uproot: eager, virtual, with Dask and by its Runner, with Tupelo's engine."""

import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import awkward as ak
import pytest
import uproot

import tupelo
import tupelo.uproot as carried
import tupelo.xaod

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("strict_engine")]
MODES = ["eager", "virtual", "dask"]
NTUPLE_MODES = MODES[:2]
"""With Dask, coffea asks uproot for the titles of branches, which fields do not have."""


def from_root(path: Path, name: str, mode: str, schema: Any, **options: Any) -> Any:
    """The events of a tree or ntuple."""
    from coffea.nanoevents import NanoEventsFactory

    which = options.pop("which", None)
    filters = {"filter_name": which} if which else {}
    options["uproot_options" if mode == "dask" else "iteritems_options"] = filters
    return NanoEventsFactory.from_root({str(path): name}, schemaclass=schema, mode=mode, **options).events()


@cache
def alone(path: Path, name: str, *columns: str) -> Any:
    """Columns by uproot itself, which takes many seconds where there are thousands; so each mode has the same ones."""
    carried.uninstall()
    try:
        return uproot.open(path)[name].arrays(filter_name=list(columns))
    finally:
        carried.install()


def values(array: Any) -> list[Any]:
    """The values of an array, computed if it is lazy."""
    found: list[Any] = (array.compute(scheduler="sync") if hasattr(array, "compute") else array).tolist()
    return found


@pytest.fixture(scope="session")
def nanoaod(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A NanoAOD that ROOT's importer converted to an ntuple."""
    path = tmp_path_factory.mktemp("nanoaod") / "nano.root"
    code = (
        "import ROOT, sys; importer = ROOT.Experimental.RNTupleImporter.Create(sys.argv[1], 'Events', sys.argv[2]);"
        "importer.SetIsQuiet(True); importer.Import()"
    )
    tree = str(real("cms_nanoaod_2015_ttbar_tree.root"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tree, str(path)], capture_output=True, check=False
    )
    if done.returncode != 0:
        reason = done.stderr.decode().strip().splitlines()[-1:]
        note(f"coffea's events of NanoAOD did not run: ROOT cannot import the tree ({reason})")
        pytest.skip("ROOT's importer did not run")
    return path


def real(name: str) -> Path:
    """A real file. Where it is missing, the test is skipped, and the end of `make test` says so."""
    if not (DATA / name).exists():
        note(f"coffea's events of real files did not run: there is no {name}")
        pytest.skip(f"no file {name}")
    return DATA / name


def note(text: str) -> None:
    """Reports at the end of `make test` what did not run."""
    if folder := os.environ.get("TUPELO_SUMMARY"):
        (Path(folder) / "coffea.txt").write_text(text + "\n")


@pytest.mark.parametrize("mode", NTUPLE_MODES)
def test_events_that_tupelo_wrote(mode: str) -> None:
    from coffea.nanoevents import NanoAODSchema

    fields = {
        **dict.fromkeys(["run", "luminosityBlock"], "unsigned"),
        "event": "std::uint64_t",
        "MET_pt": "float",
        **dict.fromkeys(["Muon_pt", "Muon_eta", "Muon_phi", "Muon_mass"], "std::vector<float>"),
    }
    muons = [[31.5, 7.25], [], [12.0]]
    size = {"nMuon": ("Muon_pt", "ROOT::RNTupleCardinality<std::uint32_t>")}
    with tupelo.recreate("nano.root") as file:
        made = file.mkrntuple("Events", {**fields, "Muon_charge": "std::vector<int>"}, projections=size)
        kinematics = {name: muons for name in fields if name.startswith("Muon")}
        ids = {"run": [1] * 3, "luminosityBlock": [2] * 3, "event": [3, 4, 5]}
        made.extend({**ids, "MET_pt": [0.5] * 3, **kinematics, "Muon_charge": [[1, -1], [], [1]]})
    events = from_root(Path("nano.root"), "Events", mode, NanoAODSchema)
    assert values(events.Muon.pt) == muons
    assert values(events[ak.num(events.Muon) == 2].Muon.eta) == muons[:1]
    assert values(events.event) == [3, 4, 5]


@pytest.mark.parametrize("mode", NTUPLE_MODES)
def test_nanoaod(nanoaod: Path, mode: str) -> None:
    from coffea.nanoevents import NanoAODSchema

    columns = alone(nanoaod, "Events", "Muon_pt", "Jet_mass", "GenPart_pt", "MET_pt", "Jet_muonIdx1")
    events = from_root(nanoaod, "Events", mode, NanoAODSchema)
    assert values(events.Muon.pt) == columns.Muon_pt.tolist()
    assert values(events.Jet[:, :1].mass) == columns.Jet_mass[:, :1].tolist()
    assert values(events.MET.pt) == columns.MET_pt.tolist()
    assert len(values(events[ak.num(events.Muon) > 1].Muon.pt)) == ak.sum(ak.num(columns.Muon_pt) > 1)
    sums = values((events.Muon[:, :1] + events.Muon[:, :1]).pt)
    assert sums == [[pytest.approx(2 * muon) for muon in muons[:1]] for muons in columns.Muon_pt.tolist()]
    # Cross-references.
    index = columns.Jet_muonIdx1
    matched = [
        [None if at < 0 else muons[at] for at in jets] for jets, muons in zip(index, columns.Muon_pt, strict=True)
    ]
    assert values(events.Jet.matched_muons.pt[:, :, 0]) == matched


@pytest.mark.parametrize("mode", NTUPLE_MODES)
def test_the_dimuon_file(mode: str) -> None:
    from coffea.nanoevents import NanoAODSchema

    class Schema(NanoAODSchema):  # type: ignore[misc]
        error_missing_event_ids = False

    path = real("cms_run2012_dimuon_ntuple.root")
    columns = alone(path, "Events", "Muon_pt", "Muon_eta")
    events = from_root(path, "Events", mode, Schema)
    assert values(events.Muon.pt) == columns.Muon_pt.tolist()
    assert values(events.Muon.eta[events.Muon.pt > 20]) == columns.Muon_eta[columns.Muon_pt > 20].tolist()


@pytest.mark.parametrize("mode", NTUPLE_MODES)
def test_physlite(mode: str) -> None:
    from coffea.nanoevents import PHYSLITESchema

    class Schema(PHYSLITESchema):  # type: ignore[misc]
        """The names of ATLAS's ntuples have colons where its trees have dots."""

        def __init__(self, base_form: dict[str, Any], *args: Any) -> None:
            fields = [name.replace(":", ".") for name in base_form["fields"]]
            super().__init__({**base_form, "fields": fields}, *args)

        @staticmethod
        def _create_eventindex_form(base_form: Any, key: str) -> Any:
            return PHYSLITESchema._create_eventindex_form(base_form, key.replace(".", ":"))

    path = real("atlas_daod_physlite_ntuple.root")
    names = ["AnalysisMuonsAuxDyn:pt", "AnalysisElectronsAuxDyn:trackParticleLinks", "GSFTrackParticlesAuxDyn:z0"]
    columns = alone(path, "EventData", *names)
    events = from_root(path, "EventData", mode, Schema, which="*AuxDyn:*")
    assert values(events.Muons.pt) == columns[names[0]].tolist()
    # Electrons refer to their tracks; a link without a key is empty.
    links = columns[names[1]].tolist()
    tracks = [
        [[z0[link["m_persIndex"]] if link["m_persKey"] else None for link in electron] for electron in electrons]
        for electrons, z0 in zip(links, columns[names[2]].tolist(), strict=True)
    ]
    assert values(events.Electrons.trackParticles.z0) == tracks


def test_physlite_records_are_as_ours() -> None:
    """Variables of containers that coffea reads, and tracks by the links of electrons, are those of `tupelo.xaod`."""
    from coffea.nanoevents import PHYSLITESchema

    path = real("atlas_daod_physlite_tree.root")
    events = from_root(path, "CollectionTree", "virtual", PHYSLITESchema)
    ours = tupelo.xaod.open(path)
    compared = 0
    for name in events.fields:
        container = next((one for one in (f"Analysis{name}", name) if one in ours), None)
        # coffea refuses its own records of true particles, which have a mass and an energy.
        if container is None or name.startswith("Truth"):
            continue
        for variable in set(events[name].fields) & set(ours[container].keys()):
            if "Link" not in ours[container].variables[variable].typename:
                found = ours[container][variable].tolist()
                # Not a number is not equal to itself.
                assert repr(values(events[name][variable])) == repr(found), (name, variable)
                compared += 1
    assert compared > 300
    tracks = ours.resolve("AnalysisElectrons.trackParticleLinks", ["z0"])["z0"].tolist()
    assert repr(values(events.Electrons.trackParticles.z0)) == repr(tracks)


@pytest.mark.parametrize("mode", MODES)
def test_trees(mode: str) -> None:
    from coffea.nanoevents import NanoAODSchema, PHYSLITESchema

    path = real("cms_nanoaod_2015_ttbar_tree.root")
    columns = alone(path, "Events", "Muon_pt", "Jet_mass", "MET_pt")
    carried.report(clear=True)
    events = from_root(path, "Events", mode, NanoAODSchema)
    assert values(events.Muon.pt) == columns.Muon_pt.tolist()
    assert values(events.Jet[:, :1].mass) == columns.Jet_mass[:, :1].tolist()
    assert values(events.MET.pt) == columns.MET_pt.tolist()
    report = carried.report()
    assert (report.served > 0, report.passed) == (True, {})
    path = real("atlas_daod_physlite_tree.root")
    columns = alone(path, "CollectionTree", "AnalysisMuonsAuxDyn.pt", "AnalysisElectronsAuxDyn.eta")
    events = from_root(path, "CollectionTree", mode, PHYSLITESchema, which="*AuxDyn.*")
    assert values(events.Muons.pt) == columns["AnalysisMuonsAuxDyn.pt"].tolist()
    assert values(events.Electrons.eta) == columns["AnalysisElectronsAuxDyn.eta"].tolist()


def count_muons(events: Any) -> Any:
    """A processor's function. It says who decoded the muons."""
    muons = int(ak.sum(ak.num(events.Muon.pt)))
    return {"muons": muons, "served": carried.report(clear=True).served}


@pytest.mark.parametrize("executor", ["iterative", "futures"])
def test_a_runner(executor: str) -> None:
    from coffea import processor
    from coffea.nanoevents import NanoAODSchema

    path = real("cms_nanoaod_2015_ttbar_tree.root")
    expected = int(ak.sum(ak.num(alone(path, "Events", "Muon_pt").Muon_pt)))
    carried.report(clear=True)

    class Processor(processor.ProcessorABC):  # type: ignore[misc]
        def process(self, events: Any) -> Any:
            return count_muons(events)

        def postprocess(self, accumulator: Any) -> Any:
            return accumulator

    made = (
        processor.IterativeExecutor(status=False)
        if executor == "iterative"
        else processor.FuturesExecutor(workers=2, status=False)
    )
    run = processor.Runner(executor=made, schema=NanoAODSchema, chunksize=60, savemetrics=False)
    result = run({"data": {"files": {str(path): "Events"}}}, processor_instance=Processor())
    assert result["muons"] == expected
    assert result["served"] > 0


def test_several_files_and_steps() -> None:
    """Partitions follow the file specification; untouched fields are not read."""
    import dask_awkward as dak
    from coffea.nanoevents import NanoAODSchema, NanoEventsFactory

    path = real("cms_nanoaod_2015_ttbar_tree.root")
    files = {str(path): {"object_path": "Events", "steps": [[0, 50], [50, 120]]}}
    events = NanoEventsFactory.from_root(files, schemaclass=NanoAODSchema, mode="dask").events()
    columns = alone(path, "Events", "Muon_pt")
    assert (events.npartitions, events.divisions) == (2, (0, 50, 120))
    assert values(events.Muon.pt) == columns.Muon_pt[:120].tolist()
    (needed,) = dak.necessary_columns(events.Muon.pt).values()
    assert needed <= {"Muon_pt", "nMuon"}


def test_coffea_is_installed() -> None:
    """coffea is a test requirement, so none of these tests is skipped silently."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import coffea
    assert tuple(map(int, coffea.__version__.split(".")[:2])) >= (2026, 9)
    assert tupelo.__version__
