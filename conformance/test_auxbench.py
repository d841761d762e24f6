"""The benchmark of ATLAS's auxiliary stores on events of a real file that were drawn again."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import awkward as ak
import pandas as pd
import pytest
from panel import BUILD, PROJECT, REAL_DATA, TUPELO, run

import tupelo
import tupelo.xaod

EVENTS = 700
PHYSLITE = REAL_DATA / "atlas_daod_physlite_ntuple.root"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An ntuple of drawn events, and the tree of the same."""
    if not PHYSLITE.exists():
        pytest.skip(f"{PHYSLITE} is missing")
    folder = tmp_path_factory.mktemp("aux")
    found = {"ntuple": folder / "ntuple.root", "tree": folder / "tree.root"}
    generate(found["ntuple"], 3)
    run("export", f"{found['ntuple']}:EventData", f"{found['tree']}:CollectionTree", "--jagged", "vector")
    return found


def generate(out: Path, seed: int) -> None:
    what = ["physlite", "--from", PHYSLITE, "--events", EVENTS, "--seed", seed, "--compression", "lz4:4", out]
    subprocess.run([str(BUILD / "tupelo-generate"), "--quiet", *map(str, what)], check=True)


def written(folder: Path, files: dict[str, Path], **options: Any) -> Path:
    """A configuration."""
    config = {"ntupleFilepath": str(files["ntuple"]), "treeFilepath": str(files["tree"]), "nRuns": 2} | options
    path = folder / "aux.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items()))
    return path


def refused(config: Path, *options: str) -> str:
    done = subprocess.run([str(TUPELO), "auxbench", str(config), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_drawn_events_are_those_of_the_file(files: dict[str, Path]) -> None:
    run("verify", files["ntuple"])
    drawn, original = tupelo.xaod.open(files["ntuple"]), tupelo.xaod.open(f"{PHYSLITE}:EventData")
    numbers, known = (event["EventInfo"]["eventNumber"].tolist() for event in (drawn, original))
    assert len(numbers) == EVENTS
    assert set(numbers) <= set(known)
    assert len(set(numbers)) > 90
    places = [known.index(number) for number in numbers]
    for name in ["AnalysisJets.pt", "AnalysisMuons.eta", "InDetTrackParticles.definingParametersCovMatrixDiag"]:
        assert ak.array_equal(drawn[name], original[name][places]), name
    # The keys of links are in the other ntuples.
    assert drawn.link_keys() == original.link_keys()


def test_experiments_and_reports(files: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    config = written(tmp_path, files, nEntries=50, nRuns=2, variableTimes=True, storeNames="AnalysisJets")
    run("auxbench", config, "--experiment", "figure-6.1", "--report", folder, "--quiet")
    text = (folder / "report.md").read_text()
    for what in [
        "figure-6.1",
        "RAuxStore_100.png",
        '"namedEntry": 3722',
        "Published: about 1000. Here it is",
        "- cpu: ",
    ]:
        assert what in text, what
    for store in "RAuxStore", "TAuxStore":
        picture = (folder / f"{store}_100.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
    # Processes draw the loads that only they have.
    processes = tmp_path / "processes"
    run("auxbench", written(tmp_path, files, nEntries=50, nProcesses=2, nRuns=1), "--report", processes, "--quiet")
    assert (processes / "TAuxStore_100.png").exists()
    done = refused(config, "--experiment", "table-9.1")
    assert "no experiment named 'table-9.1'" in done
    assert "table-5.1" in done


def test_both_stores_load_the_same_values(files: dict[str, Path], tmp_path: Path, summary: list[str]) -> None:
    """All variables, in order and at random, in pieces and single entries; as many values as columns have."""
    compared = 0
    for number, options in enumerate(
        [
            {"percentagesOfAuxIdsToPick": "10,100"},
            {"selectEntriesRandomly": True, "nEntries": 40, "nWarmupEntries": 5},
            {"selectEntriesRandomly": True, "nEntries": 500, "storeNames": "AnalysisJets,EventInfo"},
        ]
    ):
        report = json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, **options)))
        found = report["compared"]
        assert (found["differing"], found["not_compared"]) == ([], [])
        assert len({digest for _, digest in found["digests"]}) == 1
        compared += found["values"]
        for percentage in report["config"]["percentagesOfAuxIdsToPick"]:
            values = {run["values"] for run in report["runs"] if run["percentage"] == percentage}
            assert len(values) == 1
        entries = report["entries"]["measured"]
        if number == 2:
            event = tupelo.xaod.open(files["tree"])
            jets, info = event["AnalysisJets"], event["EventInfo"]
            count = int(ak.sum(ak.num(jets["pt"][entries]))) * len(jets.keys()) + len(entries) * len(info.keys())
            assert found["values"] == count
    summary.append(f"{compared} values of auxiliary stores are the same over ntuple and tree")


def test_no_load_waits_for_all_stores(files: dict[str, Path], tmp_path: Path) -> None:
    """The first load decodes a piece of each store. Later loads decode the next pieces of few stores."""
    report = json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, nRuns=1, warmup=False)))
    for one in report["runs"]:
        first, *later = sorted(one["slowest"], key=lambda load: int(load["entry"]))
        assert first["entry"] == 0
        stores = [part["stores"]["start"] for part in first["decoded"]]
        assert stores == list(range(len(stores)))
        assert all(part["entries"]["start"] == 0 for part in first["decoded"])
        assert later
        assert max(len(load["decoded"]) for load in later) <= len(stores) / 4


def test_loads_are_written_for_pandas(files: dict[str, Path], tmp_path: Path) -> None:
    options = {"nEntries": 50, "writeToCSV": True, "logDirPath": str(tmp_path / "logs"), "variableTimes": True}
    config = written(tmp_path, files, storeNames="AnalysisMuons", namedEntry=7, **options)
    assert "--create-log-dir" in refused(config)
    text = run("auxbench", config, "--create-log-dir")
    assert re.search("AnalysisMuons.* are the same|variables .* are the same", text), text
    for store in ("RAuxStore", "TAuxStore"):
        loads = pd.read_csv(tmp_path / "logs" / f"loads_{store}_100.csv")
        assert loads.columns.tolist() == ["run", "entry", "nanoseconds", "values", "decoded_from", "decoded_to"]
        assert loads.groupby("run")["entry"].apply(list).tolist() == [list(range(50))] * 2
        assert (loads["nanoseconds"] > 0).all()


def test_other_events_are_noticed(files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.root"
    generate(other, 4)
    config = written(tmp_path, files | {"ntuple": other}, storeNames="AnalysisJets")
    done = subprocess.run([str(TUPELO), "auxbench", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "different values of 'AnalysisJets." in done.stderr


def test_stores_are_chosen_as_published(files: dict[str, Path], tmp_path: Path) -> None:
    def report(**options: Any) -> Any:
        common = {"nRuns": 1, "auxStoreToRun": 0, "nEntries": 2, "verbose": True}
        return json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, **common | options)))

    every = report()["compared"]["variables"]
    problematic = {"storeNamesWithProblematicAuxids": ["AnalysisJets", "EventInfo"]}
    assert report(**problematic)["compared"]["variables"] < every
    assert report(**problematic, storeNameFiltering=False)["compared"]["variables"] == every
    assert report(nStores=1000)["warnings"][0].startswith("there are ")
    assert "no store has 5000 variables" in report(minAuxids=5000)["warnings"][0]
    assert report(minAuxIds=5000)["compared"]["variables"] == every
    assert "overrides" in report(storeNames="EventInfo", nStores=3)["warnings"][0]
    few = report(nEntriesForWarmup=10_000)
    assert len(few["entries"]["warmup"]) == EVENTS
    assert "2 entries of the warm-up" in few["warnings"][0]
    for options, expected in [
        ({"storeName": "x"}, "'storeNames'"),
        ({"storeNames": "AnalysisJet"}, "'AnalysisJets'"),
        ({"variableNames": "AnalysisJets.pT"}, "'AnalysisJets.pt'"),
        ({"pageCache": "hot"}, "cold"),
        ({"diskLatency": -1}, "milliseconds from 0 to 1000"),
        ({"diskSpeed": 0.5}, "megabytes per second, 1 or more"),
    ]:
        done = subprocess.run(
            [str(TUPELO), "auxbench", str(written(tmp_path, files, **options))], capture_output=True, text=True
        )
        assert done.returncode in (1, 2), done.stderr
        assert expected in done.stderr


def test_a_disk_can_be_slow(files: dict[str, Path], tmp_path: Path) -> None:
    options: dict[str, Any] = {"storeNames": "EventInfo", "nEntries": 2, "nRuns": 1, "warmup": False}
    slow = {"diskLatency": 20, "diskSpeed": 150}
    found = [
        json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, **options, **more)))
        for more in ({}, slow)
    ]
    assert found[0]["compared"]["digests"] == found[1]["compared"]["digests"]
    assert {name: found[1]["config"][name] for name in slow} == slow
    for one in found[1]["runs"]:
        assert one["open_seconds"] >= 0.02
        assert one["seconds"] >= 0.02


def test_runs_are_divided_among_processes(files: dict[str, Path], tmp_path: Path) -> None:
    """As the first published runs: the same 10 variables of EventInfo, and a coin for each entry."""
    options = {"legacy": True, "nProcesses": 3, "nWarmupEntries": 4, "writeToCSV": True, "logDirPath": str(tmp_path)}
    report = json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, **options)))
    assert [(run["store"], run["number"]) for run in report["runs"][:4]] == [
        ("RAuxStore", 1),
        ("TAuxStore", 1),
        ("RAuxStore", 2),
        ("TAuxStore", 2),
    ]
    assert [run["number"] for run in report["runs"] if run["store"] == "TAuxStore"] == list(range(1, 7))
    assert report["compared"]["variables"] == 10
    entries = report["entries"]["measured"]
    assert 300 < len(entries) < 400
    assert report["compared"]["values"] == 10 * len(entries)
    loads = pd.read_csv(tmp_path / "loads_TAuxStore_100.csv")
    assert loads.groupby("run")["entry"].apply(list).tolist() == [entries] * 6


def test_the_guides_have_all_options_and_keys(files: dict[str, Path], tmp_path: Path) -> None:
    guide = (PROJECT / "docs" / "guide" / "auxbench.md").read_text()
    report = json.loads(run("auxbench", "--json", "--quiet", written(tmp_path, files, nEntries=3, nRuns=1)))
    missing = [name for name in report["config"] if f"| `{name}`" not in guide]
    assert not missing
    page = (PROJECT / "docs" / "guide" / "json.md").read_text()
    section = page.split("## `auxbench`")[1].split("\n## ")[0]
    assert {key for key in report if f"| `{key}`" not in section} <= {"document", "version", "file"}
