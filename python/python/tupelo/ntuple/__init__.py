"""Open ntuples and trees."""

from ._ntuple import Ntuple, Tree
from ._requests import DEFAULT_STEP

__all__ = ["DEFAULT_STEP", "Ntuple", "Tree"]
