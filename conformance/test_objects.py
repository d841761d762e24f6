"""Objects in streamer fields of ROOT are decoded, and copies keep the layouts of classes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot
from panel import TUPELO
from root_programs import run_in_root

import tupelo

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
FOLDER = PROJECT / "target" / "conformance" / "objects"
REAL_DATA = PROJECT.parent / "shared" / "data"
VARIETY_PARTS = {
    "fName": "variety",
    "fTitle": "title",
    "fFlag": True,
    "fLetters": [97, 0, 0, 0],
    "fLong": -1,
    "fUnsigned": 2**64 - 1,
    "fHue": 7,
    "fReal": float(np.float32(0.1)),
    "fRange": pytest.approx(50, abs=0.1),
    "fShort": 1.5,
    "fReals": [0, 2.5],
    "fHalf": 1.5,
    "fMatrix": [[1, 2, 3], [4, 5, 6]],
    "fCount": 3,
    "fCounted": [1.5, 2.5, 3.5],
    "fRanges": pytest.approx([0, 50, 100], abs=0.1),
    "fCharacters": "characters",
    "fString": "string",
    "fStrings": ["", "second"],
    "fText": "text",
    "fTexts": ["first", ""],
    "fShorts": [1, -2],
    "fFlags": [True, False, True],
    "fWords": ["a", "", "w" * 300],
    "fRootWords": ["r"],
    "fVectorReals": [0.5, 1.5],
    "fHues": [7, 0],
    "fNested": [[], [1.5, 2.5]],
    "fItems": [
        {"fNumber": 1, "fText": "item", "fValues": [1.5]},
        {"fNumber": 2, "fText": "item", "fValues": []},
    ],
    "fItemList": [{"fNumber": 1, "fText": "item", "fValues": [1.5]}],
    "fEmpties": [{}, {}, {}],
    "fMap": {1: 1.5, 2: 2.5},
    "fVectorMap": {"a": [1, 2], "b": []},
    "fItemMap": {"k": {"fNumber": 1, "fText": "item", "fValues": [1.5]}},
    "fSet": ["x", "y"],
    "fPairs": [[1, "p"], [2, "q"]],
    "fPair": [3, 3.5],
    "fBitset": [True, False, True] + [False] * 7,
    "fPointers": ["shared", None, "shared"],
    "fItem": {"fNumber": 1, "fText": "item", "fValues": [1.5]},
    "fItemArray": [{"fNumber": 0, "fText": "", "fValues": []}, {"fNumber": 1, "fText": "item", "fValues": [1.5]}],
    "fItemPointer": {"fNumber": 9, "fText": "", "fValues": []},
    "fNull": None,
    "fShared": "shared",
    "fObjects": ["shared"],
    "fArray": [0, 8],
}
# The layouts of a file according to ROOT, and the messages of ROOT while reading them.
LAYOUTS = """
import json, sys, ROOT
found = []
for path in sys.argv[1:]:
    file = ROOT.TFile.Open(path)
    infos = [info for info in file.GetStreamerInfoList() if info.ClassName() == "TStreamerInfo"]
    found.append(sorted(
        [info.GetName(), int(info.GetClassVersion()), int(info.GetCheckSum()), info.GetElements().GetEntries()]
        for info in infos
    ))
    file.ShowStreamerInfo()
    file.Close()
print("LAYOUTS" + json.dumps(found))
"""


@pytest.fixture(scope="session")
def written(summary: list[str]) -> list[Path]:
    """The files of objects.hxx, written once."""
    sources = sorted((HERE / "root_writers").glob("*.[hp]*"))
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp_file = FOLDER / "stamp"
    if not stamp_file.exists() or stamp_file.read_text() != stamp:
        writer = HERE / "root_writers" / "write_objects.py"
        done = subprocess.run([sys.executable, str(writer), str(FOLDER)], capture_output=True, text=True, check=False)
        if done.returncode == 3:
            summary.append(f"streamer fields were not compared with ROOT: {done.stdout.strip()}")
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stdout + done.stderr
        stamp_file.write_text(stamp)
    return [FOLDER / "objects.0.root", FOLDER / "objects.505.root"]


@pytest.fixture(params=[0, 1], ids=["uncompressed", "zstd"])
def events(request: pytest.FixtureRequest, written: list[Path]) -> tupelo.Ntuple:
    """The ntuple in each of them."""
    ntuple = tupelo.open({str(written[request.param]): "Events"})
    assert isinstance(ntuple, tupelo.Ntuple)
    return ntuple


def plain(value: Any) -> Any:
    """Lists and dicts all the way down."""
    match value:
        case np.ndarray():
            return value.tolist()
        case list() | tuple():
            return [plain(item) for item in value]
        case tupelo.Instance():
            hidden = {"fUniqueID", "fBits"}
            return {name: plain(value[name]) for name in value if name not in hidden}
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


def test_strings_and_containers(events: tupelo.Ntuple) -> None:
    """Strings, lists and maps become Python objects."""
    objects = {name: plain(events[name].objects()) for name in ["text", "object", "numbers", "words", "map"]}
    assert objects["text"] == ["", "x" * 150, "x" * 300]
    assert objects["object"] == ["entry 0", "entry 1", "entry 2"]
    assert objects["numbers"] == [[], [-7], [-7, -7]]
    assert objects["words"] == [[], ["word"], ["word", "word"]]
    assert objects["map"] == [{}, {"0": [0]}, {"0": [0], "1": [1, 1]}]
    assert events["object"].objects(1, -1) == ["entry 1"]


def test_objects_cannot_be_used_in_expressions(events: tupelo.Ntuple) -> None:
    """Their bytes are not decoded as text."""
    with pytest.raises(tupelo.InvalidArgumentError, match="field 'object' stores objects of a ROOT streamer"):
        events.arrays("object == 'entry 1'")


def test_arrays_of_objects(events: tupelo.Ntuple) -> None:
    """TObjArray and TList become lists of their objects."""
    arrays = events["array"].objects()
    assert arrays[:2] == [[], ["0"]]
    assert arrays[2][:4] == ["0", "1", "0", None]
    assert isinstance(arrays[2][4], tupelo.Histogram)
    assert (arrays[2][4].name, len(arrays[2][4].axes[0])) == ("inside", 2)
    (named,) = events["list"].objects(1, 2)[0]
    assert (named.class_name, named["fName"], named["fTitle"]) == ("TNamed", "0", "a title")


def test_every_kind_of_member(events: tupelo.Ntuple) -> None:
    """A class with members of all kinds has the written values."""
    empty, full, _ = events["variety"].objects()
    assert (full.class_name, full.version) == ("Variety", 3)
    found = plain(full)
    assert found.pop("fDate")["fDatime"] == (25 << 26 | 1 << 22 | 2 << 17 | 3 << 12 | 4 << 6 | 5)
    # ROOT does not register the object of the field for pointers, so the pointer refers to a second object.
    itself = found.pop("fSelf")
    assert (itself["fText"], itself["fSelf"]) == ("text", None)
    assert found.pop("fDerived").reason == "class Derived is not in the streamer info"
    assert found == VARIETY_PARTS
    assert (empty["fText"], empty["fItems"], empty["fCounted"], empty["fItemPointer"]) == ("", [], None, None)
    assert list(full.bases) == ["TNamed"]


def test_unknown_formats_stay_bytes(events: tupelo.Ntuple) -> None:
    """A class with a custom streamer becomes class, bytes and reason, alone and among others."""
    for entry, secret in enumerate(events["secret"].objects()):
        assert isinstance(secret, tupelo.OpaqueObject)
        assert (secret.class_name, secret.bytes[-4:]) == ("Secret", entry.to_bytes(4, "big"))
        assert "Secret" in secret.reason
    # The surrounding objects can be read.
    hidden, shared = events["secrets"].objects(0, 1)[0]
    assert (hidden.class_name, hidden.bytes[-1], shared) == ("Secret", 42, "shared")


def test_fields_below_others(events: tupelo.Ntuple) -> None:
    """Streamer fields in records and collections keep their structure."""
    nested = events["nested"].objects()
    assert [[len(inner) for inner in entry] for entry in nested] == [[], [0], [0, 1]]
    assert plain(nested[2][1][0]) == {"fNumber": 21, "fText": "s", "fList": [7], "fLefts": []}
    empty, *full = (holder["fLefts"] for holder in events["holder.fStreamed"].objects())
    assert empty == []
    for missing in full:
        # ROOT stores no layout of classes that are only stored member by member, in a collection.
        assert missing.reason == "class Left is not in the streamer info"
    with pytest.raises(tupelo.InvalidArgumentError, match="expected a streamer field"):
        events["holder.fBefore"].objects()


def test_histograms(events: tupelo.Ntuple) -> None:
    """Contents, variances, axes and names equal ROOT; flow bins follow UHI."""
    empty, _, h1 = events["h1"].objects()
    assert (h1.name, h1.title, h1.kind, h1.num_entries, h1.is_weighted) == ("h1", "A histogram", "COUNT", 20, False)
    filled = [0.25 * i - 1 for i in range(20)]
    expected, edges = np.histogram(filled, 10, (-1, 4))
    assert h1.values().tolist() == expected.tolist()
    assert h1.values(flow=True).tolist() == [0, *expected.tolist(), 0]
    assert np.array_equal(h1.axes[0].edges, edges)
    assert (h1.axes[0][0], len(h1.axes[0]), h1.axes[0].traits.discrete) == ((-1.0, -0.5), 10, False)
    assert not empty.values().any()
    weighted = events["weighted"].objects()[2]
    assert weighted.values().tolist() == [3, 3, 0, 0]
    assert weighted.variances().tolist() == [6.5, 6.5, 0, 0]
    assert weighted.counts().tolist() == [9 / 6.5, 9 / 6.5, 0, 0]
    variable = events["variable"].objects()[2]
    assert list(variable.axes[0]) == [(0, 1), (1, 10), (10, 100)]
    assert variable.values(flow=True).tolist() == [4, 4, 12, 0, 0]
    labelled = events["labelled"].objects()[2]
    assert labelled.axes[0].labels == ["one", None, "three"]
    assert labelled.axes[0][0] == (0, 1)
    fitted = events["fitted"].objects()[2]
    assert fitted.values().sum() == sum(0 <= x < 8 for x in filled)
    assert fitted.members["fFunctions"][0].class_name == "TF1"


def test_histograms_of_two_dimensions_and_profiles(events: tupelo.Ntuple) -> None:
    """The first axis is x; profiles are means with the errors of ROOT."""
    h2 = events["h2"].objects()[2]
    assert h2.values().tolist() == [[0, 0, 4], [2, 0, 4]]
    assert h2.values(flow=True).shape == (4, 5)
    assert h2.values(flow=True)[0, 4] == 2
    profile = events["profile"].objects()[2]
    assert profile.kind == "MEAN"
    y = np.arange(4)
    assert profile.values()[:2].tolist() == [y.mean(), 10 + y.mean()]
    assert profile.values()[2] == 0
    assert profile.variances()[:2] == pytest.approx([y.var() / 4] * 2)
    assert profile.counts().tolist() == [4, 4, 0]


@pytest.mark.parametrize("name", ["h1", "weighted", "variable", "h2", "profile"])
def test_histograms_equal_other_libraries(name: str, events: tupelo.Ntuple) -> None:
    """boost-histogram and hist give the same results."""
    ours = events[name].objects()[2]
    for package, make in [("boost_histogram", ours.to_boost), ("hist", ours.to_hist)]:
        try:
            __import__(package)
        except ModuleNotFoundError:
            with pytest.raises(tupelo.UnsupportedError, match="pip install"):
                make()
            continue
        theirs = make()
        filled = ours.counts(flow=True) > 0
        assert np.array_equal(theirs.values(flow=True)[filled], ours.values(flow=True)[filled])
        assert np.allclose(theirs.axes[0].edges, ours.axes[0].edges)


@cache
def layouts(*paths: Path) -> tuple[list[list[list[Any]]], str]:
    """Names, versions, checksums and numbers of members that ROOT finds in files, and its messages."""
    done = run_in_root(LAYOUTS, *paths)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LAYOUTS")]
    return json.loads(line.removeprefix("LAYOUTS")), done.stderr


def by_uproot(path: Path) -> dict[tuple[str, int], int]:
    """Checksums by name and version, as uproot finds them."""
    with uproot.open(path) as file:
        streamers = file.file.streamers
        return {
            (name, version): info.member("fCheckSum")
            for name, infos in streamers.items()
            for version, info in infos.items()
        }


def copied(source: str, target: Path, *options: str) -> Path:
    """A copy by the command."""
    if not options:
        target.unlink(missing_ok=True)
    done = subprocess.run([TUPELO, "copy", source, str(target), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_copies_keep_layouts(written: list[Path], tmp_path: Path) -> None:
    """ROOT and uproot find the same layouts in a copy, without a message; the objects are the same."""
    copies = [copied(f"{path}:Events", tmp_path / path.name) for path in written]
    found, messages = layouts(*written, *copies)
    assert not messages
    assert len(found[0]) > 10
    assert found[2:] == found[:2]
    for path, copy in zip(written, copies, strict=True):
        assert by_uproot(copy) == by_uproot(path)
        ours, theirs = tupelo.open({str(copy): "Events"}), tupelo.open({str(path): "Events"})
        for name in ["variety", "array", "text"]:
            assert len(ours[name].objects()) == 3
            assert plain(ours[name].objects()[1]) == plain(theirs[name].objects()[1])


def test_copies_into_one_file_merge_layouts(written: list[Path], tmp_path: Path) -> None:
    """Adding to a file adds the layouts once and keeps existing ones."""
    sources = sorted(REAL_DATA.glob("*.root"))
    target = copied(f"{written[0]}:Events", tmp_path / "united.root")
    copied(f"{written[1]}:Events", Path(f"{target}:again"), "--append")
    expected, _ = layouts(written[0])
    assert layouts(target)[0] == expected
    wanted = {tuple(layout) for layout in expected[0]}
    for number, path in enumerate(sources):
        with uproot.open(path) as file:
            names = [name for name, kind in file.classnames(cycle=False).items() if kind == "ROOT::RNTuple"]
        for name in names[:1]:
            copied(f"{path}:{name}", Path(f"{target}:real{number}"), "--append")
            wanted |= {tuple(layout) for layout in layouts(path)[0][0]}
    united, messages = layouts(Path(target.rename(tmp_path / "done.root")))
    assert not messages
    assert sorted(map(tuple, united[0])) == sorted(wanted)
