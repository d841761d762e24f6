"""uproot's module of this name. Tupelo reads no trees, so nothing is of these classes; programs can ask."""


class HasBranches:
    """A tree or a branch with branches."""


class TBranch(HasBranches):
    """A branch."""


__all__ = ["HasBranches", "TBranch"]
