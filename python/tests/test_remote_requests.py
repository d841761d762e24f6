"""What is requested of a server by typical calls, as a snapshot."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from http_server import Server

import tupelo

COLUMNS = [f"c{column}" for column in range(10)]
ENTRIES = 50_000
BATCHES = 4

# One line for each call. Requests are separated by |, in the order of their ranges. Each names the pages that it reads
# as cluster.column: `-` stands for all columns between two of a cluster, `to` for everything between two in the file.
EXPECTED = """
open                     start of the file | end of the file
one column               0.c3 | 1.c3 | 2.c3 | 3.c3
two adjacent columns     0.c3-c4 | 1.c3-c4 | 2.c3-c4 | 3.c3-c4
two near columns         0.c3-c5 | 1.c3-c5 | 2.c3-c5 | 3.c3-c5
two distant columns      0.c1 | 0.c7 | 1.c1 | 1.c7 | 2.c1 | 2.c7 | 3.c1 | 3.c7
a few entries            part of 1.c3
a few entries of all     part of 1.c0-c9
distant entries          part of 0.c3 | part of 1.c3 | part of 3.c3
a cut at the end         0.c0 | 1.c0 | 2.c0 | 3.c0 | part of 3.c5
the cut again            0.c0 | 1.c0 | 2.c0 | 3.c0 | part of 3.c5
all columns              part of 0.c0 to 3.c9
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with tupelo.recreate(tmp_path / "events.root", compression="none", cluster_bytes="4 MiB") as file:
        events = file.mkrntuple("Events", dict.fromkeys(COLUMNS, "double"), page_bytes="64 KiB")
        for batch in range(BATCHES):
            entries = np.arange(ENTRIES) + batch * ENTRIES
            events.extend({name: entries + number for number, name in enumerate(COLUMNS)})
    server = Server(tmp_path)
    yield server
    server.close()


def named(wanted: str, pages: list[dict[str, Any]]) -> str:
    """What a request reads."""
    first, last = wanted.removeprefix("bytes=").split("-")
    if first == "":
        return "end of the file"
    if first == "0":
        return "start of the file"
    start, end = int(first), int(last) + 1
    touched = [page for page in pages if page["offset"] < end and start < page["offset"] + page["bytes"]]
    begin, finish = touched[0], touched[-1]
    names = f"{begin['cluster']}.{begin['field']}"
    if begin is not finish and begin["cluster"] == finish["cluster"]:
        names += f"-{finish['field']}"
    elif begin is not finish:
        names += f" to {finish['cluster']}.{finish['field']}"
    is_part = start > begin["offset"] or end < finish["offset"] + finish["bytes"]
    return f"part of {names}" if is_part else names


def test_requests_of_typical_calls(server: Server, tmp_path: Path, command: str) -> None:
    layout = subprocess.run([command, "layout", "--json", tmp_path / "events.root"], check=True, capture_output=True)
    pages = [region for region in json.loads(layout.stdout)["regions"] if region["what"] == "pages"]
    url = f"{server.url}/events.root:Events"
    events = tupelo.open(url)

    def read(columns: list[str], **more: Any) -> Callable[[], object]:
        return lambda: events.arrays(columns, library="np", **more)

    last = BATCHES * ENTRIES - 1
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: tupelo.open(url).keys(),
        "one column": read(["c3"]),
        "two adjacent columns": read(["c3", "c4"]),
        "two near columns": read(["c3", "c5"]),
        "two distant columns": read(["c1", "c7"]),
        "a few entries": read(["c3"], entry_start=60_000, entry_stop=60_010),
        "a few entries of all": read(COLUMNS, entry_start=60_000, entry_stop=60_010),
        "distant entries": lambda: events.take([5, last // 2, last], ["c3"], library="np"),
        "a cut at the end": read(["c5"], cut=f"c0 == {last}"),
        "the cut again": read(["c5"], cut=f"c0 == {last}"),
        "all columns": read(COLUMNS),
    }
    found = []
    for name, call in calls.items():
        server.requests.clear()
        call()
        ranges = [request.range or "" for request in server.requests]
        ranges.sort(key=lambda wanted: int(wanted.removeprefix("bytes=").split("-")[0] or 1 << 40))
        found.append(f"{name:<25}{' | '.join(named(wanted, pages) for wanted in ranges)}")
    assert "\n".join(found) == EXPECTED.strip()


def test_small_budgets_leave_memory_to_decode(tmp_path: Path) -> None:
    """Of pages that are fetched ahead, and of columns that several fields read."""
    values = np.random.default_rng(1).integers(0, 4096, 1 << 18).astype("i4")
    with tupelo.recreate(tmp_path / "pages.root", compression="zstd:1") as file:
        file["Events"] = {f"c{number}": values for number in range(8)}
    lists = pa.LargeListArray.from_arrays(np.arange(0, 6 * 50_000 + 1, 6), np.arange(300_000.0))
    with tupelo.recreate(tmp_path / "projected.root", compression="none", page_bytes="64 KiB") as file:
        projections = {"again": ("v", "ROOT::VecOps::RVec<double>")}
        with file.mkrntuple("Events", {"v": "std::vector<double>"}, projections=projections) as events:
            events.extend({"v": lists})
    server = Server(tmp_path)
    try:
        for name, budget in [("pages", "2 MiB"), ("projected", "1 MiB")]:
            remote = tupelo.open(f"{server.url}/{name}.root:Events", memory_budget=budget).arrays(library="arrow")
            assert remote == tupelo.open(f"{tmp_path}/{name}.root:Events").arrays(library="arrow")
    finally:
        server.close()


def test_many_small_fields_need_few_requests(tmp_path: Path) -> None:
    """As many as one large field: clusters are fetched one after the other, with all fields."""
    values = np.random.default_rng(1).random(120_000)
    with (
        tupelo.recreate(tmp_path / "wide.root", compression="none", cluster_bytes="1 MB") as file,
        file.mkrntuple("Events", {f"c{number}": "double" for number in range(40)}) as events,
    ):
        for start in range(0, len(values), 4000):
            events.extend({f"c{number}": values[start : start + 4000] for number in range(40)})
    server = Server(tmp_path)
    try:
        ntuple = tupelo.open(f"{server.url}/wide.root:Events")
        assert isinstance(ntuple, tupelo.Ntuple)
        assert ntuple.num_clusters >= 20
        server.requests.clear()
        assert (ntuple.arrays(library="np")["c7"] == values).all()
        assert len(server.requests) <= 8, server.requests
    finally:
        server.close()
