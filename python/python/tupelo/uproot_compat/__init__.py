"""The interface of uproot for ntuples and trees: ``import tupelo.uproot_compat as uproot``.

Programs that read and write RNTuples and TTrees with uproot's public functions and methods run as they are: `open`,
`iterate`, `concatenate`, `num_entries`, `dask`, `create`, `recreate`, `update`, and the methods of files, directories,
ntuples, fields, trees and branches. Tupelo reads and writes the files.

>>> import tupelo.uproot_compat as uproot
>>> with uproot.recreate("compat.root") as file:
...     file["dir/Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
>>> with uproot.open("compat.root") as file:
...     print(file.keys(), file["dir/Events"].keys(), file["dir/Events/pt"].array()[0])
['dir;1', 'dir/Events;1'] ['pt', 'run'] [31.5, 7.25]

Differences from uproot 5.7:

**Supported objects.** Histograms, graphs, efficiencies and all other objects are those of `tupelo.open`:
`tupelo.Histogram` has uproot's methods, `tupelo.Instance` has members by name. Streamer fields, which uproot cannot
read, are bytes (`tupelo.Field.objects` decodes them).

**Trees.** Keys and columns are branches, as in uproot; `tupelo.Tree` joins split objects to records instead. Branches
that uproot cannot read are read; what neither reads raises `UnsupportedError` (a `NotImplementedError`) with the
reason, and is left out where no branch is named. Objects have the members of their base classes in Awkward records
too. Objects without columns are bytes, or `tupelo.Instance` with ``library="np"``; containers are NumPy arrays and
lists there, not classes of uproot. An `interpretation` has only the Awkward form and the type: branches cannot be read
with another one, which raises `UnsupportedError`, nor do branches have leaves, streamers, baskets or ``member``.
Friends are listed in `TTree.core`, not joined.

**Remote files.** URLs are those of `tupelo.open`, without other packages; credentials come from the environment.
`recreate` and `create` write remote files, which appear when they are closed; `update` raises `UnsupportedError` for
them. Chained URLs of fsspec (``simplecache::https://…``) are read as file objects.

**Verification.** Page checksums are verified, so damaged files raise `CorruptError` (a `ValueError`) where uproot may
return wrong numbers.

**Arguments.** ``cut``, computed ``expressions`` and ``aliases`` work as in `tupelo.Ntuple.arrays`; uproot's methods of
ntuples ignore them, and those of trees evaluate expressions in Python. ``language`` raises an error. Names and filters
that match no field raise `KeyInFileError` (a `KeyError`); uproot returns an array without columns. ``how="zip"`` works
as for trees. ``backend`` and ``interpreter`` other than ``"cpu"``, and ``handler``, raise an error. Options without
effect on the result (executors, caches, numbers of threads, chunk sizes) are accepted and ignored.

**Arrays.** ``char`` is a signed integer; in uproot it is unsigned. Optionals have a different layout of the same type,
a mask instead of an index. With ``library="np"``, collections are object arrays even if all have the same length,
records are structured arrays, and optional numbers are masked arrays. With ``library="pd"``, nested and optional
columns have a `pandas.ArrowDtype`. NumPy and pandas keep base classes as members named ``:_0``. ``library="arrow"`` is
supported too. ``ak_add_doc`` supports the attributes ``"description"`` (or ``"title"``), ``"typename"`` and ``"name"``,
also for variants; the key ``"__record__"`` names records only.

**Files with different fields.** Without expressions, `iterate`, `concatenate` and `dask` read the fields that all files
have, and a `TupeloWarning` lists the others; ``fields="union"`` (`iterate`, `concatenate`) reads those that any file
has. All three accept files with steps, ``{"f.root": {"object_path": "Events", "steps": [[0, 500]]}}``.

**Virtual arrays** report the dotted path of the field, the buffer and the entries to ``access_log``, instead of columns
and clusters. Members of records are read separately; pairs, tuples and variants as a whole.

**Writing.** Local files can be read after each write, as in uproot, and each write is durable: many small writes cost
more than with `tupelo.recreate`, which makes nothing visible until the end and keeps the old file until then. The
default codec is ``"zstd:5"``; pages have checksums, and columns have the default encodings of ROOT. Entries and fields
can be added to ntuples of any program, also to variants and to columns in ROOT's encodings. An unnamed index of pandas
is not written. Optional records become collections of at most one record, as in uproot; ROOT reads these. Records in
variants and in fixed-size arrays are written with a warning, because ROOT cannot open ntuples with them. Trees
(`mktree`) and histograms can be read when the file is closed. Objects cannot be deleted.

**Dask.** Files are always opened for planning. Members of records are read separately. Reports have the fields of
`tupelo.PartitionReport`. `dask_write` writes ntuples.

**Format internals** are not available: ``header``, ``footer``, ``page_link_list``, ``column_records``,
``RField.record``, ``member``, chunks, cursors, models, keys of forms.

Files, directories, ntuples, trees and their fields can be pickled, unlike those of uproot. `install` makes other
packages, such as coffea, read ntuples and trees with Tupelo.
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
from ._trees import HasBranches, TBranch, TTree
from ._uproot import install
from ._writing import WritableDirectory, WritableFile, WritableNTuple, WritableTree, create, recreate, update
from .exceptions import KeyInFileError
from .source.futures import ThreadPoolExecutor, TrivialExecutor

default_library = "ak"
"""The default library."""

__all__ = [
    "LZ4",
    "LZMA",
    "ZLIB",
    "ZSTD",
    "HasBranches",
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
    "WritableTree",
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
