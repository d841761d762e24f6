"""uproot with Tupelo's engine under it: the same values and types as uproot alone."""

import gc
import os
import pickle
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot
from misread_lengths import misread_lengths_fail

import tupelo
import tupelo.uproot as carried
from tupelo.uproot import _handles, _trees
from tupelo.uproot._pause import without_collections

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
pytestmark = pytest.mark.usefixtures("strict_engine")
TREES = sorted((DATA / "trees").glob("*.root")) + sorted(DATA.glob("*_tree.root"))
NTUPLES = sorted(DATA.glob("*_rntuple_*.root")) + sorted(DATA.glob("cms_*_ntuple.root"))
FAILED = object()
"""What uproot could not read."""
TREE_CLASSES = ("TTree", "TNtuple", "TNtupleD")
HAS_NTUPLES = find_spec("uproot.behaviors.RNTuple") is not None
"""Whether the engine serves ntuples in this version of uproot, which is not so in the oldest."""


@pytest.fixture
def path() -> Path:
    """A tree with several baskets and an ntuple with several clusters."""
    path = Path("engine.root")
    numbers = np.arange(60)
    lists = ak.Array([[0.5 * n for n in range(number % 4)] for number in numbers])
    p = np.stack([numbers] * 3, axis=1).astype("f4")
    columns = {"run": numbers, "p": p, "pt": lists, "ok": numbers % 3 == 0, "x": numbers.astype("f4") / 4}
    types = {"run": "int64", "p": np.dtype(("f4", (3,))), "pt": "var * float64", "ok": "bool", "x": "float32"}
    with uproot.recreate(path) as file:
        tree = file.mktree("dir/Events", types, title="simulated")
        for first in range(0, 60, 20):
            tree.extend({name: column[first : first + 20] for name, column in columns.items()})
        if HAS_NTUPLES:
            ntuple = file.mkrntuple("Ntuple", {**columns, "s": ak.Array([str(n) for n in numbers])})
            for _ in range(3):
                ntuple.extend({"s": ak.Array(list("abcdefghijklmnopqrst")), **{n: columns[n][:20] for n in columns}})
    return path


def alone(function: Any) -> Any:
    """The result of uproot itself, or its error."""
    carried.uninstall()
    try:
        return function()
    except Exception as error:
        return error
    finally:
        carried.install()


def same(ours: Any, theirs: Any) -> bool:
    """Whether arrays are identical in type and value."""
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list | tuple):
        return all(map(same, ours, theirs))
    if isinstance(theirs, ak.Array):
        is_equal = ak.array_equal(ours, theirs, equal_nan=True, dtype_exact=True, check_parameters=True)
        return bool(ours.type == theirs.type and ours.layout.form == theirs.layout.form and is_equal)
    if isinstance(theirs, np.ndarray):
        if (ours.dtype, ours.shape, ours.flags.writeable) != (theirs.dtype, theirs.shape, theirs.flags.writeable):
            return False
        if theirs.dtype == object:
            return all(map(same, ours.ravel(), theirs.ravel()))
        return ours.tobytes() == theirs.tobytes()
    if hasattr(theirs, "equals"):
        return type(ours) is type(theirs) and bool(ours.equals(theirs))
    # Objects of uproot have no equality.
    return type(ours) is type(theirs) and (ours == theirs or not isinstance(theirs, str | int | float))


def check(function: Any) -> Any:
    """Compares a read with that of uproot alone."""
    theirs, ours = alone(function), function()
    assert same(ours, theirs), (getattr(ours, "type", ours), getattr(theirs, "type", theirs))
    return ours


def served() -> int:
    return carried.report(clear=True).served


def check_all(reads: dict[Any, Any]) -> None:
    """Compares reads with those of uproot alone, where it can read. The engine is taken out once for all of them."""

    def attempt(read: Any) -> Any:
        try:
            return read()
        except Exception:
            # The error would keep what has been read until then.
            return FAILED

    theirs = alone(lambda: [attempt(read) for read in reads.values()])
    assert len(theirs) == len(reads)
    for (what, read), expected in zip(reads.items(), theirs, strict=True):
        if expected is not FAILED:
            assert same(read(), expected), what


@pytest.mark.parametrize("file", TREES, ids=lambda path: path.stem)
def test_every_branch_of_real_trees_is_identical(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUPELO_UPROOT", "")
    with warnings.catch_warnings(), misread_lengths_fail():
        warnings.simplefilter("ignore")
        root = uproot.open(file)
        for name, class_name in root.classnames().items():
            if class_name not in TREE_CLASSES:
                continue
            reads = {}
            for number, branch in enumerate(root[name].itervalues(recursive=True)):
                for library in ("ak", "np"):
                    span = (1, max(branch.num_entries - 1, 1)) if library == "np" else (None, None)

                    def read(branch: Any = branch, span: Any = span, library: str = library) -> Any:
                        return branch.array(*span, library=library, array_cache=None)

                    reads[number, name, branch.object_path, library] = read
            check_all(reads)


@pytest.mark.parametrize("file", NTUPLES, ids=lambda path: path.stem)
def test_every_field_of_real_ntuples_is_identical(file: Path) -> None:
    root = uproot.open(file)
    for name, class_name in root.classnames().items():
        if class_name != "ROOT::RNTuple":
            continue
        ntuple = root[name]
        fields = enumerate(ntuple.itervalues(recursive=True))
        reads = {(number, name, field.path): field.array for number, field in fields}
        check_all(reads | {(name, "all"): ntuple.arrays})


def test_libraries_ranges_and_containers(path: Path) -> None:
    file = uproot.open(path, array_cache=None)
    tree = file["dir/Events"]
    for table, count in [(tree, 6)] + ([(file["Ntuple"], 6)] if HAS_NTUPLES else []):
        for library, how in ("ak", None), ("ak", dict), ("ak", tuple), ("np", None), ("np", list), ("pd", None):
            # Lists in pandas need a package that is not there.
            names = ["run", "ok", "x"] if library == "pd" else ["run", "p", "pt", "ok", "x"]
            for entries in (None, None), (0, 20), (13, 47), (-5, None), (59, 60), (7, 7), (10, 1000):
                which: dict[str, Any] = {"entry_start": entries[0], "entry_stop": entries[1]}
                which |= {"library": library, "how": how}
                check(lambda table=table, names=names, which=which: table.arrays(names, **which))
        served()
        table.arrays()
        assert served() == count
    check(lambda: tree.arrays(how="zip"))
    check(lambda: tree.arrays(["pt", "run * 2"], cut="run > 30", aliases={"r": "run"}))
    check(lambda: tree.arrays(["p"], ak_add_doc=True))
    check(lambda: tree["pt"].array(ak_add_doc={"title": "title"}))
    if not HAS_NTUPLES:
        return
    check(lambda: file["Ntuple"].arrays(filter_name="p*", ak_add_doc={"typename": "typename"}))
    check(lambda: file["Ntuple"].arrays(["x", "run"]))
    check(lambda: file["Ntuple"]["pt"].array(library="np"))


def test_iterate_concatenate_and_dask(path: Path) -> None:
    where = {str(path): "dir/Events"}
    for step in 20, 13, "1 kB":
        steps = alone(lambda step=step: list(uproot.iterate(where, step_size=step)))  # type: ignore[misc]
        assert all(map(same, uproot.iterate(where, step_size=step), steps))
    assert served() > 0
    check(lambda: uproot.concatenate([where, where]))
    assert served() == 12
    lazy = uproot.dask(where)
    check(lambda: lazy.compute(scheduler="sync"))
    assert served() == 6
    if not HAS_NTUPLES:
        # It has no virtual arrays either.
        return
    virtual = uproot.open(path)["dir/Events"].arrays(virtual=True)
    assert same(ak.materialize(virtual.pt), uproot.open(path)["dir/Events"]["pt"].array())


def test_steps_that_are_smaller_than_the_baskets_are_left_to_uproot(path: Path) -> None:
    found = list(uproot.iterate({str(path): "dir/Events"}, ["run"], step_size=2))
    assert [batch.run.tolist() for batch in found[:2]] == [[0, 1], [2, 3]]
    assert carried.report(clear=True).passed == {"the steps are smaller than the baskets": 30}


def test_one_request_for_all_branches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []
    read = _handles.Handle.read
    monkeypatch.setattr(
        _handles.Handle, "read", lambda self, names, *entries: requests.append(names) or read(self, names, *entries)
    )
    tree = uproot.open(path, array_cache=None)["dir/Events"]
    tree.arrays()
    requests.clear()
    tree.arrays()
    assert requests == [["run", "p", "npt", "pt", "ok", "x"]]


def test_options_that_uproot_serves(path: Path) -> None:
    file = uproot.open(path, array_cache=None)
    tree = file["dir/Events"]
    with ThreadPoolExecutor(1) as pool:
        check(lambda: tree.arrays(interpretation_executor=pool))
    check(lambda: tree["x"].array(uproot.interpretation.numerical.AsDtype(">u4")))
    if HAS_NTUPLES:
        check(lambda: file["Ntuple"].arrays(array_cache={}, filter_name="run"))
    report = carried.report()
    assert report.served == 0
    reasons = {"an executor was given", "its type float32 is uint32 in uproot", "array_cache was given"}
    assert set(report.passed) == (reasons if HAS_NTUPLES else reasons - {"array_cache was given"})
    cache: dict[str, Any] = {}
    assert same(tree["run"].array(array_cache=cache), next(iter(cache.values())))
    before = served()
    tree["run"].array(array_cache=cache)
    assert (before, served()) == (1, 0)


def test_the_module_is_uproot(path: Path) -> None:
    assert carried.open is uproot.open
    assert carried.behaviors.TBranch is uproot.behaviors.TBranch
    assert set(dir(uproot)) <= set(dir(carried))
    assert carried.open(f"{path}:dir/Events")["run"].array().tolist() == list(range(60))
    with pytest.raises(AttributeError, match=r"neither module 'tupelo\.uproot' nor uproot"):
        _ = carried.nothing


def test_report_says_what_ran_where(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = uproot.open(path, array_cache=None)["dir/Events"]
    tree.arrays(["run", "x"], entry_stop=10)
    tree["x"].array(uproot.interpretation.numerical.AsDtype(">u4"))
    report = carried.report(clear=True)
    call = report.calls[0]
    assert (call.served, call.passed, call.entry_start, call.entry_stop) == (2, {}, 0, 10)
    assert call.where == f"{path}:/dir/Events;1"
    assert (report.served, report.passed) == (2, {"its type float32 is uint32 in uproot": 1})
    assert repr(report) in capsys.readouterr().out
    assert "1 by uproot: its type float32 is uint32 in uproot (x)" in repr(report)
    assert carried.report().calls == ()


def test_off_leaves_uproot_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried.uninstall()
    original = uproot.behaviors.TBranch._ranges_or_baskets_to_arrays
    monkeypatch.setenv("TUPELO_UPROOT", "off")
    carried.install()
    assert uproot.behaviors.TBranch._ranges_or_baskets_to_arrays is original
    monkeypatch.setenv("TUPELO_UPROOT", "Off")
    with pytest.raises(tupelo.InvalidArgumentError, match="'strict' or 'off', not 'Off'"):
        carried.install()
    monkeypatch.setenv("TUPELO_UPROOT", "")
    carried.install()
    carried.install()
    assert uproot.behaviors.TBranch._ranges_or_baskets_to_arrays is not original
    carried.uninstall()
    carried.uninstall()
    assert uproot.behaviors.TBranch._ranges_or_baskets_to_arrays is original
    assert uproot.open(path)["dir/Events"]["run"].array().tolist() == list(range(60))
    assert served() == 0


def test_another_signature_leaves_uproot_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried.uninstall()
    original = uproot.behaviors.TBranch._ranges_or_baskets_to_arrays

    def changed(*args: Any, one_more: int = 0) -> Any:
        return original(*args)

    monkeypatch.setattr(uproot.behaviors.TBranch, "_ranges_or_baskets_to_arrays", changed)
    with pytest.warns(carried.EngineWarning, match="is not known to Tupelo"):
        carried.install()
    # Not twice, which would be an error here.
    carried.install()
    assert uproot.behaviors.TBranch._ranges_or_baskets_to_arrays is changed
    assert uproot.open(path)["dir/Events"]["run"].array().tolist() == list(range(60))
    carried.uninstall()


def test_the_collector_pauses_where_uproot_makes_many_objects(path: Path) -> None:
    seen: list[bool] = []

    def note(branch: Any) -> bool:
        seen.append(gc.isenabled())
        return True

    uproot.open(path)["dir/Events"].arrays(filter_branch=note)
    assert seen
    assert not any(seen)
    assert gc.isenabled()
    # Calls may overlap, fail, and find it off.
    with without_collections():
        uproot.open(path)["dir/Events"].arrays()
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError), without_collections():
        _ = 1 / 0
    assert gc.isenabled()
    gc.disable()
    try:
        uproot.open(path)["dir/Events"].arrays()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_fork_in_a_pause_leaves_the_collector_on() -> None:
    with without_collections(), warnings.catch_warnings():
        # Of forks beside threads.
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_lists_in_pandas_without_their_package_are_no_error_of_tupelo(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a warning said that Tupelo fails; in strict mode the error was that of Tupelo."""
    monkeypatch.setitem(sys.modules, "awkward_pandas", None)
    tree = uproot.open(path, array_cache=None)["dir/Events"]
    for mode in "strict", "":
        monkeypatch.setenv("TUPELO_UPROOT", mode)
        for names in ["x", "pt"], ["x", "p"]:
            served()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(ModuleNotFoundError, match="install the 'awkward-pandas'"):
                    tree.arrays(names, library="pd")
            report = carried.report()
            assert (report.served, report.passed) == (1, {"awkward-pandas is not installed": 1})
    check(lambda: tree.arrays(["x", "ok"], library="pd"))
    if HAS_NTUPLES:
        # uproot needs no package for lists in ntuples.
        check(lambda: uproot.open(path)["Ntuple"].arrays(["x", "pt"], library="pd"))


def test_an_error_of_tupelo_leaves_the_branch_to_uproot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, arrays_of = uproot.open(path, array_cache=None)["dir/Events"], _trees.arrays_of

    def failing(handle: Any, read: Any, plans: Any) -> Any:
        if any(plan.pattern == "pt" for plan in plans.values()):
            raise tupelo.CorruptError("a fault")
        return arrays_of(handle, read, plans)

    monkeypatch.setattr(_trees, "arrays_of", failing)
    with pytest.raises(tupelo.CorruptError, match="a fault"):
        tree.arrays()
    monkeypatch.setenv("TUPELO_UPROOT", "")
    served()
    with pytest.warns(carried.EngineWarning, match=r"branch 'pt' is left to uproot.*CorruptError: a fault") as caught:
        first, second = tree.arrays(), tree.arrays()
    assert len(caught) == 1
    assert same(first, alone(tree.arrays))
    assert same(second, first)
    report = carried.report()
    assert (report.served, report.passed) == (10, {"CorruptError: a fault": 2})


def test_a_rewritten_file_is_opened_again(path: Path) -> None:
    for first in 0, 100, 200:
        with uproot.recreate(path) as file:
            file.mktree("Events", {"x": "int32"}).extend({"x": np.arange(first, first + 3, dtype="i4")})
        assert uproot.open(path)["Events"]["x"].array().tolist() == [first, first + 1, first + 2]
    assert served() == 3


def test_older_cycles_and_moved_directories(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with uproot.recreate(path) as file:
        for first in 0, 100:
            file.mktree("Events", {"x": "int32"}).extend({"x": np.arange(first, first + 3, dtype="i4")})
    file = uproot.open(path)
    assert file["Events;1"]["x"].array().tolist() == [0, 1, 2]
    assert file["Events;2"]["x"].array().tolist() == [100, 101, 102]
    assert served() == 2
    # Another file has the same relative path.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with uproot.recreate(path) as other:
        other.mktree("Events", {"x": "int32"}).extend({"x": np.arange(7, 10, dtype="i4")})
    assert file["Events;2"]["x"].array(array_cache=None).tolist() == [100, 101, 102]
    assert carried.report().passed == {"the file is another one by now": 1}


def test_threads_and_pickles(path: Path) -> None:
    expected = alone(lambda: uproot.open(path)["dir/Events"].arrays())

    def read(number: int) -> bool:
        tree = uproot.open(path)["dir/Events"]
        return same(tree.arrays(), expected) and same(tree["pt"].array(None, number), expected.pt[number:])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(40)))
    tree = uproot.open(path)["dir/Events"]
    tree.arrays()
    assert same(pickle.loads(pickle.dumps(tree)).arrays(array_cache=None), expected)


def test_a_forked_child_opens_files_itself(path: Path) -> None:
    script = f"""
import multiprocessing, tupelo.uproot as uproot
def read(_):
    return len(uproot.open({str(path)!r})["dir/Events"].arrays().run), uproot.report().served > 0
assert read(0) == (60, True)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(read, range(4)) == [(60, True)] * 4
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_without_uproot_the_error_says_how_to_install_it() -> None:
    script = "import sys; sys.modules['uproot'] = None\nimport tupelo.uproot"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "tupelo.uproot needs uproot" in done.stderr
    assert "pip install 'uproot>=5.6'" in done.stderr


def test_what_is_not_a_file_with_a_path_is_left_to_uproot(path: Path) -> None:
    with path.open("rb") as file:
        assert uproot.open(file)["dir/Events"]["run"].array().tolist() == list(range(60))
    assert carried.report().passed == {"it is not a file with a path": 1}


def unpacked(blocks: bytes) -> Iterator[bytes]:
    """The contents of ROOT's blocks of zlib: a tag, a method, and the sizes."""
    while blocks:
        assert blocks[:3] == b"ZL\x08"
        packed, whole = (int.from_bytes(blocks[start : start + 3], "little") for start in (3, 6))
        yield zlib.decompress(blocks[9 : 9 + packed])
        assert packed < whole
        blocks = blocks[9 + packed :]


def test_compression_reads_the_same_and_is_left_to_uproot_where_it_has_the_same_library() -> None:
    compress = uproot.compression.compress
    random = np.random.default_rng(1)
    noise, text = random.bytes(1000), b"many words, " * 2_000_000
    for level in 1, 5, 9:
        setting = uproot.ZLIB(level)
        assert compress(noise, setting) is noise
        assert compress(b"", setting) == b""
        data: Any
        for data in text[:1000], memoryview(text)[:1000], np.arange(1000, dtype="i8").view("u1"), text:
            packed, whole = compress(data, setting), bytes(data)
            assert b"".join(unpacked(packed)) == whole
            if len(whole) < 100_000:
                assert len(packed) <= 1.1 * len(alone(lambda data=data, setting=setting: compress(data, setting)))
    for setting in uproot.ZSTD(5), uproot.LZ4(4), uproot.LZMA(1), uproot.ZLIB(0), None:
        own = alone(lambda setting=setting: uproot.compression.compress(text[:1000], setting))
        assert compress(text[:1000], setting) == own


@pytest.mark.skipif(not HAS_NTUPLES, reason="this uproot writes no such ntuples")
def test_an_ntuple_can_be_read_after_each_extend(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = []
    write = uproot.sink.file.FileSink.write
    monkeypatch.setattr(
        uproot.sink.file.FileSink,
        "write",
        lambda self, where, data: writes.append(len(data)) or write(self, where, data),
    )

    def make(path: str) -> list[Any]:
        found = []
        with uproot.recreate(path) as file:
            file["h"] = np.histogram([1, 2, 3])
            columns = {"x": "float64", "y": "var * int32", "s": "string"} | {f"n{n}": "int16" for n in range(10)}
            ntuple = file.mkrntuple("dir/Events", columns)
            for start in range(0, 30, 10):
                numbers = np.arange(start, start + 10)
                lists = ak.Array([[n] * (n % 3) for n in numbers])
                data = {
                    "x": numbers / 2,
                    "y": ak.values_astype(lists, "int32"),
                    "s": ak.Array([str(n) for n in numbers]),
                }
                ntuple.extend(data | {f"n{n}": numbers.astype("i2") + n for n in range(10)})
                found.append(uproot.open(path)["dir/Events"].arrays())
                with pytest.raises(ValueError, match="not compatible"):
                    ntuple.extend({**data, **{f"n{n}": numbers for n in range(10)}})
        with uproot.update(path) as file:
            file["dir/Events"].extend(data | {f"n{n}": numbers.astype("i2") for n in range(10)})
        return [*found, uproot.open(path)["dir/Events"].arrays(), uproot.open(path)["h"].values()]

    theirs = alone(lambda: make("alone.root"))
    number = len(writes)
    ours = make("carried.root")
    assert [len(one) for one in ours] == [10, 20, 30, 40, 10]
    assert all(map(same, ours, theirs))
    assert len(writes) - number < number / 2
    assert same(tupelo.open("carried.root:dir/Events").arrays().x, theirs[3].x)
