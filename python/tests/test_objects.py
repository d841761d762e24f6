"""Ntuples in object stores: in directories, behind a web server, and in S3 where `make servers` could install it."""

import contextlib
import json
import pickle
import random
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import servers
import uproot
from http_server import Server
from servers import NotInstalledError, Store

import tupelo

MAPPINGS = ["page", "cage:4KiB", "page-group", "cluster", "auto"]


@pytest.fixture
def run(command: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command in the temporary folder, and checks its exit status."""

    def call(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done

    return call


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Store]:
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(servers.s3(tmp_path))
        except NotInstalledError as error:
            pytest.skip(str(error))
        yield store


def values_of(ntuple: tupelo.Ntuple) -> tuple[str, dict[str, bytes]]:
    """Types and bytes of all values."""
    form, _, buffers = ak.to_buffers(ak.to_packed(ntuple.arrays()))
    return str(form.to_json()), {name: np.asarray(buffer).tobytes() for name, buffer in buffers.items()}


@pytest.mark.parametrize("mapping", ["page", "cage:64KiB", "cluster"])
def test_real_ntuples_are_copied_as_they_are(
    mapping: str, real_ntuple: tuple[Path, str], run: Callable[..., Any], tmp_path: Path
) -> None:
    path, name = real_ntuple
    source, uri = f"{path}:{name}", f"ntpl+file:{tmp_path}/objects"
    run("copy", source, uri, "--mapping", mapping)
    original, copied = tupelo.open({path: name}), tupelo.open(uri)
    assert isinstance(original, tupelo.Ntuple)
    assert isinstance(copied, tupelo.Ntuple)
    expected = values_of(original)
    assert values_of(copied) == expected
    assert copied.typenames() == original.typenames()
    run("verify", "--deep", uri)
    run("copy", uri, "back.root")
    back = tupelo.open({tmp_path / "back.root": name})
    assert isinstance(back, tupelo.Ntuple)
    assert values_of(back) == expected
    run("verify", "--deep", "back.root")
    with uproot.open(path) as file, uproot.open(tmp_path / "back.root") as again:
        for key in file[name].keys(recursive=False)[:20]:
            assert repr(again[name][key].array().tolist()) == repr(file[name][key].array().tolist()), key


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_an_ntuple_is_written_and_read(mapping: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = "ntpl+file:events"
    values = np.random.default_rng(1).normal(size=30_000)
    with tupelo.recreate(uri, mapping=mapping, page_bytes=4096, cluster_bytes=50_000) as store:
        store["Events"] = {"x": values, "n": [[1] * (i % 3) for i in range(30_000)]}
        assert store.keys() == ["Events"]
        assert not Path("events").exists()
    events = tupelo.open(uri)
    assert isinstance(events, tupelo.Ntuple)
    assert events.num_entries == 30_000
    assert events.name == "Events"
    assert events.arrays(library="np")["x"].tolist() == values.tolist()
    assert events.arrays(cut="x > 3")["x"].tolist() == values[values > 3].tolist()
    parts = [part["x"].to_numpy() for part in tupelo.iterate([f"{uri}", uri], "x", step_size=7000)]
    assert np.concatenate(parts).tolist() == [*values, *values]
    monkeypatch.chdir("/")
    # A relative URI stays valid.
    again = pickle.loads(pickle.dumps(events))
    assert again["n"].array(entry_start=29_999).tolist() == [[1] * (29_999 % 3)]
    assert events.take([29_998, 5])["x"].tolist() == [values[29_998], values[5]]
    objects = list((tmp_path / "events.objects").rglob("*"))
    assert {"page": len(objects) > 50, "cluster": len(objects) < 20}.get(mapping, True)


def test_what_cannot_be_done_is_said(tmp_path: Path, run: Callable[..., Any]) -> None:
    uri = f"ntpl+file:{tmp_path}/events"
    with tupelo.recreate(uri) as store:
        store["Events"] = {"x": [1]}
        with pytest.raises(tupelo.InvalidArgumentError, match="names one ntuple"):
            store["Others"] = {"x": [1]}
    with pytest.raises(tupelo.InvalidArgumentError, match="object stores have no directories"):
        tupelo.recreate(f"ntpl+file:{tmp_path}/other")["dir/Events"] = {"x": [1]}
    with pytest.raises(tupelo.InvalidArgumentError, match="must not end with :NAME"):
        tupelo.recreate(f"{uri}:Events")
    with pytest.raises(tupelo.InvalidArgumentError, match="this folder contains the objects of another ntuple"):
        tupelo.recreate(f"{uri}.objects/other")
    with pytest.raises(tupelo.UnsupportedError, match="cannot change a remote file in place"):
        tupelo.update(uri)
    with pytest.raises(tupelo.InvalidArgumentError, match="'pages' is not a mapping; expected page, cage:SIZE"):
        tupelo.recreate(uri, mapping="pages")
    with pytest.raises(tupelo.InvalidArgumentError, match="a mapping is for object stores"):
        tupelo.recreate(tmp_path / "a.root", mapping="page")
    with pytest.raises(tupelo.MissingFileError, match=r"nothing"):
        tupelo.open(f"ntpl+file:{tmp_path}/nothing")
    with pytest.raises(tupelo.NotFoundError, match=r"no ntuple named 'Other'.*'Events'"):
        tupelo.open({uri: "Other"})
    (tmp_path / "text").write_text("no anchor")
    with pytest.raises(tupelo.CorruptError, match="anchor: expected a JSON object"):
        tupelo.open(f"ntpl+file:{tmp_path}/text")
    with pytest.raises(tupelo.InvalidArgumentError, match="an object that is not an ntuple exists"):
        tupelo.recreate(f"ntpl+file:{tmp_path}/text")
    assert (tmp_path / "text").read_text() == "no anchor"
    run("copy", uri, "a.root")
    for arguments, status, expected in [
        (["copy", "a.root", uri], 1, "--force replaces it"),
        (["copy", "a.root", uri, "--append"], 2, "cannot add to an ntuple in an object store"),
        (["copy", "a.root", "b.root", "--mapping", "page"], 2, "--mapping requires an object store"),
        (["copy", "a.root", uri, "--mapping", "pages"], 2, "expected page, cage:SIZE"),
        (["copy", uri, uri, "--force"], 2, "is both input and output"),
        (["gc", "a.root"], 2, "is not in an object store"),
        (["gc", f"{tmp_path}/missing/"], 2, "is not in an object store"),
        (["gc", f"ntpl+file:{tmp_path}/"], 2, "/* selects all ntuples in it"),
        (["rm", "a.root"], 2, "expected FILE:NAME"),
        (["rm", f"{uri}s"], 1, "the ntuple does not exist"),
        (["rm", f"ntpl+file:{tmp_path}/x*"], 1, "no ntuple matches"),
        (["gc", uri, "--older-than", "1 week"], 2, "expected a number and s, m, h or d"),
        (["verify", "--repair", uri], 2, "only local files can be repaired"),
    ]:
        assert expected in run(*arguments, status=status).stderr, arguments


def test_the_file_of_an_object_has_one_ntuple(tmp_path: Path) -> None:
    uri = f"ntpl+file:{tmp_path}/events"
    with tupelo.recreate(uri) as store:
        store["Events"] = {"x": [1, 2]}
    assert tupelo.open({uri: None}).keys() == ["Events"]


def test_pages_of_another_ntuple_are_found(tmp_path: Path, run: Callable[..., Any]) -> None:
    for name, start in [("one", 0), ("two", 1000)]:
        with tupelo.recreate(f"ntpl+file:{tmp_path}/{name}", compression="none") as store:
            store["Events"] = {"x": np.arange(start, start + 100)}
    [one] = (tmp_path / "one.objects").iterdir()
    [two] = (tmp_path / "two.objects").iterdir()
    for number in "12":
        (one / number).write_bytes((two / number).read_bytes())
    damaged = run("verify", f"ntpl+file:{tmp_path}/one", status=1)
    assert "object 2 differs from what was written" in damaged.stdout + damaged.stderr


def test_the_command_knows_objects(tmp_path: Path, run: Callable[..., Any]) -> None:
    with tupelo.recreate(tmp_path / "a.root") as file:
        file["Events"] = {"x": np.arange(1000.0)}
    run("copy", "a.root", "ntpl+file:events", "--mapping", "page")
    run("copy", "a.root", "ntpl+file:events", "--force", "--fields", "x", "--entries", ":10")
    assert "Events" in run("ls", "ntpl+file:events").stdout
    assert "x" in run("schema", "ntpl+file:events").stdout
    assert run("dump", "ntpl+file:events", "--format", "csv").stdout.count("\n") == 11
    regions = json.loads(run("layout", "--json", "ntpl+file:events").stdout)["regions"]
    assert {region["what"] for region in regions} == {"header", "pages", "page list", "footer", "manifest", "anchor"}
    assert "would be removed" in run("gc", "--dry-run", "--older-than", "0", "ntpl+file:events").stderr
    document = json.loads(run("gc", "--older-than", "0", "--json", "ntpl+file:events").stdout)
    assert document["removed"]
    assert len(document["orphans"]) == 1
    assert len(list((tmp_path / "events.objects").iterdir())) == 1
    run("verify", "--deep", "ntpl+file:events")
    assert "1 entry" in run("ls", f"ntpl+file://{tmp_path}/").stdout
    run("copy", "a.root", "ntpl+file:other")
    for pattern in ("ntpl+file:*", f"ntpl+file:{tmp_path}/*", f"ntpl+file://{tmp_path}/{{events,other}}"):
        assert run("ls", pattern).stdout.count("Events") == 2
        assert run("gc", "--dry-run", pattern).stderr.count("would be removed") == 2
    (tmp_path / "loop").symlink_to(tmp_path)
    assert run("ls", f"ntpl+file:{tmp_path}/**/*").stdout.count("Events") == 2
    (tmp_path / "loop").unlink()
    # Folders are not ntuples.
    (tmp_path / "deep").mkdir()
    run("copy", "a.root", "ntpl+file:deep/one")
    assert run("verify", "ntpl+file:*").stderr.count("verified in") == 2
    assert run("verify", "ntpl+file:**").stderr.count("verified in") == 3
    assert run("ls", f"ntpl+file://{tmp_path}/").stdout.splitlines()[2].split() == ["NAME", "ANCHOR"]
    entries = json.loads(run("ls", "--json", f"ntpl+file://{tmp_path}/").stdout)["entries"]
    assert [entry["anchor_bytes"] is None for entry in entries] == [True, False, False]
    run("copy", "a.root", "ntpl+file:even[st]s")
    assert run("dump", "ntpl+file:even[st]s", "--format", "csv").stdout.count("\n") == 1001
    index = json.loads(run("index", f"ntpl+file://{tmp_path}/events").stdout)
    assert index["files"][0]["entries"] == 10


def test_ntuples_are_removed(tmp_path: Path, run: Callable[..., Any]) -> None:
    for name in ("one", "two", "three", "deep/one"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with tupelo.recreate(f"ntpl+file:{tmp_path}/{name}", mapping="page") as store:
            store["Events"] = {"x": np.arange(1000)}
    (tmp_path / "notes").write_text("of another program")
    assert "one: would be removed, with 5 objects" in run("rm", "--dry-run", "ntpl+file:one").stderr
    assert "one: removed, with 5 objects" in run("rm", "ntpl+file:one").stderr
    assert not list(tmp_path.glob("one*"))
    assert run("rm", "ntpl+file:t*").stderr.count(": removed") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "notes"]
    assert "1 of 2 files failed" in run("rm", "ntpl+file:deep/one", "ntpl+file:deep/two", status=1).stderr
    assert not list((tmp_path / "deep").iterdir())
    members = [f"ntpl+file:{tmp_path}/{name}" for name in "ab"]
    with tupelo.recreate(f"ntpl+mirror:{','.join(members)}") as store:
        store["Events"] = {"x": [1]}
    run("rm", f"ntpl+mirror:{','.join(members)}")
    for name in members:
        with pytest.raises(tupelo.MissingFileError):
            tupelo.open(name)


def test_ntuples_are_removed_from_a_server(s3: Store, run: Callable[..., Any]) -> None:
    uri = f"ntpl+{s3.url}removed"
    with tupelo.recreate(uri, storage_options=s3.options, mapping="page") as store:
        store["Events"] = {"x": np.arange(1000)}
    assert "removed: removed, with" in run("rm", uri, *s3.arguments).stderr
    assert "no ntuple matches" in run("gc", f"{uri}*", *s3.arguments, status=1).stderr
    with pytest.raises(tupelo.MissingFileError):
        tupelo.open(uri, storage_options=s3.options)


def test_what_killed_writers_leave_is_found_by_a_pattern(s3: Store, tmp_path: Path, run: Callable[..., Any]) -> None:
    # A new name: there is no anchor.
    left = tmp_path / "lost.objects/20260101T000000-0123456789ab"
    left.mkdir(parents=True)
    (left / "0").write_text("header")
    (tmp_path / "deep").mkdir()
    assert "no file matches" in run("verify", "ntpl+file:lo*", status=1).stderr
    assert "1 attempt younger than --older-than kept" in run("gc", "ntpl+file:*").stderr
    assert "lost: 1 object with 6 B removed" in run("gc", "--older-than", "0", "ntpl+file:*").stderr
    assert not list(tmp_path.glob("lost*"))
    assert (tmp_path / "deep").is_dir()
    options = s3.options | {"total_timeout": "60s"}
    store = tupelo.recreate(f"ntpl+{s3.url}lost", storage_options=options, mapping="page", page_bytes="4KiB")
    store["Events"] = {"x": np.arange(10_000)}
    document = json.loads(run("gc", "--json", f"ntpl+{s3.url}lo*", *s3.arguments).stdout)
    assert document["young"] == 1
    store.close()


CLOSE_A_MIRROR = """
import json, sys, numpy, tupelo
uri, options = sys.argv[1], json.loads(sys.argv[2])
store = tupelo.recreate(uri, mapping="page", page_bytes="4KiB", compression="none", storage_options=options)
store["Events"] = {"x": numpy.arange(1_000_000.0)}
print("ready", flush=True)
store.close()
"""
"""2000 requests, each of which takes a second."""


def test_ctrl_c_ends_the_copies_of_a_mirror(s3: Store, tmp_path: Path, run: Callable[..., Any]) -> None:
    first = f"ntpl+file:{tmp_path}/events"
    with servers.toxiproxy() as proxy:
        slow = s3.through(proxy.delayed(s3.port, 1000))
        arguments = [f"ntpl+mirror:{first},ntpl+{slow.url}events", json.dumps(slow.options)]
        child = subprocess.Popen([sys.executable, "-c", CLOSE_A_MIRROR, *arguments], stdout=-1, stderr=-1, text=True)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            while not (tmp_path / "events").exists():
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            began = time.monotonic()
            _, errors = child.communicate(timeout=60)
            assert time.monotonic() - began < 10
        finally:
            child.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert tupelo.open(first)["x"].array(library="np").sum() == np.arange(1_000_000.0).sum()
    with pytest.raises(tupelo.MissingFileError):
        tupelo.open(f"ntpl+{s3.url}events", storage_options=s3.options)


def test_a_mirror_is_read_from_what_answers(tmp_path: Path, run: Callable[..., Any]) -> None:
    places = [f"ntpl+file:{tmp_path}/{name}" for name in ("first", "second")]
    uri = f"ntpl+mirror:{','.join(places)}"
    with tupelo.recreate(uri) as store:
        store["Events"] = {"x": np.arange(1000)}
    for place in [uri, *places]:
        assert tupelo.open(place).arrays(library="np")["x"].tolist() == list(range(1000))
        run("verify", "--deep", place)
    for path in (tmp_path / "first.objects").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.warns(tupelo.TupeloWarning, match="an object of the ntuple is missing"):
        assert len(tupelo.open(uri).arrays()) == 1000
    assert "an object of the ntuple is missing" in run("head", uri).stderr
    (tmp_path / "first").unlink()
    with pytest.warns(tupelo.TupeloWarning, match="/first was skipped: cannot open"):
        assert len(tupelo.open(uri).arrays()) == 1000
    assert "warning: " in run("ls", uri).stderr
    with tupelo.recreate(uri) as store:
        store["Events"] = {"x": [7]}
    assert [tupelo.open(place)["x"].array().tolist() for place in places] == [[7], [7]]
    for wrong in (f"{places[0]},second", f"{places[0]}, {places[1]}", f"{places[0]},{places[0]}", places[0]):
        with pytest.raises(tupelo.UnsupportedError, match="member"):
            tupelo.recreate(f"ntpl+mirror:{wrong}")
    run("copy", "--force", "--quiet", places[0], places[1])
    assert "not written together" in run("verify", uri).stderr
    run("copy", "--force", "--quiet", places[0], uri)
    assert "not written together" not in run("verify", uri).stderr
    assert run("gc", "--dry-run", uri).stderr.count("would be removed") == 2
    (tmp_path / "second.objects").rename(tmp_path / "elsewhere")
    assert "second" in run("verify", uri, status=1).stderr


def test_stores_that_are_passed_over_while_reading_are_said(tmp_path: Path, run: Callable[..., Any]) -> None:
    places = [f"ntpl+file:{tmp_path}/{name}" for name in ("first", "second")]
    uri = f"ntpl+mirror:{','.join(places)}"
    with tupelo.recreate(uri, mapping="page", compression="none") as store:
        store["Events"] = {"x": np.arange(1000)}
    [page] = [path for path in (tmp_path / "first.objects").rglob("1") if path.is_file()]
    page.write_bytes(b"\1" + page.read_bytes()[1:])
    passed_over = "using the next store of the mirror: .*page checksum mismatch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        events = tupelo.open(uri)
    with pytest.warns(tupelo.TupeloWarning, match=passed_over) as noted:
        assert events.arrays(library="np")["x"].tolist() == list(range(1000))
    assert len(noted) == 1
    assert noted[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(events.arrays()) == 1000
    for read in (
        lambda events: events["x"].array(),
        lambda events: events.take([3]),
        lambda events: list(events.iterate(step_size=10)),
        lambda events: events.arrays(cut="x > 3"),
    ):
        with pytest.warns(tupelo.TupeloWarning, match=passed_over):
            read(tupelo.open(uri))
    cut = ["--cut", "x > 3"]
    for arguments in (
        ["dump", uri, "--format", "csv"],
        ["copy", uri, "a.root"],
        ["copy", "-f", uri, "-o", "a.root", *cut],
    ):
        assert re.search(f"warning: .*{passed_over}", run(*arguments).stderr), arguments


def test_costs_follow_the_pages(tmp_path: Path, run: Callable[..., Any]) -> None:
    with tupelo.recreate(tmp_path / "a.root", page_bytes=4096, compression="none") as file:
        file["Events"] = {"x": np.arange(10_240.0), "y": np.arange(10_240.0)}
    arguments = ["cost", "a.root", "--fields", "x", "--mapping", "page", "--mapping", "page-group", "--json"]
    document = json.loads(run(*arguments, "--reads", "2").stdout)
    page, group = document["mappings"]
    # 20 pages for each of two columns; header, footer, page list, manifest and anchor.
    assert (page["objects"], page["read_requests"]) == (45, 24)
    assert (group["objects"], group["read_requests"]) == (7, 5)
    assert page["write_dollars"] == pytest.approx(45 * 0.0053 / 1000)
    assert page["reads_dollars"] == pytest.approx(2 * 24 * 0.00042 / 1000)
    prices = {"put_per_1000": 1, "get_per_1000": 2, "read_per_gb": 3, "month_per_gb": 4, "source": "ours"}
    (tmp_path / "prices.json").write_text(json.dumps({"date": "today", "stores": {"here": prices}}))
    mine = run(*arguments, "--prices", "prices.json", "--store", "here").stdout
    assert json.loads(mine)["mappings"][0]["write_dollars"] == pytest.approx(0.045)
    run("copy", "a.root", "ntpl+file:objects", "--mapping", "page-group")
    assert json.loads(run("cost", "ntpl+file:objects", *arguments[2:]).stdout)["mappings"][1]["objects"] == 7
    # Without the anchor, with the folder and the record of the attempt.
    assert len(list((tmp_path / "objects.objects").rglob("*"))) == 7 - 1 + 2
    assert "available: az:west-europe, gs:us-central1" in run("cost", "a.root", "--store", "s3:mars", status=2).stderr
    (tmp_path / "prices.json").write_text("[]")
    assert "is not a valid table of prices" in run("cost", "a.root", "--prices", "prices.json", status=2).stderr


def test_objects_behind_a_web_server(tmp_path: Path) -> None:
    with tupelo.recreate(f"ntpl+file:{tmp_path}/events", mapping="page-group") as store:
        store["Events"] = {"x": np.arange(1000), "y": np.arange(1000.0)}

    server = Server(tmp_path)
    try:
        url = f"ntpl+{server.url}/events"
        events = tupelo.open(url)
        assert isinstance(events, tupelo.Ntuple)
        assert events.arrays(library="np")["x"].tolist() == list(range(1000))
        with pytest.raises(tupelo.UnsupportedError, match="web servers are read-only"):
            tupelo.recreate(url)
    finally:
        server.close()


def test_an_anchor_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "0").write_text("not for the reader")
    with tupelo.recreate(f"ntpl+file:{tmp_path}/events") as store:
        store["Events"] = {"x": [1]}
    anchor = json.loads((tmp_path / "events").read_text())
    attempt = next((tmp_path / "events.objects").iterdir())
    header = attempt / str(anchor["headerObjId"])
    header.unlink()
    header.symlink_to(tmp_path / "secret" / "0")
    with pytest.raises(tupelo.Error):
        tupelo.open(f"ntpl+file:{tmp_path}/events")


WRITER = """
import sys, numpy as np, tupelo
uri, options, seed = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3])
with tupelo.recreate(uri, storage_options=options, mapping="page", page_bytes=2048) as store:
    print("begin", flush=True)
    store["Events"] = {"x": np.full(40_000, seed)}
print("done", flush=True)
"""


def killed_writers(uri: str, options: dict[str, str], run: Callable[[str], None], rounds: int) -> None:
    """Kills writers at random moments. Readers see what was before, or all that is new."""
    numbers, visible = random.Random(1), 0
    with tupelo.recreate(uri, storage_options=options) as store:
        store["Events"] = {"x": np.full(40_000, visible)}
    longest = 0.2
    for seed in range(1, rounds + 1):
        arguments = [sys.executable, "-c", WRITER, uri, repr(options), str(seed)]
        writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begin\n"
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            writer.wait(numbers.uniform(0, 1.2 * longest))
            longest = max(0.02, time.monotonic() - began)
        writer.send_signal(signal.SIGKILL)
        is_done = writer.communicate()[0] == "done\n"
        values = tupelo.open(uri, storage_options=options).arrays(library="np")["x"]
        assert len(values) == 40_000
        assert set(values) in ([{seed}] if is_done else [{visible}, {seed}])
        visible = int(values[0])
    run("gc")
    run("verify")


def test_a_killed_writer_leaves_the_old_ntuple_or_the_new_one(tmp_path: Path, run: Callable[..., Any]) -> None:
    uri = f"ntpl+file:{tmp_path}/events"
    commands = {"gc": ["gc", "--older-than", "0", uri], "verify": ["verify", "--deep", uri]}
    killed_writers(uri, {}, lambda name: run(*commands[name]), 8)
    # What was killed right before its anchor is kept for ten minutes.
    document = json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)
    assert len(list((tmp_path / "events.objects").iterdir())) == 1 + document["publishing"]


def test_temporary_files_of_killed_writers_are_collected(tmp_path: Path, run: Callable[..., Any]) -> None:
    uri = f"ntpl+file:{tmp_path}/events"
    with tupelo.recreate(uri) as store:
        store["Events"] = {"x": np.arange(3)}
    objects = tmp_path / "events.objects"
    expected = sorted(tmp_path.rglob("*"))
    attempts = [objects / f"20260101T00000{number}-0123456789ab" for number in (1, 2)]
    for attempt in attempts:
        attempt.mkdir()
    left = [tmp_path / "events.tmp-abcdef", attempts[0] / "record.tmp-abcdef"]
    for path in left:
        path.write_text("left")
    assert json.loads(run("gc", "--json", uri).stdout)["temporary"] == [], "they are young"
    planned = run("gc", "--older-than", "0", "--dry-run", "--json", uri)
    names = ["events.objects/" + attempts[1].name + "/", "events.objects/" + attempts[0].name + "/record.tmp-abcdef"]
    assert sorted(json.loads(planned.stdout)["temporary"]) == sorted([*names, "events.tmp-abcdef"])
    assert all(path.exists() for path in left)
    assert "and 2 temporary files of killed writers" in run("gc", "--older-than", "0", uri).stderr
    assert sorted(tmp_path.rglob("*")) == expected


SECOND_WRITER = """
import sys, tupelo
with tupelo.recreate(sys.argv[1], storage_options=eval(sys.argv[2])) as store:
    store["Events"] = {"y": [2]}
"""


@pytest.mark.parametrize("mapping", ["cage:256KiB", "page-group", "cluster"])
def test_objects_are_not_fetched_twice(mapping: str, s3: Store) -> None:
    """Columns that are larger than what is fetched together, which is 1/16 of the budget."""
    uri, rows = (
        f"ntpl+{s3.url}events",
        {f"c{number}": np.random.default_rng(number).random(100_000) for number in range(8)},
    )
    sizes = {"page_bytes": "16KiB", "cluster_bytes": "800kB", "compression": "none"}
    with tupelo.recreate(uri, mapping=mapping, storage_options=s3.options, **sizes) as store:
        store["Events"] = rows
    budget = {"memory_budget": "10MB", "metrics": True}
    with tupelo.open(uri, storage_options=s3.options, **budget) as events:
        events.keys()
        assert isinstance(events, tupelo.Ntuple)
        before = events.metrics.requests
        arrays = events.arrays(library="np")
        assert all((arrays[name] == column).all() for name, column in rows.items())
        clusters = events.num_clusters
        # What fits is fetched in one request. A cluster does not fit.
        objects = {"cluster": 2 * clusters}.get(mapping, 8 * clusters)
        assert 5 < clusters < 20
        assert events.metrics.requests - before <= objects + 1


def test_a_real_store(s3: Store, tmp_path: Path, run: Callable[..., Any]) -> None:
    uri, options = f"ntpl+{s3.url}dir/events", s3.options
    rows = {"x": np.arange(100_000.0), "n": np.arange(100_000) % 7}
    for mapping in MAPPINGS:
        with tupelo.recreate(uri, mapping=mapping, page_bytes=65536, storage_options=options) as store:
            store["Events"] = rows
        events = tupelo.open(uri, storage_options=options, metrics=True)
        assert isinstance(events, tupelo.Ntuple)
        assert events.arrays("x", library="np")["x"].tolist() == rows["x"].tolist()
        assert events.metrics is not None
        # The anchor, header and footer, the page list, and the pages, which have less than 8 KiB.
        assert events.metrics.requests <= {"page": 17, "cage:4KiB": 7}.get(mapping, 5), events.metrics
        layout = json.loads(run("layout", "--json", uri, *s3.arguments).stdout)
        assert layout["mapping"] == (mapping if mapping != "auto" else "cage:16MiB")
    run("verify", uri, *s3.arguments)
    assert "events" in run("ls", f"ntpl+{s3.url}dir/", *s3.arguments).stdout
    run("copy", uri, "back.root", *s3.arguments)
    assert tupelo.open(f"{tmp_path}/back.root:Events").num_entries == 100_000
    done = run("copy", "back.root", uri, *s3.arguments, status=1)
    assert "--force replaces it" in done.stderr
    commands = {"gc": ["gc", "--older-than", "0", uri], "verify": ["verify", "--deep", uri]}
    killed_writers(uri, options, lambda name: run(*commands[name], *s3.arguments), 5)
    # Two writers at the same time.
    first = tupelo.recreate(uri, storage_options=options)
    first["Events"] = {"x": [1]}
    subprocess.run([sys.executable, "-c", SECOND_WRITER, uri, repr(options)], check=True)
    with pytest.raises(tupelo.StorageError, match="events"):
        first.close()
    assert tupelo.open(uri, storage_options=options).keys() == ["y"]
    assert "hidden-secret" not in repr(first)


@pytest.mark.parametrize(
    "options", [{"checkpoint_clusters": 1}, {"checkpoint_bytes": "1 MiB"}, {"checkpoint_seconds": 5}]
)
def test_checkpoints_of_stores_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(tupelo.UnsupportedError, match="checkpoints are supported only in local files"):
        tupelo.recreate(f"ntpl+file://{tmp_path}/events", **options)
    assert not list(tmp_path.iterdir())
