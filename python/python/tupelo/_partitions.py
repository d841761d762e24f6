"""Partitions: ranges of entries for distributed reading."""

import math
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

import pyarrow as pa

from . import _arrow, _core, _field_sets, _manifest, _select
from ._checks import storage
from ._files import Files, InputNtuple, Steps, entry_ranges, resolve
from ._libraries import Library, to_library
from ._locations import NtupleLocation
from ._messages import short_repr
from ._select import Filter
from ._sizes import parse_optional_bytes
from ._splitting import splitter
from .errors import ChangedFileError, Error, InvalidArgumentError, NotFoundError
from .ntuple import Ntuple, as_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

OPEN_NTUPLES = 16
"""Number of ntuples that a process keeps open for later partitions."""


@dataclass(frozen=True)
class PartitionReport:
    """The outcome of reading a partition. Attributes are None if unknown or not applicable."""

    file: str
    """The file, by its absolute path, or its URL without credentials."""
    ntuple: str
    """Path of the ntuple in it."""
    entry_start: int
    """First entry of the partition."""
    entry_stop: int
    """End of the partition (exclusive)."""
    cluster: int | None = None
    """Number of the cluster in which it failed."""
    column: str | None = None
    """Dotted path of the field in which it failed."""
    error: str | None = None
    """Class of the exception, for instance ``"CorruptError"``; None on success."""
    cause: str | None = None
    """Its message."""


@dataclass(frozen=True)
class Partition:
    """A range of entries of one ntuple, read by one process at a time. `partitions` returns them.

    A partition is only a description; reading it opens the file. Every process keeps the most recent ntuples open. It
    pickles to less than 1 KiB, unless hundreds of fields are selected by name or by a function (globs stay globs), or
    files have different fields.

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
    """The file, by its absolute path, or its URL with credentials, which `repr` does not show."""
    name: str
    """Path of the ntuple in the file."""
    entry_start: int
    """First entry."""
    entry_stop: int
    """End of the range (exclusive)."""
    columns: tuple[str, ...] | None
    """The fields to read, as dotted paths and globs; None means all."""
    identity: str
    """Identifies the contents of the file; it changes when the file is rewritten."""
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS
    """Whether page checksums are verified."""
    memory_budget: int | None = None
    """Memory budget in bytes; see `open`."""
    binary_strings: bool = False
    """Whether strings are returned as bytes."""
    expressions: tuple[str, ...] | None = None
    """Expressions to read instead of ``columns``; see `Ntuple.arrays`."""
    cut: str | None = None
    """Selects entries; see `Ntuple.arrays`."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Pairs of alias and expression."""
    storage: "_core.Storage | None" = None
    """Options and cache of a remote file."""
    schema: Any = None
    """The `pyarrow.Schema` of a union of fields, some of which the file may lack; else None."""

    @property
    def num_entries(self) -> int:
        """Number of entries before the cut."""
        return self.entry_stop - self.entry_start

    def with_columns(self, names: str | Iterable[str] | None) -> "Partition":
        """Returns a partition of the same entries with other fields: ``names`` are dotted paths or globs, None means
        all.

        Raises `InvalidArgumentError` for names that are not strings.
        """
        columns = None if names is None else tuple(_select.string_list("names", names))
        return replace(self, columns=columns, expressions=None)

    def arrays(self, library: Library = "ak", *, report: bool = False) -> Any:
        """Reads the entries; ``library`` is that of `Ntuple.arrays`.

        With ``report`` errors of Tupelo are not raised. The result is a pair of the arrays and a `PartitionReport`;
        the arrays are None if they could not be read.

        Raises `ChangedFileError` (an `OSError`) if the file changed after planning, `UnsupportedError` for strings that
        are not UTF-8 without ``binary_strings``, and the errors of `open` and `Ntuple.arrays`.
        """
        _select.check_library(library)
        try:
            batch, entries = self._read()
            arrays = to_library(batch, library, entries)
        except Error as error:
            if not report:
                raise
            return None, self._report(error)
        return (arrays, self._report()) if report else arrays

    def _open(self) -> Ntuple:
        how = self.page_checksums, self.memory_budget, self.storage, self._file_state()
        return _opened(self.uri, self.name, self.identity, *how)

    def _file_state(self) -> tuple[int, int, int]:
        """A value that changes with the file."""
        try:
            found = os.stat(self.uri)
        except OSError:
            # Opening the file gives a better error. A remote file that changed is an error when it is read.
            return (0, 0, 0)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> tuple[Any, Any]:
        """A `pyarrow.RecordBatch` whose schema does not depend on the values, and its entry numbers."""
        ntuple = self._open()
        if self.entry_stop > ntuple.num_entries:
            raise ChangedFileError(
                f"{_core.display_name(self.uri)}: ntuple '{self.name}' has {ntuple.num_entries} entries, and the "
                f"partition ends at entry {self.entry_stop}; plan again, and recreate the manifest if you use one"
            )
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
        there = _field_sets.leaf_paths(_core.schema_fields(schema), ntuple)
        request.patterns = [_select.escape_glob(path) for path in there] or None
        batch, numbers = ntuple._stream_batch(request)
        return _field_sets.add_missing_columns(batch, schema, len(numbers)), numbers

    def _count(self) -> int:
        """Number of entries that the cut selects."""
        if self.cut is None:
            self._open()
            return self.num_entries
        _, entries = replace(self, expressions=(), columns=None, schema=None)._read()
        return len(entries)

    def _report(self, error: BaseException | None = None) -> PartitionReport:
        place = _core.display_name(self.uri), self.name, self.entry_start, self.entry_stop
        if error is None:
            return PartitionReport(*place)
        cluster, column = getattr(error, "cluster", None), getattr(error, "field", None)
        return PartitionReport(*place, cluster, column, type(error).__name__, str(error))

    def __repr__(self) -> str:
        shown = {**vars(self), "uri": _core.display_name(self.uri)}
        return f"Partition({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Column names compress well.
        packed = None if self.columns is None else zlib.compress("\0".join(self.columns).encode(), 9)
        return _unpack, (packed, *(value for name, value in vars(self).items() if name != "columns"))


def _unpack(packed: bytes | None, uri: str, name: str, start: int, stop: int, *rest: Any) -> Partition:
    """Creates an unpickled partition."""
    columns = None if packed is None else tuple(zlib.decompress(packed).decode().split("\0"))
    return Partition(uri, name, start, stop, columns, *rest)


@lru_cache(maxsize=OPEN_NTUPLES)
def _opened(
    uri: str,
    name: str,
    identity: str,
    page_checksums: bool,
    memory_budget: int | None,
    remote: "_core.Storage | None",
    state: tuple[int, int, int],
) -> Ntuple:
    """Opens an ntuple; ``state`` invalidates the cache when the file changes."""
    core = _core.File(uri, page_checksums, memory_budget, False, remote).table(name)
    if (found := core.identity()) != identity:
        shown = _core.display_name(uri)
        raise ChangedFileError(
            f"{shown}: ntuple '{name}' has changed since the partitions were planned: its identity is {found}, not "
            f"{identity}; plan again, and recreate the manifest if you use one"
        )
    # The warnings were issued while planning.
    place = NtupleLocation(_core.display_name(uri), (name,), page_checksums, memory_budget, False, uri, remote)
    return as_table(core, place, is_quiet=True)


class PartitionOptions(TypedDict, total=False):
    """The keywords of `partitions`."""

    step_size: SupportsIndex | str | None
    steps_per_file: SupportsIndex | None
    clusters_per_partition: SupportsIndex | None
    names: str | Iterable[str] | None
    expressions: str | Iterable[str] | None
    cut: str | None
    aliases: Mapping[str, str] | None
    fields: _field_sets.Fields
    filter_name: Filter
    filter_typename: Filter
    manifest: _manifest.Source | None
    page_checksums: bool
    memory_budget: int | str | None
    binary_strings: bool
    storage_options: Mapping[str, object] | None
    cache: str | os.PathLike[str] | None


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
    fields: _field_sets.Fields = "common",
    filter_name: Filter = None,
    filter_typename: Filter = None,
    manifest: _manifest.Source | None = None,
    page_checksums: bool = _core.DEFAULT_PAGE_CHECKSUMS,
    memory_budget: int | str | None = None,
    binary_strings: bool = False,
    storage_options: Mapping[str, object] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> list[Partition]:
    """Divides the entries of many files into ranges that any process can read; see `Partition`.

    ``files`` are ``"f.root"``, ``"f.root:Events"``, either with wildcards (``"run*.root:Events"``, sorted), ``{path:
    name}``, ``{path: {"object_path": name, "steps": [[0, 500], [500, 1000]]}}``, a `pathlib.Path`, or several of these.
    If a file has ``steps``, they are its partitions. With a ``manifest`` (of `index` or ``tupelo index``, as a dict or
    a file name) no file is opened; ``files`` may be omitted, or select some of its files.

    A partition lies within one file, and the partitions of a file have about equal sizes. ``step_size`` is the target
    size: a string such as ``"100 MiB"`` (the default) counts stored bytes of the selected fields, estimated from their
    share of the file; a number counts entries. Partitions consist of whole clusters, or are parts of a cluster that is
    larger than a step. Alternatively, ``steps_per_file`` is the number of partitions of each file, or
    ``clusters_per_partition`` the maximum number of clusters in a partition. Partitions cover every entry once, in
    order.

    ``names`` select fields by paths and globs, ``filter_name`` and ``filter_typename`` as in `Ntuple.keys`. Without
    names, ``fields`` is that of `iterate`. Names must match fields of every file, or with ``fields="union"`` of one.
    Fields of the same name must have the same Arrow type in all files: ``std::vector<float>`` and
    ``ROOT::VecOps::RVec<float>`` are equal. ``expressions``, ``cut`` and ``aliases`` are those of `Ntuple.arrays`; the
    first file is opened to determine their types. Every file must have their fields: unlike in `iterate`,
    ``fields="union"`` does not fill missing fields in ``expressions``. ``page_checksums``,
    ``memory_budget``, ``storage_options`` and ``cache`` are those of `open`, ``binary_strings`` that of
    `Ntuple.iterate`.

    Raises `InvalidArgumentError` with the difference if files differ in the selected fields, and for open ntuples; the
    errors of `open`.

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
        storage_options=storage_options,
        cache=cache,
    )
    return made.partitions


@dataclass(frozen=True)
class Plan:
    """Partitions and their common schema."""

    partitions: list[Partition]
    empty: Any
    """The `pyarrow.RecordBatch` of a partition without entries."""
    nothing: Partition
    """A partition without entries."""
    whole_bytes: list[float] | None = None
    """Stored bytes of what each partition reads, infinite for a part of a file; None if the caller chose them."""


def plan(files: Files | None = None, **how: "Unpack[PartitionOptions]") -> Plan:
    """Plans partitions; see `partitions`."""
    source = how.get("manifest")
    if files is None and source is None:
        raise InvalidArgumentError("no input: give files or a manifest")
    fields = how.get("fields", "common")
    _field_sets.check(fields)
    remote = storage(how.get("storage_options"), how.get("cache"))
    found = [] if files is None else resolve(files, remote)
    steps: list[Steps] = [place.steps for place in found]
    if source is None:
        manifest, _ = _manifest.build(found, remote)
        # The manifest has no credentials.
        for place, file in zip(found, manifest["files"], strict=True):
            file["uri"] = place.absolute_path if _core.is_remote(place.absolute_path) else file["uri"]
    else:
        manifest = _manifest.load(source)
        steps = [None] * len(manifest["files"])
        if files is not None:
            manifest, steps = _manifest.select_files(manifest, found)
    if not manifest["files"]:
        raise InvalidArgumentError("the list of files is empty")
    split = splitter(how.get("step_size"), how.get("steps_per_file"), how.get("clusters_per_partition"))
    if (names := how.get("names")) is not None:
        # `names` may be a generator and is used for each schema.
        how["names"] = _select.string_list("names", names)
    expressions = how.get("expressions")
    computed = None if expressions is None else tuple(_select.string_list("expressions", expressions))
    choices = _choices(manifest, how, computed)
    made: list[Partition] = []
    whole_bytes: list[float] = []
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
            parse_optional_bytes("memory_budget", how.get("memory_budget")),
            how.get("binary_strings", False),
            computed,
            _select.cut(how.get("cut")),
            tuple(_select.aliases(how.get("aliases"))),
            remote,
            choice.union,
        )
        place = InputNtuple(file["uri"], file["uri"], None, own)
        ranges = split(file, choice.share(file)) if own is None else entry_ranges(place, file["entries"])
        made += [replace(whole, entry_start=start, entry_stop=stop) for start, stop in ranges]
        size = sum(size for _, _, size in file["clusters"]) * choice.share(file)
        whole_bytes += [size if len(ranges) == 1 and own is None else math.inf] * len(ranges)
    first_file = manifest["files"][0]
    nothing = replace(whole, uri=first_file["uri"], name=first_file["ntuple"], identity=first_file["identity"])
    nothing = replace(nothing, columns=choices[first_file["schema"]].columns)
    is_known = computed is None and whole.cut is None
    empty = choices[first_file["schema"]].empty if is_known else nothing._read()[0]
    is_default = all(how.get(name) is None for name in ("step_size", "steps_per_file", "clusters_per_partition"))
    return Plan(made, empty, nothing, whole_bytes if is_default else None)


@dataclass(frozen=True)
class _Choice:
    """The selected fields of one schema."""

    columns: tuple[str, ...] | None
    empty: Any
    fields: list[str]
    """All top-level fields."""
    read: set[str]
    """Names of the top-level fields that are read."""
    union: Any = None
    """The common `pyarrow.Schema` if some files lack fields."""

    def share(self, file: dict[str, Any]) -> float:
        """Their share of the stored bytes of a file; subfields count as their top-level field."""
        own: int = sum(size for name, size in zip(self.fields, file["field_bytes"], strict=True) if name in self.read)
        total: int = sum(size for _, _, size in file["clusters"])
        return min(1.0, own / max(1, total))


def _choices(manifest: dict[str, Any], how: PartitionOptions, computed: tuple[str, ...] | None) -> dict[int, _Choice]:
    """The selected fields of each schema. All must agree."""
    where: dict[int, str] = {}
    for file in manifest["files"]:
        where.setdefault(file["schema"], f"{_core.display_name(file['uri'])}: ntuple '{file['ntuple']}'")
    schemas = {number: _manifest.arrow_schema(manifest, number) for number in where}
    if computed is not None:
        if any(how.get(name) is not None for name in ("names", "filter_name", "filter_typename")):
            raise InvalidArgumentError("give only one of expressions, names and filters")
        read = {path.partition(".")[0] for path in _names_in(computed, how.get("aliases"))}
        return {number: _Choice(None, None, schema.names, read) for number, schema in schemas.items()}
    binary_strings = how.get("binary_strings", False)
    if len(schemas) > 1 and how.get("fields") == "union":
        return _union(schemas, where, how)
    is_one = len(schemas) == 1 or how.get("names") is not None
    columns = {number: _columns(schema, where[number], how, is_one) for number, schema in schemas.items()}
    if not is_one:
        common = _field_sets.Common()
        for number, schema in schemas.items():
            common.add(_core.schema_fields(schema), columns[number])
        if (paths := common.paths()) is not None:
            columns = {number: [_select.escape_glob(path) for path in paths] for number in schemas}
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
        chosen = None if own is None else tuple(_shorten_patterns(schema, own, how))
        choices[number] = _Choice(chosen, empty, schema.names, set(empty.schema.names))
        if first is None:
            first = where[number], empty.schema
        elif (differs := _difference(first[1], empty.schema)) is not None:
            raise InvalidArgumentError(f"{where[number]} differs from {first[0]}: {differs}")
    return choices


def _difference(first: Any, other: Any) -> str | None:
    """How the selected fields of two files differ, and what to do; None if their arrays have the same type."""
    one, two = ({path: name for path, _, _, name, _, _ in _core.schema_fields(schema)} for schema in (first, other))
    if one.keys() != two.keys():
        text = _select.describe_difference(dict.fromkeys(one, ""), dict.fromkeys(two, ""))
        if set(first.names) != set(other.names):
            return f"{text}; select fields that all files have, or use fields='union' to get missing values"
        return f"{text}; select the fields that all files have by dotted paths"
    differing = [field.name for field in other if not _arrow.have_same_layout(first.field(field.name), field)]
    if not differing:
        return None
    name = differing[0]
    types = [str(schema.field(name).type) for schema in (first, other)]
    if types[0] == types[1]:
        types = [one[name], two[name]]
    return (
        f"field '{name}' has type {types[1]}, expected {types[0]}; leave the field out, read the files one by one with "
        "tupelo.iterate, or convert it with Ntuple.arrays(schema=…)"
    )


def _union(schemas: dict[int, Any], where: dict[int, str], how: PartitionOptions) -> dict[int, _Choice]:
    """The selected fields of each schema, for a union of all fields."""
    union = _field_sets.Union()
    read: dict[int, set[str]] = {}
    names = how.get("names")
    for name in names or []:
        if not any(_present_paths(schema, [name]) for schema in schemas.values()):
            raise NotFoundError(f"no field in any of {len(schemas)} schemas is named {short_repr(name)}")
    for number, schema in schemas.items():
        columns = _columns(schema, where[number], how, False)
        if names is not None:
            own: list[str] | None = _present_paths(schema, names)
        else:
            own = None if columns is None else [_select.escape_glob(path) for path in columns]
        chosen = None
        if own is None or own:
            chosen = _core.schema_choose(schema, own or [], how.get("binary_strings", False)).schema
        read[number] = set() if chosen is None else set(chosen.names)
        union.add(pa.schema([]) if chosen is None else chosen, where[number])
    target = union.schema()
    if len(target) == 0:
        raise NotFoundError(f"no field in any of {len(schemas)} files matches the filters")
    empty = _field_sets.add_missing_columns(pa.RecordBatch.from_arrays([], names=[]), target, 0)
    return {number: _Choice(None, empty, schema.names, read[number], target) for number, schema in schemas.items()}


def _present_paths(schema: Any, names: Iterable[str]) -> list[str]:
    """Patterns of the names and globs that match fields of a schema."""
    known = {path for path, *_ in _core.schema_fields(schema)}
    found = []
    for name in names:
        pattern = _select.escape_glob(name) if name in known else name
        try:
            _core.schema_choose(schema, [pattern], False)
        except NotFoundError:
            continue
        found.append(pattern)
    return found


def _names_in(expressions: Iterable[str], aliases: Mapping[str, str] | None) -> set[str]:
    """Paths of the fields in expressions and aliases; globs unchanged."""
    found: set[str] = set()
    for text in [*expressions, *(aliases or {}).values()]:
        try:
            found.update(_core.expression_names(text))
        except InvalidArgumentError:
            found.add(text)
    return found


def _columns(schema: Any, where: str, how: PartitionOptions, must_be_some: bool) -> list[str] | None:
    """Patterns of the selected fields; paths if filters select them; None for all."""
    names, filter_name, filter_typename = how.get("names"), how.get("filter_name"), how.get("filter_typename")
    if names is None and filter_name is None and filter_typename is None:
        return None
    known = {path: type_name for path, _, _, type_name, _, _ in _core.schema_fields(schema)}
    if filter_name is None and filter_typename is None:
        return [_select.escape_glob(name) if name in known else name for name in _select.string_list("names", names)]
    if names is not None:
        raise InvalidArgumentError("give names or filters, not both")
    fits_name, fits_type = _select.matcher(filter_name), _select.matcher(filter_typename)
    wanted = [path for path, type_name in known.items() if fits_name(path) and fits_type(type_name)]
    if not wanted and must_be_some:
        raise NotFoundError(f"{where}: none of {len(known)} fields matches the filters")
    return [_select.escape_glob(path) for path in wanted] if must_be_some else wanted


def _shorten_patterns(schema: Any, wanted: list[str], how: PartitionOptions) -> list[str]:
    """Replaces the names that glob filters selected by these globs, which are shorter."""
    filter_name = how.get("filter_name")
    globs = [filter_name] if isinstance(filter_name, str) else filter_name
    if how.get("filter_typename") is not None or not isinstance(globs, list | tuple):
        return wanted
    if not all(isinstance(glob, str) for glob in globs):
        return wanted
    # In a pattern, `*` matches within one name.
    patterns = [re.sub(r"\*+", "**", str(glob)) for glob in globs]
    return patterns if _is_same_choice(schema, patterns, wanted) else wanted


def _is_same_choice(schema: Any, one: list[str], other: list[str]) -> bool:
    """Whether patterns select the same fields."""
    try:
        first, second = (_core.schema_choose(schema, patterns, False).schema for patterns in (one, other))
    except Error:
        return False
    return bool(first.equals(second))
