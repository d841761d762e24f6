"""The compared Python packages: Tupelo, uproot, Parquet with PyArrow, HDF5 with h5py.

A package has a method for each kind of task that it supports; `contestants.py` calls and times them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Answer = dict[str, tuple[np.ndarray, ...]]
"""Columns by name: values, or for jagged columns offsets (with a leading zero) and all items."""

JAGGED = "Events"
"""The ntuple with jagged columns, which are Awkward or Arrow arrays; flat columns are NumPy arrays."""
LEVELS = {"none": 0, "zstd": 5, "lz4": 4, "zlib": 1, "lzma": 7}
"""ROOT's levels, which Tupelo uses too."""
LIBRARY_LEVELS = LEVELS | {"zstd": 10}
"""The same levels in the libraries of the codecs: ROOT doubles those of zstd."""
MEMORY_CODEC = "zstd:1"
"""Codec for measuring memory: a fast one, because it matters little."""
ROW_GROUP_ENTRIES = 1 << 17
"""Size of Parquet's row groups, in entries, where ranges are read: as many as there are in a page of an RNTuple."""

KAON_MASS = 493.677
"""In MeV."""
LOWEST, HIGHEST, BINS = 5000.0, 5600.0, 60
"""The histogram of the analysis, in MeV."""


MOMENTA = [f"H{h}_{p}" for h in (1, 2, 3) for p in ("PX", "PY", "PZ")]
KAONS = " and ".join(f"H{h}_isMuon == 0 and H{h}_ProbK > 0.5 and H{h}_ProbPi < 0.5" for h in (1, 2, 3))
"""The selection of the analysis, for packages that support expressions."""


class Missing(Exception):
    """A task that a contestant does not support, with the reason."""


def setting(codec: str) -> str:
    """The codec with its level, as Tupelo spells it."""
    return f"{codec}:{LEVELS[codec]}" if LEVELS[codec] else codec


def histogram(columns: dict[str, Any]) -> np.ndarray:
    """The mass of three kaons, in the order of operations that all contestants have."""
    kaons = np.ones(len(columns["H1_PX"]), bool)
    for h in (1, 2, 3):
        kaons &= (columns[f"H{h}_isMuon"] == 0) & (columns[f"H{h}_ProbK"] > 0.5) & (columns[f"H{h}_ProbPi"] < 0.5)
    return masses({name: columns[name][kaons] for name in MOMENTA})


def masses(columns: dict[str, Any]) -> np.ndarray:
    """The mass for data that are already selected."""
    momenta = [[columns[f"H{h}_{p}"] for p in ("PX", "PY", "PZ")] for h in (1, 2, 3)]
    e1, e2, e3 = (np.sqrt(x * x + y * y + z * z + KAON_MASS * KAON_MASS) for x, y, z in momenta)
    energy = e1 + e2 + e3
    x, y, z = (momenta[0][axis] + momenta[1][axis] + momenta[2][axis] for axis in range(3))
    mass = np.sqrt(np.maximum(energy * energy - (x * x + y * y + z * z), 0.0))
    return np.histogram(mass, BINS, (LOWEST, HIGHEST))[0]


def positive(pieces: Iterator[dict[str, np.ndarray]]) -> int:
    """The number of positive values in all columns."""
    return sum(int(np.count_nonzero(values > 0)) for piece in pieces for values in piece.values())


class Arrays:
    """The base class of packages that read columns as arrays with ``read``."""

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        raise NotImplementedError

    def analysis(self, path: Path, ntuple: str, columns: list[str]) -> np.ndarray:
        return histogram(self.read(path, ntuple, columns, None, None))

    def cut(self, path: Path, ntuple: str, columns: list[str], by: str, value: int) -> Any:
        whole = self.read(path, ntuple, [*columns, by], None, None)
        kept = whole[by] == value
        return {name: whole[name][kept] for name in columns}

    def random(self, path: Path, ntuple: str, column: str, entries: list[int]) -> np.ndarray:
        values: np.ndarray = self.read(path, ntuple, [column], None, None)[column]
        return values[entries]


class Tupelo(Arrays):
    """The package tupelo."""

    suffix = "root"
    package = "tupelo"

    def __init__(self, threads: int) -> None:
        import tupelo

        self.tupelo: Any = tupelo
        self.version = tupelo.__version__

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        library = "ak" if ntuple == JAGGED else "np"
        with self.tupelo.open(path) as file:
            return file[ntuple].arrays(columns, entry_start=start, entry_stop=stop, library=library)

    def analysis(self, path: Path, ntuple: str, columns: list[str]) -> np.ndarray:
        with self.tupelo.open(path) as file:
            return masses(file[ntuple].arrays(MOMENTA, KAONS, library="np"))

    def answer(self, result: Any) -> Answer:
        return from_numpy_or_awkward(result)

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        with self.tupelo.recreate(path, compression=setting(codec)) as file:
            file["DecayTree"] = {name: values for name, (values,) in columns.items()}

    def names(self, path: Path, ntuple: str) -> list[str]:
        with self.tupelo.open(path) as file:
            return list(file[ntuple].keys(recursive=False))

    def first(self, path: Path, ntuple: str, column: str) -> float:
        with self.tupelo.open(path) as file:
            return float(file[ntuple].arrays([column], entry_stop=1, library="np")[column][0])

    def random(self, path: Path, ntuple: str, column: str, entries: list[int]) -> np.ndarray:
        if not hasattr(self.tupelo.Ntuple, "take"):
            raise Missing("this tupelo has no Ntuple.take")
        with self.tupelo.open(path) as file:
            values: np.ndarray = file[ntuple].take(entries, [column], library="np")[column]
        return values

    def everything(self, path: Path, ntuple: str) -> Any:
        with self.tupelo.open(path) as file:
            return file[ntuple].arrays()

    def touch(self, path: Path, ntuple: str, columns: list[str]) -> dict[str, np.ndarray]:
        with self.tupelo.open(path) as file:
            whole = file[ntuple].arrays(virtual=True)
            return {name: np.asarray(whole[name]) for name in columns}

    def stream(self, path: Path, ntuple: str, columns: list[str], step_entries: int) -> int:
        with self.tupelo.open(path) as file:
            return positive(file[ntuple].iterate(columns, step_size=step_entries, library="np"))

    def write_floats(self, path: Path, data: np.ndarray, batch_entries: int, cluster_bytes: int) -> None:
        names = [f"f{index}" for index in range(len(data))]
        with self.tupelo.recreate(path, compression=MEMORY_CODEC, cluster_bytes=cluster_bytes) as file:
            ntuple = file.mkrntuple("Floats", dict.fromkeys(names, "float"))
            for begin in range(0, data.shape[1], batch_entries):
                ntuple.extend(dict(zip(names, data[:, begin : begin + batch_entries], strict=True)))

    def make(self, what: str, path: Path, entries: int, source: str) -> None:
        """Data that `tupelo-generate` does not write, always the same."""
        random = np.random.default_rng(1)
        if what == "floats":  # several clusters, as there are in files that are larger
            with self.tupelo.recreate(path, cluster_bytes="4 MiB") as file:
                file["Floats"] = {"x": random.standard_normal(entries, np.float32)}
        elif what == "wide":
            with self.tupelo.recreate(path) as file:
                file["Wide"] = {f"f{i:04}": random.standard_normal(16, np.float32) for i in range(entries)}
        else:  # the LHCb-like events, with a hundred runs in a row and the same runs at random
            with self.tupelo.open(source) as file:
                columns = file["DecayTree"].arrays(library="np")
            count = len(columns["H1_PX"])
            columns["run"] = (np.arange(count) * 100 // count).astype(np.int32)
            columns["mixed"] = random.permutation(columns["run"])
            with self.tupelo.recreate(path) as file:
                file["DecayTree"] = columns


class Uproot(Arrays):
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
        compression = {"none": None, "zstd": self.uproot.ZSTD(LIBRARY_LEVELS["zstd"]), "lz4": self.uproot.LZ4(4)}[codec]
        with self.uproot.recreate(path, compression=compression) as file:
            file.mkrntuple("DecayTree", {name: values for name, (values,) in columns.items()})

    def names(self, path: Path, ntuple: str) -> list[str]:
        with self.open(path) as file:
            return list(file[ntuple].keys(recursive=False))

    def first(self, path: Path, ntuple: str, column: str) -> float:
        with self.open(path) as file:
            return float(file[ntuple].arrays([column], entry_stop=1, library="np")[column][0])

    def everything(self, path: Path, ntuple: str) -> Any:
        with self.open(path) as file:
            return file[ntuple].arrays()

    def touch(self, path: Path, ntuple: str, columns: list[str]) -> dict[str, np.ndarray]:
        with self.open(path) as file:
            whole = file[ntuple].arrays(virtual=True)
            return {name: np.asarray(whole[name]) for name in columns}

    def stream(self, path: Path, ntuple: str, columns: list[str], step_entries: int) -> int:
        with self.open(path) as file:
            return positive(file[ntuple].iterate(columns, step_size=step_entries, library="np"))

    def write_floats(self, path: Path, data: np.ndarray, batch_entries: int, cluster_bytes: int) -> None:
        """With batches as large as a cluster, because each becomes one."""
        names = [f"f{index}" for index in range(len(data))]
        batch_entries = max(1, cluster_bytes // data.itemsize // len(data))
        with self.uproot.recreate(path, compression=self.uproot.ZSTD(2)) as file:
            ntuple = file.mkrntuple("Floats", dict.fromkeys(names, data.dtype))
            for begin in range(0, data.shape[1], batch_entries):
                ntuple.extend(dict(zip(names, data[:, begin : begin + batch_entries], strict=True)))


class Parquet(Arrays):
    """PyArrow; compressed numbers are split into their bytes, as in RNTuple, which was faster than its defaults.

    Levels of codecs are those of the others unless it has its ``own_level``.
    """

    suffix = "parquet"
    package = "pyarrow"
    maps_memory = True

    def __init__(self, threads: int, own_level: bool = False) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        self.pa, self.parquet = pa, pyarrow.parquet
        self.use_threads = threads > 1
        self.own_level = own_level
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
            return table if ntuple == JAGGED else self._numpy(table)

    def _numpy(self, table: Any) -> dict[str, np.ndarray]:
        return {name: one(table[name]).to_numpy() for name in table.column_names}

    def _range(self, file: Any, columns: list[str], start: int, stop: int) -> Any:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = (int(np.searchsorted(ends, entry, side="right")) for entry in (start, stop - 1))
        table = file.read_row_groups(list(range(first, last + 1)), columns, use_threads=self.use_threads)
        return table.slice(start - int(ends[first] - sizes[first]), stop - start)

    def cut(self, path: Path, ntuple: str, columns: list[str], by: str, value: int) -> Any:
        """Its filter, which skips row groups by their statistics."""
        more: dict[str, Any] = {"filters": [(by, "==", value)], "memory_map": True, "use_threads": self.use_threads}
        return self._numpy(self.parquet.read_table(path, columns=columns, **more))

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
        if codec == "lzma":
            raise Missing("Parquet has no lzma")
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
            compression="gzip" if codec == "zlib" else codec,
            compression_level=None if self.own_level or codec == "none" else LIBRARY_LEVELS[codec],
            use_dictionary=False,
            use_byte_stream_split=False if codec == "none" else splittable,
            row_group_size=ROW_GROUP_ENTRIES if small_groups else None,
        )


class Hdf5(Arrays):
    """h5py, with hdf5plugin for the codecs; jagged columns are two datasets. Chunks and filters as were fastest."""

    suffix = "h5"
    package = "h5py"

    def __init__(self, threads: int) -> None:
        import h5py  # type: ignore[import-untyped]
        import hdf5plugin

        self.h5py = h5py
        split = {"chunks": (1 << 15,), "shuffle": True}
        self.settings: dict[str, dict[str, Any]] = {
            "none": {},
            "zstd": {**split, **hdf5plugin.Zstd(clevel=LIBRARY_LEVELS["zstd"])},
            "lz4": {"chunks": (1 << 17,), **hdf5plugin.LZ4()},
            "zlib": {**split, "compression": "gzip", "compression_opts": LIBRARY_LEVELS["zlib"]},
        }
        self.version = h5py.__version__

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        with self.h5py.File(path) as file:
            if ntuple == JAGGED:
                return {name: (file[name]["ends"][:], file[name]["items"][:]) for name in columns}
            return {name: file[name][start:stop] for name in columns}

    def random(self, path: Path, ntuple: str, column: str, entries: list[int]) -> np.ndarray:
        with self.h5py.File(path) as file:
            values: np.ndarray = file[column][sorted(entries)]
        return values[np.argsort(np.argsort(entries))]

    def answer(self, result: Any) -> Answer:
        return {name: column if isinstance(column, tuple) else (column,) for name, column in result.items()}

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        if codec not in self.settings:
            raise Missing(f"HDF5 has no {codec}")
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


def one(column: Any) -> Any:
    """A `pyarrow.ChunkedArray` as one array, without a copy if it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column


def from_numpy_or_awkward(result: Any) -> Answer:
    if isinstance(result, dict):
        return {name: (values,) for name, values in result.items()}
    import awkward as ak

    answer: Answer = {}
    for name in result.fields:
        layout = ak.to_packed(result[name]).layout
        if layout.is_numpy:
            answer[name] = (np.asarray(layout.data),)
            continue
        offsets = np.asarray(layout.offsets.data)
        answer[name] = offsets, np.asarray(layout.content.data)[: offsets[-1]]
    return answer
