"""Writing files."""

from ._creating import abort, create, recreate, update
from ._file import WritableFile

__all__ = ["WritableFile", "abort", "create", "recreate", "update"]
