"""Importing HDF5 files as ntuples."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from .. import _core
from .._base.checks import check_local_path, check_mapping, check_name, check_text
from .._base.messages import short_repr
from .._base.optional import load
from .._base.progress import Progress, report_progress
from ..errors import CorruptError, InvalidArgumentError, LimitError, NotFoundError, TupeloWarning
from ..writing._copying import check_output
from ..writing._creating import recreate
from .hdf5_objects import Allowed, File
from .hdf5_types import FORBIDDEN, Type, Types, arrays

_PART_BYTES = 16 << 20
"""Memory of the entries that are read at once."""
_MAX_PART_ENTRIES = 1 << 14
"""Maximum number of them: lists and strings may have any length."""
_FEW_ENTRIES = 64
"""Lists and strings of so many entries are read before their size is looked at."""
_MAX_LABELS = 5
"""Labels of an enum in a warning."""


@dataclass(frozen=True)
class _Column:
    """A column: a dataset, or a member of one with a compound type."""

    name: str
    dataset: Any
    member: str | None
    type: Type

    def read(self, file: File, start: int, stop: int) -> Any:
        what = f"dataset '{self.dataset.name}', column '{self.name}', entries {start} to {stop - 1}"
        with file.errors(what):
            source = self.dataset if self.member is None else self.dataset.fields(self.member)
            values = source[start:stop]
            if len(values) != stop - start:
                raise CorruptError(f"{file.shown}: {what}: found {len(values)} entries")
            return self.type.convert(values)


class _Reader:
    """Reads entries in parts whose memory is limited, also where values have any length."""

    def __init__(self, file: File, columns: list[_Column]) -> None:
        self._file, self._columns = file, columns
        self._is_variable = any(column.type.is_variable for column in columns)
        # Each value of variable length is stored once, without compression: more is a file that repeats itself.
        self._left: float = float("inf") if file.allowed.sparse or file.allowed.external else file.bytes

    def parts(self, entries: int) -> Iterator[tuple[int, list[Any]]]:
        """The entries, as the number of the entry behind each part and its columns."""
        size = sum(column.type.bytes for column in self._columns)
        most = max(1, min(_MAX_PART_ENTRIES, _PART_BYTES // max(1, size)))
        step, start = min(most, _FEW_ENTRIES) if self._is_variable else most, 0
        while start < entries:
            stop = min(start + step, entries)
            part = [self._read(column, start, stop) for column in self._columns]
            yield stop, part
            if self._is_variable:
                taken = max(1, sum(array.nbytes for array in part) // (stop - start))
                step = max(1, min(most, 2 * step, _PART_BYTES // taken))
            start = stop

    def _read(self, column: _Column, start: int, stop: int) -> Any:
        if not column.type.is_variable:
            return column.read(self._file, start, stop)
        pieces = []
        for first in range(start, stop, _FEW_ENTRIES):
            last = min(first + _FEW_ENTRIES, stop)
            piece = column.read(self._file, first, last)
            self._left -= max(0, piece.nbytes - (last - first + 1) * column.type.fixed)
            if self._left < 0:
                raise LimitError(
                    f"{self._file.shown}: dataset '{column.dataset.name}': its values of variable length take more "
                    f"bytes than the file has, {self._file.bytes}; allow_sparse=True writes them all the same"
                )
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def import_hdf5(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    dataset: str | None = None,
    exclude: str | Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    allow_external: bool = False,
    allow_sparse: bool = False,
    progress: Progress = None,
    **options: Any,
) -> int:
    """Writes a dataset or a group of the HDF5 file ``source`` as the only ntuple of the new file ``path``, and returns
    the number of entries. It needs the package h5py.

    ``dataset`` is the path of a dataset or group in the file, by default all of it. The first dimension is the entry. A
    dataset of a compound type has a field for each member; the datasets of a group are the fields, and must have the
    same first dimension. Further dimensions become fixed arrays, values of variable length lists, and compound values
    records. ``exclude`` names datasets of the group, or members of the compound type, that are left out. Strings must
    be UTF-8. Booleans are those of h5py, and other enums are their integers; a `TupeloWarning` names the labels that
    are lost. Groups in a group, datasets without dimensions and links that lead nowhere are left
    out with a `TupeloWarning`.

    A file that someone else wrote decides what is read. External links, external storage and virtual datasets of other
    files are refused unless ``allow_external`` is true: they may lead to any file of this machine. Datasets that claim
    more than 64 MiB of values, and 1100 times as many bytes as are stored for them, are refused unless ``allow_sparse``
    is true: a few bytes may claim terabytes.

    The ntuple is called ``name``, by default like the dataset or, of a whole file, like the file. ``rename`` is a
    mapping of names in the file to names of fields; in other names, characters that the format forbids become
    underscores. ``options`` are those of `recreate`, and ``progress`` is that of `iterate`. Entries are read in parts.
    An existing file is replaced when the new one is complete.

    Raises `MissingFileError`, `OtherFormatError`, `CorruptError` or `StorageError` for the file, `NotFoundError` for
    the dataset, `UnsupportedError` for other files, devices, pipes and types that an ntuple does not have (references,
    opaque and complex values), `LimitError` for chunks and entries above 1 GiB and what ``allow_sparse`` allows,
    `InvalidArgumentError` for datasets of different lengths, and the errors of `recreate`.

    >>> import h5py, tupelo
    >>> with h5py.File("events.h5", "w") as file:
    ...     file["run"] = [7, 7, 8]
    ...     hits = file.create_dataset("hits", 3, h5py.vlen_dtype("float32"))
    ...     hits[0], hits[2] = [0.5, 1.5], [2.5]
    >>> tupelo.import_hdf5("events.h5", "hdf5.root", name="Events")
    3
    >>> tupelo.open("hdf5.root:Events").arrays().tolist()
    [{'hits': [0.5, 1.5], 'run': 7}, {'hits': [], 'run': 7}, {'hits': [2.5], 'run': 8}]
    """
    local = os.path.abspath(check_local_path(source))
    shown = _core.display_name(check_local_path(source))
    if name is not None:
        check_name(name)
    if dataset is not None:
        check_text(dataset, "dataset")
    names = check_mapping(rename, "rename")
    unwanted = {check_text(one, "exclude") for one in ([exclude] if isinstance(exclude, str) else exclude)}
    h5py = load("h5py", "import_hdf5", "h5py")
    target = check_output(path, [local])
    with File(h5py, local, shown, Allowed(allow_external, allow_sparse)) as file:
        try:
            found = file.find(dataset or "/")
        except NotFoundError:
            with file.errors("its groups"):
                listed = ", ".join(map(repr, list(file.root)[:10]))
            raise NotFoundError(f"{shown}: no dataset or group {short_repr(dataset)}; the file has {listed}") from None
        own_name = found.name.strip("/").rpartition("/")[2]
        columns, entries = _columns(file, found, unwanted)
        if unknown := [old for old in names if old not in [column.name for column in columns]]:
            raise InvalidArgumentError(f"{shown}: no column {short_repr(unknown[0])} to rename")
        fields = [names.get(column.name, FORBIDDEN.sub("_", column.name)) for column in columns]
        if twice := next((one for one in fields if fields.count(one) > 1), None):
            raise InvalidArgumentError(f"{shown}: two fields would have the name {twice!r}; rename one of them")
        if name is None:
            name = FORBIDDEN.sub("_", own_name or os.path.splitext(os.path.basename(local))[0])
        types = [column.type.arrow for column in columns]
        schema = pa.schema([pa.field(*pair, nullable=False) for pair in zip(fields, types, strict=True)])
        with report_progress(progress) as tell, recreate(target, **options) as out:
            tell(0, entries)
            with out.mkrntuple(name, schema) as ntuple:
                for stop, part in _Reader(file, columns).parts(entries):
                    ntuple.extend(pa.Table.from_arrays(part, schema=schema))
                    tell(stop, entries)
    return entries


def _columns(file: File, found: Any, unwanted: set[str]) -> tuple[list[_Column], int]:
    """The columns of a dataset or group but the unwanted ones, and the number of entries."""
    h5py, shown = file.h5py, file.shown
    datasets = [found] if isinstance(found, h5py.Dataset) else _datasets(file, found, unwanted)
    if not datasets:
        listed = ", ".join(map(repr, list(found)[:10])) or "nothing"
        raise InvalidArgumentError(f"{shown}: '{found.name}' has no datasets with entries, but {listed}")
    if not all(dataset.shape for dataset in datasets):
        raise InvalidArgumentError(f"{shown}: '{found.name}' has no dimension that could be the entries")
    entries = datasets[0].shape[0]
    for dataset in datasets:
        if dataset.shape[0] != entries:
            raise InvalidArgumentError(
                f"{shown}: '{datasets[0].name}' has {entries} entries, but '{dataset.name}' has {dataset.shape[0]}; "
                "choose one of them, or a group, with dataset="
            )
    types, columns = Types(h5py), []
    for dataset in datasets:
        with file.errors(f"dataset '{dataset.name}'"):
            dtype = dataset.dtype
        path = dataset.name
        if len(datasets) == 1 and dtype.names and len(dataset.shape) == 1:
            wanted = [member for member in dtype.names if member not in unwanted]
            unwanted = unwanted - set(dtype.names)
            members = [(member, types.of(dtype.fields[member][0], f"{path}: {member}")) for member in wanted]
            columns = [_Column(member, dataset, member, one) for member, one in members]
        else:
            stored = arrays(types.of(dtype, path), dataset.shape[1:], path)
            columns.append(_Column(path.rpartition("/")[2], dataset, None, stored))
    if unknown := sorted(unwanted):
        raise NotFoundError(f"{shown}: no dataset or member {short_repr(unknown[0])} to exclude in '{found.name}'")
    if not columns:
        raise InvalidArgumentError(f"{shown}: '{found.name}': exclude= leaves nothing to import")
    for column in columns:
        file.check_size(column.dataset, column.type.bytes)
    cached = {id(dataset): file.with_cache(dataset) for dataset in datasets}
    columns = [replace(column, dataset=cached[id(column.dataset)]) for column in columns]
    for path, labels in types.enums.items():
        more = f" and {len(labels) - _MAX_LABELS} more" if len(labels) > _MAX_LABELS else ""
        listed = ", ".join(map(repr, labels[:_MAX_LABELS]))
        text = f"{shown}: {path}: the integers of the enum are written without their labels {listed}{more}"
        warnings.warn(text, TupeloWarning, stacklevel=3)
    return columns, entries


def _datasets(file: File, group: Any, unwanted: set[str]) -> list[Any]:
    """The datasets of a group that have entries, but the unwanted ones, which are taken out of that set."""
    datasets = []
    with file.errors(f"group '{group.name}'"):
        keys = list(group)
    wanted = [key for key in keys if key not in unwanted]
    unwanted.difference_update(keys)
    for key in wanted:
        try:
            member = file.find(key, group)
        except NotFoundError:
            member = None
        if isinstance(member, file.h5py.Dataset) and member.shape:
            datasets.append(member)
            continue
        kinds = [(file.h5py.Dataset, "scalar dataset"), (file.h5py.Group, "group"), (type(None), "dangling link")]
        kind = next((kind for known, kind in kinds if isinstance(member, known)), "type")
        text = f"{file.shown}: '{group.name}': the {kind} {key!r} is left out; dataset= chooses a group"
        warnings.warn(text, TupeloWarning, stacklevel=4)
    return datasets
