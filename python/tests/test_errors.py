"""Error messages say what failed, where and what to do; every kind of error has a class."""

import builtins
import pathlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tupelo
from tupelo import _core, errors


@pytest.fixture
def ntuple() -> tupelo.Ntuple:
    with tupelo.recreate("f.root") as file:
        file["Events"] = {"Muon_pt": [1.5, 2.5], "Muon_eta": [0.5, -0.5], "n": [[1], [2, 3]]}
    opened = tupelo.open("f.root:Events")
    assert isinstance(opened, tupelo.Ntuple)
    return opened


def test_every_error_kind_has_a_class() -> None:
    assert set(errors.BY_KIND) == set(_core.ERROR_KINDS)
    assert len(set(errors.BY_KIND.values())) == len(_core.ERROR_KINDS)
    for kind in errors.BY_KIND.values():
        assert issubclass(kind, tupelo.Error)
        assert getattr(tupelo, kind.__name__) is kind
        assert str(kind("what 'happened'")) == "what 'happened'"


@pytest.mark.parametrize(
    ("ours", "pythons"),
    [
        (tupelo.NotFoundError, KeyError),
        (tupelo.MissingFileError, builtins.FileNotFoundError),
        (tupelo.MissingFileError, tupelo.NotFoundError),
        (tupelo.CorruptError, ValueError),
        (tupelo.UnsupportedError, NotImplementedError),
        (tupelo.LimitError, MemoryError),
        (tupelo.InvalidArgumentError, ValueError),
        (tupelo.StorageError, OSError),
    ],
)
def test_error_classes_derive_from_builtin_ones(ours: type, pythons: type) -> None:
    assert issubclass(ours, pythons)


CASES: list[tuple[type[Exception], str, Callable[[tupelo.Ntuple], Any]]] = [
    (tupelo.MissingFileError, "cannot open none.root: No such file", lambda n: tupelo.open("none.root:Events")),
    (
        tupelo.NotFoundError,
        "f.root: no ntuple named 'Event' (available: 'Events')",
        lambda n: tupelo.open("f.root:Event"),
    ),
    (tupelo.StorageError, "is a directory", lambda n: tupelo.open(".")),
    (tupelo.OtherFormatError, "not a ROOT file", lambda n: tupelo.open("text.root")),
    (tupelo.UnsupportedError, "xyz://b/f.root: its scheme is", lambda n: tupelo.open("xyz://b/f.root:Events")),
    (tupelo.MissingFileError, "a.root", lambda n: tupelo.open({"a.root": "x", "b.root": "x"})),
    (tupelo.InvalidArgumentError, "not 7", lambda n: tupelo.open(7)),  # type: ignore[arg-type]
    (tupelo.NotFoundError, "'Muon_pt'", lambda n: n["Muon_pT"]),
    (tupelo.NotFoundError, "no field named 'Jet_*'", lambda n: n.arrays("Jet_*")),
    (
        tupelo.NotFoundError,
        "'Muon_pT*2': no field named 'Muon_pT' (available: 'Muon_pt'",
        lambda n: n.arrays("Muon_pT*2"),
    ),
    (tupelo.InvalidArgumentError, "'Muon_pt +': expected a value at the end", lambda n: n.arrays("Muon_pt +")),
    (tupelo.InvalidArgumentError, "+ takes numbers, not a string", lambda n: n.arrays(["Muon_pt + 'a'"])),
    (tupelo.NotFoundError, "'Muon_*' is a pattern", lambda n: n["Muon_*"]),
    (tupelo.NotFoundError, "none of 3 fields matches the filters", lambda n: n.arrays(filter_name="Jet*")),
    (tupelo.InvalidArgumentError, "not both", lambda n: n.arrays("n", filter_name="n")),
    (tupelo.InvalidArgumentError, "the list of expressions is empty", lambda n: n.arrays([])),
    (tupelo.InvalidArgumentError, "not a valid regular expression", lambda n: n.keys(filter_name="/(/")),
    (tupelo.InvalidArgumentError, "one boolean for each entry, not a list", lambda n: n.arrays(cut="n > 2")),
    (tupelo.InvalidArgumentError, "one boolean for each entry, not a real", lambda n: n.iterate(cut="Muon_pt")),
    (tupelo.NotFoundError, "expression 'm > 2': no field named 'm'", lambda n: n.arrays(cut="m > 2")),
    (tupelo.InvalidArgumentError, "expected cut as an expression", lambda n: n.arrays(cut=[True])),
    (tupelo.NotFoundError, "alias 'a': expression 'b': no field named 'b'", lambda n: n.arrays(aliases={"a": "b"})),
    (tupelo.InvalidArgumentError, "depends on itself", lambda n: n.arrays(aliases={"a": "b + 1", "b": "a"})),
    (tupelo.InvalidArgumentError, "mapping of names", lambda n: n.arrays(aliases=["n"])),
    (tupelo.UnsupportedError, "'backend'", lambda n: n.arrays(backend="cuda")),
    (tupelo.InvalidArgumentError, "expected how to be None", lambda n: n.arrays(how="unzip")),
    (tupelo.InvalidArgumentError, "not library='np'", lambda n: n.arrays(how="zip", library="np")),
    (
        tupelo.InvalidArgumentError,
        "'cut' cannot be used with 'virtual=True'",
        lambda n: n.arrays(cut="1", virtual=True),
    ),
    (tupelo.InvalidArgumentError, "'access_log' cannot be", lambda n: n.arrays(access_log=[])),
    (tupelo.InvalidArgumentError, "ak_add_doc", lambda n: n.arrays(ak_add_doc={"a": "size"})),
    (tupelo.UnsupportedError, "unknown library='cp': expected 'ak'", lambda n: n.arrays(library="cp")),  # type: ignore[arg-type]
    (tupelo.UnsupportedError, "library='cudf'", lambda n: n["n"].array(library="cudf")),  # type: ignore[arg-type]
    (TypeError, "unexpected keyword argument 'entry_stopp'", lambda n: n.arrays(entry_stopp=3)),
    (
        tupelo.InvalidArgumentError,
        "expected entry_start and entry_stop as integers",
        lambda n: n.arrays(entry_stop=1.5),
    ),  # type: ignore[arg-type]
    (tupelo.InvalidArgumentError, "from 1 to 2⁶³−1 entries", lambda n: n.iterate(step_size=0)),
    (tupelo.InvalidArgumentError, "'100 apples' is not a size", lambda n: n.iterate(step_size="100 apples")),
    (tupelo.StorageError, "cannot create", lambda n: tupelo.recreate("text.root/f.root")),
    (tupelo.MissingFileError, "nowhere.root", lambda n: tupelo.update("nowhere.root")),
]


@pytest.mark.parametrize(("kind", "text", "call"), CASES, ids=[text for _, text, _ in CASES])
def test_error_messages(
    ntuple: tupelo.Ntuple, kind: type[Exception], text: str, call: Callable[[tupelo.Ntuple], Any]
) -> None:
    pathlib.Path("text.root").write_text("This is no ROOT file, and has some hundred letters. " * 5)
    with pytest.raises(kind, match=re.escape(text)) as caught:
        call(ntuple)
    assert type(caught.value) is kind


def test_errors_name_the_class_of_other_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    import uproot

    with uproot.recreate("tree.root") as file:
        file.mktree("Events", {"x": "f4"})
    with pytest.raises(tupelo.UnsupportedError, match="'Events' is a TTree, not an RNTuple"):
        tupelo.open("tree.root:Events").attributes("set")
    with tupelo.open("tree.root") as opened:
        assert isinstance(opened, tupelo.File)
        assert opened.keys() == ["Events"]
        assert "Events" in opened
        assert opened.classnames() == {"Events": "TTree"}


def test_errors_locate_damaged_pages() -> None:
    with tupelo.recreate("f.root", compression="none") as file:
        file["Events"] = {"x": [7.25] * 100}
    content = bytearray(pathlib.Path("f.root").read_bytes())
    place = content.index(b"\x00\x00\x00\x00\x00\x00\x1d\x40" * 10)
    content[place + 100] ^= 1
    pathlib.Path("f.root").write_bytes(content)
    broken = tupelo.open("f.root:Events")
    assert isinstance(broken, tupelo.Ntuple)
    with pytest.raises(tupelo.CorruptError, match=r"f\.root: ntuple 'Events'.*'x'.*checksum"):
        broken.arrays()
    careless = tupelo.open("f.root:Events", page_checksums=False)
    assert isinstance(careless, tupelo.Ntuple)
    assert careless["x"].array(library="np")[0] == 7.25


def test_skipped_fields_are_warned_about(ntuple: tupelo.Ntuple) -> None:
    class Core:
        path = "Events"
        warnings = ("field 'odd' is left out: column 3 has the unknown type 0x77",)

    with pytest.warns(tupelo.TupeloWarning, match=r"f\.root: ntuple 'Events': field 'odd' is left out"):
        tupelo.Ntuple(Core(), ntuple._location)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tupelo.open("f.root:Events")
