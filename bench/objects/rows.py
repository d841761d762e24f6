"""Ntuples in object stores: speed, requests and money of the ways to store them, with equal answers.

`make bench ROWS=objects` calls this; `ROWS=objects-mapping,objects-k*` does some rows. Each row varies one thing and
keeps the others. S3 is a server on 127.0.0.1 that notes its requests, behind a proxy that delays answers by 0, 5 or
30 ms; the other stores are a directory, and a stand-in for DAOS whose operations take 20 µs. Each reader and writer
runs in its own process, once without being measured and then several times. Exit status 1 if answers differ, an
ntuple is damaged or something fails, not if a target is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..machine import DATA, cores, count, machine, say
from ..remote.calls import NOTED_SECONDS
from ..remote.plain_get import Range, recorder
from ..remote.rows import chosen
from ..tasks import ALL_26, EIGHTEEN
from .calls import Outcome, classes, of_columns, opened
from .report import KIB, MIB, Series, cell, chart, plateau, size_name, table, targets_table
from .setup import (
    CLUSTER_BYTES,
    CODEC,
    DAOS,
    DIRECTORY,
    PAGE_BYTES,
    PLACES,
    QUICK,
    ROWS,
    S3,
    Bench,
    FailedError,
    Place,
    Point,
    Row,
    Site,
    Variant,
    row,
)

KILL_EVENTS = 144_000
"""20 MB, however large the other data are."""
CODECS = ("none", CODEC, "lz4:4")
CLUSTERS = (50_000_000, CLUSTER_BYTES, 500_000_000)
LARGEST_CLUSTER = max(CLUSTERS)
"""Of `objects-transfer`, so that all columns have pages of the largest size if the data are large enough."""
TRANSFERS = (32 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
NEXT = 1.25
"""How much larger a transfer is at least than the one before."""
CAGES = (MIB, 4 * MIB, 16 * MIB)
MAPPINGS = ("page", *(f"cage:{size // MIB}MiB" for size in CAGES), "page-group", "cluster", "auto")
DENSITIES = {1: ["H1_PX"], 4: ["B_VertexChi2", "H1_PX", "H2_ProbK", "H3_PZ"], 18: EIGHTEEN}
PLAIN_THREADS, QUICK_THREADS = (8, 16, 32, 64), (16, 64)
"""Of the plain client, of which the best is compared."""
MOMENTS, QUICK_MOMENTS = 50, 5
MOST_WRITERS = 5
"""Writers that are started for each that is killed: some end before."""
EVER, LATE = (0.0, 1.0), (0.8, 1.05)
"""When writers are killed, as shares of the time that they take."""
SETTLE_SECONDS = 0.3
"""After which a server has finished the requests of a client that was killed."""

# Amazon S3 Standard in eu-west-3 (Paris), US dollars for 1000 requests: PUT, COPY, POST and LIST; GET and all others.
# https://aws.amazon.com/s3/pricing/, 2026-11. Deleting is free.
DOLLARS = {"PUT": 0.0053, "GET": 0.00042, "DELETE": 0.0}

LATER = (4, 16)
"""How many times larger transfers are at the start of the plateau of S3."""
CAGE_READ, CAGE_WRITE = 0.9, 0.8
"""Of the speed with native pages as large as the cages."""
CHEAPER = 6
"""Requests and money of `page`, over those of `page-group`."""
OF_PLAIN = 0.9
"""Of the speed of a client without any format."""


def two_codecs(bench: Bench) -> tuple[str, ...]:
    """The codec limits writing, so uncompressed data are measured too."""
    return ("none",) if bench.options.quick else ("none", CODEC)


@row("transfer", "throughput against the size of a transfer: mapping `page`, pages of this size, clusters of 500 MB")
def transfer(bench: Bench, row: Row) -> None:
    """The hypothesis is judged with uncompressed data."""
    column_bytes = min(bench.events * np.dtype(float).itemsize, LARGEST_CLUSTER // len(ALL_26))
    sizes = [size for size in TRANSFERS if size <= column_bytes]
    if len(sizes) < len(TRANSFERS):
        remark = f"{row.name}: columns have {size_name(column_bytes)} in a cluster; larger pages need a larger --scale"
        bench.remarks.append(remark)
        if column_bytes > NEXT * sizes[-1]:
            sizes.append(TRANSFERS[len(sizes)])
    starts: dict[tuple[str, Place], int] = {}  # of plateaus
    for codec, place in itertools.product(two_codecs(bench), bench.places(row, PLACES)):
        speeds: dict[str, dict[int, float]] = {"read": {}, "write": {}}
        for size in sizes:
            variant = Variant("page", size, codec, LARGEST_CLUSTER)
            if point := bench.point(row, variant, place, label=f"pages of {size_name(size)}"):
                bench.note(row, codec=codec, pages=size_name(size), **point.record())
                real = min(size, column_bytes)
                speeds["read"][real], speeds["write"][real] = point.read_speed, point.write_speed
        for what, line in speeds.items():
            bench.series.append(Series(what, codec, place.name, line))
            if codec == "none" and line:
                starts[what, place] = plateau(line)
    for what, near in itertools.product(("read", "write"), (DAOS, DIRECTORY, S3[0])):
        if (what, near) in starts and (what, S3[30]) in starts:
            early, late = starts[what, near], starts[what, S3[30]]
            said = f"{what}, none: the plateau of {S3[30].name} starts at {LATER[0]}–{LATER[1]} × that of {near.name}"
            last = " or later" if late == min(sizes[-1], column_bytes) else ""
            found = f"{size_name(late)}{last}, {size_name(early)}: {cell(late / early)} ×"
            bench.want(row, said, found, LATER[0] <= late / early <= LATER[1], ("confirmed", "**refuted**"))


@row("cage", "cages with pages of 64 KiB, and native pages as large as the cages")
def cage(bench: Bench, row: Row) -> None:
    shares: dict[tuple[str, int], dict[str, float]] = {}
    for codec, place in itertools.product(two_codecs(bench), bench.places(row, [DIRECTORY, DAOS, S3[0], S3[30]])):
        for size in CAGES:
            native = Variant("page", size, codec, LARGEST_CLUSTER)
            caged = Variant(f"cage:{size // MIB}MiB", PAGE_BYTES, codec, LARGEST_CLUSTER)
            pages = bench.point(row, native, place, label=f"pages of {size_name(size)}")
            cages = bench.point(row, caged, place)
            if not pages or not cages:
                continue
            # The same entries: smaller pages may be compressed less, which is part of the price.
            read = pages.read.median / cages.read.median
            write = pages.written.median / cages.written.median
            of_native = {"read, × native": read, "write, × native": write}
            bench.note(row, codec=codec, what=f"pages of {size_name(size)}", **pages.record())
            bench.note(row, codec=codec, what=f"cages of {size_name(size)}", **cages.record(), **of_native)
            for what, share in (("read", read), ("write", write)):
                shares.setdefault((what, size), {})[f"{codec}, {place.name}"] = share
    for (what, size), found in sorted(shares.items()):
        least = {"read": CAGE_READ, "write": CAGE_WRITE}[what]
        worst = min(found, key=lambda where: found[where])
        said = f"{what}: cages of {size_name(size)} have everywhere ≥ {least} × the speed of native pages"
        median = f"{statistics.median(found.values()):.2f} ×"
        bench.want(row, said, f"{found[worst]:.2f} × ({worst}), median {median}", found[worst] >= least)


def dollars(outcome: Outcome) -> float:
    return sum(number * DOLLARS[which] / 1000 for which, number in outcome.requests.items())


@row("mapping", "each mapping, pages of 64 KiB, clusters of 100 MB: requests, seconds and money")
def mapping(bench: Bench, row: Row) -> None:
    """The money of requests is that of writing, and of reading once, a TB that is stored so."""
    points: dict[str, Point] = {}
    for place, name in itertools.product(bench.places(row, [S3[30]]), MAPPINGS):
        point = bench.point(row, Variant(name), place, list(DENSITIES.values()))
        if not point:
            continue
        points[name] = point
        record: dict[str, Any] = {"mapping": name, "objects": point.objects, "PUT": point.written.puts}
        record |= {"write, s": point.written.seconds, "write, $/TB": dollars(point.written) / point.bytes * 1e12}
        for columns, outcome in zip(DENSITIES, point.reads, strict=True):
            what = count(columns, "column")
            record |= {f"{what}: GET": outcome.gets, f"{what}, s": outcome.seconds}
        record["read 18, $/TB"] = dollars(point.reads[-1]) / point.reads[-1].bytes * 1e12
        bench.note(row, **record)
    if "page" in points and "cluster" in points:
        for number, pages, clusters in zip(DENSITIES, points["page"].reads, points["cluster"].reads, strict=True):
            said = f"`cluster` reads {count(number, 'column')} at least as fast as `page`"
            ratio = pages.median / clusters.median
            bench.want(row, said, f"{ratio:.2f} × as fast", ratio >= 1)
    if "page" in points and "page-group" in points:
        many, few = points["page"].written, points["page-group"].written
        for what, ratio in (("PUTs", many.puts / few.puts), ("money", dollars(many) / dollars(few))):
            said = f"writing with `page` takes ≥ {CHEAPER} × the {what} of `page-group`"
            bench.want(row, said, f"{cell(ratio)} ×", ratio >= CHEAPER)


@row("cluster", "sizes of clusters: mapping `auto`, pages of 64 KiB")
def cluster(bench: Bench, row: Row) -> None:
    for size, place in itertools.product(CLUSTERS, bench.places(row, [DIRECTORY, S3[30]])):
        label = f"clusters of {size // 10**6} MB"
        if point := bench.point(row, Variant(cluster_bytes=size), place, label=label):
            bench.note(row, cluster=f"{size // 10**6} MB", **point.record())


LADDER = {
    "one value after the other, an object for each page": ("page", "blocking", "page"),
    "persistent queue": ("page", "queue", "page"),
    "batches": ("page", "batch", "page"),
    "co-locality: an object for each cluster": ("page", "batch", "cluster"),
    "cages of 1 MiB": ("cage:1MiB", "batch", "cluster"),
    "page groups": ("page-group", "batch", "cluster"),
}
"""The steps by which reading and writing of DAOS became faster, each with those before it: a mapping, and the options
`daos_requests` and `daos_objects`."""


@row("ladder", "DAOS, 18 of 26 columns, pages of 64 KiB without codec: each step of the published work")
def ladder(bench: Bench, row: Row) -> None:
    for place, (step, (name, requests, objects)) in itertools.product(bench.places(row, [DAOS]), LADDER.items()):
        variant = Variant(name, codec="none")
        options = {"daos_requests": requests, "daos_objects": objects}
        if point := bench.point(row, variant, place, [EIGHTEEN], label=step, **options):
            bench.note(row, step=step, **point.record())


@row("codec", "codecs: mapping `auto`, pages of 64 KiB, clusters of 100 MB")
def codec(bench: Bench, row: Row) -> None:
    for name, place in itertools.product(CODECS, bench.places(row, [DIRECTORY, S3[0], S3[30]])):
        if point := bench.point(row, Variant(codec=name), place):
            bench.note(row, codec=name, **point.record())


@row("parallel-get", "18 of 26 columns at 30 ms, and the same ranges with plain GETs")
def parallel_get(bench: Bench, row: Row) -> None:
    """The plain client sends at once what needs no earlier answer: the anchor; header and footer; page lists; pages."""
    for place, name in itertools.product(bench.places(row, [S3[30]]), ("auto", "page-group", "cluster", "page")):
        say(f"{row.name}: {name}")
        try:
            compare_gets(bench, row, bench.site(place), name)
        except FailedError as error:
            bench.failures.append(f"{row.name}: {name}: {error}")
        finally:
            bench.site(place).clear()


def compare_gets(bench: Bench, row: Row, site: Site, mapping: str) -> None:
    site.clear()
    store, uri = site.store, site.uri("ntuple-0")
    more: dict[str, Any] = {"columns": EIGHTEEN, "options": store.options}
    source, writing = str(bench.file(bench.events)), Variant(mapping).writing
    bench.do("write", site.uri("ntuple"), source=source, writing=writing, **{**more, "columns": ALL_26}, repeat=1)
    with recorder(store.port) as noted:
        recorded = {**more, "options": store.through(noted.port).options}
        bench.do("read", uri, **recorded, repeat=1)
    layout = json.loads(bench.shell(bench.command("layout", "--json", uri, *store.arguments)))
    rounds = rounds_of(noted.ranges(), layout["regions"])
    local = bench.do("read", source, columns=EIGHTEEN)
    for what, kind in (("open and read", "read"), ("read, when open", "read_opened")):
        outcome = bench.do(kind, uri, log=site.log, **more)
        # Page lists may be read when opening.
        needed = rounds if kind == "read" else rounds[3 if outcome.gets <= len(rounds[3]) else 2 :]
        bench.check(row, f"{mapping}, {what}", outcome.answer)
        plain = {
            threads: bench.do("get", uri, options=store.options, log=site.log, rounds=needed, threads=threads)
            for threads in (QUICK_THREADS if bench.options.quick else PLAIN_THREADS)
        }
        best = min(plain, key=lambda threads: plain[threads].median)
        lines = {"Tupelo": outcome, f"plain GETs, {best} threads": plain[best]}
        lines |= {"Tupelo, local file": local} if kind == "read" else {}
        for who, one in lines.items():
            about = {
                "GET": one.gets or None,
                "MB": one.bytes / 1e6,
                "s": one.seconds,
                "MB/s": one.bytes / one.median / 1e6,
            }
            bench.note(row, mapping=mapping, what=what, who=who, **about)
        share = plain[best].median / outcome.median
        said = f"`{mapping}`, {what}: ≥ {OF_PLAIN} × the speed of plain GETs"
        bench.want(row, said, f"{share:.2f} ×", share >= OF_PLAIN)


def rounds_of(ranges: list[Range], regions: list[dict[str, Any]]) -> list[list[Range]]:
    """Requests by what must be known to send them."""
    kinds = {region["object"]: region["what"] for region in regions}
    order = {"anchor": 0, "header": 1, "footer": 1, "page list": 2, "pages": 3}
    rounds: list[list[Range]] = [[] for _ in range(4)]
    for path, asked in ranges:
        name = path.rpartition("/")[2]
        rounds[order[kinds[name]]].append((path, asked))
    return rounds


@row("sealed", "copying pages as they are stored: `tupelo copy` between files and objects, and `cp`")
def sealed(bench: Bench, row: Row) -> None:
    source = str(bench.file(bench.events))
    folder = bench.folder()
    plain, back = str(folder / "cp.root"), str(folder / "back.root")
    time_copy(bench, row, None, "`cp`", ["cp", source, plain], plain)
    time_copy(bench, row, None, "`cp`, then `sync`", ["sh", "-c", f"cp {source} {plain} && sync {plain}"], plain)
    for place in bench.places(row, [DIRECTORY, S3[0], S3[30]]):
        site = bench.site(place)
        site.clear()
        one, other = site.uri("one"), site.uri("other")
        for what, *arguments, result in (
            ("file → objects, `auto`", source, one),
            ("objects → file", one, back),
            ("objects → objects, `cage:1MiB`", "--mapping", "cage:1MiB", one, other),
        ):
            command = bench.command("copy", "--force", "--quiet", *arguments, "-o", result, *site.store.arguments)
            time_copy(bench, row, place, what, command, result)
        site.clear()
    shutil.rmtree(folder)


def time_copy(bench: Bench, row: Row, place: Place | None, what: str, command: list[str], result: str) -> None:
    """Times a command, and compares what it wrote with the data."""
    where = place.name if place else "file"
    say(f"{row.name}: {what}, {where}")
    site = bench.site(place) if place else None
    log = Path(site.log) if site and site.log else None
    offset, seconds = 0, []
    try:
        for _ in range(1 + bench.options.repeat):
            offset = log.stat().st_size if log else 0
            begin = time.perf_counter()
            bench.shell(command)
            seconds.append(time.perf_counter() - begin)
            time.sleep(NOTED_SECONDS if log else 0)
        requests = classes(log.read_text(errors="replace")[offset:].splitlines()) if log else {}
        options = site.store.options if site else {}
        bench.check(row, what, bench.do("read", result, columns=ALL_26, options=options, repeat=1).answer)
    except FailedError as error:
        bench.failures.append(f"{row.name}: {what}, {where}: {error}")
        return
    speed = bench.file(bench.events).stat().st_size / statistics.median(seconds[1:]) / 1e6
    counts = {name: requests.get(name) for name in ("GET", "PUT")}
    bench.note(row, store=where, copy=what, **counts, s=seconds[1:], **{"MB/s": speed})


WRITERS = {
    "`page`, as stored": ["--mapping", "page"],
    "`cluster`, as stored": ["--mapping", "cluster"],
    "`page-group`, lz4": ["--mapping", "page-group", "--compression", "lz4:4"],
}
"""Ways of `tupelo copy` that are killed in turn."""


@row("kill", "a writer that replaces an ntuple is killed (SIGKILL) at random moments")
def kill(bench: Bench, row: Row) -> None:
    """Half of the moments are near the end, where the ntuple is published. Writers that end before do not count."""
    for place in bench.places(row, [DIRECTORY, S3[5], DAOS]):
        say(f"{row.name}: {place.name}")
        bench.site(place).clear()
        try:
            kill_writers(bench, row, place)
        except FailedError as error:
            bench.failures.append(f"{row.name}: {place.name}: {error}")
        finally:
            bench.site(place).clear()


def kill_writers(bench: Bench, row: Row, place: Place) -> None:
    site, chance, moments = bench.site(place), random.Random(1), QUICK_MOMENTS if bench.options.quick else MOMENTS
    uri, more = site.uri("killed"), site.store.arguments
    files = [bench.file(KILL_EVENTS // (QUICK if bench.options.quick else 1), seed) for seed in (1, 2)]
    answers = [bench.do("read", str(path), columns=ALL_26, repeat=1).answer for path in files]

    # A container has no mapping `cluster`.
    writers = {how: what for how, what in WRITERS.items() if not (site.is_daos and "cluster" in what)}

    def copying(which: int, how: str) -> list[str]:
        return bench.command("copy", "--force", "--quiet", files[which], uri, *writers[how], *more)

    def seen() -> int:
        """Which of the two ntuples is visible, after a check of all its bytes."""
        bench.shell(bench.command("verify", "--deep", "--quiet", uri, *more))
        with opened(uri, site.store.options) as ntuple:
            answer = of_columns(ntuple.arrays(ALL_26, library="np"))
        if answer not in answers:
            raise FailedError("neither the old nor the new ntuple is visible")
        return answers.index(answer)

    lasted: dict[str, float] = {}
    for how in writers:
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            bench.shell(copying(0, how))
            times.append(time.perf_counter() - begin)
        lasted[how] = statistics.median(times)
    visible = 0
    counts = dict.fromkeys(["killed", "old visible", "new visible", "ended before"], 0)
    counts |= {"with objects left": 0, "objects collected": 0}
    ways = itertools.cycle(writers)
    for number in range(MOST_WRITERS * moments):
        if counts["killed"] == moments:
            break
        how = next(ways)
        process = subprocess.Popen(copying(1 - visible, how), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(lasted[how] * chance.uniform(*(LATE if number % 2 else EVER)))
        process.kill()
        said = process.communicate()[1].decode(errors="replace").strip()
        try:
            if process.returncode not in (0, -signal.SIGKILL):
                raise FailedError(f"it failed before it was killed: {said}")
            time.sleep(SETTLE_SECONDS)
            found = seen()
            if process.returncode == 0:
                counts["ended before"] += 1
            else:
                counts["killed"] += 1
                counts["old visible" if found == visible else "new visible"] += 1
            if process.returncode == 0 and found == visible:
                raise FailedError("it has ended, but the old ntuple is visible")
            visible = found
            collected = json.loads(bench.shell(bench.command("gc", "--older-than", "0", "--json", uri, *more)))
            orphans = collected[0]["orphans"]
            counts["with objects left"] += bool(orphans)
            counts["objects collected"] += sum(orphan["objects"] for orphan in orphans)
            if seen() != visible:
                raise FailedError("`tupelo gc` has changed the visible ntuple")
            again = json.loads(bench.shell(bench.command("gc", "--older-than", "0", "--json", uri, *more)))
            if again[0]["orphans"] or len({path.parent for path in site.objects("killed")}) > 1:
                raise FailedError("`tupelo gc` has left objects of other attempts")
        except FailedError as error:
            raise FailedError(f"writer {number + 1} ({how}): {error}") from error
    bench.note(row, store=place.name, **counts)
    said = f"{place.name}: after {moments} kills the old or the new ntuple is visible and whole, also after `gc`"
    found_text = f"{counts['old visible']} old, {counts['new visible']} new"
    bench.want(row, said, found_text, counts["killed"] == moments)


NOTES = f"""
MB/s are stored bytes of the pages that are read, or of all objects that are written (1 MB is 10^6 bytes), by the median
of the times. Writing is from arrays in memory to when the ntuple is visible (`tupelo.recreate`), in a directory
after `syncfs`; reading from opening to arrays in memory (`arrays`), directories in the page cache. Requests are those
that the server noted in one call; readers send no PUT, and writers one GET. The proxy delays answers; it does not limit
the bandwidth. *Wanted* and *found* compare medians of this machine, where clients, server and proxy share the cores.
Money: {DOLLARS["PUT"]} $ for 1000 PUTs, {DOLLARS["GET"]} $ for 1000 GETs (S3 Standard, eu-west-3, 2026-11); without
storage and traffic. *TB*: 10^12 stored bytes."""


def text(bench: Bench) -> str:
    """The results as Markdown."""
    about = machine()
    on = f"{about['cpu']}, {count(cores(), 'core')}, {about['system']}, Python {about['python']}."
    size = f"{bench.events} events of 26 columns, {bench.file(bench.events).stat().st_size / 1e6:.0f} MB with {CODEC}"
    parts = [
        f"# Ntuples in object stores, {datetime.now(UTC):%Y-%m-%d}\n",
        f"{on} {size}; median of {bench.options.repeat}. Versions: {', '.join(sorted(bench.versions))}.",
        NOTES,
    ]
    if bench.options.quick:
        parts.append(f"Quick: the data are {QUICK} times smaller than usual, so the figures mean nothing.")
    for one, records in bench.sections.items():
        parts.append(f"\n## `{one.name}`: {one.title}\n\n{table(records)}")
    if bench.targets:
        parts.append(f"\n## What must be true\n\n{targets_table(bench.targets)}")
    met = sum(target.met for target in bench.targets)
    parts.append(f"\n{met} of {count(len(bench.targets), 'target')} are met or confirmed.\n")
    parts += [f"{remark}\n" for remark in bench.remarks]
    parts += [f"FAILED: {failure}" for failure in bench.failures] or ["All answers are equal."]
    return "\n".join(parts)


def as_json(bench: Bench) -> str:
    """All that was measured, with the seconds of each call."""
    options = {"events": bench.events, "repeat": bench.options.repeat, "quick": bench.options.quick}
    content = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "options": options,
        "versions": sorted(bench.versions),
        "rows": {one.name: records for one, records in bench.sections.items()},
        "targets": [asdict(target) for target in bench.targets],
        "remarks": bench.remarks,
        "failures": bench.failures,
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def run(options: argparse.Namespace) -> int:
    """Runs the rows, prints the tables and draws the figure."""
    rows: list[Row] = chosen(ROWS, options.objects, "objects")
    if not rows:
        return 2
    # On a disk, as in `remote.py`; TMPDIR=/dev/shm puts all objects into memory.
    with tempfile.TemporaryDirectory(prefix="tupelo-objects-") as scratch, contextlib.ExitStack() as stack:
        bench = Bench(options, Path(scratch), stack)
        for one in rows:
            begin = time.monotonic()
            try:
                one.make(bench, one)
            except KeyboardInterrupt:  # keep the measurements so far
                bench.failures.append("interrupted before all was measured")
                break
            except (FailedError, subprocess.CalledProcessError) as error:
                bench.failures.append(f"{one.name}: {error}")
            say(f"{one.name} took {time.monotonic() - begin:.0f} s")
    markdown = text(bench)
    print(markdown)
    (DATA / "objects.md").write_text(markdown + "\n")
    (DATA / "objects.json").write_text(as_json(bench) + "\n")
    stored = ["objects.md", "objects.json"]
    if bench.series and chart(DATA / "objects.png", bench.series, f"{machine()['cpu']}, {count(cores(), 'core')}"):
        stored.append("objects.png")
    say(f"stored as {', '.join(stored)} in {DATA}")
    return 1 if bench.failures else 0
