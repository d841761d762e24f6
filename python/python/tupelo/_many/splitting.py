"""Splitting the entries of files into ranges."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex

from .._base.sizes import as_count, parse_bytes
from ..errors import InvalidArgumentError
from ..fields import _select

DEFAULT_STEP = "100 MiB"
"""Approximate stored bytes of the selected fields in a partition; two to five times as much uncompressed."""

Splitter = Callable[[dict[str, Any], float], list[tuple[int, int]]]
"""From a file of a manifest, and the share of its bytes that is read, to ranges of entries."""


def splitter(
    step_size: SupportsIndex | str | None,
    steps_per_file: SupportsIndex | None,
    clusters_per_partition: SupportsIndex | None,
) -> Splitter:
    """The function that splits files into ranges of entries."""
    if sum(one is not None for one in (step_size, steps_per_file, clusters_per_partition)) > 1:
        raise InvalidArgumentError("give only one of step_size, steps_per_file and clusters_per_partition")
    if clusters_per_partition is not None:
        most = as_count("clusters_per_partition", "clusters, at least 1", clusters_per_partition)
        if most == 0:
            raise InvalidArgumentError("clusters_per_partition must be at least 1")
        return lambda file, _: cluster_ranges(file, [1] * len(file["clusters"]), -(-len(file["clusters"]) // most))
    if steps_per_file is not None:
        steps = as_count("steps_per_file", "partitions, at least 1", steps_per_file)
        if steps == 0:
            raise InvalidArgumentError("steps_per_file must be at least 1")
        return lambda file, _: _equal_ranges(file, steps)
    step = _select.check_step_size(DEFAULT_STEP if step_size is None else step_size)
    if isinstance(step, str):
        step_bytes = parse_bytes(step)

        def by_bytes(file: dict[str, Any], share: float) -> list[tuple[int, int]]:
            sizes = [size * share for _, _, size in file["clusters"]]
            # A slightly too large cluster stays whole: adjacent parts of a cluster may read the same pages.
            parts = [max(1, round(size / step_bytes)) for size in sizes]
            return cluster_ranges(file, sizes, math.ceil(sum(sizes) / step_bytes), parts)

        return by_bytes

    def by_entries(file: dict[str, Any], share: float) -> list[tuple[int, int]]:
        sizes = [entries for _, entries, _ in file["clusters"]]
        return cluster_ranges(file, sizes, -(-file["entries"] // step), [-(-size // step) for size in sizes])

    return by_entries


def cluster_ranges(
    file: dict[str, Any], sizes: Sequence[float], wanted: int, parts: list[int] | None = None
) -> list[tuple[int, int]]:
    """Splits a file into the wanted number of ranges of whole clusters, and single clusters into ``parts``."""
    clusters, found = file["clusters"], []
    for start, stop in balanced_runs(sizes, wanted):
        first, (last, entries, _) = clusters[start][0], clusters[stop - 1]
        count = parts[start] if parts is not None and stop - start == 1 else 1
        found += split_range(first, last + entries, count)
    return found


def _equal_ranges(file: dict[str, Any], steps: int) -> list[tuple[int, int]]:
    """Splits a file into a number of ranges, of whole clusters if there are enough."""
    if steps <= len(file["clusters"]):
        return cluster_ranges(file, [entries for _, entries, _ in file["clusters"]], steps)
    return split_range(0, file["entries"], steps)


def split_range(start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Splits a range into equal, non-empty ones.

    >>> split_range(10, 20, 3), split_range(0, 2, 5), split_range(3, 3, 2)
    ([(10, 13), (13, 16), (16, 20)], [(0, 1), (1, 2)], [])
    """
    count = min(count, stop - start)
    ends = [start + (stop - start) * number // count for number in range(count)] if count else []
    return list(pairwise([*ends, stop]))


def balanced_runs(sizes: Sequence[float], wanted: int) -> list[tuple[int, int]]:
    """Splits a list into the wanted number of non-empty runs of about equal sums.

    No sum exceeds the mean of the wanted runs plus the largest size.

    >>> balanced_runs([5, 5, 5, 5, 5, 5], 3), balanced_runs([1, 1, 10, 1, 1], 2)
    ([(0, 2), (2, 4), (4, 6)], [(0, 3), (3, 5)])
    >>> balanced_runs([3, 3], 5), balanced_runs([], 2)
    ([(0, 1), (1, 2)], [])
    """
    if not sizes:
        return []
    count = min(max(1, wanted), len(sizes))
    ends = list(accumulate(sizes, initial=0))
    cuts = [0]
    for number in range(1, count):
        goal = ends[-1] * number / count
        behind = bisect_left(ends, goal)
        nearest = behind - 1 if behind and goal - ends[behind - 1] < ends[behind] - goal else behind
        cuts.append(min(max(nearest, cuts[-1] + 1), len(sizes) - count + number))
    return list(pairwise([*cuts, len(sizes)]))
