"""uproot's module of this name: the classes of ntuples, and those of trees, which have no instances."""

from . import RNTuple, TBranch, TTree

__all__ = ["RNTuple", "TBranch", "TTree"]
