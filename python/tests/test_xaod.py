"""ATLAS's containers, objects, variables and links."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest
import vector

import tupelo
import tupelo.xaod

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
LINK = tupelo.record(
    "ElementLink<DataVector<xAOD::TrackParticle_v1>>", {"m_persKey": "unsigned int", "m_persIndex": "unsigned int"}
)
"""The type of links."""
LINKS = pa.large_list(pa.field("item", pa.large_list(LINK), nullable=False))
FORMAT = tupelo.record(
    "xAOD::EventFormat_v1",
    {
        "m_branchNames": "std::vector<std::string>",
        "m_classNames": "std::vector<std::string>",
        "m_parentNames": "std::vector<std::string>",
        "m_branchHashes": "std::vector<unsigned int>",
    },
)


def link(key: int, index: int) -> dict[str, int]:
    return {"m_persKey": key, "m_persIndex": index}


def write(path: Path, **changed: Any) -> None:
    """Electrons with links to tracks, and what is in a key table."""
    events = {
        "ElectronsAuxDyn:pt": [[1.5, 2.5], [], [3.5]],
        "ElectronsAuxDyn:eta": [[0.5, -0.5], [], [1.0]],
        "ElectronsAuxDyn:phi": [[0.1, 0.2], [], [0.3]],
        "ElectronsAuxDyn:m": [[0.5, 0.5], [], [0.5]],
        "ElectronsAuxDyn:links": [[[link(7, 1), link(7, 0)], [link(0, 9)]], [], [[link(8, 0)]]],
        "TracksAuxDyn:d0": [[0.1, 0.2], [0.3], []],
        "OthersAuxDyn:d0": [[], [], [0.9]],
        "InfoAuxDyn:run": [7, 8, 9],
        "InfoAuxDyn:weights": [[1.0], [1.0, 2.0], []],
    } | changed
    names = ["Tracks", "Others", "Lost"]
    table = {"m_branchNames": names, "m_classNames": names, "m_parentNames": names, "m_branchHashes": [7, 8, 9]}
    types: dict[str, Any] = dict.fromkeys(events, "std::vector<float>") | {
        "ElectronsAuxDyn:links": LINKS,
        "InfoAuxDyn:run": "unsigned int",
    }
    with tupelo.recreate(path) as file:
        file.mkrntuple("EventData", types).extend(events)
        file.mkrntuple("MetaData", {"EventFormatStream": FORMAT}).extend({"EventFormatStream": [table]})


@pytest.fixture
def event(tmp_path: Path) -> tupelo.xaod.Event:
    write(tmp_path / "events.root")
    return tupelo.xaod.open(tmp_path / "events.root")


def test_containers_have_variables(event: tupelo.xaod.Event) -> None:
    assert list(event) == ["Electrons", "Info", "Others", "Tracks"]
    assert (event["Info"].is_object, event["Electrons"].is_object) == (True, False)
    assert event["Electrons"].keys() == ["pt", "eta", "phi", "m", "links"]
    momentum = event["Electrons"].variables["pt"]
    assert (momentum.typename, momentum.is_static, momentum.path) == ("float", False, "ElectronsAuxDyn:pt")
    # One name with one type is one variable.
    assert event["Tracks"].variables["d0"].id == event["Others"].variables["d0"].id
    with pytest.raises(tupelo.NotFoundError, match=r"no container or object named 'Electron' .*'Electrons'"):
        event["Electron"]
    with pytest.raises(tupelo.NotFoundError, match=r"no variable of 'Electrons' named 'pT' .*'pt'"):
        event["Electrons"]["pT"]
    with pytest.raises(AttributeError, match="'Electrons' has no variable 'pT'"):
        _ = event["Electrons"].pT


def test_values_are_records(event: tupelo.xaod.Event) -> None:
    electrons = event["Electrons"].arrays(["pt", "eta"])
    assert electrons.tolist() == [[{"pt": 1.5, "eta": 0.5}, {"pt": 2.5, "eta": -0.5}], [], [{"pt": 3.5, "eta": 1.0}]]
    assert event["Electrons"].pt.tolist() == event["ElectronsAuxDyn.pt"].tolist() == [[1.5, 2.5], [], [3.5]]
    both = event.arrays({"Tracks": ["d0"], "Info": None}, entry_start=1)
    assert both["Tracks", "d0"].tolist() == [[pytest.approx(0.3)], []]
    assert both["Info"].tolist() == [{"run": 8, "weights": [1.0, 2.0]}, {"run": 9, "weights": []}]
    assert event.get(2, "Electrons.pt").tolist() == [3.5]
    assert event.get(-1, "InfoAuxDyn:run") == 9
    assert [len(part) for part in event.iterate({"Electrons": ["pt"]}, step_size=2)] == [2, 1]
    momenta = event["Electrons"].arrays(["pt", "eta", "phi", "m"])
    assert isinstance(momenta, vector.Momentum)
    assert ak.almost_equal(momenta.px, event["Electrons"].pt * np.cos(event["Electrons"].phi))


def test_single_entries_are_those_of_arrays(event: tupelo.xaod.Event, tmp_path: Path) -> None:
    count = 50_000
    values = ak.unflatten(np.arange(3.0 * count), np.full(count, 3))
    with tupelo.recreate(tmp_path / "many.root") as file:
        file["EventData"] = {"JetsAuxDyn:pt": values, "InfoAuxDyn:run": np.arange(count)}
    many = tupelo.xaod.open(tmp_path / "many.root")
    for entry in [0, 1, 2, 40_000, 3, *range(30_000, 30_010), -1, count - 2]:
        assert many.get(entry, "Jets.pt").tolist() == values[entry].tolist()
        assert many.get(entry, "InfoAuxDyn:run") == entry % count
    for entry in (count, -count - 1):
        with pytest.raises(tupelo.InvalidArgumentError):
            many.get(entry, "Jets.pt")
    for name in ("Electrons.pt", "Electrons.links", "Info.weights", "InfoAuxDyn:run"):
        container, variable = name.replace("AuxDyn:", ".").split(".")
        assert [ak.to_list(event.get(entry, name)) for entry in range(3)] == event[container][variable].tolist()


def test_entries_beside_damaged_ones_are_loaded(tmp_path: Path) -> None:
    """A damaged page affects only its own entries, not the others of the same piece."""
    path, count = tmp_path / "damaged.root", 1000
    runs = np.arange(count, dtype=np.uint32) + 7_000_000
    with tupelo.recreate(path, compression="none", page_bytes=400) as file:
        file["EventData"] = {"InfoAuxDyn:run": runs}
    content = path.read_bytes()
    assert content.count(runs[700:800].tobytes()) == 1
    path.write_bytes(content.replace(runs[700:800].tobytes(), bytes(400)))
    event = tupelo.xaod.open(path)
    for entry in [*range(700), *range(800, count), 5]:
        assert event.get(entry, "InfoAuxDyn:run") == runs[entry]
        if entry in (0, 5, 699, 999):
            with pytest.raises(tupelo.CorruptError, match="checksum"):
                event.get(700, "InfoAuxDyn:run")


def test_links_are_resolved(event: tupelo.xaod.Event) -> None:
    assert event.link_keys() == {7: "Tracks", 8: "Others", 9: "Lost"}
    for name in ("ElectronsAuxDyn:links", "ElectronsAuxDyn.links", "Electrons.links"):
        found = event.resolve(name, ["d0"])
        assert ak.to_list(found["d0"]) == [
            [[pytest.approx(0.2), pytest.approx(0.1)], [None]],
            [],
            [[pytest.approx(0.9)]],
        ]
    assert len(event.resolve("Electrons.links", entry_start=1)) == 2
    assert event.resolve("Electrons.links", ["d0"], entry_start=1, entry_stop=2).tolist() == [[]]
    with pytest.raises(tupelo.InvalidArgumentError, match="variable 'pt' of 'Electrons' does not consist of links"):
        event.resolve("Electrons.pt")


def write_others(path: Path) -> None:
    """Events whose links need a key that the first file of `write` lacks."""
    events = {"ElectronsAuxDyn:links": [[[link(70, 0)], []]], "TracksAuxDyn:d0": [[0.5, 0.25]]}
    names = ["Tracks"]
    table = {"m_branchNames": names, "m_classNames": names, "m_parentNames": names, "m_branchHashes": [70]}
    types = {"ElectronsAuxDyn:links": LINKS, "TracksAuxDyn:d0": "std::vector<float>"}
    with tupelo.recreate(path) as file:
        file.mkrntuple("EventData", types).extend(events)
        file.mkrntuple("MetaData", {"EventFormat": FORMAT}).extend({"EventFormat": [table]})


@pytest.mark.parametrize(
    "names",
    [
        ["run1.root", "run2.root"],
        ["run1.root:EventData", "run2.root:EventData"],
        "run*.root",
        "run*.root:EventData",
        ["run1.root", "run[2-9].root:EventData"],
        [{"run1.root": "EventData"}, Path("run2.root")],
    ],
)
@pytest.mark.filterwarnings("ignore:skipped the fields")
def test_links_are_resolved_in_all_files(names: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run1.root")
    write_others(tmp_path / "run2.root")
    event = tupelo.xaod.open(names)
    assert event.num_entries == 4
    with pytest.raises(
        tupelo.InvalidArgumentError, match="entry 2, link 0: its container 'Others' is not in the event"
    ):
        event.resolve("Electrons.links", ["d0"])
    found = event.resolve("Electrons.links", ["d0"], dangling="null")["d0"].tolist()
    assert found[3] == [[pytest.approx(0.5)], []]
    assert found[0] == [[pytest.approx(0.2), pytest.approx(0.1)], [None]]
    assert event.link_keys() == {7: "Tracks", 8: "Others", 9: "Lost", 70: "Tracks"}
    assert event.resolve("Electrons.links", ["d0"], entry_start=3)["d0"].tolist() == found[3:]


def test_links_are_resolved_in_a_named_ntuple(tmp_path: Path) -> None:
    write(tmp_path / "events.root")
    expected = tupelo.xaod.open(tmp_path / "events.root").resolve("Electrons.links", ["d0"]).tolist()
    for name in (f"{tmp_path}/events.root:EventData", {tmp_path / "events.root": "EventData"}, f"{tmp_path}/e*.root"):
        assert tupelo.xaod.open(name).resolve("Electrons.links", ["d0"]).tolist() == expected
    with (tmp_path / "events.root").open("rb") as opened:
        assert tupelo.xaod.open(opened).resolve("Electrons.links", ["d0"]).tolist() == expected


def test_a_key_of_two_containers_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "run1.root")
    write_others(tmp_path / "run2.root")
    with tupelo.update(tmp_path / "run2.root") as file:
        names = ["Others"]
        table = {"m_branchNames": names, "m_classNames": names, "m_parentNames": names, "m_branchHashes": [7]}
        file.mkrntuple("MetaData2", {"EventFormat": FORMAT}).extend({"EventFormat": [table]})
    with pytest.warns(tupelo.TupeloWarning, match="skipped the fields"):
        event = tupelo.xaod.open([tmp_path / "run1.root", tmp_path / "run2.root"])
    with pytest.raises(tupelo.UnsupportedError, match=r"run2.root: 'MetaData2', field 'EventFormat': .*same key 7"):
        event.resolve("Electrons.links", ["d0"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (link(7, 2), "entry 0, link 1: its index is 2, but 'Tracks' has 2 elements there"),
        (link(9, 0), "entry 0, link 1: its container 'Lost' is not in the event"),
        (link(5, 0), "entry 0, link 1: its key 5 is not in the metadata"),
    ],
)
def test_links_without_an_element_are_errors(tmp_path: Path, wrong: dict[str, int], message: str) -> None:
    path = tmp_path / "events.root"
    write(path, **{"ElectronsAuxDyn:links": [[[link(7, 0), wrong], []], [], [[]]]})
    event = tupelo.xaod.open(path)
    with pytest.raises(tupelo.InvalidArgumentError, match=f"variable 'links' of 'Electrons': {message}"):
        event.resolve("Electrons.links", ["d0"])
    found = event.resolve("Electrons.links", ["d0"], dangling="null")
    assert ak.to_list(found["d0"]) == [[[pytest.approx(0.1), None], []], [], [[]]]
    # No link refers to anything.
    write(path, **{"ElectronsAuxDyn:links": [[[wrong], []], [], [[]]]})
    found = tupelo.xaod.open(path).resolve("Electrons.links", ["d0"], dangling="null")
    assert ak.to_list(found["d0"]) == [[[None], []], [], [[]]]


def test_variables_of_another_length_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "events.root"
    write(path, **{"ElectronsAuxDyn:eta": [[0.5, -0.5], [1.0], [1.0]]})
    event = tupelo.xaod.open(path)
    with pytest.raises(
        tupelo.UnsupportedError,
        match="container 'Electrons', variable 'eta', entry 1: found 1 values where variable 'pt' has 0 elements",
    ):
        event["Electrons"].arrays(["pt", "eta"])
    assert event["Electrons"].eta.tolist() == [[0.5, -0.5], [1.0], [1.0]]


def real(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip("no real files")
    return path


@pytest.mark.filterwarnings("ignore")
def test_every_variable_of_real_files() -> None:
    """They are the fields themselves, and lists have the lengths of their containers."""
    for name, dot, least in (
        ("atlas_daod_physlite_ntuple.root", ":", 700),
        ("atlas_daod_physlite_tree.root", ".", 850),
    ):
        event = tupelo.xaod.open(real(name))
        compared = 0
        whole = event.arrays(dict.fromkeys(event), library="arrow")
        for container in event.values():
            records = whole[container.name].combine_chunks()
            items = records.flatten() if not container.is_object else records
            for variable in container.variables.values():
                if not variable.is_static:
                    found = items.field(variable.name)
                    field = event.events.arrays([variable.path], library="arrow")[variable.path].combine_chunks()
                    assert found.equals(field.flatten() if not container.is_object else field), variable.path
                    assert f"AuxDyn{dot}" in variable.path
                    compared += 1
        assert compared > least
        assert event["AnalysisJets"].class_name == "DataVector<xAOD::Jet_v1>"
        assert event["METAssoc_AnalysisMET"].variables["jetLink"].is_static


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["atlas_daod_physlite_ntuple.root", "atlas_daod_physlite_tree.root"])
def test_all_containers_with_vectors(name: str) -> None:
    """Regression: containers with px, py, pz, e and m could not be read: vector refuses redundant coordinates."""
    event = tupelo.xaod.open(real(name))
    together = event.arrays(dict.fromkeys(event))
    for container in event.values():
        records = container.arrays()
        assert ak.fields(records) == ak.fields(together[container.name])
        momenta = [one for one in ak.fields(records) if one in ("pt", "eta", "phi", "m", "e", "px", "py", "pz")]
        if len(momenta) == 4:
            assert isinstance(records, vector.Momentum), container.name
            assert len(records.to_pxpypzenergy()) == len(records)
    leptons = event["BornLeptons"].arrays(["px", "py", "pz", "e"])
    plain = event["BornLeptons"].arrays()
    assert isinstance(leptons, vector.Momentum)
    assert not isinstance(plain, vector.Momentum)
    assert ak.almost_equal(leptons.px, plain["px"])
    assert ak.fields(plain) == event["BornLeptons"].keys()


@pytest.mark.filterwarnings("ignore")
def test_trees_and_ntuples_have_the_same_stores(tmp_path: Path) -> None:
    """Ids, types and values, whichever is opened first; links, counted and resolved one by one."""
    path, out = real("atlas_daod_physlite_tree.root"), tmp_path / "ntuple.root"
    command = [
        sys.executable,
        "-m",
        "tupelo",
        "import",
        str(path),
        str(out),
        "--skip-unreadable",
        "--validate",
        "none",
        "--quiet",
    ]
    subprocess.run(command, check=True)
    of_ntuple, of_tree = tupelo.xaod.open(out), tupelo.xaod.open(path)
    assert list(of_ntuple) == list(of_tree)

    def known(event: tupelo.xaod.Event) -> dict[str, Any]:
        shown = {}
        for container in event.values():
            for one in container.variables.values():
                # ROOT has no dictionary of these sets: they are vectors in the ntuple.
                shown[container.name, one.name] = (one.typename.replace("set<", "vector<"), one.is_static, one.id)
        return shown

    ours, theirs = known(of_ntuple), known(of_tree)
    assert ours.keys() == theirs.keys()
    assert [it[:2] for it in ours.values()] == [it[:2] for it in theirs.values()]
    assert len({it[2] for it in ours.values()}) == len({it[2] for it in theirs.values()})
    assert of_ntuple.link_keys() == of_tree.link_keys()
    links = "AnalysisElectronsAuxDyn:trackParticleLinks"
    for event in (of_ntuple, of_tree):
        stored = ak.to_list(event[links])
        tracks = event["GSFTrackParticles"].d0.tolist()
        keys = event.link_keys()
        expected = []
        for entry, electrons in enumerate(stored):
            found = []
            for electron in electrons:
                bases = [one.get(":_0", one) for one in electron]
                assert all(one["m_persKey"] == 0 or keys[one["m_persKey"]] == "GSFTrackParticles" for one in bases)
                found.append([tracks[entry][one["m_persIndex"]] if one["m_persKey"] else None for one in bases])
            expected.append(found)
        assert ak.to_list(event.resolve(links, ["d0"])["d0"]) == expected
        assert sum(len(electron) for electrons in expected for electron in electrons) > 10


def test_elements_of_many_links_stay_within_the_budget(tmp_path: Path) -> None:
    """Defect: each link took a copy of an element of any size."""
    path = tmp_path / "events.root"
    names = ["Tracks"]
    table = {"m_branchNames": names, "m_classNames": names, "m_parentNames": names, "m_branchHashes": [7]}
    with tupelo.recreate(path) as file:
        types = {"TracksAuxDyn:hits": "std::vector<std::vector<float>>", "PairsAuxDyn:link": pa.large_list(LINK)}
        events = {"TracksAuxDyn:hits": [[[0.5] * 1000]], "PairsAuxDyn:link": [[link(7, 0)] * 1000]}
        file.mkrntuple("EventData", types).extend(events)
        file.mkrntuple("MetaData", {"EventFormat": FORMAT}).extend({"EventFormat": [table]})
    assert ak.count(tupelo.xaod.open(path).resolve("Pairs.link")["hits"]) == 1_000_000
    event = tupelo.xaod.open(path, memory_budget=1_000_000)
    with pytest.raises(tupelo.LimitError, match="links refer to take over 1000000 bytes"):
        event.resolve("Pairs.link")
