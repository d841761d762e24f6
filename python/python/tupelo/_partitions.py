"""Entries of many files, divided among processes."""

import math
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

import pyarrow as pa

from . import _arrow, _common, _core, _manifest, _select
from ._files import Files, Place, Steps, places, within
from ._libraries import Library, hand_out
from ._messages import short
from ._select import Filter
from ._sizes import count, optional_bytes, parse_bytes
from ._source import Origin
from .errors import ChangedFileError, Error, InvalidArgumentError, NotFoundError
from .ntuple import Ntuple

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
    """A range of entries of one ntuple, read by one process at a time. `partitions` returns them.

    A partition is a description; it opens the file when it is read. Every process keeps the last ntuples open. Reading
    it twice gives the same. It pickles to less than 1 KiB, unless hundreds of fields are selected by their names or by
    a function (globs stay globs), or files have different fields.

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
    """First entry."""
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
    expressions: tuple[str, ...] | None = None
    """What is read instead of ``columns``: as in `Ntuple.arrays`."""
    cut: str | None = None
    """Which of the entries are given: as in `Ntuple.arrays`."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Names of expressions, and these."""
    schema: Any = None
    """The `pyarrow.Schema` of a union of fields, of which the file may lack some; else None."""

    @property
    def num_entries(self) -> int:
        """Number of entries, before a cut."""
        return self.entry_stop - self.entry_start

    def with_columns(self, names: str | Iterable[str] | None) -> "Partition":
        """The same entries with other fields: ``names`` are dotted paths or globs; None means all fields.

        Raises `InvalidArgumentError` for what is no text.
        """
        columns = None if names is None else tuple(_select.texts("names", names))
        return replace(self, columns=columns, expressions=None)

    def arrays(self, library: Library = "ak", *, report: bool = False) -> Any:
        """Reads the entries; ``library`` is that of `Ntuple.arrays`.

        With ``report`` errors of Tupelo are not raised. The result is a pair of the arrays and a `PartitionReport`,
        with None instead of the arrays where they could not be read.

        Raises `ChangedFileError` (an `OSError`) where the file is not the one that was planned, `UnsupportedError` for
        strings that are not UTF-8 without ``binary_strings``, and what `open` and `Ntuple.arrays` raise.
        """
        _select.check_library(library)
        try:
            batch, entries = self._read()
            arrays = hand_out(batch, library, entries)
        except Error as error:
            if not report:
                raise
            return None, self._report(error)
        return (arrays, self._report()) if report else arrays

    def _open(self) -> Ntuple:
        try:
            found = os.stat(self.uri)
            state = found.st_ino, found.st_size, found.st_mtime_ns
        except OSError:
            # Opening says it better.
            state = (0, 0, 0)
        return _opened(self.uri, self.name, self.identity, self.page_checksums, self.memory_budget, state)

    def _read(self) -> tuple[Any, Any]:
        """A `pyarrow.RecordBatch` whose type does not depend on the entries, and the numbers of its entries."""
        ntuple = self._open()
        options = {"aliases": dict(self.aliases), "entry_start": self.entry_start, "entry_stop": self.entry_stop}
        request = ntuple._request(self.expressions or None, self.cut, options)
        request.binary_strings = self.binary_strings
        if self.expressions is None:
            request.patterns = list(self.columns or ())
        elif not self.expressions:
            request.patterns = None
        if self.schema is None:
            return ntuple._stream_batch(request)
        schema = self.schema
        if self.columns is not None:
            schema = _core.schema_choose(schema, list(self.columns), self.binary_strings).schema
        there = _common.leaves_in(_core.schema_fields(schema), ntuple)
        request.patterns = [_select.literal(path) for path in there] or None
        batch, numbers = ntuple._stream_batch(request)
        return _common.fitted(batch, schema, len(numbers)), numbers

    def _count(self) -> int:
        """Number of entries that a cut keeps."""
        if self.cut is None:
            self._open()
            return self.num_entries
        _, entries = replace(self, expressions=(), columns=None, schema=None)._read()
        return len(entries)

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
) -> Ntuple:
    """The ntuple, kept as long as the file system does not say that the file has changed."""
    core = _core.File(uri, page_checksums, memory_budget, False).ntuple(name)
    if (found := core.identity()) != identity:
        raise ChangedFileError(
            f"{uri}: ntuple '{name}' is not the one for which this was planned: its identity is {found}, not "
            f"{identity}; plan again, and make the manifest anew if there is one"
        )
    # Who planned was warned.
    return Ntuple(core, Origin(uri, (name,), page_checksums, memory_budget, False, uri), is_quiet=True)


class Planning(TypedDict, total=False):
    """The keywords of `partitions`."""

    step_size: SupportsIndex | str | None
    steps_per_file: SupportsIndex | None
    clusters_per_partition: SupportsIndex | None
    names: str | Iterable[str] | None
    expressions: str | Iterable[str] | None
    cut: str | None
    aliases: Mapping[str, str] | None
    fields: _common.Fields
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
    steps_per_file: SupportsIndex | None = None,
    clusters_per_partition: SupportsIndex | None = None,
    names: str | Iterable[str] | None = None,
    expressions: str | Iterable[str] | None = None,
    cut: str | None = None,
    aliases: Mapping[str, str] | None = None,
    fields: _common.Fields = "common",
    filter_name: Filter = None,
    filter_typename: Filter = None,
    manifest: _manifest.Source | None = None,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    binary_strings: bool = False,
) -> list[Partition]:
    """Divides the entries of many files into ranges that any process can read; see `Partition`.

    ``files`` are ``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``, sorted), ``{path:
    name}``, ``{path: {"object_path": name, "steps": [[0, 500], [500, 1000]]}}``, a `pathlib.Path`, or several of these.
    Where a file has ``steps``, they are its partitions. With a ``manifest`` (made by `index` or ``tupelo index``, or
    the file that holds it) no file is opened; ``files`` may be left out, or select some of them.

    A partition is within one file, and the partitions of a file are about equally large: in stored bytes, or in what
    ``step_size`` counts. ``step_size`` is the size to aim at: a text such as ``"100 MiB"`` (the default) counts stored
    bytes of the selected fields, estimated from what they take of the whole file; a number counts entries. Partitions
    are runs of whole clusters, and parts of a cluster that is larger than a step. Instead, ``steps_per_file`` is the
    number of partitions of each file, or ``clusters_per_partition`` the largest number of clusters in a partition.
    Partitions cover every entry once, in order.

    ``names`` choose fields by paths and globs, or ``filter_name`` and ``filter_typename`` as in `Ntuple.keys`. Without
    names, ``fields`` says what is read of files with different fields, as in `iterate`. Names must fit fields of every
    file, or with ``fields="union"`` of one. Fields of the same name must have the same type in all files, in Arrow:
    ``std::vector<float>`` and ``ROOT::VecOps::RVec<float>`` are alike. ``expressions``, ``cut`` and ``aliases`` are
    those of `Ntuple.arrays`; the first file is opened for their types. Every file must have their fields: unlike
    `iterate`, ``fields="union"`` gives no missing values for ``expressions``. ``page_checksums`` and ``memory_budget``
    are those of `open`, ``binary_strings`` that of `Ntuple.iterate`.

    Raises `InvalidArgumentError` where files differ in the chosen fields, saying how, and for ntuples that are open;
    what `open` raises.

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
        steps_per_file=steps_per_file,
        clusters_per_partition=clusters_per_partition,
        names=names,
        expressions=expressions,
        cut=cut,
        aliases=aliases,
        fields=fields,
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
    fields = how.get("fields", "common")
    _common.check(fields)
    found = [] if files is None else places(files)
    steps: list[Steps] = [place.steps for place in found]
    if source is None:
        manifest, _ = _manifest.of_places(found)
    else:
        manifest = _manifest.load(source)
        steps = [None] * len(manifest["files"])
        if files is not None:
            manifest, steps = _manifest.chosen(manifest, found)
    if not manifest["files"]:
        raise InvalidArgumentError("there are no files to divide")
    cut = _cutter(how.get("step_size"), how.get("steps_per_file"), how.get("clusters_per_partition"))
    if (names := how.get("names")) is not None:
        # They may be a generator, and are looked at for each kind of files.
        how["names"] = _select.texts("names", names)
    expressions = how.get("expressions")
    computed = None if expressions is None else tuple(_select.texts("expressions", expressions))
    choices = _choices(manifest, how, computed)
    made: list[Partition] = []
    for file, own in zip(manifest["files"], steps, strict=True):
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
            computed,
            _select.cut(how.get("cut")),
            tuple(_select.aliases(how.get("aliases"))),
            choice.union,
        )
        place = Place(file["uri"], file["uri"], None, own)
        ranges = cut(file, choice.share(file)) if own is None else within(place, file["entries"])
        made += [replace(whole, entry_start=start, entry_stop=stop) for start, stop in ranges]
    first_file = manifest["files"][0]
    nothing = replace(whole, uri=first_file["uri"], name=first_file["ntuple"], identity=first_file["identity"])
    nothing = replace(nothing, columns=choices[first_file["schema"]].columns)
    is_known = computed is None and whole.cut is None
    empty = choices[first_file["schema"]].empty if is_known else nothing._read()[0]
    return Plan(made, empty, nothing)


@dataclass(frozen=True)
class _Choice:
    """The chosen fields of one schema."""

    columns: tuple[str, ...] | None
    empty: Any
    fields: list[str]
    """All top-level fields."""
    read: set[str]
    """Names of those that are read."""
    union: Any = None
    """The `pyarrow.Schema` of what all files give, where some lack fields."""

    def share(self, file: dict[str, Any]) -> float:
        """Which part of the stored bytes of a file they take; fields below the top count whole."""
        own: int = sum(size for name, size in zip(self.fields, file["field_bytes"], strict=True) if name in self.read)
        total: int = sum(size for _, _, size in file["clusters"])
        return min(1.0, own / max(1, total))


def _choices(manifest: dict[str, Any], how: Planning, computed: tuple[str, ...] | None) -> dict[int, _Choice]:
    """What is chosen of each schema that a file has. All must agree."""
    where: dict[int, str] = {}
    for file in manifest["files"]:
        where.setdefault(file["schema"], f"{file['uri']}: ntuple '{file['ntuple']}'")
    schemas = {number: _manifest.arrow_schema(manifest, number) for number in where}
    if computed is not None:
        if any(how.get(name) is not None for name in ("names", "filter_name", "filter_typename")):
            raise InvalidArgumentError("fields are chosen by expressions, by names or by filters, by one of them")
        read = {path.partition(".")[0] for path in _names_in(computed, how.get("aliases"))}
        return {number: _Choice(None, None, schema.names, read) for number, schema in schemas.items()}
    binary_strings = how.get("binary_strings", False)
    if len(schemas) > 1 and how.get("fields") == "union":
        return _union(schemas, where, how)
    is_one = len(schemas) == 1 or how.get("names") is not None
    columns = {number: _columns(schema, where[number], how, is_one) for number, schema in schemas.items()}
    if not is_one:
        common = _common.Common()
        for number, schema in schemas.items():
            common.add(_core.schema_fields(schema), columns[number])
        if (paths := common.paths()) is not None:
            columns = {number: [_select.literal(path) for path in paths] for number in schemas}
        elif how.get("filter_name") is None and how.get("filter_typename") is None:
            columns = dict.fromkeys(schemas)
    choices: dict[int, _Choice] = {}
    first: tuple[str, Any] | None = None
    for number, schema in schemas.items():
        own = columns[number]
        try:
            empty = _core.schema_choose(schema, own or [], binary_strings)
        except NotFoundError as error:
            raise NotFoundError(f"{where[number]}: {error}") from None
        chosen = None if own is None else tuple(_short_patterns(schema, own, how))
        choices[number] = _Choice(chosen, empty, schema.names, set(empty.schema.names))
        if first is None:
            first = where[number], empty.schema
        elif (differs := _difference(first[1], empty.schema)) is not None:
            raise InvalidArgumentError(f"{where[number]} differs from {first[0]}: {differs}")
    return choices


def _difference(first: Any, other: Any) -> str | None:
    """How the chosen fields of two files differ, and what to do; None where they give arrays of the same type."""
    one, two = ({path: name for path, _, _, name, _, _ in _core.schema_fields(schema)} for schema in (first, other))
    if one.keys() != two.keys():
        text = _select.difference(dict.fromkeys(one, ""), dict.fromkeys(two, ""))
        if set(first.names) != set(other.names):
            return f"{text}; choose fields that all files have, or fields='union' for missing values"
        return f"{text}; choose what all files have by dotted paths"
    differing = [field.name for field in other if not _arrow.are_alike(first.field(field.name), field)]
    if not differing:
        return None
    name = differing[0]
    types = [str(schema.field(name).type) for schema in (first, other)]
    if types[0] == types[1]:
        types = [one[name], two[name]]
    return (
        f"its field '{name}' is a {types[1]}, not a {types[0]}; leave the field out, or read the files one by one, as "
        "tupelo.iterate does, or each as one type by Ntuple.arrays(schema=…)"
    )


def _union(schemas: dict[int, Any], where: dict[int, str], how: Planning) -> dict[int, _Choice]:
    """The same for all fields that any file has."""
    union = _common.Union()
    read: dict[int, set[str]] = {}
    names = how.get("names")
    for name in names or []:
        if not any(_there(schema, [name]) for schema in schemas.values()):
            raise NotFoundError(f"no field in any of {len(schemas)} kinds of files is called {short(name)}")
    for number, schema in schemas.items():
        columns = _columns(schema, where[number], how, False)
        if names is not None:
            own: list[str] | None = _there(schema, names)
        else:
            own = None if columns is None else [_select.literal(path) for path in columns]
        chosen = None
        if own is None or own:
            chosen = _core.schema_choose(schema, own or [], how.get("binary_strings", False)).schema
        read[number] = set() if chosen is None else set(chosen.names)
        union.add(pa.schema([]) if chosen is None else chosen, where[number])
    target = union.schema()
    if len(target) == 0:
        raise NotFoundError(f"no field in any of {len(schemas)} files passes the filters")
    empty = _common.fitted(pa.RecordBatch.from_arrays([], names=[]), target, 0)
    return {number: _Choice(None, empty, schema.names, read[number], target) for number, schema in schemas.items()}


def _there(schema: Any, names: Iterable[str]) -> list[str]:
    """Patterns of those names and globs that fit fields of a schema."""
    known = {path for path, *_ in _core.schema_fields(schema)}
    found = []
    for name in names:
        pattern = _select.literal(name) if name in known else name
        try:
            _core.schema_choose(schema, [pattern], False)
        except NotFoundError:
            continue
        found.append(pattern)
    return found


def _names_in(expressions: Iterable[str], aliases: Mapping[str, str] | None) -> set[str]:
    """Paths of the fields in expressions and aliases, globs as they are."""
    found: set[str] = set()
    for text in [*expressions, *(aliases or {}).values()]:
        try:
            found.update(_core.expression_names(text))
        except InvalidArgumentError:
            found.add(text)
    return found


def _columns(schema: Any, where: str, how: Planning, must_be_some: bool) -> list[str] | None:
    """Patterns of the chosen fields, paths where they are chosen by filters; None for all."""
    names, filter_name, filter_typename = how.get("names"), how.get("filter_name"), how.get("filter_typename")
    if names is None and filter_name is None and filter_typename is None:
        return None
    known = {path: type_name for path, _, _, type_name, _, _ in _core.schema_fields(schema)}
    if filter_name is None and filter_typename is None:
        return [_select.literal(name) if name in known else name for name in _select.texts("names", names)]
    if names is not None:
        raise InvalidArgumentError("fields are chosen by names or by filters, not by both")
    fits_name, fits_type = _select.matcher(filter_name), _select.matcher(filter_typename)
    wanted = [path for path, type_name in known.items() if fits_name(path) and fits_type(type_name)]
    if not wanted and must_be_some:
        raise NotFoundError(f"{where}: none of {len(known)} fields passes the filters")
    return [_select.literal(path) for path in wanted] if must_be_some else wanted


def _short_patterns(schema: Any, wanted: list[str], how: Planning) -> list[str]:
    """Globs that do the same as the names of hundreds of fields, where filters are globs: they are shorter."""
    filter_name = how.get("filter_name")
    globs = [filter_name] if isinstance(filter_name, str) else filter_name
    if how.get("filter_typename") is not None or not isinstance(globs, list | tuple):
        return wanted
    if not all(isinstance(glob, str) for glob in globs):
        return wanted
    # In a pattern `*` stays within a name.
    patterns = [re.sub(r"\*+", "**", str(glob)) for glob in globs]
    return patterns if _is_same_choice(schema, patterns, wanted) else wanted


def _is_same_choice(schema: Any, one: list[str], other: list[str]) -> bool:
    """Whether patterns choose the same fields."""
    try:
        first, second = (_core.schema_choose(schema, patterns, False).schema for patterns in (one, other))
    except Error:
        return False
    return bool(first.equals(second))


Cut = Callable[[dict[str, Any], float], list[tuple[int, int]]]
"""From a file of a manifest, and the share of its bytes that is read, to ranges of its entries."""


def _cutter(
    step_size: SupportsIndex | str | None,
    steps_per_file: SupportsIndex | None,
    clusters_per_partition: SupportsIndex | None,
) -> Cut:
    """How files are cut."""
    if sum(one is not None for one in (step_size, steps_per_file, clusters_per_partition)) > 1:
        raise InvalidArgumentError("give one of step_size, steps_per_file and clusters_per_partition")
    if clusters_per_partition is not None:
        most = count("clusters_per_partition", "clusters, at least 1", clusters_per_partition)
        if most == 0:
            raise InvalidArgumentError("a partition has at least one cluster")
        return lambda file, _: _ranges(file, [1] * len(file["clusters"]), -(-len(file["clusters"]) // most))
    if steps_per_file is not None:
        steps = count("steps_per_file", "partitions, at least 1", steps_per_file)
        if steps == 0:
            raise InvalidArgumentError("a file has at least one partition")
        return lambda file, _: _equal(file, steps)
    step = _select.step(DEFAULT_STEP if step_size is None else step_size)
    if isinstance(step, str):
        step_bytes = parse_bytes(step)

        def by_bytes(file: dict[str, Any], share: float) -> list[tuple[int, int]]:
            sizes = [size * share for _, _, size in file["clusters"]]
            # A cluster that is somewhat too large stays whole: what a part of it reads may be read by the next one too.
            parts = [max(1, round(size / step_bytes)) for size in sizes]
            return _ranges(file, sizes, math.ceil(sum(sizes) / step_bytes), parts)

        return by_bytes

    def by_entries(file: dict[str, Any], share: float) -> list[tuple[int, int]]:
        sizes = [entries for _, entries, _ in file["clusters"]]
        return _ranges(file, sizes, -(-file["entries"] // step), [-(-size // step) for size in sizes])

    return by_entries


def _ranges(
    file: dict[str, Any], sizes: Sequence[float], wanted: int, parts: list[int] | None = None
) -> list[tuple[int, int]]:
    """Cuts a file into as many ranges of whole clusters as are wanted, and a cluster alone into so many parts."""
    clusters, found = file["clusters"], []
    for start, stop in runs(sizes, wanted):
        first, (last, entries, _) = clusters[start][0], clusters[stop - 1]
        pieces = parts[start] if parts is not None and stop - start == 1 else 1
        found += _parts(first, last + entries, pieces)
    return found


def _equal(file: dict[str, Any], steps: int) -> list[tuple[int, int]]:
    """Cuts a file into so many ranges, of whole clusters where there are enough."""
    if steps <= len(file["clusters"]):
        return _ranges(file, [entries for _, entries, _ in file["clusters"]], steps)
    return _parts(0, file["entries"], steps)


def _parts(start: int, stop: int, pieces: int) -> list[tuple[int, int]]:
    """Cuts a range into so many equal ones, none of them empty.

    >>> _parts(10, 20, 3), _parts(0, 2, 5), _parts(3, 3, 2)
    ([(10, 13), (13, 16), (16, 20)], [(0, 1), (1, 2)], [])
    """
    pieces = min(pieces, stop - start)
    ends = [start + (stop - start) * piece // pieces for piece in range(pieces)] if pieces else []
    return list(pairwise([*ends, stop]))


def runs(sizes: Sequence[float], wanted: int) -> list[tuple[int, int]]:
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
