"""RNTuples: the fields of a call are decoded by one request."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import awkward as ak
import uproot
from uproot.source.futures import TrivialExecutor

from .._base import arrow
from ..fields import _select
from ._handles import Handle, handles
from ._layouts import RefusedError, layout


class Column(NamedTuple):
    """A column of the result."""

    form: Any
    names: list[str]
    """Names of the field in the file: of the top-level one and those below."""


class Read(NamedTuple):
    """A call of ``arrays``."""

    fields: Any
    """The ntuple or the field."""
    form: Any
    """Of all columns."""
    field_path: list[str] | None
    columns: dict[str, Column]
    entry_start: int
    entry_stop: int
    library: Any
    options: dict[str, Any]
    """All arguments by name."""


def prepare(original: Callable[..., Any], fields: Any, options: dict[str, Any]) -> Read:
    """A call of ``arrays`` with these arguments.

    Raises `RefusedError` for calls that uproot does as a whole, errors among them.
    """
    ntuple = fields.ntuple
    if options["virtual"]:
        # Virtual arrays may come from the cache that earlier reads of uproot filled, after the file was closed.
        earlier = _earlier(ntuple)
        earlier.has_virtual = True
        while earlier.calls:
            original(**earlier.calls.popleft())
    if _earlier(ntuple).has_virtual:
        raise RefusedError("it has virtual arrays, which share a cache with other reads")
    for name, expected in _ONLY.items():
        value = options.get(name, expected[0])
        # `concatenate` and `iterate` pass on the executors of their files.
        if value not in expected and type(value) is not TrivialExecutor:
            raise RefusedError(f"{name} was given")
    if options["expressions"] is not None:
        if options["filter_name"] is not uproot._util.no_filter:
            raise RefusedError("both expressions and filter_name were given")
        options = {**options, "expressions": None, "filter_name": options["expressions"]}
    if ntuple.file.closed:
        raise RefusedError("the file is closed")
    library = uproot.interpretation.library._regularize_library(options["library"])
    start, stop = uproot.behaviors.TBranch._regularize_entries_start_stop(
        fields.num_entries, options["entry_start"], options["entry_stop"]
    )
    if start >= stop:
        raise RefusedError("there is no entry")
    which = {name: options[name] for name in ("filter_name", "filter_typename", "filter_field", "ak_add_doc")}
    form, field_path = fields.to_akform(**which)
    columns = dict(_columns(fields, form))
    return Read(fields, form, field_path, columns, start, stop, library, options)


class _Earlier:
    """The last calls for an ntuple of uproot that Tupelo served, and whether it has virtual arrays."""

    def __init__(self) -> None:
        self.calls: deque[dict[str, Any]] = deque(maxlen=8)
        self.has_virtual = False

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled ntuple has no arrays.
        return _Earlier, ()


def _earlier(ntuple: Any) -> _Earlier:
    found: _Earlier = ntuple.__dict__.setdefault("_tupelo_earlier", _Earlier())
    return found


def remember(read: Read) -> None:
    """Keeps a call that was served, for virtual arrays; see `prepare`."""
    if read.options["array_cache"] == "inherit":
        _earlier(read.fields.ntuple).calls.append({"self": read.fields, **read.options})


_ONLY: Mapping[str, tuple[Any, ...]] = {
    "access_log": (None,),
    "backend": ("cpu",),
    "interpreter": ("cpu",),
    "array_cache": ("inherit", None),
    "decompression_executor": (None,),
    "interpretation_executor": (None,),
    "filter_branch": (getattr(uproot._util, "unset", None),),
}
"""Arguments that Tupelo serves; others are left to uproot."""


def _columns(fields: Any, form: Any) -> Iterator[tuple[str, Column]]:
    for name, content in zip(form.fields, form.contents, strict=True):
        if fields is fields.ntuple:
            yield name, Column(content, [name])
            continue
        chain = [fields]
        while not chain[0].top_level:
            chain.insert(0, chain[0].parent)
        # The field itself, or the outermost collection above it.
        role = uproot.const.RNTupleFieldRole.COLLECTION
        lists = [n for n, one in enumerate(chain, 1) if one.record.struct_role == role or one.record.repetition > 0]
        yield name, Column(content, [one.record.field_name for one in chain[: lists[0] if lists else None]])


def handle_of(read: Read) -> Handle:
    """The open ntuple of Tupelo."""
    ntuple = read.fields.ntuple
    found = handles.get(ntuple.file, ntuple.object_path, ntuple.num_entries)
    if found.unreadable is not None:
        raise RefusedError("it is a tree")
    return found


def patterns_of(handle: Handle, column: Column) -> list[str]:
    """What to read for a column.

    Raises `RefusedError` if its field is not known to give an identical array.
    """
    known = ".".join(column.names)
    plan = handle.plans.get(known)
    if plan is None or plan[0] != column.form:
        try:
            plan = column.form, _make_patterns(handle, column)
        except RefusedError as error:
            plan = column.form, str(error)
        handle.plans[known] = plan
    if isinstance(plan[1], str):
        raise RefusedError(plan[1])
    patterns: list[str] = plan[1]
    return patterns


def _make_patterns(handle: Handle, column: Column) -> list[str]:
    place = handle.columns.get(column.names[0])
    if place is None:
        raise RefusedError("Tupelo does not read it")
    found = _extract(handle.empty, place, column)
    layout(column.form, *found)
    path = ".".join(column.names)
    patterns = [path] if (parts := _parts(column.form, found[0], path)) is None else parts
    return [_select.escape_glob(one) for one in patterns]


def _extract(batch: Any, place: int, column: Column) -> tuple[Any, Any]:
    field, array = batch.schema.field(place), batch.column(place)
    return arrow.extract_subfield(field, array, column.names[1:])


def _parts(form: Any, field: Any, path: str) -> list[str] | None:
    """The paths of what a form has of a field; None for everything."""
    if isinstance(form, ak.forms.RecordForm):
        if form.is_tuple:
            wanted = dict(zip(field.type.names, form.contents, strict=True))
        else:
            wanted = dict(zip(form.fields, form.contents, strict=True))
        return _members(wanted, field, path)
    if hasattr(form, "content") and field.type.num_fields == 1:
        return _parts(form.content, field.type.field(0), path)
    if isinstance(form, ak.forms.IndexedOptionForm):
        return _parts(form.content, field, path)
    return None


def _members(wanted: Mapping[str, Any], field: Any, path: str) -> list[str] | None:
    parts: list[str] = []
    is_whole = True
    for number in range(field.type.num_fields):
        member = field.type.field(number)
        below = f"{path}.{member.name}"
        if member.name in wanted:
            found = _parts(wanted[member.name], member, below)
        elif member.name.startswith(":_"):
            found = _members(wanted, member, below)
        else:
            found = []
        is_whole &= found is None
        parts += [below] if found is None else found
    return None if is_whole else parts


def contents_of(handle: Handle, read: Read, patterns: Mapping[str, list[str]]) -> dict[str, Any]:
    """The layouts of these columns by name: one request to Tupelo."""
    wanted = list(dict.fromkeys(one for several in patterns.values() for one in several))
    batch = handle.read(wanted, read.entry_start, read.entry_stop)
    places = {name: number for number, name in enumerate(batch.schema.names)}
    found = {}
    for name in patterns:
        column = read.columns[name]
        found[name] = layout(column.form, *_extract(batch, places[column.names[0]], column))
    return found


def rest_of(original: Callable[..., Any], read: Read, names: set[str]) -> dict[str, Any]:
    """The layouts of these columns, read by uproot."""
    options = {**read.options, "library": "ak", "how": None}
    if read.fields is not read.fields.ntuple:
        raise AssertionError("a field has one column")
    is_wanted = uproot._util.regularize_filter(options["filter_field"])

    def of_rest(field: Any) -> bool:
        if not is_wanted(field):
            return False
        while not field.top_level:
            field = field.parent
        return field.name in names

    arrays = original(read.fields, **{**options, "filter_field": of_rest})
    return {name: arrays[name].layout for name in arrays.fields}


def result_of(read: Read, contents: Mapping[str, Any]) -> Any:
    """What ``arrays`` returns for these columns: the last steps are those of uproot."""
    length = read.entry_stop - read.entry_start
    ordered = [contents[name] for name in read.form.fields]
    record = ak.contents.RecordArray(ordered, read.form.fields, length=length, parameters=read.form.parameters)
    arrays = ak.Array(record)
    for name in (read.field_path or [])[:-1]:
        arrays = arrays[name if name in arrays.fields else "0"]
    columns, library, how = arrays.fields, read.library, read.options["how"]
    if library.name in ("np", "pd"):
        arrays = {name: _to_numpy(name, arrays[name]) for name in columns}
        if library.name == "pd":
            pandas = uproot.extras.pandas()
            index = uproot.interpretation.library._pandas_basic_index(
                pandas, read.entry_start, read.entry_start + length
            )
            arrays = pandas.DataFrame(arrays, index=index)
    return arrays if how is None else library.group(arrays, [(name, None) for name in columns], how)


def _to_numpy(name: str, array: Any) -> Any:
    try:
        return array.to_numpy()
    except (ValueError, TypeError):
        try:
            return uproot.behaviors.RNTuple._awkward_to_numpy(array)
        except Exception:
            raise ValueError(f"Field {name} cannot be converted to NumPy/Pandas") from None
