"""Opening files."""

from ._file import NTUPLE_CLASSES, TABLE_CLASSES, File
from ._opening import open

__all__ = ["NTUPLE_CLASSES", "TABLE_CLASSES", "File", "open"]
