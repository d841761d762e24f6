"""uproot's module of this name. Tupelo reads no trees, so nothing is of this class; programs can ask."""

from .TBranch import HasBranches


class TTree(HasBranches):
    """A tree."""


__all__ = ["TTree"]
