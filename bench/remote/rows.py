"""Reading over a network with latency: requests, bytes and seconds of Tupelo and uproot, with equal answers.

`make bench ROWS=remote` calls this; `ROWS=remote-all*` does some rows. Real servers on 127.0.0.1 note each request, and
a proxy delays their answers by 30 ms. A row compares contestants, each in its own process, with what the same process
would read from the local file. The first call of a process opens connections; the table has it beside the median of
the others. Exit status 1 if answers differ or a contestant fails, not if a target is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..machine import DATA, JOB_SECONDS, PROJECT, cores, count, machine, say
from ..tasks import EIGHTEEN, MIB, WIDE_COLUMNS
from .calls import Job, Outcome

sys.path.insert(0, str(PROJECT / "python/tests"))
import servers
from servers import NotInstalledError, Store

LATENCY_MILLISECONDS = 30
LINK_BYTES = 100_000_000
"""Of the link of `remote-link`, per second."""
LINK_SHARE = 0.9
SECONDS = 0.35
"""For all columns of the narrow file."""
CACHE_SHARE = 0.8
"""Of the speed with local files."""
FILES = 10
IN_TURN = 0.5
"""Most of the time of files that are read in turn."""
BUDGET_BYTES = 1 << 30
"""The default memory budget."""

NARROW = 15
"""Columns of doubles, of 3 pages each, and as many of floats, of 2 pages: 35 MB in 75 pages."""
NARROW_ENTRIES = 231_000
NARROW_PAGE_BYTES = 630_000
LARGE_ENTRIES = 7_200_000
"""A file of 1 GB."""
LARGE_CLUSTER_BYTES = 52 << 20
SMALL_ENTRIES = 1000
QUICK = 50
"""Divides the entries of a quick run."""
NTUPLES = {"narrow": "Events", "wide": "Events", "large": "DecayTree", "small": "DecayTree"}
LISTED = 16
"""Requests of a call that are listed."""
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Row:
    """A task."""

    name: str
    title: str
    make: Callable[[Bench, Row], None]


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    row: Row
    contestant: str
    outcome: Outcome
    remark: str = ""
    wanted: str = ""
    met: bool | None = None

    def text(self, is_first: bool) -> str:
        """Markdown; the first line of a row names it."""
        outcome, seconds = self.outcome, self.outcome.seconds
        requests = (
            "–".join(map(str, sorted({min(outcome.requests), max(outcome.requests)}))) if outcome.requests else ""
        )
        sent = f"{max(outcome.sent_bytes) / 1e6:.1f}" if any(outcome.sent_bytes) else ""
        again = f"{outcome.median:.3f}" if len(seconds) > 1 else ""
        verdict = {True: "met", False: "**not met**", None: ""}[self.met]
        task = f"{self.row.title} (`{self.row.name}`)" if is_first else ""
        numbers = [requests, sent, f"{seconds[0]:.3f}", again]
        cells = [task, self.contestant, *numbers, self.remark, self.wanted, verdict]
        return f"| {' | '.join(cells)} |"


HEAD = """| task | contestant | requests | MB sent | first, s | again, s | | wanted | |
|---|---|---:|---:|---:|---:|---|---|---|"""

ROWS: list[Row] = []


def row(name: str, title: str) -> Callable[[Callable[[Bench, Row], None]], None]:
    """Adds a row."""

    def add(make: Callable[[Bench, Row], None]) -> None:
        ROWS.append(Row(f"remote-{name}", title, make))

    return add


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.data = DATA / f"remote-{'quick' if options.quick else 'full'}"
        self.numbers = itertools.count()
        self.lines: list[Line] = []
        self.versions: set[str] = set()
        self.failures: list[str] = []
        self.remarks: list[str] = []

    def folder(self) -> Path:
        """An empty folder, open to servers that are other users."""
        folder = self.scratch / str(next(self.numbers))
        folder.mkdir()
        return folder

    def file(self, kind: str) -> Path:
        """A file to read, created if missing."""
        path = self.data / f"{kind}.root"
        if path.exists():
            return path
        say(f"making {path.relative_to(PROJECT)}")
        self.data.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"part-{path.name}")
        part.unlink(missing_ok=True)
        scale = QUICK if self.options.quick else 1
        if kind in ("large", "small"):
            entries = LARGE_ENTRIES // scale if kind == "large" else SMALL_ENTRIES
            command = [str(self.options.binaries / "tupelo-generate"), "b2hhh", "--quiet", "--seed", "1", str(part)]
            sizes = ["--events", str(entries), "--cluster-bytes", str(LARGE_CLUSTER_BYTES // scale)]
            subprocess.run([*command, *sizes], check=True)
        elif kind == "wide":
            write_wide(part)
        else:
            write_narrow(str(part), scale)
        part.rename(path)
        return path

    def names(self, kind: str) -> list[str]:
        """The file under several names, without its folder."""
        path = self.file(kind)
        links = [path.with_name(f"{kind}-{number}.root") for number in range(FILES)]
        for link in links:
            if not link.exists():
                link.hardlink_to(path)
        return [link.name for link in links]

    @contextlib.contextmanager
    def http(self, link: bool = False) -> Iterator[Store]:
        """An HTTP server of the data behind the proxy."""
        with servers.nginx(self.folder(), self.data) as store, servers.toxiproxy() as proxy:
            port = proxy.delayed(store.port, LATENCY_MILLISECONDS)
            if link:
                limit(port)
            yield store.through(port)

    def call(
        self, row: Row, kind: str, contestant: str, store: Store | None, names: list[str], **more: Any
    ) -> Outcome | None:
        """Lets a contestant do a task in a separate process; None if it cannot."""
        say(f"{row.name}: {contestant}")
        result = self.scratch / f"{next(self.numbers)}.json"
        options: dict[str, Any] = more.pop("options", {})
        if store is not None:
            places = [store.url + name for name in names]
            if store.options and contestant.startswith("Tupelo"):
                options = options | {"storage_options": store.options}
            more |= {"server": store.url.partition(":")[0], "log": str(store.log)}
        else:
            places = [str(self.data / name) for name in names]
        data = names[0].removesuffix(".root").partition("-")[0]
        ntuple = NTUPLES[data]
        small = "" if kind == "get" else str(self.file("small" if data == "large" else data))
        more = {"repeat": self.options.repeat, "small": small} | more
        job = Job(kind, contestant, str(result), ntuple, places, options=options, **more)
        order = result.with_suffix(".job")
        order.write_text(json.dumps(asdict(job)))
        command = [sys.executable, "-m", "bench.remote.calls", str(order)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            self.failures.append(f"{row.name}: {contestant}: no answer within {JOB_SECONDS} s")
            return None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            self.failures.append(f"{row.name}: {contestant} failed: {''.join(said)}")
            return None
        outcome = Outcome(**json.loads(result.read_text()))
        if outcome.missing:
            self.remarks.append(f"{row.name}: {contestant} did not run: {outcome.missing}")
            return None
        if outcome.version:
            self.versions.add(outcome.version)
        return outcome

    def add(self, row: Row, contestant: str, outcome: Outcome | None, *about: Any) -> None:
        """Adds a line, whose answer must be that of the other lines of its row."""
        if outcome is None:
            return
        others = [line for line in self.lines if line.row == row]
        expected = next((line.outcome.answer for line in others), outcome.answer)
        if outcome.answer != expected:
            self.failures.append(f"{row.name}: {contestant} has another answer than {others[0].contestant}")
        self.lines.append(Line(row, contestant, outcome, *about))

    def compare(
        self, row: Row, kind: str, file: str, requests: int, seconds: float | None = None, columns: tuple[str, ...] = ()
    ) -> None:
        """The usual row: Tupelo and uproot read a file over HTTP."""
        with self.http() as store:
            self.race(row, kind, file, store, requests, seconds, columns, ["uproot", "uproot, HTTPSource"])

    def race(
        self,
        row: Row,
        kind: str,
        file: str,
        store: Store,
        requests: int,
        seconds: float | None,
        columns: tuple[str, ...] = (),
        others: list[str] | None = None,
    ) -> None:
        """Tupelo reads from a local file and from a server, and others from the server."""
        names, asked = [self.file(file).name], {"columns": list(columns)}
        self.add(row, LOCAL, self.call(row, kind, LOCAL, None, names, **asked))
        outcome = self.call(row, kind, "Tupelo", store, names, **asked)
        if outcome:
            wanted = f"≤ {count(requests, 'request')}" + (f", ≤ {seconds} s" if seconds else "")
            met = max(outcome.requests) <= requests and (seconds is None or outcome.median <= seconds)
            self.add(row, "Tupelo", outcome, "", wanted, met)
        for other in others or []:
            self.add(row, other, self.call(row, kind, other, store, names, **asked))


LOCAL = "Tupelo, local file"


def write_narrow(where: str, scale: int, options: dict[str, str] | None = None) -> None:
    """35 MB in 75 pages of 30 columns."""
    import tupelo

    random = np.random.default_rng(1)
    names = [f"{kind}{index:02}" for kind in "df" for index in range(NARROW)]
    types = {name: "double" if name[0] == "d" else "float" for name in names}
    with tupelo.recreate(where, page_bytes=NARROW_PAGE_BYTES // scale, storage_options=options) as file:
        columns = {name: random.random(NARROW_ENTRIES // scale) for name in names}
        file.mkrntuple("Events", types).extend(columns)


def write_wide(path: Path) -> None:
    """Many columns with few entries."""
    import tupelo

    with tupelo.recreate(path) as file:
        file["Events"] = {f"f{index:04}": np.arange(16, dtype=np.float32) + index for index in range(WIDE_COLUMNS)}


@row("open", "open and list 30 columns")
def open_narrow(bench: Bench, row: Row) -> None:
    bench.compare(row, "keys", "narrow", requests=2)


@row("open-wide", f"open and list {WIDE_COLUMNS} columns")
def open_wide(bench: Bench, row: Row) -> None:
    bench.compare(row, "keys", "wide", requests=3)


@row("all", "all columns of 35 MB in 75 pages")
def read_all(bench: Bench, row: Row) -> None:
    bench.compare(row, "read", "narrow", requests=6, seconds=SECONDS)


def read_all_from(bench: Bench, row: Row, server: Callable[[Path], contextlib.AbstractContextManager[Store]]) -> None:
    """The same from a server that gets the file first."""
    with server(bench.folder()) as store, servers.toxiproxy() as proxy:
        path = bench.file("narrow")
        write_narrow(store.url + path.name, QUICK if bench.options.quick else 1, store.options)
        delayed = store.through(proxy.delayed(store.port, LATENCY_MILLISECONDS))
        bench.race(row, "read", "narrow", delayed, requests=6, seconds=SECONDS)


@row("all-s3", "the same from S3")
def read_all_s3(bench: Bench, row: Row) -> None:
    read_all_from(bench, row, servers.s3)


@row("all-root", "the same from XRootD")
def read_all_root(bench: Bench, row: Row) -> None:
    read_all_from(bench, row, servers.xrootd)


@row("three", "3 of its columns, next to each other")
def read_three(bench: Bench, row: Row) -> None:
    bench.compare(row, "read", "narrow", requests=4, columns=("d03", "d04", "d05"))


@row("three-apart", "3 of its columns, far from each other")
def read_three_apart(bench: Bench, row: Row) -> None:
    bench.compare(row, "read", "narrow", requests=4, columns=("d03", "f05", "f11"))


@row("link", "18 of 26 columns of 1 GB, 100 MB/s")
def read_link(bench: Bench, row: Row) -> None:
    """The bytes of the pages per second are compared with the link, and with what one large request gets."""
    names, more = [bench.file("large").name], {"columns": EIGHTEEN, "repeat": min(bench.options.repeat, 2)}
    local = bench.call(row, "read", LOCAL, None, names, **more)
    bench.add(row, LOCAL, local)
    if local is None:
        return
    with network_namespace(), bench.http(link=True) as store:
        outcome = bench.call(row, "read", "Tupelo", store, names, **more)
        size = bench.file("large").stat().st_size
        get = {"bytes": min(size, local.stored_bytes), "repeat": more["repeat"]}
        plain = bench.call(row, "get", "one GET", store, names, **get)
    if outcome:
        share = local.stored_bytes / outcome.median / LINK_BYTES
        remark = f"{share:.0%} of the link: {local.stored_bytes / 1e6:.1f} MB of pages"
        bench.add(row, "Tupelo", outcome, remark, f"≥ {LINK_SHARE:.0%}", share >= LINK_SHARE)
    if plain:
        plain.answer = local.answer
        share = local.stored_bytes / plain.median / LINK_BYTES
        bench.add(row, "one GET", plain, f"{share:.0%} of the link")


@row("concatenate", f"one column of {FILES} files")
def read_many(bench: Bench, row: Row) -> None:
    """Compared with as many times one file."""
    names, columns = bench.names("narrow"), {"columns": ["d03"]}
    bench.add(row, LOCAL, bench.call(row, "concatenate", LOCAL, None, names, **columns))
    with bench.http() as store:
        one = bench.call(row, "concatenate", "Tupelo", store, names[:1], **columns)
        if one and (outcome := bench.call(row, "concatenate", "Tupelo", store, names, **columns)):
            ratio = outcome.median / one.median
            remark = f"{ratio:.1f} × one file; {count(outcome.most_files, 'file')} in flight at once"
            wanted = f"≥ 2 files in flight, ≤ {IN_TURN * FILES:.0f} × one file"
            bench.add(row, "Tupelo", outcome, remark, wanted, ratio <= IN_TURN * FILES and outcome.most_files > 1)
        for other in ("uproot", "uproot, HTTPSource"):
            bench.add(row, other, bench.call(row, "concatenate", other, store, names, **columns))


@row("cache", "18 of 26 columns of 1 GB, second analysis with `cache=`")
def read_cached(bench: Bench, row: Row) -> None:
    names, columns, cache = [bench.file("large").name], {"columns": EIGHTEEN}, bench.folder()
    local = bench.call(row, "read", LOCAL, None, names, **columns)
    bench.add(row, LOCAL, local)
    with bench.http() as store:
        cached = {**columns, "options": {"cache": str(cache)}}
        first = bench.call(row, "read", "Tupelo, cache", store, names, **cached, repeat=0)
        bench.add(row, "Tupelo, empty cache", first)
        outcome = bench.call(row, "read", "Tupelo, cache", store, names, **cached)
    shutil.rmtree(cache)
    if local and outcome:
        share = local.median / outcome.median
        wanted, met = f"1 request, ≥ {CACHE_SHARE} × local", max(outcome.requests) == 1 and share >= CACHE_SHARE
        bench.add(row, "Tupelo, cache", outcome, f"{share:.2f} × local speed", wanted, met)


@row("memory", f"iterate over 18 of 26 columns of {FILES} files of 1 GB")
def read_large(bench: Bench, row: Row) -> None:
    names, more = bench.names("large"), {"columns": EIGHTEEN}
    bench.add(row, LOCAL, bench.call(row, "stream", LOCAL, None, names, **more))
    with bench.http() as store:
        outcome = bench.call(row, "stream", "Tupelo", store, names, **more)
    if outcome and outcome.peak_bytes:
        peak, wanted = outcome.peak_bytes[0], f"≤ {BUDGET_BYTES // MIB} MiB"
        bench.add(row, "Tupelo", outcome, f"peak {peak / MIB:.0f} MiB", wanted, peak <= BUDGET_BYTES)


class NotMeasuredError(Exception):
    """A row that this machine cannot measure, with the reason."""


@contextlib.contextmanager
def network_namespace() -> Iterator[None]:
    """A network namespace for this process and those that it starts, whose loopback device can be slow.

    The proxy could limit the bandwidth of each connection, but not of all connections together.
    """
    if sys.platform != "linux" or os.getuid() != 0:
        raise NotMeasuredError("it needs a network namespace, which requires root on Linux")
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as before:
        if libc.unshare(CLONE_NEWNET) != 0:
            raise NotMeasuredError(f"cannot create a network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            subprocess.run([servers.program("ip"), "link", "set", "lo", "up"], check=True)
            yield
        finally:
            libc.setns(before.fileno(), CLONE_NEWNET)


def limit(port: int) -> None:
    """Limits the traffic from a port of the network namespace to the rate of the link."""
    rate = ["rate", f"{8 * LINK_BYTES}bit", "burst", "128k", "quantum", "65536"]
    match = ["protocol", "ip", "u32", "match", "ip", "sport", str(port), "0xffff", "flowid", "1:1"]
    for what, *how in (
        ["qdisc", "root", "handle", "1:", "htb"],
        ["class", "parent", "1:", "classid", "1:1", "htb", *rate],
        ["filter", "parent", "1:", *match],
    ):
        subprocess.run([servers.program("tc"), what, "add", "dev", "lo", *how], check=True)


NOTES = """
The proxy delays answers; it does not limit the bandwidth of a connection, of which it passes 0.5 GB/s or more. Requests
and bytes are those that the server noted in one call (XRootD: without the set-up of connections and without closing,
which does not delay the caller; versitygw notes no bytes). *First* is the first remote call of a process, which opens
connections; *again* the median of its later calls, with files opened again. Local files are in the page cache."""


def text(bench: Bench) -> str:
    """The results as Markdown."""
    about = machine()
    on = f"{about['cpu']}, {count(cores(), 'core')}, {about['system']}, Python {about['python']}."
    parts = [
        f"# Reading over a network, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{on} {LATENCY_MILLISECONDS} ms latency. Versions: {', '.join(sorted(bench.versions))}.",
        NOTES,
        f"Quick: the files are {QUICK} times smaller than the table says.\n" if bench.options.quick else "",
        HEAD,
        *(line.text(n == 0 or bench.lines[n - 1].row != line.row) for n, line in enumerate(bench.lines)),
        "",
    ]
    judged = [line for line in bench.lines if line.met is not None]
    parts.append(f"{sum(line.met is True for line in judged)} of {count(len(judged), 'target')} are met.\n")
    for line in judged:
        if line.outcome.listed:
            more = ["…"] if len(line.outcome.listed) > LISTED else []
            listed = ", ".join([f"`{one}`" for one in line.outcome.listed[:LISTED]] + more)
            parts.append(f"Requests of `{line.row.name}`: {listed}\n")
    parts += [f"{remark}\n" for remark in bench.remarks]
    parts += [f"FAILED: {failure}" for failure in bench.failures] or ["All answers are equal."]
    return "\n".join(parts)


def chosen(rows: list[Any], patterns: list[str], family: str) -> list[Any]:
    """The rows that patterns name; `family` is all of them."""
    patterns = ["*" if pattern == family else pattern for pattern in patterns]
    found = [one for one in rows if any(fnmatch.fnmatch(one.name, pattern) for pattern in patterns)]
    if not found:
        say(f"no row matches; there are: {', '.join(one.name for one in rows)}")
    return found


def run(options: argparse.Namespace) -> int:
    """Runs the rows and prints the table."""
    rows: list[Row] = chosen(ROWS, options.remote, "remote")
    if not rows:
        return 2
    # Not in memory: the cache and the copies on servers would take it from what is measured.
    with tempfile.TemporaryDirectory(prefix="tupelo-remote-") as scratch:
        Path(scratch).chmod(0o755)
        bench = Bench(options, Path(scratch))
        for one in rows:
            try:
                one.make(bench, one)
            except (NotInstalledError, NotMeasuredError) as error:
                bench.remarks.append(f"{one.name} was not measured: {error}")
            except KeyboardInterrupt:  # keep the measurements so far
                bench.failures.append("interrupted before all was measured")
                break
    markdown = text(bench)
    print(markdown)
    (DATA / "remote.md").write_text(markdown + "\n")
    say(f"stored as remote.md in {DATA}")
    return 1 if bench.failures else 0
