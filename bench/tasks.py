"""The tasks, their contestants and targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MEMBERS = ("PX", "PY", "PZ", "ProbK", "ProbPi", "isMuon")
EIGHTEEN = [f"H{hadron}_{member}" for hadron in (1, 2, 3) for member in MEMBERS]
"""The columns that LHCb's analysis of these data needs."""
ALL_26 = ["B_FlightDistance", "B_VertexChi2"] + [
    f"H{hadron}_{member}" for hadron in (1, 2, 3) for member in (*MEMBERS, "Charge", "IPChi2")
]
NTUPLES = {"b2hhh": "DecayTree", "nanoaod": "Events", "cut": "DecayTree", "floats": "Floats", "wide": "Wide"}

RANGE_ENTRIES = 1000
RANDOM_ENTRIES = 100
FLOATS = 17
"""Entries of the float column per flat event: 65 MiB for a million."""
CUT_VALUE = 42
"""One of a hundred runs."""
WIDE_COLUMNS = 1500
TOUCHED = [f"f{i:04}" for i in range(0, WIDE_COLUMNS, WIDE_COLUMNS // 5)]
"""Columns of the wide ntuple that are used with virtual arrays."""
CLUSTER_BYTES = 128 << 20
"""Compressed size of a cluster for measuring memory: the default of Tupelo and ROOT."""
BATCH_BYTES = 4 << 20
BATCHES = 96
STEP_ENTRIES = 65_536
READ_AHEAD_BYTES = 64 << 20
"""The fetch size of the engine, `FETCH_BYTES` in crates/tupelo-pages/src/source/memory.rs."""

MIB = 1 << 20


@dataclass(frozen=True)
class Target:
    """A target of Tupelo in a task, with one thread by default."""

    against: str
    """A contestant, ``the best other``, ``one thread``, or empty for an absolute target."""
    factor: float
    """Minimum speed-up, or with ``limit`` maximum slow-down."""
    limit: bool = False
    all_cores: bool = False
    """Whether Tupelo uses all cores; contestants without threads use one."""


BEST_OTHER = "the best other"
ONE_THREAD = "one thread"


def targets(
    root: float = 0, best: float = 0, codec: float = 0, threads: float = 0, rivals: dict[str, float] | None = None
) -> tuple[Target, ...]:
    """The usual targets."""
    wanted = [Target("ROOT views", root)] if root else []
    wanted += [Target(name, factor) for name, factor in (rivals or {}).items()]
    wanted += [Target(BEST_OTHER, best)] if best else []
    wanted += [Target("limit: codec", codec, limit=True)] if codec else []
    return (*wanted, *([Target(ONE_THREAD, threads)] if threads else []))


FLAT = ["Tupelo", "Tupelo (Rust)", "ROOT views", "ROOT bulk", "uproot", "Parquet", "HDF5"]
WRITERS = ["Tupelo", "Tupelo (command)", "Tupelo (Rust), null sink", "ROOT", "uproot", "Parquet", "HDF5"]
OPENERS = ["Tupelo", "ROOT", "uproot"]
COPIERS = ("limit", "Tupelo (command)", "Tupelo (Rust), null sink")
"""Who writes the columns of a file that is prepared, not those in memory; all whose names begin so."""
PARALLEL = {
    *("Tupelo", "Tupelo (Rust)", "Tupelo (Rust), mask", "Tupelo (Rust), null sink", "Tupelo (command)"),
    *("ROOT", "ROOT views", "ROOT bulk", "ROOT RDataFrame"),
    *("Parquet", "Parquet, own level"),
}
"""Contestants that can use several cores."""


@dataclass(frozen=True)
class Task:
    """A task to compare."""

    name: str
    title: str
    kind: str
    contestants: tuple[str, ...]
    dataset: str = "b2hhh"
    codec: str = "none"
    targets: tuple[Target, ...] = ()
    ours: str = "Tupelo"
    """The contestant that the others are compared with."""
    columns: int = 0
    """Number of columns, if not that of the dataset."""
    by: str = ""
    """The column of a cut."""
    ranged: bool = False
    other_level: tuple[str, ...] = ()
    """Contestants with another codec level, which are not counted among the best others."""
    is_parallel: bool = True

    @property
    def counts_memory(self) -> bool:
        """Whether memory is measured instead of time."""
        return self.kind in ("stream", "write_floats")

    @property
    def has_small_groups(self) -> bool:
        """Whether a part is read, for which small Parquet row groups are used."""
        return self.ranged or self.kind == "cut"

    def parts(self, threads: int) -> list[str]:
        """The contestants."""
        if threads > 1 and not self.is_parallel:
            return []
        return [name for name in self.contestants if threads == 1 or name in PARALLEL]


def reading(codec: str, what: str, wanted: Iterable[Target], dataset: str = "b2hhh") -> Task:
    """A task that reads everything."""
    name, title = ("jagged", "all jagged columns") if dataset == "nanoaod" else ("flat", "18 of 26 flat columns")
    limits = ["limit: memcpy"] if codec == "none" else ["limit: codec", "limit: memcpy"]
    task = f"read-{name}-{codec}"
    return Task(task, f"read {title}, {what}", "read", (*FLAT, *limits), dataset, codec, tuple(wanted))


def writing(codec: str, what: str, wanted: Iterable[Target], other_level: tuple[str, ...] = ()) -> Task:
    limit = "limit: write(2)" if codec == "none" else "limit: codec"
    contestants = (*dict.fromkeys((*WRITERS, *other_level)), limit)
    title = f"write 26 flat columns, {what}"
    return Task(
        f"write-{codec}", title, "write", contestants, codec=codec, targets=tuple(wanted), other_level=other_level
    )


def memory_of_writing(columns: int) -> Task:
    limit = 1.5 * CLUSTER_BYTES + 32 * MIB
    return Task(
        f"write-memory-{columns}",
        f"memory of writing {columns} float columns",
        "write_floats",
        ("Tupelo", "ROOT", "uproot"),
        codec="zstd",
        columns=columns,
        targets=(Target("ROOT", 4), Target("", limit, limit=True)),
    )


def cutting(name: str, by: str, title: str) -> Task:
    contestants = ("Tupelo (Rust)", "Tupelo (Rust), mask", "Tupelo", "ROOT views", "uproot", "Parquet", "HDF5")
    return Task(
        name,
        f"a cut that keeps 1 % of the entries, {title}, 18 columns, zstd 5",
        "cut",
        contestants,
        "cut",
        "zstd",
        (Target("Tupelo (Rust), mask", 3), Target(BEST_OTHER, 1)),
        ours="Tupelo (Rust)",
        by=by,
    )


MEMCPY = "limit: memcpy"
FASTER, SCALES = 1.7, 1.8
TASKS = [
    reading("zstd", "zstd 5", targets(8, 3, 1.6, FASTER)),
    reading("lz4", "lz4 4", targets(7, 3, 1.8, FASTER)),
    reading("none", "uncompressed", (*targets(8, 4, threads=FASTER), Target(MEMCPY, 3.5, limit=True))),
    reading("zlib", "zlib 1", targets(2, 1, 1.1, FASTER)),
    reading("lzma", "lzma 7", targets(1.2, 1, 1.1, FASTER)),
    reading("zstd", "zstd 5", targets(9, 3, 2, FASTER), "nanoaod"),
    reading("none", "uncompressed", (*targets(9, 3, threads=FASTER), Target(MEMCPY, 2, limit=True)), "nanoaod"),
    Task(
        "read-range-zstd",
        f"read {RANGE_ENTRIES} entries of 18 flat columns, zstd 5",
        "read",
        (*(name for name in FLAT if name != "Tupelo (Rust)"), "limit: codec"),
        codec="zstd",
        targets=targets(best=1),
        ranged=True,
        is_parallel=False,
    ),
    Task(
        "analysis-rust",
        "B→KKK mass as a histogram, compiled loops, zstd 5",
        "analysis",
        ("Tupelo (Rust)", "ROOT views", "ROOT bulk", "ROOT RDataFrame", "uproot", "Parquet"),
        codec="zstd",
        targets=targets(6, 2.5, threads=FASTER),
        ours="Tupelo (Rust)",
    ),
    Task(
        "analysis-python",
        "B→KKK mass as a histogram, with NumPy, zstd 5",
        "analysis",
        ("Tupelo", "ROOT views", "ROOT RDataFrame", "uproot", "Parquet", "HDF5"),
        codec="zstd",
        targets=(
            *targets(4, 2, rivals={"uproot": 3, "Parquet": 2}),
            Target("uproot", 5, all_cores=True),
        ),
    ),
    Task(
        "random-100",
        f"{RANDOM_ENTRIES} random entries of a float column, zstd 5",
        "random",
        ("Tupelo", "Tupelo (Rust)", "ROOT", "ROOT, cache off", "ROOT, sorted", "uproot", "Parquet", "HDF5"),
        "floats",
        "zstd",
        targets(best=1, rivals={"ROOT": 30}),
        is_parallel=False,
    ),
    cutting("cut-1-percent", "run", "all together"),
    cutting("cut-1-percent-spread", "mixed", "everywhere"),
    writing("none", "uncompressed", (*targets(best=1, rivals={"ROOT": 3}), Target("limit: write(2)", 2, limit=True))),
    writing(
        "zstd", "zstd 5", targets(best=1, codec=1.2, threads=SCALES, rivals={"ROOT": 1.3}), ("Parquet, own level",)
    ),
    writing(
        "lz4",
        "lz4 4",
        targets(best=1, codec=1.2, threads=SCALES, rivals={"ROOT": 1.3}),
        ("uproot", "HDF5", "Parquet, own level"),
    ),
    Task(
        "open-1500",
        f"open a file, list its {WIDE_COLUMNS} columns",
        "names",
        tuple(OPENERS),
        "wide",
        targets=(Target("uproot", 100), Target("", 0.010, limit=True)),
        is_parallel=False,
    ),
    Task(
        "first-1500",
        f"open a file, first value of one of {WIDE_COLUMNS} columns",
        "first",
        tuple(OPENERS),
        "wide",
        targets=(Target("uproot", 100), Target("", 0.020, limit=True)),
        is_parallel=False,
    ),
    Task(
        "arrays-1500",
        f"open a file, arrays() of its {WIDE_COLUMNS} columns",
        "everything",
        ("Tupelo", "uproot"),
        "wide",
        targets=(Target("", 0.3, limit=True),),
        is_parallel=False,
    ),
    Task(
        "virtual-1500",
        f"open a file, arrays(virtual=True) of its {WIDE_COLUMNS} columns, look at {len(TOUCHED)} of them",
        "touch",
        ("Tupelo", "uproot"),
        "wide",
        targets=(Target("", 0.060, limit=True),),
        is_parallel=False,
    ),
    Task(
        "import",
        "import the package in a new interpreter",
        "load",
        ("Tupelo", "uproot", "Parquet", "HDF5"),
        targets=(Target("", 0.060, limit=True),),
        is_parallel=False,
    ),
    Task("open-atlas", "open an ATLAS file, list its 854 fields", "names", tuple(OPENERS), "atlas", is_parallel=False),
    memory_of_writing(10),
    memory_of_writing(1000),
    memory_of_writing(10_000),
    Task(
        "stream-memory",
        f"memory of reading 18 flat columns, {STEP_ENTRIES} entries at a time, zstd 5",
        "stream",
        ("Tupelo", "ROOT", "uproot"),
        codec="zstd",
        # 15 doubles and 3 integers in a batch
        targets=(Target("ROOT", 2), Target("", READ_AHEAD_BYTES + STEP_ENTRIES * (15 * 8 + 3 * 4), limit=True)),
    ),
]
