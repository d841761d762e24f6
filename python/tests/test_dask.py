"""Dask collections equal a local read bit by bit, even if workers fail."""

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest

import tupelo
from tupelo._many.partition import Partition

# These packages import their own deprecated modules.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dask
    import dask_awkward as dak
    import distributed


def entries(size: int, seed: int) -> dict[str, Any]:
    """Flat, jagged, nested, optional and string fields."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size)
    jets = ak.zip(
        {
            "pt": ak.unflatten(rng.exponential(30, int(counts.sum())).astype("f4"), counts),
            "eta": ak.unflatten(rng.normal(size=int(counts.sum())), counts),
        }
    )
    return {
        "x": rng.normal(size=size),
        "n": rng.integers(0, 9, size, dtype="i4"),
        "jets": jets,
        "maybe": ak.mask(rng.normal(size=size), rng.random(size) < 0.7),
        "text": [f"event {number}" for number in range(size)],
    }


@pytest.mark.parametrize("make", [tupelo.dask, tupelo.dask_dataframe])
@pytest.mark.parametrize("unknown", ["entry_start", "nonsense", "library"])
def test_unknown_keywords_are_rejected(make: Any, unknown: str) -> None:
    """Regression: unknown keywords were ignored."""
    with tupelo.recreate("unknown.root") as file:
        file["Events"] = {"x": [1]}
    with pytest.raises(TypeError, match=rf"{make.__name__}\(\) got an unexpected keyword argument '{unknown}'"):
        make("unknown.root", **{unknown: "x > 1"})


def write(path: Path, clusters: list[int], seed: int, fields: list[str] | None = None) -> None:
    with tupelo.recreate(path, compression="none") as file:
        ntuple = None
        for place, size in enumerate(clusters):
            made = entries(size, 100 * seed + place)
            piece = ak.Array({name: made[name] for name in fields or made})
            if ntuple is None:
                ntuple = file.mkrntuple("Events", piece)
            else:
                ntuple.extend(piece)
            ntuple.flush_cluster()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"run{run}.root" for run in range(3)]
    for seed, path in enumerate(paths):
        write(path, [60 + 10 * seed] * 4, seed)
    return paths


def single(files: list[Path], *names: str) -> ak.Array:
    """The result of reading in one process."""
    arrays = [tupelo.open({path: "Events"}).arrays(list(names) or None) for path in files]
    return ak.concatenate(arrays) if len(arrays) > 1 else arrays[0]


def same(one: Any, other: Any) -> bool:
    """Compares bit by bit, including types. The bits of missing values are ignored."""

    def without_missing(layout: Any, **_: Any) -> Any:
        is_masked = layout.is_option and not layout.is_indexed
        return layout.to_IndexedOptionArray64() if is_masked else None

    one, other = (ak.to_packed(ak.transform(without_missing, array)) for array in (one, other))
    if one.type != other.type:
        return False
    (_, _, data), (_, _, expected) = ak.to_buffers(one), ak.to_buffers(other)
    return list(data) == list(expected) and all(data[key].tobytes() == expected[key].tobytes() for key in data)


def test_the_comparison_detects_single_bits() -> None:
    one = ak.Array({"x": [0.0, 1.0], "y": [[1], None]})
    assert same(one, ak.Array({"x": [0.0, 1.0], "y": [[1], None]}))
    for other in ({"x": [-0.0, 1.0], "y": [[1], None]}, {"x": [0.0, 1.0], "y": [[1], []]}, {"x": [0.0, 1.0]}):
        assert not same(one, ak.Array(other))


def test_the_collection_equals_a_local_read(files: list[Path]) -> None:
    whole = single(files)
    for how in ({}, {"clusters_per_partition": 1}, {"step_size": 100}, {"step_size": "3 kB"}):
        events = tupelo.dask("run*.root:Events", **how)  # type: ignore[arg-type]
        assert events.npartitions == len(tupelo.partitions("run*.root", **how))  # type: ignore[arg-type]
        assert events.fields == whole.fields
        assert same(events.compute(scheduler="sync"), whole)
    assert events.divisions[-1] == len(whole)
    assert same(events[100:200].compute(scheduler="threads"), whole[100:200])
    again = tupelo.dask("run*.root:Events", step_size="3 kB")
    assert again.name == events.name


def touched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...] | None]:
    """Records the columns of every partition that is read."""
    seen: list[tuple[str, ...] | None] = []
    read = Partition._read

    def noting(partition: tupelo.Partition) -> Any:
        seen.append(partition.columns)
        return read(partition)

    monkeypatch.setattr(Partition, "_read", noting)
    return seen


def test_expressions_and_cuts_run_on_workers(files: list[Path]) -> None:
    given: dict[str, Any] = {"expressions": ["n", "x * k", "jets"], "cut": "x > 0", "aliases": {"k": "n + 1"}}
    whole = ak.concatenate([tupelo.open({path: "Events"}).arrays(**given) for path in files])
    events = tupelo.dask(files, step_size=50, **given)
    assert not events.known_divisions
    assert same(events.compute(scheduler="sync"), whole)
    assert same(events["x * k"].compute(scheduler="sync"), whole["x * k"])
    assert same(events.jets.pt.compute(scheduler="sync"), whole.jets.pt)
    assert ak.num(events, axis=0).compute(scheduler="sync") == len(whole)
    flat = tupelo.dask_dataframe(files, expressions=["n", "x * k"], cut="x > 0", aliases={"k": "n + 1"})
    assert flat["x * k"].compute(scheduler="sync").tolist() == whole["x * k"].tolist()
    assert flat.n.compute(scheduler="sync").tolist() == whole.n.tolist()


def test_files_with_different_fields_form_one_collection(tmp_path: Path) -> None:
    for run, fields in enumerate(({"x": [1.5], "old": [True]}, {"new": [[1, 2]], "x": [2.5]})):
        with tupelo.recreate(tmp_path / f"fields{run}.root") as file:
            file["Events"] = fields
    named = f"{tmp_path}/fields?.root:Events"
    with pytest.warns(tupelo.TupeloWarning, match="some files lack: old, new"):
        common = tupelo.dask(named)
    assert common.compute(scheduler="sync").tolist() == [{"x": 1.5}, {"x": 2.5}]
    union = tupelo.dask(named, fields="union")
    expected = [{"x": 1.5, "old": True, "new": None}, {"x": 2.5, "old": None, "new": [1, 2]}]
    assert union.compute(scheduler="sync").tolist() == expected
    assert union.new.compute(scheduler="sync").tolist() == [None, [1, 2]]
    assert union.x.compute(scheduler="sync").tolist() == [1.5, 2.5]


def test_only_necessary_columns_are_read(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = single(files)
    events = tupelo.dask(files)
    seen = touched(monkeypatch)

    def columns_of(computation: Any, expected: Any) -> set[str]:
        seen.clear()
        found = computation.compute(scheduler="sync")
        assert same(found, expected) if isinstance(expected, ak.Array) else found == expected
        assert len(seen) <= len(files)
        assert len(set(seen)) <= 1
        return set(seen[0] or ()) if seen else set()

    assert columns_of(events.x, whole.x) == {"x"}
    assert columns_of(events.jets.pt, whole.jets.pt) == {"jets.pt"}
    assert columns_of(events.jets, whole.jets) == {"jets.pt", "jets.eta"}
    assert len(columns_of(dak.num(events.jets, axis=1), ak.num(whole.jets, axis=1))) == 1
    assert columns_of(events.x[events.n > 4], whole.x[whole.n > 4]) == {"x", "n"}
    assert columns_of(events[events.n > 4].maybe, whole[whole.n > 4].maybe) == {"n", "maybe"}
    hard = events.jets[events.jets.pt > 20]
    assert columns_of(hard.eta, whole.jets[whole.jets.pt > 20].eta) == {"jets.pt", "jets.eta"}
    # Fields that are passed on unused have no data.
    assert columns_of(events[["x", "jets", "text"]].x, whole.x) == {"x"}
    assert columns_of(events.text, whole.text) == {"text"}
    assert columns_of(dak.num(events, axis=0), len(whole)) == set()
    assert dak.necessary_columns(events.jets.pt)[events.name] == frozenset({"jets.pt"})
    seen.clear()
    assert same(events.compute(scheduler="sync"), whole)
    assert set(seen) == {None}


def damage(path: Path, values: Any) -> None:
    """Flips a bit in the page of these values."""
    content = bytearray(path.read_bytes())
    place = content.find(np.asarray(values).tobytes())
    assert place > 0
    content[place + 3] ^= 0x10
    path.write_bytes(bytes(content))


def test_projection_reaches_the_reader(files: list[Path]) -> None:
    """A damaged page of an unused column is not detected, because it is not read."""
    whole = single(files)
    damage(files[1], whole.x[240:310])
    events = tupelo.dask(files, clusters_per_partition=1)
    assert same(events.jets.compute(scheduler="sync"), whole.jets)
    with pytest.raises(tupelo.CorruptError, match=r"run1.root.*field 'x'.*cluster 0"):
        events.x.compute(scheduler="sync")


def test_errors_are_reported_by_partition(files: list[Path]) -> None:
    whole = single(files)
    damage(files[1], whole.x[310:380])
    files[2].unlink()
    write(files[2], [80] * 4, 7)
    manifest = tupelo.index(files)
    files[2].unlink()
    events, report = tupelo.dask(manifest=manifest, clusters_per_partition=1, allow_read_errors_with_report=True)
    found, rows = dask.compute(events.x, report, scheduler="sync")
    assert same(found, ak.concatenate([whole.x[:310], whole.x[380:520]]))
    assert len(rows) == 12
    assert rows.fields == list(tupelo.PartitionReport.__dataclass_fields__)
    assert ak.is_none(rows.error).tolist() == [True] * 5 + [False] + [True] * 2 + [False] * 4
    bad = rows[5].tolist()
    assert bad | {"cause": ""} == {
        "file": str(files[1]),
        "ntuple": "Events",
        "entry_start": 70,
        "entry_stop": 140,
        "cluster": 1,
        "column": "x",
        "error": "CorruptError",
        "cause": "",
    }
    assert "page checksum mismatch" in bad["cause"]
    assert rows.error[8:].tolist() == ["MissingFileError"] * 4
    assert "cannot open" in rows.cause[8]
    # Without the damaged column, and with some errors allowed only.
    found, rows = dask.compute(events.n, report, scheduler="sync")
    assert len(found) == 520
    events, report = tupelo.dask(manifest=manifest, allow_read_errors_with_report=(FileNotFoundError,))
    with pytest.raises(tupelo.CorruptError):
        dask.compute(events.x, report, scheduler="sync")
    found, _ = dask.compute(events.n, report, scheduler="sync")
    assert len(found) == 520


def test_many_small_files_share_partitions(tmp_path: Path) -> None:
    """Defect: each file was a task, so that thousands of small files took minutes."""
    for number in range(100):
        with tupelo.recreate(tmp_path / f"{number:03}.root") as file:
            file["Events"] = {"x": [float(number), 0.5], "y": [[number], []]}
    names = str(tmp_path / "*.root")
    events, report = tupelo.dask(names, allow_read_errors_with_report=True)
    frame = tupelo.dask_dataframe(names, names="x")
    plain = tupelo.dask(names)
    assert plain.npartitions == frame.npartitions == events.npartitions == 25
    expected = [value for number in range(100) for value in (float(number), 0.5)]
    assert plain.x.compute(scheduler="sync").tolist() == expected
    assert len(plain.compute(scheduler="sync")) == 200
    assert ak.count(plain.y, axis=None).compute(scheduler="sync") == 100
    found = frame.compute(scheduler="sync")
    assert (found.x.tolist(), found.index.tolist()) == (expected, list(range(200)))
    assert plain.divisions[1] == 8
    # A bad file takes no other one with it, and the caller may divide otherwise.
    (tmp_path / "001.root").unlink()
    array, rows = dask.compute(events.x, report, scheduler="sync")
    assert array.tolist() == expected[:2] + expected[4:]
    assert (len(rows), ak.is_none(rows.error).tolist().count(False)) == (100, 1)
    (tmp_path / "002.root").unlink()
    with pytest.raises(tupelo.MissingFileError):
        plain.x.compute(scheduler="sync")
    assert tupelo.dask(str(tmp_path / "0[1-5]*.root"), steps_per_file=1).npartitions == 50


def test_a_manifest_needs_no_file_for_planning(files: list[Path]) -> None:
    whole = single(files)
    manifest = tupelo.index(files)
    for path in files:
        path.rename(path.with_suffix(".away"))
    events = tupelo.dask(manifest=manifest)
    frame = tupelo.dask_dataframe(manifest=manifest, names=["x", "n"])
    assert str(events.layout.form.type) == str(whole.layout.form.type)
    assert list(frame.columns) == ["x", "n"]
    for path in files:
        path.with_suffix(".away").rename(path)
    assert same(events.compute(scheduler="sync"), whole)
    assert frame.x.compute(scheduler="sync").tolist() == whole.x.tolist()


def test_files_without_entries() -> None:
    with tupelo.recreate("empty.root") as file:
        file.mkrntuple("Events", {"x": "double", "y": "std::vector<float>"}).close()
    events = tupelo.dask("empty.root")
    assert events.compute(scheduler="sync").tolist() == []
    assert len(tupelo.dask_dataframe("empty.root", names="x").compute(scheduler="sync")) == 0


def test_frames_equal_a_local_read(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    flat = ["x", "n", "maybe", "text"]
    arrays = [tupelo.open({path: "Events"}).arrays(flat, library="pd") for path in files]
    whole = pd.concat(arrays, ignore_index=True)
    frame = tupelo.dask_dataframe(files, names=flat, clusters_per_partition=1)
    assert frame.npartitions == 12
    found = frame.compute(scheduler="sync")
    pd.testing.assert_frame_equal(found[["x", "n", "maybe"]], whole[["x", "n", "maybe"]], check_exact=True)
    assert found.text.tolist() == whole.text.tolist()
    assert frame.known_divisions
    assert frame.loc[230:250].x.compute(scheduler="sync").tolist() == whole.x[230:251].tolist()
    seen = touched(monkeypatch)
    assert frame.x.sum().compute(scheduler="sync") == pytest.approx(whole.x.sum(), rel=1e-12)
    assert set(seen) == {("x",)}
    seen.clear()
    assert frame[["n", "x"]].compute(scheduler="sync").columns.tolist() == ["n", "x"]
    assert {frozenset(columns or ()) for columns in seen} == {frozenset({"n", "x"})}
    with pytest.raises(tupelo.InvalidArgumentError, match=r"field 'jets' has the nested type .* use tupelo.dask"):
        tupelo.dask_dataframe(files)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    """Two processes on this machine with unused ports."""
    with dask.config.set({"temporary-directory": str(tmp_path / "dask"), "distributed.logging.distributed": "error"}):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        )
        with cluster, distributed.Client(cluster) as client:
            yield client


def slowly(array: Any) -> Any:
    """Takes long enough to kill its worker."""
    if ak.backend(array) != "typetracer":
        time.sleep(0.15)
    return array


@pytest.mark.filterwarnings("default::ResourceWarning", "default::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_changes_nothing(files: list[Path], client: Any) -> None:
    whole = single(files)
    workers = client.run(os.getpid)
    assert len(set(workers.values())) == 2
    assert os.getpid() not in workers.values()
    events = tupelo.dask(files, clusters_per_partition=1)
    hard = dak.map_partitions(slowly, events.jets[events.jets.pt > 20])
    future = client.compute(hard)
    deadline = time.monotonic() + 30
    while not any(client.run_on_scheduler(finished).values()) and time.monotonic() < deadline:
        time.sleep(0.02)
    done = client.run_on_scheduler(finished)
    assert any(done.values())
    assert not future.done()
    os.kill(next(iter(workers.values())), signal.SIGKILL)
    found = future.result(timeout=60)
    assert same(found, whole.jets[whole.jets.pt > 20])
    assert same(client.compute(events).result(timeout=60), whole)
    survivors = set(client.run(os.getpid).values())
    assert survivors != set(workers.values())
    frame = tupelo.dask_dataframe(files, names=["x", "n"], clusters_per_partition=1)
    assert client.compute(frame).result(timeout=60).x.tolist() == whole.x.tolist()
    # Partitions go to any executor, and a report comes back from another process.
    futures = client.map(tupelo.Partition.arrays, tupelo.partitions(files), pure=False)
    assert same(ak.concatenate(client.gather(futures)), whole)
    damage(files[0], whole.x[:60])
    events, report = tupelo.dask(files, allow_read_errors_with_report=True)
    found, rows = client.gather(client.compute([events.x, report]))
    assert same(found, whole.x[240:])
    assert rows.error.tolist() == ["CorruptError", None, None]


def finished(dask_scheduler: Any) -> dict[str, bool]:
    """Whether each task of the scheduler is done."""
    return {str(key): task.state == "memory" for key, task in dask_scheduler.tasks.items()}


def test_pickles_are_small(files: list[Path]) -> None:
    for partition in tupelo.partitions(files):
        assert len(pickle.dumps(partition)) < 1000


def test_missing_dask_is_reported() -> None:
    program = """
import sys
sys.modules["dask_awkward"] = sys.modules["dask.dataframe"] = None
import tupelo
with tupelo.recreate("f.root") as file: file["Events"] = {"x": [1.5]}
assert len(tupelo.partitions("f.root")) == 1
for function, package in (tupelo.dask, "dask-awkward"), (tupelo.dask_dataframe, "'dask[dataframe]'"):
    try: function("f.root")
    except ImportError as error: assert str(error).endswith(f"pip install {package}"), error
    else: raise AssertionError(function)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_real_files(real_ntuple: tuple[Path, str]) -> None:
    """All of it, and each field alone."""
    path, name = real_ntuple
    whole = tupelo.open({path: name}).arrays()
    events = tupelo.dask({path: name}, clusters_per_partition=1)
    assert same(events.compute(scheduler="sync"), whole)
    for field in whole.fields[:: 1 + len(whole.fields) // 20]:
        assert same(events[field].compute(scheduler="sync"), whole[field])


def test_histograms_equal_those_of_one_pass(files: list[Path]) -> None:
    names = [f"{path}:Events" for path in files]
    many = {
        "plain": "x",
        "lists": {"expressions": "jets.pt", "cut": "n > 3", "bins": [0, 5, 90]},
        "weighted": {"expressions": ["x", "x * 2"], "weight": "abs(x)", "bins": 5, "range": [(-5, 5), (0, 3)]},
        "profile": {"expressions": "n", "sample": "x + 1"},
    }
    how: dict[str, Any] = {"bins": 20, "range": (-5, 50), "cut": "x < 1"}
    several = tupelo.dask_hist(names, many, **how, step_size=7).compute(scheduler="sync")
    for name, expected in tupelo.hist(names, many, **how).items():
        one, other = expected.view(flow=True), several[name].view(flow=True)
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        for column in one.dtype.names or [...]:
            assert np.allclose(one[column], other[column], equal_nan=True), (name, column)
    single = tupelo.dask_hist(names, "x", bins=3, range=(0, 9)).compute(scheduler="sync")
    assert np.array_equal(single.values(flow=True), tupelo.hist(names, "x", bins=3, range=(0, 9)).values(flow=True))
    with pytest.raises(tupelo.InvalidArgumentError, match="needs a range or edges"):
        tupelo.dask_hist(names, "x")
    with pytest.raises(TypeError, match="unexpected keyword argument 'names'"):
        tupelo.dask_hist(names, "x", range=(0, 1), names=["x"])
