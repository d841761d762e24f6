"""ROOT as a contestant: C++ that cling compiles with -O2, called through PyROOT."""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .packages import Answer

FOLDER = Path(__file__).resolve().parent
DTYPES = {"double": np.float64, "float": np.float32, "std::int32_t": np.int32, "bool": np.bool_}
COMPRESSION = {"none": 0, "zstd": 505, "lz4": 404, "zlib": 101, "lzma": 207}
"""ROOT's numbers of codecs and levels."""
MEMORY_COMPRESSION = 501


def load_root(threads: int, *sources: str) -> Any:
    """The module ROOT with this C++, compiled with -O2.

    Raises `ImportError` without ROOT, and `RuntimeError` for C++ that it cannot compile.
    """
    os.environ["EXTRA_CLING_ARGS"] = "-O2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ROOT
    ROOT.gROOT.SetBatch(True)
    ROOT.gErrorIgnoreLevel = ROOT.kError
    for source in sources:
        if not ROOT.gInterpreter.Declare(source):
            raise RuntimeError(f"ROOT cannot compile {source.strip().splitlines()[0]}")
    if threads > 1:
        ROOT.EnableImplicitMT(threads)
    return ROOT


class Root:
    """RNTupleReader and RNTupleWriter.

    ``how`` says what is not the default: ``views`` are it, ``bulk`` reads whole clusters into place, ``dataframe`` is
    RDataFrame, ``cache off`` reads without the cluster cache, ``sorted`` asks for entries in their order.
    """

    suffix = "root"
    package = "ROOT"

    def __init__(self, threads: int, how: str = "views") -> None:
        headers = ["root_rival.hpp", *(["root_dataframe.hpp"] if how == "dataframe" else [])]
        ROOT = load_root(threads, *(f'#include "{FOLDER / header}"' for header in headers))
        self.how = how
        self.version = ROOT.gROOT.GetVersion()
        self.root = ROOT.bench
        self.strings = ROOT.std.vector["std::string"]
        self.addresses = ROOT.std.vector["std::uintptr_t"]
        self.indices = ROOT.std.vector["std::uint64_t"]

    def read(self, path: Path, ntuple: str, columns: list[str], start: int | None, stop: int | None) -> Any:
        names = self.strings(columns)
        return names, self.root.read(ntuple, str(path), names, start or 0, stop or 0, self.how == "bulk")

    def answer(self, result: Any) -> Answer:
        answer: Answer = {}
        for name, column in zip(*result, strict=True):
            values = _view(column.values_address(), DTYPES[str(column.type)], column.size)
            if ends := column.ends_address():
                answer[str(name)] = _view(ends, np.uint64, column.entries + 1), values
            else:
                answer[str(name)] = (values,)
        return answer

    def write(self, path: Path, columns: Answer, codec: str) -> None:
        cpp_names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
        arrays = [values for (values,) in columns.values()]
        self.root.write(
            "DecayTree",
            str(path),
            self.strings(list(columns)),
            self.strings([cpp_names[array.dtype] for array in arrays]),
            self.addresses([array.ctypes.data for array in arrays]),
            len(arrays[0]),
            COMPRESSION[codec],
        )

    def names(self, path: Path, ntuple: str) -> list[str]:
        return [str(name) for name in self.root.names(ntuple, str(path))]

    def first(self, path: Path, ntuple: str, column: str) -> float:
        return float(self.root.first(ntuple, str(path), column))

    def random(self, path: Path, ntuple: str, column: str, entries: list[int]) -> np.ndarray:
        values = self.root.random(ntuple, str(path), column, *self._random_options(entries))
        values = np.asarray(values)
        return values[np.argsort(np.argsort(entries))] if self.how == "sorted" else values

    def random_bytes(self, path: Path, ntuple: str, column: str, entries: list[int]) -> int:
        return int(self.root.random_bytes(ntuple, str(path), column, *self._random_options(entries)))

    def _random_options(self, entries: list[int]) -> tuple[Any, bool]:
        return self.indices(sorted(entries) if self.how == "sorted" else entries), self.how != "cache off"

    def cut(self, path: Path, ntuple: str, columns: list[str], by: str, value: int) -> Any:
        names = self.strings(columns)
        return names, self.root.cut(ntuple, str(path), names, by, value)

    def analysis(self, path: Path, ntuple: str, columns: list[str]) -> np.ndarray:
        return np.asarray(getattr(self.root, f"analysis_{self.how}")(ntuple, str(path)))

    def stream(self, path: Path, ntuple: str, columns: list[str], step_entries: int) -> int:
        return int(self.root.stream(ntuple, str(path), self.strings(columns)))

    def write_floats(self, path: Path, data: np.ndarray, batch_entries: int, cluster_bytes: int) -> None:
        self.root.write_floats("Floats", str(path), *data.shape, data.ctypes.data, MEMORY_COMPRESSION, cluster_bytes)


def _view(address: int, dtype: type[np.generic], size: int) -> np.ndarray:
    """An array over memory of C++."""
    if size == 0:
        return np.empty(0, dtype)
    contents = (ctypes.c_byte * (size * np.dtype(dtype).itemsize)).from_address(address)
    return np.ctypeslib.as_array(contents).view(dtype)
