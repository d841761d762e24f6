"""Ntuples as Dask collections.

Dask is imported on first use.
"""

import builtins
import math
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .._base import optional
from .._from_arrow import forms
from .._from_arrow.awkward import to_awkward
from .._from_arrow.pandas import to_pandas
from ..errors import Error, InvalidArgumentError
from ..fields import _select
from ..histogram import _filling
from ..reading._files import Files
from .partition import Partition
from .planning import PartitionOptions, Plan, plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

LABEL = "tupelo"
"""Label of the tasks that read."""

GROUP_BYTES = 8 << 20
"""Stored bytes up to which small files share a partition of a collection (8 MiB)."""

GROUP_FILES = 64
"""Maximum number of files that share a partition: opening more takes longer than a task should."""

MIN_PARTITIONS = 32
"""Files share partitions only if there are more than this many, so that many workers have something to do."""

SUMMED = 8
"""How many histograms a task adds."""

Group = tuple[Partition, ...]
"""What a task reads: a `Partition`, or those of several small files."""


def dask(
    files: Files | None = None,
    *,
    allow_read_errors_with_report: bool | tuple[type[BaseException], ...] = False,
    **how: "Unpack[PartitionOptions]",
) -> Any:
    """The entries of many files as a `dask_awkward.Array`, one partition a `Partition`, or several of small files.

    Of more than 32 files, consecutive ones that are read whole share a partition up to 8 MiB and 64 files, unless
    ``step_size``, ``steps_per_file``, ``clusters_per_partition`` or ``steps`` of the files say how to divide them.

    ``files`` and all other keywords are those of `partitions`: ``step_size``, ``steps_per_file`` or
    ``clusters_per_partition``, ``names`` and filters, ``fields`` for files with different fields, ``expressions``,
    ``cut`` and ``aliases``, and ``manifest``, with which no file is opened until workers read. Only the fields that a
    computation uses are read. With a ``cut``, divisions are unknown.

    With ``allow_read_errors_with_report`` errors do not abort a computation. The result is a pair of the array, in
    which what could not be read is left out, and a report: an array with one record per `Partition` and the fields of
    `PartitionReport`. Compute both together, ``dask.compute(result, report)``, so that they describe the same reads. A
    tuple of exception classes instead of True tolerates only these.

    Raises `ImportError` if dask-awkward is not installed, and the errors of `partitions`. Computing raises the errors
    of `Partition.arrays`.

    >>> import tupelo
    >>> with tupelo.recreate("dask.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "y": [[1], [2, 3]]}
    >>> events = tupelo.dask("dask.root:Events")
    >>> print((events.x + events.y).compute(scheduler="sync"))
    [[2.5], [4.5, 5.5]]
    """
    _check_keywords("dask", how)
    dak = optional.load("dask_awkward", "tupelo.dask", "dask-awkward")
    made = plan(files, **how)
    catch = (Error,) if allow_read_errors_with_report is True else tuple(allow_read_errors_with_report or ())
    read = _Read(to_awkward(made.empty).layout.form, None, catch)
    groups, starts = _groups_and_starts(made)
    # The number of entries after failures and cuts is unknown.
    is_cut = made.nothing.cut is not None
    return dak.from_map(read, groups, label=LABEL, divisions=None if catch or is_cut else tuple(starts))


def dask_dataframe(files: Files | None = None, **how: "Unpack[PartitionOptions]") -> Any:
    """The entries of many files as a `dask.dataframe.DataFrame`; for flat fields only. Partitions are those of `dask`.

    Arguments are those of `partitions`. The index counts entries through all files; its divisions are known unless
    there is a ``cut``. Columns are those of ``library="pd"``; only those that a computation needs are read.

    Raises `InvalidArgumentError` for fields that are not flat (collections, arrays, records, variants), `ImportError`
    if Dask is not installed, and the errors of `partitions`.

    >>> import tupelo
    >>> with tupelo.recreate("frame.root") as file:
    ...     file["Events"] = {"x": [1.5, 2.5], "run": [1, 2]}
    >>> frame = tupelo.dask_dataframe("frame.root:Events")
    >>> float(frame[frame.run > 1].x.sum().compute(scheduler="sync"))
    2.5
    """
    _check_keywords("dask_dataframe", how)
    dd = optional.load("dask.dataframe", "tupelo.dask_dataframe", "'dask[dataframe]'")
    made = plan(files, **how)
    for field in made.empty.schema:
        if pa.types.is_nested(field.type):
            raise InvalidArgumentError(
                f"field '{field.name}' has the nested type {field.type}, which a data frame cannot hold; select "
                "other fields by names or filters, or use tupelo.dask"
            )
    groups, starts = _groups_and_starts(made)
    divisions = (*starts[:-1], starts[-1] - 1) if made.partitions and made.nothing.cut is None else None
    meta = to_pandas(made.empty, range(0))
    return dd.from_map(_read_frames, groups, starts[:-1], meta=meta, divisions=divisions, label=LABEL)


def dask_hist(
    files: Files | None,
    *expressions: str | Mapping[str, Any],
    bins: Any = _filling.DEFAULT_BINS,
    range: Any = None,
    cut: str | None = None,
    weight: str | None = None,
    sample: str | None = None,
    aliases: Mapping[str, str] | None = None,
    **how: Any,
) -> Any:
    """One histogram of the entries of many files, or several in one pass, as a `dask.delayed.Delayed`.

    Each task fills the histograms from a partition of `dask`; eight at a time are added. Computing returns what
    `Ntuple.hist` returns, which explains the arguments; every axis needs a ``range``, edges, or an axis that does not
    grow. ``files`` and the other keywords are those of `partitions`.

    Raises `InvalidArgumentError` for axes without a range, `ImportError` if Dask is not installed, and the errors of
    `Ntuple.hist` and `partitions`.

    >>> import tupelo
    >>> for run in 1, 2:
    ...     with tupelo.recreate(f"dask_hist{run}.root") as file:
    ...         file["Events"] = {"x": [run, 10 * run]}
    >>> histogram = tupelo.dask_hist("dask_hist?.root:Events", "x", bins=2, range=(0, 20), cut="x < 20")
    >>> histogram.compute(scheduler="sync").values().tolist()
    [2.0, 1.0]
    """
    selecting = {"expressions", "names", "filter_name", "filter_typename", "fields"}
    _select.reject_unknown(
        "dask_hist",
        {name: value for name, value in how.items() if name not in PartitionOptions.__annotations__.keys() - selecting},
    )
    delayed = optional.load("dask", "tupelo.dask_hist", "dask").delayed
    booking = _filling.Booking.of(expressions, bins, range, weight, sample)
    booking.check_axes()
    made = plan(files, expressions=booking.wanted, cut=cut, aliases=aliases, **how)
    groups, _ = _groups_and_starts(made)
    parts = [delayed(_fill)(group, booking) for group in groups]
    while len(parts) > 1:
        parts = [delayed(booking.sum)(parts[at : at + SUMMED]) for at in builtins.range(0, len(parts), SUMMED)]
    return parts[0]


def _fill(group: Group, booking: _filling.Booking) -> Any:
    """The histograms of partitions."""
    return booking.sum([partition._hist(booking) for partition in group])


def _check_keywords(function: str, how: "PartitionOptions") -> None:
    """Raises an error for keywords that `partitions` does not have."""
    _select.reject_unknown(
        function, {name: value for name, value in how.items() if name not in PartitionOptions.__annotations__}
    )


def _groups_and_starts(made: Plan) -> tuple[list[Group], list[int]]:
    """What tasks read, at least one, and its first entries counted through all files, followed by the end."""
    groups: list[list[Partition]] = []
    sum_bytes = 0.0
    sizes = made.whole_bytes or [math.inf] * len(made.partitions)
    most = min(GROUP_FILES, -(-len(made.partitions) // MIN_PARTITIONS))
    for partition, size in zip(made.partitions, sizes, strict=True):
        sum_bytes += size
        if groups and sum_bytes <= GROUP_BYTES and len(groups[-1]) < most:
            groups[-1].append(partition)
        else:
            groups.append([partition])
            sum_bytes = size
    found = [tuple(group) for group in groups] or [(made.nothing,)]
    counts = (sum(partition.num_entries for partition in group) for group in found)
    return found, list(accumulate(counts, initial=0))


def _read_frames(group: Group, start: int, columns: Iterable[str] | None = None) -> Any:
    """Partitions as one data frame whose index begins with ``start``."""
    if len(group) == 1:
        return _read_frame(group[0], start, columns)
    import pandas as pd

    columns = None if columns is None else list(columns)
    starts = accumulate((partition.num_entries for partition in group), initial=start)
    return pd.concat([_read_frame(partition, first, columns) for partition, first in zip(group, starts, strict=False)])


def _read_frame(partition: Partition, start: int, columns: Iterable[str] | None = None) -> Any:
    """A partition as a data frame whose index begins with ``start``."""
    import pandas as pd

    if columns is not None:
        columns = list(columns)
        partition = _project(partition, columns)
    frame = partition.arrays(library="pd")
    if partition.cut is None:
        frame.index = pd.RangeIndex(start, start + len(frame))
    else:
        frame.index = frame.index - partition.entry_start + start
    return frame if columns is None else frame[columns]


def _project(partition: Partition, names: Iterable[str]) -> Partition:
    """Selects columns of a partition by dotted paths; if it has expressions, the result may have more columns."""
    if partition.expressions is None:
        return partition.with_columns([_select.escape_glob(name) for name in names])
    wanted = list(names)

    def is_needed(text: str) -> bool:
        # The matches of a glob are unknown here.
        return _select.is_glob(text) or any(
            name == text or name.startswith(f"{text}.") or text.startswith(f"{name}.") for name in wanted
        )

    return replace(partition, expressions=tuple(filter(is_needed, partition.expressions)))


class _Read:
    """Reads partitions as Awkward arrays: an IO function of dask-awkward with column projection."""

    # Required by the protocol of dask-awkward.
    behavior = None
    attrs = None

    def __init__(self, form: Any, columns: tuple[str, ...] | None, catch: tuple[type[BaseException], ...]) -> None:
        self.form = form
        self.columns = columns
        self.catch = catch

    def __call__(self, group: Group) -> Any:
        import awkward as ak

        arrays: list[Any] = []
        reports: list[dict[str, Any]] = []
        for partition in group:
            failure = None
            try:
                arrays.append(self._read(partition))
            except self.catch as error:
                failure = error
            if self.catch:
                reports.append(vars(partition._report(failure)))
        if not arrays:
            array = self.mock_empty()
        else:
            array = arrays[0] if len(arrays) == 1 else ak.concatenate(arrays)
            if self.columns is not None:
                array = ak.Array(_add_placeholders(self.form, array.layout))
        if not self.catch:
            return array
        # Slice off a record in which everything is known, so that the records of all partitions have the same type.
        known = {"cluster": 0, "column": "", "error": "", "cause": ""}
        return array, ak.Array([*reports, reports[0] | known])[:-1]

    def _read(self, partition: Partition) -> Any:
        import awkward as ak

        if self.columns is None:
            return self._arrays(partition)
        if not self.columns:
            return ak.Array(ak.contents.RecordArray([], [], length=partition._count()))
        return self._arrays(_project(partition, self.columns))

    def _arrays(self, partition: Partition) -> Any:
        """Reads a partition."""
        return partition.arrays()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return LABEL, self.form.to_json(), self.columns, [str(one) for one in self.catch]

    @property
    def return_report(self) -> bool:
        """Whether a call returns a pair of array and report."""
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

        form = forms.with_form_keys(self.form)
        meta, report = ak.typetracer.typetracer_with_report(form, highlevel=True, buffer_key=forms.BUFFER_KEY)
        return meta, report, form

    def necessary_columns(self, report: Any, state: Any) -> frozenset[str]:
        """The fields, as dotted paths, of which something was touched."""
        touched = {forms.parse_buffer_key(key)[0] for key in forms.required_buffers(state, report)}
        leaves = _leaves(state)
        wanted = {leaves[key][0] for key in touched if len(leaves[key]) == 1}
        # Forms with fewer leaves first: the offsets of a list come with any of its members.
        for key in sorted(touched, key=lambda key: (len(leaves[key]), int(key))):
            if not wanted.intersection(leaves[key]):
                wanted.add(min(leaves[key], key=lambda path: path.count(".")))
        return frozenset(wanted)

    def project(self, report: Any, state: Any) -> "_Read":
        """A copy that reads only the necessary columns."""
        return self.project_manually(self.necessary_columns(report, state))

    def project_manually(self, columns: Iterable[str]) -> "_Read":
        """A copy that reads only these columns."""
        wanted = set(columns)
        form = forms.with_form_keys(self.form)
        if wanted.issuperset(_leaves(form)[form.form_key]):
            return self
        made = copy(self)
        made.columns = tuple(sorted(wanted))
        return made


def _leaves(form: Any) -> dict[str, tuple[str, ...]]:
    """For every form key, the dotted paths of its leaves."""
    found: dict[str, tuple[str, ...]] = {}

    def visit(form: Any, path: str, is_whole: bool) -> tuple[str, ...]:
        """``is_whole`` means that the contents have no paths of their own."""
        is_whole = is_whole or _is_read_whole(form)
        if form.is_record and not is_whole:
            members = (visit(form.content(name), f"{path}.{name}" if path else name, False) for name in form.fields)
            paths = tuple(leaf for leaves in members for leaf in leaves) or (path,)
        else:
            below = [visit(content, path, is_whole) for content in forms.contents_of(form)]
            paths = below[0] if below and not is_whole else (path,)
        found[form.form_key] = paths
        return paths

    visit(form, "", False)
    return found


def _is_read_whole(form: Any) -> bool:
    """Whether the contents can only be read together: tuples, whose members have no names, and variants."""
    return bool(form.is_union or (form.is_record and form.is_tuple) or (form.is_indexed and not form.is_option))


def _add_placeholders(form: Any, layout: Any) -> Any:
    """Adds the fields of a form that were not read, as placeholders without data.

    A computation may pass on fields that it does not use.
    """
    if _is_read_whole(form) or form.is_numpy or form.is_unknown:
        return layout
    if not form.is_record:
        return layout.copy(content=_add_placeholders(form.content, layout.content))
    import awkward as ak

    present = set(layout.fields)
    lacking = [name for name in form.fields if name not in present]
    empty = ak.forms.RecordForm([form.content(name) for name in lacking], lacking)
    placeholders = forms.placeholder_record(empty, layout.length)
    contents = [
        _add_placeholders(form.content(name), layout.content(name))
        if name in present
        else placeholders.contents[lacking.index(name)]
        for name in form.fields
    ]
    return ak.contents.RecordArray(contents, form.fields, length=layout.length, parameters=form.parameters)
