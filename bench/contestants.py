"""The contestants, and the process that measures one of them in one task.

`run.py` starts ``contestants.py JOB.json``; the answer and the times are written where the job says.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before numerical libraries count the cores
    JOB = json.loads(Path(sys.argv[1]).read_text())
    if JOB["threads"] == 1:
        for variable in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
            os.environ[variable] = "1"
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np

Answer = dict[str, tuple[np.ndarray, ...]]
"""Columns by name: values, or for jagged columns the ends of the entries (after a leading zero) and all items."""

JAGGED = "Events"
"""The ntuple whose columns are jagged: they come as Awkward or Arrow arrays, flat ones as NumPy arrays."""
LEVELS = {"none": None, "zstd": 5, "lz4": 4}
ROW_GROUP_ENTRIES = 1 << 17
"""Size of Parquet's row groups, in entries, where ranges are read: as many as there are in a page of an RNTuple."""


@dataclass(frozen=True)
class Job:
    """What one process does."""

    kind: str
    """``read``, ``write`` or ``names``, which are measured; or ``prepare``: store the data for a contestant."""
    contestant: str
    threads: int
    repeat: int
    result: str
    """Where the outcome goes, as JSON."""
    ntuple: str
    path: str
    """The file to read or write."""
    source: str = ""
    """The RNTuple from which to take what is to be written."""
    columns: list[str] = field(default_factory=list)
    start: int | None = None
    stop: int | None = None
    codec: str = "none"
    small_groups: bool = False


@dataclass
class Outcome:
    """What came of a job."""

    seconds: list[float] = field(default_factory=list)
    answer: dict[str, str] = field(default_factory=dict)
    """What must agree among contestants: one hash per column."""
    answer_bytes: int = 0
    stored_bytes: int = 0
    version: str = ""
    missing: str = ""
    """Why the contestant could not take part."""


class Tupelo:
    """Our own package."""

    suffix = "root"
    package = "tupelo"

    def __init__(self, threads: int) -> None:
        import tupelo

        self.tupelo = tupelo
        self.version = tupelo.__version__

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        library = "ak" if ntuple == JAGGED else "np"
        with self.tupelo.open(path) as file:
            return file[ntuple].arrays(columns, entry_start=start, entry_stop=stop, library=library)

    def answer(self, result: Any) -> Answer:
        return from_numpy_or_awkward(result)

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        with self.tupelo.recreate(path, compression=setting(codec)) as file:
            file["DecayTree"] = {name: values for name, (values,) in columns.items()}

    def names(self, path: Path, ntuple: str) -> list[str]:
        with self.tupelo.open(path) as file:
            return list(file[ntuple].keys(recursive=False))


class Uproot:
    """uproot, without its caches of earlier reads."""

    suffix = "root"
    package = "uproot"

    def __init__(self, threads: int) -> None:
        import uproot

        self.uproot = uproot
        self.version = uproot.__version__

    def open(self, path: Path) -> Any:
        return self.uproot.open(path, object_cache=None, array_cache=None)

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        library = "ak" if ntuple == JAGGED else "np"
        with self.open(path) as file:
            return file[ntuple].arrays(columns, entry_start=start, entry_stop=stop, library=library)

    def answer(self, result: Any) -> Answer:
        return from_numpy_or_awkward(result)

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        compression = {"none": None, "zstd": self.uproot.ZSTD(5), "lz4": self.uproot.LZ4(4)}[codec]
        with self.uproot.recreate(path, compression=compression) as file:
            file.mkrntuple("DecayTree", {name: values for name, (values,) in columns.items()})

    def names(self, path: Path, ntuple: str) -> list[str]:
        with self.open(path) as file:
            return list(file[ntuple].keys(recursive=False))


class Parquet:
    """PyArrow; compressed numbers are split into their bytes, as in RNTuple, which was faster than its defaults."""

    suffix = "parquet"
    package = "pyarrow"

    def __init__(self, threads: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        self.pa, self.parquet = pa, pyarrow.parquet
        self.use_threads = threads > 1
        if not self.use_threads:
            pa.set_cpu_count(1)
            pa.set_io_thread_count(1)
        self.version = pa.__version__

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        with self.parquet.ParquetFile(path, memory_map=True) as file:
            if start is None or stop is None:
                table = file.read(columns, use_threads=self.use_threads)
            else:
                table = self._range(file, columns, start, stop)
            return table if ntuple == JAGGED else {name: one(table[name]).to_numpy() for name in columns}

    def _range(self, file: Any, columns: list[str], start: int, stop: int) -> Any:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = (int(np.searchsorted(ends, entry, side="right")) for entry in (start, stop - 1))
        table = file.read_row_groups(list(range(first, last + 1)), columns, use_threads=self.use_threads)
        return table.slice(start - int(ends[first] - sizes[first]), stop - start)

    def answer(self, result: Any) -> Answer:
        if isinstance(result, dict):
            return {name: (values,) for name, values in result.items()}
        answer: Answer = {}
        for name, column in zip(result.column_names, result.columns, strict=True):
            lists = column.combine_chunks()
            offsets, items = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
            answer[name] = offsets - offsets[0], items[offsets[0] : offsets[-1]]
        return answer

    def write(self, path: Path, columns: Answer, codec: str, small_groups: bool = False) -> None:
        arrays, schema, splittable = [], [], []
        for name, (*ends, values) in columns.items():
            array = self.pa.array(values)
            kind = array.type
            if ends:
                kind = self.pa.large_list(self.pa.field("element", kind, nullable=False))
                array = self.pa.LargeListArray.from_arrays(self.pa.array(ends[0].astype(np.int64)), array, type=kind)
            if values.dtype != np.bool_:
                splittable.append(f"{name}.list.element" if ends else name)
            arrays.append(array)
            schema.append(self.pa.field(name, kind, nullable=False))
        self.parquet.write_table(
            self.pa.table(arrays, schema=self.pa.schema(schema)),
            path,
            compression=codec,
            compression_level=LEVELS[codec],
            use_dictionary=False,
            use_byte_stream_split=False if codec == "none" else splittable,
            row_group_size=ROW_GROUP_ENTRIES if small_groups else None,
        )


class Hdf5:
    """h5py, with hdf5plugin for the codecs; jagged columns are two datasets. Chunks and filters as were fastest."""

    suffix = "h5"
    package = "h5py"

    def __init__(self, threads: int) -> None:
        import h5py
        import hdf5plugin

        self.h5py = h5py
        self.settings: dict[str, dict[str, Any]] = {
            "none": {},
            "zstd": {"chunks": (1 << 15,), "shuffle": True, **hdf5plugin.Zstd(clevel=5)},
            "lz4": {"chunks": (1 << 17,), **hdf5plugin.LZ4()},
        }
        self.version = h5py.__version__

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        with self.h5py.File(path) as file:
            if ntuple == JAGGED:
                return {name: (file[name]["ends"][:], file[name]["items"][:]) for name in columns}
            return {name: (file[name][start:stop],) for name in columns}

    def answer(self, result: Answer) -> Answer:
        return result

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        with self.h5py.File(path, "w") as file:
            for name, (*ends, values) in columns.items():
                if ends:
                    group = file.create_group(name)
                    self._store(group, "ends", ends[0], codec)
                    self._store(group, "items", values, codec)
                else:
                    self._store(file, name, values, codec)

    def _store(self, group: Any, name: str, values: np.ndarray, codec: str) -> None:
        settings = dict(self.settings[codec])
        if "chunks" in settings:
            settings["chunks"] = (min(len(values), settings["chunks"][0]),)
        group.create_dataset(name, data=values, **settings)


class Limit:
    """What no reader or writer can beat: the codec alone on the same pages, memcpy, or write(2) of the same bytes."""

    suffix = "root"

    def __init__(self, threads: int, what: str) -> None:
        self.what = what
        self.package = "uproot" if what == "codec" else "numpy"
        self.version = importlib.metadata.version(self.package)

    def prepare_read(self, job: Job, answer_bytes: int) -> Callable[[], object]:
        if self.what == "memcpy":
            source, target = np.ones(answer_bytes, np.uint8), np.zeros(answer_bytes, np.uint8)
            return lambda: np.copyto(target, source)
        pages = list(compressed_pages(Path(job.path), job.ntuple, job.columns, job.start, job.stop))
        codec, copy = arrow_codec(job.codec), np.empty(max(size for _, size in pages), np.uint8)

        def decompress() -> None:
            for page, size in pages:
                if len(page) == size:
                    copy[:size] = page
                else:
                    codec.decompress(page, size)

        return decompress

    def prepare_write(self, job: Job) -> Callable[[], object]:
        pages = list(compressed_pages(Path(job.source), job.ntuple, job.columns, None, None))
        if self.what == "write":
            whole = np.concatenate([page for page, _ in pages])

            def write() -> None:
                with open(job.path, "wb", buffering=0) as file:
                    for begin in range(0, len(whole), 4 << 20):
                        file.write(whole[begin : begin + (4 << 20)].data)

            return write
        codec = arrow_codec(job.codec)
        plain = [page if len(page) == size else codec.decompress(page, size) for page, size in pages]
        return lambda: [codec.compress(page) for page in plain]


CONTESTANTS: dict[str, Callable[[int], Any]] = {
    "Tupelo": Tupelo,
    "ROOT views": lambda threads: root(threads, bulk=False),
    "ROOT bulk": lambda threads: root(threads, bulk=True),
    "ROOT": lambda threads: root(threads, bulk=False),
    "uproot": Uproot,
    "Parquet": Parquet,
    "HDF5": Hdf5,
    "limit: codec": lambda threads: Limit(threads, "codec"),
    "limit: memcpy": lambda threads: Limit(threads, "memcpy"),
    "limit: write(2)": lambda threads: Limit(threads, "write"),
}


def root(threads: int, bulk: bool) -> Any:
    import root_rival

    return root_rival.Root(threads, bulk)


def setting(codec: str) -> str:
    """The codec with its level, as Tupelo spells it."""
    return codec if LEVELS[codec] is None else f"{codec}:{LEVELS[codec]}"


def one(column: Any) -> Any:
    """A `pyarrow.ChunkedArray` in one piece, without a copy where it is one."""
    return column.chunk(0) if column.num_chunks == 1 else column


def from_numpy_or_awkward(result: Any) -> Answer:
    if isinstance(result, dict):
        return {name: (values,) for name, values in result.items()}
    import awkward as ak

    answer: Answer = {}
    for name in result.fields:
        layout = ak.to_packed(result[name]).layout
        offsets = np.asarray(layout.offsets.data)
        answer[name] = offsets, np.asarray(layout.content.data)[: offsets[-1]]
    return answer


def arrow_codec(codec: str) -> Any:
    import pyarrow as pa

    return pa.Codec("lz4_raw" if codec == "lz4" else codec, compression_level=LEVELS[codec])


def compressed_pages(
    path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None
) -> Iterator[tuple[np.ndarray, int]]:
    """What the codec got of each page that the entries need (entries count in flat columns only), and its size."""
    import uproot

    with uproot.open(path) as file:
        tuple_ = file[ntuple]
        fields, records = tuple_.field_records, tuple_.column_records
        clusters, cluster_columns = tuple_.cluster_summaries, [list(pages) for pages in tuple_.page_link_list]
    contents = np.memmap(path, np.uint8, "r")
    for summary, links in zip(clusters, cluster_columns, strict=True):
        for record, link in zip(records, links, strict=True):
            top = record.field_id
            while fields[top].parent_field_id != top:
                top = fields[top].parent_field_id
            if fields[top].field_name not in columns:
                continue
            first = summary.num_first_entry
            for page in link.pages:
                end = first + page.num_elements
                if (start is None or end > start) and (stop is None or first < stop):
                    size = (page.num_elements * record.nbits + 7) // 8
                    stored = np.array(contents[page.locator.offset :][: page.locator.num_bytes])
                    if len(stored) != size:  # ROOT's block: 9 bytes of header, for lz4 also 8 of checksum
                        stored = stored[17 if stored[:2].tobytes() == b"L4" else 9 :]
                    yield stored, size
                first = end


def load(job: Job) -> Answer:
    """The columns that are to be written, read by Tupelo."""
    tupelo = Tupelo(1)
    return tupelo.answer(tupelo.read(Path(job.source), job.ntuple, job.columns, job.start, job.stop))


def hashes(answer: Answer) -> dict[str, str]:
    """A hash per column, over types, lengths and every bit of the values."""
    import xxhash

    def text(array: np.ndarray) -> str:
        contents = np.ascontiguousarray(array).view(np.uint8).data
        return f"{array.dtype}[{len(array)}] {xxhash.xxh3_64_hexdigest(contents)}"

    return {
        name: " ".join([*(text(end.astype(np.int64)) for end in ends), text(values)])
        for name, (*ends, values) in sorted(answer.items())
    }


def size(answer: Answer) -> int:
    return sum(array.nbytes for arrays in answer.values() for array in arrays)


def measure(repeat: int, call: Callable[[], Any], before: Callable[[], object]) -> tuple[list[float], Any]:
    """Seconds of each call after one to warm up, and what the last one gave."""
    seconds, result = [], None
    for _ in range(1 + repeat):
        result = None
        before()
        gc.collect()
        begin = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:], result


def work(job: Job) -> Outcome:
    """Do the job."""
    outcome = Outcome()
    try:
        contestant = CONTESTANTS[job.contestant](job.threads)
    except ImportError as error:
        outcome.missing = str(error)
        return outcome
    outcome.version = f"{contestant.package} {contestant.version}"
    path = Path(job.path)

    def remove() -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    if job.kind == "prepare":
        more = {"small_groups": True} if job.small_groups else {}
        contestant.write(path, load(job), job.codec, **more)
        return outcome
    if job.kind == "names":
        outcome.seconds, result = measure(job.repeat, lambda: contestant.names(path, job.ntuple), lambda: None)
        outcome.answer = {"names": " ".join(sorted(result))}
    elif job.kind == "read" and isinstance(contestant, Limit):
        call = contestant.prepare_read(job, size(load(job)))
        outcome.seconds, _ = measure(job.repeat, call, lambda: None)
    elif job.kind == "read":
        outcome.seconds, result = measure(
            job.repeat, lambda: contestant.read(path, job.ntuple, job.columns, job.start, job.stop), lambda: None
        )
        answer = contestant.answer(result)
        outcome.answer, outcome.answer_bytes = hashes(answer), size(answer)
    elif isinstance(contestant, Limit):
        outcome.seconds, _ = measure(job.repeat, contestant.prepare_write(job), remove)
    else:
        columns = load(job)
        outcome.seconds, _ = measure(job.repeat, lambda: contestant.write(path, columns, job.codec), remove)
        # What RNTuple writers wrote is read by another: Tupelo's by uproot, the rest by Tupelo.
        reader = contestant
        if contestant.suffix == "root":
            reader = Uproot(1) if isinstance(contestant, Tupelo) else Tupelo(1)
        answer = reader.answer(reader.read(path, job.ntuple, job.columns, None, None))
        outcome.answer, outcome.answer_bytes = hashes(answer), size(answer)
    outcome.stored_bytes = 0 if isinstance(contestant, Limit) else path.stat().st_size
    if job.kind == "write":
        remove()
    return outcome


if __name__ == "__main__":
    Path(JOB["result"]).write_text(json.dumps(asdict(work(Job(**JOB)))))
