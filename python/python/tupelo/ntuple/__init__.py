"""Open ntuples and trees."""

from ._entries import DEFAULT_STEP
from ._ntuple import Ntuple, Tree

__all__ = ["DEFAULT_STEP", "Ntuple", "Tree"]
