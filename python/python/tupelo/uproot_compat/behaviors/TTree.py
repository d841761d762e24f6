"""uproot's module of this name: trees."""

from .._trees import HasBranches, TTree

__all__ = ["HasBranches", "TTree"]
