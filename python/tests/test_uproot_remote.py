"""uproot opens URLs through Tupelo's storage: the same values as of local files, without plugins of fsspec."""

import contextlib
import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import awkward as ak
import fsspec
import numpy as np
import pytest
import servers
import uproot
from http_server import Server
from servers import NotInstalledError, Store

import tupelo
import tupelo.uproot as carried
from tupelo.uproot import _remote

pytestmark = pytest.mark.usefixtures("strict_engine")
PLUGINS = "aiohttp", "requests", "s3fs", "gcsfs", "adlfs", "fsspec_xrootd", "XRootD"
"""What fsspec needs for the schemes."""


REGISTRY = import_module("fsspec.registry")._registry
"""The plugins that were used before."""


@pytest.fixture(autouse=True)
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PLUGINS:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("fsspec.implementations.http")]:
        monkeypatch.delitem(sys.modules, name)
    for name in set(fsspec.registry) - {"file", "local"}:
        monkeypatch.delitem(REGISTRY, name)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two files with a tree, an ntuple and a histogram."""
    folder = tmp_path / "written"
    folder.mkdir()
    for number in range(2):
        numbers = np.arange(60) + 60 * number
        lists = ak.Array([[0.5 * n for n in range(one % 4)] for one in numbers])
        with uproot.recreate(folder / f"run{number}.root") as file:
            file.mktree("dir/Events", {"run": "int64", "pt": "var * float64"}).extend({"run": numbers, "pt": lists})
            file.mkrntuple("Ntuple", {"run": numbers, "pt": lists})
            file["h"] = np.histogram(numbers)
    return folder


def put(store: Store, files: Path, command: str) -> None:
    for file in files.iterdir():
        copy = [command, "copy", "--raw", "--quiet", str(file), f"{store.url}{file.name}", *store.arguments]
        subprocess.run(copy, check=True, timeout=60)


def check(url: str, files: Path, **options: Any) -> None:
    """Everything that uproot reads through a URL is as in the local files."""
    local = uproot.open(files / "run0.root")
    with uproot.open(f"{url}run0.root", **options) as file:
        assert type(file.file.source) is _remote.TupeloSource
        assert file.keys() == local.keys()
        assert file["h"].values().tolist() == local["h"].values().tolist()
        for name in "dir/Events", "Ntuple":
            assert ak.array_equal(file[name].arrays(), local[name].arrays(), dtype_exact=True)
            assert ak.array_equal(file[name].arrays(entry_start=5, entry_stop=9), local[name].arrays()[5:9])
    assert carried.report(clear=True).passed == {}
    # uproot itself, with the same source.
    with uproot.open(f"{url}run0.root:dir/Events", **options) as tree:
        read = tree["pt"].array(interpretation_executor=uproot.ThreadPoolExecutor(1))
        assert ak.array_equal(read, local["dir/Events"]["pt"].array())
        copy = pickle.loads(pickle.dumps(tree))
    assert tree.file.closed
    with pytest.raises(OSError, match="closed"):
        tree.file.source.chunk(0, 10)
    assert ak.array_equal(copy["run"].array(), local["dir/Events"]["run"].array())
    both = uproot.concatenate([f"{url}run0.root:dir/Events", f"{url}run1.root:dir/Events"], "run", **options)
    assert both.run.tolist() == list(range(120))
    steps = uproot.iterate({f"{url}run1.root": "Ntuple"}, "run", step_size=60, **options)
    assert [step.run.tolist() for step in steps] == [list(range(60, 120))]
    lazy = uproot.dask({f"{url}run1.root": "dir/Events"}, **options)
    assert lazy.run.compute(scheduler="sync").tolist() == list(range(60, 120))
    with pytest.raises(FileNotFoundError, match=r"none\.root"):
        uproot.open(f"{url}none.root", **options)


def check_wildcards(url: str, **options: Any) -> None:
    assert uproot.concatenate(f"{url}run*.root:Ntuple", "run", **options).run.tolist() == list(range(120))
    with pytest.raises(FileNotFoundError):
        uproot.concatenate(f"{url}no*.root:Ntuple", **options)


@pytest.mark.parametrize("name", ["s3", "gcs", "azure", "xrootd"])
def test_a_real_server(name: str, files: Path, command: str, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    (folder / "data" / "box").mkdir(parents=True)
    if name == "gcs":
        # It takes no uploads of other programs.
        for file in files.iterdir():
            shutil.copy(file, folder / "data" / "box")
    elif name in ("s3", "xrootd"):
        shutil.rmtree(folder / "data")
    if name == "xrootd" and os.getuid() == 0:
        # The server is another user, and the folders above belong to pytest, and are closed to others.
        for above in folder.parents:
            if above.owner() == "root" and "pytest" in str(above):
                above.chmod(0o755)
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(getattr(servers, name)(folder))
        except NotInstalledError as error:
            pytest.skip(str(error))
        if name != "gcs":
            put(store, files, command)
        check(store.url, files, **store.options)
        check_wildcards(store.url, **store.options)


def test_a_web_server(server: Server, files: Path) -> None:
    check(f"{server.url}/", files)
    # A URL of the form of the file system is the same.
    assert uproot.open(f"  {server.url}/run0.root:Ntuple ")["run"].array()[0] == 0


def test_options_of_uproot_are_kept(server: Server, files: Path) -> None:
    url = f"{server.url}/run0.root"
    given = uproot.open(url, timeout=7, begin_chunk_size=1000, max_num_elements=3).file
    assert given.source.storage == tupelo._core.Storage({"connect_timeout": "7", "stall_timeout": "7"}, None)
    assert given.options["begin_chunk_size"] == 1000
    with pytest.raises(ImportError, match="aiohttp"):
        uproot.open(url, handler=uproot.source.fsspec.FSSpecSource)
    with pytest.raises(TypeError, match="'handler' is not a class"):
        uproot.open(url, handler="x")

    class Own(uproot.source.fsspec.FSSpecSource):  # type: ignore[misc]
        pass

    local = uproot.open(files / "run0.root", handler=Own)
    assert type(local.file.source) is Own
    assert local["Ntuple"]["run"].array().tolist() == list(range(60))


def test_options_of_plugins_have_our_names() -> None:
    def options(url: str, **options: Any) -> Any:
        return _remote.storage_of(url, options)

    made = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_endpoint_url": "http://c", "aws_region": "d"}
    s3 = tupelo._core.Storage(made, None)
    nested = {"endpoint_url": "http://c", "region_name": "d"}
    assert options("s3://x/y.root", key="a", secret="b", client_kwargs=nested) == s3
    anonymous = tupelo._core.Storage({"anonymous": "true"}, None)
    assert options("s3://x/y.root", anon=True) == anonymous
    assert options("gs://x/y.root", token="anon") == anonymous
    azure = {"azure_storage_account_name": "a", "azure_storage_account_key": "k"}
    assert options("abfs://x/y.root", account_name="a", account_key="k") == tupelo._core.Storage(azure, None)
    for url, given in ("http://x/y", {"headers": {"a": "b"}}), ("s3://x/y", {"profile_name": "me"}):
        with pytest.raises(_remote.RefusedError, match="its options are for uproot"):
            options(url, **given)
    for url in "simplecache::s3://x/y.root", "y.root", "file:///y.root", "ftp://x/y.root", "github://x/y.root":
        with pytest.raises(_remote.RefusedError, match="no storage"):
            options(url)


def test_uproot_opens_what_our_storage_cannot(server: Server, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "s3"

        def _open(self, path: str, **_: Any) -> Any:
            return (files / Path(path).name).open("rb")

        def size(self, path: str) -> int:
            return (files / Path(path).name).stat().st_size

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": self.size(path), "type": "file"}

    url = "s3://nowhere/run0.root"
    options = {"endpoint_url": server.url.replace("http", "ftp")}
    with pytest.raises(tupelo.Error):
        uproot.open(url, **options)
    monkeypatch.setenv("TUPELO_UPROOT", "")
    # Without a plugin the error is ours.
    with pytest.raises(tupelo.Error):
        uproot.open(url, **options)
    monkeypatch.setitem(REGISTRY, "s3", Memory)
    with pytest.warns(carried.EngineWarning, match=r"s3://nowhere/run0\.root is left to uproot"):
        file = uproot.open(url, **options)
    assert file["Ntuple"]["run"].array().tolist() == list(range(60))
    assert carried.report().passed == {"uproot opened the remote file": 1}
