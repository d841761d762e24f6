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
`Ntuple.arrays` and `Ntuple.iterate` return entries as Awkward, NumPy, Arrow, pandas or polars; `iterate` and
`concatenate` read many files; `import_trees` writes trees as ntuples. `create`, `recreate` and
`update` return a `WritableFile`.
Failures raise an `Error`, with a subclass for each kind. Nothing is silently ignored: unsupported requests are errors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._core import VERSION as __version__
from ._core import threads
from ._threads import set_threads
from .errors import (
    CancelledError,
    ChangedFileError,
    CorruptError,
    Error,
    ExistingFileError,
    InvalidArgumentError,
    LimitError,
    MissingFileError,
    NotFoundError,
    StorageError,
    TupeloWarning,
    UnsupportedError,
)

if TYPE_CHECKING:
    from ._cpp import record
    from ._dask import dask, dask_dataframe
    from ._locations import Report
    from ._manifest import index
    from ._many import concatenate, hist, iterate, num_entries, scan
    from ._objects import Instance, OpaqueObject
    from ._partitions import Partition, PartitionReport, partitions
    from ._stream import Stream
    from .attributes import AttributeSet, AttributeSetWriter
    from .columns import NtupleWithColumns
    from .efficiency import Efficiency
    from .fields import Field
    from .filling import FillContext, Metadata, NtupleWriter
    from .graph import Graph
    from .histogram import Histogram
    from .importing import ImportedField, ImportReport, import_trees
    from .metrics import Metrics
    from .ntuple import Ntuple, Tree
    from .reading import File, open
    from .rules import ReadRule
    from .trees import TreeWriter
    from .writing import WritableFile, abort, create, recreate, update

__all__ = [
    "AttributeSet",
    "AttributeSetWriter",
    "CancelledError",
    "ChangedFileError",
    "CorruptError",
    "Efficiency",
    "Error",
    "ExistingFileError",
    "Field",
    "File",
    "FillContext",
    "Graph",
    "Histogram",
    "ImportReport",
    "ImportedField",
    "Instance",
    "InvalidArgumentError",
    "LimitError",
    "Metadata",
    "Metrics",
    "MissingFileError",
    "NotFoundError",
    "Ntuple",
    "NtupleWithColumns",
    "NtupleWriter",
    "OpaqueObject",
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
    "hist",
    "import_trees",
    "index",
    "iterate",
    "num_entries",
    "open",
    "partitions",
    "record",
    "recreate",
    "scan",
    "set_threads",
    "threads",
    "update",
]

# NumPy and PyArrow take ten times as long to import as the rest, so modules that need them are imported on first use.
_MODULE_OF = {
    "AttributeSet": "attributes",
    "AttributeSetWriter": "attributes",
    "Efficiency": "efficiency",
    "Field": "fields",
    "File": "reading",
    "FillContext": "filling",
    "Graph": "graph",
    "Histogram": "histogram",
    "ImportReport": "importing",
    "ImportedField": "importing",
    "Instance": "_objects",
    "Metadata": "filling",
    "Metrics": "metrics",
    "Ntuple": "ntuple",
    "NtupleWithColumns": "columns",
    "NtupleWriter": "filling",
    "OpaqueObject": "_objects",
    "Partition": "_partitions",
    "PartitionReport": "_partitions",
    "ReadRule": "rules",
    "Report": "_locations",
    "Stream": "_stream",
    "Tree": "ntuple",
    "TreeWriter": "trees",
    "WritableFile": "writing",
    "abort": "writing",
    "create": "writing",
    "concatenate": "_many",
    "dask": "_dask",
    "dask_dataframe": "_dask",
    "hist": "_many",
    "import_trees": "importing",
    "index": "_manifest",
    "iterate": "_many",
    "num_entries": "_many",
    "open": "reading",
    "partitions": "_partitions",
    "record": "_cpp",
    "recreate": "writing",
    "scan": "_many",
    "update": "writing",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF.values():
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
