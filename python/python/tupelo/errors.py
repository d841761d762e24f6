"""Exceptions and warnings of Tupelo.

Each kind of error has a class, which also derives from the matching built-in exception: code that catches `KeyError`,
`ValueError` or `OSError` keeps working.
"""

import builtins


class Error(Exception):
    """The base class of all exceptions of Tupelo. The message names file, ntuple, field and position, in this order."""

    field: str | None = None
    """Dotted path of the field that could not be read, if any."""
    column: int | None = None
    """Number of the column, if any."""
    cluster: int | None = None
    """Number of the cluster, if any."""
    page: int | None = None
    """Number of the page in its column and cluster, if any."""

    def __str__(self) -> str:
        # KeyError would add quotes.
        return str(self.args[0]) if self.args else ""


class NotFoundError(Error, KeyError):
    """A name that does not exist: an ntuple, a field, an attribute set. The message lists similar names."""


class MissingFileError(NotFoundError, builtins.FileNotFoundError):
    """A file that does not exist."""


class CorruptError(Error, ValueError):
    """The file is damaged: bytes violate the format or do not match their checksum. The message gives the position."""


class CutOffError(CorruptError):
    """A file without its end, such as one that was copied in part or whose writer was killed."""


class OtherFormatError(CorruptError):
    """A file of another format."""


class UnsupportedError(Error, NotImplementedError):
    """A legal request or file that this version does not support."""


class LimitError(Error, MemoryError):
    """A request exceeds a limit on memory or nesting."""


class InvalidArgumentError(Error, ValueError):
    """An invalid argument: an unknown value of an option, or data that do not fit the declared fields."""


class ExistingFileError(InvalidArgumentError, builtins.FileExistsError):
    """A file that exists, where `create` was to make it."""


class StorageError(Error, OSError):
    """A storage operation failed: permissions, disk full, a read error."""


class CancelledError(Error):
    """The caller cancelled the operation: a signal handler raised an exception."""


class ChangedFileError(StorageError):
    """A file that was replaced or changed after it was opened, or after partitions of it were planned."""


class TupeloWarning(UserWarning):
    """Something was skipped, discarded or hidden; the message names it and says what to do."""


BY_KIND: dict[str, type[Error]] = {
    "NotFound": NotFoundError,
    "MissingFile": MissingFileError,
    "Corrupt": CorruptError,
    "CutOff": CutOffError,
    "OtherFormat": OtherFormatError,
    "Unsupported": UnsupportedError,
    "Limit": LimitError,
    "InvalidArgument": InvalidArgumentError,
    "Storage": StorageError,
    "Changed": ChangedFileError,
    "Cancelled": CancelledError,
}
"""Exception classes by error kind of the engine (`tupelo._core.ERROR_KINDS`)."""
