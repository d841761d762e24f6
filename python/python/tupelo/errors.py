"""Exceptions and warnings of Tupelo.

Each kind of error has a class, which also derives from the matching built-in exception: code that catches `KeyError`,
`ValueError` or `OSError` keeps working.
"""

import builtins


class Error(Exception):
    """The base class of all exceptions of Tupelo. The text names file, ntuple, field and place, in this order."""

    field: str | None = None
    """Dotted path of the field in which data could not be read, where it was one."""
    column: int | None = None
    """Number of the column, where it was one."""
    cluster: int | None = None
    """Number of the cluster, where it was one."""
    page: int | None = None
    """Number of the page in its column and cluster, where it was one."""

    def __str__(self) -> str:
        # KeyError would put quotes around it.
        return str(self.args[0]) if self.args else ""


class NotFoundError(Error, KeyError):
    """A name that does not exist: an ntuple, a field, an attribute set. The text lists near names."""


class MissingFileError(NotFoundError, builtins.FileNotFoundError):
    """A file that does not exist."""


class CorruptError(Error, ValueError):
    """The file is damaged: bytes contradict the format or their checksum. The text says where in the file."""


class UnsupportedError(Error, NotImplementedError):
    """A legal request or file that this version does not support."""


class LimitError(Error, MemoryError):
    """More memory or nesting is needed than a limit allows."""


class InvalidArgumentError(Error, ValueError):
    """An invalid argument: an unknown value of an option, or data that do not fit the declared fields."""


class StorageError(Error, OSError):
    """The storage under the file failed: permissions, disk full, a read error."""


class CancelledError(Error):
    """The work was cancelled by the caller: a signal handler raised an exception."""


class ChangedFileError(StorageError):
    """A file that was replaced or changed after the work on it was planned."""


class TupeloWarning(UserWarning):
    """Something is left out, given up or hidden that may be wanted; the text names it and says what to do."""


BY_KIND: dict[str, type[Error]] = {
    "NotFound": NotFoundError,
    "MissingFile": MissingFileError,
    "Corrupt": CorruptError,
    "Unsupported": UnsupportedError,
    "Limit": LimitError,
    "InvalidArgument": InvalidArgumentError,
    "Storage": StorageError,
    "Cancelled": CancelledError,
}
"""The engine's kinds of errors (`tupelo._core.ERROR_KINDS`) and what is raised for each."""
