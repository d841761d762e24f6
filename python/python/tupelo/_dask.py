"""Ntuples as Dask collections.

Dask is loaded when a collection is made, not before.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from . import _forms, _optional, _select
from ._awkward import to_awkward
from ._files import Files
from ._pandas import to_pandas
from ._partitions import Partition, Plan, Planning, plan
from .errors import Error, InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

LABEL = "tupelo"
"""What tasks that read are called."""


def dask(
    files: Files | None = None,
    *,
    allow_read_errors_with_report: bool | tuple[type[BaseException], ...] = False,
    **how: "Unpack[Planning]",
) -> Any:
    """The entries of many files as a `dask_awkward.Array`, one partition a `Partition`.

    ``files`` and all other keywords are those of `partitions`: ``step_size``, ``steps_per_file`` or
    ``clusters_per_partition``, ``names`` and filters, ``fields`` for files with different fields, ``expressions``,
    ``cut`` and ``aliases``, ``manifest`` with which no file is opened until workers read. Only the fields that a
    computation uses are read. With a ``cut``, divisions are not known.

    With ``allow_read_errors_with_report`` errors do not end a computation. The result is a pair of the array, in which
    partitions that could not be read have no entries, and a report: an array with one record per partition and the
    fields of `PartitionReport`. Compute both together, ``dask.compute(result, report)``, so that they describe the same
    reads. A tuple of exceptions instead of True allows only these.

    Raises `ImportError` where dask-awkward is not installed, and what `partitions` raises. Reading raises what
    `Partition.arrays` does.

    >>> import tupelo
    >>> with tupelo.recreate("dask.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
    >>> events = tupelo.dask("dask.root:Events")
    >>> print((events.x + events.y).compute(scheduler="sync"))
    [[2.5], [4.5, 5.5]]
    """
    _check("dask", how)
    dak = _optional.load("dask_awkward", "tupelo.dask", "dask-awkward")
    made = plan(files, **how)
    catch = (Error,) if allow_read_errors_with_report is True else tuple(allow_read_errors_with_report or ())
    read = _Read(to_awkward(made.empty).layout.form, None, catch)
    pieces, starts = _pieces(made)
    # A partition that fails has no entries, and what a cut leaves of one is not known.
    is_cut = made.nothing.cut is not None
    return dak.from_map(read, pieces, label=LABEL, divisions=None if catch or is_cut else tuple(starts))


def dask_dataframe(files: Files | None = None, **how: "Unpack[Planning]") -> Any:
    """The entries of many files as a `dask.dataframe.DataFrame`, one partition a `Partition`; for flat fields only.

    Arguments are those of `partitions`. The index counts entries through all files, and its divisions are known unless
    there is a ``cut``.
    Columns are those of ``library="pd"``; only those that a computation needs are read.

    Raises `InvalidArgumentError` where a field is not flat: a collection, an array, a record or a variant.
    `ImportError` where Dask is not installed, and what `partitions` raises.

    >>> import tupelo
    >>> with tupelo.recreate("frame.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "run": [1, 2]}
    >>> frame = tupelo.dask_dataframe("frame.root:Events")
    >>> float(frame[frame.run > 1].x.sum().compute(scheduler="sync"))
    2.5
    """
    _check("dask_dataframe", how)
    dd = _optional.load("dask.dataframe", "tupelo.dask_dataframe", "'dask[dataframe]'")
    made = plan(files, **how)
    for field in made.empty.schema:
        if pa.types.is_nested(field.type):
            raise InvalidArgumentError(
                f"field '{field.name}' has nested values ({field.type}), which a data frame has no columns for: choose "
                "others by names or filters, or use tupelo.dask"
            )
    pieces, starts = _pieces(made)
    divisions = (*starts[:-1], starts[-1] - 1) if made.partitions and made.nothing.cut is None else None
    meta = to_pandas(made.empty, range(0))
    return dd.from_map(_read_frame, pieces, starts[:-1], meta=meta, divisions=divisions, label=LABEL)


def _check(function: str, how: "Planning") -> None:
    """Raises for keywords that `partitions` does not have, as a function does that lists its own."""
    _select.refuse(function, {name: value for name, value in how.items() if name not in Planning.__annotations__})


def _pieces(made: Plan) -> tuple[list[Partition], list[int]]:
    """Partitions, at least one, and their first entries counted through all files, with the end."""
    pieces = made.partitions or [made.nothing]
    return pieces, list(accumulate((piece.num_entries for piece in pieces), initial=0))


def _read_frame(partition: Partition, start: int, columns: Iterable[str] | None = None) -> Any:
    """A partition as a data frame whose index begins with ``start``."""
    import pandas as pd

    if columns is not None:
        columns = list(columns)
        partition = _projected(partition, columns)
    frame = partition.arrays(library="pd")
    if partition.cut is None:
        frame.index = pd.RangeIndex(start, start + len(frame))
    else:
        frame.index = frame.index - partition.entry_start + start
    return frame if columns is None else frame[columns]


def _projected(partition: Partition, names: Iterable[str]) -> Partition:
    """The same of only these columns, by their dotted paths; where it computes some, perhaps of others too."""
    if partition.expressions is None:
        return partition.with_columns([_select.literal(name) for name in names])
    wanted = list(names)

    def is_needed(text: str) -> bool:
        # What a glob stands for is not known here.
        return _select.is_glob(text) or any(
            name == text or name.startswith(f"{text}.") or text.startswith(f"{name}.") for name in wanted
        )

    return replace(partition, expressions=tuple(filter(is_needed, partition.expressions)))


class _Read:
    """Reads partitions as Awkward arrays: what dask-awkward calls an IO function, and asks which columns it needs."""

    # Of dask-awkward's protocol; there is none here.
    behavior = None
    attrs = None

    def __init__(self, form: Any, columns: tuple[str, ...] | None, catch: tuple[type[BaseException], ...]) -> None:
        self.form = form
        self.columns = columns
        self.catch = catch

    def __call__(self, partition: Partition) -> Any:
        if not self.catch:
            return self._read(partition)
        import awkward as ak

        array, failure = self.mock_empty(), None
        try:
            array = self._read(partition)
        except self.catch as error:
            failure = error
        # With the types of a row in which everything is known, so that rows of all partitions have the same.
        known = {"cluster": 0, "column": "", "error": "", "cause": ""}
        row = vars(partition._report(failure))
        return array, ak.Array([row, row | known])[:1]

    def _read(self, partition: Partition) -> Any:
        import awkward as ak

        if self.columns is None:
            return self._arrays(partition)
        if not self.columns:
            layout = ak.contents.RecordArray([], [], length=partition._count())
        else:
            layout = self._arrays(_projected(partition, self.columns)).layout
        return ak.Array(_filled(self.form, layout))

    def _arrays(self, partition: Partition) -> Any:
        """What a partition has of its columns."""
        return partition.arrays()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return LABEL, self.form.to_json(), self.columns, [str(one) for one in self.catch]

    @property
    def return_report(self) -> bool:
        """Whether a call gives a pair of array and report."""
        return bool(self.catch)

    def mock(self) -> Any:
        """An array without data."""
        import awkward as ak

        return ak.typetracer.typetracer_from_form(self.form)

    def mock_empty(self, backend: str = "cpu") -> Any:
        """An array without entries."""
        import awkward as ak

        return ak.to_backend(self.form.length_zero_array(highlevel=False), backend, highlevel=True)

    def prepare_for_projection(self) -> tuple[Any, Any, Any]:
        """An array without data that reports what is touched, the report, and the form with the keys in the report."""
        import awkward as ak

        form = _forms.with_form_keys(self.form)
        meta, report = ak.typetracer.typetracer_with_report(form, highlevel=True, buffer_key=_forms.BUFFER_KEY)
        return meta, report, form

    def necessary_columns(self, report: Any, state: Any) -> frozenset[str]:
        """The fields, as dotted paths, of which something was touched."""
        touched = {_forms.parse_buffer_key(key)[0] for key in _forms.required_buffers(state, report)}
        leaves = _leaves(state)
        wanted = {leaves[key][0] for key in touched if len(leaves[key]) == 1}
        # Forms with fewer leaves first: the offsets of a list come with any of its members.
        for key in sorted(touched, key=lambda key: (len(leaves[key]), int(key))):
            if not wanted.intersection(leaves[key]):
                wanted.add(min(leaves[key], key=lambda path: path.count(".")))
        return frozenset(wanted)

    def project(self, report: Any, state: Any) -> "_Read":
        """The same that reads only what is needed."""
        return self.project_manually(self.necessary_columns(report, state))

    def project_manually(self, columns: Iterable[str]) -> "_Read":
        """The same that reads only these columns."""
        wanted = set(columns)
        form = _forms.with_form_keys(self.form)
        if wanted.issuperset(_leaves(form)[form.form_key]):
            return self
        made = copy(self)
        made.columns = tuple(sorted(wanted))
        return made


def _leaves(form: Any) -> dict[str, tuple[str, ...]]:
    """For every key in a form, the dotted paths of the fields without members that it is, or has below."""
    found: dict[str, tuple[str, ...]] = {}

    def visit(form: Any, path: str, is_whole: bool) -> tuple[str, ...]:
        """``is_whole`` says that what is below has no path of its own."""
        is_whole = is_whole or _is_whole(form)
        if form.is_record and not is_whole:
            members = (visit(form.content(name), f"{path}.{name}" if path else name, False) for name in form.fields)
            paths = tuple(leaf for leaves in members for leaf in leaves) or (path,)
        else:
            below = [visit(content, path, is_whole) for content in _forms.contents_of(form)]
            paths = below[0] if below and not is_whole else (path,)
        found[form.form_key] = paths
        return paths

    visit(form, "", False)
    return found


def _is_whole(form: Any) -> bool:
    """Whether the values are read all or not at all: tuples, whose members have no names, and variants."""
    return bool(form.is_union or (form.is_record and form.is_tuple) or (form.is_indexed and not form.is_option))


def _filled(form: Any, layout: Any) -> Any:
    """A layout with all fields of the form: those that were not read have names and no data.

    A computation that does not need them may still carry them along.
    """
    if _is_whole(form) or form.is_numpy or form.is_unknown:
        return layout
    if not form.is_record:
        return layout.copy(content=_filled(form.content, layout.content))
    import awkward as ak

    there = set(layout.fields)
    lacking = [name for name in form.fields if name not in there]
    empty = ak.forms.RecordForm([form.content(name) for name in lacking], lacking)
    placeholders = _forms.placeholder_record(empty, layout.length)
    contents = [
        _filled(form.content(name), layout.content(name))
        if name in there
        else placeholders.contents[lacking.index(name)]
        for name in form.fields
    ]
    return ak.contents.RecordArray(contents, form.fields, length=layout.length, parameters=form.parameters)
