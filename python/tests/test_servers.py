"""Remote files on real servers, where `make servers` could install them: S3 (versitygw) and XRootD."""

import contextlib
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import servers
from servers import NotInstalledError, Store

import tupelo


def started(server: contextlib.AbstractContextManager[Store]) -> Iterator[Store]:
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(server)
        except NotInstalledError as error:
            pytest.skip(str(error))
        yield store


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Store]:
    yield from started(servers.s3(tmp_path))


@pytest.fixture
def xrootd(tmp_path: Path) -> Iterator[Store]:
    if os.getuid() == 0:
        # The server is another user, and the folders above belong to pytest, and are closed to others.
        for folder in tmp_path.parents:
            if folder.owner() == "root" and "pytest" in str(folder):
                folder.chmod(0o755)
    yield from started(servers.xrootd(tmp_path))


@pytest.mark.parametrize("name", ["s3", "xrootd"])
def test_a_real_server(name: str, request: pytest.FixtureRequest, command: str, tmp_path: Path) -> None:
    store: Store = request.getfixturevalue(name)
    url, options = store.url, store.options

    def run(*arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [command, *arguments, *store.arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        assert done.returncode == status, done.stderr
        assert "hidden-secret" not in done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    for number in range(3):
        with tupelo.recreate(f"{url}run{number}.root", storage_options=options) as file:
            file["Events"] = {"x": np.arange(1000.0) + 1000 * number, "y": [[1] * (i % 4) for i in range(1000)]}
    events = tupelo.open(f"{url}run1.root:Events", storage_options=options)
    assert events.arrays(cut="x < 1003", library="np")["x"].tolist() == [1000, 1001, 1002]
    # Globs, in Python and in the command.
    pattern = f"{url}run[02].root:Events"
    assert len(tupelo.concatenate(pattern, "x", library="np", storage_options=options)["x"]) == 2000
    parts = pickle.loads(pickle.dumps(tupelo.partitions(f"{url}*.root:Events", names="x", storage_options=options)))
    assert sum(len(part.arrays("np")["x"]) for part in parts) == 3000
    chain = tupelo.open(f"{url}*.root", storage_options=options)
    assert (chain.num_files, chain.arrays("x", entry_start=999, entry_stop=1001).x.tolist()) == (3, [999, 1000])
    with pytest.raises(tupelo.MissingFileError, match="no file matches"):
        tupelo.concatenate(f"{url}no*.root", storage_options=options)
    with pytest.raises(tupelo.MissingFileError, match=r"none\.root"):
        tupelo.open(f"{url}none.root", storage_options=options)
    assert run("dump", f"{url}run*.root:Events", "--fields", "x", "--format", "csv").count("\n") == 3001
    listed = run("ls", url)
    assert run("ls", url.rstrip("/")).splitlines()[1:] == listed.splitlines()[1:]
    assert all(f"run{number}.root" in listed for number in range(3)), listed
    assert "Events" in run("ls", f"{url}run0.root")
    run("verify", f"{url}run0.root")
    run("copy", f"{url}run*.root", f"{url}all.root")
    assert tupelo.open(f"{url}all.root:Events", storage_options=options).num_entries == 3000
    assert "exists" in run("copy", f"{url}run0.root", f"{url}all.root", status=2)
    run("copy", f"{url}run0.root", "local.root")
    assert tupelo.open(tmp_path / "local.root")["Events"].num_entries == 1000  # type: ignore[index]
    run("ls", f"{url}run0.root", "--cache", str(tmp_path / "cache"))


def test_uproot_reads_what_was_written_to_a_server(xrootd: Store, tmp_path: Path) -> None:
    import uproot

    with tupelo.recreate(f"{xrootd.url}new.root") as file:
        file["Events"] = {"x": [1.5, 2.5], "y": [[1, 2], [3]]}
    with uproot.open(tmp_path / "data" / "runs" / "new.root") as file:
        assert file["Events"].arrays()["y"].tolist() == [[1, 2], [3]]


def test_the_s3_example(s3: Store, demo_file: Path, command: str, tmp_path: Path) -> None:
    """The analysis of several files in a bucket, and again with what the cache has."""
    names = {name.upper(): value for name, value in s3.options.items() if name.startswith("aws_")}
    environment = os.environ | names
    for number in range(2):
        target = f"{s3.url}b{number}.root"
        subprocess.run([command, "copy", str(demo_file), target], env=environment, check=True)
    example = Path(__file__).parents[2] / "examples" / "b_mass_s3.py"
    pattern, cache = f"{s3.url}b*.root:DecayTree", tmp_path / "cache"
    kaons = [f"H{h}_isMuon == 0 and H{h}_ProbK > 0.5 and H{h}_ProbPi < 0.5" for h in (1, 2, 3)]
    expected = 2 * len(tupelo.open(demo_file)["DecayTree"].arrays("H1_PX", cut=" and ".join(kaons)))  # type: ignore[index]
    assert expected > 0
    for _ in range(2):
        run = [sys.executable, str(example), pattern, "--cache", str(cache)]
        done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        assert f"{expected} events with three kaons" in done.stdout
        assert "mass of KKK (MeV)" in done.stdout
    assert list(cache.rglob("*-*"))


REFERENCE_CLIENT = """
import hashlib, json, sys
from XRootD.client import File, FileSystem
from XRootD.client.flags import DirListFlags, OpenFlags

def done(answer):
    status, result = answer
    assert status.ok, status.message
    return result

url, theirs = sys.argv[1:]
server, folder = url.rsplit("//", 1)
with File() as file, open(theirs, "rb") as local:
    done(file.open(url + "theirs.root", OpenFlags.NEW))
    done(file.write(local.read()))
with File() as file:
    done(file.open(url + "ours.root", OpenFlags.READ))
    size = done(file.stat()).size
    whole = done(file.read(0, size))
    chunks = [(offset, min(1000, size - offset)) for offset in range(0, size, 4001)]
    vector = done(file.vector_read(chunks))
    assert all(c.buffer == whole[c.offset:c.offset + c.length] for c in vector.chunks)
listing = done(FileSystem(server).dirlist("/" + folder, DirListFlags.STAT))
missing = File().open(url + "none.root", OpenFlags.READ)[0]
print(json.dumps({
    "ours": hashlib.sha256(whole).hexdigest(),
    "listing": {entry.name: entry.statinfo.size for entry in listing},
    "missing": missing.message,
}))
"""


def test_the_reference_client_agrees(xrootd: Store, command: str, tmp_path: Path) -> None:
    """The Python package ``xrootd`` of the system, which is the client in C++."""
    python = "/usr/bin/python3"
    if not Path(python).exists() or subprocess.run([python, "-c", "import XRootD"], capture_output=True).returncode:
        pytest.skip("the Python package xrootd is not installed for the Python of the system (make servers)")
    columns = {"x": np.random.default_rng(1).random(300_000), "y": [[i] * (i % 4) for i in range(300_000)]}
    for name in (f"{xrootd.url}ours.root", tmp_path / "local.root"):
        with tupelo.recreate(name) as file:
            file["Events"] = columns
    local = tmp_path / "local.root"
    run = [python, "-c", REFERENCE_CLIENT, xrootd.url, str(local)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    subprocess.run([command, "copy", "--raw", f"{xrootd.url}ours.root", "ours.root"], check=True)
    assert hashlib.sha256(Path("ours.root").read_bytes()).hexdigest() == theirs["ours"]
    subprocess.run([command, "copy", "--raw", f"{xrootd.url}theirs.root", "theirs.root"], check=True)
    assert Path("theirs.root").read_bytes() == local.read_bytes()
    events = tupelo.open(f"{xrootd.url}theirs.root:Events").arrays()
    assert events.tolist() == tupelo.open(f"{xrootd.url}ours.root:Events").arrays().tolist()
    listed = subprocess.run([command, "ls", "--json", xrootd.url], capture_output=True, text=True, check=True).stdout
    entries = json.loads(listed)["entries"]
    assert {entry["url"].rpartition("/")[2]: entry["bytes"] for entry in entries} == theirs["listing"]
    assert "no such file" in theirs["missing"]
