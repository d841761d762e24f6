"""What Tupelo raises and warns of.

Every kind of error of the engine has one class here, and each is also what Python calls that situation: code that
catches `KeyError`, `ValueError` or `OSError` goes on to work.
"""

import builtins


class Error(Exception):
    """What all exceptions of Tupelo are. The text names file, ntuple, field and place, from the outside in."""

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
    """Bytes that contradict the format or their checksum. The text says where in the file."""


class UnsupportedError(Error, NotImplementedError):
    """Something legal that this version does not do."""


class LimitError(Error, MemoryError):
    """More memory or nesting wanted than is allowed."""


class InvalidArgumentError(Error, ValueError):
    """A call that makes no sense: an option's value, data that do not fit the declared fields."""


class StorageError(Error, OSError):
    """The storage under the file failed: permissions, disk full, a read error."""


class ChangedFileError(StorageError):
    """A file that is another one than when the work on it was planned."""


class TupeloWarning(UserWarning):
    """Something is left out that this version cannot read; the text names it."""


BY_KIND: dict[str, type[Error]] = {
    "NotFound": NotFoundError,
    "MissingFile": MissingFileError,
    "Corrupt": CorruptError,
    "Unsupported": UnsupportedError,
    "Limit": LimitError,
    "InvalidArgument": InvalidArgumentError,
    "Storage": StorageError,
}
"""The engine's kinds of errors (`tupelo._core.ERROR_KINDS`) and what is raised for each."""
