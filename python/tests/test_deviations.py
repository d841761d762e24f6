"""Files that break rules which ROOT does not check are read with a warning; lost directories are rebuilt on request."""

import io
import pickle
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import uproot
from conftest import DATA

import tupelo


@pytest.fixture
def whole() -> bytes:
    with tupelo.recreate("whole.root") as file:
        file["Events"] = {"x": np.arange(5, dtype=np.int32)}
        file["below/Others"] = {"y": [1.5]}
    return Path("whole.root").read_bytes()


def record_at(data: bytes) -> int:
    """Where the record of the top directory lies."""
    return 100 + int.from_bytes(data[28:32], "big")


def unsaved(data: bytes) -> bytes:
    """The file as it was before it was saved: without a free list and without a list of keys."""
    changed = bytearray(data)
    changed[16:20] = changed[record_at(data) + 26 : record_at(data) + 30] = bytes(4)
    return bytes(changed)


def deviating(data: bytes) -> dict[str, bytes]:
    """Files that break one rule each, by what the warning says."""
    negative, short = bytearray(data), bytearray(data)
    negative[4:8] = (64000 - 1_000_000).to_bytes(4, "big", signed=True)
    at = int.from_bytes(data[record_at(data) + 26 : record_at(data) + 30], "big")
    short[at : at + 4] = (int.from_bytes(data[at + 14 : at + 16], "big") + 4).to_bytes(4, "big")
    return {"version in the file header is negative: -936000": bytes(negative), "key list of ": bytes(short)}


def read_everything(source: str | io.BytesIO) -> None:
    file = tupelo.open(source)
    assert file["Events"].arrays("x", library="np")["x"].tolist() == [0, 1, 2, 3, 4]
    assert file.keys() == ["Events", "below/Others"]
    assert len(file.classnames()) == 3


def test_files_that_deviate_are_read_with_one_warning(whole: bytes) -> None:
    for what, data in deviating(whole).items():
        Path("f.root").write_bytes(data)
        for source in ["f.root", io.BytesIO(data)]:
            with pytest.warns(tupelo.TupeloWarning, match=what) as given:
                read_everything(source)
            assert len(given) == 1, [str(it.message) for it in given]
            assert Path(given[0].filename).name == Path(__file__).name
        with pytest.warns(tupelo.TupeloWarning, match=what):
            assert sum(len(batch) for batch in tupelo.iterate("f.root:Events")) == 5


def test_intact_files_give_no_warning(whole: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for recover in [False, True]:
            assert tupelo.open(io.BytesIO(whole), recover=recover).keys() == ["Events", "below/Others"]


def test_a_file_that_was_never_saved_is_recovered_on_request(whole: bytes) -> None:
    Path("f.root").write_bytes(unsaved(whole))
    with pytest.warns(tupelo.TupeloWarning, match="did not save its directories"):
        assert tupelo.open("f.root").keys() == []
    for source in ["f.root", io.BytesIO(unsaved(whole))]:
        with pytest.warns(tupelo.TupeloWarning, match="its directories were rebuilt"):
            file = tupelo.open(source, recover=True)
        assert sorted(file.keys()) == ["Events", "below/Others"]
        assert file["Events"].arrays("x", library="np")["x"].tolist() == [0, 1, 2, 3, 4]
    assert Path("f.root").read_bytes() == unsaved(whole)


@pytest.mark.filterwarnings("ignore:.*its directories were rebuilt")
def test_ntuples_of_a_recovered_file_are_opened_again_in_other_processes(whole: bytes) -> None:
    Path("f.root").write_bytes(unsaved(whole))
    file = tupelo.open("f.root", recover=True)
    for copy in [pickle.loads(pickle.dumps(file)), pickle.loads(pickle.dumps(file["Events"]))]:
        ntuple = copy["Events"] if isinstance(copy, tupelo.File) else copy
        assert ntuple.num_entries == 5


@pytest.mark.filterwarnings("ignore:.*its directories were rebuilt")
def test_what_root_recovers_is_recovered() -> None:
    path = DATA / "reports" / "unclosed_never_saved.root"
    if not path.exists():
        return
    with pytest.warns(tupelo.TupeloWarning, match="did not save its directories"):
        assert tupelo.open(path).classnames() == {}
    assert tupelo.open(path, recover=True).classnames() == {"t": "TTree", "h": "TH1D"}


def test_ntuples_of_jsroot_are_read_as_root_reads_them() -> None:
    path = DATA / "wild" / "root-project+jsroot__demo_node_rntuple_test32.root"
    if path.exists():
        columns = tupelo.open(f"{path}:ntpl").arrays(library="np")
        # As ROOT 6.40 gives them: uproot rounds the last one to 2, 0, -37.5.
        assert columns["DoubleReal32Quant32"].tolist() == [2.0000000081490725, 0.0, -37.499999985448085, -100.0, 25.0]
        assert columns["FloatReal32Quant8"].tolist() == [
            np.float32(value) for value in [-0.49803922, 0.003921569, 0.003921569, -1.0, 1.0]
        ]
    path = DATA / "wild" / "root-project+jsroot__demo_node_rntuple_test.root"
    if path.exists():
        import uproot

        ntuple, judge = tupelo.open(f"{path}:Data"), uproot.open(f"{path}:Data")
        # uproot does not read its streamer field.
        names = [name for name in ntuple.typenames() if "." not in name and name != "TestClassField"]
        assert len(names) == 23
        for name in names:
            assert ntuple.arrays(name)[name].to_list() == judge[name].array().to_list(), name
        objects = [
            (it["fA"], [below["fA"] for below in it["fV"]]) for it in ntuple["TestClassField.fStreamed"].objects()
        ]
        assert objects[:3] == [(0, [5]), (-1, [5, 6]), (-2, [5, 6, 7])]


@pytest.mark.parametrize(
    ("names", "deleted"), [("abT", "a"), ("aTb", "b"), ("aTbc", "bc"), ("aTbc", "ab"), ("aTb", "ab")]
)
def test_files_in_which_uproot_deleted_objects_are_intact_and_can_be_changed(
    names: str, deleted: str, command: str
) -> None:
    """Regression: keys that uproot left behind a shorter list were damage, and the others prevented every change."""
    with uproot.recreate("deleted.root") as file:
        for name in names:
            file[name] = {"x": np.arange(3)} if name == "T" else np.histogram([1.0, 2.0])
        for name in deleted:
            del file[name]
    done = subprocess.run([command, "verify", "deleted.root"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    with tupelo.update("deleted.root") as changed:
        changed["new"] = {"y": [1, 2]}
    left = [name for name in names if name not in deleted]
    with uproot.open("deleted.root") as file:
        assert sorted(file.keys(cycle=False)) == sorted([*left, "new"])
        assert file["T"]["x"].array().tolist() == [0, 1, 2]
    done = subprocess.run([command, "verify", "--deep", "deleted.root"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
