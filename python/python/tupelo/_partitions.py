"""Entries of many files, divided among processes."""

import math
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

from . import _core, _manifest, _select
from ._files import Files
from ._libraries import Library, hand_out
from ._select import Filter
from ._sizes import count, optional_bytes, parse_bytes
from .errors import ChangedFileError, Error, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_STEP = "100 MiB"
"""Stored bytes of the chosen fields that a partition has, about; uncompressed it is two to five times as much."""
OPEN_NTUPLES = 16
"""Ntuples that a process keeps open for the partitions to come."""


@dataclass(frozen=True)
class PartitionReport:
    """The outcome of reading a partition. None stands for what is not known or did not happen."""

    file: str
    """The file, by its absolute path."""
    ntuple: str
    """Path of the ntuple in it."""
    entry_start: int
    """First entry of the partition."""
    entry_stop: int
    """The entry behind its last one."""
    cluster: int | None = None
    """Number of the cluster in which it failed."""
    column: str | None = None
    """Dotted path of the field in which it failed."""
    error: str | None = None
    """Class of what was raised, ``"CorruptError"`` for instance; None where all is well."""
    cause: str | None = None
    """What it says."""


@dataclass(frozen=True)
class Partition:
    """A run of clusters of one ntuple, read by one process at a time. `partitions` returns them.

    A partition is a description; it opens the file when it is read. Every process keeps the last ntuples open. Reading
    it twice gives the same. It pickles to less than 1 KiB, unless hundreds of fields are selected by their names or by
    a function; globs stay globs.

    >>> import tupelo
    >>> with tupelo.recreate("partition.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
    >>> (partition,) = tupelo.partitions("partition.root")
    >>> partition.name, partition.entry_start, partition.entry_stop
    ('Events', 0, 2)
    >>> partition.with_columns("y").arrays().tolist()
    [{'y': [1]}, {'y': [2, 3]}]
    """

    uri: str
    """The file, by its absolute path."""
    name: str
    """Path of the ntuple in the file."""
    entry_start: int
    """First entry: one with which a cluster begins."""
    entry_stop: int
    """The entry behind the last one."""
    columns: tuple[str, ...] | None
    """The fields that are read, as dotted paths and globs; None means all."""
    identity: str
    """What tells the file from any other, and from itself when it is written anew."""
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS
    """Whether the checksums of pages are compared."""
    memory_budget: int | None = None
    """Bytes of memory that the file may make its reader take; see `open`."""
    binary_strings: bool = False
    """Whether strings come as bytes."""

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self.entry_stop - self.entry_start

    def with_columns(self, names: str | Iterable[str] | None) -> "Partition":
        """The same entries with other fields: ``names`` are dotted paths or globs; None means all fields.

        Raises `InvalidArgumentError` for what is no text.
        """
        return replace(self, columns=None if names is None else tuple(_select.texts("names", names)))

    def arrays(self, library: Library = "ak", *, report: bool = False) -> Any:
        """Reads the entries; ``library`` is that of `Ntuple.arrays`.

        With ``report`` errors of Tupelo are not raised. The result is a pair of the arrays and a `PartitionReport`,
        with None instead of the arrays where they could not be read.

        Raises `ChangedFileError` (an `OSError`) where the file is not the one that was planned, `UnsupportedError` for
        strings that are not UTF-8 without ``binary_strings``, and what `open` and `Ntuple.arrays` raise.
        """
        _select.check_library(library)
        try:
            arrays = hand_out(self._batch(), library, range(self.entry_start, self.entry_stop))
        except Error as error:
            if not report:
                raise
            return None, self._report(error)
        return (arrays, self._report()) if report else arrays

    def _open(self) -> "_core.Ntuple":
        try:
            found = os.stat(self.uri)
            state = found.st_ino, found.st_size, found.st_mtime_ns
        except OSError:
            # Opening says it better.
            state = (0, 0, 0)
        return _opened(self.uri, self.name, self.identity, self.page_checksums, self.memory_budget, state)

    def _batch(self) -> Any:
        request = _select.Request(
            list(self.columns or ()),
            entry_start=self.entry_start,
            entry_stop=self.entry_stop,
            binary_strings=self.binary_strings,
        )
        return request.read_as_stream(self._open())

    def _report(self, error: BaseException | None = None) -> PartitionReport:
        place = self.uri, self.name, self.entry_start, self.entry_stop
        if error is None:
            return PartitionReport(*place)
        cluster, column = getattr(error, "cluster", None), getattr(error, "field", None)
        return PartitionReport(*place, cluster, column, type(error).__name__, str(error))

    def __reduce__(self) -> tuple[Any, ...]:
        # Names of many columns have much in common.
        packed = None if self.columns is None else zlib.compress("\0".join(self.columns).encode(), 9)
        return _unpack, (packed, *(value for name, value in vars(self).items() if name != "columns"))


def _unpack(packed: bytes | None, uri: str, name: str, start: int, stop: int, *rest: Any) -> Partition:
    """What unpickling calls."""
    columns = None if packed is None else tuple(zlib.decompress(packed).decode().split("\0"))
    return Partition(uri, name, start, stop, columns, *rest)


@lru_cache(maxsize=OPEN_NTUPLES)
def _opened(
    uri: str,
    name: str,
    identity: str,
    page_checksums: bool,
    memory_budget: int | None,
    state: tuple[int, int, int],
) -> "_core.Ntuple":
    """The ntuple, kept as long as the file system does not say that the file has changed."""
    core = _core.File(uri, page_checksums, memory_budget, False).ntuple(name)
    if (found := core.identity()) != identity:
        raise ChangedFileError(
            f"{uri}: ntuple '{name}' is not the one for which this was planned: its identity is {found}, not "
            f"{identity}; plan again, and make the manifest anew if there is one"
        )
    return core


class Planning(TypedDict, total=False):
    """The keywords of `partitions`."""

    step_size: SupportsIndex | str | None
    clusters_per_partition: SupportsIndex | None
    names: str | Iterable[str] | None
    filter_name: Filter
    filter_typename: Filter
    manifest: _manifest.Source | None
    page_checksums: bool
    memory_budget: int | str | None
    binary_strings: bool


def partitions(
    files: Files | None = None,
    *,
    step_size: SupportsIndex | str | None = None,
    clusters_per_partition: SupportsIndex | None = None,
    names: str | Iterable[str] | None = None,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    manifest: _manifest.Source | None = None,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    binary_strings: bool = False,
) -> list[Partition]:
    """Divides the entries of many files into runs of whole clusters that any process can read; see `Partition`.

    ``files`` are ``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``, sorted), ``{path:
    name}``, a `pathlib.Path`, or several of these. With a ``manifest`` (made by `index` or
    ``tupelo index``, or the file that holds it) no file is opened; ``files`` may be left out, or select some of them.

    A partition is within one file, and the partitions of a file are about equally large: in stored bytes, or in what
    ``step_size`` counts. ``step_size`` is the size to aim at: a text such as ``"100 MiB"`` (the default) counts stored
    bytes of the chosen fields, judged by what they take of the whole file; a number counts entries. Or
    ``clusters_per_partition`` says how many clusters a partition has at most. Partitions cover every entry once, in
    order.

    ``names`` choose fields as in `Ntuple.arrays`, or ``filter_name`` and ``filter_typename`` as in `Ntuple.keys`;
    those must have the same names and types in all files. ``page_checksums`` and ``memory_budget`` are those of `open`,
    ``binary_strings`` that of `Ntuple.iterate`.

    Raises `InvalidArgumentError` where files differ in the chosen fields, saying how, and what `open` raises.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"run{run}.root") as file:
    ...         file["Events"] = {"x": range(10 * run)}
    >>> plan = tupelo.partitions("run?.root:Events", names="x")
    >>> [(partition.entry_start, partition.entry_stop) for partition in plan]
    [(0, 10), (0, 20)]
    >>> sum(int(partition.arrays()["x"].to_numpy().sum()) for partition in plan)
    235
    """
    made = plan(
        files,
        step_size=step_size,
        clusters_per_partition=clusters_per_partition,
        names=names,
        filter_name=filter_name,
        filter_typename=filter_typename,
        manifest=manifest,
        page_checksums=page_checksums,
        memory_budget=memory_budget,
        binary_strings=binary_strings,
    )
    return made.partitions


@dataclass(frozen=True)
class Plan:
    """Partitions, and what all of them give."""

    partitions: list[Partition]
    empty: Any
    """The `pyarrow.RecordBatch` that a partition without entries gives."""
    nothing: Partition
    """Such a partition."""


def plan(files: Files | None = None, **how: "Unpack[Planning]") -> Plan:
    """What `partitions` says."""
    source = how.get("manifest")
    if files is None and source is None:
        raise InvalidArgumentError("name files, or give a manifest")
    if source is None:
        assert files is not None
        manifest = _manifest.index(files)
    else:
        manifest = _manifest.load(source)
        if files is not None:
            manifest = _manifest.chosen(manifest, files)
    if not manifest["files"]:
        raise InvalidArgumentError("there are no files to divide")
    cut = _cutter(how.get("step_size"), how.get("clusters_per_partition"))
    choices = _choices(manifest, how)
    made: list[Partition] = []
    for file in manifest["files"]:
        choice = choices[file["schema"]]
        whole = Partition(
            file["uri"],
            file["ntuple"],
            0,
            0,
            choice.columns,
            file["identity"],
            how.get("page_checksums", _core.DEFAULT_PAGE_CHECKSUMS),
            optional_bytes("memory_budget", how.get("memory_budget")),
            how.get("binary_strings", False),
        )
        clusters = file["clusters"]
        for start, stop in cut(file, choice.share(file)):
            first, (last, entries, _) = clusters[start], clusters[stop - 1]
            made.append(replace(whole, entry_start=first[0], entry_stop=last + entries))
    first_file = manifest["files"][0]
    return Plan(made, choices[first_file["schema"]].empty, replace(whole, entry_start=0, entry_stop=0))


@dataclass(frozen=True)
class _Choice:
    """The chosen fields of one schema."""

    columns: tuple[str, ...] | None
    empty: Any
    fields: list[str]
    """All top-level fields."""

    def share(self, file: dict[str, Any]) -> float:
        """Which part of the stored bytes of a file they take; fields below the top count whole."""
        names = set(self.empty.schema.names)
        own: int = sum(size for name, size in zip(self.fields, file["field_bytes"], strict=True) if name in names)
        total: int = sum(size for _, _, size in file["clusters"])
        return min(1.0, own / max(1, total))


def _choices(manifest: dict[str, Any], how: Planning) -> dict[int, _Choice]:
    """What is chosen of each schema that a file has. All must agree."""
    choices: dict[int, _Choice] = {}
    first: tuple[str, dict[str, str]] | None = None
    for file in manifest["files"]:
        number = file["schema"]
        if number in choices:
            continue
        where = f"{file['uri']}: ntuple '{file['ntuple']}'"
        schema = _manifest.arrow_schema(manifest, number)
        columns = _columns(schema, where, how)
        try:
            empty = _core.schema_choose(schema, columns or [], how.get("binary_strings", False))
        except NotFoundError as error:
            raise NotFoundError(f"{where}: {error}") from None
        choices[number] = _Choice(None if columns is None else tuple(columns), empty, schema.names)
        types = {path: type_name for path, _, _, type_name, _, _ in _core.schema_fields(empty.schema)}
        if first is None:
            first = where, types
        elif types != first[1]:
            differs = _select.difference(first[1], types)
            raise InvalidArgumentError(f"{where} differs from {first[0]}: {differs}; choose fields by names")
    return choices


def _columns(schema: Any, where: str, how: Planning) -> list[str] | None:
    """Patterns of the chosen fields; None for all."""
    names, filter_name, filter_typename = how.get("names"), how.get("filter_name"), how.get("filter_typename")
    if names is None and filter_name is None and filter_typename is None:
        return None
    known = {path: type_name for path, _, _, type_name, _, _ in _core.schema_fields(schema)}
    if filter_name is None and filter_typename is None:
        return [_select.literal(name) if name in known else name for name in _select.texts("names", names)]
    if names is not None:
        raise InvalidArgumentError("fields are chosen by names or by filters, not by both")
    fits_name, fits_type = _select.matcher(filter_name), _select.matcher(filter_typename)
    wanted = [_select.literal(path) for path, type_name in known.items() if fits_name(path) and fits_type(type_name)]
    if not wanted:
        raise NotFoundError(f"{where}: none of {len(known)} fields passes the filters")
    globs = [filter_name] if isinstance(filter_name, str) else filter_name
    if filter_typename is None and isinstance(globs, list | tuple) and all(isinstance(glob, str) for glob in globs):
        # Globs that do the same are shorter than the names of hundreds of fields; in a pattern `*` stays within a name.
        patterns = [re.sub(r"\*+", "**", str(glob)) for glob in globs]
        if _is_same_choice(schema, patterns, wanted):
            return patterns
    return wanted


def _is_same_choice(schema: Any, one: list[str], other: list[str]) -> bool:
    """Whether patterns choose the same fields."""
    try:
        first, second = (_core.schema_choose(schema, patterns, False).schema for patterns in (one, other))
    except Error:
        return False
    return bool(first.equals(second))


Cut = Callable[[dict[str, Any], float], list[tuple[int, int]]]
"""From a file of a manifest, and the share of its bytes that is read, to runs of its clusters."""


def _cutter(step_size: SupportsIndex | str | None, clusters_per_partition: SupportsIndex | None) -> Cut:
    """How files are cut."""
    if clusters_per_partition is not None:
        if step_size is not None:
            raise InvalidArgumentError("give step_size or clusters_per_partition, not both")
        most = count("clusters_per_partition", "clusters, at least 1", clusters_per_partition)
        if most == 0:
            raise InvalidArgumentError("a partition has at least one cluster")
        return lambda file, _: runs([1] * len(file["clusters"]), -(-len(file["clusters"]) // most))
    step = _select.step(DEFAULT_STEP if step_size is None else step_size)
    if isinstance(step, str):
        step_bytes = parse_bytes(step)

        def by_bytes(file: dict[str, Any], share: float) -> list[tuple[int, int]]:
            sizes = [size for _, _, size in file["clusters"]]
            return runs(sizes, math.ceil(sum(sizes) * share / step_bytes))

        return by_bytes
    return lambda file, _: runs([entries for _, entries, _ in file["clusters"]], -(-file["entries"] // step))


def runs(sizes: list[int], wanted: int) -> list[tuple[int, int]]:
    """Cuts a list into runs of about equal sums: as many as wanted, but none that is empty.

    No sum is more than the mean of those wanted and the largest size together.

    >>> runs([5, 5, 5, 5, 5, 5], 3), runs([1, 1, 10, 1, 1], 2), runs([3, 3], 5), runs([], 2)
    ([(0, 2), (2, 4), (4, 6)], [(0, 3), (3, 5)], [(0, 1), (1, 2)], [])
    """
    if not sizes:
        return []
    pieces = min(max(1, wanted), len(sizes))
    ends = list(accumulate(sizes, initial=0))
    cuts = [0]
    for piece in range(1, pieces):
        goal = ends[-1] * piece / pieces
        behind = bisect_left(ends, goal)
        nearest = behind - 1 if behind and goal - ends[behind - 1] < ends[behind] - goal else behind
        cuts.append(min(max(nearest, cuts[-1] + 1), len(sizes) - pieces + piece))
    return list(pairwise([*cuts, len(sizes)]))
