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
``library="arrow"`` is there too. ``ak_add_doc`` knows the attributes ``"description"`` (or ``"title"``), ``"typename"``
and ``"name"``, of variants too; the key ``"__record__"`` names records only.

**Files with different fields.** Without expressions, `iterate`, `concatenate` and `dask` read the fields that all files
have, and a `TupeloWarning` lists the others; ``fields="union"`` (`iterate`, `concatenate`) reads those that any file
has. Files may be given with steps, ``{"f.root": {"object_path": "Events", "steps": [[0, 500]]}}``, to all three.

**Virtual arrays** tell ``access_log`` the dotted path of the field, the buffer and the entries, where uproot tells
columns and clusters. The members of records are read by themselves, pairs, tuples and variants whole.

**Writing.** Files can be read after each write, as uproot's, and each write is made durable: many small ones cost more
than in `tupelo.recreate`, which makes nothing visible before the end and keeps the old file until then. The default
codec is ``"zstd:5"``, pages have checksums, and columns the encodings that ROOT chooses. Entries and fields are added
to the ntuples of any program, also to variants and to columns in ROOT's encodings. An index of pandas that has no name
is not written. Records that may be missing become collections of no or one record, as in uproot; ROOT reads these.
Records in variants and in arrays of fixed size are written with a warning, since ROOT opens no ntuple with them.
Nothing can be deleted; trees and histograms cannot be written.

**Dask.** Files are always opened to plan. Members of records are read alone. Reports have the fields of
`tupelo.PartitionReport`. `dask_write` writes ntuples.

**Inside.** What uproot shows of the format is not there: ``header``, ``footer``, ``page_link_list``,
``column_records``, ``RField.record``, ``member``, chunks, cursors, models, keys of forms.

Files, directories, ntuples and fields can be pickled, unlike uproot's. `install` lets other packages, coffea for
instance, read ntuples by Tupelo.
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
