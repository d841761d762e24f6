"""uproot's module of this name: the classes of files that are written."""

from .._writing import WritableDirectory, WritableFile, WritableNTuple, WritableTree, create, recreate, update

__all__ = ["WritableDirectory", "WritableFile", "WritableNTuple", "WritableTree", "create", "recreate", "update"]
