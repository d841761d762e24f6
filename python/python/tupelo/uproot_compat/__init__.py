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

from .. import __version__
from . import behaviors, compression, exceptions, reading, source, writing
from ._dask import dask
from ._dask_write import dask_write
from ._fields import HasFields, Report
from ._many import concatenate, iterate, num_entries
from ._ntuple import RField, RNTuple
from ._options import LZ4, LZMA, ZLIB, ZSTD
from ._reading import ReadOnlyDirectory, ReadOnlyFile, open
from ._uproot import install
from ._writing import WritableDirectory, WritableFile, WritableNTuple, create, recreate, update
from .behaviors.TBranch import TBranch
from .behaviors.TTree import TTree
from .exceptions import KeyInFileError
from .source.futures import ThreadPoolExecutor, TrivialExecutor

default_library = "ak"
"""The library of arrays where none is named."""

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
    "TBranch",
    "TTree",
    "ThreadPoolExecutor",
    "TrivialExecutor",
    "WritableDirectory",
    "WritableFile",
    "WritableNTuple",
    "__version__",
    "behaviors",
    "compression",
    "concatenate",
    "create",
    "dask",
    "dask_write",
    "default_library",
    "exceptions",
    "install",
    "iterate",
    "num_entries",
    "open",
    "reading",
    "recreate",
    "source",
    "update",
    "writing",
]
