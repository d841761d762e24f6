"""Remote files on real servers, where `make servers` could install them: S3 (versitygw) and XRootD."""

import contextlib
import os
import pickle
import subprocess
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
