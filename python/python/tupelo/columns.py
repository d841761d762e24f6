"""Ntuples with additional columns."""

from .ntuple._with_columns import NtupleWithColumns

__all__ = ["NtupleWithColumns"]
