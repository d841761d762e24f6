"""Ntuples by uproot's names: ``import tupelo.uproot_compat as uproot``.

Programs that read and write RNTuples with uproot's public functions and methods run as they are: `open`, `iterate`,
`concatenate`, `num_entries`, `dask`, `create`, `recreate`, `update`, and the methods of files, directories, ntuples and
fields. What reads and writes is Tupelo.

>>> import tupelo.uproot_compat as uproot
>>> with uproot.recreate("compat.root") as file:
...     file["dir/Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
>>> with uproot.open("compat.root") as file:
...     print(file.keys(), file["dir/Events"].keys(), file["dir/Events/pt"].array()[0])
['dir;1', 'dir/Events;1'] ['pt', 'run'] [31.5, 7.25]

All that is different from uproot 5.7, and why:

**What is read.** Only RNTuples: trees, histograms and other objects are listed, and raise `UnsupportedError` (a
`NotImplementedError`) that names their class. Only local files and file objects; remote files raise `UnsupportedError`.
Streamer fields, which uproot cannot read, are bytes (`tupelo.Field.objects` decodes them).

**What is checked.** The checksums of pages are compared, so that damaged files raise `CorruptError` (a `ValueError`)
where uproot may give wrong numbers.

**What is done, and not ignored.** ``cut``, computed ``expressions`` and ``aliases`` do what they say, as
`tupelo.Ntuple.arrays` says it; uproot's methods of ntuples take them and leave them out. ``language`` is refused.
Names and filters that fit no field raise `KeyInFileError` (a `KeyError`); uproot gives an array without columns.
``how="zip"`` works as it does for trees. ``backend`` and ``interpreter`` other than ``"cpu"``, and ``handler``, are
refused. What makes no difference to the result (executors, caches, numbers of threads, sizes of chunks) is taken and
not used.

**Arrays.** ``char`` is a signed integer, where uproot gives an unsigned one. Optionals have another layout of the same
type, a mask instead of an index. With ``library="np"`` collections are object arrays also where all have the same
length, records are structured arrays, and optional numbers masked arrays. With ``library="pd"`` what is nested or may
be missing has columns of a `pandas.ArrowDtype`. NumPy and pandas keep base classes as members called ``:_0``.
``library="arrow"`` is there too. ``ak_add_doc`` knows the attributes ``"description"``, ``"typename"`` and ``"name"``,
of variants too; the key ``"__record__"`` names records only.

**Sizes in memory** in ``step_size`` and ``num_entries_for`` count what is handed out, also of fields that show others,
so that pieces may have fewer entries than uproot's.

**Virtual arrays** tell ``access_log`` the dotted path of the field, the buffer and the entries, where uproot tells
columns and clusters. The members of records are read by themselves, pairs, tuples and variants whole.

**Writing.** Nothing is visible under the path before the file is closed, and where the ``with`` block is left by an
exception, what was there before stays. The default codec is ``"zstd:5"``, pages have checksums, and columns the
encodings that ROOT chooses. Entries and fields are added to the ntuples of any program, also to variants and to columns
in ROOT's encodings. An index of pandas that has no name is not written. Dotted names in ``add_fields`` are paths from
the top, and never ambiguous. Records that have no C++ type cannot stand in optionals, variants and fixed-size arrays,
whose C++ types could not be written. Nothing can be deleted; trees and histograms cannot be written.

**Dask.** Single members of records are read. Plans follow clusters, so that there is no ``steps_per_file``. All files
must have the chosen fields, with the same types; uproot takes what all have in common.

**Inside.** What uproot shows of the format is not there: ``header``, ``footer``, ``page_link_list``, ``uuid``,
``column_records``, ``RField.record``, ``member``, ``key``, sources, sinks, cursors, models, keys of forms.
"""

from types import SimpleNamespace
from typing import Any

from .. import __version__
from .._dask import dask as _dask
from .._select import Filter
from ..errors import UnsupportedError
from . import exceptions
from ._fields import FieldFilter, HasFields, Report
from ._ntuple import RField, RNTuple
from ._options import LZ4, LZMA, ZLIB, ZSTD, Compression, check_options, library_name
from ._reading import ReadOnlyDirectory, ReadOnlyFile, concatenate, first_ntuple, iterate, num_entries, open
from ._writing import WritableDirectory, WritableFile, WritableNTuple, create, recreate, update
from .exceptions import KeyInFileError

behaviors = SimpleNamespace(
    RNTuple=SimpleNamespace(
        HasFields=HasFields, RField=RField, RNTuple=RNTuple, concatenate=concatenate, iterate=iterate
    )
)
"""uproot's module of this name."""
compression = SimpleNamespace(Compression=Compression, LZ4=LZ4, LZMA=LZMA, ZLIB=ZLIB, ZSTD=ZSTD)
"""uproot's module of this name."""
reading = SimpleNamespace(ReadOnlyDirectory=ReadOnlyDirectory, ReadOnlyFile=ReadOnlyFile, open=open)
"""uproot's module of this name."""
writing = SimpleNamespace(
    create=create,
    recreate=recreate,
    update=update,
    writable=SimpleNamespace(
        WritableDirectory=WritableDirectory, WritableFile=WritableFile, WritableNTuple=WritableNTuple
    ),
)
"""uproot's module of this name."""


def dask(
    files: Any,
    filter_name: Filter = None,
    filter_typename: Filter = None,
    *,
    filter_field: FieldFilter = None,
    filter_branch: FieldFilter = None,
    library: str = "ak",
    step_size: Any = None,
    open_files: bool = True,
    allow_read_errors_with_report: bool | tuple[type[BaseException], ...] = False,
    **options: Any,
) -> Any:
    """`tupelo.dask`: the entries of many files as a `dask_awkward.Array`.

    Files are always opened, to plan; filters choose among the fields of the first one.
    """
    if library_name(library) != "ak":
        raise UnsupportedError("dask() gives Awkward arrays; tupelo.dask_dataframe() gives data frames")
    check_options("dask", options)
    filters = filter_name, filter_typename, filter_field, filter_branch
    names = None
    if any(one is not None for one in filters):
        which = dict(zip(("filter_name", "filter_typename", "filter_field", "filter_branch"), filters, strict=True))
        names = first_ntuple(files).patterns(**which)
    return _dask(files, names=names, step_size=step_size, allow_read_errors_with_report=allow_read_errors_with_report)


__all__ = [
    "LZ4",
    "LZMA",
    "ZLIB",
    "ZSTD",
    "HasFields",
    "KeyInFileError",
    "RField",
    "RNTuple",
    "ReadOnlyDirectory",
    "ReadOnlyFile",
    "Report",
    "WritableDirectory",
    "WritableFile",
    "WritableNTuple",
    "__version__",
    "behaviors",
    "compression",
    "concatenate",
    "create",
    "dask",
    "exceptions",
    "iterate",
    "num_entries",
    "open",
    "reading",
    "recreate",
    "update",
    "writing",
]
