"""Filling ntuples."""

from .writing._filling import FillContext, Metadata, NtupleWriter, TableWriter

__all__ = ["FillContext", "Metadata", "NtupleWriter", "TableWriter"]
