"""Tupelo reads and writes RNTuple, CERN's columnar format, without ROOT.

>>> import tupelo
>>> with tupelo.recreate("first.root") as file:
...     file["Events"] = {"pt": [[31.5, 7.25], [], [12.0]], "run": [1, 1, 2]}
>>> with tupelo.open("first.root:Events") as ntuple:
...     events = ntuple.arrays()
>>> events.pt.tolist()
[[31.5, 7.25], [], [12.0]]

`open` returns a `File` (a mapping from names to ntuples and trees), an `Ntuple` (a mapping from dotted paths to fields)
or a `Tree`, which is read like an ntuple. Other objects of files are `Histogram`, `Graph`, `Efficiency` or `Instance`.
`Ntuple.arrays` and `Ntuple.iterate` return entries as Awkward, NumPy, Arrow, pandas or polars. Several files are opened
as a `Chain`, and `iterate` and `concatenate` read them; `import_trees` writes trees as ntuples, `import_hdf5`
datasets of HDF5 files, and `merge` makes one file of many. `create`, `recreate` and `update` return a `WritableFile`.
Failures raise an `Error`, with a subclass for each kind. Nothing is silently ignored: unsupported requests are errors.
"""

import typing as _typing
from importlib import import_module as _import_module

from ._base.threads import set_threads
from ._core import VERSION as __version__
from ._core import threads
from .errors import (
    CancelledError,
    ChangedFileError,
    CorruptError,
    CutOffError,
    Error,
    ExistingFileError,
    InvalidArgumentError,
    LimitError,
    MissingFileError,
    NotFoundError,
    OtherFormatError,
    StorageError,
    TupeloWarning,
    UnsupportedError,
)

if _typing.TYPE_CHECKING:
    from ._base.locations import Report
    from ._many.dask import dask, dask_dataframe, dask_hist
    from ._many.hdf5 import import_hdf5
    from ._many.importing import ImportedField, ImportReport, import_trees
    from ._many.manifest import index
    from ._many.merging import MergeReport, merge
    from ._many.partition import Partition, PartitionReport
    from ._many.planning import partitions
    from ._many.verbs import concatenate, hist, iterate, num_entries, scan
    from ._queries.dataset import Dataset
    from ._sql.query import sql
    from ._to_arrow.cpp import record
    from .fields._fields import Field
    from .fields._objects import Instance, OpaqueObject
    from .histogram._efficiency import Efficiency
    from .histogram._graph import Graph
    from .histogram._histogram import Histogram
    from .ntuple._explanation import ExplainedColumn, Explanation
    from .ntuple._metrics import Metrics
    from .ntuple._ntuple import AttributeSet, Ntuple, Tree
    from .ntuple._rules import ReadRule
    from .ntuple._stream import Stream
    from .ntuple._with_columns import NtupleWithColumns
    from .reading._chain import Chain, ChainPart
    from .reading._file import File
    from .reading._join import Join, join
    from .reading._opening import open
    from .writing._attributes import AttributeSetWriter
    from .writing._creating import abort, create, recreate, update
    from .writing._file import WritableFile
    from .writing._filling import FillContext, Metadata, NtupleWriter
    from .writing._trees import TreeWriter

__all__ = [
    "AttributeSet",
    "AttributeSetWriter",
    "CancelledError",
    "Chain",
    "ChainPart",
    "ChangedFileError",
    "CorruptError",
    "CutOffError",
    "Dataset",
    "Efficiency",
    "Error",
    "ExistingFileError",
    "ExplainedColumn",
    "Explanation",
    "Field",
    "File",
    "FillContext",
    "Graph",
    "Histogram",
    "ImportReport",
    "ImportedField",
    "Instance",
    "InvalidArgumentError",
    "Join",
    "LimitError",
    "MergeReport",
    "Metadata",
    "Metrics",
    "MissingFileError",
    "NotFoundError",
    "Ntuple",
    "NtupleWithColumns",
    "NtupleWriter",
    "OpaqueObject",
    "OtherFormatError",
    "Partition",
    "PartitionReport",
    "ReadRule",
    "Report",
    "StorageError",
    "Stream",
    "Tree",
    "TreeWriter",
    "TupeloWarning",
    "UnsupportedError",
    "WritableFile",
    "__version__",
    "abort",
    "concatenate",
    "create",
    "dask",
    "dask_dataframe",
    "dask_hist",
    "hist",
    "import_hdf5",
    "import_trees",
    "index",
    "iterate",
    "join",
    "merge",
    "num_entries",
    "open",
    "partitions",
    "record",
    "recreate",
    "scan",
    "set_threads",
    "sql",
    "threads",
    "update",
]

# NumPy and PyArrow take ten times as long to import as the rest, so modules that need them are imported on first use.
_MODULE_OF = {
    "AttributeSet": "ntuple._ntuple",
    "AttributeSetWriter": "writing._attributes",
    "Chain": "reading._chain",
    "ChainPart": "reading._chain",
    "Dataset": "_queries.dataset",
    "Efficiency": "histogram._efficiency",
    "ExplainedColumn": "ntuple._explanation",
    "Explanation": "ntuple._explanation",
    "Field": "fields._fields",
    "File": "reading._file",
    "FillContext": "writing._filling",
    "Graph": "histogram._graph",
    "Histogram": "histogram._histogram",
    "ImportReport": "_many.importing",
    "ImportedField": "_many.importing",
    "Instance": "fields._objects",
    "Join": "reading._join",
    "MergeReport": "_many.merging",
    "Metadata": "writing._filling",
    "Metrics": "ntuple._metrics",
    "Ntuple": "ntuple._ntuple",
    "NtupleWithColumns": "ntuple._with_columns",
    "NtupleWriter": "writing._filling",
    "OpaqueObject": "fields._objects",
    "Partition": "_many.partition",
    "PartitionReport": "_many.partition",
    "ReadRule": "ntuple._rules",
    "Report": "_base.locations",
    "Stream": "ntuple._stream",
    "Tree": "ntuple._ntuple",
    "TreeWriter": "writing._trees",
    "WritableFile": "writing._file",
    "abort": "writing._creating",
    "concatenate": "_many.verbs",
    "create": "writing._creating",
    "dask": "_many.dask",
    "dask_dataframe": "_many.dask",
    "dask_hist": "_many.dask",
    "hist": "_many.verbs",
    "import_hdf5": "_many.hdf5",
    "import_trees": "_many.importing",
    "index": "_many.manifest",
    "iterate": "_many.verbs",
    "join": "reading._join",
    "merge": "_many.merging",
    "num_entries": "_many.verbs",
    "open": "reading._opening",
    "partitions": "_many.planning",
    "record": "_to_arrow.cpp",
    "recreate": "writing._creating",
    "scan": "_many.verbs",
    "sql": "_sql.query",
    "update": "writing._creating",
}

_MODULES = (
    "attributes",
    "columns",
    "efficiency",
    "errors",
    "fields",
    "filling",
    "graph",
    "histogram",
    "importing",
    "metrics",
    "ntuple",
    "reading",
    "rules",
    "trees",
    "writing",
)
"""The public modules."""


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
