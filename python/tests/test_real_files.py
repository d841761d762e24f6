"""Every RNTuple of the real files equals uproot."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import uproot

import tupelo

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def comparable(value: Any) -> Any:
    """Values in a form that is the same for both: where a class has bases, uproot puts the members of all into one
    record, with the name of the class before those that two bases have; we keep each base as `:_0`, `:_1`, ….
    """
    if isinstance(value, list | tuple):
        return type(value)(comparable(item) for item in value)
    return sorted(members(value), key=repr) if isinstance(value, dict) else value


def members(record: dict[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, member in record.items():
        if name.startswith(":_"):
            found += members(member)
        else:
            found.append((name.rpartition("::")[2], comparable(member)))
    return found


def text_of(array: Any) -> str:
    """Compares NaN as text; records without members are empty tuples in uproot."""
    return repr(comparable(array.tolist())).replace("()", "[]")


def test_reads_equal_uproot(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    ours = tupelo.open({path: name})
    theirs = uproot.open(path)[name]
    assert isinstance(ours, tupelo.Ntuple)
    assert ours.num_entries == theirs.num_entries
    arrays = ours.arrays()
    assert arrays.fields == ours.keys(recursive=False)
    for field in arrays.fields:
        assert text_of(arrays[field]) == text_of(theirs[field].array()), field


def test_names_and_types_equal_uproot(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    ours, theirs = tupelo.open({path: name}), uproot.open(path)[name]
    assert isinstance(ours, tupelo.Ntuple)
    # uproot also lists imported collections.
    shown = {key: type_name for key, type_name in theirs.typenames().items() if "." not in key}
    expected = {key: type_name for key, type_name in shown.items() if not key.startswith("_collection")}
    given = ours.typenames(recursive=False)
    assert [key.replace(":", "") for key in given] == [key.replace(":", "") for key in expected]
    for (key, ours_type), theirs_type in zip(given.items(), expected.values(), strict=True):
        # An untyped collection has no type name in the file; aliases are listed in addition to the standard name.
        if theirs_type and ours[key].kind != "primitive":
            assert ours_type == theirs_type


def test_every_library_and_every_field(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    ntuple = tupelo.open({path: name})
    assert isinstance(ntuple, tupelo.Ntuple)
    stop = 3
    for library in ("ak", "np", "arrow", "pd"):
        whole = ntuple.arrays(library=library, entry_stop=stop)
        assert len(whole) == (len(ntuple.keys(recursive=False)) if library == "np" else min(stop, ntuple.num_entries))
    for path_of_field in ntuple:
        for library in ("ak", "np", "arrow", "pd"):
            assert len(ntuple[path_of_field].array(entry_stop=stop, library=library)) == min(stop, ntuple.num_entries)


def test_ranges_are_slices(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    ntuple = tupelo.open({path: name})
    assert isinstance(ntuple, tupelo.Ntuple)
    top = ntuple.keys(recursive=False)[:20]
    whole = repr(ntuple.arrays(top).tolist()[5:-3])
    assert repr(ntuple.arrays(top, entry_start=5, entry_stop=-3).tolist()) == whole
    pieces = ntuple.iterate(top, step_size=7, entry_start=5, entry_stop=-3)
    assert repr([entry for piece in pieces for entry in piece.tolist()]) == whole


def test_rewritten_files_are_equal(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    ntuple = tupelo.open({path: name})
    assert isinstance(ntuple, tupelo.Ntuple)
    # Cardinalities and other projections are views of fields, and streamed objects are only known to ROOT.
    fields = [key for key in ntuple.keys(recursive=False) if ntuple[key].kind not in ("cardinality", "streamer")]
    # Projected imported collections are not listed.
    fields += [path for path in ntuple._by_path if "." not in path and path not in ntuple._listed]
    table = ntuple.arrays(fields, library="arrow")
    projected = [f.name for f in table.schema if b"rntuple.projected" in (f.metadata or {})]
    table = table.drop_columns(projected)
    with tupelo.recreate("copy.root") as file:
        file["copy"] = table
    again = tupelo.open("copy.root:copy")
    assert isinstance(again, tupelo.Ntuple)
    assert again.arrays(library="arrow").equals(table)
    assert again.typenames() == {
        path: ntuple[path].typename for path in ntuple._by_path if path.partition(".")[0] in table.column_names
    }


def test_pickles_its_location(real_ntuple: tuple[Path, str]) -> None:
    path, name = real_ntuple
    pickled = pickle.dumps(tupelo.open({path: name}, page_checksums=False))
    assert len(pickled) < 500
    assert pickle.loads(pickled).num_entries == uproot.open(path)[name].num_entries
