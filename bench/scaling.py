"""Costs that must not grow faster than their input: each row does the same work at two sizes, and bounds their ratio.

`make scaling` calls this; `--rows 'ls-*,take'` runs some. A row is a function with `@row`: it gets a size and an empty
directory, does the set-up, and returns the work to be timed. The work of each size is done three times, alternating
with the other size, with one thread; the ratio of the fastest times is compared with the bound. Exit status 1 if a row
is above its bound. A linear row with sizes n and 4n has a ratio of about 4; its bound leaves room for noise, not for a
quadratic cost (16).
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import uproot

import tupelo

REPEATS = 3
TUPELO = Path(__file__).resolve().parent.parent / "target/release/tupelo"
"""The command, for rows that run it."""

Work = Callable[[], object]
Make = Callable[[int, Path], Work]


@dataclass(frozen=True)
class Row:
    """One cost at two sizes."""

    name: str
    small: int
    large: int
    bound: float
    """Largest ratio of the times at the two sizes."""
    seconds: float | None
    """Maximum time of the large size, if guaranteed."""
    make: Make


ROWS: list[Row] = []


def row(name: str, small: int, large: int, bound: float, seconds: float | None = None) -> Callable[[Make], Make]:
    """Adds a row to the table."""

    def add(make: Make) -> Make:
        ROWS.append(Row(name, small, large, bound, seconds, make))
        return make

    return add


@row("iterate", 250_000, 1_000_000, bound=6)
def iterate(size: int, folder: Path) -> Work:
    """Reading in batches of fixed size; linear in the number of entries."""
    path = folder / "flat.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": range(size)}

    def work() -> None:
        total = sum(len(piece) for piece in tupelo.open(f"{path}:Events").iterate(step_size=50_000))
        assert total == size

    return work


def many_ntuples(size: int, folder: Path) -> Path:
    """A file with ``size`` ntuples of one entry."""
    path = folder / "many.root"
    with tupelo.recreate(path) as file:
        for number in range(size):
            file.mkrntuple(f"n{number}", {"x": "int32"}).extend({"x": [number]})
    return path


def command(*arguments: str) -> Work:
    """Runs the command, which must succeed."""
    return lambda: subprocess.run([TUPELO, *arguments, "--threads", "1"], check=True, capture_output=True)


@row("open-all-ntuples", 500, 2000, bound=6)
def open_all(size: int, folder: Path) -> Work:
    """Opening all ntuples of a file by name."""
    path = many_ntuples(size, folder)

    def work() -> None:
        file = tupelo.open(path)
        assert sum(len(file[name]) for name in file) == size

    return work


@row("ls-ntuples", 500, 2000, bound=6)
def ls_ntuples(size: int, folder: Path) -> Work:
    """`tupelo ls` of a file with many ntuples."""
    return command("ls", str(many_ntuples(size, folder)))


@row("verify-ntuples", 500, 2000, bound=6)
def verify_ntuples(size: int, folder: Path) -> Work:
    """`tupelo verify` of a file with many ntuples."""
    return command("verify", "--deep", str(many_ntuples(size, folder)))


@row("layout-ntuples", 500, 2000, bound=6)
def layout_ntuples(size: int, folder: Path) -> Work:
    """`tupelo layout` of a file with many ntuples."""
    return command("layout", str(many_ntuples(size, folder)))


def many_keys(size: int, folder: Path) -> str:
    """A file with an ntuple and so many small objects beside it, which uproot writes."""
    path = folder / "keys.root"
    with tupelo.recreate(path) as file:
        file["n"] = {"x": range(1000)}
    with uproot.update(path) as file:
        file.update({f"s{number:05}": f"text {number}" for number in range(size)})
    return str(path)


@row("ls-keys", 7_500, 30_000, bound=6, seconds=1.0)
def ls_keys(size: int, folder: Path) -> Work:
    """`tupelo ls` of a file with many keys."""
    return command("ls", many_keys(size, folder))


@row("verify-keys", 7_500, 30_000, bound=6, seconds=1.0)
def verify_keys(size: int, folder: Path) -> Work:
    """`tupelo verify` of a file with many keys."""
    return command("verify", many_keys(size, folder))


EXPORT_BYTES = 2 << 30
"""Address space in which any number of columns must be exported."""


@row("dump-parquet-fields", 7_500, 30_000, bound=6)
def dump_parquet_fields(size: int, folder: Path) -> Work:
    """`tupelo dump` of many fields as Parquet, in limited memory; linear in their number."""
    path = folder / "wide.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {f"f{index}": [1.5, 2.5] for index in range(size)}
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (EXPORT_BYTES, EXPORT_BYTES))
    call = [TUPELO, "dump", path, "-o", folder / "wide.parquet", "--threads", "1", "--quiet"]
    return lambda: subprocess.run(call, check=True, preexec_fn=limit)


@row("write-ntuples-assigned", 1250, 5000, bound=6, seconds=2)
def write_ntuples_assigned(size: int, folder: Path) -> Work:
    """`file[name] = data` for many names; linear in their number."""

    def work() -> None:
        with tupelo.recreate(folder / "many.root") as file:
            for k in range(size):
                file[f"n{k}"] = {"x": [1.5, 2.5]}

    return work


@row("write-ntuples-closed", 1250, 5000, bound=6)
def write_ntuples_closed(size: int, folder: Path) -> Work:
    """`mkrntuple`, `extend` and `close` for many names; linear in their number."""

    def work() -> None:
        with tupelo.recreate(folder / "many.root") as file:
            for k in range(size):
                with file.mkrntuple(f"n{k}", {"x": "double"}) as ntuple:
                    ntuple.extend({"x": [1.5, 2.5]})

    return work


@row("write-directories", 1250, 5000, bound=6)
def write_directories(size: int, folder: Path) -> Work:
    """An ntuple in each of many directories; linear in their number."""

    def work() -> None:
        with tupelo.recreate(folder / "many.root") as file:
            for k in range(size):
                file[f"d{k % 50}/d{k}/n"] = {"x": [1.5, 2.5]}

    return work


@row("write-updated", 1250, 5000, bound=6)
def write_updated(size: int, folder: Path) -> Work:
    """Doubling the number of ntuples in a file; linear in their number."""
    path = folder / "many.root"
    write_ntuples_closed(size, folder)()
    whole = path.read_bytes()

    def work() -> None:
        path.write_bytes(whole)
        with tupelo.update(path) as file:
            for k in range(size):
                file[f"m{k}"] = {"x": [1.5, 2.5]}

    return work


@row("add-fields", 500, 2000, bound=6)
def add_fields(size: int, folder: Path) -> Work:
    """Fields added one by one; linear in their number."""

    def work() -> None:
        with tupelo.recreate(folder / "wide.root") as file:
            events = file.mkrntuple("Events", {"x": "float"})
            for k in range(size):
                events.add_fields({f"f{k}": "float"})

    return work


CHECKPOINT_BYTES = 2000
"""Maximum overhead of a round of ten entries in a file, on average."""


@row("checkpoints", 750, 3000, bound=6)
def checkpoints(size: int, folder: Path) -> Work:
    """Ten entries and a checkpoint, many times; time and space linear in the rounds."""
    path = folder / "rounds.root"

    def work() -> None:
        with tupelo.recreate(path) as file:
            events = file.mkrntuple("Events", {"x": "double"})
            for k in range(size):
                events.extend({"x": range(10 * k, 10 * k + 10)})
                events.checkpoint()
        assert path.stat().st_size < size * (80 + CHECKPOINT_BYTES), path.stat().st_size

    return work


@row("updates", 250, 1000, bound=6)
def updates(size: int, folder: Path) -> Work:
    """Ten entries in a separate update, many times; time and space linear in the rounds."""
    path = folder / "rounds.root"

    def work() -> None:
        with tupelo.recreate(path) as file:
            file.mkrntuple("Events", {"x": "double"})
        for k in range(size):
            with tupelo.update(path) as file:
                file["Events"].extend({"x": range(10 * k, 10 * k + 10)})
        assert path.stat().st_size < size * (80 + CHECKPOINT_BYTES), path.stat().st_size

    return work


@row("take-spread", 25_000, 100_000, bound=8)
def take_spread(size: int, folder: Path) -> Work:
    """Single entries, each the twentieth; linear in their number."""
    path = folder / "take.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": range(20 * size)}
    ntuple = tupelo.open(path)["Events"]
    entries = list(range(0, 20 * size, 20))

    def work() -> None:
        assert len(ntuple.take(entries, library="np")["x"]) == size

    return work


@row("take-instead-of-read", 1, 70, bound=2.5)
def take_instead_of_read(gap: int, folder: Path) -> Work:
    """Every 70th of two million entries: taking them is not slower than reading the range that they span."""
    path = folder / "take.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": np.arange(2_000_000.0)}
    ntuple = tupelo.open(path)["Events"]
    if gap == 1:
        return lambda: ntuple.arrays("x", library="np")["x"].copy()
    entries = np.arange(0, 2_000_000, gap)
    return lambda: ntuple.take(entries, "x", library="np")


@row("field-by-field", 1_000, 10_000, bound=2)
def field_by_field(size: int, folder: Path) -> Work:
    """Reading 1000 fields one by one; independent of the number of fields."""
    path = folder / "fields.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {f"f{index}": [1.5, 2.5] for index in range(size)}
    ntuple = tupelo.open(path)["Events"]
    names = ntuple.keys()[:1000]
    return lambda: [ntuple[name].array(library="np") for name in names]


@row("first-piece", 5_000, 50_000, bound=3)
def first_piece(size: int, folder: Path) -> Work:
    """Reading the first ten entries; independent of the number of clusters."""
    path = folder / "clusters.root"
    with tupelo.recreate(path) as file:
        writer = file.mkrntuple("Events", {"x": "double"})
        for _ in range(size):
            writer.extend({"x": [0.5] * 10})
            writer.flush_cluster()
    ntuple = tupelo.open(path)["Events"]

    def work() -> None:
        for _ in range(100):
            assert len(next(ntuple.iterate(step_size=10))) == 10

    return work


@row("concatenate", 100, 400, bound=6)
def concatenate(size: int, folder: Path) -> Work:
    """Many small files as one array; linear in their number."""
    for number in range(size):
        with tupelo.recreate(folder / f"{number:04}.root") as file:
            file["Events"] = {"x": range(100)}
    pattern = f"{folder}/*.root:Events"
    return lambda: tupelo.concatenate(pattern, "x", library="np")


@row("expression-or-terms", 1000, 4000, bound=6)
def expression_or_terms(size: int, folder: Path) -> Work:
    """A cut of many terms joined by `or`; linear in the number of terms."""
    path = folder / "events.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"event": range(1000)}
    ntuple = tupelo.open(f"{path}:Events")
    cut = " or ".join(f"event == {2 * term}" for term in range(size))

    def work() -> None:
        assert len(ntuple.arrays("event", cut)) == 500

    return work


@row("expression-in-list", 25_000, 100_000, bound=6)
def expression_in_list(size: int, folder: Path) -> Work:
    """A cut with a list of events; linear in the number of literals."""
    path = folder / "events.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"event": range(100_000)}
    ntuple = tupelo.open(f"{path}:Events")
    cut = f"event in {list(range(0, 4 * size, 4))}"

    def work() -> None:
        assert len(ntuple.arrays("event", cut)) == 25_000

    return work


@row("aliases-chained", 1250, 5000, bound=8)
def aliases_chained(size: int, folder: Path) -> Work:
    """A chain of aliases; linear in their number, except for the check of which are needed."""
    path = folder / "events.root"
    with tupelo.recreate(path) as file:
        file["Events"] = {"x": range(100)}
    ntuple = tupelo.open(f"{path}:Events")
    aliases = {f"a{place}": f"a{place - 1} + 1" if place else "x" for place in range(size)}

    def work() -> None:
        assert ntuple.arrays(f"a{size - 1}", aliases=aliases)[f"a{size - 1}"][0] == size - 1

    return work


def hist_of_threads(size: int, threads: int, path: Path) -> Work:
    """Fills a weighted histogram of two axes with some threads."""
    with tupelo.recreate(path) as file:
        rng = np.random.default_rng(1)
        file["Events"] = {name: rng.normal(size=size) for name in ("x", "y", "w")}
    ntuple = tupelo.open(f"{path}:Events")

    def work() -> None:
        tupelo.set_threads(threads)
        try:
            ntuple.hist("x", "y", bins=50, range=[(-3, 3), (-3, 3)], weight="w")
        finally:
            tupelo.set_threads(1)

    return work


@row("hist-threads", 1, 2, bound=0.9)
def hist_threads(size: int, folder: Path) -> Work:
    """The same histogram with one thread and with two, which must be faster; needs two cores."""
    return hist_of_threads(4_000_000, size, folder / "events.root")


def measure(chosen: Row) -> tuple[float, float]:
    """The fastest times in seconds at the small and at the large size."""
    folder = Path(tempfile.mkdtemp(prefix="tupelo-scaling-"))
    try:
        works = []
        for size in (chosen.small, chosen.large):
            (own := folder / str(size)).mkdir()
            works.append(chosen.make(size, own))
        best = [float("inf"), float("inf")]
        for _ in range(REPEATS):
            for which, work in enumerate(works):
                start = time.perf_counter()
                work()
                best[which] = min(best[which], time.perf_counter() - start)
        return best[0], best[1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Runs the rows and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default="*", help="names or globs, separated by commas [default: all]")
    patterns = parser.parse_args().rows.split(",")
    chosen = [it for it in ROWS if any(fnmatch.fnmatch(it.name, pattern) for pattern in patterns)]
    if not chosen:
        print(f"no row matches; there are: {', '.join(it.name for it in ROWS)}", file=sys.stderr)
        return 2
    tupelo.set_threads(1)
    failed = 0
    print(f"{'row':<28} {'sizes':>20} {'small':>10} {'large':>10} {'ratio':>7} {'bound':>6}")
    for it in chosen:
        small, large = measure(it)
        is_slow = it.seconds is not None and large > it.seconds
        is_over = large / small > it.bound or is_slow
        failed += is_over
        verdict = "  over" if is_over else ""
        sizes = f"{it.small} : {it.large}"
        print(f"{it.name:<28} {sizes:>20} {small:>8.4f} s {large:>8.4f} s {large / small:>7.1f} {it.bound:>6}{verdict}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
