"""Trees: the baskets of many branches are decoded by one request."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import awkward
from uproot.interpretation.jagged import AsJagged, JaggedArray
from uproot.interpretation.library import Awkward, NumPy, Pandas
from uproot.interpretation.numerical import AsDouble32, AsDtype, AsFloat16
from uproot.interpretation.objects import AsObjects, AsStridedObjects
from uproot.interpretation.strings import AsStrings, StringArray
from uproot.source.futures import TrivialExecutor

from .._base import arrow
from ..fields import _select
from ._handles import Handle, handles
from ._layouts import RefusedError, layout, lists, numbers, text

_LIBRARIES = (Awkward, NumPy, Pandas)
_NUMBERS = (AsDtype, AsDouble32, AsFloat16)


class Plan(NamedTuple):
    """How a branch is read."""

    interpretation: Any
    pattern: str
    """Selects its field."""
    names: list[str]
    """Names of the top-level field and of the subfields below it."""
    build: Callable[[Any, Any], Any]
    """Makes what uproot hands to ``Library.finalize`` from a `pyarrow.Field` and an array."""
    is_plain: bool
    """Whether that is a layout, or numbers or lists of numbers, for Awkward."""


class Read(NamedTuple):
    """A call of the function that turns baskets into arrays."""

    hasbranches: Any
    branches: dict[str, Any]
    """Branches with baskets by cache key."""
    interpretations: Mapping[str, Any]
    entry_start: int
    entry_stop: int
    library: Any
    options: Mapping[str, Any]
    num_entries: Mapping[str, int]
    """In a step of `iterate`: number of entries in the baskets of each branch."""


def check_call(read: Read, decompression: Any, interpretation: Any) -> None:
    """Raises `RefusedError` for calls that uproot does as a whole."""
    if type(read.library) not in _LIBRARIES:
        raise RefusedError(f"the library is {read.library!r}")
    if type(decompression) is not TrivialExecutor or type(interpretation) is not TrivialExecutor:
        raise RefusedError("an executor was given")
    if read.entry_start >= read.entry_stop:
        raise RefusedError("there is no entry")
    if read.hasbranches.file.closed:
        raise RefusedError("the file is closed")


def in_small_steps(read: Read) -> set[str]:
    """The branches that uproot reads in a step of `iterate`.

    A basket that spans many steps would be decompressed for each of them; uproot keeps it.
    """
    most = 2 * (read.entry_stop - read.entry_start)
    return {key for key in read.branches if read.num_entries.get(key, 0) > most}


def handle_of(read: Read) -> Handle:
    """The open tree of Tupelo."""
    tree = read.hasbranches.tree
    found = handles.get(tree.file, tree.object_path, tree.num_entries)
    if found.unreadable is None:
        raise RefusedError("it is not a tree")
    return found


def plan_of(handle: Handle, read: Read, key: str) -> Plan:
    """How a branch is read.

    Raises `RefusedError` if the result would not be identical.
    """
    branch, interpretation = read.branches[key], read.interpretations[key]
    known = (key, read.library.name)
    plan = handle.plans.get(known)
    if plan is None or not _is_same(plan[0], interpretation):
        try:
            plan = _make_plan(handle, branch, interpretation, read.library)
        except RefusedError as error:
            plan = (interpretation, str(error))
        handle.plans[known] = plan
    if not isinstance(plan, Plan):
        raise RefusedError(plan[1])
    return plan


def _is_same(one: Any, other: Any) -> bool:
    """Whether two interpretations give the same; those of objects depend on their file."""
    inner = one.content if type(one) is AsJagged else one
    return one is other or (type(inner) in _NUMBERS and type(one) is type(other) and bool(one == other))


def _make_plan(handle: Handle, branch: Any, interpretation: Any, library: Any) -> Plan:
    build = _builder(branch, interpretation, library)
    if type(library) is Pandas and not _is_flat(interpretation) and find_spec("awkward_pandas") is None:
        raise RefusedError("awkward-pandas is not installed")
    if branch.num_entries != handle.table.num_entries:
        raise RefusedError("its number of entries is not that of the tree")
    path = handle.field_paths.get(_number(handle, branch), "")
    if not path:
        names = branch.object_path.rpartition(":")[2]
        raise RefusedError((handle.unreadable or {}).get(names, "Tupelo has no values of it"))
    top = path if path in handle.columns else _top_level_name(handle, path)
    names = [top, *(path[len(top) + 1 :].split(".") if len(path) > len(top) else ())]
    is_plain = type(library) is Awkward and type(interpretation) is not AsStrings and not _has_members(interpretation)
    plan = Plan(interpretation, _select.escape_glob(path), names, build, is_plain)
    build(*column(plan, handle.empty, handle.columns))
    return plan


def _is_flat(interpretation: Any) -> bool:
    """Whether it gives one number for each entry, which is all that pandas holds by itself."""
    dtype = interpretation.to_dtype if type(interpretation) in _NUMBERS else None
    return dtype is not None and dtype.shape == () and dtype.names is None


def _has_members(interpretation: Any) -> bool:
    """Whether it gives numbers with names."""
    content = interpretation.content if type(interpretation) is AsJagged else interpretation
    dtype = getattr(content, "to_dtype", None)
    return dtype is not None and dtype.base.names is not None


def _number(handle: Handle, branch: Any) -> int:
    """The number of a branch of uproot among those of Tupelo."""
    parent = None if branch.parent is branch.tree else _number(handle, branch.parent)
    numbers_of = handle.branch_numbers
    found = numbers_of.get((parent, branch.name, branch.index))
    if found is None:
        raise RefusedError("Tupelo has no branch in its place")
    return found


def _top_level_name(handle: Handle, path: str) -> str:
    """The name of the top-level field above a path; names may have dots."""
    above = [name for name in handle.columns if path.startswith(f"{name}.")]
    if not above:
        raise RefusedError("Tupelo has no field above it")
    return max(above, key=len)


def _builder(branch: Any, interpretation: Any, library: Any) -> Callable[[Any, Any], Any]:
    """Makes the array from which ``Library.finalize`` makes the result, in exactly the types of uproot."""
    kind = type(interpretation)
    if kind in _NUMBERS:
        to_dtype = interpretation.to_dtype.newbyteorder("=")
        return lambda field, array: numbers(array, to_dtype)
    if kind is AsJagged and type(interpretation.content) in _NUMBERS:
        content = interpretation.content.to_dtype.newbyteorder("=")

        def jagged(field: Any, array: Any) -> Any:
            ends, items = lists(array)
            return JaggedArray(ends, numbers(items, content))

        return jagged
    if kind is AsStrings:

        def strings(field: Any, array: Any) -> Any:
            ends, data = text(array)
            return StringArray(ends, data if type(library) is Awkward else data.tobytes())

        return strings
    if kind in (AsJagged, AsObjects, AsStridedObjects):
        if type(library) is not Awkward:
            raise RefusedError("its values are objects of uproot")
        if interpretation is not branch.interpretation:
            raise RefusedError("an interpretation was given")
        try:
            form = interpretation.awkward_form(branch.file)
        except Exception as error:
            raise RefusedError(f"it has no Awkward form: {error}") from None
        return lambda field, array: layout(form, field, array)
    raise RefusedError(f"its interpretation is {kind.__name__}")


def column(plan: Plan, batch: Any, places: Mapping[str, int]) -> tuple[Any, Any]:
    """The values of a branch in a batch, as a `pyarrow.Field` and an array."""
    place = places[plan.names[0]]
    field, array = batch.schema.field(place), batch.column(place)
    return (field, array) if len(plan.names) == 1 else arrow.extract_subfield(field, array, plan.names[1:])


def arrays_of(handle: Handle, read: Read, plans: Mapping[str, Plan]) -> dict[str, Any]:
    """The arrays of these branches by cache key: one request to Tupelo."""
    batch = handle.read([plan.pattern for plan in plans.values()], read.entry_start, read.entry_stop)
    places = {name: number for number, name in enumerate(batch.schema.names)}
    finalize, found = read.library.finalize, {}
    has_docs = bool(read.options.get("ak_add_doc"))
    for key, plan in plans.items():
        made = plan.build(*column(plan, batch, places))
        if plan.is_plain and not has_docs:
            found[key] = awkward.Array(_plain(made))
            continue
        branch, options = read.branches[key], read.options
        found[key] = finalize(made, branch, plan.interpretation, read.entry_start, read.entry_stop, options)
    return found


def _plain(made: Any) -> Any:
    """The layout that ``Library.finalize`` makes, in a quarter of the time: files have thousands of branches."""
    if isinstance(made, JaggedArray):
        return awkward.contents.ListOffsetArray(awkward.index.Index64(made.offsets), _plain(made.content))
    if isinstance(made, awkward.contents.Content):
        return made
    layout = awkward.contents.NumpyArray(made)
    return layout if made.ndim == 1 else layout.to_RegularArray()
