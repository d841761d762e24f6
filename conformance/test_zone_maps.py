"""Files with zone maps: ROOT and uproot read the same values, and cuts keep the same entries."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from panel import BUILD, TUPELO, agree, judge, root_error, run, tupelo_dump

import tupelo

EVENTS = 30_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file, and the same with zone maps."""
    folder = tmp_path_factory.mktemp("zones")
    plain, zones = folder / "plain.root", folder / "zones.root"
    what = [
        "nanoaod",
        "--events",
        str(EVENTS),
        "--cluster-bytes",
        "300KiB",
        "--page-bytes",
        "8KiB",
        "--quiet",
        str(plain),
    ]
    subprocess.run([str(BUILD / "tupelo-generate"), *what], check=True)
    shutil.copy(plain, zones)
    run(
        "index",
        "--zone-maps",
        f"{zones}:Events",
        "--fields",
        "run,event,luminosityBlock,MET_*,Muon_pt",
        "--zone-entries",
        "500",
    )
    return plain, zones


@pytest.mark.parametrize("tool", ["root", "uproot"])
def test_others_read_the_same(files: tuple[Path, Path], tool: str) -> None:
    if tool == "root" and (error := root_error()):
        pytest.skip(f"ROOT cannot be imported: {error}")
    plain, zones = files
    run("verify", zones)
    run("diff", f"{plain}:Events", f"{zones}:Events")
    [dump] = judge(tool, [{"file": str(zones), "ntuple": "Events"}], "zone-maps")
    assert agree(tupelo_dump(f"{plain}:Events", "zone-maps"), dump) == []


def test_cuts_keep_the_same_and_read_less(files: tuple[Path, Path]) -> None:
    plain, zones = (tupelo.open(f"{path}:Events") for path in files)
    events = plain.arrays(["event"], library="np")["event"]
    some, last = int(events[1000]), int(events[-1])
    for cut in [f"event == {some}", f"event > {last - 700} and MET_pt > 20", "any(Muon_pt > 300)", "MET_pt < 0"]:
        a, b = (one.arrays(["event", "MET_phi"], cut=cut, library="pd") for one in (plain, zones))
        assert a.equals(b), cut
    cut = f"event == {some}"
    documents = [
        json.loads(run("explain", f"{path}:Events", "--fields", "MET_*", "--cut", cut, "--json")) for path in files
    ]
    bytes_read = [document["stored_bytes"] for document in documents]
    assert documents[0]["ruled_out"] == 0
    assert documents[1]["ruled_out"] >= EVENTS - 1000
    assert bytes_read[1] < 0.1 * bytes_read[0]
    assert "zone maps rule out" in run("explain", f"{files[1]}:Events", "--fields", "MET_pt", "--cut", cut)


def test_only_numbers_of_ntuples_in_local_files_have_zones(files: tuple[Path, Path], tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        command = [str(TUPELO), "index", "--zone-maps", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2), done.stderr
        return done.stderr

    with tupelo.recreate(tmp_path / "text.root") as file:
        file["t"] = {"name": ["a", "b"]}
        file.mktree("tree", {"x": "int32"}).extend({"x": [1, 2]})
    assert "none of the fields has numbers" in refused(f"{tmp_path}/text.root:t")
    assert "'name' is not a number" in refused(f"{tmp_path}/text.root:t", "--fields", "name")
    assert "'MET_pt'" in refused(f"{files[0]}:Events", "--fields", "MET_pT")
    assert "ntuple" in refused(f"{tmp_path}/text.root:tree")
    assert "--zone-maps" in refused(f"{files[0]}:Events", "-o", "x.json")
