"""Remote files on real servers, where `make servers` could install them: S3 (versitygw) and XRootD."""

import contextlib
import os
import pickle
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tupelo

SERVERS = Path(__file__).parents[2] / "target" / "servers" / "bin"
START_SECONDS = 30


class Store(NamedTuple):
    """A folder on a server."""

    url: str
    """Ends with a slash."""
    options: dict[str, object]
    arguments: list[str]
    """The options of the command."""


def program(name: str) -> str:
    found = shutil.which(name, path=f"{SERVERS}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed (make servers)")
    return found


@contextlib.contextmanager
def running(command: list[str], port: int, user: str | None = None) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, f"{command[0]} ended"
            assert time.monotonic() < end, f"{command[0]} does not start"
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Store]:
    server, port = program("versitygw"), free_port()
    (tmp_path / "data" / "box").mkdir(parents=True)
    keys = ["--access", "user", "--secret", "hidden-secret"]
    where = ["--quiet", "--port", f"127.0.0.1:{port}", "posix", str(tmp_path / "data")]
    options: dict[str, object] = {
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_access_key_id": "user",
        "aws_secret_access_key": "hidden-secret",
        "aws_region": "us-east-1",
    }
    arguments = [part for name, value in options.items() for part in ("--storage-option", f"{name}={value}")]
    with running([server, *keys, *where], port):
        yield Store("s3://box/runs/", options, arguments)


@pytest.fixture
def xrootd(tmp_path: Path) -> Iterator[Store]:
    server, port = program("xrootd"), free_port()
    data, admin = tmp_path / "data", tmp_path / "admin"
    (data / "runs").mkdir(parents=True)
    admin.mkdir()
    lines = [f"xrd.port {port}", "all.export /", f"oss.localroot {data}", f"all.adminpath {admin}"]
    config = tmp_path / "xrootd.cfg"
    config.write_text("\n".join([*lines, f"all.pidpath {admin}", "xrd.network nodnr", ""]))
    # It refuses to run as root.
    user = "daemon" if os.getuid() == 0 else None
    if user is not None:
        # The folders above belong to pytest, and are closed to others.
        folders = [folder for folder in config.parents if folder.owner() == "root" and "pytest" in str(folder)]
        for folder in folders:
            folder.chmod(0o755)
        for folder in (tmp_path, data, data / "runs", admin):
            shutil.chown(folder, user)
    with running([server, "-c", str(config), "-l", str(tmp_path / "admin" / "log")], port, user):
        yield Store(f"root://127.0.0.1:{port}//runs/", {}, [])


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
    with pytest.raises(tupelo.InvalidArgumentError, match="matches 3 files"):
        tupelo.open(f"{url}*.root", storage_options=options)
    with pytest.raises(tupelo.MissingFileError, match="no file matches"):
        tupelo.concatenate(f"{url}no*.root", storage_options=options)
    with pytest.raises(tupelo.MissingFileError, match=r"none\.root"):
        tupelo.open(f"{url}none.root", storage_options=options)
    assert run("dump", f"{url}run*.root:Events", "--fields", "x", "--format", "csv").count("\n") == 3001
    listed = run("ls", url)
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
