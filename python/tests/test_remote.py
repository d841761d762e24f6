"""Remote files."""

import json
import os
import pickle
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from http_server import Server
from writing import has_begun

import tupelo

SECRET = "very-secret"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three runs in a directory, and a larger file with several clusters."""
    directory = tmp_path / "files"
    directory.mkdir()
    for run in range(3):
        with tupelo.recreate(directory / f"run{run}.root") as file:
            file["Events"] = {"x": np.arange(10.0) + 10 * run, "y": [[run] * (entry % 3) for entry in range(10)]}
    with tupelo.recreate(directory / "large.root", cluster_bytes="64 KiB") as file:
        random = np.random.default_rng(1)
        events = file.mkrntuple("Events", {f"c{column}": "double" for column in range(20)})
        for _ in range(10):
            events.extend({f"c{column}": random.random(2000) for column in range(20)})
    return directory


def test_remote_files_are_read_like_local_ones(server: Server, files: Path) -> None:
    with tupelo.open(f"{server.url}/run1.root") as file:
        assert file.keys() == ["Events"]
        assert file.file_path == f"{server.url}/run1.root"
    events = tupelo.open(f"{server.url}/run1.root:Events")
    assert events.arrays().tolist() == tupelo.open(files / "run1.root")["Events"].arrays().tolist()
    assert tupelo.open({f"{server.url}/run1.root": "Events"})["x"].array(library="np")[3] == 13
    local, remote = tupelo.open(f"{files}/large.root:Events"), tupelo.open(f"{server.url}/large.root:Events")
    for cut in None, "c0 > 0.999":
        assert np.array_equal(local.arrays(cut=cut, library="np")["c3"], remote.arrays(cut=cut, library="np")["c3"])


def test_opening_takes_two_requests(server: Server) -> None:
    events = tupelo.open(f"{server.url}/large.root:Events")
    events.keys()
    assert len(server.requests) == 2, server.requests
    server.requests.clear()
    events.arrays(["c1", "c2"], library="np")
    assert 1 <= len(server.requests) <= 8, server.requests


def test_many_remote_files(server: Server) -> None:
    urls = [f"{server.url}/run{run}.root:Events" for run in range(3)]
    assert tupelo.concatenate(urls, "x", library="np")["x"].tolist() == list(np.arange(30.0))
    assert sum(len(batch) for batch in tupelo.iterate(urls)) == 30
    partitions = tupelo.partitions(urls, names="x")
    copies = pickle.loads(pickle.dumps(partitions))
    assert np.concatenate([part.arrays("np")["x"] for part in copies]).tolist() == list(np.arange(30.0))
    manifest = tupelo.index(urls)
    assert [file["uri"] for file in manifest["files"]] == [url.removesuffix(":Events") for url in urls]
    assert len(tupelo.partitions(urls[1], manifest=manifest)) == 1
    events = pickle.loads(pickle.dumps(tupelo.open(urls[0])))
    assert events.num_entries == 10


def test_several_remote_files_are_requested_at_the_same_time(server: Server) -> None:
    runs = [f"{server.url}/run{run}.root:Events" for run in range(3)]
    server.answers.clear()
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(tupelo.concatenate, runs, "x", entry_start=5, entry_stop=25, library="np")
        end = time.monotonic() + 60
        while len({request.path for request in server.requests}) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        requested = {request.path for request in server.requests}
        server.answers.set()
        assert result.result()["x"].tolist() == list(np.arange(5.0, 25.0))
    assert len(requested) == 3
    with pytest.raises(tupelo.MissingFileError, match=r"none\.root"):
        tupelo.concatenate([*runs, f"{server.url}/none.root:Events"], "x")
    (first, *_) = tupelo.iterate(runs, "x", library="np")
    assert first["x"].tolist() == list(np.arange(10.0))


def test_large_remote_files_are_read_in_parts(server: Server, files: Path) -> None:
    entries = 3_000_000
    with tupelo.recreate(files / "parts.root", cluster_bytes="2 MiB") as file:
        events = file.mkrntuple("Events", {"x": "double", "name": "std::string", "y": "std::vector<float>"})
        for start in range(0, entries, entries // 10):
            numbers = np.arange(start, start + entries // 10)
            names = pa.array(
                [b"\xff" if start == 0 and i == 7 else b"ab" for i in range(len(numbers))], pa.large_binary()
            )
            offsets = np.arange(0, 2 * len(numbers) + 1, 2)
            lists = pa.LargeListArray.from_arrays(offsets, np.repeat(numbers.astype(np.float32), 2))
            events.extend({"x": numbers / 2, "name": names, "y": lists})
    local, remote = tupelo.open(f"{files}/parts.root:Events"), tupelo.open(f"{server.url}/parts.root:Events")
    for columns, start, stop in [(["x", "y"], 0, entries), (["x", "y"], 17, entries - 5), (["name"], 0, entries)]:
        expected, found = (
            one.arrays(columns, entry_start=start, entry_stop=stop, library="arrow") for one in (local, remote)
        )
        assert found.equals(expected), columns


def test_a_file_that_is_replaced_is_an_error(server: Server, files: Path) -> None:
    events = tupelo.open(f"{server.url}/large.root:Events")
    with tupelo.recreate(files / "large.root") as file:
        file["Events"] = {"c0": np.zeros(200_000)}
    with pytest.raises(tupelo.ChangedFileError, match=r"large\.root"):
        events.arrays()


def test_failures_are_repeated_and_described(server: Server) -> None:
    server.fail = 3
    assert tupelo.open(f"{server.url}/run0.root:Events").num_entries == 10
    server.fail = 1000
    with pytest.raises(tupelo.StorageError, match=r"run0\.root.*503.*2 attempts"):
        tupelo.open(f"{server.url}/run0.root", storage_options={"max_attempts": 2})
    server.fail = 0
    with pytest.raises(tupelo.MissingFileError, match=r"none\.root"):
        tupelo.open(f"{server.url}/none.root")


def test_waiting_for_a_server_is_interrupted(server: Server) -> None:
    events = tupelo.open(f"{server.url}/large.root:Events")
    server.answers.clear()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        runs = [f"{server.url}/run{run}.root:Events" for run in range(3)]
        for call in (
            lambda: tupelo.open(f"{server.url}/run0.root"),
            lambda: events.arrays(["c1", "c7"]),
            lambda: tupelo.concatenate(runs, "x"),
            lambda: list(tupelo.iterate(runs)),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                call()
            assert time.monotonic() - began < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_credentials_are_not_shown(server: Server) -> None:
    url = f"{server.url}/run0.root?X-Amz-Signature={SECRET}"
    file: Any = tupelo.open(url)
    events = file["Events"]
    for shown in (file, events, events["x"], file.file_path, events.file_path, events._location):
        assert SECRET not in repr(shown)
    assert SECRET in server.requests[0].path
    assert pickle.loads(pickle.dumps(events)).num_entries == 10
    assert SECRET in server.requests[-1].path
    for wrong in (f"{url}&none", url.replace("run0", "none")):
        with pytest.raises(tupelo.Error) as error:
            tupelo.open({wrong: "no"})
        assert SECRET not in str(error.value)
    (part,) = tupelo.partitions({url: "Events"})
    assert part.arrays("np")["x"].tolist() == list(np.arange(10.0))
    options = {"aws_secret_access_key": SECRET, "anonymous": False}
    other: Any = tupelo.open(f"{server.url}/run0.root:Events", storage_options=options)
    assert SECRET not in repr(other._location)
    assert "aws_secret_access_key" in repr(other._location)
    assert pickle.loads(pickle.dumps(other)).num_entries == 10


def test_credentials_are_not_shown_by_plans_and_pickles(server: Server) -> None:
    """Regression: partitions, reports and unpickled ntuples showed the URL as given."""
    urls = [
        f"{server.url}/run0.root?X-Amz-Signature={SECRET}",
        f"{server.url.replace('//', f'//alice:{SECRET}@')}/run1.root",
    ]
    parts = tupelo.partitions([f"{urls[1]}:Events", {urls[0]: "Events"}])
    shown: list[object] = [parts]
    for part in pickle.loads(pickle.dumps(parts)):
        server.requests.clear()
        array, report = part.arrays("np", report=True)
        assert len(array["x"]) == 10
        assert report.file == f"{server.url}/{report.file[-9:]}"
        assert SECRET in server.requests[0].path or server.requests[0].authorization
        (_, failed) = replace(part, identity="other").arrays(report=True)
        assert failed.error == "ChangedFileError"
        shown += [part, report, failed]
    for url in urls:
        shown.append(pickle.loads(pickle.dumps(tupelo.open({url: "Events"})))._location)  # type: ignore[union-attr]
        shown += [tupelo.open(fsspec.open(url).open()), *tupelo.num_entries({url: "Events"})]
        for call in (
            lambda url=url: tupelo.open(fsspec.open(url)),
            lambda url=url: tupelo.concatenate(fsspec.open(url)),
            lambda url=url: tupelo.concatenate(fsspec.open(url).open()),
            lambda url=url: tupelo.open(f"simplecache::{url}"),
            lambda url=url: tupelo.open(Path(url)),
            lambda url=url: tupelo.partitions({url: {"object_path": "Events", "steps": 3}}),
            lambda url=url: tupelo.partitions({url: {"object_path": "Events", "steps": [[0, 11]]}}),
            lambda url=url: tupelo.partitions({url: {"object_path": "Events", "color": 3}}),
            lambda url=url: tupelo.partitions({url: "Events"}, names="none"),
            lambda url=url: tupelo.partitions({url: "Events"}, manifest=tupelo.index(f"{server.url}/large.root")),
            lambda url=url: tupelo.recreate(f"{url}.root:Events"),
            lambda url=url: tupelo.update(url),
            lambda url=url: tupelo.abort(url),
        ):
            with pytest.raises((tupelo.Error, TypeError, OSError)) as error:
                call()
            shown.append(error.value)
    for one in shown:
        assert SECRET not in repr(one)
        assert SECRET not in str(one)


def test_a_manifest_of_urls_with_credentials_is_refused(server: Server) -> None:
    """Regression: it was written without them, and could not be used."""
    for url in (
        f"{server.url}/run0.root?X-Amz-Signature={SECRET}",
        f"{server.url.replace('//', f'//alice:{SECRET}@')}/run0.root",
    ):
        text = r"^http://127[^@?]*/run0\.root: cannot index a URL .*storage_options"
        with pytest.raises(tupelo.InvalidArgumentError, match=text):
            tupelo.index([f"{server.url}/run1.root", url], "m.json")
        assert not Path("m.json").exists()
        assert len(tupelo.partitions(url)) == 1
    assert tupelo.index(f"{server.url}/run1.root", "m.json") == json.loads(Path("m.json").read_text())


def test_names_that_are_not_urls(server: Server) -> None:
    """Regression: a path lost a slash, bytes of a file object were names of files, and a chain was a local path."""
    url = f"{server.url}/run0.root"
    for call in (tupelo.open, tupelo.recreate, tupelo.concatenate, tupelo.partitions):
        with pytest.raises(tupelo.InvalidArgumentError, match=f"'{url}' was given as a .*Path.*give URLs as a str"):
            call(Path(url))
        for chain in f"simplecache::{url}", f"zip://a.root::{url}", f"filecache::zip://a.root::{url}":
            with pytest.raises(tupelo.UnsupportedError, match=f"^{re.escape(chain)} .*fsspec.open.url..open"):
                call(chain)
    Path("http:").mkdir()
    with tupelo.recreate(Path("http:/a.root")) as file:
        file["Events"] = {"x": [1]}
    assert tupelo.open(Path("http:/a.root")).keys() == ["Events"]
    text = r"not a file object \(BufferedReader\).*tupelo.open\(file_object\).only"
    with open("http:/a.root", "rb") as stream:
        for verb in (tupelo.concatenate, tupelo.iterate, tupelo.partitions, tupelo.index, tupelo.hist):
            for files in stream, [stream]:
                with pytest.raises(tupelo.InvalidArgumentError, match=text):
                    verb(files)  # type: ignore[operator]
        assert tupelo.concatenate(tupelo.open(stream).only()).x.tolist() == [1]  # type: ignore[union-attr]


def test_options_are_checked(server: Server) -> None:
    url = f"{server.url}/run0.root"
    with pytest.raises(tupelo.InvalidArgumentError, match=r"anonimous.*similar: anonymous"):
        tupelo.open(url, storage_options={"anonimous": True})
    for wrong in (7, {7: "x"}):
        with pytest.raises(tupelo.InvalidArgumentError, match="storage_options"):
            tupelo.open(url, storage_options=wrong)  # type: ignore[arg-type]
    with pytest.raises(tupelo.InvalidArgumentError, match="cache as the path of a directory"):
        tupelo.open(url, cache=7)  # type: ignore[arg-type]
    with pytest.raises(tupelo.UnsupportedError, match="x-y://b/c: its scheme is not supported"):
        tupelo.open("x-y://b/c")


def test_a_cache_keeps_what_was_fetched(server: Server, tmp_path: Path) -> None:
    def values() -> Any:
        events = tupelo.open(f"{server.url}/large.root:Events", cache=tmp_path / "cache")
        return events.arrays(["c1", "c5"], library="np")["c5"]

    first = values()
    server.requests.clear()
    assert np.array_equal(values(), first)
    # Opening requests the version of the file.
    assert len(server.requests) <= 2, server.requests
    (one, *_) = tupelo.iterate(f"{server.url}/large.root:Events", ["c1"], library="np", cache=tmp_path / "cache")
    assert len(one["c1"]) > 0


def test_metrics_count_the_requests_to_the_server(server: Server, tmp_path: Path) -> None:
    server.fail = 1
    with tupelo.open(f"{server.url}/large.root", metrics=True) as file:
        events = file["Events"]
        events.arrays(["c1", "c7"], library="np")
        metrics = events.metrics
    assert metrics is not None
    assert (metrics.requests, metrics.retries) == (len(server.requests), 1)
    assert metrics.read_bytes >= metrics.page_bytes
    assert 0 < metrics.latency < 10
    assert f"{len(server.requests)}, 1 of them retries, {metrics.latency * 1e3:.3f} ms each" in str(metrics)
    for _ in range(2):
        server.requests.clear()
        with tupelo.open(f"{server.url}/large.root:Events", metrics=True, cache=tmp_path / "cache") as events:
            events.arrays(["c1", "c7"], library="np")
            assert events.metrics.requests == len(server.requests)
    # Opening again asks for the version.
    assert len(server.requests) == 1


def test_remote_files_are_written(server: Server, files: Path) -> None:
    with tupelo.recreate(f"{server.url}/new.root") as file:
        assert file.file_path == f"{server.url}/new.root"
        events = file.mkrntuple("Events", {"x": "int"})
        events.extend({"x": [1, 2]})
        assert not (files / "new.root").exists()
        with pytest.raises(tupelo.UnsupportedError, match="checkpoint"):
            events.checkpoint()
        events.extend({"x": [3]})
    assert tupelo.open(files / "new.root")["Events"].arrays()["x"].tolist() == [1, 2, 3]
    events = tupelo.open(f"{server.url}/run1.root:Events")
    assert events.copy(f"{server.url}/copy.root", "x > 15") == 4
    assert tupelo.open(files / "copy.root")["Events"].arrays()["x"].tolist() == [16, 17, 18, 19]
    with pytest.raises(tupelo.InvalidArgumentError, match="is the input file"):
        events.copy(f"{server.url}/run1.root")
    failed = tupelo.recreate(f"{server.url}/failed.root")
    failed["Events"] = {"x": [1]}
    failed.abort()
    assert not (files / "failed.root").exists()
    with pytest.raises(tupelo.UnsupportedError, match="cannot change a remote file in place"):
        tupelo.update(f"{server.url}/run1.root")


def test_a_url_of_a_local_file_is_written(tmp_path: Path) -> None:
    """Regression: recreate() looked for a directory ``file:``."""
    for number, url in enumerate([f"file://{tmp_path}/a.root", f"file:{tmp_path}/b.root", "file:c.root"]):
        with tupelo.recreate(url) as file:
            file["Events"] = {"x": [number]}
        with tupelo.update(url) as file:
            file["Events"].extend({"x": [7]})
        path = tmp_path / f"{'abc'[number]}.root"
        for name in url, f"{url}:Events", {url: "Events"}:
            assert pickle.loads(pickle.dumps(tupelo.open(name))) is not None  # type: ignore[arg-type]
            assert tupelo.concatenate(name).x.tolist() == [number, 7]
        assert tupelo.partitions(url)[0].uri == str(path)
        writer = tupelo.recreate(path)
        tupelo.abort(url)
        with pytest.raises(tupelo.InvalidArgumentError):
            writer["Events"] = {"x": [1]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.root", "b.root", "c.root"]


def test_checkpoints_of_remote_files_are_skipped_or_refused(server: Server, files: Path) -> None:
    with pytest.raises(tupelo.UnsupportedError, match="checkpoints are supported only in local files"):
        tupelo.recreate(f"{server.url}/new.root", checkpoint_clusters=1)
    with tupelo.recreate(f"{server.url}/new.root", cluster_bytes="4 KiB") as file:
        events = file.mkrntuple("Events", {"x": "double"})
        for _ in range(5):
            events.extend({"x": np.random.default_rng(0).random(4000)})
    assert tupelo.open(files / "new.root")["Events"].num_entries == 20_000


def test_forked_processes_read_remote_files(server: Server) -> None:
    events = tupelo.open(f"{server.url}/large.root:Events")
    expected = float(events["c0"].array(library="np").sum())
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if float(events["c1"].array(library="np").sum()) > 0 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert float(events["c0"].array(library="np").sum()) == expected


def test_the_command_reads_and_writes_urls(server: Server, files: Path, command: str, tmp_path: Path) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    urls = [f"{server.url}/run{run}.root" for run in range(3)]
    assert "10" in run("ls", urls[0])
    assert run("head", urls[0], "-n", "2", "--format", "csv", "--fields", "x").split() == ["x", "0.0", "1.0"]
    assert len(run("dump", *urls, "--format", "csv", "--fields", "x").split()) == 31
    assert "x" in run("schema", f"{urls[0]}:Events")
    assert "REQUESTS" in run("explain", f"{server.url}/large.root", "--fields", "c1")
    server.requests.clear()
    run("verify", "--deep", f"{server.url}/large.root")
    # The pages of each of 40 clusters are fetched once, together; the layout needs the key in front of them.
    assert len(server.requests) < 90, len(server.requests)
    assert "page" in run("layout", urls[0])
    run("copy", *urls, f"{server.url}/all.root")
    assert tupelo.open(files / "all.root")["Events"].num_entries == 30
    assert "exists" in run("copy", urls[0], f"{server.url}/all.root", status=2)
    run("copy", urls[0], f"{server.url}/all.root", "--force")
    assert "cannot add to a remote file" in run("copy", urls[0], urls[1], "--append", status=2)
    assert "only local files can be repaired" in run("verify", "--repair", urls[0], status=2)
    assert "unknown option" in run("ls", urls[0], "--storage-option", "anonimous=true", status=2)
    assert "web servers do not list files" in run("ls", f"{server.url}/", status=1)
    run("ls", urls[0], "--cache", str(tmp_path / "cache"))
    assert (tmp_path / "cache").is_dir()
    assert "local" in run("dump", urls[0], "-o", f"{server.url}/out.parquet", status=2)
    assert SECRET not in run("ls", f"{urls[0]}?sig={SECRET}")


def test_an_interrupt_ends_a_copy_from_a_slow_server(server: Server, files: Path, command: str, tmp_path: Path) -> None:
    copying = subprocess.Popen(
        [command, "copy", f"{server.url}/large.root", "out.root"], stderr=subprocess.PIPE, text=True
    )
    # The file is created after its input was opened.
    while not has_begun(copying, tmp_path, "out.root"):
        assert copying.poll() is None
        time.sleep(0.001)
    server.answers.clear()
    seen = len(server.requests)
    while len(server.requests) == seen:
        assert copying.poll() is None
        time.sleep(0.01)
    copying.send_signal(signal.SIGINT)
    # Less than the 20 seconds after which a server is taken for stalled.
    _, said = copying.communicate(timeout=15)
    assert (copying.returncode, said) == (130, "tupelo: error: interrupted\n")
    assert not [path for path in tmp_path.iterdir() if "out.root" in path.name]


RAW_WINDOW_BYTES = 64 << 20


def first_bytes(server: Server) -> list[int]:
    """Where the ranges begin that were requested, but for the two of an opening."""
    ranges = [request.range or "" for request in server.requests if request.method == "GET"]
    return [int(one.removeprefix("bytes=").split("-")[0]) for one in ranges if one not in OPENING]


OPENING = "bytes=0-16383", "bytes=-65536"


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_interrupted_raw_copy_is_continued(
    server: Server, files: Path, command: str, tmp_path: Path, is_replaced: bool
) -> None:
    source = files / "any.bin"
    content = np.random.default_rng(1).bytes(RAW_WINDOW_BYTES + (20 << 20))
    source.write_bytes(content)
    arguments = [command, "copy", "--raw", f"{server.url}/any.bin", "copy.bin", "--storage-option"]

    def run(attempts: int) -> tuple[int, str]:
        done = subprocess.run([*arguments, f"max_attempts={attempts}"], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr

    server.end = RAW_WINDOW_BYTES
    status, said = run(1)
    assert status == 1
    assert "503" in said
    part = tmp_path / "copy.bin.part"
    assert f"hint: {part} is kept: run the same command again to continue" in said
    assert part.stat().st_size == RAW_WINDOW_BYTES
    assert not (tmp_path / "copy.bin").exists()
    # A signal, once the command repeats what the server refuses.
    server.requests.clear()
    process = subprocess.Popen([*arguments, "max_attempts=1000"], stderr=subprocess.PIPE)
    while not first_bytes(server):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in error
    assert b"to continue" in error
    server.end = None
    server.requests.clear()
    if is_replaced:
        content = content[::-1]
        source.write_bytes(content)
    status, said = run(1)
    assert status == 0, said
    assert ("continued at 64.0 MiB" in said) == (not is_replaced)
    assert min(first_bytes(server)) == (0 if is_replaced else RAW_WINDOW_BYTES)
    assert (tmp_path / "copy.bin").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.bin", "files"]


def test_raw_copies_to_and_from_servers(server: Server, files: Path, command: str, tmp_path: Path) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        copy = [command, "copy", "--raw", *arguments]
        done = subprocess.run(copy, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done.stderr

    url, content = f"{server.url}/large.root", (files / "large.root").read_bytes()
    run(url, "large.root", "--cache", "cache")
    run("large.root", f"{server.url}/again.root")
    run(url, f"{server.url}/third.root")
    for path in tmp_path / "large.root", files / "again.root", files / "third.root":
        assert path.read_bytes() == content
    assert "third.root exists" in run(url, f"{server.url}/third.root", status=2)
    assert "is both input and output" in run(url, url, "--force", status=2)
    (files / "empty").touch()
    assert "0 B copied" in run(f"{server.url}/empty", "empty")
    assert "none: " in run(f"{server.url}/none", "none", status=1)
    assert not list(tmp_path.glob("*.part*"))
