"""Importing trees as ntuples."""

from ._many.importing import ImportedField, ImportReport, import_trees

__all__ = ["ImportReport", "ImportedField", "import_trees"]
