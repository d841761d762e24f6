"""uproot's module of this name: branches, and the entries of many files."""

from .._fields import Report
from .._many import concatenate, iterate
from .._trees import HasBranches, TBranch

__all__ = ["HasBranches", "Report", "TBranch", "concatenate", "iterate"]
