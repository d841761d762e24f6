"""Documented differences of `tupelo.uproot_compat` from uproot."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo
import tupelo.uproot_compat as compat


@pytest.fixture
def events() -> Any:
    with compat.recreate("events.root") as file:
        file["Events"] = {"x": np.arange(6.0), "jets": [[{"pt": 0.5 * i}] * (i % 3) for i in range(6)]}
    return compat.open("events.root:Events")


def test_cuts_and_expressions_are_applied(events: Any) -> None:
    assert events.arrays(["x"], cut="x > 3").x.tolist() == [4.0, 5.0]
    assert events.arrays(["double", "x"], aliases={"double": "x * 2"}).fields == ["x", "double"]
    got = events.arrays("sum(jets.pt) + x", entry_start=4)
    assert got["sum(jets.pt) + x"].tolist() == [6.0, 10.0]
    pieces = list(events.iterate("x", cut="x > 3", step_size=4, report=True))
    assert [(piece.x.tolist(), report.start, report.stop) for piece, report in pieces] == [
        ([], 0, 4),
        ([4.0, 5.0], 4, 6),
    ]
    frame = compat.concatenate(["events.root:Events"] * 2, "x", cut="x > 4", library="pd")
    assert (list(frame.index), list(frame.x)) == ([5, 11], [5.0, 5.0])


def test_zip_works(events: Any) -> None:
    assert events.arrays(how="zip").fields == ["jets", "x"]


REFUSED: list[tuple[type[Exception], str, Callable[[Any], object]]] = [
    (compat.KeyInFileError, "nothing", lambda n: n["nothing"]),
    (KeyError, "y", lambda n: n.arrays("y")),
    (KeyError, "none of 3 fields matches", lambda n: n.arrays(filter_name="y*")),
    (tupelo.UnsupportedError, "backend='cuda'", lambda n: n.arrays(backend="cuda")),
    (tupelo.UnsupportedError, "interpreter='gpu'", lambda n: n["x"].array(interpreter="gpu")),
    (tupelo.UnsupportedError, "language", lambda n: next(n.iterate(language="C++"))),
    (TypeError, "unexpected keyword argument 'colour'", lambda n: n.arrays(colour=1)),
    (ValueError, "library 'pl'", lambda n: n.arrays(library="pl")),
    (ValueError, "cannot be used with 'virtual=True'", lambda n: n.arrays(virtual=True, library="pandas")),
    (ValueError, "both", lambda n: n.arrays("x", filter_name="x")),
    (TypeError, "filter_field", lambda n: n.keys(filter_field="x")),
    (TypeError, "expected a filter as", lambda n: n.keys(filter_name=5)),
    (TypeError, "integer or a string", lambda n: n[1.5]),
    (tupelo.UnsupportedError, "handler", lambda n: compat.open("events.root", handler=object)),
    (tupelo.UnsupportedError, "tupelo.dask_dataframe", lambda n: compat.dask("events.root", library="np")),
    (TypeError, "not both", lambda n: compat.dask("events.root", steps_per_file=3, step_size=2)),
    (
        TypeError,
        "cannot be combined with files that have 'steps'",
        lambda n: compat.dask({"events.root": {"steps": [[0, 2]]}}, steps_per_file=3),
    ),
    (tupelo.UnsupportedError, "xyz://a/b.root: its scheme is", lambda n: compat.open("xyz://a/b.root")),
    (tupelo.UnsupportedError, "its scheme is", lambda n: compat.open({"xyz://a/b.root": "Events"})),
    (FileExistsError, "already exists", lambda n: compat.create("events.root")),
    (TypeError, "'chunk'", lambda n: compat.recreate("other.root", chunk=1)),
]


@pytest.mark.parametrize(("kind", "text", "call"), REFUSED, ids=[text for _, text, _ in REFUSED])
def test_invalid_arguments_are_rejected(
    events: Any, kind: type[Exception], text: str, call: Callable[[Any], object]
) -> None:
    with pytest.raises(kind) as caught:
        call(events)
    assert text in str(caught.value)


def test_options_without_effect_are_accepted(events: Any) -> None:
    file = compat.open("events.root", object_cache=None, array_cache="10 MB", num_workers=4, timeout=30, handler=None)
    assert file["Events"].arrays(array_cache=None, decompression_executor=None, backend="cpu").tolist() == (
        events.arrays().tolist()
    )


def test_a_file_can_be_read_while_it_is_written() -> None:
    """Regression: nothing was visible before the file was closed."""
    with compat.recreate("kept.root", compression=compat.ZLIB(1)) as file:
        file["a"] = {"x": [1]}
        grown = file.mkrntuple("dir/b", {"x": np.int32})
        for reader in (compat, uproot):
            with reader.open("kept.root") as seen:
                assert (seen["a"]["x"].array().tolist(), seen["dir/b"].num_entries) == ([1], 0)
        for count in (1, 2):
            grown.extend({"x": [7]})
            assert uproot.open("kept.root:dir/b").num_entries == compat.open("kept.root:dir/b").num_entries == count
        grown.add_fields({"y": np.float64})
        assert uproot.open("kept.root:dir/b")["y"].array().tolist() == [0.0, 0.0]
    assert compat.open("kept.root").keys(cycle=False) == ["a", "dir", "dir/b"]


def test_data_written_before_an_exception_are_kept() -> None:
    with compat.recreate("kept.root") as file:
        file["a"] = {"x": [1]}

    def fail() -> None:
        with compat.recreate("kept.root", compression=None) as file:
            file["b"] = {"x": [1, 2]}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    for reader in (compat, uproot):
        assert reader.open("kept.root").keys(cycle=False) == ["b"]
        assert reader.open("kept.root:b").num_entries == 2


def test_an_unclosed_file_is_complete() -> None:
    """Regression: a script that did not close its file left none."""
    code = (
        "import tupelo.uproot_compat as uproot, sys\n"
        "file = uproot.recreate('left.root')\n"
        "file['A'] = {'x': [1, 2]}\n"
        "file.mkrntuple('B', {'y': 'int32'}).extend({'y': [7]})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for reader in (compat, uproot):
        with reader.open("left.root") as file:
            assert (file["A"]["x"].array().tolist(), file["B"]["y"].array().tolist()) == ([1, 2], [7])
    assert [path.name for path in Path().iterdir()] == ["left.root"]


def test_sizes_of_collections_are_signed() -> None:
    """Regression: they were unsigned, so differences wrapped around."""
    with tupelo.recreate("sizes.root") as file:
        made = file.mkrntuple("Events", {"j": "std::vector<int>"}, projections={"n": "#j"})
        made.extend({"j": [[1], [], [2, 3]]})
    events = compat.open("sizes.root:Events")
    assert (events.arrays().n - 3).tolist() == [-2, -3, -1]
    assert (events.arrays(virtual=True).n - 3).tolist() == [-2, -3, -1]
    assert events.arrays(virtual=True).type == events.arrays().type
    assert (next(events.iterate("n")).n - 3).tolist() == [-2, -3, -1]
    assert (events["n"].array() - 3).tolist() == [-2, -3, -1]
    for library in ("np", "pd"):
        assert (events["n"].array(library=library) - 3).tolist() == [-2, -3, -1]
        assert (events.arrays("n", library=library)["n"] - 3).tolist() == [-2, -3, -1]


def test_empty_columns_have_no_type() -> None:
    with compat.recreate("e.root") as file, pytest.raises(tupelo.InvalidArgumentError, match="field 'x' has no values"):
        file["t"] = {"x": []}


def test_the_codec_of_an_open_file_can_be_changed() -> None:
    """Regression: setting it had no effect."""
    zeros = {"x": np.zeros(100_000)}
    with compat.recreate("codec.root") as file:
        file["small"] = zeros
        file.compression = None
        file["large"] = zeros
        file.file.compression = compat.LZ4(4)
        file["lz4"] = zeros
    with tupelo.open("codec.root") as opened:
        codecs = {name: opened[name]._core.sizes()[1][2] for name in opened}
    assert codecs == {"small": "zstd:5", "large": "none", "lz4": "lz4:4"}


def test_unsupported_writes_are_rejected() -> None:
    with compat.recreate("writing.root", compression=compat.ZSTD(3)) as file:
        sub = file.mkdir("dir")
        sub["a"] = {"x": [1]}
        assert (sub.path, sub.keys(), file.keys(cycle=False)) == (("dir",), ["a;1"], ["dir", "dir/a"])
        with pytest.raises(tupelo.UnsupportedError, match="counter_name"):
            file.mktree("t", {"x": "i4"}, counter_name=str.upper)
        with pytest.raises(tupelo.UnsupportedError, match="cannot be deleted"):
            del file["dir/a"]
        with pytest.raises(KeyError, match="nothing"):
            del file["nothing"]
        with pytest.raises(tupelo.InvalidArgumentError, match="is not a record"):
            file["dir/a"].add_fields({"x.y": np.int32})
        with pytest.raises(tupelo.InvalidArgumentError, match="neither a NumPy or Awkward type nor a column"):
            file.mkrntuple("b", {"x": "colour"})


def test_descriptions_are_written_and_read_by_uproot() -> None:
    data = ak.Array({"x": [1, 2], "r": [{"a": 1}, {"a": 2}]})
    data.layout.parameters["__doc__"] = "everything"
    data.layout.contents[0].parameters["__doc__"] = "a number"
    data.layout.contents[1].contents[0].parameters["__doc__"] = "a member"
    for module in (uproot, compat):
        with module.recreate("described.root") as file:
            file.mkrntuple("a", data)
        for reader in (uproot, compat):
            with reader.open("described.root") as file:
                ntuple = file["a"]
                texts = [ntuple.description, ntuple["x"].description, ntuple["r.a"].description]
                assert texts == ["everything", "a number", "a member"]
                assert ntuple.arrays(ak_add_doc=True).layout.parameters == {"__doc__": "everything"}


def test_damage_is_found() -> None:
    with compat.recreate("damaged.root", compression=None) as file:
        file["a"] = {"x": np.full(1000, 0xEFEFEFEFEFEFEFEF, dtype="u8")}
    content = bytearray(Path("damaged.root").read_bytes())
    content[content.index(b"\xef" * 8000)] ^= 1
    Path("damaged.root").write_bytes(content)
    with pytest.raises(tupelo.CorruptError):
        compat.open("damaged.root:a").arrays()
    assert len(uproot.open("damaged.root:a").arrays()) == 1000


def test_a_file_may_be_opened_again_while_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: it was an error, although each write is kept here."""
    first = compat.recreate("f.root")
    first["A"] = {"x": [1]}
    second = compat.recreate("f.root")
    second["B"] = {"x": [2]}
    third = compat.update("f.root")
    third["B"].extend({"x": [3]})
    third["A"] = {"x": [4]}
    third["A"] = {"x": [5]}
    for earlier in (first, second):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"was finished when (recreate|update)"):
            earlier["C"] = {"x": [1]}
        earlier.close()
    third.close()
    with compat.open("f.root") as file:
        assert file.keys(cycle=False) == ["B", "A"]
        assert (file["B"]["x"].array().tolist(), file["A"]["x"].array().tolist()) == ([2, 3], [5])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("end", ["sys.exit(0)", "sys.exit(1)", "1 / 0", ""])
def test_written_data_survive_any_exit(end: str) -> None:
    script = f"""
import sys
import tupelo.uproot_compat as uproot
with uproot.recreate("f.root") as file:
    file["A"] = {{"x": [1]}}
    {end}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "tupelo:" not in done.stderr
    assert compat.open("f.root:A")["x"].array().tolist() == [1]


@pytest.mark.parametrize("codec", [uproot.ZSTD(4), uproot.LZ4(9), uproot.ZLIB(1), uproot.LZMA(2)])
def test_codecs_of_uproot_are_accepted(codec: Any) -> None:
    """Regression: they were strings such as "ZSTD(4)", which are not codec names."""
    with compat.recreate("f.root", compression=codec) as file:
        assert repr(file.compression) == repr(codec)
        file.compression = uproot.ZLIB(0)
        file.compression = codec
        file["A"] = {"x": np.zeros(1000)}
    assert compat.open("f.root:A")["x"].array().tolist() == [0.0] * 1000
