"""uproot's module of this name: files that are read."""

from ._reading import ReadOnlyDirectory, ReadOnlyFile, open

__all__ = ["ReadOnlyDirectory", "ReadOnlyFile", "open"]
