"""The fields of ntuples and trees, and their selection."""

from ._fields import Field, Fields

__all__ = ["Field", "Fields"]
