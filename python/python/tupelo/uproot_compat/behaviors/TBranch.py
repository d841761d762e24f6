"""uproot's module of this name. The classes have no instances, as Tupelo does not read trees; `isinstance` works."""


class HasBranches:
    """A tree or a branch with branches."""


class TBranch(HasBranches):
    """A branch."""


__all__ = ["HasBranches", "TBranch"]
