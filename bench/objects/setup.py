"""What the studies of `objects.py` share: places, variants, and the runs that are measured, each in its own process."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..machine import DATA, JOB_SECONDS, PROJECT, say
from ..tasks import ALL_26
from .calls import NTUPLE, Job, Outcome
from .report import KIB, Series, Target

sys.path.insert(0, str(PROJECT / "python/tests"))
import servers
from servers import NotInstalledError, Store

EVENTS = 700_000
"""97 MB with zstd, times ``--scale``."""
QUICK = 20
"""Divides the events of a quick run."""
CODEC = "zstd:5"
CLUSTER_BYTES = 100_000_000
PAGE_BYTES = 64 * KIB


@dataclass(frozen=True)
class Place:
    """Where objects are."""

    name: str
    milliseconds: int | None
    """Delay of answers of a server; None without one."""


DAOS_MICROSECONDS = 20
"""How long each operation of the stand-in takes."""
DAOS = Place(f"DAOS stand-in, {DAOS_MICROSECONDS} µs", None)
DIRECTORY = Place("directory", None)
S3 = {delay: Place(f"S3, {delay} ms", delay) for delay in (0, 5, 30)}
PLACES = (DIRECTORY, DAOS, *S3.values())


@dataclass(frozen=True)
class Variant:
    """How an ntuple is stored."""

    mapping: str = "auto"
    page_bytes: int = PAGE_BYTES
    codec: str = CODEC
    cluster_bytes: int = CLUSTER_BYTES

    @property
    def writing(self) -> dict[str, Any]:
        """Keywords of `tupelo.recreate`."""
        more = {"page_bytes": self.page_bytes, "cluster_bytes": self.cluster_bytes}
        return {"mapping": self.mapping, "compression": self.codec, **more}


@dataclass(frozen=True)
class Site:
    """A place that is ready."""

    store: Store
    folder: Path
    """Where its objects are on this machine."""

    @property
    def is_daos(self) -> bool:
        return self.store.url.startswith("daos:")

    def uri(self, name: str) -> str:
        return f"{self.store.url}{name}:{NTUPLE}" if self.is_daos else f"ntpl+{self.store.url}{name}"

    @property
    def log(self) -> str:
        return str(self.store.log) if self.store.port else ""

    def objects(self, name: str) -> list[Path]:
        """The objects of an ntuple but its anchor."""
        return [path for path in (self.folder / f"{name}.objects").rglob("*") if path.is_file()]

    def clear(self) -> None:
        """Removes all objects."""
        for path in self.folder.iterdir() if self.folder.exists() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@dataclass
class Point:
    """A variant in a place, measured."""

    place: Place
    written: Outcome
    reads: list[Outcome]
    objects: int
    bytes: int

    @property
    def read(self) -> Outcome:
        return self.reads[0]

    @property
    def write_speed(self) -> float:
        """Stored MB/s."""
        return self.bytes / self.written.median / 1e6

    @property
    def read_speed(self) -> float:
        return self.read.bytes / self.read.median / 1e6

    def record(self) -> dict[str, Any]:
        """The columns of a table."""
        on_server = self.place.milliseconds is not None
        return {
            "store": self.place.name,
            "objects": self.objects,
            "KiB each": self.bytes / self.objects / KIB,
            "PUT": self.written.puts if on_server else None,
            "write, s": self.written.seconds,
            "write, MB/s": self.write_speed,
            "GET": self.read.gets if on_server else None,
            "read, s": self.read.seconds,
            "read, MB/s": self.read_speed,
        }


@dataclass(frozen=True)
class Row:
    """A study."""

    name: str
    title: str
    make: Callable[[Bench, Row], None]


ROWS: list[Row] = []


def row(name: str, title: str) -> Callable[[Callable[[Bench, Row], None]], None]:
    """Adds a row."""

    def add(make: Callable[[Bench, Row], None]) -> None:
        ROWS.append(Row(f"objects-{name}", title, make))

    return add


def standin() -> str:
    """The stand-in for libdaos."""
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "daos-standin"]
    subprocess.run(build, check=True, cwd=PROJECT)
    return str(PROJECT / "target/release/libdaos_standin.so")


class FailedError(Exception):
    """A process that failed, with what it said."""


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, scratch: Path, stack: contextlib.ExitStack) -> None:
        self.options = options
        self.scratch = scratch
        self.stack = stack
        self.numbers = itertools.count()
        self.sites: dict[Place, Site] = {}
        self.points: dict[tuple[Variant, Place, str], Point | None] = {}
        self.expected: dict[str, str] = {}
        """A hash for each column."""
        self.sections: dict[Row, list[dict[str, Any]]] = {}
        """The lines of the table of each row."""
        self.targets: list[Target] = []
        self.series: list[Series] = []
        self.versions: set[str] = set()
        self.failures: list[str] = []
        self.remarks: list[str] = []

    @property
    def events(self) -> int:
        return EVENTS * self.options.scale // (QUICK if self.options.quick else 1)

    def folder(self) -> Path:
        """An empty folder."""
        folder = self.scratch / str(next(self.numbers))
        folder.mkdir()
        return folder

    def command(self, *arguments: object) -> list[str]:
        return [str(self.options.binaries / "tupelo"), *map(str, arguments)]

    def file(self, events: int, seed: int = 1, page_bytes: int = PAGE_BYTES) -> Path:
        """A local file with the events, created if missing."""
        path = DATA / "objects-data" / f"b2hhh-{events}-{seed}-{page_bytes}.root"
        if not path.exists():
            say(f"making {path.relative_to(PROJECT)}")
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"part-{path.name}")
            sizes = ["--page-bytes", str(page_bytes), "--cluster-bytes", str(CLUSTER_BYTES), "--compression", CODEC]
            command = [str(self.options.binaries / "tupelo-generate"), "b2hhh", "--quiet", "--force", *sizes]
            subprocess.run([*command, "--events", str(events), "--seed", str(seed), str(part)], check=True)
            part.rename(path)
        return path

    def site(self, place: Place) -> Site:
        """A place, started if it is not. Raises `NotInstalledError`."""
        if place not in self.sites:
            folder = self.folder()
            if place == DAOS:
                store = Store("daos://tank/", {"daos_create": "true", "daos_library": standin()}, 0, folder)
                os.environ["DAOS_STANDIN_POOLS"] = "tank:4"
                os.environ["DAOS_STANDIN_LATENCY_US"] = str(DAOS_MICROSECONDS)
                os.environ["DAOS_STANDIN_DIR"] = str(folder)
            elif place.milliseconds is None:
                store = Store(f"file:{folder}/", {}, 0, folder)
            else:
                store = self.stack.enter_context(servers.s3(folder))
                proxy = self.stack.enter_context(servers.toxiproxy())
                store = store.through(proxy.delayed(store.port, place.milliseconds))
                folder = folder / "data/box/runs"
            self.sites[place] = Site(store, folder)
        return self.sites[place]

    def do(self, kind: str, uri: str, **more: Any) -> Outcome:
        """Runs a job in a separate process. Raises `FailedError`."""
        result = self.scratch / f"{next(self.numbers)}.json"
        order = result.with_suffix(".job")
        order.write_text(json.dumps(asdict(Job(kind, str(result), uri, **({"repeat": self.options.repeat} | more)))))
        self.shell([sys.executable, "-m", "bench.objects.calls", str(order)], f"{kind} of {uri}")
        outcome = Outcome(**json.loads(result.read_text()))
        self.versions |= {outcome.version} - {""}
        return outcome

    def shell(self, command: list[str], what: str = "") -> str:
        """Runs a command and returns what it prints. Raises `FailedError`."""
        what = what or " ".join(command)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            raise FailedError(f"{what}: no answer within {JOB_SECONDS} s") from None
        if done.returncode != 0:
            raise FailedError(f"{what}: {''.join((done.stderr or done.stdout).strip().splitlines()[-1:])}")
        return done.stdout

    def check(self, row: Row, what: str, answer: dict[str, str]) -> None:
        """Notes columns that are not those of the data."""
        if not self.expected:
            self.expected = self.do("read", str(self.file(self.events)), columns=ALL_26, repeat=1).answer
        if wrong := [name for name, text in answer.items() if text != self.expected[name]]:
            self.failures.append(f"{row.name}: {what}: wrong values in {', '.join(wrong)}")

    def point(
        self,
        row: Row,
        variant: Variant,
        place: Place,
        columns: Sequence[list[str]] = (ALL_26,),
        label: str = "",
        **options: str,
    ) -> Point | None:
        """Writes the data and reads columns of them, if no other row has; None if it cannot be done."""
        key = (variant, place, repr((columns, options)))
        if key not in self.points:
            what = f"{label or variant.mapping}, {variant.codec}, {place.name}"
            say(f"{row.name}: {what}")
            self.points[key] = None
            try:
                self.points[key] = self.measured(row, what, variant, place, columns, options)
            except FailedError as error:
                self.failures.append(f"{row.name}: {what}: {error}")
        return self.points[key]

    def measured(
        self,
        row: Row,
        what: str,
        variant: Variant,
        place: Place,
        columns: Sequence[list[str]],
        options: dict[str, str],
    ) -> Point:
        site = self.site(place)
        site.clear()
        try:
            uri, more = site.uri("ntuple"), {"options": site.store.options | options, "log": site.log}
            source = str(self.file(self.events))
            written = self.do("write", uri, source=source, columns=ALL_26, writing=variant.writing, **more)
            last = f"ntuple-{self.options.repeat - 1}"
            reads = [self.do("read", site.uri(last), columns=some, **more) for some in columns]
            for outcome in reads:
                self.check(row, what, outcome.answer)
            sizes = self.sizes(site, last)
            return Point(place, written, reads, len(sizes), sum(sizes))
        finally:
            site.clear()

    def sizes(self, site: Site, name: str) -> list[int]:
        """Bytes of each object of an ntuple."""
        if not site.is_daos:
            return [path.stat().st_size for path in (site.folder / name, *site.objects(name))]
        layout = json.loads(self.shell(self.command("layout", "--json", site.uri(name), *site.store.arguments)))
        sizes = Counter[str]()
        for region in layout["regions"]:
            sizes[region["object"]] += region["bytes"]
        return list(sizes.values())

    def note(self, row: Row, **record: Any) -> None:
        """Adds a line to the table of a row."""
        self.sections.setdefault(row, []).append(record)

    def want(self, row: Row, *about: Any, **more: Any) -> None:
        """Adds a target."""
        self.targets.append(Target(row.name, *about, **more))

    def places(self, row: Row, wanted: Sequence[Place]) -> list[Place]:
        """Those that can be started here."""
        found = []
        for place in wanted:
            try:
                self.site(place)
                found.append(place)
            except NotInstalledError as error:
                remark = f"{row.name}: {place.name} was not measured: {error}"
                self.remarks.append(remark)
        return found
