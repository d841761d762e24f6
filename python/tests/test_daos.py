"""Ntuples in DAOS containers: on the stand-in for libdaos, or on the pool TUPELO_DAOS_POOL of a real server."""

import json
import os
import re
import subprocess
import uuid
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builds import built
from test_objects import killed_writers, values_of

import tupelo

PROJECT = Path(__file__).parents[2]
MAPPINGS = ["page", "cage:4KiB", "page-group", "auto"]
POOL = os.environ.get("TUPELO_DAOS_POOL")


class Pool:
    """A pool, in which each test uses a separate container."""

    def __init__(self, name: str, library: str | None) -> None:
        self.name = name
        self.options = {"daos_create": "true"} | ({"daos_library": library} if library else {})

    @property
    def arguments(self) -> list[str]:
        return [part for name, value in self.options.items() for part in ("--storage-option", f"{name}={value}")]

    def new_container(self) -> str:
        return f"daos://{self.name}/test-{uuid.uuid4().hex}"


def standin() -> str:
    """The stand-in, which `make standin` builds."""
    return str(built("libdaos_standin.so"))


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    # Otherwise libdaos writes to stdout.
    os.environ["D_LOG_FILE"] = os.devnull
    if POOL:
        return Pool(POOL, os.environ.get("TUPELO_DAOS_LIBRARY"))
    # Read when the library is loaded; this process and the commands share the containers.
    os.environ["DAOS_STANDIN_POOLS"] = "tank:4"
    os.environ["DAOS_STANDIN_DIR"] = str(tmp_path_factory.mktemp("daos"))
    return Pool("tank", standin())


@pytest.fixture
def run(command: str, pool: Pool, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command in the temporary folder, and checks its exit status."""
    # The command keeps the log of libdaos out of its data.
    environment = {name: value for name, value in os.environ.items() if name != "D_LOG_FILE"}

    def call(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        all_arguments = [command, *arguments, *pool.arguments]
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run(all_arguments, cwd=tmp_path, env=environment, **options)
        assert done.returncode == status, done.stderr
        return done

    return call


@pytest.mark.parametrize("mapping", ["page", "cage:64KiB", "page-group"])
def test_real_ntuples_are_copied_as_they_are(
    mapping: str, real_ntuple: tuple[Path, str], pool: Pool, run: Callable[..., Any], tmp_path: Path
) -> None:
    path, name = real_ntuple
    uri = f"{pool.new_container()}:copy"
    run("copy", f"{path}:{name}", uri, "--mapping", mapping)
    original, copied = tupelo.open({path: name}), tupelo.open(uri, storage_options=pool.options)
    assert isinstance(original, tupelo.Ntuple)
    assert isinstance(copied, tupelo.Ntuple)
    assert copied.name == "copy"
    expected = values_of(original)
    assert values_of(copied) == expected
    assert copied.typenames() == original.typenames()
    run("verify", "--deep", uri)
    run("copy", uri, "back.root")
    back = tupelo.open({tmp_path / "back.root": "copy"})
    assert isinstance(back, tupelo.Ntuple)
    assert values_of(back) == expected
    run("verify", "--deep", "back.root")


@pytest.mark.parametrize("requests", ["batch", "queue", "blocking"])
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_an_ntuple_is_written_and_read(mapping: str, requests: str, pool: Pool) -> None:
    uri, options = f"{pool.new_container()}:Events", pool.options | {"daos_requests": requests}
    values = np.random.default_rng(1).normal(size=30_000)
    with tupelo.recreate(uri, mapping=mapping, page_bytes=4096, cluster_bytes=50_000, storage_options=options) as store:
        store["Events"] = {"x": values, "n": [[1] * (i % 3) for i in range(30_000)]}
        with pytest.raises(tupelo.NotFoundError):
            tupelo.open(uri, storage_options=options)
    events = tupelo.open(uri, storage_options=options)
    assert isinstance(events, tupelo.Ntuple)
    assert events.arrays(library="np")["x"].tolist() == values.tolist()
    assert events.arrays(cut="x > 3")["x"].tolist() == values[values > 3].tolist()
    assert events["n"].array(entry_start=29_999).tolist() == [[1] * (29_999 % 3)]
    assert events.take([29_998, 5])["x"].tolist() == [values[29_998], values[5]]


def test_pages_have_separate_objects_where_that_is_chosen(pool: Pool, run: Callable[..., Any]) -> None:
    uri, options = f"{pool.new_container()}:Events", pool.options | {"daos_objects": "page"}
    with pytest.raises(tupelo.InvalidArgumentError, match="use the mapping page"):
        tupelo.recreate(uri, mapping="page-group", storage_options=options)["Events"] = {"x": [1.0]}
    for values in (np.arange(20_000.0), np.arange(30_000.0)):
        with tupelo.recreate(uri, page_bytes=4096, cluster_bytes=50_000, storage_options=options) as store:
            store["Events"] = {"x": values}
        # Readers need no option.
        assert tupelo.open(uri, storage_options=pool.options)["x"].array(library="np").tolist() == values.tolist()
    layout = json.loads(run("layout", "--json", uri).stdout)
    assert (layout["mapping"], layout["daos"]["objects"]) == (None, "page")
    assert "one object per page" in run("layout", uri).stderr
    document = json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)
    assert [orphan["objects"] > 10 for orphan in document["orphans"]] == [True]
    run("verify", "--deep", uri)


def test_the_command_knows_containers(pool: Pool, run: Callable[..., Any], tmp_path: Path) -> None:
    container = pool.new_container()
    uri = f"{container}:Events"
    with tupelo.recreate(tmp_path / "a.root") as file:
        file["Events"] = {"x": np.arange(1000.0)}
        file["others"] = {"x": np.arange(10.0)}
    run("copy", "a.root:Events", uri, "--mapping", "page")
    assert "--force replaces it" in run("copy", "a.root:Events", uri, status=1).stderr
    run("copy", "a.root:Events", uri, "--force", "--entries", ":10")
    run("copy", "a.root:others", f"{container}:others")
    assert "Events" in run("ls", uri).stdout
    listing = run("ls", container).stdout
    assert [line.strip() for line in listing.splitlines()][-2:] == ["Events", "others"]
    assert "x" in run("schema", uri).stdout
    assert run("dump", uri, "--format", "csv").stdout.count("\n") == 11
    regions = json.loads(run("layout", "--json", uri).stdout)["regions"]
    assert {region["what"] for region in regions} == {"header", "pages", "page list", "footer", "anchor"}
    assert "would be removed" in run("gc", "--dry-run", "--older-than", "0", uri).stderr
    document = json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)
    assert len(document["orphans"]) == 1
    assert json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)["orphans"] == []
    run("verify", "--deep", uri)
    assert tupelo.open(uri, storage_options=pool.options).num_entries == 10


def test_ntuples_are_removed(pool: Pool, run: Callable[..., Any]) -> None:
    container = pool.new_container()
    uri = f"{container}:Events"
    for objects in ("cluster", "page"):
        options = pool.options | {"daos_objects": objects}
        for name in ("Events", "others"):
            with tupelo.recreate(f"{container}:{name}", page_bytes=4096, storage_options=options) as store:
                store[name] = {"x": np.arange(20_000.0)}
        assert "would be removed, with" in run("rm", "--dry-run", uri).stderr
        assert re.search(r": removed, with [1-9]\d+ objects of ", run("rm", uri).stderr)
        assert "the ntuple does not exist" in run("rm", uri, status=1).stderr
        assert [line.strip() for line in run("ls", container).stdout.splitlines()][-1:] == ["others"]
        with pytest.raises(tupelo.NotFoundError):
            tupelo.open(uri, storage_options=options)
        assert json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)["orphans"] == []
        assert tupelo.open(f"{container}:others", storage_options=options).num_entries == 20_000


def test_what_cannot_be_done_is_said(pool: Pool, run: Callable[..., Any]) -> None:
    container, options = pool.new_container(), pool.options
    with pytest.raises(tupelo.MissingFileError, match=r"the container .* .*; the storage option daos_create=true"):
        tupelo.recreate(f"{container}:Events", storage_options=options | {"daos_create": "false"})
    with pytest.raises(tupelo.MissingFileError, match=r"the DAOS pool .* does not exist"):
        tupelo.open("daos://no-such-pool/box:Events", storage_options=options)
    with tupelo.recreate(f"{container}:Events", storage_options=options) as store:
        with pytest.raises(tupelo.InvalidArgumentError, match="must have the name in its URI, 'Events'"):
            store["Other"] = {"x": [1]}
        store["Events"] = {"x": [1]}
    with pytest.raises(tupelo.NotFoundError, match=r"no ntuple named 'Event'.*'Events'"):
        tupelo.open(f"{container}:Event", storage_options=options)
    with pytest.raises(tupelo.UnsupportedError, match="daos://POOL/CONTAINER:NAME"):
        tupelo.open("daos://tank", storage_options=options)
    with pytest.raises(tupelo.InvalidArgumentError, match="support the mapping 'cluster'; use page"):
        tupelo.recreate(f"{container}:Events", mapping="cluster", storage_options=options)
    with pytest.raises(tupelo.UnsupportedError, match="NOPE"):
        tupelo.recreate(f"{container}:Events", storage_options=options | {"daos_class": "NOPE"})
    with pytest.raises(tupelo.Error, match="libdaos"):
        tupelo.open(f"{container}:Events", storage_options=options | {"daos_library": "/no/libdaos.so"})


@pytest.mark.parametrize("is_first", [True, False])
def test_a_container_is_a_member_of_a_mirror(
    is_first: bool, pool: Pool, run: Callable[..., Any], tmp_path: Path
) -> None:
    container, folder = f"{pool.new_container()}:Events", f"ntpl+file:{tmp_path}/events"
    members = [container, folder] if is_first else [folder, container]
    uri = f"ntpl+mirror:{','.join(members)}"
    with tupelo.recreate(uri, storage_options=pool.options) as store:
        with pytest.raises(tupelo.InvalidArgumentError, match="must have the name in its URI, 'Events'"):
            store["Other"] = {"x": [1]}
        store["Events"] = {"x": np.arange(100_000), "y": [[1.5] * (n % 3) for n in range(100_000)]}
    opened = [tupelo.open(name, storage_options=pool.options) for name in (uri, *members)]
    expected = opened[0].arrays().tolist()
    assert [events.arrays().tolist() for events in opened[1:]] == [expected, expected]
    run("verify", "--deep", uri)
    assert "Events" in run("ls", uri).stdout
    # The directory is lost while it is read.
    for path in (tmp_path / "events.objects").rglob("*"):
        if path.is_file():
            path.unlink()
    # A file that is still open is read; for any other, a warning says that the next store is used.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tupelo.TupeloWarning)
        assert opened[0].arrays().tolist() == expected
    (tmp_path / "events").unlink()
    skipped = pytest.warns(tupelo.TupeloWarning, match="/events was skipped") if not is_first else nullcontext()
    with skipped:
        assert tupelo.open(uri, storage_options=pool.options).arrays().tolist() == expected
    with tupelo.recreate(uri, storage_options=pool.options) as store:
        store["Events"] = {"x": [7]}
    for name in members:
        assert tupelo.open(name, storage_options=pool.options)["x"].array().tolist() == [7]
    run("gc", "--older-than", "0", uri)
    run("copy", uri, "one.root")
    run("copy", "--force", "one.root:Events", uri)
    assert tupelo.open(folder)["x"].array().tolist() == [7]


def test_a_mirror_is_read_where_there_is_no_daos(pool: Pool, tmp_path: Path) -> None:
    with tupelo.recreate(f"ntpl+file:{tmp_path}/events") as store:
        store["Events"] = {"x": [7]}
    uri = f"ntpl+mirror:{pool.new_container()}:Events,ntpl+file:{tmp_path}/events"
    with pytest.warns(tupelo.TupeloWarning, match=r"the container .* does not exist"):
        assert tupelo.open(uri, storage_options=pool.options)["x"].array().tolist() == [7]
    options = pool.options | {"daos_library": "/no/libdaos.so"}
    with pytest.warns(tupelo.TupeloWarning, match=r"/no/libdaos.so cannot be loaded"):
        assert tupelo.open(uri, storage_options=options)["x"].array().tolist() == [7]


def test_a_killed_writer_leaves_the_old_ntuple_or_the_new_one(pool: Pool, run: Callable[..., Any]) -> None:
    uri = f"{pool.new_container()}:Events"
    commands = {"gc": ["gc", "--older-than", "0", uri], "verify": ["verify", "--deep", uri]}
    killed_writers(uri, pool.options, lambda name: run(*commands[name]), 8)
    assert json.loads(run("gc", "--older-than", "0", "--json", uri).stdout)["orphans"] == []
