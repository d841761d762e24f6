"""Importing HDF5 files as ntuples."""

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _core
from .._base.checks import check_local_path, check_mapping, check_name, check_text
from .._base.messages import short_repr
from .._base.optional import load
from .._base.progress import Progress, report_progress
from ..errors import (
    CorruptError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    OtherFormatError,
    TupeloWarning,
    UnsupportedError,
)
from ..writing._copying import check_output
from ..writing._creating import recreate

_PART_BYTES = 16 << 20
"""Memory of the entries that are read at once."""
_MAX_PART_ENTRIES = 1 << 14
"""Maximum number of them: lists and strings may have any length."""
_FORBIDDEN = re.compile(r"[./\\ \x00-\x1f\x7f-\x9f]")
"""Characters that names of fields cannot have."""
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class _Type:
    """How values are stored: as an Arrow type, and the function that makes an array of one-dimensional values."""

    arrow: Any
    convert: Callable[[Any], Any]
    bytes: int
    """Memory of a value, as far as it is known."""


@dataclass(frozen=True)
class _Column:
    """A column: a dataset, or a member of one with a compound type."""

    name: str
    dataset: Any
    member: str | None
    type: _Type

    def read(self, start: int, stop: int) -> Any:
        values = self.dataset[start:stop] if self.member is None else self.dataset.fields(self.member)[start:stop]
        if len(values) != stop - start:
            raise CorruptError(f"dataset '{self.dataset.name}': expected {stop - start} entries, found {len(values)}")
        try:
            return self.type.convert(values)
        except (UnicodeDecodeError, pa.ArrowException) as error:
            raise CorruptError(
                f"dataset '{self.dataset.name}', column '{self.name}', entries {start} to {stop - 1}: {error}"
            ) from None


def import_hdf5(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    dataset: str | None = None,
    rename: Mapping[str, str] | None = None,
    progress: Progress = None,
    **options: Any,
) -> int:
    """Writes a dataset or a group of the HDF5 file ``source`` as the only ntuple of the new file ``path``, and returns
    the number of entries. It needs the package h5py.

    ``dataset`` is the path of a dataset or group in the file, by default all of it. The first dimension is the entry. A
    dataset of a compound type has a field for each member; the datasets of a group are the fields, and must have the
    same first dimension. Further dimensions become fixed arrays, values of variable length lists, and compound values
    records. Strings must be UTF-8. Booleans are those of h5py, and other enums are their integers. Groups in a group
    and datasets without dimensions are left out with a `TupeloWarning`.

    The ntuple is called ``name``, by default like the dataset or, of a whole file, like the file. ``rename`` is a
    mapping of names in the file to names of fields; in other names, characters that the format forbids become
    underscores. ``options`` are those of `recreate`, and ``progress`` is that of `iterate`. Entries are read in parts.
    An existing file is replaced when the new one is complete.

    Raises `MissingFileError`, `OtherFormatError` or `CorruptError` for the file, `NotFoundError` for the dataset,
    `UnsupportedError` for types that an ntuple does not have (references, opaque and complex values),
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
    h5py = load("h5py", "import_hdf5", "h5py")
    target = check_output(path, [local])
    with _opened(h5py, local, shown) as file:
        try:
            found = file[dataset or "/"]
        except (KeyError, ValueError):
            listed = ", ".join(map(repr, list(file)[:10]))
            raise NotFoundError(f"{shown}: no dataset or group {short_repr(dataset)}; the file has {listed}") from None
        columns, entries = _columns(h5py, found, shown)
        if unknown := [old for old in names if old not in [column.name for column in columns]]:
            raise InvalidArgumentError(f"{shown}: no column {short_repr(unknown[0])} to rename")
        fields = [names.get(column.name, _FORBIDDEN.sub("_", column.name)) for column in columns]
        if twice := next((one for one in fields if fields.count(one) > 1), None):
            raise InvalidArgumentError(f"{shown}: two fields would have the name {twice!r}; rename one of them")
        if name is None:
            inside = found.name.strip("/").rpartition("/")[2]
            name = _FORBIDDEN.sub("_", inside or os.path.splitext(os.path.basename(local))[0])
        types = [column.type.arrow for column in columns]
        schema = pa.schema([pa.field(*pair, nullable=False) for pair in zip(fields, types, strict=True)])
        size = sum(column.type.bytes for column in columns)
        step = max(1, min(_MAX_PART_ENTRIES, _PART_BYTES // max(1, size)))
        with report_progress(progress) as tell, recreate(target, **options) as out:
            tell(0, entries)
            with out.mkrntuple(name, schema) as ntuple:
                for start in range(0, entries, step):
                    stop = min(start + step, entries)
                    arrays = [column.read(start, stop) for column in columns]
                    ntuple.extend(pa.Table.from_arrays(arrays, schema=schema))
                    tell(stop, entries)
    return entries


def _opened(h5py: Any, local: str, shown: str) -> Any:
    """The open file."""
    try:
        return h5py.File(local, "r")
    except FileNotFoundError:
        raise MissingFileError(f"{shown}: the file does not exist") from None
    except OSError as error:
        try:
            with open(local, "rb") as file:
                is_hdf5 = file.read(len(_SIGNATURE)) == _SIGNATURE
        except OSError:
            # It cannot be read at all.
            raise error from None
        if is_hdf5:
            raise CorruptError(f"{shown}: the HDF5 file is damaged: {error}") from None
        raise OtherFormatError(f"{shown}: not an HDF5 file") from None


def _columns(h5py: Any, found: Any, shown: str) -> tuple[list[_Column], int]:
    """The columns of a dataset or group, and the number of entries."""
    if isinstance(found, h5py.Dataset):
        datasets = [found]
    else:
        datasets = []
        for key, member in found.items():
            if isinstance(member, h5py.Dataset) and member.shape:
                datasets.append(member)
                continue
            kind = "scalar dataset" if isinstance(member, h5py.Dataset) else "group"
            text = f"{shown}: '{found.name}': the {kind} {key!r} is left out; dataset= chooses a group"
            warnings.warn(text, TupeloWarning, stacklevel=3)
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
    if len(datasets) == 1 and datasets[0].dtype.names and len(datasets[0].shape) == 1:
        [table] = datasets
        members = [(member, table.dtype.fields[member][0]) for member in table.dtype.names]
        return [_Column(one, table, one, _type(h5py, dtype, f"{table.name}: {one}")) for one, dtype in members], entries
    columns = []
    for dataset in datasets:
        stored = _arrays(_type(h5py, dataset.dtype, dataset.name), dataset.shape[1:], dataset.name)
        columns.append(_Column(dataset.name.rpartition("/")[2], dataset, None, stored))
    return columns, entries


def _type(h5py: Any, dtype: Any, path: str) -> _Type:
    """The type of values of a NumPy type, with what h5py knows of it."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return _arrays(_type(h5py, base, path), shape, path)
    if dtype.names is not None:
        members = {name: _type(h5py, dtype.fields[name][0], f"{path}.{name}") for name in dtype.names}
        fields = [pa.field(_FORBIDDEN.sub("_", name), one.arrow, nullable=False) for name, one in members.items()]

        def records(values: Any) -> Any:
            return pa.StructArray.from_arrays(
                [one.convert(values[name]) for name, one in members.items()], fields=fields
            )

        return _Type(pa.struct(fields), records, dtype.itemsize)
    if h5py.check_string_dtype(dtype) is not None:
        return _Type(pa.large_string(), _strings, max(dtype.itemsize, 32))
    if (base := h5py.check_vlen_dtype(dtype)) is not None:
        return _lists(_type(h5py, base, path), base)
    if h5py.check_ref_dtype(dtype) is None and dtype.kind in "biuf" and dtype.itemsize <= 8:
        native = dtype.newbyteorder("=")
        native = np.dtype(native.str) if h5py.check_enum_dtype(dtype) is not None else native
        kind = pa.from_numpy_dtype(native)
        return _Type(kind, lambda values: pa.array(np.ascontiguousarray(values, dtype=native), kind), dtype.itemsize)
    raise UnsupportedError(f"{path}: an ntuple cannot store the HDF5 type {dtype}; choose other datasets with dataset=")


def _arrays(item: _Type, shape: tuple[int, ...], path: str) -> _Type:
    """The type of fixed arrays of values."""
    if 0 in shape:
        raise UnsupportedError(f"{path}: an ntuple cannot store arrays of no items")
    if not shape:
        return item
    kinds = [item.arrow]
    for size in reversed(shape):
        kinds.append(pa.list_(pa.field("item", kinds[-1], nullable=False), size))

    def convert(values: Any) -> Any:
        array = item.convert(values.reshape(-1))
        for kind in kinds[1:]:
            array = pa.FixedSizeListArray.from_arrays(array, type=kind)
        return array

    return _Type(kinds[-1], convert, item.bytes * prod(shape))


def _lists(item: _Type, base: Any) -> _Type:
    """The type of lists of values."""
    kind = pa.large_list(pa.field("item", item.arrow, nullable=False))

    def convert(values: Any) -> Any:
        offsets = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum([len(value) for value in values], out=offsets[1:])
        # Those that were never written are empty, and of no type.
        parts = [value for value in values if len(value)]
        items = np.concatenate(parts) if parts else np.empty(0, dtype=base)
        return pa.LargeListArray.from_arrays(pa.array(offsets), item.convert(items), type=kind)

    return _Type(kind, convert, max(item.bytes * 16, 64))


def _strings(values: Any) -> Any:
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    return pa.array(texts, pa.large_string())
