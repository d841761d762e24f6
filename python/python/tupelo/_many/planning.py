"""Dividing the entries of many files into partitions."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

import pyarrow as pa

from .. import _core
from .._base import arrow
from .._base.checks import storage
from .._base.messages import short_repr
from .._base.sizes import parse_optional_bytes
from ..errors import Error, InvalidArgumentError, NotFoundError
from ..fields import _select
from ..fields._select import Filter
from ..reading._chain import FieldPolicy, check_policy
from ..reading._files import Files, InputNtuple, Steps, entry_ranges, resolve
from . import field_sets
from .manifest import Source, arrow_schema, build_manifest, load_manifest, select_files
from .partition import Partition
from .splitting import splitter

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PartitionOptions(TypedDict, total=False):
    """The keywords of `partitions`."""

    step_size: SupportsIndex | str | None
    steps_per_file: SupportsIndex | None
    clusters_per_partition: SupportsIndex | None
    names: str | Iterable[str] | None
    expressions: str | Iterable[str] | None
    cut: str | None
    aliases: Mapping[str, str] | None
    fields: FieldPolicy
    filter_name: Filter
    filter_typename: Filter
    manifest: Source | None
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
    fields: FieldPolicy = "common",
    filter_name: Filter = None,
    filter_typename: Filter = None,
    manifest: Source | None = None,
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
    check_policy(fields)
    remote = storage(how.get("storage_options"), how.get("cache"))
    found = [] if files is None else resolve(files, remote)
    steps: list[Steps] = [place.steps for place in found]
    if source is None:
        manifest, _ = build_manifest(found, remote)
        # The manifest has no credentials.
        for place, file in zip(found, manifest["files"], strict=True):
            file["uri"] = place.absolute_path if _core.is_remote(place.absolute_path) else file["uri"]
    else:
        manifest = load_manifest(source)
        steps = [None] * len(manifest["files"])
        if files is not None:
            manifest, steps = select_files(manifest, found)
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
            entry_start=0,
            entry_stop=0,
            columns=choice.columns,
            identity=file["identity"],
            page_checksums=how.get("page_checksums", _core.DEFAULT_PAGE_CHECKSUMS),
            memory_budget=parse_optional_bytes("memory_budget", how.get("memory_budget")),
            binary_strings=how.get("binary_strings", False),
            expressions=computed,
            cut=_select.cut(how.get("cut")),
            aliases=tuple(_select.aliases(how.get("aliases"))),
            storage=remote,
            schema=choice.union,
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
    schemas = {number: arrow_schema(manifest, number) for number in where}
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
        common = field_sets.Common()
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
            empty = _core.schema_choose(schema, own or [], binary_strings=binary_strings)
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
    one, two = ({field.path: field.type_name for field in _core.schema_fields(schema)} for schema in (first, other))
    if one.keys() != two.keys():
        text = _select.describe_difference(dict.fromkeys(one, ""), dict.fromkeys(two, ""))
        if set(first.names) != set(other.names):
            return f"{text}; select fields that all files have, or use fields='union' to get missing values"
        return f"{text}; select the fields that all files have by dotted paths"
    differing = [field.name for field in other if not arrow.have_same_layout(first.field(field.name), field)]
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
    union = field_sets.Union()
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
            chosen = _core.schema_choose(schema, own or [], binary_strings=how.get("binary_strings", False)).schema
        read[number] = set() if chosen is None else set(chosen.names)
        union.add(pa.schema([]) if chosen is None else chosen, where[number])
    target = union.schema()
    if len(target) == 0:
        raise NotFoundError(f"no field in any of {len(schemas)} files matches the filters")
    empty = field_sets.add_missing_columns(pa.RecordBatch.from_arrays([], names=[]), target, 0)
    return {number: _Choice(None, empty, schema.names, read[number], target) for number, schema in schemas.items()}


def _present_paths(schema: Any, names: Iterable[str]) -> list[str]:
    """Patterns of the names and globs that match fields of a schema."""
    known = {field.path for field in _core.schema_fields(schema)}
    found = []
    for name in names:
        pattern = _select.escape_glob(name) if name in known else name
        try:
            _core.schema_choose(schema, [pattern], binary_strings=False)
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
    known = {field.path: field.type_name for field in _core.schema_fields(schema)}
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
    patterns = [str(glob) for glob in globs]
    return patterns if _is_same_choice(schema, patterns, wanted) else wanted


def _is_same_choice(schema: Any, one: list[str], other: list[str]) -> bool:
    """Whether patterns select the same fields."""
    try:
        first, second = (
            _core.schema_choose(schema, patterns, binary_strings=False).schema for patterns in (one, other)
        )
    except Error:
        return False
    return bool(first.equals(second))
