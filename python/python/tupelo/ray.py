"""Ntuples and trees as datasets of Ray Data.

>>> import tupelo.ray  # doctest: +SKIP
>>> events = tupelo.ray.read("run*.root:Events", names=["run", "MET_pt"])  # doctest: +SKIP
>>> events.groupby("run").mean("MET_pt").take_all()  # doctest: +SKIP
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ._base import optional
from ._many.partition import Partition
from ._many.planning import partitions

datasource = optional.load("ray.data.datasource", "tupelo.ray", "'ray[data]'")
_Datasource: Any = datasource.Datasource
block = optional.load("ray.data.block", "tupelo.ray", "'ray[data]'")

__all__ = ["Source", "read"]


def read(files: Any = None, **options: Any) -> Any:
    """A `ray.data.Dataset` of the entries of many files; each task reads a `tupelo.Partition`.

    ``files`` and ``options`` are those of `tupelo.partitions`: ``names``, ``expressions``, ``cut``, ``step_size`` and
    so on. The workers need the packages tupelo and pyarrow. Blocks are tables of Arrow, with all types of the fields.

    Raises the errors of `tupelo.partitions`; reading raises those of `tupelo.Partition.arrays`.
    """
    data = optional.load("ray.data", "tupelo.ray", "'ray[data]'")
    return data.read_datasource(Source(partitions(files, **options)))


class Source(_Datasource):  # type: ignore[misc]
    """The source of `read`: a task for each of ``parts``, which are partitions."""

    def __init__(self, parts: list[Partition]) -> None:
        super().__init__()
        self._parts = parts

    def get_name(self) -> str:
        """The name in plans."""
        return "Tupelo"

    def estimate_inmemory_data_size(self) -> int | None:
        """Unknown before reading."""
        return None

    def get_read_tasks(self, parallelism: int, *how: Any, **options: Any) -> list[Any]:
        """A task for each partition, whatever the ``parallelism``; ``how`` has no effect."""
        return [datasource.ReadTask(partial(_read, one), _metadata(one)) for one in self._parts]


def _metadata(part: Partition) -> Any:
    count = part.num_entries if part.cut is None else None
    return block.BlockMetadata(num_rows=count, size_bytes=None, input_files=[part.uri], exec_stats=None)


def _read(part: Partition) -> Iterator[Any]:
    yield part.arrays("arrow")
