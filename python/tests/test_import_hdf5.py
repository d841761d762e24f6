"""`tupelo.import_hdf5`."""

import os
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tupelo


def test_a_compound_dataset_has_a_field_for_each_member() -> None:
    dtype = np.dtype(
        [
            ("n", ">i4"),
            ("flag", bool),
            ("name", "S4"),
            ("p.t", "f4", (2,)),
            ("hits", h5py.vlen_dtype("u2")),
            ("text", h5py.string_dtype()),
            ("inner", [("x", "f8"), ("y", "i1")]),
        ]
    )
    table = np.zeros(3, dtype)
    table["n"] = [1, -2, 3]
    table["flag"] = [True, False, True]
    table["name"] = [b"ab", b"", "é".encode()]
    table["p.t"] = [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]
    for entry, hits in enumerate([[1, 2], [], [65535]]):
        table["hits"][entry] = np.array(hits, "u2")
    table["text"] = ["a", "bé", ""]
    table["inner"]["x"] = [0.25, 0.5, 0.75]
    with h5py.File("in.h5", "w") as file:
        file["group/table"] = table
    assert tupelo.import_hdf5("in.h5", "out.root", dataset="group/table", rename={"n": "number"}) == 3
    ntuple = tupelo.open("out.root:table")
    assert ntuple.typenames(recursive=False) == {
        "number": "std::int32_t",
        "flag": "bool",
        "name": "std::string",
        "p_t": "std::array<float,2>",
        "hits": "std::vector<std::uint16_t>",
        "text": "std::string",
        "inner": "struct",
    }
    first, second, third = ntuple.arrays().tolist()
    assert first == {
        "number": 1,
        "flag": True,
        "name": "ab",
        "p_t": [0.5, 1.5],
        "hits": [1, 2],
        "text": "a",
        "inner": {"x": 0.25, "y": 0},
    }
    assert (second["hits"], second["text"], third["name"], third["hits"]) == ([], "bé", "é", [65535])


def test_the_datasets_of_a_group_are_the_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    from tupelo._many import hdf5

    monkeypatch.setattr(hdf5, "_PART_BYTES", 1000)
    entries = 700
    numbers = np.arange(entries)
    matrix = np.arange(entries * 6, dtype="f4").reshape(entries, 3, 2)
    with h5py.File("columns.h5", "w") as file:
        file.create_dataset("n", data=numbers, chunks=(64,), compression="gzip")
        file["matrix"] = matrix
        file.create_dataset("half", data=numbers.astype("f2"))
        jagged = file.create_dataset("jagged", entries, h5py.vlen_dtype("f8"))
        for entry in range(0, entries, 2):
            jagged[entry] = np.full(entry % 5, entry / 2)
    seen: list[tuple[int, int]] = []
    report = tupelo.import_hdf5(
        "columns.h5", "out.root", compression="lz4", progress=lambda done, total: seen.append((done, total))
    )
    assert report == entries
    assert (seen[0], seen[-1]) == ((0, entries), (entries, entries))
    assert len(seen) > 10
    arrays = tupelo.open("out.root:columns").arrays()
    assert arrays["n"].tolist() == numbers.tolist()
    assert arrays["matrix"].tolist() == matrix.tolist()
    assert arrays["half"].tolist() == numbers.astype("f2").tolist()
    expected: list[list[float]] = [[] if entry % 2 else [entry / 2] * (entry % 5) for entry in range(entries)]
    assert arrays["jagged"].tolist() == expected


def test_what_is_no_column_is_left_out_with_a_warning() -> None:
    with h5py.File("in.h5", "w") as file:
        file["n"] = [1, 2]
        file["version"] = 3
        file["below/x"] = [1.0]
    with pytest.warns(tupelo.TupeloWarning) as warned:
        assert tupelo.import_hdf5("in.h5", "out.root") == 2
    texts = sorted(str(one.message) for one in warned)
    assert "group 'below' is left out; dataset= chooses a group" in texts[0]
    assert "scalar dataset 'version' is left out" in texts[1]
    assert tupelo.import_hdf5("in.h5", "out.root", dataset="below", name="Events") == 1
    assert tupelo.open("out.root:Events").arrays().tolist() == [{"x": 1.0}]


def test_empty_and_enumerated_datasets() -> None:
    colours = h5py.enum_dtype({"red": 1, "green": 2}, basetype="i2")
    with h5py.File("in.h5", "w") as file:
        file["colour"] = np.array([2, 1], colours)
        file.create_group("empty").create_dataset("x", (0, 2), "f8")
    with pytest.warns(tupelo.TupeloWarning, match=r"in\.h5: /colour: .* without their labels 'green', 'red'"):
        assert tupelo.import_hdf5("in.h5", "out.root", dataset="colour") == 2
    assert tupelo.open("out.root:colour").arrays(library="np")["colour"].tolist() == [2, 1]
    assert tupelo.import_hdf5("in.h5", "out.root", dataset="empty") == 0
    assert tupelo.open("out.root:empty").typenames() == {"x": "std::array<double,2>"}


@pytest.mark.parametrize(
    ("content", "options", "error", "text"),
    [
        ({"a": [1, 2], "b": [1]}, {}, tupelo.InvalidArgumentError, "'/a' has 2 entries, but '/b' has 1"),
        ({"z": np.zeros(2, "c16")}, {}, tupelo.UnsupportedError, "/z: an ntuple cannot store the HDF5 type complex128"),
        ({"v": np.zeros(2, "V3")}, {}, tupelo.UnsupportedError, "/v: an ntuple cannot store the HDF5 type"),
        ({"x": np.zeros((2, 0))}, {}, tupelo.UnsupportedError, "/x: an ntuple cannot store arrays of no items"),
        ({"a": [1]}, {"dataset": "b"}, tupelo.NotFoundError, "in.h5: no dataset or group 'b'; the file has 'a'"),
        ({"a": [1]}, {"rename": {"b": "c"}}, tupelo.InvalidArgumentError, "no column 'b' to rename"),
        ({"a.b": [1], "a_b": [2]}, {}, tupelo.InvalidArgumentError, "two fields would have the name 'a_b'"),
        ({"a": 1}, {"dataset": "a"}, tupelo.InvalidArgumentError, "no dimension that could be the entries"),
    ],
)
def test_refusals(content: dict[str, Any], options: dict[str, Any], error: type[Exception], text: str) -> None:
    with h5py.File("in.h5", "w") as file:
        for name, values in content.items():
            file[name] = values
    with pytest.raises(error) as raised:
        tupelo.import_hdf5("in.h5", "out.root", **options)
    assert text in str(raised.value)
    assert not Path("out.root").exists()


def test_files_that_are_not_whole_hdf5_files() -> None:
    with pytest.raises(tupelo.MissingFileError):
        tupelo.import_hdf5("missing.h5", "out.root")
    Path("text.h5").write_text("no HDF5")
    with pytest.raises(tupelo.OtherFormatError, match="not an HDF5 file"):
        tupelo.import_hdf5("text.h5", "out.root")
    with h5py.File("whole.h5", "w") as file:
        file["n"] = np.arange(10_000)
    Path("cut.h5").write_bytes(Path("whole.h5").read_bytes()[:3000])
    with pytest.raises(tupelo.CorruptError, match="damaged"):
        tupelo.import_hdf5("cut.h5", "out.root")
    with h5py.File("latin.h5", "w") as file:
        file["text"] = np.array([b"\xe9"], "S1")
    with pytest.raises(tupelo.CorruptError, match="column 'text', entries 0 to 0"):
        tupelo.import_hdf5("latin.h5", "out.root")
    assert not Path("out.root").exists()


def test_other_files_are_refused_unless_they_are_allowed() -> None:
    """Regression: a file made the reader read any file of the machine."""
    with h5py.File("other.h5", "w") as file:
        file["x"] = [1, 2]
    Path("secret").write_bytes(b"secret!!")
    layout = h5py.VirtualLayout(2, "i8")
    layout[:] = h5py.VirtualSource("other.h5", "x", 2)
    hidden = h5py.VirtualLayout(2, "i8")
    hidden[:] = h5py.VirtualSource(".", "external/x", 2)
    with h5py.File("in.h5", "w") as file:
        file.create_dataset("raw/x", 8, "u1", external=[("secret", 0, 8)])
        file["link/x"] = h5py.ExternalLink("other.h5", "x")
        file["soft/x"] = h5py.SoftLink("/link/x")
        file.create_group("view").create_virtual_dataset("x", layout)
        file["external"] = h5py.ExternalLink("other.h5", "/")
        file.create_group("hidden").create_virtual_dataset("x", hidden)
    for dataset, text in {
        "raw": "'/raw/x' has its values in another file, 'secret'",
        "link/x": "'/link/x' is in another file, 'other.h5'",
        "soft": "'/link/x' is in another file, 'other.h5'",
        "view": "'/view/x' is a view of another file, 'other.h5'",
        "external/x": "'/external' is in another file, 'other.h5'",
        "hidden": "'/external' is in another file, 'other.h5'",
    }.items():
        with pytest.raises(tupelo.UnsupportedError, match=f"{text}; allow_external=True"):
            tupelo.import_hdf5("in.h5", "out.root", dataset=dataset)
        assert not Path("out.root").exists()
        count = tupelo.import_hdf5("in.h5", "out.root", dataset=dataset, name="n", allow_external=True)
        wanted = list(b"secret!!") if dataset == "raw" else [1, 2]
        assert tupelo.open("out.root:n").arrays().x.tolist() == wanted[:count]
        Path("out.root").unlink()


def test_pipes_and_devices_are_refused() -> None:
    """Regression: a pipe was waited for."""
    os.mkfifo("pipe")
    for source in ("pipe", "/dev/zero", "."):
        with pytest.raises(tupelo.UnsupportedError, match="not a regular file"):
            tupelo.import_hdf5(source, "out.root")
    with h5py.File("in.h5", "w") as file:
        file.create_dataset("x", 8, "u1", external=[("pipe", 0, 8)])
    with pytest.raises(tupelo.UnsupportedError, match="'pipe' is not a regular file"):
        tupelo.import_hdf5("in.h5", "out.root", allow_external=True)


def test_values_that_are_not_stored() -> None:
    """Regression: a file of a few bytes made the reader write petabytes."""
    with h5py.File("in.h5", "w") as file:
        file.create_dataset("filled/x", 2**40, "f8", chunks=2**16, fillvalue=1.5)
        file.create_dataset("small/x", 1000, "f8", chunks=100, fillvalue=1.5)
        file.create_dataset("late/x", 2**40, "f8")
        file.create_dataset("wide/x", (1, 2**28), "f8")
        file.create_dataset("chunk/x", 2**29, "f4", chunks=2**29)
        layout = h5py.VirtualLayout(2**40, "f8", maxshape=(None,))
        layout[:10] = h5py.VirtualSource(".", "small/x", 1000)[:10]
        file.create_group("view").create_virtual_dataset("x", layout)
    for dataset in ("filled", "late", "view"):
        with pytest.raises(tupelo.LimitError, match=r"values take \d+ bytes, but only \d+ bytes are stored"):
            tupelo.import_hdf5("in.h5", "out.root", dataset=dataset)
    for dataset, what in {"wide": "an entry", "chunk": "a chunk"}.items():
        with pytest.raises(tupelo.LimitError, match=f"{what} takes 2147483648 bytes of memory"):
            tupelo.import_hdf5("in.h5", "out.root", dataset=dataset)
    assert tupelo.import_hdf5("in.h5", "out.root", dataset="small") == 1000
    with h5py.File("more.h5", "w") as file:
        file.create_dataset("x", 10_000_000, "f8", chunks=2**16)
    with pytest.raises(tupelo.LimitError, match="allow_sparse=True"):
        tupelo.import_hdf5("more.h5", "out.root")
    assert tupelo.import_hdf5("more.h5", "out.root", allow_sparse=True) == 10_000_000


def test_values_that_are_stored_once_for_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: many entries that refer to one long list took as much memory as they like."""
    with h5py.File("in.h5", "w") as file:
        hits = file.create_dataset("hits", 1000, h5py.vlen_dtype("u1"), chunks=1000)
        hits[0] = np.arange(100_000) % 256
        place = hits.id.read_direct_chunk((0,))[1][:16]
        hits.id.write_direct_chunk((0,), place * 1000)
    with pytest.raises(tupelo.LimitError, match="its values of variable length take more bytes than the file has"):
        tupelo.import_hdf5("in.h5", "out.root")
    assert tupelo.import_hdf5("in.h5", "out.root", allow_sparse=True) == 1000
    monkeypatch.setattr("tupelo._many.hdf5._PART_BYTES", 1000)
    with h5py.File("in.h5", "w") as file:
        texts = ["a" * (i % 400) for i in range(500)]
        file["text"] = texts
    assert tupelo.import_hdf5("in.h5", "out.root", name="n") == 500
    assert tupelo.open("out.root:n").arrays().text.tolist() == texts


def test_links() -> None:
    with h5py.File("in.h5", "w") as file:
        file["a/x"] = [1]
        file["a/lost"] = h5py.SoftLink("/nowhere")
        file["b"] = h5py.SoftLink("a")
        file["loop"] = h5py.SoftLink("loop")
        file["0"] = file["/"]
        for level in range(1, 10):
            # Each goes a hundred times through the one before.
            file[str(level)] = h5py.SoftLink("/".join([str(level - 1)] * 100))
    with pytest.warns(tupelo.TupeloWarning, match="the dangling link 'lost' is left out"):
        assert tupelo.import_hdf5("in.h5", "out.root", dataset="b/.") == 1
    for dataset in ("loop", "9"):
        with pytest.raises(tupelo.CorruptError, match="too many links"):
            tupelo.import_hdf5("in.h5", "out.root", dataset=dataset)


def test_errors_of_h5py_name_file_and_dataset() -> None:
    with h5py.File("in.h5", "w") as file:
        data = file.create_dataset("x", 1000, "f8", chunks=100, compression="gzip")
        data[:] = np.arange(1000)
        place = data.id.get_chunk_info(3)
    content = bytearray(Path("in.h5").read_bytes())
    content[place.byte_offset : place.byte_offset + 8] = b"\xff" * 8
    Path("in.h5").write_bytes(content)
    with pytest.raises(tupelo.CorruptError, match=r"in\.h5: dataset '/x', column 'x', entries 0 to 999: "):
        tupelo.import_hdf5("in.h5", "out.root")
    assert not Path("out.root").exists()


def test_h5py_is_loaded_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"import_hdf5 needs h5py.*pip install h5py"):
        tupelo.import_hdf5("in.h5", "out.root")


def test_large_chunks_are_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: a chunk above the cache of HDF5 was decompressed for each part of 16384 entries, in minutes."""
    values = np.arange(1 << 21, dtype="float32")
    with h5py.File(tmp_path / "big.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=values.shape, compression="gzip")
        file.create_dataset("y", data=np.zeros((1 << 21, 2), "int8"), chunks=(1 << 21, 1), compression="gzip")
    opened = []
    open_dataset = h5py.h5d.open

    def noted(*arguments: Any) -> Any:
        opened.append(arguments[2].get_chunk_cache()[1] if len(arguments) > 2 else None)
        return open_dataset(*arguments)

    monkeypatch.setattr(h5py.h5d, "open", noted)
    assert tupelo.import_hdf5(tmp_path / "big.h5", tmp_path / "big.root", name="n") == 1 << 21
    assert [size for size in opened if size is not None] == [1 << 23, 1 << 22]
    with tupelo.open(f"{tmp_path}/big.root:n") as ntuple:
        assert (ntuple["x"].array(library="np") == values).all()


def test_columns_are_left_out(tmp_path: Path) -> None:
    """Without that, one dataset of a type that ntuples do not have refused the whole group."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"], file["z"] = [1, 2], np.array([1j, 2j])
        file["both"] = np.array([(1, 1j)], [("a", "i4"), ("b", "c16")])
    with pytest.raises(tupelo.UnsupportedError, match=r"complex128; exclude= leaves it out"):
        tupelo.import_hdf5(tmp_path / "x.h5", tmp_path / "x.root", exclude="both")
    assert tupelo.import_hdf5(tmp_path / "x.h5", tmp_path / "x.root", name="n", exclude=["both", "z"]) == 2
    assert tupelo.open(f"{tmp_path}/x.root:n").keys() == ["x"]
    assert tupelo.import_hdf5(tmp_path / "x.h5", tmp_path / "x.root", dataset="both", exclude="b") == 1
    for exclude, match in (
        (["b", "no"], "no dataset or member 'no' to exclude"),
        (["a", "b"], "leaves nothing to import"),
    ):
        with pytest.raises((tupelo.NotFoundError, tupelo.InvalidArgumentError), match=match):
            tupelo.import_hdf5(tmp_path / "x.h5", tmp_path / "x.root", dataset="both", exclude=exclude)
