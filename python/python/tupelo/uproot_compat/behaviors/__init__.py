"""uproot's module of this name: the classes of ntuples and of trees."""

from . import RNTuple, TBranch, TTree

__all__ = ["RNTuple", "TBranch", "TTree"]
