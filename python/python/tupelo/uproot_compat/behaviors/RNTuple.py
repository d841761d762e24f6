"""uproot's module of this name: ntuples, fields, and the entries of many files."""

from .._fields import HasFields, Report
from .._many import concatenate, iterate
from .._ntuple import RField, RNTuple

__all__ = ["HasFields", "RField", "RNTuple", "Report", "concatenate", "iterate"]
