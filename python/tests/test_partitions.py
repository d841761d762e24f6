"""Plans: coverage and balance, size of pickles, and identity of files."""

import contextlib
import functools
import json
import multiprocessing
import operator
import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest

import tupelo
from tupelo._many.partition import OPEN_NTUPLES
from tupelo._many.splitting import balanced_runs


def write(path: str | Path, clusters: Iterable[int], seed: int = 0, name: str = "Events") -> ak.Array:
    """Writes a file with clusters of these sizes and returns its contents."""
    rng = np.random.default_rng(seed)
    pieces = []
    with tupelo.recreate(path, compression="none") as file:
        fields = {"x": "double", "y": "std::vector<float>", "n": "int"}
        with file.mkrntuple(name, fields) as ntuple:
            for size in clusters:
                lengths = rng.integers(0, 4, size)
                values = rng.normal(size=int(lengths.sum())).astype("f4")
                piece = {
                    "x": rng.normal(size=size),
                    "y": ak.unflatten(values, lengths),
                    "n": np.arange(size, dtype="i4"),
                }
                ntuple.extend(ak.Array(piece))
                ntuple.flush_cluster()
                pieces.append(ak.Array(piece))
    return ak.concatenate(pieces)


def check_laws(plan: list[tupelo.Partition], paths: list[Path]) -> None:
    """Every entry once, in order, in whole clusters or parts of one."""
    at = 0
    for path in paths:
        with tupelo.open({path: "Events"}) as ntuple:
            borders = sorted({0, *(one.first_entry + one.entries for one in ntuple._core.clusters())})
            entry = 0
            while entry < ntuple.num_entries:
                partition = plan[at]
                assert partition.uri == str(path)
                assert partition.entry_start == entry
                assert partition.entry_stop > entry
                crossed = [border for border in borders if entry < border < partition.entry_stop]
                is_whole = entry in borders and partition.entry_stop in borders
                assert is_whole or not crossed
                entry, at = partition.entry_stop, at + 1
    assert at == len(plan)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"run{run}.root" for run in range(3)]
    for seed, (path, clusters) in enumerate(zip(paths, ([100] * 12, [1000, 10, 10, 400], [7]), strict=True)):
        write(path, clusters, seed)
    return paths


@pytest.mark.parametrize(
    "how",
    [{}, {"step_size": "2 kB"}, {"step_size": "1 B"}, {"step_size": 250}, {"step_size": 1}]
    + [{"clusters_per_partition": most} for most in (1, 5, 100)],
)
def test_plans_cover_every_entry_once(files: list[Path], how: dict[str, Any]) -> None:
    plan = tupelo.partitions("run*.root", **how)
    check_laws(plan, files)
    whole = ak.concatenate([tupelo.open({path: "Events"}).arrays() for path in files])
    assert ak.array_equal(ak.concatenate([partition.arrays() for partition in plan]), whole)
    assert sum(partition.num_entries for partition in plan) == len(whole)


def test_partitions_match_the_step_size(files: list[Path]) -> None:
    assert [p.num_entries for p in tupelo.partitions(files[0], step_size=300)] == [300] * 4
    assert [p.num_entries for p in tupelo.partitions(files[0], clusters_per_partition=5)] == [400] * 3
    assert len(tupelo.partitions(files)) == len(files)
    # Balanced: 12 clusters in partitions of at most 11 give 6 and 6.
    assert [p.num_entries for p in tupelo.partitions(files[0], clusters_per_partition=11)] == [600, 600]
    sizes = [size for _, _, size in tupelo.index(files[0])["files"][0]["clusters"]]
    # One of several fields is smaller, so there are fewer partitions.
    all_fields = tupelo.partitions(files[0], step_size=f"{sum(sizes) // 6} B")
    one_field = tupelo.partitions(files[0], step_size=f"{sum(sizes) // 6} B", names="x")
    assert 6 <= len(all_fields) <= 7
    assert 1 < len(one_field) < len(all_fields)


def test_runs_are_balanced() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        sizes = [chance.choice([0, 1, 10, 1000]) * chance.randint(0, 9) for _ in range(chance.randint(1, 30))]
        wanted = chance.randint(1, 35)
        runs = balanced_runs(sizes, wanted)
        assert [place for run in runs for place in range(*run)] == list(range(len(sizes)))
        assert len(runs) == min(wanted, len(sizes))
        assert all(start < stop for start, stop in runs)
        assert max(sum(sizes[start:stop]) for start, stop in runs) <= sum(sizes) / len(runs) + max(sizes)


def test_partitions_are_small_when_pickled(tmp_path: Path) -> None:
    """All 1500 fields of a NanoAOD-like file, a pattern, or 100 of them by name."""
    fields = {
        f"{kind}_{what}{i}": [1.0] for kind in ("Muon", "Jet", "HLT") for what in ("pt", "isTight") for i in range(250)
    }
    with tupelo.recreate("wide.root") as file:
        file["a/rather/long/path/to/Events"] = fields
    hundred = list(fields)[:100]
    for how in (
        {},
        {"names": ["Muon_*", "Jet_pt1"]},
        {"names": hundred},
        {"filter_name": ["*_pt*", "HLT*"]},
        {"filter_name": lambda name: name in hundred},
    ):
        (partition,) = tupelo.partitions("wide.root", **how)  # type: ignore[arg-type]
        pickled = pickle.dumps(partition)
        assert len(pickled) < 1000
        assert pickle.loads(pickled) == partition
    assert set(partition.arrays().fields) == set(hundred)


def test_a_manifest_plans_without_a_file(files: list[Path], tmp_path: Path) -> None:
    manifest = tupelo.index("run*.root", tmp_path / "manifest.json")
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest
    ways: list[dict[str, Any]] = [
        {},
        {"step_size": "2 kB"},
        {"step_size": 100, "names": ["x", "y"]},
        {"filter_typename": "*int*"},
    ]
    plans = [tupelo.partitions("run*.root", **how) for how in ways]
    one = tupelo.partitions(files[1])
    away = tmp_path / "away"
    away.mkdir()
    for path in files:
        path.rename(away / path.name)
    for how, plan in zip(ways, plans, strict=True):
        assert tupelo.partitions(manifest=manifest, **how) == plan
        assert tupelo.partitions(manifest="manifest.json", **how) == plan
    assert tupelo.partitions(files[1], manifest=manifest) == one
    with pytest.raises(tupelo.MissingFileError, match="run1"):
        one[0].arrays()
    with pytest.raises(tupelo.NotFoundError, match=r"run7.root is not in the manifest, which has 3 files"):
        tupelo.partitions("run7.root", manifest=manifest)
    # The identity depends on the contents, not on the location.
    for path in files:
        shutil.copy(away / path.name, path)
    assert len(one[0].arrays()) == 1420


def test_a_manifest_with_more_entries_than_the_file_is_refused(tmp_path: Path) -> None:
    """Regression: the entries that are not in the file were left out silently."""
    write(tmp_path / "f.root", [100], 1)
    manifest = tupelo.index(tmp_path / "f.root")
    (file,) = manifest["files"]
    file["entries"] += 1
    file["clusters"][-1][1] += 1
    (partition,) = tupelo.partitions(manifest=manifest)
    with pytest.raises(tupelo.ChangedFileError, match="has 100 entries, and the partition ends at entry 101"):
        partition.arrays()


def test_invalid_manifests(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(tupelo.InvalidArgumentError, match=r"text.json is not a manifest"):
        tupelo.partitions(manifest="text.json")
    with pytest.raises(tupelo.InvalidArgumentError, match=r"is not a manifest; `tupelo index`"):
        tupelo.partitions(manifest={"files": []})
    with pytest.raises(tupelo.UnsupportedError, match="manifest version 2"):
        tupelo.partitions(manifest={**tupelo.index(files), "version": 2})
    with pytest.raises(tupelo.InvalidArgumentError, match="give files or a manifest"):
        tupelo.partitions()


def test_damaged_manifests_are_refused(tmp_path: Path) -> None:
    """Regression: clusters with 1 of 400 entries gave one row, others a TypeError or a KeyError."""
    write(tmp_path / "f.root", [100, 300], 1)
    good = tupelo.index(tmp_path / "f.root")
    assert len(tupelo.partitions(manifest=good)) > 0
    path = tmp_path / "m.json"

    def refused(place: str, change: Callable[[Any], object]) -> None:
        manifest = json.loads(json.dumps(good))
        change(manifest)
        path.write_text(json.dumps(manifest))
        for source, name in ((path, path), (manifest, "the dict")):
            with pytest.raises(tupelo.InvalidArgumentError) as caught:
                tupelo.partitions(manifest=source)
            text = str(caught.value)
            assert text.startswith(f"{name} is a damaged manifest: {place}"), text
            assert "expected" in text
            assert "found" in text

    bad: list[Any] = [None, True, -1, 1.5, "x", 1 << 64, {}, [[]]]
    for key in good["files"][0]:
        for value in bad:
            # A size that a store does not record is null.
            is_legal = isinstance(value, str) and key in ("uri", "ntuple", "identity")
            if not is_legal and not (key == "size_bytes" and value is None):
                refused("files[0]", lambda m, key=key, value=value: m["files"][0].update({key: value}))
        refused("files[0]", lambda m, key=key: m["files"][0].pop(key))
    for key in ("files", "schemas"):
        for value in (None, {}, 7, "x", [None], [[]]):
            refused(key, lambda m, key=key, value=value: m.update({key: value}))
    for key in ("fields", "arrow"):
        for value in (None, 7, "x", [["x"]], [["x", 1]], []):
            refused("schemas[0]", lambda m, key=key, value=value: m["schemas"][0].update({key: value}))
    size = good["files"][0]["clusters"][0][2]
    for clusters in (
        [],
        [[0, 1, size]],
        [[0, 100, size]],
        [[0, 400, size], [400, 1, size]],
        [[1, 399, size]],
        [[100, 300, size], [0, 100, size]],
        [[0, 200, size], [100, 300, size]],
        [[0, 0, size], [0, 400, size]],
        [[0, 400]],
        [[0, 400, None]],
        [[0, 400.0, size]],
    ):
        refused("files[0] (", lambda m, clusters=clusters: m["files"][0].update({"clusters": clusters}))
    refused("files[0] (", lambda m: m["files"][0].update({"field_bytes": [1] * 99}))
    refused("files[0] (", lambda m: m["files"][0].update({"schema": 1}))
    (tmp_path / "deep.json").write_text("[" * 1_000_000)
    with pytest.raises(tupelo.InvalidArgumentError, match=r"deep.json is not a manifest"):
        tupelo.partitions(manifest=tmp_path / "deep.json")


@pytest.mark.parametrize("is_open", [False, True])
def test_a_changed_file_is_rejected(tmp_path: Path, is_open: bool) -> None:
    """Rewritten with other values of the same size, in place or under its name."""
    path = tmp_path / "f.root"
    write(path, [50, 50], 1)
    (partition,) = tupelo.partitions(path)
    if is_open:
        partition.arrays()
    other = tmp_path / "g.root"
    write(other, [50, 50], 2)
    path.write_bytes(other.read_bytes())
    with pytest.raises(tupelo.ChangedFileError, match=r"f.root: ntuple 'Events' has changed .* plan again") as caught:
        partition.arrays()
    assert isinstance(caught.value, OSError)
    arrays, report = partition.arrays(report=True)
    assert arrays is None
    assert report.error == "ChangedFileError"
    assert report.cluster is None
    with tupelo.update(path) as file:
        file["more"] = {"x": [1]}
    (again,) = tupelo.partitions({path: "Events"})
    assert again.identity != partition.identity
    assert len(again.arrays()) == 100


def damage(path: Path, values: Any) -> None:
    """Flips a bit in the page of these values."""
    content = bytearray(path.read_bytes())
    place = content.find(np.asarray(values).tobytes())
    assert place > 0
    content[place + 3] ^= 0x10
    path.write_bytes(bytes(content))


def test_errors_are_reported_by_partition(tmp_path: Path) -> None:
    path = tmp_path / "f.root"
    whole = write(path, [100, 100, 100])
    damage(path, whole.x[100:200])
    plan = tupelo.partitions(path, clusters_per_partition=1)
    results = [partition.arrays(report=True) for partition in plan]
    for place in (0, 2):
        arrays, report = results[place]
        assert ak.array_equal(arrays, whole[100 * place : 100 * place + 100])
        assert report == tupelo.PartitionReport(str(path), "Events", 100 * place, 100 * place + 100)
    arrays, report = results[1]
    assert arrays is None
    assert (report.file, report.entry_start, report.entry_stop) == (str(path), 100, 200)
    assert (report.cluster, report.column, report.error) == (1, "x", "CorruptError")
    assert "page checksum mismatch" in report.cause
    with pytest.raises(tupelo.CorruptError) as caught:
        plan[1].arrays()
    assert (caught.value.field, caught.value.cluster, caught.value.page) == ("x", 1, 0)
    assert pickle.loads(pickle.dumps(caught.value)).cluster == 1
    # Damage of other fields is not detected.
    assert ak.array_equal(plan[1].with_columns(["y", "n"]).arrays().y, whole.y[100:200])
    assert len(tupelo.partitions(path, page_checksums=False)[0].arrays()) == 300


def test_processes_give_equal_results(files: list[Path]) -> None:
    plan = tupelo.partitions(files, clusters_per_partition=2)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = ak.concatenate(list(pool.map(tupelo.Partition.arrays, plan)))
    assert ak.array_equal(found, ak.concatenate([tupelo.open({path: "Events"}).arrays() for path in files]))


def test_a_partition_is_read_in_every_library(files: list[Path]) -> None:
    partition = tupelo.partitions(files[0], step_size=600, names=["x", "n"])[1]
    assert partition.columns == ("x", "n")
    with tupelo.open({files[0]: "Events"}) as ntuple:
        want = ntuple.arrays(["x", "n"], entry_start=600, library="pd")
    assert partition.arrays(library="pd").equals(want)
    assert partition.arrays(library="np")["x"].tolist() == want.x.tolist()
    assert partition.arrays(library="arrow").column_names == ["x", "n"]
    assert partition.arrays() is not partition.arrays()
    with pytest.raises(tupelo.UnsupportedError, match="unknown library='spark'"):
        partition.arrays(library="spark")  # type: ignore[arg-type]


def test_few_ntuples_stay_open(tmp_path: Path) -> None:
    count = OPEN_NTUPLES + 5
    for number in range(count):
        write(tmp_path / f"{number:02}.root", [10], number)
    for partition in tupelo.partitions(str(tmp_path / "*.root")):
        partition.arrays()
    if not Path("/proc/self/fd").exists():
        return
    links = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    assert 0 < sum(link.startswith(str(tmp_path)) for link in links) <= OPEN_NTUPLES


def test_file_arguments(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(path) for path in files]
    for ways in (
        names,
        files,
        "run*.root",
        "run?.root:Events",
        {"run*.root": "Events"},
        dict.fromkeys(files, "Events"),
        [{"run[01].root": "Events"}, Path("run2.root")],
        ["run0.root:Events", "run[12].root"],
        f"{files[0].parent}/**/run*.root",
    ):
        assert [partition.uri for partition in tupelo.partitions(ways)] == names  # type: ignore[arg-type]
    shutil.copy("run0.root", "run[0].root")
    assert tupelo.partitions("run[0].root")[0].uri.endswith("run[0].root")
    with pytest.raises(tupelo.MissingFileError, match=r"no file matches 'walk\*.root'"):
        tupelo.partitions("walk*.root")
    with pytest.raises(tupelo.MissingFileError, match="run9"):
        tupelo.partitions("run9.root")
    for wrong in (3, [3], [["run0.root"]]):
        with pytest.raises(tupelo.InvalidArgumentError, match=r"not (by )?(3|\['run0)"):
            tupelo.partitions(wrong)  # type: ignore[arg-type]
    with pytest.raises(tupelo.InvalidArgumentError, match="the list of files is empty"):
        tupelo.partitions([])


def test_files_must_agree(files: list[Path]) -> None:
    for name, columns in {"int.root": {"x": [1], "n": [2]}, "less.root": {"x": [1.5]}}.items():
        with tupelo.recreate(name) as file:
            file["Events"] = columns
    wrong = r"int.root: ntuple 'Events' differs from .*run0.root: ntuple 'Events': field 'x' has type "
    wrong += r"int64, expected double; leave the field out, read the files one by one with tupelo\.iterate.*schema="
    with pytest.raises(tupelo.InvalidArgumentError, match=wrong):
        tupelo.partitions([files[0], "int.root"], names="x")
    with pytest.raises(tupelo.NotFoundError, match=r"less.root: ntuple 'Events': no field"):
        tupelo.partitions([files[0], "less.root"], names="n")
    assert len(tupelo.partitions([files[0], "less.root"], names="x")) == 2
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'n' is missing; select fields .*fields='union'"):
        tupelo.partitions(["int.root", "less.root"], names=["[xn]"])


def test_equal_types_with_different_names() -> None:
    """Regression: such files were rejected."""
    values = [[1.5], [], [2.5, 3.5]]
    for name, kind in (("a", "std::vector<float>"), ("b", "ROOT::VecOps::RVec<float>")):
        with tupelo.recreate(f"{name}.root") as file:
            file.mkrntuple("Events", {"x": kind, "p": "std::pair<int,int>"}).extend({"x": values, "p": [(1, 2)] * 3})
    assert tupelo.concatenate("[ab].root").x.tolist() == values * 2
    for names in (None, "x", ["x", "p"]):
        read = [part.arrays() for part in tupelo.partitions("[ab].root", names=names)]
        assert [array.x.tolist() for array in read] == [values] * 2
    assert tupelo.dask("[ab].root").x.compute(scheduler="sync").tolist() == values * 2


def test_types_that_awkward_distinguishes() -> None:
    """A pair and a record have the same Arrow type, but differ in Awkward."""
    for name, kind in (("a", "std::pair<int,int>"), ("b", tupelo.record("Two", {"_0": "int", "_1": "int"}))):
        with tupelo.recreate(f"{name}.root") as file:
            file.mkrntuple("Events", {"p": kind}).extend({"p": [{"_0": 1, "_1": 2}]})
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'p' has type Two, expected std::pair<"):
        tupelo.partitions("[ab].root", names="p")


def test_a_union_of_names_has_missing_values(files: list[Path]) -> None:
    """Regression: a name had to exist in every file even with a union."""
    with tupelo.recreate("less.root") as file:
        file["Events"] = {"x": [1.5], "zone": [True]}
    named = [files[2], Path("less.root")]
    for names in (["x", "zone"], (name for name in ("x", "zon*"))):
        more, less = (part.arrays().tolist() for part in tupelo.partitions(named, names=names, fields="union"))
        assert less == [{"x": 1.5, "zone": True}]
        assert [entry["zone"] for entry in more] == [None] * 7
    both = tupelo.dask(named, names=["zone"], fields="union")
    assert both.zone.compute(scheduler="sync").tolist() == [None] * 7 + [True]
    with pytest.raises(tupelo.NotFoundError, match="is named 'zones'"):
        tupelo.partitions(named, names=["x", "zones"], fields="union")


def test_open_ntuples_are_rejected(files: list[Path]) -> None:
    """Regression: its field names were used as file names."""
    for opened in (tupelo.open("run0.root:Events"), tupelo.open("run0.root")):
        with pytest.raises(
            tupelo.InvalidArgumentError, match=r"is an open object; give the file name instead: 'run0\.root"
        ):
            tupelo.partitions(opened)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [1, -1])
def test_files_with_different_fields(files: list[Path], order: int) -> None:
    # Regression: such files were rejected.
    with tupelo.recreate("less.root") as file:
        file["Events"] = {"x": [1.5], "z": [True]}
    named = [files[2], Path("less.root")][::order]
    with pytest.warns(tupelo.TupeloWarning, match="skipped .*: (y, n, z|z, y, n);") as told:
        plan = tupelo.partitions(named)
    assert len(told) == 1
    assert all(partition.arrays().fields == ["x"] for partition in plan)
    plan = [pickle.loads(pickle.dumps(partition)) for partition in tupelo.partitions(named, fields="union")]
    more, less = (partition.arrays() for partition in plan[::order])
    assert set(more.fields) == set(less.fields) == {"x", "y", "n", "z"}
    assert str(more.type.content) == str(less.type.content)
    assert less[["x", "z"]].tolist() == [{"x": 1.5, "z": True}]
    assert less.y.tolist() == less.n.tolist() == [None]
    assert more.z.tolist() == [None] * 7
    assert plan[::order][1].with_columns(["y", "z"]).arrays().tolist() == [{"y": None, "z": True}]
    assert plan[::order][1].with_columns("y").arrays().tolist() == [{"y": None}]
    only = tupelo.partitions(named, fields="union", filter_name="z")
    assert [partition.arrays().tolist() for partition in only][::order] == [[{"z": None}] * 7, [{"z": True}]]


def test_partitions_compute_expressions_and_cuts(files: list[Path]) -> None:
    given: dict[str, Any] = {"expressions": ["n", "sum(y) * k"], "cut": "n > 50 and x > 0", "aliases": {"k": "x + 1"}}
    plan = [pickle.loads(pickle.dumps(partition)) for partition in tupelo.partitions(files, step_size=100, **given)]
    whole = ak.concatenate([tupelo.open({path: "Events"}).arrays(**given) for path in files])
    assert ak.array_equal(ak.concatenate([partition.arrays() for partition in plan]), whole)
    frame = plan[1].arrays(library="pd")
    assert frame.index.min() >= 100
    with pytest.raises(tupelo.NotFoundError, match="'nn'"):
        tupelo.partitions(files, cut="nn > 5")


def test_single_clusters_are_divided(tmp_path: Path) -> None:
    path = tmp_path / "single.root"
    whole = write(path, [1000], 3)
    ranges = [(p.entry_start, p.entry_stop) for p in tupelo.partitions(path, step_size=300)]
    assert ranges == [(0, 250), (250, 500), (500, 750), (750, 1000)]
    for how in {"steps_per_file": 7}, {"steps_per_file": 1}, {"step_size": "2 kB"}, {"steps_per_file": 5000}:
        plan = tupelo.partitions(path, **how)  # type: ignore[arg-type]
        assert len(plan) == min(1000, how.get("steps_per_file", len(plan)))  # type: ignore[call-overload]
        assert len(plan) > 1 or how == {"steps_per_file": 1}
        if len(plan) < 1000:
            assert ak.array_equal(ak.concatenate([partition.arrays() for partition in plan]), whole)


def test_steps_of_files_are_their_partitions(files: list[Path]) -> None:
    spec: Any = {files[0]: {"object_path": "Events", "steps": [[0, 500], [700, 701]]}, files[2]: "Events"}
    plan = tupelo.partitions(spec, step_size=10)
    assert [(p.entry_start, p.entry_stop) for p in plan] == [(0, 500), (700, 701), (0, 7)]
    again = tupelo.partitions(spec, manifest=tupelo.index(files), step_size=10)
    assert plan == again
    with pytest.raises(tupelo.InvalidArgumentError, match=r"\[0, 2000\] ends past the last of 1200 entries"):
        tupelo.partitions({files[0]: {"object_path": "Events", "steps": [[0, 2000]]}})
    with pytest.raises(tupelo.InvalidArgumentError, match="whole files are read here"):
        tupelo.index(spec)


def test_invalid_calls_are_rejected(files: list[Path]) -> None:
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"step_size": 0}, "from 1 to 2⁶³−1 entries"),
        ({"step_size": "much"}, "is not a size"),
        ({"clusters_per_partition": 0}, "clusters_per_partition must be at least 1"),
        ({"clusters_per_partition": 1.5}, "expected clusters_per_partition as a number of clusters"),
        ({"clusters_per_partition": 1, "step_size": 1}, "give only one of"),
        ({"steps_per_file": 1, "step_size": 1}, "give only one of"),
        ({"steps_per_file": 0}, "steps_per_file must be at least 1"),
        ({"steps_per_file": True}, "expected steps_per_file as a number of partitions"),
        ({"expressions": "x", "names": "x"}, "give only one of expressions"),
        ({"expressions": "x +"}, "expected a value"),
        ({"cut": 7}, "expected cut as an expression"),
        ({"fields": "all"}, "expected 'common'"),
        ({"names": "x", "filter_name": "x"}, "not both"),
        ({"names": []}, "no fields selected"),
        ({"memory_budget": -1}, "memory_budget"),
    ]
    for how, text in wrongs:
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            tupelo.partitions(files, **how)
    with pytest.raises(tupelo.NotFoundError, match="none of 3 fields matches"):
        tupelo.partitions(files, filter_name="z*")
    with pytest.raises(tupelo.NotFoundError, match=r"no field .*'xs'.*'x'"):
        tupelo.partitions(files, names="xs")
    with pytest.raises(tupelo.NotFoundError, match="'xs'"):
        tupelo.partitions(files)[0].with_columns("xs").arrays()


def test_strings_have_one_type_in_all_partitions() -> None:
    with tupelo.recreate("texts.root") as file, file.mkrntuple("Events", {"s": "std::string"}) as ntuple:
        for texts in (["a", "b"], [b"\xff", b"c"]):
            ntuple.extend({"s": texts})
            ntuple.flush_cluster()
    first, second = tupelo.partitions("texts.root", clusters_per_partition=1)
    assert first.arrays().s.tolist() == ["a", "b"]
    with pytest.raises(tupelo.UnsupportedError, match="are not UTF-8; read them with binary strings"):
        second.arrays()
    first, second = tupelo.partitions("texts.root", clusters_per_partition=1, binary_strings=True)
    assert first.arrays().s.tolist() + second.arrays().s.tolist() == [b"a", b"b", b"\xff", b"c"]


def test_ntuples_without_entries_have_no_partitions(files: list[Path]) -> None:
    with tupelo.recreate("empty.root") as file:
        file.mkrntuple("Events", {"x": "double", "y": "std::vector<float>", "n": "int"}).close()
    assert tupelo.partitions("empty.root") == []
    assert len(tupelo.partitions(["empty.root", files[2]])) == 1


def test_planning_loads_no_dask() -> None:
    write("f.root", [10])
    program = (
        "import sys, tupelo; tupelo.partitions('f.root')[0].arrays(); tupelo.dask; sys.exit('dask' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_damaged_manifests_are_refused_or_planned(tmp_path: Path) -> None:
    """Every value of a manifest is replaced by others, and by none."""
    with tupelo.recreate(tmp_path / "a.root") as file:
        file["Events"] = {"x": [1.5, 2.5]}
    whole = json.dumps(tupelo.index(tmp_path / "a.root"))

    def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, below in items:
            yield (*path, key)
            yield from places(below, (*path, key))

    others: list[Any] = [None, -1, 1 << 64, 1e300, True, "", "x" * 10_000, "\0", "AAAA", [], [[]], {}, {"a": 1}]
    cases = 0
    for path in places(json.loads(whole)):
        for other in [*others, "left out"]:
            manifest = json.loads(whole)
            *above, last = path
            around = functools.reduce(operator.getitem, above, manifest)
            if other == "left out":
                del around[last]
            else:
                around[last] = other
            with contextlib.suppress(tupelo.Error):
                tupelo.partitions(manifest=manifest)
            cases += 1
    assert cases > 200
