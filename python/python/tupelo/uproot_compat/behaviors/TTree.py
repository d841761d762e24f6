"""uproot's module of this name. The class has no instances, as Tupelo does not read trees; `isinstance` works."""

from .TBranch import HasBranches


class TTree(HasBranches):
    """A tree."""


__all__ = ["TTree"]
