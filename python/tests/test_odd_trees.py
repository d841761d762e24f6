"""Trees whose forms uproot does not read, with the values that ROOT 6.40 shows."""

import lzma
import subprocess
import warnings
from pathlib import Path
from typing import Any

import awkward as ak
import pytest
from conftest import DATA

import tupelo

pytestmark = pytest.mark.filterwarnings("ignore::tupelo.errors.TupeloWarning")


def opened(name: str) -> Any:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not at hand")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tupelo.open(path)


def by_ranges(tree: Any, field: str) -> Any:
    """The values of a field, after a check that one entry at a time gives the same."""
    whole = tree[field].array()
    parts = [tree[field].array(entry_start=entry, entry_stop=entry + 1) for entry in range(tree.num_entries)]
    assert ak.concatenate(parts).to_list() == whole.to_list()
    return whole.to_list()


def test_bits_of_referenced_objects_take_six_bytes() -> None:
    assert by_ranges(opened("reports/fbits_referenced.root")["t"], "a.fBits") == [
        [24, 24, 24, 24], [24, 24], [8, 8, 8, 8], [24, 24], [24, 24, 24, 24], [24, 24],
    ]  # fmt: skip


def test_positions_that_lie_are_refused_for_each_range() -> None:
    tree = opened("hostile/tree-shifted-positions.root")["t"]
    for start, stop in ((0, 4), (0, 1), (1, 2), (3, 4)):
        with pytest.raises(tupelo.CorruptError, match="entry 0 has 8 bytes, expected 4"):
            tree["b"].array(entry_start=start, entry_stop=stop)


def test_items_of_split_collections_have_references_and_pointers_with_counters() -> None:
    tree = opened("reports/clones_with_trefs.root")["t"]
    assert not tree.unreadable
    assert [[len(item["fUIDs"]) for item in entry] for entry in by_ranges(tree, "h.parts")] == [[0], [0, 1], [0, 1, 1]]
    assert [len(entry) for entry in by_ranges(tree, "h.partner")] == [1, 2, 3]
    tree = opened("reports/clones_with_counted_pointer.root")["t"]
    lengths = [[len(item) for item in entry] for entry in by_ranges(tree, "b.fAllBits")]
    assert lengths == by_ranges(tree, "b.fNbytes")


def test_arrays_of_containers_have_the_types_of_their_items() -> None:
    tree = opened("reports/array_of_vectors_split99.root")["t"]
    assert tree["w.v"].typename == "std::array<std::vector<double>,2>"
    assert by_ranges(tree, "w.v")[1] == [[1.0], [1.0, 1.1]]
    assert by_ranges(tree, "w.w")[1] == [[-1.0], [-1.0, -1.1]]
    maps = by_ranges(opened("reports/carray_of_maps_split99.root")["t"], "m.m")
    assert maps[:2] == [[[], [(0, 0.0)]], [[(0, 1.0)], [(0, 1.0), (1, 1.1)]]]


def test_a_branch_has_values_and_branches_below_it() -> None:
    tree = opened("reports/branch_with_data_and_subbranches.root")["tree"]
    assert by_ranges(tree, "b1.b1") == [1.0] * 10
    assert dict(tree.unreadable) == {"b1/b2/b3/b4": "it has no entries, but the tree has 10"}
    assert len(tree.arrays()) == 10


def test_branches_of_root_4_00_are_read() -> None:
    tree = opened("reports/root400_branches.root")["T"]
    assert not tree.unreadable
    assert by_ranges(tree, "event.fNtrack") == [1, 2, 1, 2, 1, 2, 1, 1, 1, 1]
    assert by_ranges(tree, "event.fNseg") == [-25, 10, 36, 20, -5, 23, 55, 31, -2, -2]
    sums = ak.sum(tree["event.fTracks.fNpoint"].array(), axis=1)
    assert sums.to_list() == [65, 126, 60, 125, 69, 129, 66, 68, 69, 65]
    bits = ak.sum(tree["event.fTracks.fBits"].array(), axis=1)
    assert bits.to_list() == [50331672 * count for count in (1, 2, 1, 2, 1, 2, 1, 1, 1, 1)]


def test_baskets_in_the_record_of_the_tree_are_longer_than_their_entries(tmp_path: Path) -> None:
    path = DATA / "reports" / "root404_embedded_basket.root.xz"
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand")
    (tmp_path / "f.root").write_bytes(lzma.decompress(path.read_bytes()))
    tree = tupelo.open(tmp_path / "f.root")["tRawData"]
    assert tree["ID"].array(entry_start=95772, entry_stop=96000).to_list() == list(range(95773, 96001))
    found = tree["Q2"].array(entry_start=95772, entry_stop=96000)
    assert [found[0], found[1], found[-1]] == pytest.approx([2167.104736328125, 893.973388671875, 873.4937133789062])


def test_trees_and_histograms_without_streamer_info_are_read() -> None:
    file = opened("reports/no_streamer_info.root")
    assert by_ranges(file["t"], "x") == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert file["h"].values(flow=True).tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_members_of_which_nothing_is_stored_are_left_out_by_themselves_too(command: str) -> None:
    """Regression: selected alone, they were empty lists, which `import` wrote and `verify` called intact."""
    path = DATA / "trees" / "uproot-mc10events.root"
    tree = opened("trees/uproot-mc10events.root")["Events"]
    assert len(tree.arrays("Electron.pt")) == 10
    with pytest.raises(tupelo.UnsupportedError, match="its entries are empty"):
        tree.arrays("Electron.hltMatchBits")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)

    done = run("dump", str(path), "--fields", "Electron.hltMatchBits")
    assert (done.returncode, done.stdout) == (1, "")
    assert "none of the fields can be read: branch 'Electron/Electron.hltMatchBits': basket 0" in done.stderr
    done = run("import", str(path), "imported.root", "--fields", "Electron.hltMatchBits")
    assert done.returncode == 1
    done = run("verify", str(path))
    assert done.returncode == 1
    assert "branch 'Electron/Electron.hltMatchBits'" in done.stdout
