"""Single entries of all columns: the seconds of Tupelo, Lance and Vortex as JSON, by name.

`bench.operations` runs this; the arguments are the number of entries of a call, the number of calls, a file whose
values the rivals get, a folder for theirs, and the files of Tupelo by name, as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tupelo

COLUMN = "B_VertexChi2"
"""The column whose values are compared."""


def lance(table: Any, folder: Path) -> Callable[[Any], Any]:
    import lance

    dataset = lance.write_dataset(table, str(folder / "take.lance"))
    return lambda entries: dataset.take(entries)


def vortex(table: Any, folder: Path) -> Callable[[Any], Any]:
    import vortex

    path = str(folder / "take.vortex")
    vortex.io.write(table, path)
    file = vortex.open(path)

    def take(entries: Any) -> Any:
        indices = vortex.array(pa.array(entries.astype(np.uint64)))
        return file.scan(indices=indices).read_all().to_arrow_table()

    return take


def timed(take: Callable[[Any], Any], chosen: list[Any], expected: list[float]) -> float:
    """The median of calls, after one that is not counted."""
    times = []
    for entries, sum_ in zip(chosen, expected, strict=True):
        begin = time.perf_counter()
        found = take(entries)
        times.append(time.perf_counter() - begin)
        values = found.column(COLUMN).to_numpy(zero_copy_only=False)
        assert len(values) == len(entries)
        assert np.isclose(values.sum(), sum_)
    return statistics.median(times[1:])


def main() -> None:
    count, calls, plain, folder, own = sys.argv[1:]
    batch = _table(plain)
    generator = np.random.default_rng(1)
    chosen = [np.sort(generator.choice(batch.num_rows, int(count), replace=False)) for _ in range(int(calls))]
    values = batch.column(COLUMN).to_numpy()
    expected = [values[entries].sum() for entries in chosen]
    seconds: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, path in json.loads(own).items():
        ntuple = _ntuple(path)
        seconds[name] = timed(lambda entries, ntuple=ntuple: ntuple.take(entries, library="arrow"), chosen, expected)
    for name, make in {"Lance": lance, "Vortex": vortex}.items():
        try:
            take = make(batch, Path(folder))
        except ImportError as error:
            missing[name] = f"not installed: {error}"
            continue
        seconds[name] = timed(take, chosen, expected)
    print(json.dumps({"seconds": seconds, "missing": missing}))


def _ntuple(path: str) -> Any:
    return tupelo.open(f"{path}:DecayTree")


def _table(path: str) -> Any:
    found = _ntuple(path).arrays(library="arrow")
    return found if isinstance(found, pa.Table) else pa.table(found)


if __name__ == "__main__":
    main()
