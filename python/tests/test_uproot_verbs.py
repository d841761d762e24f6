"""Every method of uproot for ntuples, compared with uproot on every RNTuple of the real files.

`tupelo.uproot_compat` must give the same results as uproot; `tupelo` must give equivalent ones.
"""

import io
import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

import tupelo
import tupelo.uproot_compat as compat

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FILTERS: list[dict[str, Any]] = [
    {},
    {"recursive": False},
    {"full_paths": False},
    {"full_paths": False, "ignore_duplicates": True},
    {"filter_name": "*pt*"},
    {"filter_name": "/.*e.*/i"},
    {"filter_name": ["*eta", lambda name: len(name) == 3]},
    {"filter_typename": "/std::vector.*/"},
    {"filter_field": lambda field: len(field.name) > 4},
]
FEW = 25
"""Maximum number of fields to read from the widest ntuple, because uproot is slow."""


@cache
def theirs(path: Path, name: str) -> Any:
    return uproot.open(path)[name]


@cache
def their_arrays(path: Path, name: str) -> Any:
    return without_collections(theirs(path, name).arrays())


def is_listed(key: str) -> bool:
    """Whether a field is not an imported collection, which only uproot lists."""
    return not key.startswith("_collection")


def without_collections(arrays: Any) -> Any:
    return arrays[[name for name in arrays.fields if is_listed(name)]]


@cache
def ours(path: Path, name: str) -> Any:
    return compat.open(path)[name]


def type_text(array: Any) -> str:
    """The type without intended differences: `char` is signed, and sizes have a special type."""
    return str(array.type).replace("uint8", "int8").replace("int64", "uint32")


def top(path: Path, name: str) -> list[str]:
    return list(filter(is_listed, theirs(path, name).keys(recursive=False)))[:FEW]


def test_files(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    with uproot.open(path) as their_file, compat.open(path) as our_file:
        for cycle in (True, False):
            assert our_file.keys(cycle=cycle) == their_file.keys(cycle=cycle)
            assert our_file.classnames(cycle=cycle) == their_file.classnames(cycle=cycle)
        assert our_file.keys(filter_classname="ROOT::RNTuple") == their_file.keys(filter_classname="ROOT::RNTuple")
        assert (name in our_file, "nothing" in our_file) == (True, False)
        assert our_file[name].num_entries == their_file[name].num_entries
        assert our_file.file_path == their_file.file_path
    for place in (f"{path}:{name}", {str(path): name}, {path: name}):
        assert compat.open(place).name == uproot.open(place).name
    with path.open("rb") as stream:
        assert compat.open(stream)[name].num_entries == theirs(path, name).num_entries


def test_names(real_ntuple: tuple[Path, str]) -> None:
    left, right = ours(*real_ntuple), theirs(*real_ntuple)
    # Without their paths, members of imported collections look like their projections.
    for which in FILTERS if all(map(is_listed, right.keys())) else FILTERS[:2]:
        assert left.keys(**which) == list(filter(is_listed, right.keys(**which)))
        typed = {key: value for key, value in which.items() if key != "ignore_duplicates"}
        types = {key: kind for key, kind in right.typenames(**typed).items() if is_listed(key)}
        assert left.typenames(**typed) == types
    shown = [field.name for field in right if is_listed(field.name)]
    assert (left.name, left.description, len(left)) == (right.name, right.description, len(shown))
    completions = list(filter(is_listed, right._ipython_key_completions_()))
    assert list(left._ipython_key_completions_()) == completions
    paths = [field.path for field in right.itervalues()]
    assert [field.path for field in left.itervalues()] == list(filter(is_listed, paths))
    assert [field.name for field in left] == shown
    for text in list(filter(is_listed, right.keys()))[:200]:
        for key in (text, text.replace(".", "/"), text.replace(".", "\\")):
            found, expected = left[key], right[key]
            assert (found.path, found.typename, found.description) == (
                expected.path,
                expected.typename,
                expected.description,
            )
            assert found.keys() == expected.keys()
    with pytest.raises(KeyError):
        left["no such field"]


def test_show(real_ntuple: tuple[Path, str]) -> None:
    for which in ({}, {"recursive": False}, {"filter_name": "*e*"}, {"max_width": 30}):
        left, right = io.StringIO(), io.StringIO()
        ours(*real_ntuple).show(stream=left, **which)
        theirs(*real_ntuple).show(stream=right, **which)
        if all(map(is_listed, theirs(*real_ntuple).keys())):
            assert left.getvalue() == right.getvalue()
        assert "_collection" not in left.getvalue()


def test_arrays(real_ntuple: tuple[Path, str]) -> None:
    left, right = ours(*real_ntuple).arrays(), their_arrays(*real_ntuple)
    assert left.fields == right.fields
    for name in right.fields:
        assert type_text(left[name]) == type_text(right[name])
        assert repr(left[name].tolist()) == repr(right[name].tolist()), name


def test_ranges_filters_and_expressions(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    left, right, names = ours(path, name), theirs(path, name), top(path, name)
    choices: list[dict[str, Any]] = [
        {"filter_name": names, "entry_start": 2, "entry_stop": -1},
        {"filter_name": names[0], "entry_stop": 3},
        {"expressions": names[:3], "entry_start": -2},
        {"filter_field": lambda field: field.path in names[-2:]},
    ]
    for which in choices:
        got, expected = left.arrays(**which), without_collections(right.arrays(**which))
        assert got.fields == expected.fields
        assert repr(got.tolist()) == repr(expected.tolist())


def test_subfields(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    left, right = ours(path, name), theirs(path, name)
    for key in [key for key in right.typenames() if "." in key and is_listed(key)][:FEW]:
        assert repr(left[key].array().tolist()) == repr(right[key].array().tolist()), key
        got, expected = left.arrays(filter_name=[key]), right.arrays(filter_name=[key])
        assert repr(got.tolist()) == repr(expected.tolist()), key


def parameters(form: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if form.is_union:
        return
    yield path, dict(form.parameters)
    if form.is_record:
        for name, content in zip(form.fields, form.contents, strict=True):
            yield from parameters(content, f"{path}.{name}")
    elif not (form.is_numpy or form.is_unknown):
        yield from parameters(form.content, path + "[]")


@pytest.mark.parametrize("doc", [False, True, {"typename": "typename"}, {"__doc__": "description"}])
def test_parameters(real_ntuple: tuple[Path, str], doc: Any) -> None:
    path, name = real_ntuple
    which = {"filter_name": top(path, name), "ak_add_doc": doc}
    right, left = theirs(path, name).to_akform(**which)[0], ours(path, name).to_akform(**which)[0]
    expected, got = dict(parameters(right)), dict(parameters(left))
    assert got == {key: value for key, value in expected.items() if is_listed(key.removeprefix("."))}
    assert ours(path, name).arrays(entry_stop=1, **which).layout.form == left


def test_libraries_and_how(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    left, right = ours(path, name), theirs(path, name)
    # Fields with equal NumPy arrays; see the differences in `tupelo.uproot_compat`.
    flat = [key for key in top(path, name) if right[key].typename in ("float", "double", "std::int32_t", "bool")]
    if not flat:
        return
    for library in ("np", "numpy", "NumPy"):
        got, expected = left.arrays(flat, library=library), right.arrays(flat, library=library)
        assert list(got) == list(expected)
        for key in flat:
            np.testing.assert_array_equal(got[key], expected[key])
            np.testing.assert_array_equal(left[key].array(library=library), expected[key])
    got, expected = left.arrays(flat, library="pd", entry_start=1), right.arrays(flat, library="pd", entry_start=1)
    assert got.equals(expected)
    assert list(got.index) == list(expected.index)
    for how in (dict, list, tuple):
        for library in ("ak", "np", "pd"):
            got, expected = (one.arrays(flat, library=library, how=how) for one in (left, right))
            assert type(got) is type(expected)
            pairs = (
                zip(got.values(), expected.values(), strict=True) if how is dict else zip(got, expected, strict=True)
            )
            for one, other in pairs:
                assert type(one) is type(other)
                assert list(one) == list(other)


def test_iterate(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    left, right, names = ours(path, name), theirs(path, name), top(path, name)[:5]
    for which in ({"step_size": 7}, {"step_size": 1000}, {"step_size": 3, "entry_start": 1, "entry_stop": 8}):
        got = list(left.iterate(filter_name=names, report=True, **which))
        expected = list(right.iterate(filter_name=names, report=True, **which))
        for (piece, own), (their_piece, their_own) in zip(got, expected, strict=True):
            assert repr(piece.tolist()) == repr(without_collections(their_piece).tolist())
            for attribute in ("start", "stop", "tree_entry_start", "global_entry_stop", "file_path", "global_offset"):
                # uproot's fields have no `file`, which its reports need.
                if attribute != "file_path":
                    assert getattr(own, attribute) == getattr(their_own, attribute)
            assert own.file_path == str(path)
    pieces = left.iterate(filter_name=names, step_size="1 kB")
    assert repr([entry for piece in pieces for entry in piece.tolist()]) == repr(left.arrays(names).tolist())


def test_many_files(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    names, places = top(path, name)[:4], [{str(path): name}, f"{path}:{name}"]
    count = theirs(path, name).num_entries
    once = without_collections(theirs(path, name).arrays(filter_name=names)).tolist()
    for module in (compat, tupelo):
        select = {"filter_name": names} if module is compat else {"expressions": names}
        whole = module.concatenate(places, **select)
        alone = ours(path, name) if module is compat else tupelo.open({path: name})
        assert repr(whole.tolist()) == repr(alone.arrays(**select).tolist() * 2)
        part = module.concatenate(places, **select, entry_start=1, entry_stop=-1)
        assert repr(part.tolist()) == repr(whole.tolist()[1:-1])
        starts = []
        for piece, report in module.iterate(places, step_size=max(1, count // 2 + 1), report=True, **select):
            assert len(piece) == report.stop - report.start
            starts.append((report.start, report.tree_entry_start))
        assert [start % count if count else 0 for start, _ in starts] == [own for _, own in starts]
        assert list(module.num_entries(places)) == [(str(path), name, count)] * 2
        frames = module.concatenate(places, library="pd", **select)
        assert list(frames.index) == list(range(2 * count))
    assert repr(compat.concatenate(places, filter_name=names).tolist()) == repr(once * 2)


def test_clusters(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    expected = [cluster.num_first_entry for cluster in theirs(path, name).cluster_summaries if cluster.num_entries]
    assert [cluster.num_first_entry for cluster in ours(path, name).cluster_summaries] == expected
    ntuple = tupelo.open({path: name})
    assert isinstance(ntuple, tupelo.Ntuple)
    assert ntuple.cluster_boundaries.tolist() == [*expected, ntuple.num_entries]


def test_virtual(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    log: list[Any] = []
    eager, virtual = ours(path, name).arrays(), ours(path, name).arrays(virtual=True, access_log=log)
    assert (len(virtual), virtual.fields, str(virtual.type)) == (len(eager), eager.fields, str(eager.type))
    assert log == []
    for field in virtual.fields[:3]:
        assert repr(virtual[field].tolist()) == repr(eager[field].tolist())
        assert {one.field_name.partition(".")[0] for one in log} <= {field}
        log.clear()
    assert repr(virtual[1:].tolist()) == repr(eager[1:].tolist())
    known = len(log)
    assert ak.materialize(virtual).layout.form == eager.layout.form
    assert len(log) == known or known == 0
    ranged = ours(path, name).arrays(virtual=True, entry_start=1, entry_stop=4)
    assert repr(ranged.tolist()) == repr(eager[1:4].tolist())


def test_written_and_read_by_uproot(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    numeric = {"float", "double", "std::int32_t", "std::vector<float>", "std::vector<std::int32_t>", "std::string"}
    names = [key for key in top(path, name) if theirs(path, name)[key].typename in numeric]
    if not names:
        return
    arrays = their_arrays(path, name)[names]
    for module in (uproot, compat):
        with module.recreate("made.root") as file:
            file["a"] = arrays
            grown = file.mkrntuple("dir/b", arrays.layout.form)
            grown.extend(arrays)
            grown.extend({key: arrays[key][:2] for key in names})
            assert set(file.keys(cycle=False)) == {"a", "dir", "dir/b"}
        # Regression: uproot counts the elements of late columns from 0, which Tupelo rejected.
        with module.update("made.root") as file:
            file["a"].add_fields({"late": np.int32})
            file["a"].extend({**{key: arrays[key][:1] for key in names}, "late": np.array([7], dtype=np.int32)})
        for reader in (uproot, compat):
            with reader.open("made.root") as file:
                assert file["a"].arrays(names).tolist() == arrays.tolist() + arrays[:1].tolist()
                assert file["a"]["late"].array().tolist() == [0] * len(arrays) + [7]
                assert file["dir/b"].num_entries == len(arrays) + len(arrays[:2])
        ours_again = tupelo.open("made.root:a")
        assert isinstance(ours_again, tupelo.Ntuple)
        assert ours_again.keys() == [*names, "late"]


def test_other_objects_are_those_of_tupelo(real_ntuple: tuple[Path, str]) -> None:
    file, native = compat.open(real_ntuple[0]), tupelo.open(real_ntuple[0])
    assert isinstance(native, tupelo.File)
    for key, class_name in file.classnames().items():
        if not class_name.startswith(("TDirectory", "ROOT::RNTuple", "TTree", "TNtuple")):
            assert type(file[key]) is type(native[key])


def test_file_objects_cannot_be_pickled(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    file = tupelo.open(io.BytesIO(path.read_bytes()))
    assert isinstance(file, tupelo.File)
    assert file[name].num_entries == theirs(path, name).num_entries
    for what in (file, file[name]):
        with pytest.raises(tupelo.InvalidArgumentError, match="file object"):
            pickle.dumps(what)


def test_strings_of_a_file_are_escaped_in_show(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: escape sequences and bidirectional controls reached the terminal."""
    evil = "\x1b]0;pwned\x07\x1b[31mRED\r\u202e"
    with tupelo.recreate("f.root") as file:
        file.mkrntuple("N\u202en", {"f\u2066": "int"}, description=evil).close()
    ntuple = tupelo.open("f.root:N\u202en")
    assert isinstance(ntuple, tupelo.Ntuple)
    ntuple.show()
    shown = capsys.readouterr().out
    assert all(sign.isprintable() or sign == "\n" for sign in shown), repr(shown)
    for text in ("\\u202e", "\\x1b]0;pwned\\x07\\x1b[31mRED", "f\\u2066"):
        assert text in shown
    for text in (repr(ntuple), repr(ntuple["f\u2066"]), repr(tupelo.open("f.root"))):
        assert text.isprintable(), text
    compat = tupelo.uproot_compat.open("f.root")["N\u202en"]
    compat.show()
    shown = capsys.readouterr().out
    assert "pwned" not in shown or all(sign.isprintable() or sign == "\n" for sign in shown), repr(shown)
    assert "f\\u2066" in shown
