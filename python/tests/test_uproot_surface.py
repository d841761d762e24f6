"""Other attributes of uproot's files and modules."""

import importlib
import pickle
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo
import tupelo.uproot_compat as compat


def test_files_have_the_attributes_of_uproot(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    mine, theirs = compat.open(path), uproot.open(path)
    facts = "uuid", "hex_uuid", "root_version", "root_version_tuple", "is_64bit", "file_path"
    for fact in facts:
        assert str(getattr(mine.file, fact)) == str(getattr(theirs.file, fact)), fact
    assert repr(mine.file.compression) == repr(theirs.file.compression)
    assert mine.file.source.num_bytes == theirs.file.source.num_bytes == path.stat().st_size
    assert mine.cache_key == theirs.cache_key
    assert mine[name].cache_key.startswith(mine.file.hex_uuid)
    assert mine[name].source.file_path == str(path)
    mine.close()
    assert mine.file.uuid == theirs.file.uuid


def test_the_uuid_of_a_file_in_either_layout() -> None:
    with compat.recreate("small.root") as file:
        file["t"] = {"x": [1]}
    content = Path("small.root").read_bytes()
    mine, theirs = compat.open("small.root").file, uproot.open("small.root").file
    assert mine.uuid == theirs.uuid
    assert mine.uuid.bytes in content[:100]
    # As ROOT writes the header of a file over 2 GB.
    fields = content[8:12], *(content[at : at + 4].rjust(8, b"\0") for at in (12, 16)), content[20:33]
    version = (int.from_bytes(content[4:8], "big") + 1_000_000).to_bytes(4, "big")
    big = b"root" + version + b"".join(fields) + content[33:37] + content[37:41].rjust(8, b"\0") + content[41:63]
    Path("big.root").write_bytes(big + content[len(big) :])
    file = compat.open("big.root").file
    assert (file.uuid, file.is_64bit) == (mine.uuid, True)


def test_an_ntuple_is_not_a_tree() -> None:
    with compat.recreate("t.root") as file:
        file["t"] = {"x": [1]}
    ntuple = compat.open("t.root:t")
    assert not isinstance(ntuple, compat.TTree | compat.TBranch | compat.behaviors.TBranch.HasBranches)
    assert isinstance(ntuple, compat.behaviors.RNTuple.HasFields)
    assert isinstance(compat.open("t.root"), compat.ReadOnlyDirectory | compat.reading.ReadOnlyDirectory)


def test_modules_can_be_imported_by_uproots_names() -> None:
    names = {
        "behaviors.RNTuple": ["HasFields", "iterate", "concatenate"],
        "behaviors.TBranch": ["HasBranches", "TBranch", "Report", "iterate", "concatenate"],
        "behaviors.TTree": ["TTree"],
        "compression": ["Compression", "ZLIB", "LZMA", "LZ4", "ZSTD"],
        "exceptions": ["KeyInFileError"],
        "reading": ["open", "ReadOnlyFile", "ReadOnlyDirectory"],
        "source.futures": ["TrivialExecutor", "ThreadPoolExecutor"],
        "writing.writable": ["WritableDirectory", "WritableFile", "WritableNTuple", "WritableTree"],
    }
    for module, members in names.items():
        mine, theirs = (importlib.import_module(f"{package.__name__}.{module}") for package in (compat, uproot))
        for member in members:
            assert hasattr(theirs, member)
            assert getattr(mine, member) is not None
    assert compat.source.futures.TrivialExecutor().submit(pow, 2, 5).result() == 32


def test_open_has_the_defaults_of_uproot() -> None:
    assert dict(compat.open.defaults).keys() == uproot.open.defaults.keys()  # type: ignore[attr-defined]
    with compat.recreate("t.root") as file:
        file["t"] = {"x": [1]}
    opened = compat.open("t.root", **compat.open.defaults, timeout=5)  # type: ignore[attr-defined]
    assert opened.file.options["timeout"] == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("codec", [compat.ZLIB(1), compat.LZMA(9), compat.LZ4(4), compat.ZSTD(5)])
def test_codecs_equal_uproot(codec: compat.compression.Compression) -> None:
    theirs = getattr(uproot, codec.name)(codec.level)
    assert (repr(codec), codec.code, codec.code_pair) == (repr(theirs), theirs.code, theirs.code_pair)
    assert compat.compression.Compression.from_code(theirs.code) == codec
    with compat.recreate("codec.root", compression=codec) as file:
        assert file.compression == codec
    with pytest.raises(ValueError, match="unknown codec number 7: expected 1, 2, 4, 5"):
        compat.compression.Compression.from_code(705)
    assert compat.compression.Compression.from_code(0) is None


def test_files_ntuples_and_fields_can_be_pickled() -> None:
    with compat.recreate("t.root") as file:
        file["dir/t"] = {"x": [{"y": 1}, {"y": 2}]}
    directory = compat.open("t.root")
    for one in (directory, directory["dir"], directory["dir/t"], directory["dir/t"]["x"], directory["dir/t"]["x.y"]):
        again = pickle.loads(pickle.dumps(one))
        assert repr(again) == repr(one)
    assert pickle.loads(pickle.dumps(directory["dir/t"]))["x.y"].array().tolist() == [1, 2]


TYPES: list[tuple[Any, str]] = [
    (("int32", (2,)), "2 * int32"),
    (("f4", (3,)), "3 * float32"),
    (("int32", (2, 4, 1)), "2 * 4 * 1 * int32"),
    ("2i4", "2 * int32"),
    ("(2,3,4)f4", "2 * 3 * 4 * float32"),
    ("float", "float64"),
    (np.dtype("u1"), "uint8"),
    ("var * {x: int32, y: ?string}", "var * {x: int32, y: ?string}"),
    ({"x": "i4", "y": {"z": bool}}, "{x: int32, y: {z: bool}}"),
    (ak.types.NumpyType("int16"), "int16"),
]


@pytest.mark.parametrize(("declared", "expected"), TYPES, ids=[expected for _, expected in TYPES])
def test_types_are_parsed_like_uproot(declared: Any, expected: str) -> None:
    for module in (compat, uproot):
        with module.recreate("types.root") as file:
            file.mkrntuple("t", {"f": declared})
        with compat.open("types.root:t") as ntuple:
            assert str(ntuple["f"].array().type) == f"0 * {expected}"


@pytest.mark.parametrize("wrong", [np.dtype([("a", "f4")]), "i4, (2,3)f8", frozenset, np.complex64])
def test_invalid_types_are_type_errors(wrong: Any) -> None:
    with compat.recreate("types.root") as file, pytest.raises(TypeError, match="field 'f'"):
        file.mkrntuple("t", {"f": wrong})


def test_tuples_that_are_not_types_are_data() -> None:
    with compat.recreate("types.root") as file:
        file.mkrntuple("t", {"x": ("int32", "not a type")})
    assert compat.open("types.root:t")["x"].array().tolist() == ["int32", "not a type"]


def test_categories_are_written_as_their_values() -> None:
    import pandas as pd
    import pyarrow as pa

    for column in (
        ak.str.to_categorical(ak.Array(["a", "b", "a"])),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pd.DataFrame({"x": pd.Categorical(["a", "b", "a"])}),
    ):
        data = column if isinstance(column, pd.DataFrame) else {"x": column}
        for module in (compat, tupelo):
            with module.recreate("categories.root") as file:
                file["t"] = data
            assert uproot.open("categories.root:t")["x"].array().tolist() == ["a", "b", "a"]
    with compat.recreate("categories.root") as file:
        grown = file.mkrntuple("t", {"x": "string"})
        grown.extend({"x": ak.str.to_categorical(ak.Array(["c", "d", "c"]))})
    assert uproot.open("categories.root:t")["x"].array().tolist() == ["c", "d", "c"]


@pytest.mark.parametrize("module", [compat, tupelo], ids=["compat", "tupelo"])
def test_only_nullable_fields_are_optional(module: Any) -> None:
    """Regression: the members of optional tuples and records were optional too."""
    data = {
        "a": ak.Array([(1, 2.5), None, (3, 4.5)]),
        "b": ak.Array([[(1, 2.5), None], [], [(3, 4.5)]]),
        "c": ak.Array([{"x": 1, "y": [1.5]}, None, {"x": 2, "y": []}]),
        "d": ak.Array([(1, None), None, (3, 4.5)]),
    }
    with module.recreate("optional.root") as file:
        file["t"] = data
    with uproot.open("optional.root") as file:
        arrays = file["t"].arrays()
    types = {name: str(arrays[name].type).partition(" * ")[2] for name in data}
    assert types == {
        "a": "?(int64, float64)",
        "b": "var * ?(int64, float64)",
        "c": "var * {x: int64, y: var * float64}",
        "d": "?(int64, ?float64)",
    }
    assert [arrays[name].tolist() for name in "abd"] == [data[name].tolist() for name in "abd"]


def test_members_are_added_unless_the_record_is_ambiguous() -> None:
    with compat.recreate("add.root") as file:
        file["t"] = ak.Array([{"a": {"x": 1.0}, "b": {"a": {"y": 2.0}, "c": {"z": 1}}}])
    with compat.update("add.root") as file:
        with pytest.raises(ValueError, match="ambiguous"):
            file["t"].add_fields({"a.new": np.float32})
        file["t"].add_fields({"b.a.new": np.float32})
        file["t"].add_fields({"c.new": np.int32})
    assert {"b.a.new", "b.c.new"} <= set(uproot.open("add.root:t").keys())


def test_arrays_and_variants_of_records_are_written_with_a_warning() -> None:
    """uproot and Tupelo read them; ROOT does not."""
    records = ak.to_regular(ak.Array([[{"x": 1}, {"x": 2}], [{"x": 3}, {"x": 4}]]), axis=1)
    either = ak.Array([{"a": 1}, "two"])
    with compat.recreate("records.root") as file, pytest.warns(tupelo.TupeloWarning, match="'either', 'records'"):
        file["t"] = {"records": records, "either": either}
    for module in (compat, uproot):
        arrays = module.open("records.root:t").arrays()
        assert arrays.records.tolist() == records.tolist()
        assert arrays.either.tolist() == either.tolist()
    with tupelo.recreate("native.root") as file, pytest.raises(tupelo.UnsupportedError, match=r"ak\.from_regular"):
        file["t"] = {"records": records}
