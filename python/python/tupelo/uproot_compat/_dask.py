"""Ntuples of many files as Dask collections, partitioned like uproot."""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

from .. import _dask, _field_sets, _forms, _optional, _select
from .._awkward import AddDoc
from .._files import Files
from .._libraries import to_library
from .._partitions import OPEN_NTUPLES, Partition
from .._select import Filter
from ..errors import ChangedFileError, Error, InvalidArgumentError, NotFoundError, UnsupportedError
from ._fields import FieldFilter, awkward_options
from ._many import Part, common_paths, parts_of, union_schema
from ._options import check_options, library_name
from ._reading import open
from ._table import Table
from ._trees import TTree

Catch = tuple[type[BaseException], ...]
"""Errors that do not abort a computation."""


def dask(
    files: Files | Table,
    *,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    filter_field: FieldFilter = None,
    filter_branch: FieldFilter = None,
    recursive: bool = True,
    full_paths: bool = False,
    step_size: Any = None,
    steps_per_file: Any = None,
    library: str = "ak",
    ak_add_doc: AddDoc = False,
    allow_missing: bool = False,
    open_files: bool = True,
    form_mapping: Callable[[Any], tuple[Any, Any]] | None = None,
    allow_read_errors_with_report: bool | tuple[type[BaseException], ...] = False,
    known_base_form: Any = None,
    fields: _field_sets.Fields = "common",
    **options: Any,
) -> Any:
    """The entries of many files as a `dask_awkward.Array`; `tupelo.dask` plans by clusters instead.

    ``files`` are those of `iterate`, or open ntuples. If they have steps, each step is a partition. Otherwise a
    partition has ``step_size`` entries, or bytes of memory (``"100 MB"``), or a file has ``steps_per_file`` partitions
    of equal size (default 1). Filters select fields; ``fields`` is that of `iterate`.

    ``form_mapping`` is the protocol of uproot that coffea uses to create its events. ``open_files``, ``recursive`` and
    ``full_paths`` have no effect: files are opened for planning, and keys are paths.
    """
    if library_name(library) != "ak":
        raise UnsupportedError("dask() returns Awkward arrays; use tupelo.dask_dataframe() for data frames")
    check_options("dask", options)
    dak = _optional.load("dask_awkward", "uproot_compat.dask", "dask")
    step_size, steps_per_file = _unset_to_none(step_size), _unset_to_none(steps_per_file)
    if step_size is not None and steps_per_file is not None:
        raise TypeError("give step_size or steps_per_file, not both")
    parts = list(parts_of(files, allow_missing))
    if not parts:
        raise NotFoundError("the list of files is empty")
    if any(part.is_divided for part in parts) and not (step_size is None and steps_per_file is None):
        raise TypeError("step_size and steps_per_file cannot be combined with files that have 'steps'")
    ntuples = [part.source.ntuple for part in parts]
    filters: dict[str, Any] = {"filter_name": filter_name, "filter_typename": filter_typename}
    filters["filter_field"] = filter_field or filter_branch
    _field_sets.check(fields)
    if fields == "union" and form_mapping is not None:
        raise UnsupportedError("form_mapping does not support fields='union'")
    union = union_schema(ntuples, filters) if fields == "union" else None
    paths = None if union is not None else common_paths(ntuples, filters)
    paths = paths or [field.core_path for field in ntuples[0].fields]
    partitions = _partitions(parts, paths, step_size, steps_per_file)
    if union is not None:
        partitions = [replace(partition, columns=None, schema=union) for partition in partitions]
    catch = (Error,) if allow_read_errors_with_report is True else tuple(allow_read_errors_with_report or ())
    if form_mapping is None:
        tree = ntuples[0]
        read: Any = (
            _TreeRead.of_tree(tree, paths, ak_add_doc, catch)
            if isinstance(tree, TTree)
            else _Read.of(partitions[0], ak_add_doc, catch)
        )
    else:
        form = known_base_form if known_base_form is not None else _base_form(ntuples[0], paths, ak_add_doc)
        mapped, info = form_mapping(form)
        read = _MappedRead(mapped, info, frozenset(form.fields), ak_add_doc, catch)
    starts = accumulate((partition.num_entries for partition in partitions), initial=0)
    return dak.from_map(read, partitions, label="from-tupelo", divisions=None if catch else tuple(starts))


def _unset_to_none(value: Any) -> Any:
    """Replaces uproot's marker for an omitted keyword by None."""
    return None if type(value).__name__ == "_Unset" else value


def _partitions(parts: list[Part], paths: list[str], step_size: Any, steps_per_file: Any) -> list[Partition]:
    """The partitions, at least one."""
    patterns = tuple(_select.escape_glob(path) for path in paths)
    first = parts[0].source
    if isinstance(step_size, str):
        wanted = set(paths)
        step_size = first.num_entries_for(step_size, filter_field=lambda field: field.core_path in wanted)
    elif step_size is not None and (step_size := int(step_size)) < 1:
        raise InvalidArgumentError(
            f"expected step_size as a positive number of entries or a size in bytes, not {step_size!r}"
        )
    made: list[Partition] = []
    for part in parts:
        ntuple = part.source.ntuple
        # The name of a file object may not exist as a file; reading reports that.
        place = ntuple.core._location.absolute_path or ntuple.file_path, ntuple.object_path.strip("/")
        identity = ntuple.core._core.identity()
        for start, stop in _ranges(part, step_size, steps_per_file):
            made.append(Partition(*place, start, stop, patterns, identity))
    return made or [Partition(*place, 0, 0, patterns, identity)]


def _ranges(part: Part, step_size: int | None, steps_per_file: Any) -> list[tuple[int, int]]:
    """The entries of the partitions of a file."""
    if part.is_divided:
        return [(start, stop) for start, stop in part.ranges if start < stop]
    count = part.source.num_entries
    step = max(1, -(-count // max(1, int(steps_per_file or 1)))) if step_size is None else step_size
    return [(start, min(start + step, count)) for start in range(0, count, step)]


class _Read(_dask._Read):
    """Reads partitions as `RNTuple.arrays` does."""

    style: Any

    @classmethod
    def of(cls, partition: Partition, ak_add_doc: AddDoc, catch: Catch) -> "_Read":
        """The reader of all partitions, created from the first one."""
        style = awkward_options(ak_add_doc)
        batch, entries = replace(partition, entry_stop=partition.entry_start)._read()
        made = cls(to_library(batch, "ak", entries, style).layout.form, None, catch)
        made.style = style
        return made

    def necessary_columns(self, report: Any, state: Any) -> frozenset[str]:
        """The top-level fields of which something was touched, as in uproot; fewer subfields may be read."""
        return frozenset(path.partition(".")[0] for path in super().necessary_columns(report, state))

    def project(self, report: Any, state: Any) -> _dask._Read:
        """A copy that reads only the necessary columns."""
        return self.project_manually(super().necessary_columns(report, state))

    def _arrays(self, partition: Partition) -> Any:
        batch, entries = partition._read()
        return to_library(batch, "ak", entries, self.style)


class _TreeRead(_dask._Read):
    """Reads partitions of a tree as `TTree.arrays` does: a column is a branch."""

    paths: frozenset[str]
    add_doc: AddDoc

    @classmethod
    def of_tree(cls, tree: TTree, paths: Iterable[str], add_doc: AddDoc, catch: Catch) -> "_TreeRead":
        """The reader of branches, given by the paths of their fields."""
        wanted = frozenset(paths)
        form, _ = tree.to_akform(filter_field=lambda branch: branch.core_path in wanted, ak_add_doc=add_doc)
        made = cls(form, None, catch)
        made.paths, made.add_doc = wanted, add_doc
        return made

    def necessary_columns(self, report: Any, state: Any) -> frozenset[str]:
        """The branches of which something was touched."""
        touched = {_forms.parse_buffer_key(key)[0] for key in _forms.required_buffers(state, report)}
        return frozenset(
            name for name in state.fields if any(form.form_key in touched for form in _forms.walk(state.content(name)))
        )

    def project_manually(self, columns: Iterable[str]) -> "_TreeRead":
        """A copy that reads only these branches."""
        made = copy(self)
        made.columns = tuple(sorted(columns))
        return made

    def _arrays(self, partition: Partition) -> Any:
        names = self.form.fields if self.columns is None else self.columns
        wanted = frozenset(names)
        return _opened(partition).arrays(
            filter_field=lambda branch: branch.core_path in self.paths and branch.name in wanted,
            entry_start=partition.entry_start,
            entry_stop=partition.entry_stop,
            ak_add_doc=self.add_doc,
        )


class _MappedRead(_dask._Read):
    """Reads partitions with a form mapping, following uproot's protocol."""

    def __init__(self, form: Any, info: Any, keys: frozenset[str], add_doc: AddDoc, catch: Catch) -> None:
        super().__init__(form, None, catch)
        self.info = info
        self.keys = keys
        self.add_doc = add_doc

    @property
    def behavior(self) -> Any:  # type: ignore[override]
        """The behavior of the arrays."""
        return self.info.behavior

    def _arrays(self, partition: Partition) -> Any:
        import awkward as ak

        start, stop = partition.entry_start, partition.entry_stop
        options = {"ak_add_doc": self.add_doc}
        loaded = self.info.load_buffers(_opened(partition), self.keys, start, stop, None, None, options)
        buffers = {}
        for key, dtype in self.form.expected_from_buffers(buffer_key=self.info.buffer_key).items():
            if self.info.keys_for_buffer_keys(frozenset([key])) <= self.keys:
                buffers[key] = loaded[key]
            else:
                buffers[key] = _forms.placeholder(dtype)
        return ak.from_buffers(
            self.form, stop - start, buffers, behavior=self.behavior, buffer_key=self.info.buffer_key
        )

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "tupelo-mapped", self.form.to_json(), sorted(self.keys), [str(one) for one in self.catch]

    def mock(self) -> Any:
        """An array without data."""
        import awkward as ak

        return ak.typetracer.typetracer_from_form(self.form, highlevel=True, behavior=self.behavior)

    def mock_empty(self, backend: str = "cpu") -> Any:
        """An array without entries."""
        import awkward as ak

        nothing = self.form.length_zero_array(highlevel=False)
        return ak.to_backend(nothing, backend, highlevel=True, behavior=self.behavior)

    def prepare_for_projection(self) -> tuple[Any, Any, Any]:
        """An array without data that reports what is touched, the report, and no further state."""
        import awkward as ak

        key = self.info.buffer_key
        meta, report = ak.typetracer.typetracer_with_report(
            self.form, highlevel=True, behavior=self.behavior, buffer_key=key
        )
        return meta, report, None

    def necessary_columns(self, report: Any, state: Any) -> frozenset[str]:
        """The fields of which something was touched."""
        touched = frozenset(
            _forms.required_buffers(self.form, report, self.info.buffer_key, self.info.parse_buffer_key)
        )
        found: frozenset[str] = self.info.keys_for_buffer_keys(touched) & self.keys
        return found

    def project_manually(self, columns: Iterable[str]) -> "_MappedRead":
        """A copy that reads only these fields."""
        made = copy(self)
        made.keys = frozenset(columns)
        return made


def _base_form(ntuple: Table, paths: list[str], ak_add_doc: AddDoc) -> Any:
    """The form of the selected fields; top-level fields have the parameters of ``ak_add_doc``."""
    import awkward as ak

    chosen = set(paths)
    form, _ = ntuple.to_akform(filter_field=lambda field: field.core_path in chosen)
    wanted = {"__doc__": "description"} if ak_add_doc is True else dict(ak_add_doc or {})
    contents = []
    for name in form.fields:
        field, content = ntuple[name], form.content(name)
        said = {
            key: getattr(field, "description" if attribute == "title" else attribute)
            for key, attribute in wanted.items()
        }
        contents.append(content.copy(parameters={**content.parameters, **said}))
    parameters = {"__doc__": ntuple.description} if "__doc__" in wanted else {}
    return ak.forms.RecordForm(contents, form.fields, parameters={**parameters, "typenames": ntuple.typenames()})


def _opened(partition: Partition) -> Table:
    return _cached_ntuple(partition.uri, partition.name, partition.identity, partition._file_state())


@lru_cache(maxsize=OPEN_NTUPLES)
def _cached_ntuple(path: str, name: str, identity: str, state: tuple[int, int, int]) -> Table:
    ntuple = open({path: name})
    assert isinstance(ntuple, Table)
    if ntuple.core._core.identity() != identity:
        shown = ntuple.file_path
        raise ChangedFileError(f"{shown}: ntuple '{name}' has changed since the partitions were planned; plan again")
    return ntuple
