"""uproot's module of this name: ntuples, fields, and the entries of many files."""

from .._fields import HasFields, Report
from .._ntuple import RField, RNTuple
from .._reading import concatenate, iterate

__all__ = ["HasFields", "RField", "RNTuple", "Report", "concatenate", "iterate"]
