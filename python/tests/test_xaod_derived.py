"""Derived files of ATLAS's events: skimmed, slimmed, thinned and decorated, from and to ntuples and trees."""

import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest
from http_server import Server
from test_xaod import FORMAT, link, write, write_others

import tupelo
import tupelo.xaod

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
REAL = [DATA / "atlas_daod_physlite_ntuple.root", DATA / "atlas_daod_physlite_tree.root"]


@pytest.fixture
def event(tmp_path: Path) -> tupelo.xaod.Event:
    write(tmp_path / "events.root")
    return tupelo.xaod.open(tmp_path / "events.root")


def derived(event: tupelo.xaod.Event, path: Path, *args: Any, **options: Any) -> tupelo.xaod.Event:
    event.derive(path, *args, **options)
    return tupelo.xaod.open(path)


def test_elements_are_left_out_and_links_follow(event: tupelo.xaod.Event, tmp_path: Path) -> None:
    found = derived(event, tmp_path / "d.root", thin={"Tracks": "d0 > 0.15", "Electrons": "pt > 2"})
    assert found["Tracks"].arrays().tolist() == [[{"d0": pytest.approx(0.2)}], [{"d0": pytest.approx(0.3)}], []]
    assert found["Electrons"].pt.tolist() == [[2.5], [], [3.5]]
    assert found["Electrons"].links.tolist() == [[[link(0, 9)]], [], [[link(8, 0)]]]
    assert found["Others"].d0.tolist() == event["Others"].d0.tolist()
    assert found.link_keys() == event.link_keys()
    only = derived(event, tmp_path / "o.root", thin={"Tracks": [[False, True], [True], []]})
    assert only["Electrons"].links.tolist() == [[[link(7, 0), link(0, 0)], [link(0, 9)]], [], [[link(8, 0)]]]
    resolved = only.resolve("Electrons.links", ["d0"])["d0"].tolist()
    assert resolved == [[[pytest.approx(0.2), None], [None]], [], [[pytest.approx(0.9)]]]


def test_events_containers_and_variables_are_left_out(event: tupelo.xaod.Event, tmp_path: Path) -> None:
    kept = {"Electrons": ["pt"], "Info": None}
    found = derived(event, tmp_path / "d.root", kept, cut="len(Electrons.pt) > 0 and Info.run < 9")
    assert {name: found[name].keys() for name in found} == {"Electrons": ["pt"], "Info": ["run", "weights"]}
    assert found["Info"].arrays().tolist() == [{"run": 7, "weights": [1.0]}]
    assert event.derive(tmp_path / "e.root", ["Info"], entry_start=1, entry_stop=3, compression="none") == 2
    with pytest.raises(tupelo.NotFoundError, match="'Electrons'"):
        event.derive(tmp_path / "f.root", ["Electron"])
    with pytest.raises(tupelo.NotFoundError, match="'pt'"):
        event.derive(tmp_path / "f.root", {"Electrons": ["pT"]})
    assert not (tmp_path / "f.root").exists()


def test_variables_are_added(event: tupelo.xaod.Event, tmp_path: Path) -> None:
    new = {
        "Electrons": {"double": "2 * pt", "half": "double / 4", "rank": [[1, 0], [], [0]]},
        "Info": {"pile": np.array([0.5, 1.5, 2.5]), "sum": "sum(Electrons.double)"},
    }
    found = derived(event, tmp_path / "d.root", decorate=new, thin={"Electrons": "half > 1"}, cut="Info.pile < 2")
    assert found["Electrons"].arrays(["double", "half", "rank"]).tolist() == [
        [{"double": 5.0, "half": 1.25, "rank": 0}],
        [],
    ]
    assert found["Info"].arrays(["pile", "sum"]).tolist() == [{"pile": 0.5, "sum": 8.0}, {"pile": 1.5, "sum": 0.0}]
    wrong = {"a": [[1], [], [2]], "b": [1, 2, 3], "pt": "eta", "a.b": "eta", "c": [1]}
    messages = [
        r"'ElectronsAuxDyn:a', entry 0: found 1 values, but 'Electrons' has 2 elements",
        r"'ElectronsAuxDyn:b': expected a value for each element, not Int64",
        r"'Electrons' already has a variable 'pt'",
        r"'a.b' is not a valid name",
        r"'c' has 1 values, expected one for each of the 3 entries",
    ]
    for (name, values), message in zip(wrong.items(), messages, strict=True):
        with pytest.raises(tupelo.InvalidArgumentError, match=message):
            event.derive(tmp_path / "w.root", decorate={"Electrons": {name: values}})
    for mask, message in {"pt": "a boolean for each element", "any(pt > 2)": "a boolean for each element"}.items():
        with pytest.raises(tupelo.InvalidArgumentError, match=message):
            event.derive(tmp_path / "w.root", thin={"Electrons": mask})
    with pytest.raises(tupelo.InvalidArgumentError, match="'Info' is an object"):
        event.derive(tmp_path / "w.root", thin={"Info": "run > 7"})
    with pytest.raises(tupelo.InvalidArgumentError, match="expected format 'ntuple' or 'tree'"):
        event.derive(tmp_path / "w.root", format="parquet")  # type: ignore[arg-type]
    assert not (tmp_path / "w.root").exists()


def test_variables_are_added_to_the_file(event: tupelo.xaod.Event, tmp_path: Path) -> None:
    before = {name: event[name].arrays().tolist() for name in event}
    found = event.decorate({"Electrons": {"isHard": "pt > 2"}, "Info": {"n": "len(Electrons.pt)"}})
    assert found["Electrons"].isHard.tolist() == [[False, True], [], [True]]
    assert found["Info"].n.tolist() == [2, 0, 1]
    for name, values in before.items():
        assert found[name].arrays(event[name].keys()).tolist() == values
    with pytest.raises(tupelo.InvalidArgumentError, match="already has a variable 'isHard'"):
        found.decorate({"Electrons": {"isHard": "pt > 3"}})
    with pytest.raises(tupelo.InvalidArgumentError, match="found 1 values"):
        found.decorate({"Electrons": {"more": [[1], [], [1]]}})
    assert tupelo.xaod.open(tmp_path / "events.root")["Electrons"].keys() == [*event["Electrons"].keys(), "isHard"]
    event.derive(tmp_path / "tree.root", ["Info"], format="tree")
    with pytest.raises(tupelo.UnsupportedError, match="tree"):
        tupelo.xaod.open(tmp_path / "tree.root").decorate({"Info": {"m": "run"}})


def test_links_out_of_range_and_lengths_are_errors(tmp_path: Path) -> None:
    bad = tmp_path / "bad.root"
    write(bad, **{"ElectronsAuxDyn:links": [[[], []], [], [[link(7, 0)]]]})
    with pytest.raises(
        tupelo.InvalidArgumentError, match=r"'ElectronsAuxDyn:links', entry 2: its index is 0, but 'Tracks' has 0"
    ):
        tupelo.xaod.open(bad).derive(tmp_path / "d.root", thin={"Tracks": "d0 > 0"})
    write(bad, **{"ElectronsAuxDyn:eta": [[0.5, -0.5], [], []]})
    with pytest.raises(tupelo.UnsupportedError, match=r"'ElectronsAuxDyn:eta', entry 2: found 0 values .* has 1"):
        tupelo.xaod.open(bad).derive(tmp_path / "d.root", thin={"Electrons": "pt > 0"})
    assert not (tmp_path / "d.root").exists()


PACKED = tupelo.record("SG::PackedLink<DataVector<xAOD::TrackParticle_v1>>", {"m_packed": "unsigned int"})
JAGGED = tupelo.record("SG::JaggedVecElt<float>", {"m_end": "unsigned int"})
TO_STORE = tupelo.record("DataLink<DataVector<xAOD::TrackParticle_v1>>", {"m_persKey": "unsigned int"})
SHALLOW = tupelo.record("xAOD::ShallowAuxContainer", {"m_parentLink": TO_STORE})


def packed(container: int, index: int) -> dict[str, int]:
    return {"m_packed": container << 24 | index}


def not_null(item: Any) -> Any:
    return pa.large_list((item if isinstance(item, pa.Field) else pa.field("item", item)).with_nullable(False))


def write_linked(path: Path, **changed: Any) -> None:
    """Electrons with packed links to tracks and with lists whose items are beside them, and a shallow copy of them."""
    keys = [{"m_persKey": key} for key in (0, 7, 8)]
    ends = [[{"m_end": 2}, {"m_end": 2}, {"m_end": 5}], [], [{"m_end": 1}]]
    events = {
        "ElectronsAuxDyn:pt": [[1.5, 2.5, 3.5], [], [4.5]],
        "ElectronsAuxDyn:track": [[packed(1, 1), packed(0, 0), packed(2, 0)], [], [packed(1, 0)]],
        "ElectronsAuxDyn:track_linked": [keys, [], keys],
        "ElectronsAuxDyn:tracks": [[[packed(1, 1), packed(1, 0)], [], [packed(2, 0)]], [], [[]]],
        "ElectronsAuxDyn:tracks_linked": [keys, [], keys],
        "ElectronsAuxDyn:cells": ends,
        "ElectronsAuxDyn:cells_linked": [[0.5, 1.5, 2.5, 3.5, 4.5], [], [5.5]],
        "TracksAuxDyn:d0": [[0.25, 0.75], [0.5], [0.125]],
        "OthersAuxDyn:d0": [[1.25], [], []],
        "CalibratedAux:": [{"m_parentLink": {"m_persKey": 9}}] * 3,
        "CalibratedAuxDyn:pt": [[10.5, 20.5, 30.5], [], [40.5]],
    } | changed
    types: dict[str, Any] = dict.fromkeys(events, "std::vector<float>") | {
        "ElectronsAuxDyn:track": not_null(PACKED),
        "ElectronsAuxDyn:track_linked": not_null(TO_STORE),
        "ElectronsAuxDyn:tracks": not_null(not_null(PACKED)),
        "ElectronsAuxDyn:tracks_linked": not_null(TO_STORE),
        "ElectronsAuxDyn:cells": not_null(JAGGED),
        "CalibratedAux:": SHALLOW,
    }
    names = ["Tracks", "Others", "ElectronsAux."]
    table = {"m_branchNames": names, "m_classNames": names, "m_parentNames": names, "m_branchHashes": [7, 8, 9]}
    with tupelo.recreate(path) as file:
        file.mkrntuple("EventData", types).extend(events)
        file.mkrntuple("MetaData", {"EventFormat": FORMAT}).extend({"EventFormat": [table]})


@pytest.mark.parametrize("form", ["ntuple", "tree"])
def test_values_in_two_variables_are_read_and_thinned(form: str, tmp_path: Path) -> None:
    write_linked(tmp_path / "events.root")
    event = tupelo.xaod.open(tmp_path / "events.root")
    cells = [[[0.5, 1.5], [], [2.5, 3.5, 4.5]], [], [[5.5]]]
    assert event["Electrons"].keys() == ["pt", "track", "tracks", "cells"]
    assert event["Electrons"].cells.tolist() == cells
    assert event["Electrons"].track.tolist() == [[link(7, 1), link(0, 0), link(8, 0)], [], [link(7, 0)]]
    assert event.resolve("Electrons.track", ["d0"])["d0"].tolist() == [[0.75, None, 1.25], [], [0.125]]
    assert event.resolve("Electrons.tracks", ["d0"])["d0"].tolist() == [[[0.75, 0.25], [], [1.25]], [], [[]]]
    thin = {"Electrons": "pt > 2", "Tracks": "d0 > 0.5"}
    found = derived(event, tmp_path / "d.root", thin=thin, format=form)
    assert found["Electrons"].cells.tolist() == [[[], [2.5, 3.5, 4.5]], [], [[5.5]]]
    assert found.resolve("Electrons.track", ["d0"])["d0"].tolist() == [[None, 1.25], [], [None]]
    # A shallow copy has the variables of its original that it lacks itself, and its elements.
    assert found["Calibrated"].keys() == ["pt", "track", "tracks", "cells"]
    assert found["Calibrated"].pt.tolist() == [[20.5, 30.5], [], [40.5]]
    assert found["Calibrated"].cells.tolist() == found["Electrons"].cells.tolist()
    kept = derived(event, tmp_path / "k.root", {"Electrons": ["cells", "track"], "Tracks": None}, format=form)
    assert kept["Electrons"].cells.tolist() == cells
    assert kept["Electrons"].track.tolist() == event["Electrons"].track.tolist()
    with pytest.raises(tupelo.InvalidArgumentError, match="'Calibrated' is a shallow copy; thin 'Electrons'"):
        event.derive(tmp_path / "w.root", thin={"Calibrated": "pt > 2"})


def test_wrong_linked_variables_are_errors(tmp_path: Path) -> None:
    cases = {
        "ElectronsAuxDyn:cells": [[{"m_end": 2}, {"m_end": 1}, {"m_end": 5}], [], [{"m_end": 1}]],
        "ElectronsAuxDyn:cells_linked": [[0.5, 1.5, 2.5, 3.5, 4.5], [], []],
        "ElectronsAuxDyn:track_linked": [[], [], []],
    }
    messages = [
        "variable 'cells', entry 0: a list ends at 1, expected from 2 to 5",
        "variable 'cells', entry 2: a list ends at 1, expected from 0 to 0",
        "variable 'track', entry 0: a packed link has the container 1, but 0 are listed",
    ]
    for (name, values), message in zip(cases.items(), messages, strict=True):
        write_linked(tmp_path / "events.root", **{name: values})
        event = tupelo.xaod.open(tmp_path / "events.root")
        with pytest.raises(tupelo.UnsupportedError, match=message):
            event["Electrons"].arrays()
        with pytest.raises(tupelo.InvalidArgumentError, match=message.partition(": ")[2]):
            event.derive(tmp_path / "d.root", thin={"Electrons": "pt > 2", "Tracks": "d0 > 0.5"})


def without_bases(value: Any) -> Any:
    """Values with the members of bases beside the others, as some branches of trees have them."""
    if isinstance(value, dict):
        bases = [without_bases(one) for key, one in value.items() if key.startswith(":_")]
        own = {key: without_bases(one) for key, one in value.items() if not key.startswith(":_")}
        return {key: one for part in (*bases, own) for key, one in part.items()}
    return [without_bases(one) for one in value] if isinstance(value, list) else value


def reference(event: tupelo.xaod.Event, keep: ak.Array, masks: dict[str, ak.Array]) -> dict[str, Any]:
    """All variables of all containers, thinned element by element."""
    keys = {key: name for key, name in event.link_keys().items() if name in masks}
    places = {name: [np.cumsum(one) - 1 for one in mask.to_list()] for name, mask in masks.items()}

    def moved(value: Any, entry: int) -> Any:
        if isinstance(value, dict):
            if {"m_persKey", "m_persIndex"} <= set(value):
                name = keys.get(value["m_persKey"])
                if name is None:
                    return value
                index = value["m_persIndex"]
                if not masks[name][entry][index]:
                    return value | link(0, 0)
                return value | link(value["m_persKey"], int(places[name][entry][index]))
            return {key: moved(one, entry) for key, one in value.items()}
        return [moved(one, entry) for one in value] if isinstance(value, list) else value

    found = {}
    for name in event:
        if not event[name].keys():
            continue
        values = event.arrays({name: None}, library="arrow").column(0).to_pylist()
        values = [moved(value, entry) for entry, value in enumerate(without_bases(values))]
        if name in masks:
            pairs = zip(values, masks[name].to_list(), strict=True)
            values = [[one for one, kept in zip(*pair, strict=True) if kept] for pair in pairs]
        found[name] = [value for value, kept in zip(values, keep.to_list(), strict=True) if kept]
    return found


@pytest.mark.parametrize("source", REAL, ids=["ntuple", "tree"])
def test_real_events_are_derived(source: Path, tmp_path: Path) -> None:
    """A derivation job of both formats into both: every variable of every container, with each link."""
    if not source.exists():
        pytest.skip("needs the real files")
    event = tupelo.xaod.open(source)
    thin = {"InDetTrackParticles": "phi > 0", "AnalysisJets": "pt > 30000"}
    keep = ak.any(event["AnalysisJets"].pt > 60000, axis=1)
    masks = {
        "InDetTrackParticles": event["InDetTrackParticles"].phi > 0,
        "AnalysisJets": event["AnalysisJets"].pt > 30000,
    }
    expected = reference(event, keep, masks)
    for form in ("ntuple", "tree"):
        path = tmp_path / f"{form}.root"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cut = "any(AnalysisJets.pt > 60000)"
            count = event.derive(path, cut=cut, thin=thin, format=form, decorate={"AnalysisJets": {"new": "pt / 2"}})
        texts = [str(one.message) for one in caught]
        assert any("not copied:" in text for text in texts)
        assert len(texts) == 1 + ("tree" in source.name), texts
        assert 0 < count == ak.sum(keep) < event.num_entries
        found = tupelo.xaod.open(path)
        assert set(found) == set(event)
        assert found.link_keys() == event.link_keys()
        for name, values in expected.items():
            variables, own_variables = event[name].keys(), found[name].keys()
            assert [one for one in own_variables if one != "new"] == variables
            own = found.arrays({name: variables}, library="arrow").column(0).to_pylist()
            # Not a number is not equal to itself.
            assert repr(without_bases(own)) == repr(values), name
        assert found["AnalysisJets"].new.tolist() == (found["AnalysisJets"].pt / 2).tolist()


def write_run(path: Path, write: Any, number: int) -> None:
    """Events with a histogram, and metadata that some files lack."""
    write(path)
    with tupelo.update(path) as file:
        file["cutflow"] = np.histogram([number, number], bins=3, range=(0, 3))
        file[f"MetaDataOf{number}"] = {"lumi": [number]}


@pytest.mark.filterwarnings("ignore:skipped the fields")
def test_metadata_of_all_files_go_along(tmp_path: Path) -> None:
    runs = [tmp_path / "run1.root", tmp_path / "run2.root"]
    write_run(runs[0], write, 1)
    write_run(runs[1], write_others, 2)
    event = tupelo.xaod.open(runs)
    expected = event.resolve("Electrons.links", ["d0"], dangling="null").tolist()
    places = []
    for form in ("ntuple", "tree"):
        places.append(tmp_path / f"{form}.root")
        found = derived(event, places[-1], format=form)
        assert found.link_keys() == {7: "Tracks", 8: "Others", 9: "Lost", 70: "Tracks"}
        assert found.resolve("Electrons.links", ["d0"], dangling="null").tolist() == expected
        with tupelo.open(places[-1]) as file:
            assert file["cutflow"].values().tolist() == [0, 2, 2]
            assert file["MetaData"].num_entries == 2
            assert [file[f"MetaDataOf{number}"]["lumi"].array().tolist() for number in (1, 2)] == [[1], [2]]
    for place in places:
        other = place.with_name(f"{place.stem}-2.root")
        other.write_bytes(place.read_bytes())
        again = derived(tupelo.xaod.open([place, other]), tmp_path / "again.root", thin={"Tracks": "d0 > 0.4"})
        with tupelo.open(tmp_path / "again.root") as file:
            assert file["cutflow"].values().tolist() == [0, 4, 4]
            assert file["MetaData"].num_entries == 4
            assert file["MetaDataOf1"]["lumi"].array().tolist() == [1, 1]
        # A key that only the second file had is followed too.
        assert again["Electrons"].links.tolist()[3] == [[link(70, 0)], []]
        assert again["Electrons"].links.tolist()[0] == [[link(0, 0), link(0, 0)], [link(0, 9)]]


@pytest.mark.filterwarnings("ignore:skipped the fields")
def test_files_on_a_server_are_opened_once_for_all_metadata(tmp_path: Path) -> None:
    write_run(tmp_path / "run1.root", write, 1)
    write_run(tmp_path / "run2.root", write_others, 2)
    server = Server(tmp_path)
    try:
        event = tupelo.xaod.open([f"{server.url}/{name}.root" for name in ("run1", "run2")])
        server.requests.clear()
        event.derive(tmp_path / "derived.root")
        begun = Counter(request.path for request in server.requests if request.range == "bytes=-65536")
        # For their events, and for their metadata.
        assert begun == {"/run1.root": 2, "/run2.root": 2}
        server.requests.clear()
        event.derive(tmp_path / "again.root")
        assert not [request for request in server.requests if request.range == "bytes=-65536"]
    finally:
        server.close()
    with tupelo.open(tmp_path / "derived.root") as file:
        assert file["MetaData"].num_entries == 2
